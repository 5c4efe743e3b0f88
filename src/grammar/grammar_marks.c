/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_marks.c - text up to a mark, or up to the first of several: the machine of Aho and Corasick, as a graph. Marks that count at the
 * text's start alone are a tree of their own, which begins there and falls back into the machine. */
#include <string.h>

#include "base/mem.h"
#include "grammar/grammar_private.h"

enum { LONGEST_MARK = 1024, MOST_BYTES = 1 << 16 /* of all marks */ };

typedef struct node {
    int32_t child, next; /* the first of its children, the next one of its parent's; -1: none */
    int32_t fall;        /* the longest proper end of its text that begins a mark */
    int32_t mark;        /* which its text ends in; -1: in none */
    unsigned char byte;  /* that led to it */
} node;

typedef struct search {
    hn_builder *b;
    const hn_mark *marks;
    node *nodes;
    size_t n, cap;
    int32_t any, start; /* roots: of marks that count everywhere, and of those at the start (the same, if there are none) */
    hn_graph_edge *edges;
    size_t n_edges, cap_edges;
} search;

/* ---- the machine ---- */

static int32_t put_node(search *s, int32_t parent, unsigned char byte) {
    if (!hn_grow((void **)&s->nodes, &s->cap, s->n + 1, sizeof *s->nodes)) return hn_builder_no_memory(s->b);
    const int32_t at = (int32_t)s->n++;
    s->nodes[at] = (node){-1, -1, s->any, -1, byte};
    if (parent < 0) return at;
    s->nodes[at].next = s->nodes[parent].child;
    s->nodes[parent].child = at;
    return at;
}

static int32_t child_of(const search *s, int32_t at, unsigned char byte) {
    at = s->nodes[at].child;
    while (at >= 0 && s->nodes[at].byte != byte) at = s->nodes[at].next;
    return at;
}

static bool put_mark(search *s, int32_t which) {
    const hn_mark *m = &s->marks[which];
    const size_t len = strlen(m->mark);
    int32_t at = m->at_start ? s->start : s->any;
    if (len == 0 || len > LONGEST_MARK || s->n + len > MOST_BYTES) {
        hn_builder_fail(s->b, HUNCH_USAGE, "a mark of %zu bytes that ends a text, expected 1 to %d, and %d of all marks", len, LONGEST_MARK,
                        MOST_BYTES);
        return false;
    }
    for (size_t i = 0; i < len && at >= 0; i++) {
        const int32_t next = child_of(s, at, (unsigned char)m->mark[i]);
        at = next >= 0 ? next : put_node(s, at, (unsigned char)m->mark[i]);
    }
    if (at >= 0) s->nodes[at].mark = which;
    return at >= 0;
}

static int32_t step(const search *s, int32_t at, unsigned char byte) {
    if (at == s->start && at != s->any && (byte == ' ' || byte == '\n') && child_of(s, at, byte) < 0) return at;
    for (;; at = s->nodes[at].fall) {
        const int32_t next = child_of(s, at, byte);
        if (next >= 0 || at == s->any) return next >= 0 ? next : at;
    }
}

/* Where a tree's nodes fall to, those above first; queue: [n] room. */
static void falls_find(search *s, int32_t root, int32_t *queue) {
    size_t n = 0;
    queue[n++] = root;
    for (size_t i = 0; i < n; i++)
        for (int32_t c = s->nodes[queue[i]].child; c >= 0; c = s->nodes[c].next) {
            node *at = &s->nodes[c];
            at->fall = queue[i] == s->any ? s->any : step(s, s->nodes[queue[i]].fall, at->byte);
            if (at->mark < 0) at->mark = s->nodes[at->fall].mark;
            queue[n++] = c;
        }
}

static bool machine_make(search *s, size_t n) {
    bool starts = false, ok = put_node(s, -1, 0) >= 0;
    for (size_t i = 0; i < n; i++) starts = starts || s->marks[i].at_start;
    s->start = s->any = 0;
    if (ok && starts) ok = (s->any = put_node(s, -1, 0)) >= 0;
    if (ok) s->nodes[s->start].fall = s->any;
    for (size_t i = 0; i < n && ok; i++) ok = put_mark(s, (int32_t)i);
    int32_t *queue = ok ? hn_alloc(s->n * sizeof *queue) : NULL;
    if (ok && !queue) hn_builder_no_memory(s->b);
    if (!queue) return false;
    falls_find(s, s->any, queue);
    if (starts) falls_find(s, s->start, queue);
    hn_free(queue);
    return true;
}

/* ---- as a graph ---- */

static bool put_edge(search *s, size_t from, size_t to, hn_expr label) {
    if (s->b->failed) return false;
    if (!hn_grow((void **)&s->edges, &s->cap_edges, s->n_edges + 1, sizeof *s->edges)) return hn_builder_no_memory(s->b), false;
    s->edges[s->n_edges++] = (hn_graph_edge){(int32_t)from, (int32_t)to, label};
    return true;
}

/* By bytes: those that lead to the same node are one edge, and behind a whole mark is the end. */
static bool put_steps(search *s, size_t at) {
    int32_t to[256];
    bool done[256] = {false};
    for (int c = 0; c < 256; c++) to[c] = step(s, (int32_t)at, (unsigned char)c);
    for (int c = 0; c < 256; c++) {
        hn_byte_set set = {{0}};
        for (int k = c; k < 256 && !done[c]; k++)
            if (to[k] == to[c]) hn_byte_set_add(&set, (unsigned)k, (unsigned)k), done[k] = k > c;
        const int32_t mark = s->nodes[to[c]].mark;
        if (done[c] || (mark >= 0 && s->marks[mark].rest < 0)) continue; /* which may not be */
        const hn_expr label = hn_expr_set(s->b, &set), both[] = {label, mark >= 0 ? s->marks[mark].rest : -1};
        if (!put_edge(s, at, mark >= 0 ? s->n : (size_t)to[c], mark >= 0 ? hn_expr_seq(s->b, both, 2) : label)) return false;
    }
    return true;
}

/* Of marks as bytes, but the first is the control token `ends`, if it is not -1; controls: what may stand between bytes and belongs to no
 * mark, -1: nothing. */
static hn_expr search_expr(hn_builder *b, const hn_mark *marks, size_t n, hn_expr ends, hn_expr controls, bool or_end) {
    search s = {.b = b, .marks = marks + (ends >= 0)};
    const hn_expr empty = or_end ? hn_expr_empty(b) : -1;
    bool ok = !b->failed && machine_make(&s, n - (ends >= 0));
    for (size_t i = 0; i < s.n && ok; i++) {
        if (s.nodes[i].mark >= 0) continue;
        ok = put_steps(&s, i);
        if (ok && controls >= 0) ok = put_edge(&s, i, (size_t)s.any, controls);
        if (ok && ends >= 0 && marks->rest >= 0) ok = put_edge(&s, i, s.n, ends);
        if (ok && or_end) ok = put_edge(&s, i, s.n, empty);
    }
    const hn_expr e = ok ? hn_expr_graph(b, (int)s.n + 1, s.edges, s.n_edges) : -1;
    hn_free(s.nodes);
    hn_free(s.edges);
    return e;
}

static hn_expr up_to(hn_builder *b, const hn_mark *marks, size_t n, bool free, bool or_end) {
    const int32_t name = hn_builder_name(b, marks->mark);
    if (name < 0) return -1;
    const hn_expr controls = free ? hn_expr_put(b, HN_EXPR_CONTROLS, name, 0, 1) : -1;
    const hn_expr token[] = {hn_expr_put(b, HN_EXPR_TOKEN, name, 0, 1), marks->rest};
    const hn_expr ends = marks->rest >= 0 ? hn_expr_seq(b, token, 2) : token[0];
    const hn_expr either[] = {hn_expr_if(b, name, true, search_expr(b, marks, n, ends, controls, or_end)),
                              hn_expr_if(b, name, false, search_expr(b, marks, n, -1, controls, or_end))};
    return hn_expr_alt(b, either, 2);
}

hn_expr hn_expr_until(hn_builder *b, const char *mark, bool free, bool or_end) {
    return up_to(b, &(hn_mark){mark, hn_expr_empty(b), false}, 1, free, or_end);
}

hn_expr hn_expr_without(hn_builder *b, const char *mark) {
    return up_to(b, &(hn_mark){mark, -1, false}, 1, true, true);
}

hn_expr hn_expr_marked(hn_builder *b, const hn_mark *marks, size_t n) {
    return up_to(b, marks, n, true, true);
}
