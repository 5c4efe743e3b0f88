/* SPDX-License-Identifier: Apache-2.0 */
/* token_scores.h - whether the scores of a GGUF's vocabulary can be those of a SentencePiece model. */
#ifndef HN_TOKEN_SCORES_H
#define HN_TOKEN_SCORES_H
#include "text/tokenizer/tokenizer_private.h"

/* Why these are no scores of a SentencePiece model, which are 0 at most, and fall while ids rise; NULL: they may be. Converters that take
 * a vocabulary from elsewhere write ids or one number for all in their place. */
const char *hn_scores_fault(const hn_tokenizer *t, const double *scores);
#endif
