/* SPDX-License-Identifier: Apache-2.0 */
/* schema_array.c - arrays: items that have a place of their own, then as many others as the bounds allow. */
#include "base/mem.h"
#include "grammar/schema.h"

enum { MAX_PREFIX = 10000 };

static const json_t *prefix_of(hn_schema *s, const hn_schema_item *x, size_t *n) {
    const json_t *prefix = json_object_get(x->node, "prefixItems");
    *n = json_array_size(prefix);
    if (prefix && (!json_is_array(prefix) || *n > MAX_PREFIX))
        hn_schema_fail(s, hn_schema_step(s, x->path, "prefixItems"), "expected a list of at most %d schemas", MAX_PREFIX);
    return prefix;
}

/* The rule of item number i. */
static hn_expr item_at(hn_schema *s, const hn_schema_list *list, size_t i) {
    hn_schema_list of = {0};
    bool ok = list->n == 0 || hn_schema_worked(s, list->at[0].path, HN_SCHEMA_STEPS * list->n);
    for (size_t k = 0; ok && k < list->n; k++) {
        const hn_schema_item *x = &list->at[k];
        size_t n;
        const json_t *prefix = prefix_of(s, x, &n), *items = json_object_get(x->node, "items");
        const char *keyword = i < n ? "prefixItems" : "items";
        int32_t path = x->path;
        if (i < n || items) path = hn_schema_step(s, path, keyword);
        if (i < n) path = hn_schema_number(s, path, i);
        if (i < n)
            ok = hn_schema_add(s, &of, json_array_get(prefix, i), path, -1);
        else if (items)
            ok = hn_schema_add(s, &of, items, path, -1);
    }
    const hn_expr e = ok ? hn_schema_rule_of(s, &of) : -1;
    hn_schema_list_fini(&of);
    return e;
}

/* min to max items (max -1: no limit), each behind a comma. */
static hn_expr others(hn_schema *s, hn_expr item, int64_t min, int64_t max) {
    const hn_expr one[] = {hn_json_comma(s->b), item};
    return hn_expr_repeat(s->b, hn_expr_seq(s->b, one, 2), (int)min, (int)max);
}

static hn_expr without_prefix(hn_schema *s, hn_expr item, int64_t min, int64_t max) {
    if (max == 0) return hn_expr_empty(s->b);
    const hn_expr some[] = {item, others(s, item, min > 1 ? min - 1 : 0, max < 0 ? -1 : max - 1)};
    return hn_expr_repeat(s->b, hn_expr_seq(s->b, some, 2), min > 0, 1);
}

/* Node i: i items were written. */
static hn_expr with_prefix(hn_schema *s, const hn_schema_list *list, size_t prefix, hn_expr rest, int64_t min, int64_t max) {
    hn_graph_edge *edges = hn_alloc((2 * prefix + 2) * sizeof *edges);
    const int32_t end = (int32_t)prefix + 1;
    size_t n = 0;
    if (!edges) return hn_builder_no_memory(s->b);
    for (size_t i = 0; i <= prefix && !s->b->failed; i++) {
        const int32_t at = (int32_t)i;
        if ((int64_t)i >= min && (max < 0 || (int64_t)i <= max) && i < prefix) edges[n++] = (hn_graph_edge){at, end, hn_expr_empty(s->b)};
        if (i == prefix && (max < 0 || max >= at)) {
            const int64_t least = min > at ? min - at : 0, most = max < 0 ? -1 : max - at;
            edges[n++] = (hn_graph_edge){at, end, others(s, rest, least, most)};
        }
        if (i == prefix) break;
        const hn_expr item[] = {hn_json_comma(s->b), item_at(s, list, i)};
        edges[n++] = (hn_graph_edge){at, at + 1, hn_expr_seq(s->b, i ? item : item + 1, i ? 2 : 1)};
    }
    const hn_expr e = s->b->failed ? -1 : hn_expr_graph(s->b, end + 1, edges, n);
    hn_free(edges);
    return e;
}

hn_expr hn_schema_array(hn_schema *s, const hn_schema_list *list) {
    int64_t min = 0, max = -1;
    size_t prefix = 0, n;
    for (size_t i = 0; i < list->n; i++) {
        const hn_schema_item *x = &list->at[i];
        if (!hn_schema_count(s, x, "minItems", true, &min) || !hn_schema_count(s, x, "maxItems", false, &max)) return -1;
        prefix_of(s, x, &n);
        if (n > prefix) prefix = n;
    }
    if (s->b->failed) return -1;
    if (max >= 0 && min > max) return hn_expr_nothing(s->b);
    if (max > HN_GRAMMAR_MAX_REPEAT) max = -1;
    if (min > HN_GRAMMAR_MAX_REPEAT) return hn_schema_fail(s, list->at[0].path, "minItems above 2^30");
    const hn_expr rest = item_at(s, list, prefix);
    const hn_expr items = prefix ? with_prefix(s, list, prefix, rest, min, max) : without_prefix(s, rest, min, max);
    const hn_expr whole[] = {hn_expr_text(s->b, "["), items, hn_expr_text(s->b, "]")};
    return s->b->failed ? -1 : hn_expr_seq(s->b, whole, 3);
}
