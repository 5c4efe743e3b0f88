/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_map.c - a hash table over an array of keys. See ngram_map.h; a hit is compared with the text. */
#include "draft/text/ngram_map.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

void hn_ngram_map_init(hn_ngram_map *x, int n, int m, bool counted) {
    *x = (hn_ngram_map){.n = n, .m = m, .counted = counted};
}

void hn_ngram_map_fini(hn_ngram_map *x) {
    hn_free(x->key);
    hn_free(x->slot);
    hn_ngram_map_init(x, x->n, x->m, x->counted);
}

static uint32_t gram_hash(const int32_t *gram, int n) {
    return (uint32_t)hn_hash_tokens(0, gram, n);
}

/* The slot of this n-gram, or the empty one for it. The table has empty slots. */
static int32_t *slot_find(const hn_ngram_map *x, uint32_t hash, const int32_t *token, const int32_t *gram) {
    for (size_t i = hash & (x->size - 1);; i = (i + 1) & (x->size - 1)) {
        int32_t k = x->slot[i];
        if (k < 0) return &x->slot[i];
        if (x->key[k].hash == hash && !memcmp(token + x->key[k].first, gram, (size_t)x->n * sizeof *gram))
            return &x->slot[i];
    }
}

static bool slots_grow(hn_ngram_map *x) {
    size_t size = x->size ? x->size * 2 : 64;
    int32_t *slot = hn_alloc(size * sizeof *slot);
    if (!slot) return false;
    memset(slot, 0xff, size * sizeof *slot);
    for (size_t k = 0; k < x->n_keys; k++) {
        size_t to = x->key[k].hash & (size - 1);
        while (slot[to] >= 0) to = (to + 1) & (size - 1);
        slot[to] = (int32_t)k;
    }
    hn_free(x->slot);
    x->slot = slot;
    x->size = size;
    return true;
}

/* The key of the n-gram at `position`, added if it is new; NULL: no memory. */
static hn_map_key *key_put(hn_ngram_map *x, const int32_t *token, int position) {
    if (x->n_keys * 2 >= x->size && !slots_grow(x) && x->n_keys + 1 >= x->size) return NULL; /* one slot stays empty */
    uint32_t hash = gram_hash(token + position, x->n);
    int32_t *slot = slot_find(x, hash, token, token + position);
    if (*slot >= 0) return &x->key[*slot];
    if (!hn_grow((void **)&x->key, &x->cap_keys, x->n_keys + 1, sizeof *x->key)) return NULL;
    *slot = (int32_t)x->n_keys;
    x->key[x->n_keys] = (hn_map_key){.first = position, .hash = hash};
    return &x->key[x->n_keys++];
}

/* Counts the continuation at `at`: with an equal one, else in a free place; a fifth kind is not stored. */
static void value_count(const hn_ngram_map *x, hn_map_key *k, const int32_t *token, int at) {
    for (int v = 0; v < (x->counted ? HN_MAP_VALUES : 1); v++) {
        hn_map_value *q = &k->value[v];
        if (q->count == 0) {
            *q = (hn_map_value){at, 1, (uint16_t)x->m};
            return;
        }
        if (!x->counted || !memcmp(token + q->at, token + at, (size_t)x->m * sizeof *token)) {
            if (q->count < HN_MAP_MOST) q->count++;
            return;
        }
    }
}

void hn_ngram_map_extend(hn_ngram_map *x, const int32_t *token, int end) {
    if (end < x->end) { /* rewound: keeps the memory */
        if (x->slot) memset(x->slot, 0xff, x->size * sizeof *x->slot);
        x->n_keys = 0;
        x->end = 0;
    }
    /* A key that ends at e is complete when the tokens that are copied after it exist. */
    const int behind = x->counted ? x->m : 1;
    for (int e = x->end > behind ? x->end + 1 - behind : 1; e <= end - behind; e++) {
        if (e < x->n) continue;
        hn_map_key *k = key_put(x, token, e - x->n);
        if (k) value_count(x, k, token, e);
    }
    x->end = end;
}

const hn_map_value *hn_ngram_map_find(const hn_ngram_map *x, const int32_t *token, int end, int *key, int *value) {
    if (end < x->n || x->n_keys == 0) return NULL;
    const int32_t *gram = token + end - x->n;
    *key = *slot_find(x, gram_hash(gram, x->n), token, gram);
    if (*key < 0) return NULL;
    const hn_map_value *v = x->key[*key].value;
    int sum = 0, best = 0;
    for (int i = 0; i < HN_MAP_VALUES; i++) {
        sum += v[i].count;
        if (v[i].count > v[best].count) best = i;
    }
    *value = best;
    return v[best].count >= 2 * (sum - v[best].count) ? &v[best] : NULL;
}

void hn_ngram_map_cap(hn_ngram_map *x, int key, int value, int cap) {
    assert(cap >= 0 && cap <= x->m);
    if (key >= 0 && (size_t)key < x->n_keys) x->key[key].value[value].cap = (uint16_t)cap;
}
