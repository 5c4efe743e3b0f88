/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_build.c - expressions: makes them from their parts and keeps the first failure. Classes of characters: grammar_class.c; what
 * they become: grammar_compile.c; text up to a mark: grammar_marks.c. */
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
    hn_free(b->ignored);
    hn_regex_properties_free(b);
    hn_free(b);
    *out = NULL;
}

void hn_builder_loosen(hn_builder *b, bool loose) {
    b->loose = loose;
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

/* Whether it is one of those that were noted, from its beginning on: many end as another does. */
static bool noted(const hn_builder *b, const char *note) {
    const char *at = b->ignored;
    while (at && (at = strstr(at, note)) && at != b->ignored && memcmp(at - 2, ", ", 2) != 0) at++;
    return at != NULL;
}

bool hn_builder_note(hn_builder *b, const char *where, const char *pointer) {
    enum { MOST = 1000 };
    size_t n = strlen(where) + strlen(pointer) + 2;
    if (b->failed) return false;
    if (b->ignored_full) return true;
    char *note = hn_alloc(n);
    if (!note) return hn_builder_no_memory(b) >= 0;
    snprintf(note, n, "%s%s,", where, pointer);
    const bool known = noted(b, note);
    b->ignored_full = !known && b->n_ignored + n > MOST;
    const char *put = b->ignored_full ? "...," : note;
    n = strlen(put) + 1;
    const bool ok = known || hn_grow((void **)&b->ignored, &b->cap_ignored, b->n_ignored + n + 2, 1);
    if (ok && !known) {
        if (b->n_ignored) b->ignored[b->n_ignored++] = ' ';
        memcpy(b->ignored + b->n_ignored, put, n);
        b->n_ignored += n - 1;
    }
    hn_free(note);
    return ok || hn_builder_no_memory(b) >= 0;
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

hn_expr hn_expr_if(hn_builder *b, int32_t name, bool control, hn_expr e) {
    const hn_expr both[] = {hn_expr_put(b, HN_EXPR_IF, name, control, 1), e};
    return hn_expr_seq(b, both, 2);
}

hn_expr hn_expr_special(hn_builder *b, const char *name) {
    const int32_t n = hn_builder_name(b, name);
    if (n < 0) return -1;
    const hn_expr either[] = {hn_expr_put(b, HN_EXPR_TOKEN, n, 0, 1), hn_expr_if(b, n, false, hn_expr_text(b, name))};
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

hn_expr hn_expr_unique(hn_builder *b) {
    b->looks_further = true;
    return hn_expr_put(b, HN_EXPR_UNIQUE, 0, 0, 1);
}
