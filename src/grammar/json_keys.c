/* SPDX-License-Identifier: Apache-2.0 */
/* json_keys.c - a key that is none of an object's own: a graph of the names' characters, which any other character leaves. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "grammar/json_text.h"

enum { MAX_NODES = 1 << 20, OUTSIDE = 1, FIRST = 2 /* node 0: before the quote */ };

typedef struct key_graph {
    hn_builder *b;
    const hn_word *names;
    hn_graph_edge *edges;
    size_t n_edges, cap_edges;
    int32_t n; /* nodes; node 1: no name begins so */
    hn_expr quote;
} key_graph;

static bool link(key_graph *g, int32_t from, int32_t to, hn_expr label) {
    if (g->b->failed) return false;
    if (g->n > MAX_NODES) return hn_builder_fail(g->b, HUNCH_USAGE, "an object's names have more than %d characters", MAX_NODES) >= 0;
    if (!hn_grow((void **)&g->edges, &g->cap_edges, g->n_edges + 1, sizeof *g->edges)) return hn_builder_no_memory(g->b) >= 0;
    g->edges[g->n_edges++] = (hn_graph_edge){from, to, label};
    return true;
}

static hn_expr one_of(hn_builder *b, uint32_t cp) {
    hn_range range = {cp, cp};
    return hn_json_class(b, &(hn_ranges){.at = &range, .n = 1});
}

/* Names that share a beginning of `depth` bytes, and the node that stands for it. */
typedef struct span {
    size_t from, to, depth;
    int32_t node;
} span;

typedef struct spans {
    span *at;
    size_t n, cap;
} spans;

/* The names of the span that go on, by their next characters; those are taken from *others. */
static bool branch(key_graph *g, spans *todo, span s, hn_ranges *others) {
    for (size_t i = s.from, next; i < s.to; i = next) {
        uint32_t cp = 0, other = 0;
        const hn_word *x = &g->names[i];
        next = i + 1;
        if (x->len == s.depth) continue;
        const size_t step = (size_t)hn_utf8_decode(x->bytes + s.depth, x->len - s.depth, &cp);
        while (next < s.to && hn_utf8_decode(g->names[next].bytes + s.depth, g->names[next].len - s.depth, &other) && other == cp) next++;
        const int32_t node = g->n++;
        if (!link(g, s.node, node, one_of(g->b, cp))) return false;
        if (!hn_ranges_add(others, cp, cp)) return hn_builder_no_memory(g->b) >= 0;
        if (!hn_grow((void **)&todo->at, &todo->cap, todo->n + 1, sizeof *todo->at)) return hn_builder_no_memory(g->b) >= 0;
        todo->at[todo->n++] = (span){i, next, s.depth + step, node};
    }
    return true;
}

static bool span_links(key_graph *g, spans *todo, span s, int32_t end_from) {
    hn_ranges others = {0};
    bool ok = branch(g, todo, s, &others);
    if (ok && !hn_ranges_invert(&others)) ok = hn_builder_no_memory(g->b) >= 0;
    if (ok) ok = link(g, s.node, OUTSIDE, hn_json_class(g->b, &others));
    hn_ranges_fini(&others);
    /* A name that ends here is the first of its span. */
    const bool name = s.from < s.to && g->names[s.from].len == s.depth;
    return ok && (name || link(g, s.node, end_from, g->quote));
}

hn_expr hn_json_key_beside(hn_builder *b, const hn_word *names, size_t n) {
    key_graph g = {.b = b, .names = names, .n = FIRST + 1, .quote = hn_expr_text(b, "\"")};
    spans todo = {0};
    hn_range all = {0, HN_LAST_CODE_POINT};
    const int32_t last = -1; /* the end's number is known when all nodes are */
    bool ok = link(&g, 0, FIRST, g.quote) && link(&g, OUTSIDE, OUTSIDE, hn_json_class(b, &(hn_ranges){.at = &all, .n = 1})) &&
              link(&g, OUTSIDE, last, g.quote) && span_links(&g, &todo, (span){0, n, 0, FIRST}, last);
    while (ok && todo.n) ok = span_links(&g, &todo, todo.at[--todo.n], last);
    for (size_t i = 0; ok && i < g.n_edges; i++)
        if (g.edges[i].to == last) g.edges[i].to = g.n;
    const hn_expr e = ok ? hn_expr_graph(b, g.n + 1, g.edges, g.n_edges) : -1;
    hn_free(g.edges);
    hn_free(todo.at);
    return e;
}
