/* SPDX-License-Identifier: Apache-2.0 */
/* token_ranks.h - which tokens a draft head drafts if it drafts fewer than its target has (FR-Spec, 2502.14856).
 *
 * Nearly all of a text consists of few of the vocabulary's tokens, and for a head of one layer the output matrix is most of a
 * step's bytes. So it drafts only the likeliest tokens: the text does not change, because the target verifies with
 * all of its own, and a token that was left out only costs the drafts after it.
 *
 * The likeliest are those of a list (`ids`), or the most frequent in texts (`texts`; ties are decided by the
 * tokenizer's order), or the first in the order of the tokenizer (hn_tokenizer_order). Special tokens and those that end a turn are
 * always included, instead of the least likely; padding ids never are.
 *
 * ids    a file of token ids, likeliest first: a list in JSON, numbers with white space between them, or such a list as torch.save
 *        writes it (FR-Spec's freq_N.pt)
 * texts  a file of text; if its name ends in .jsonl or .ndjson the strings of its rows, at any place, under one of
 *        text, content, prompt, completion, response, answer, output, value
 */
#ifndef HN_TOKEN_RANKS_H
#define HN_TOKEN_RANKS_H
#include "text/tokenizer/tokenizer.h"

typedef struct hn_token_selection {
    int n;                  /* how many */
    const char *ids, *texts; /* files; NULL: none; at most one of them */
} hn_token_selection;

/* *out: tokens below `vocab`, ascending, to be freed with hn_free; *n of them: wish.n, or fewer if there are no more. NULL
 * and 0: all of them. t: NULL: the target has none. Errors: HUNCH_USAGE if this target does not allow it, and for a file
 * HUNCH_REFUSED or HUNCH_FAILED, naming it. */
hunch_status hn_tokens_choose(const hn_token_selection *wish, const hn_tokenizer *t, int vocab, int32_t **out, int *n, hunch_error *err);
#endif
