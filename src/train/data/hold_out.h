/* SPDX-License-Identifier: Apache-2.0 */
/* hold_out.h - chooses the texts that a head is measured with and not trained on. The same prompt answered twice, for
 * instance at another temperature, gives similar texts: texts that begin with the prompt of a held-out one are not used
 * for training either. */
#ifndef HN_HOLD_OUT_H
#define HN_HOLD_OUT_H
#include "train/data/features.h"

typedef enum hn_text_role { HN_TEXT_LEARNED, HN_TEXT_HELD_OUT, HN_TEXT_LEFT_OUT } hn_text_role;

/* role [n], of each text. About `wanted` of them are held out, evenly spread; none if there are fewer. If all the
 * others begin like these none is left out, since training needs some. */
void hn_hold_out(const hn_feature_text *text, size_t n, int wanted, hn_text_role *role);
#endif
