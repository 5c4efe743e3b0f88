/* SPDX-License-Identifier: Apache-2.0 */
/* regex_anchors.c - the tree of the whole text: what is searched has any text on the sides where no ^ or $ is. They are allowed where they
 * begin or end an alternative, in groups too: (^|,)a(,|$) becomes four alternatives. */
#include <string.h>

#include "base/mem.h"
#include "grammar/regex.h"

enum { MAX_BRANCHES = 256 };

typedef struct branches {
    hn_regex *r;
    bool search;
    int32_t found[MAX_BRANCHES];
    size_t n;
} branches;

static int32_t any_text(hn_regex *r) {
    hn_ranges all = {0};
    if (r->any < 0) {
        if (!hn_ranges_add(&all, 0, HN_LAST_CODE_POINT)) return hn_builder_no_memory(r->b);
        r->any = hn_regex_set(r, &all);
    }
    if (r->any < 0) return -1;
    return hn_regex_put(r, (hn_regex_node){.kind = HN_RE_REPEAT, .a = r->any, .min = 0, .max = -1});
}

static int32_t last_line_break(hn_regex *r) {
    hn_ranges set = {0};
    if (!hn_ranges_add(&set, '\n', '\n')) return hn_builder_no_memory(r->b);
    const int32_t one = hn_regex_set(r, &set);
    return one < 0 ? -1 : hn_regex_put(r, (hn_regex_node){.kind = HN_RE_REPEAT, .a = one, .min = 0, .max = 1});
}

static bool fail_inside(const hn_regex *r) {
    hn_builder_fail(r->b, HUNCH_USAGE, "%s%sthe regular expression has ^ or $ inside, expected them at the ends of its alternatives",
                    r->where, r->where[0] ? ": " : "");
    return false;
}

static bool put_branch(branches *x, const int32_t *items, size_t n, bool start, bool end) {
    hn_regex *r = x->r;
    for (size_t i = 0; i < n; i++)
        if (r->nodes[items[i]].anchors) return fail_inside(r);
    if (x->n == MAX_BRANCHES) return fail_inside(r);
    int32_t part[3];
    size_t k = 0;
    const bool line = end && r->without; /* Python's $ is before a last line break too */
    if (!start && x->search) part[k++] = any_text(r);
    part[k++] = hn_regex_list(r, HN_RE_SEQ, items, n);
    if (!end && x->search) part[k++] = any_text(r);
    if (line) part[k++] = last_line_break(r);
    for (size_t i = 0; i < k; i++)
        if (part[i] < 0) return false;
    x->found[x->n] = hn_regex_list(r, HN_RE_SEQ, part, k);
    return x->found[x->n++] >= 0;
}

static bool expand(branches *x, const int32_t *items, size_t n, bool start, bool end);

/* The items with the one at `at` replaced by others. */
static bool expand_with(branches *x, const int32_t *items, size_t n, size_t at, const int32_t *with, size_t n_with, bool start, bool end) {
    int32_t *list = hn_alloc((n + n_with) * sizeof *list);
    if (!list) return hn_builder_no_memory(x->r->b) >= 0;
    memcpy(list, items, at * sizeof *list);
    memcpy(list + at, with, n_with * sizeof *list);
    memcpy(list + at + n_with, items + at + 1, (n - at - 1) * sizeof *list);
    const bool ok = expand(x, list, n + n_with - 1, start, end);
    hn_free(list);
    return ok;
}

/* A group at an end of the items that has anchors: its parts take its place, or each of its alternatives does. */
static bool expand_group(branches *x, const int32_t *items, size_t n, size_t at, bool start, bool end) {
    const hn_regex_node g = x->r->nodes[items[at]];
    int32_t *part = hn_alloc((size_t)g.b * sizeof *part); /* a copy: parts are added */
    if (!part) return hn_builder_no_memory(x->r->b) >= 0;
    memcpy(part, x->r->parts + g.a, (size_t)g.b * sizeof *part);
    bool ok = g.kind != HN_RE_SEQ || expand_with(x, items, n, at, part, (size_t)g.b, start, end);
    for (int32_t i = 0; ok && g.kind == HN_RE_ALT && i < g.b; i++) ok = expand_with(x, items, n, at, &part[i], 1, start, end);
    hn_free(part);
    return ok;
}

static bool is_group(const hn_regex *r, int32_t i) {
    return r->nodes[i].anchors && (r->nodes[i].kind == HN_RE_SEQ || r->nodes[i].kind == HN_RE_ALT);
}

static bool expand(branches *x, const int32_t *items, size_t n, bool start, bool end) {
    const hn_regex *r = x->r;
    for (; n && r->nodes[items[0]].kind == HN_RE_START; items++, n--) start = true;
    for (; n && r->nodes[items[n - 1]].kind == HN_RE_END; n--) end = true;
    if (n && is_group(r, items[0])) return expand_group(x, items, n, 0, start, end);
    if (n && is_group(r, items[n - 1])) return expand_group(x, items, n, n - 1, start, end);
    return put_branch(x, items, n, start, end);
}

int32_t hn_regex_anchor(hn_regex *r, bool search) {
    branches *x = hn_alloc(sizeof *x);
    if (!x) return hn_builder_no_memory(r->b);
    *x = (branches){.r = r, .search = search};
    const int32_t root = r->root;
    int32_t whole = -1;
    if (!r->nodes[root].anchors && !search)
        whole = root;
    else if (expand(x, &root, 1, false, false))
        whole = hn_regex_list(r, HN_RE_ALT, x->found, x->n);
    hn_free(x);
    return whole;
}
