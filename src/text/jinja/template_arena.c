/* SPDX-License-Identifier: Apache-2.0 */
/* template_arena.c - an arena for the memory of one template or one rendering: allocated piecewise, freed as a whole. */
#include <string.h>

#include "base/mem.h"
#include "text/jinja/template_private.h"

enum { BLOCK = 32 << 10, UNIT = 16 };

struct ta_block {
    struct ta_block *next;
    size_t used, size; /* of the bytes after this header */
};

enum { HEAD = (sizeof(struct ta_block) + UNIT - 1) / UNIT * UNIT };

void *ta_alloc(ta_arena *a, size_t size) {
    a->exhausted = size > HN_TPL_MAX_MEMORY || a->used > HN_TPL_MAX_MEMORY - size;
    if (a->exhausted) return NULL;
    size = (size + UNIT - 1) / UNIT * UNIT;
    struct ta_block *b = a->blocks;
    if (!b || b->size - b->used < size) {
        size_t bytes = size > BLOCK ? size : BLOCK;
        b = hn_alloc(HEAD + bytes);
        if (!b) return NULL;
        *b = (struct ta_block){.next = a->blocks, .size = bytes};
        a->blocks = b;
    }
    void *p = (char *)b + HEAD + b->used;
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
        b->s = p;
        b->cap = cap;
    }
    memcpy(b->s + b->n, s, n);
    b->n += n;
}

void tbuf_puts(tbuf *b, const char *s) {
    tbuf_put(b, s, strlen(s));
}
