/* SPDX-License-Identifier: Apache-2.0 */
/* template_arena.c - an arena for the memory of one template or one rendering: allocated piecewise, freed as a whole; strings in it, and
 * who wrote which byte of them. */
#include <string.h>

#include "base/mem.h"
#include "text/jinja/template_private.h"

enum { BLOCK = 32 << 10, UNIT = 16 };

struct ta_block {
    struct ta_block *next;
    size_t used, size; /* of the bytes after this header */
    uint8_t *mark;     /* [size]; NULL: not kept */
};

enum { HEAD = (sizeof(struct ta_block) + UNIT - 1) / UNIT * UNIT };

static char *bytes_of(struct ta_block *b) {
    return (char *)b + HEAD;
}

/* The number of blocks before this address. */
static size_t blocks_before(const ta_arena *a, const void *p) {
    size_t low = 0, high = a->n_blocks;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if ((uintptr_t)a->by_address[middle] <= (uintptr_t)p)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The block that has this byte; NULL: none. */
static struct ta_block *block_of(const ta_arena *a, const void *p) {
    const size_t n = blocks_before(a, p);
    struct ta_block *b = n ? a->by_address[n - 1] : NULL;
    return b && (uintptr_t)p < (uintptr_t)bytes_of(b) + b->size ? b : NULL;
}

static struct ta_block *block_add(ta_arena *a, size_t bytes) {
    if (!hn_grow((void **)&a->by_address, &a->cap, a->n_blocks + 1, sizeof(struct ta_block *))) return NULL;
    struct ta_block *b = hn_alloc(HEAD + bytes * (a->marks ? 2 : 1));
    if (!b) return NULL;
    *b = (struct ta_block){.next = a->blocks, .size = bytes};
    if (a->marks) b->mark = memset(bytes_of(b) + bytes, 0, bytes);
    const size_t at = blocks_before(a, b);
    memmove(a->by_address + at + 1, a->by_address + at, (a->n_blocks - at) * sizeof(struct ta_block *));
    a->by_address[at] = b;
    a->n_blocks++;
    return a->blocks = b;
}

void *ta_alloc(ta_arena *a, size_t size) {
    a->exhausted = size > HN_TPL_MAX_MEMORY || a->used > HN_TPL_MAX_MEMORY - size;
    if (a->exhausted) return NULL;
    size = (size + UNIT - 1) / UNIT * UNIT;
    struct ta_block *b = a->blocks;
    if (!b || b->size - b->used < size) {
        b = block_add(a, size > BLOCK ? size : BLOCK);
        if (!b) return NULL;
    }
    void *p = bytes_of(b) + b->used;
    b->used += size;
    a->used += size;
    return p;
}

void ta_fini(ta_arena *a) {
    for (struct ta_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        hn_free(b);
    }
    a->blocks = NULL;
    hn_free(a->by_address);
    a->by_address = NULL;
    a->n_blocks = a->cap = 0;
}

static bool lies_in(const char *p, const char *s, size_t n) {
    return (uintptr_t)p >= (uintptr_t)s && (uintptr_t)p < (uintptr_t)s + n;
}

/* Marks the n bytes that are copied from s. */
static void mark_copy(const ta_arena *a, const char *s, size_t n, uint8_t *mark) {
    const ta_marks *m = a->marks;
    const struct ta_block *b = block_of(a, s);
    bool own = lies_in(s, m->of->text, m->of->len) || block_of(&m->of->arena, s);
    for (size_t i = 0; i < m->n_own; i++) own |= lies_in(s, m->own[i].s, m->own[i].n);
    if (b)
        memcpy(mark, b->mark + (s - ((const char *)b + HEAD)), n);
    else
        memset(mark, own, n);
}

void tbuf_put(tbuf *b, const char *s, size_t n) {
    if (b->failed || n == 0) return;
    if (n > HN_TPL_MAX_OUTPUT - b->n) {
        b->failed = b->too_long = true;
        return;
    }
    if (b->cap - b->n < n) {
        size_t cap = b->cap ? 2 * b->cap : 64;
        if (cap < b->n + n) cap = b->n + n;
        char *p = ta_alloc(b->arena, cap);
        if (!p) {
            b->failed = true;
            return;
        }
        if (b->n) memcpy(p, b->s, b->n);
        if (b->arena->marks) {
            struct ta_block *newest = block_of(b->arena, p);
            uint8_t *mark = newest->mark + (p - bytes_of(newest));
            if (b->n) memcpy(mark, b->mark, b->n);
            b->mark = mark;
        }
        b->s = p;
        b->cap = cap;
    }
    if (b->mark) mark_copy(b->arena, s, n, b->mark + b->n);
    memcpy(b->s + b->n, s, n);
    b->n += n;
}

void tbuf_puts(tbuf *b, const char *s) {
    tbuf_put(b, s, strlen(s));
}

void tbuf_fill(tbuf *b, tstr unit, int64_t times) {
    if (times <= 0 || unit.n == 0) return;
    const size_t from = b->n;
    b->too_long |= (uint64_t)times > HN_TPL_MAX_OUTPUT / unit.n;
    b->failed |= b->too_long;
    tbuf_put(b, unit.s, unit.n);
    for (size_t left = b->failed ? 0 : unit.n * ((size_t)times - 1), have; left && !b->failed;
         left -= have) { /* what is there, again */
        have = b->n - from < left ? b->n - from : left;
        tbuf_put(b, b->s + from, have);
    }
}
