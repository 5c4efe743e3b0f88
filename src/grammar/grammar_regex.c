/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_regex.c - a regular expression as an expression of a grammar: node by node. */
#include "base/mem.h"
#include "grammar/regex.h"

static hn_expr convert(const hn_regex *r, hn_expr *of_set, int32_t i, hn_regex_class *class_of);

static hn_expr convert_list(const hn_regex *r, hn_expr *of_set, const hn_regex_node *e, hn_regex_class *class_of) {
    hn_expr *part = hn_alloc((size_t)e->b * sizeof *part);
    if (!part) return hn_builder_no_memory(r->b);
    for (int32_t k = 0; k < e->b; k++) part[k] = convert(r, of_set, r->parts[e->a + k], class_of);
    const hn_expr list = e->kind == HN_RE_SEQ ? hn_expr_seq(r->b, part, (size_t)e->b) : hn_expr_alt(r->b, part, (size_t)e->b);
    hn_free(part);
    return list;
}

static hn_expr convert(const hn_regex *r, hn_expr *of_set, int32_t i, hn_regex_class *class_of) {
    const hn_regex_node *e = &r->nodes[i];
    if (r->b->failed) return -1;
    switch ((hn_regex_kind)e->kind) {
    case HN_RE_CLASS:
        if (of_set[e->a] < 0) of_set[e->a] = class_of(r->b, &r->sets[e->a]);
        return of_set[e->a];
    case HN_RE_SEQ:
    case HN_RE_ALT: return convert_list(r, of_set, e, class_of);
    case HN_RE_REPEAT: return hn_expr_repeat(r->b, convert(r, of_set, e->a, class_of), e->min, e->max);
    default: return hn_expr_empty(r->b);
    }
}

hn_expr hn_regex_expr(const hn_regex *r, hn_regex_class *class_of) {
    hn_expr *of_set = hn_alloc(r->n_sets * sizeof *of_set);
    if (!of_set) return hn_builder_no_memory(r->b);
    for (size_t i = 0; i < r->n_sets; i++) of_set[i] = -1;
    const hn_expr e = convert(r, of_set, r->root, class_of);
    hn_free(of_set);
    return e;
}

hn_expr hn_expr_regex(hn_builder *b, const char *regex, size_t len, bool search) {
    hn_regex r;
    const hn_expr e = hn_regex_open(&r, b, "", regex, len, search) ? hn_regex_expr(&r, hn_expr_ranges) : -1;
    hn_regex_fini(&r);
    return e;
}

hunch_status hn_grammar_regex(hn_grammar **out, const char *regex, size_t len, hunch_error *err) {
    *out = NULL;
    hn_builder *b = hn_builder_open(err);
    if (!b) return HUNCH_NO_MEMORY;
    return hn_grammar_finish(out, &b, hn_expr_regex(b, regex, len, false), err);
}
