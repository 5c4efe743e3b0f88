/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_mod.c - see ngram_mod.h. */
#include "draft/text/ngram_mod.h"

#include <string.h>

#include "base/mem.h"

enum { GENERATIONS = 256, TOKEN_BITS = 24 };
static const size_t BYTES = (size_t)HN_MOD_SIZE * sizeof(uint32_t);

bool hn_ngram_mod_init(hn_ngram_mod *x, int n) {
    *x = (hn_ngram_mod){.n = n, .next = hn_pages_alloc(BYTES), .generation = 1};
    return x->next != NULL;
}

void hn_ngram_mod_fini(hn_ngram_mod *x) {
    hn_pages_free(x->next, BYTES);
    *x = (hn_ngram_mod){0};
}

void hn_ngram_mod_empty(hn_ngram_mod *x) {
    if (x->used == 0) return;
    x->used = 0;
    if (++x->generation < GENERATIONS) return;
    x->generation = 1;
    memset(x->next, 0, BYTES);
}

/* A linear congruence over the n tokens; its upper bits are the well-mixed ones. */
static size_t place_of(const int32_t *gram, int n) {
    uint64_t h = 0;
    for (int i = 0; i < n; i++) h = h * 6364136223846793005u + (uint32_t)gram[i] + 1;
    return (size_t)(h * 6364136223846793005u >> (64 - HN_MOD_BITS));
}

void hn_ngram_mod_learn(hn_ngram_mod *x, const int32_t *token, int from, int to) {
    for (int i = from > x->n ? from : x->n; i < to; i++) {
        uint32_t *next = &x->next[place_of(token + i - x->n, x->n)];
        x->used += *next >> TOKEN_BITS != x->generation;
        *next = x->generation << TOKEN_BITS | (uint32_t)token[i];
    }
}

int hn_ngram_mod_chain(const hn_ngram_mod *x, const int32_t *token, int n, int32_t *out, int most) {
    int32_t gram[128]; /* slides over the text's end and what was drafted */
    const int room = (int)(sizeof gram / sizeof gram[0]);
    if (n < x->n || most > room - x->n) return 0;
    memcpy(gram, token + n - x->n, (size_t)x->n * sizeof *gram);
    for (int len = 0; len < most; len++) {
        const uint32_t next = x->next[place_of(gram + len, x->n)];
        if (next >> TOKEN_BITS != x->generation) return len;
        gram[x->n + len] = out[len] = (int32_t)(next & ((1u << TOKEN_BITS) - 1));
    }
    return most;
}
