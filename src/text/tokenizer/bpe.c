/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.c - the table of merges and the merging itself.
 *
 * Short words, which nearly all are, search their few ranks again after each merge, the fastest way for them. Long ones
 * keep the possible merges in a heap and the symbols in a linked list, so a megabyte without a space costs n log n. Both
 * give the same result: the lowest rank first, of equal ranks the leftmost.
 */
#include "text/tokenizer/bpe.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { SHORT_WORD = 40 };
static const uint64_t NO_PAIR = UINT64_MAX; /* ids are not negative, so no pair has this value */

bool hn_bpe_init(hn_bpe *b, size_t count) {
    size_t slots = 16, bytes;
    while (slots < count + count / 2) slots *= 2;
    if (!hn_mul_size(slots, sizeof *b->slots, &bytes)) return false;
    b->slots = hn_alloc(bytes);
    if (!b->slots) return false;
    for (size_t i = 0; i < slots; i++) b->slots[i].pair = NO_PAIR;
    b->mask = slots - 1;
    b->seed = (uint64_t)(uintptr_t)b->slots >> 6; /* differs from run to run, so that no file can choose its collisions */
    return true;
}

void hn_bpe_fini(hn_bpe *b) {
    hn_free(b->slots);
    b->slots = NULL;
}

static hn_merge *slot_of(const hn_bpe *b, uint64_t pair) {
    size_t i = (size_t)hn_hash_word(b->seed, pair) & b->mask;
    while (b->slots[i].pair != pair && b->slots[i].pair != NO_PAIR) i = (i + 1) & b->mask;
    return &b->slots[i];
}

static uint64_t pair_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

void hn_bpe_put(hn_bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t id) {
    hn_merge *m = slot_of(b, pair_of(left, right));
    if (m->pair != NO_PAIR && m->rank <= rank) return;
    *m = (hn_merge){.pair = pair_of(left, right), .rank = rank, .id = id};
}

const hn_merge *hn_bpe_next(const hn_bpe *b, size_t *at) {
    while (b->slots && *at <= b->mask) {
        const hn_merge *m = &b->slots[(*at)++];
        if (m->pair != NO_PAIR) return m;
    }
    return NULL;
}

static const hn_merge *find(const hn_bpe *b, int32_t left, int32_t right) {
    if (left < 0 || right < 0) return NULL;
    const hn_merge *m = slot_of(b, pair_of(left, right));
    return m->pair == NO_PAIR ? NULL : m;
}

void hn_bpe_work_fini(hn_bpe_work *w) {
    hn_free(w->ids);
    hn_free(w->starts);
    hn_free(w->before);
    hn_free(w->after);
    hn_free(w->heap);
    memset(w, 0, sizeof *w);
}

bool hn_bpe_work_reserve(hn_bpe_work *w, size_t n) {
    return hn_grow((void **)&w->ids, &w->cap_ids, n, sizeof *w->ids) &&
           hn_grow((void **)&w->starts, &w->cap_starts, n, sizeof *w->starts);
}

static size_t merge_short(const hn_bpe *b, hn_bpe_work *w, size_t n) {
    const hn_merge *with_next[SHORT_WORD]; /* [i]: merge of symbols i and i+1, or NULL */
    for (size_t i = 0; i + 1 < n; i++) with_next[i] = find(b, w->ids[i], w->ids[i + 1]);
    for (;;) {
        size_t best = n;
        uint32_t rank = UINT32_MAX;
        for (size_t i = 0; i + 1 < n; i++) {
            if (with_next[i] && (best == n || with_next[i]->rank < rank)) {
                best = i;
                rank = with_next[i]->rank;
            }
        }
        if (best == n) return n;
        w->ids[best] = with_next[best]->id;
        size_t tail = n - best - 2; /* symbols after the merged pair */
        memmove(&w->ids[best + 1], &w->ids[best + 2], tail * sizeof *w->ids);
        memmove(&w->starts[best + 1], &w->starts[best + 2], tail * sizeof *w->starts);
        if (tail) memmove(&with_next[best + 1], &with_next[best + 2], (tail - 1) * sizeof *with_next);
        n--;
        if (best > 0) with_next[best - 1] = find(b, w->ids[best - 1], w->ids[best]);
        if (best + 1 < n) with_next[best] = find(b, w->ids[best], w->ids[best + 1]);
    }
}

static bool push(const hn_bpe *b, hn_bpe_work *w, size_t left, size_t right) {
    const hn_merge *m = find(b, w->ids[left], w->ids[right]);
    if (!m) return true;
    if (!hn_grow((void **)&w->heap, &w->cap_heap, w->n_heap + 1, sizeof *w->heap)) return false;
    hn_bpe_item item = {(uint64_t)m->rank << 32 | (uint32_t)left, w->ids[left], w->ids[right], m->id};
    size_t i = w->n_heap++;
    for (; i > 0 && w->heap[(i - 1) / 2].key > item.key; i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = item;
    return true;
}

static hn_bpe_item pop(hn_bpe_work *w) {
    hn_bpe_item top = w->heap[0], last = w->heap[--w->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < w->n_heap; i = child) {
        if (child + 1 < w->n_heap && w->heap[child + 1].key < w->heap[child].key) child++;
        if (w->heap[child].key >= last.key) break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

/* An item is stale if a symbol of its pair has merged since it was pushed. A removed symbol has the id DEAD. */
enum { DEAD = -2 };

static bool merge_long(const hn_bpe *b, hn_bpe_work *w, size_t n) {
    int32_t end = (int32_t)n;
    w->n_heap = 0;
    for (int32_t i = 0; i < end; i++) {
        w->before[i] = i - 1;
        w->after[i] = i + 1;
        if (i > 0 && !push(b, w, (size_t)i - 1, (size_t)i)) return false;
    }
    while (w->n_heap) {
        hn_bpe_item item = pop(w);
        int32_t left = (int32_t)(uint32_t)item.key;
        if (w->ids[left] != item.left) continue;
        int32_t right = w->after[left];
        if (right >= end || w->ids[right] != item.right) continue;
        w->ids[left] = item.id;
        w->ids[right] = DEAD;
        int32_t next = w->after[left] = w->after[right];
        if (next < end) w->before[next] = left;
        if (w->before[left] >= 0 && !push(b, w, (size_t)w->before[left], (size_t)left)) return false;
        if (next < end && !push(b, w, (size_t)left, (size_t)next)) return false;
    }
    return true;
}

bool hn_bpe_merge(const hn_bpe *b, hn_bpe_work *w, size_t *n) {
    if (*n <= SHORT_WORD) {
        *n = merge_short(b, w, *n);
        return true;
    }
    if (!hn_grow((void **)&w->before, &w->cap_before, *n, sizeof *w->before) ||
        !hn_grow((void **)&w->after, &w->cap_after, *n, sizeof *w->after) || !merge_long(b, w, *n)) {
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < *n; i = (size_t)w->after[i]) {
        w->ids[kept] = w->ids[i];
        w->starts[kept++] = w->starts[i];
    }
    *n = kept;
    return true;
}
