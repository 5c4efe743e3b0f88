/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_index.c - hash tables of n-gram positions, one for each length. See ngram_index.h.
 *
 * The hash of the n-gram that ends at e is computed from its last token backwards, so the hashes of all lengths at one end
 * are computed in one walk. A hit is compared with the text: collisions cost time, never a wrong position.
 */
#include "draft/text/ngram_index.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

void hn_ngram_index_init(hn_ngram_index *x, int min, int max, bool latest) {
    memset(x, 0, sizeof *x);
    x->min = min;
    x->max = max;
    x->latest = latest;
}

void hn_ngram_index_fini(hn_ngram_index *x) {
    for (int n = x->min; n <= x->max; n++) hn_free(x->table[n].slot);
    hn_ngram_index_init(x, x->min, x->max, x->latest);
}

/* Empties it, but keeps the memory. */
static void index_empty(hn_ngram_index *x) {
    for (int n = x->min; n <= x->max; n++) {
        if (x->table[n].slot) memset(x->table[n].slot, 0xff, x->table[n].size * sizeof *x->table[n].slot);
        x->table[n].used = 0;
    }
    x->end = 0;
}

/* The slot of this n-gram, or the empty one for it. The table has empty slots. */
static hn_ngram_slot *slot_find(const hn_ngram_table *t, uint32_t hash, const int32_t *token, const int32_t *gram, int n) {
    for (size_t i = hash & (t->size - 1);; i = (i + 1) & (t->size - 1)) {
        hn_ngram_slot *s = &t->slot[i];
        if (s->position < 0) return s;
        if (s->hash == hash && !memcmp(token + s->position, gram, (size_t)n * sizeof *gram)) return s;
    }
}

static bool table_grow(hn_ngram_table *t) {
    size_t size = t->size ? t->size * 2 : 64;
    hn_ngram_slot *slot = hn_alloc(size * sizeof *slot);
    if (!slot) return false;
    memset(slot, 0xff, size * sizeof *slot); /* every position -1 */
    for (size_t i = 0; i < t->size; i++) {
        if (t->slot[i].position < 0) continue;
        size_t to = t->slot[i].hash & (size - 1);
        while (slot[to].position >= 0) to = (to + 1) & (size - 1);
        slot[to] = t->slot[i];
    }
    hn_free(t->slot);
    t->slot = slot;
    t->size = size;
    return true;
}

size_t hn_ngram_index_bytes(const hn_ngram_index *x, size_t grams) {
    size_t size = 64;
    while (size < 2 * grams) size *= 2;
    return grams > 0 ? (size_t)(x->max - x->min + 1) * size * sizeof(hn_ngram_slot) : 0;
}

static void table_put(hn_ngram_index *x, int n, uint32_t hash, const int32_t *token, int position) {
    hn_ngram_table *t = &x->table[n];
    if (t->used * 2 >= t->size && !table_grow(t) && t->used + 1 >= t->size) return; /* one slot stays empty */
    hn_ngram_slot *s = slot_find(t, hash, token, token + position, n);
    if (s->position >= 0) {
        if (x->latest) s->position = position;
        return;
    }
    *s = (hn_ngram_slot){hash, position};
    t->used++;
}

void hn_ngram_index_extend(hn_ngram_index *x, const int32_t *token, int end) {
    if (end < x->end) index_empty(x);
    for (int e = x->end + 1; e <= end; e++) {
        uint64_t h = 0;
        for (int n = 1; n <= x->max && n <= e; n++) {
            h = hn_hash_tokens(h, &token[e - n], 1);
            if (n >= x->min) table_put(x, n, (uint32_t)h, token, e - n);
        }
    }
    if (end > x->end) x->end = end;
}

int hn_ngram_index_find(const hn_ngram_index *x, const int32_t *token, int n, int32_t position[HN_NGRAM_MAX + 1]) {
    uint64_t h = 0;
    int longest = 0;
    for (int len = 1; len <= x->max && len <= n; len++) {
        h = hn_hash_tokens(h, &token[n - len], 1);
        if (len < x->min) continue;
        const hn_ngram_table *t = &x->table[len];
        if (!t->used) break;
        const hn_ngram_slot *s = slot_find(t, (uint32_t)h, token, token + n - len, len);
        if (s->position < 0) break; /* a longer one ends with this one: it does not occur either */
        position[longest = len] = s->position;
    }
    return longest;
}
