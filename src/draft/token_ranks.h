/* SPDX-License-Identifier: Apache-2.0 */
/* token_ranks.h - which tokens a draft head drafts that is to draft fewer than its target has (FR-Spec, 2502.14856).
 *
 * Nearly all of a text is made of a few of the vocabulary's tokens, and for a head of one layer the output matrix is most of a
 * step's bytes. So it drafts the likeliest tokens alone: the text loses nothing, since the target verifies as ever with
 * all of its own, and a token that was left out costs the drafts behind it.
 *
 * The likeliest are those of a list (`ids`), or most frequent in texts (`texts`; what does not tell there goes by the
 * tokenizer), or the first in the order of the tokenizer (hn_tokenizer_order). Special tokens and those that end a turn are always in,
 * in the place of the least likely; ids that stand for nothing never.
 *
 * ids    a file of token ids, likeliest first: a list in JSON, numbers with white space between them, or such a list as torch.save
 *        writes it (FR-Spec's freq_N.pt)
 * texts  a file of text; of one whose name ends in .jsonl or .ndjson the strings that its rows have, at any place, under one of
 *        text, content, prompt, completion, response, answer, output, value
 */
#ifndef HN_TOKEN_RANKS_H
#define HN_TOKEN_RANKS_H
#include "text/tokenizer.h"

typedef struct hn_token_wish {
    int n;                  /* how many */
    const char *ids, *texts; /* files; NULL: not so, one of them at most */
} hn_token_wish;

/* *out: tokens below `vocab`, rising, to be freed with hn_free; *n of them: wish.n, or fewer where there are no more. NULL
 * and 0: all of them. t: NULL: the target has none. Errors: HUNCH_USAGE for what cannot be had of this target, and of a file
 * HUNCH_REFUSED or HUNCH_FAILED, naming it. */
hunch_status hn_tokens_choose(const hn_token_wish *wish, const hn_tokenizer *t, int vocab, int32_t **out, int *n, hunch_error *err);
#endif
