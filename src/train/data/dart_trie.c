/* SPDX-License-Identifier: Apache-2.0 */
/* dart_trie.c - see dart_trie.h. Nodes are read once, in order; lists of children are redundant, and are skipped. */
#include "train/data/dart_trie.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "draft/shape/ngram_trie.h"

enum { HEAD_BYTES = 16, NODE_BYTES = 24, CHILD_BYTES = 12, PIECE = 1 << 16 };

typedef struct reader {
    const char *path;
    hn_map map;
    size_t at, first, end; /* offset of buffer[end] in the file; unread part of the buffer */
    unsigned char buffer[PIECE];
    hunch_error *err;
} reader;

/* A node that may have children: its tokens plus 1, and how often none of them followed. */
typedef struct node {
    int32_t token[HN_TRIE_CONTEXT]; /* 0: none; first is -1: a third token, which has no children */
    int64_t left;
} node;

static hunch_status cut_short(const reader *r) {
    return hn_fail(r->err, HUNCH_REFUSED, "%s: a truncated trie of DART", r->path);
}

/* The next n bytes, at most a piece. */
static hunch_status next(reader *r, size_t n, const unsigned char **out) {
    if (r->end - r->first < n) {
        const size_t kept = r->end - r->first, left = r->map.size - r->at;
        const size_t more = left < PIECE - kept ? left : PIECE - kept;
        if (kept + more < n) return cut_short(r);
        memmove(r->buffer, r->buffer + r->first, kept);
        const hunch_status st = hn_map_read(&r->map, r->path, r->at, more, r->buffer + kept, r->err);
        if (st) return st;
        r->at += more;
        r->first = 0;
        r->end = kept + more;
    }
    *out = r->buffer + r->first;
    r->first += n;
    return HUNCH_OK;
}

static hunch_status skip(reader *r, uint64_t bytes) {
    const size_t here = r->end - r->first;
    if (bytes > here + (r->map.size - r->at)) return cut_short(r);
    if (bytes <= here) {
        r->first += bytes;
        return HUNCH_OK;
    }
    r->at += bytes - here;
    r->first = r->end = 0;
    return HUNCH_OK;
}

static uint64_t u64_at(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static int32_t i32_at(const unsigned char *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

bool hn_dart_trie_is(const char *path) {
    unsigned char head[HEAD_BYTES];
    hn_map map;
    if (hn_map_open(&map, path, NULL)) return false;
    const bool read = map.size >= HEAD_BYTES + NODE_BYTES && !hn_map_read(&map, path, 0, sizeof head, head, NULL);
    hn_map_close(&map);
    return read && u64_at(head) >= 1 && u64_at(head) <= 64;
}

static hunch_status read_head(reader *r, uint64_t *nodes) {
    const unsigned char *p = r->buffer;
    hunch_status st = next(r, HEAD_BYTES, &p);
    if (st) return st;
    *nodes = u64_at(p + 8);
    if (u64_at(p) != HN_TRIE_ORDER)
        return hn_fail(r->err, HUNCH_REFUSED, "%s: a trie of DART of order %" PRIu64 ", expected %d", r->path, u64_at(p),
                       HN_TRIE_ORDER);
    return *nodes >= 1 && *nodes <= (r->map.size - HEAD_BYTES) / NODE_BYTES
               ? HUNCH_OK
               : hn_fail(r->err, HUNCH_REFUSED, "%s: a trie of DART of %" PRIu64 " nodes, which %zu bytes do not hold",
                         r->path, *nodes, r->map.size);
}

static int depth_of(const node *n) {
    return n->token[1] > 0 ? 2 : n->token[0] > 0 ? 1 : 0;
}

/* Node i: adds the count of a third token; those of others are added after their children's. */
static hunch_status take_node(reader *r, hn_trie_build *b, node *all, uint64_t i, int vocab) {
    const unsigned char *p = r->buffer;
    hunch_status st = next(r, NODE_BYTES, &p);
    if (st) return st;
    const int32_t token = i32_at(p), count = i32_at(p + 12);
    const uint64_t parent = u64_at(p + 4), children = u64_at(p + 16);
    if (children > r->map.size / CHILD_BYTES) return cut_short(r);
    st = skip(r, children * CHILD_BYTES);
    if (st || i == 0) return st; /* the root */
    if (parent >= i)
        return hn_fail(r->err, HUNCH_REFUSED, "%s: node %" PRIu64 " has parent %" PRIu64 ", expected one before it",
                       r->path, i, parent);
    if (token < 0 || token >= vocab || count < 0)
        return hn_fail(r->err, HUNCH_REFUSED,
                       "%s: node %" PRIu64 " is token %d, %d times: expected tokens of the model's, 0 to %d", r->path, i,
                       token, count, vocab - 1);
    node *of = &all[parent];
    const int depth = depth_of(of);
    if (of->token[0] < 0)
        return hn_fail(r->err, HUNCH_REFUSED, "%s: node %" PRIu64 " is deeper than %d tokens", r->path, i,
                       HN_TRIE_ORDER);
    if (depth > 0) of->left -= count;
    if (depth == HN_TRIE_CONTEXT) {
        const int32_t ids[] = {of->token[0] - 1, of->token[1] - 1, token};
        all[i].token[0] = -1;
        return hn_trie_build_count(b, ids, 3, (uint64_t)count, r->err);
    }
    memcpy(all[i].token, of->token, sizeof of->token);
    all[i].token[depth] = token + 1;
    all[i].left = count;
    return HUNCH_OK;
}

/* Adds the n-grams at the ends of texts. */
static hunch_status take_ends(const reader *r, hn_trie_build *b, const node *all, uint64_t n) {
    hunch_status st = HUNCH_OK;
    for (uint64_t i = 1; !st && i < n; i++) {
        const int depth = depth_of(&all[i]);
        const int32_t ids[] = {all[i].token[0] - 1, all[i].token[1] - 1};
        if (depth > 0 && all[i].left < 0)
            return hn_fail(r->err, HUNCH_REFUSED, "%s: node %" PRIu64 " has a smaller count than its children",
                           r->path, i);
        if (depth > 0 && all[i].left > 0) st = hn_trie_build_count(b, ids, depth, (uint64_t)all[i].left, r->err);
    }
    return st;
}

static hunch_status read_nodes(reader *r, hn_trie_build *b, int vocab, const volatile int *stop) {
    uint64_t n = 0;
    hunch_status st = read_head(r, &n);
    if (st) return st;
    node *all = hn_zalloc(n, sizeof *all);
    if (!all) return hn_fail_memory(r->err, "the nodes of a trie", n * sizeof *all);
    for (uint64_t i = 0; !st && i < n; i++) {
        if (i % PIECE == 0 && *stop)
            st = hn_fail(r->err, HUNCH_CANCELLED, "ended before the trie was written");
        else
            st = take_node(r, b, all, i, vocab);
    }
    if (!st) st = take_ends(r, b, all, n);
    hn_free(all);
    return st;
}

hunch_status hn_dart_trie_add(hn_trie_build *b, const char *path, int vocab, const volatile int *stop,
                              hunch_error *err) {
    reader *r = hn_zalloc(1, sizeof *r);
    if (!r) return hn_fail_memory(err, "a trie", sizeof *r);
    r->path = path;
    r->err = err;
    hunch_status st = hn_map_open(&r->map, path, err);
    if (!st) {
        st = read_nodes(r, b, vocab, stop);
        hn_map_close(&r->map);
    }
    hn_free(r);
    return st;
}
