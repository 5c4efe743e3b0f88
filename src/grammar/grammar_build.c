/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_build.c - expressions: makes them from their parts and keeps the first failure. Classes of characters: grammar_class.c; what
 * they become: grammar_compile.c. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "grammar/grammar_private.h"
#include "grammar/regex.h"

hn_builder *hn_builder_open(hunch_error *err) {
    hn_builder *b = hn_zalloc(1, sizeof *b);
    if (!b) hn_fail_memory(err, "a grammar", sizeof *b);
    if (b) b->json_value = b->json_string = -1;
    return b;
}

void hn_builder_close(hn_builder **out) {
    hn_builder *b = *out;
    if (!b) return;
    for (size_t i = 0; i < b->n_rules; i++) hn_free(b->rules[i].name);
    for (size_t i = 0; i < b->n_names; i++) hn_free(b->names[i]);
    hn_free(b->exprs);
    hn_free(b->parts);
    hn_free(b->bytes);
    hn_free(b->sets);
    hn_free(b->set_index);
    hn_free(b->rules);
    hn_free(b->names);
    hn_free(b->edges);
    hn_regex_properties_free(b);
    hn_free(b);
    *out = NULL;
}

hn_expr hn_builder_fail(hn_builder *b, hunch_status status, const char *fmt, ...) {
    if (b->failed) return -1;
    char line[sizeof b->why.message];
    va_list list;
    va_start(list, fmt);
    vsnprintf(line, sizeof line, fmt, list);
    va_end(list);
    b->failed = hn_fail(&b->why, status, "%s", line);
    return -1;
}

hn_expr hn_builder_no_memory(hn_builder *b) {
    return hn_builder_fail(b, HUNCH_NO_MEMORY, "no memory for a grammar");
}

/* ---- nodes ---- */

static int32_t bounded(int64_t weight) {
    return weight > HN_GRAMMAR_MAX_CODE ? HN_GRAMMAR_MAX_CODE : (int32_t)weight;
}

/* The parent is as deep and as heavy as its parts make it. */
static bool take_part(hn_builder *b, hn_expr_node *parent, hn_expr part) {
    if (b->failed) return false;
    if (part < 0 || (size_t)part >= b->n_exprs) {
        hn_builder_fail(b, HUNCH_USAGE, "a part of a grammar is no expression");
        return false;
    }
    hn_expr_node *p = &b->exprs[part];
    if (p->depth >= HN_GRAMMAR_MAX_DEPTH) {
        hn_builder_fail(b, HUNCH_USAGE, "a grammar's expression is nested deeper than %d", HN_GRAMMAR_MAX_DEPTH);
        return false;
    }
    if (p->depth >= parent->depth) parent->depth = (uint8_t)(p->depth + 1);
    parent->weight = bounded((int64_t)parent->weight + p->weight);
    p->shared = p->used;
    p->used = true;
    return true;
}

static hn_expr put_node(hn_builder *b, hn_expr_node node) {
    if (b->failed) return -1;
    if (b->n_exprs >= HN_GRAMMAR_MAX_EXPRS)
        return hn_builder_fail(b, HUNCH_USAGE, "a grammar of more than %d parts", HN_GRAMMAR_MAX_EXPRS);
    if (!hn_grow((void **)&b->exprs, &b->cap_exprs, b->n_exprs + 1, sizeof *b->exprs)) return hn_builder_no_memory(b);
    b->exprs[b->n_exprs] = node;
    return (hn_expr)b->n_exprs++;
}

hn_expr hn_expr_put(hn_builder *b, hn_expr_kind kind, int32_t x, int32_t y, int32_t weight) {
    return put_node(b, (hn_expr_node){.kind = (uint8_t)kind, .a = x, .b = y, .weight = weight});
}

hn_expr hn_expr_nothing(hn_builder *b) {
    return hn_expr_put(b, HN_EXPR_NOTHING, 0, 0, 1);
}

hn_expr hn_expr_empty(hn_builder *b) {
    return hn_expr_put(b, HN_EXPR_EMPTY, 0, 0, 0);
}

hn_expr hn_expr_bytes(hn_builder *b, const char *bytes, size_t len) {
    if (b->failed) return -1;
    if (!len) return hn_expr_empty(b);
    if (len > HN_GRAMMAR_MAX_SOURCE || b->n_bytes + len > HN_GRAMMAR_MAX_SOURCE)
        return hn_builder_fail(b, HUNCH_USAGE, "a grammar with more than %d bytes of text", HN_GRAMMAR_MAX_SOURCE);
    if (!hn_grow((void **)&b->bytes, &b->cap_bytes, b->n_bytes + len, 1)) return hn_builder_no_memory(b);
    memcpy(b->bytes + b->n_bytes, bytes, len);
    b->n_bytes += len;
    return hn_expr_put(b, HN_EXPR_BYTES, (int32_t)(b->n_bytes - len), (int32_t)len, bounded((int64_t)len));
}

hn_expr hn_expr_text(hn_builder *b, const char *text) {
    return hn_expr_bytes(b, text, strlen(text));
}

static hn_expr list_of(hn_builder *b, hn_expr_kind kind, const hn_expr *part, size_t n) {
    hn_expr_node node = {.kind = (uint8_t)kind, .a = (int32_t)b->n_parts, .b = (int32_t)n, .weight = kind == HN_EXPR_ALT};
    if (n > HN_GRAMMAR_MAX_EXPRS || b->n_parts + n > HN_GRAMMAR_MAX_EXPRS)
        return hn_builder_fail(b, HUNCH_USAGE, "a grammar of more than %d parts", HN_GRAMMAR_MAX_EXPRS);
    for (size_t i = 0; i < n; i++)
        if (!take_part(b, &node, part[i])) return -1;
    if (!hn_grow((void **)&b->parts, &b->cap_parts, b->n_parts + n, sizeof *b->parts)) return hn_builder_no_memory(b);
    memcpy(b->parts + b->n_parts, part, n * sizeof *part);
    b->n_parts += n;
    return put_node(b, node);
}

hn_expr hn_expr_seq(hn_builder *b, const hn_expr *part, size_t n) {
    if (b->failed) return -1;
    return n == 0 ? hn_expr_empty(b) : n == 1 ? part[0] : list_of(b, HN_EXPR_SEQ, part, n);
}

hn_expr hn_expr_alt(hn_builder *b, const hn_expr *part, size_t n) {
    if (b->failed) return -1;
    return n == 0 ? hn_expr_nothing(b) : n == 1 ? part[0] : list_of(b, HN_EXPR_ALT, part, n);
}

hn_expr hn_expr_repeat(hn_builder *b, hn_expr e, int min, int max) {
    if (b->failed) return -1;
    if (min < 0 || min > HN_GRAMMAR_MAX_REPEAT || max < -1 || max > HN_GRAMMAR_MAX_REPEAT || (max >= 0 && max < min))
        return hn_builder_fail(b, HUNCH_USAGE, "a repeat of %d to %d times, expected 0 to %d, in order", min, max, HN_GRAMMAR_MAX_REPEAT);
    if (max == 0) return hn_expr_empty(b);
    if (min == 1 && max == 1) return e;
    hn_expr_node node = {.kind = HN_EXPR_REPEAT, .a = e, .b = min, .c = max, .weight = 1};
    if (!take_part(b, &node, e)) return -1;
    const int32_t unrolled = hn_repeat_weight(min, max, b->exprs[e].weight);
    node.weight = bounded(unrolled >= 0 ? unrolled : (int64_t)b->exprs[e].weight + 2);
    return put_node(b, node);
}

/* ---- rules ---- */

hn_expr hn_expr_rule(hn_builder *b, const char *name) {
    if (b->failed) return -1;
    char *copy = hn_strdup(name);
    if (!copy || !hn_grow((void **)&b->rules, &b->cap_rules, b->n_rules + 1, sizeof *b->rules)) {
        hn_free(copy);
        return hn_builder_no_memory(b);
    }
    b->rules[b->n_rules++] = (hn_rule_def){copy, -1};
    return hn_expr_put(b, HN_EXPR_RULE, (int32_t)b->n_rules - 1, 0, 1);
}

void hn_expr_rule_set(hn_builder *b, hn_expr rule, hn_expr body) {
    if (b->failed) return;
    hn_expr_node outer = {0};
    if (rule < 0 || (size_t)rule >= b->n_exprs || b->exprs[rule].kind != HN_EXPR_RULE) {
        hn_builder_fail(b, HUNCH_USAGE, "what is to be set is no rule of the grammar");
        return;
    }
    hn_rule_def *r = &b->rules[b->exprs[rule].a];
    if (r->body >= 0)
        hn_builder_fail(b, HUNCH_USAGE, "rule %s is set twice", r->name);
    else if (take_part(b, &outer, body))
        r->body = body;
}

/* ---- control tokens ---- */

int32_t hn_builder_name(hn_builder *b, const char *name) {
    if (b->failed) return -1;
    for (size_t i = 0; i < b->n_names; i++)
        if (strcmp(b->names[i], name) == 0) return (int32_t)i;
    char *copy = hn_strdup(name);
    if (!copy || !hn_grow((void **)&b->names, &b->cap_names, b->n_names + 1, sizeof *b->names)) {
        hn_free(copy);
        return hn_builder_no_memory(b);
    }
    b->names[b->n_names++] = copy;
    return (int32_t)b->n_names - 1;
}

static hn_expr only_if(hn_builder *b, int32_t name, bool control, hn_expr e) {
    const hn_expr both[] = {hn_expr_put(b, HN_EXPR_IF, name, control, 1), e};
    return hn_expr_seq(b, both, 2);
}

hn_expr hn_expr_special(hn_builder *b, const char *name) {
    const int32_t n = hn_builder_name(b, name);
    if (n < 0) return -1;
    const hn_expr either[] = {hn_expr_put(b, HN_EXPR_TOKEN, n, 0, 1), only_if(b, n, false, hn_expr_text(b, name))};
    return hn_expr_alt(b, either, 2);
}

/* ---- graphs ---- */

hn_expr hn_expr_graph(hn_builder *b, int n_nodes, const hn_graph_edge *edges, size_t n) {
    hn_expr_node node = {.kind = HN_EXPR_GRAPH, .a = (int32_t)b->n_edges, .b = (int32_t)n, .c = n_nodes, .weight = bounded(n_nodes)};
    if (b->failed) return -1;
    if (n_nodes < 1 || b->n_edges + n > HN_GRAMMAR_MAX_EXPRS)
        return hn_builder_fail(b, HUNCH_USAGE, "a grammar of more than %d parts", HN_GRAMMAR_MAX_EXPRS);
    for (size_t i = 0; i < n; i++)
        if (!take_part(b, &node, edges[i].label)) return -1;
    if (!hn_grow((void **)&b->edges, &b->cap_edges, b->n_edges + n + 1, sizeof *b->edges)) return hn_builder_no_memory(b);
    if (n) memcpy(b->edges + b->n_edges, edges, n * sizeof *edges);
    b->n_edges += n;
    return put_node(b, node);
}

hn_expr hn_expr_json(hn_builder *b, hn_expr body) {
    hn_expr_node node = {.kind = HN_EXPR_JSON, .a = body};
    return take_part(b, &node, body) ? put_node(b, node) : -1;
}

/* ---- text up to a mark ---- */

enum { MAX_MARK = 1024 };

/* border[i]: the longest beginning of the mark that its first i bytes end in, themselves not counted (Knuth, Morris, Pratt). */
static void borders_find(const char *mark, size_t n, uint16_t *border) {
    border[0] = border[1] = 0;
    for (size_t i = 2; i <= n; i++) {
        size_t k = border[i - 1];
        while (k > 0 && mark[k] != mark[i - 1]) k = border[k];
        border[i] = (uint16_t)(mark[k] == mark[i - 1] ? k + 1 : 0);
    }
}

/* The bytes that lead from having seen the mark's first i bytes to having seen its first j, of each j. */
static void steps_find(const char *mark, const uint16_t *border, size_t i, hn_byte_set *to) {
    for (unsigned c = 0; c < 256; c++) {
        size_t k = i;
        while (k > 0 && (unsigned char)mark[k] != c) k = border[k];
        if ((unsigned char)mark[k] == c) k++;
        hn_byte_set_add(&to[k], c, c);
    }
}

typedef struct mark_search {
    uint16_t border[MAX_MARK + 1];
    hn_byte_set to[MAX_MARK + 1];
    hn_graph_edge *edges;
    size_t n, cap;
} mark_search;

static bool put_edge(hn_builder *b, mark_search *m, size_t from, size_t to, hn_expr label) {
    if (b->failed) return false;
    if (!hn_grow((void **)&m->edges, &m->cap, m->n + 1, sizeof *m->edges)) return hn_builder_no_memory(b), false;
    m->edges[m->n++] = (hn_graph_edge){(int32_t)from, (int32_t)to, label};
    return true;
}

/* or_end: the text may end at any place; without: and the mark is nowhere in it. */
static bool put_steps(hn_builder *b, mark_search *m, const char *mark, size_t len, bool or_end, bool without) {
    borders_find(mark, len, m->border);
    for (size_t i = 0; i < len; i++) {
        memset(m->to, 0, sizeof m->to);
        steps_find(mark, m->border, i, m->to);
        for (size_t j = 0; j <= len - without; j++) {
            const uint64_t *bits = m->to[j].bits;
            if ((bits[0] | bits[1] | bits[2] | bits[3]) && !put_edge(b, m, i, j, hn_expr_set(b, &m->to[j]))) return false;
        }
        if (or_end && !put_edge(b, m, i, len, hn_expr_empty(b))) return false;
    }
    return true;
}

/* Any bytes up to the mark as bytes; controls: an expression that may stand between bytes and does not belong to the mark, -1: none. */
static hn_expr until_bytes(hn_builder *b, const char *mark, hn_expr controls, bool or_end, bool without) {
    const size_t len = strlen(mark);
    if (len == 0 || len > MAX_MARK)
        return hn_builder_fail(b, HUNCH_USAGE, "a mark of %zu bytes that ends a text, expected 1 to %d", len, MAX_MARK);
    mark_search *m = hn_zalloc(1, sizeof *m);
    if (!m) return hn_builder_no_memory(b);
    bool ok = put_steps(b, m, mark, len, or_end, without);
    for (size_t i = 0; ok && controls >= 0 && i < len; i++) ok = put_edge(b, m, i, 0, controls);
    const hn_expr e = ok ? hn_expr_graph(b, (int)len + 1, m->edges, m->n) : -1;
    hn_free(m->edges);
    hn_free(m);
    return e;
}

/* Any bytes, and control tokens of `controls`, up to the control token. */
static hn_expr until_token(hn_builder *b, int32_t name, hn_expr controls, bool or_end) {
    hn_byte_set all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    hn_expr any[2] = {hn_expr_set(b, &all), controls};
    hn_expr ends[2] = {hn_expr_put(b, HN_EXPR_TOKEN, name, 0, 1), hn_expr_empty(b)};
    hn_expr whole[] = {hn_expr_repeat(b, hn_expr_alt(b, any, controls >= 0 ? 2 : 1), 0, -1), hn_expr_alt(b, ends, or_end ? 2 : 1)};
    return hn_expr_seq(b, whole, 2);
}

hn_expr hn_expr_until(hn_builder *b, const char *mark, bool free, bool or_end) {
    const int32_t name = hn_builder_name(b, mark);
    if (name < 0) return -1;
    const hn_expr controls = free ? hn_expr_put(b, HN_EXPR_CONTROLS, name, 0, 1) : -1;
    const hn_expr either[] = {only_if(b, name, true, until_token(b, name, controls, or_end)),
                              only_if(b, name, false, until_bytes(b, mark, controls, or_end, false))};
    return hn_expr_alt(b, either, 2);
}

hn_expr hn_expr_without(hn_builder *b, const char *mark) {
    const int32_t name = hn_builder_name(b, mark);
    if (name < 0) return -1;
    const hn_byte_set all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    const hn_expr controls = hn_expr_put(b, HN_EXPR_CONTROLS, name, 0, 1), any[] = {hn_expr_set(b, &all), controls};
    const hn_expr either[] = {only_if(b, name, true, hn_expr_repeat(b, hn_expr_alt(b, any, 2), 0, -1)),
                              only_if(b, name, false, until_bytes(b, mark, controls, true, true))};
    return hn_expr_alt(b, either, 2);
}
