/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_counts.c - see ngram_counts.h. Memory for one more entry and one more pair is reserved before anything is written, so
 * that a failed allocation changes nothing. */
#include "draft/text/ngram_counts.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

void hn_counts_init(hn_counts *x, size_t limit) {
    *x = (hn_counts){.limit = limit};
}

void hn_counts_fini(hn_counts *x) {
    hn_free(x->entry);
    hn_free(x->pair);
    hn_free(x->entry_slot);
    hn_free(x->pair_slot);
    hn_counts_init(x, x->limit);
}

void hn_counts_gram(int32_t gram[HN_COUNTS_N], const int32_t *token, int n) {
    for (int i = 0; i < HN_COUNTS_N; i++) gram[i] = i < n ? token[i] : -1;
}

static size_t bytes_of(size_t entries, size_t pairs, size_t slots) {
    return entries * sizeof(hn_counts_entry) + pairs * sizeof(hn_counts_pair) + slots * sizeof(uint32_t);
}

size_t hn_counts_bytes(const hn_counts *x) {
    return bytes_of(x->cap_entries, x->cap_pairs, x->entry_slots + x->pair_slots);
}

/* ---- hash tables ------------------------------------------------------------------------------------------------- */

static size_t gram_hash(const int32_t *gram) {
    return (size_t)hn_hash_tokens(0, gram, HN_COUNTS_N);
}

static size_t pair_hash(uint32_t entry, int32_t token) {
    return (size_t)hn_hash_tokens(hn_hash_word(1, entry), &token, 1);
}

/* The slot of this n-gram, or the empty one where it belongs. The table has empty slots. */
static uint32_t *entry_find(const hn_counts *x, const int32_t *gram) {
    for (size_t i = gram_hash(gram) & (x->entry_slots - 1);; i = (i + 1) & (x->entry_slots - 1)) {
        uint32_t *s = &x->entry_slot[i];
        if (*s == HN_COUNTS_NONE || !memcmp(x->entry[*s].gram, gram, sizeof x->entry[*s].gram)) return s;
    }
}

static uint32_t *pair_find(const hn_counts *x, uint32_t entry, int32_t token) {
    for (size_t i = pair_hash(entry, token) & (x->pair_slots - 1);; i = (i + 1) & (x->pair_slots - 1)) {
        uint32_t *s = &x->pair_slot[i];
        if (*s == HN_COUNTS_NONE || (x->pair[*s].entry == entry && x->pair[*s].token == token)) return s;
    }
}

static void entries_hash(hn_counts *x) {
    memset(x->entry_slot, 0xff, x->entry_slots * sizeof *x->entry_slot);
    for (size_t i = 0; i < x->n_entries; i++) *entry_find(x, x->entry[i].gram) = (uint32_t)i;
}

static void pairs_hash(hn_counts *x) {
    memset(x->pair_slot, 0xff, x->pair_slots * sizeof *x->pair_slot);
    for (size_t i = 0; i < x->n_pairs; i++) *pair_find(x, x->pair[i].entry, x->pair[i].token) = (uint32_t)i;
}

/* ---- dropping ---------------------------------------------------------------------------------------------------- */

static uint32_t age_of(const hn_counts *x, size_t entry) {
    return x->clock - x->entry[entry].stamp;
}

/* The largest age below which no more than half of the entries are. */
static uint32_t median_age(const hn_counts *x) {
    uint32_t age = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        size_t younger = 0;
        for (size_t i = 0; i < x->n_entries; i++) younger += age_of(x, i) < (age | bit);
        if (younger <= x->n_entries / 2) age |= bit;
    }
    return age;
}

/* Compacts entries and pairs over those that are dropped. The hash tables, which are rebuilt afterwards, store the new
 * indices meanwhile: each has more slots than there are entries or pairs. */
static void oldest_drop(hn_counts *x) {
    const uint32_t age = median_age(x);
    uint32_t *entry_to = x->entry_slot, *pair_to = x->pair_slot;
    size_t entries = 0, pairs = 0;
    for (size_t i = 0; i < x->n_entries; i++) entry_to[i] = age_of(x, i) < age ? (uint32_t)entries++ : HN_COUNTS_NONE;
    for (size_t i = 0; i < x->n_pairs; i++)
        pair_to[i] = entry_to[x->pair[i].entry] != HN_COUNTS_NONE ? (uint32_t)pairs++ : HN_COUNTS_NONE;
    for (size_t i = 0; i < x->n_pairs; i++) {
        if (pair_to[i] == HN_COUNTS_NONE) continue;
        hn_counts_pair p = x->pair[i];
        p.entry = entry_to[p.entry];
        if (p.next != HN_COUNTS_NONE) p.next = pair_to[p.next];
        x->pair[pair_to[i]] = p;
    }
    for (size_t i = 0; i < x->n_entries; i++) {
        if (entry_to[i] == HN_COUNTS_NONE) continue;
        hn_counts_entry e = x->entry[i];
        e.first = pair_to[e.first];
        e.last = pair_to[e.last];
        e.best = pair_to[e.best];
        x->entry[entry_to[i]] = e;
    }
    x->n_entries = entries;
    x->n_pairs = pairs;
    entries_hash(x);
    pairs_hash(x);
}

/* ---- growing ----------------------------------------------------------------------------------------------------- */

static bool slots_grow(uint32_t **slot, size_t *slots) {
    const size_t size = *slots ? *slots * 2 : 64;
    uint32_t *s = hn_alloc(size * sizeof *s);
    if (!s) return false;
    hn_free(*slot);
    *slot = s;
    *slots = size;
    return true;
}

/* Whether there is room for one more entry and one more pair. At most half of the slots are taken. */
static bool has_room(const hn_counts *x) {
    return x->n_entries < x->cap_entries && x->n_pairs < x->cap_pairs && x->n_entries * 2 < x->entry_slots &&
           x->n_pairs * 2 < x->pair_slots;
}

/* Bytes after growing what is full, with the sizes of hn_grow and slots_grow. */
static size_t bytes_grown(const hn_counts *x) {
    size_t entries = x->cap_entries, pairs = x->cap_pairs, slots = x->entry_slots + x->pair_slots;
    if (x->n_entries == entries) entries = entries < 8 ? 12 : entries + entries / 2;
    if (x->n_pairs == pairs) pairs = pairs < 8 ? 12 : pairs + pairs / 2;
    if (x->n_entries * 2 >= x->entry_slots) slots += x->entry_slots ? x->entry_slots : 64;
    if (x->n_pairs * 2 >= x->pair_slots) slots += x->pair_slots ? x->pair_slots : 64;
    return bytes_of(entries, pairs, slots);
}

static bool room_make(hn_counts *x) {
    if (has_room(x)) return true;
    if (x->limit && x->n_entries > 0 && bytes_grown(x) > x->limit) {
        do oldest_drop(x); /* at least a quarter is free afterwards, so this is rare */
        while (x->n_entries > x->cap_entries / 4 * 3 || x->n_pairs > x->cap_pairs / 4 * 3);
        if (has_room(x)) return true;
    }
    if (x->n_pairs >= HN_COUNTS_NONE / 4) return false; /* indices are 32 bits */
    if (!hn_grow((void **)&x->entry, &x->cap_entries, x->n_entries + 1, sizeof *x->entry) ||
        !hn_grow((void **)&x->pair, &x->cap_pairs, x->n_pairs + 1, sizeof *x->pair))
        return false;
    if (x->n_entries * 2 >= x->entry_slots) {
        if (!slots_grow(&x->entry_slot, &x->entry_slots)) return false;
        entries_hash(x);
    }
    if (x->n_pairs * 2 >= x->pair_slots) {
        if (!slots_grow(&x->pair_slot, &x->pair_slots)) return false;
        pairs_hash(x);
    }
    return true;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static uint32_t entry_put(hn_counts *x, const int32_t *gram) {
    uint32_t *slot = entry_find(x, gram);
    if (*slot != HN_COUNTS_NONE) return *slot;
    *slot = (uint32_t)x->n_entries;
    hn_counts_entry *e = &x->entry[x->n_entries++];
    *e = (hn_counts_entry){.first = HN_COUNTS_NONE, .last = HN_COUNTS_NONE, .best = HN_COUNTS_NONE};
    memcpy(e->gram, gram, sizeof e->gram);
    return *slot;
}

static uint32_t pair_put(hn_counts *x, uint32_t entry, int32_t token) {
    uint32_t *slot = pair_find(x, entry, token);
    if (*slot != HN_COUNTS_NONE) return *slot;
    const uint32_t p = *slot = (uint32_t)x->n_pairs++;
    hn_counts_entry *e = &x->entry[entry];
    x->pair[p] = (hn_counts_pair){token, 0, HN_COUNTS_NONE, entry};
    if (e->n_pairs++ == 0)
        e->first = e->best = p;
    else
        x->pair[e->last].next = p;
    e->last = p;
    return p;
}

bool hn_counts_add(hn_counts *x, const int32_t gram[HN_COUNTS_N], int32_t token, uint32_t count) {
    if (!room_make(x)) return false;
    const uint32_t i = entry_put(x, gram), p = pair_put(x, i, token);
    hn_counts_entry *e = &x->entry[i];
    hn_counts_pair *q = &x->pair[p];
    if (count > UINT32_MAX - q->count) count = UINT32_MAX - q->count;
    q->count += count;
    e->sum += count;
    e->stamp = x->clock++;
    /* the lower index was seen first */
    const uint32_t most = x->pair[e->best].count;
    if (q->count > most || (q->count == most && p < e->best)) e->best = p;
    return true;
}

bool hn_counts_text(hn_counts *x, const int32_t *token, int from, int to) {
    int32_t gram[HN_COUNTS_N];
    for (int i = from; i < to; i++)
        for (int n = 1; n <= HN_COUNTS_N && n <= i; n++) {
            hn_counts_gram(gram, token + i - n, n);
            if (!hn_counts_add(x, gram, token[i], 1)) return false;
        }
    return true;
}

const hn_counts_entry *hn_counts_find(const hn_counts *x, const int32_t gram[HN_COUNTS_N]) {
    if (x->n_entries == 0) return NULL;
    const uint32_t i = *entry_find(x, gram);
    return i != HN_COUNTS_NONE ? &x->entry[i] : NULL;
}

const hn_counts_pair *hn_counts_pair_of(const hn_counts *x, const hn_counts_entry *e, int32_t token) {
    const uint32_t p = *pair_find(x, (uint32_t)(e - x->entry), token);
    return p != HN_COUNTS_NONE ? &x->pair[p] : NULL;
}
