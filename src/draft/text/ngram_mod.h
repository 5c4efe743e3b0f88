/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_mod.h - one table of next tokens by the hash of the n tokens before, shared by all texts of a drafter
 * (llama.cpp's ngram-mod). The last writer wins and keys are not checked: a wrong continuation costs a rejected draft.
 *
 * At most 16 MiB: the pages of the table are touched as it fills.
 */
#ifndef HN_NGRAM_MOD_H
#define HN_NGRAM_MOD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_MOD_BITS = 22, HN_MOD_SIZE = 1 << HN_MOD_BITS };

typedef struct hn_ngram_mod {
    int n;
    /* [HN_MOD_SIZE] generation << 24 | token: entries of another generation are empty, so that emptying costs nothing (a
     * vocabulary has at most 2^23 rows) */
    uint32_t *next;
    uint32_t generation; /* 1..255 */
    size_t used;
} hn_ngram_mod;

bool hn_ngram_mod_init(hn_ngram_mod *x, int n); /* false: no memory */
void hn_ngram_mod_fini(hn_ngram_mod *x);
void hn_ngram_mod_empty(hn_ngram_mod *x);
/* Learns the tokens at from..to-1 from those before them. */
void hn_ngram_mod_learn(hn_ngram_mod *x, const int32_t *token, int from, int to);
/* Chains lookups after the text until one fails or there are `most` tokens; returns how many. */
int hn_ngram_mod_chain(const hn_ngram_mod *x, const int32_t *token, int n, int32_t *out, int most);
#endif
