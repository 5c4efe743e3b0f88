/* SPDX-License-Identifier: Apache-2.0 */
/* schema_array.c - arrays: items that have a place of their own, then as many others as the bounds allow; with `contains` how many items it
 * speaks of are counted beside them. That no item is there twice is the matcher's task (keys_seen.h), if equal items are equal texts. */
#include "base/mem.h"
#include "grammar/schema.h"

enum { MAX_PREFIX = 10000, MAX_NODES = 100000 };

typedef struct array {
    hn_schema *s;
    const hn_schema_list *list;
    size_t prefix;
    int64_t min, max; /* max -1: no limit */
    const hn_schema_item *contains; /* NULL: none */
    int64_t least, most; /* items that it speaks of */
    bool unique;
} array;

/* The items that have a place: prefixItems, or, before draft 2020-12, a list of items. */
static const json_t *prefix_of(hn_schema *s, const hn_schema_item *x, size_t *n) {
    const json_t *prefix = json_object_get(x->node, "prefixItems"), *items = json_object_get(x->node, "items");
    const char *keyword = prefix ? "prefixItems" : "items";
    if (!prefix && json_is_array(items)) prefix = items;
    *n = json_array_size(prefix);
    if (prefix && (!json_is_array(prefix) || *n > MAX_PREFIX))
        hn_schema_fail(s, hn_schema_step(s, x->path, keyword), "expected a list of at most %d schemas", MAX_PREFIX);
    return prefix;
}

/* Adds what a schema of the list says about item number i. */
static bool add_item(hn_schema *s, hn_schema_list *of, const hn_schema_item *x, size_t i) {
    size_t n;
    const json_t *prefix = prefix_of(s, x, &n), *items = json_object_get(x->node, "items");
    const bool listed = json_is_array(items);
    const char *keyword = i < n ? (listed ? "items" : "prefixItems") : listed ? "additionalItems" : "items";
    const json_t *schema = i < n ? json_array_get(prefix, i) : json_object_get(x->node, keyword);
    if (!schema) return true;
    int32_t path = hn_schema_step(s, x->path, keyword);
    if (i < n) path = hn_schema_number(s, path, i);
    return hn_schema_add(s, of, schema, path, -1);
}

/* The rule of item number i; which: HN_CONTAINED, an item that `contains` speaks of, HN_OTHER: one that it does not. */
enum { HN_EVERY, HN_CONTAINED, HN_OTHER };

static bool item_list(array *a, hn_schema_list *of, size_t i, int which) {
    hn_schema *s = a->s;
    bool ok = a->list->n == 0 || hn_schema_worked(s, a->list->at[0].path, HN_SCHEMA_STEPS * a->list->n);
    for (size_t k = 0; ok && k < a->list->n; k++) ok = add_item(s, of, &a->list->at[k], i);
    of->one_spelling = a->unique;
    if (!ok || which == HN_EVERY) return ok;
    const json_t *contains = json_object_get(a->contains->node, "contains");
    const int32_t path = hn_schema_step(s, a->contains->path, "contains");
    if (which == HN_OTHER) contains = hn_schema_make(s, contains, HN_MADE_NOT, path);
    return contains && hn_schema_add(s, of, contains, path, -1);
}

static hn_expr item_at(array *a, size_t i, int which) {
    hn_schema_list of = {0};
    const bool ok = item_list(a, &of, i, which);
    const hn_expr e = ok ? hn_schema_rule_of(a->s, &of) : -1;
    hn_schema_list_fini(&of);
    return e;
}

/* min to max items (max -1: no limit), each behind a comma. */
static hn_expr others(hn_schema *s, hn_expr item, int64_t min, int64_t max) {
    const hn_expr one[] = {hn_json_comma(s->b), item};
    return hn_expr_repeat(s->b, hn_expr_seq(s->b, one, 2), (int)min, (int)max);
}

static hn_expr without_prefix(array *a) {
    hn_builder *b = a->s->b;
    if (a->max == 0) return hn_expr_empty(b);
    const hn_expr item = item_at(a, 0, HN_EVERY);
    const hn_expr some[] = {item, others(a->s, item, a->min > 1 ? a->min - 1 : 0, a->max < 0 ? -1 : a->max - 1)};
    return hn_expr_repeat(b, hn_expr_seq(b, some, 2), a->min > 0, 1);
}

/* Node i: i items were written. */
static hn_expr with_prefix(array *a) {
    hn_schema *s = a->s;
    hn_graph_edge *edges = hn_alloc((2 * a->prefix + 2) * sizeof *edges);
    const int32_t end = (int32_t)a->prefix + 1;
    size_t n = 0;
    if (!edges) return hn_builder_no_memory(s->b);
    const hn_expr rest = item_at(a, a->prefix, HN_EVERY);
    for (size_t i = 0; i <= a->prefix && !s->b->failed; i++) {
        const int32_t at = (int32_t)i;
        if (at >= a->min && (a->max < 0 || at <= a->max) && i < a->prefix) edges[n++] = (hn_graph_edge){at, end, hn_expr_empty(s->b)};
        if (i == a->prefix && (a->max < 0 || a->max >= at)) {
            const int64_t least = a->min > at ? a->min - at : 0, most = a->max < 0 ? -1 : a->max - at;
            edges[n++] = (hn_graph_edge){at, end, others(s, rest, least, most)};
        }
        if (i == a->prefix) break;
        const hn_expr item[] = {hn_json_comma(s->b), item_at(a, i, HN_EVERY)};
        edges[n++] = (hn_graph_edge){at, at + 1, hn_expr_seq(s->b, i ? item : item + 1, i ? 2 : 1)};
    }
    const hn_expr e = s->b->failed ? -1 : hn_expr_graph(s->b, end + 1, edges, n);
    hn_free(edges);
    return e;
}

/* ---- contains ---- */

/* Node (i, c): i items were written, c of them are such as `contains` speaks of; the last ones of both stand for more, without a limit. */
typedef struct contained {
    array *a;
    int64_t items, some;
    hn_expr one, other; /* an item that it speaks of, and one that it does not, of the place that is written */
    hn_graph_edge *edges;
    size_t n, cap;
} contained;

static bool put_item(contained *g, int64_t i, int64_t c, hn_expr item, bool counts) {
    const int64_t wide = g->some + 1, next = i < g->items ? i + 1 : i, more = c < g->some && counts ? c + 1 : c;
    hn_builder *b = g->a->s->b;
    const hn_expr part[] = {hn_json_comma(b), item};
    if (!hn_grow((void **)&g->edges, &g->cap, g->n + 2, sizeof *g->edges)) return hn_builder_no_memory(b) >= 0;
    const hn_expr label = hn_expr_seq(b, i ? part : part + 1, i ? 2 : 1);
    g->edges[g->n++] = (hn_graph_edge){(int32_t)(i * wide + c), (int32_t)(next * wide + more), label};
    return !b->failed;
}

static bool contained_links(contained *g, int64_t i) {
    array *a = g->a;
    const int64_t wide = g->some + 1;
    const bool full = a->max >= 0 && i == a->max;
    if (!full && (size_t)i <= a->prefix) { /* those behind are as the first of them */
        g->one = item_at(a, (size_t)i, HN_CONTAINED);
        g->other = item_at(a, (size_t)i, a->most >= 0 ? HN_OTHER : HN_EVERY);
    }
    bool ok = !a->s->b->failed;
    for (int64_t c = 0; ok && c <= g->some && c <= i; c++) {
        if (i >= a->min && c >= a->least) {
            ok = hn_grow((void **)&g->edges, &g->cap, g->n + 1, sizeof *g->edges) || hn_builder_no_memory(a->s->b) >= 0;
            if (ok) g->edges[g->n++] = (hn_graph_edge){(int32_t)(i * wide + c), (int32_t)((g->items + 1) * wide), hn_expr_empty(a->s->b)};
        }
        if (ok && !full && c < g->some) ok = put_item(g, i, c, g->one, true);
        if (ok && !full) ok = put_item(g, i, c, g->other, false);
    }
    return ok;
}

static contained contained_of(array *a) {
    contained g = {.a = a, .items = a->max, .some = a->most >= 0 ? a->most : a->least};
    if (a->max < 0) { /* so many that the last node stands for all that are more */
        g.items = (int64_t)a->prefix > a->min ? (int64_t)a->prefix : a->min;
        if (g.some > g.items) g.items = g.some;
        if (g.items == 0) g.items = 1;
    }
    return g;
}

static int64_t nodes_of(const contained *g) {
    return g->items > MAX_NODES || g->some > MAX_NODES ? MAX_NODES + 1 : (g->items + 1) * (g->some + 1) + 1;
}

/* False: failed. */
static bool contained_check(array *a) {
    const contained g = contained_of(a);
    if (nodes_of(&g) <= MAX_NODES) return true;
    const int32_t path = hn_schema_step(a->s, a->contains->path, "contains");
    a->contains = NULL; /* where it is ignored */
    return hn_schema_refuse(a->s, path, "too many items for contains");
}

static hn_expr with_contained(array *a) {
    contained g = contained_of(a);
    const int64_t nodes = nodes_of(&g);
    bool ok = true;
    for (int64_t i = 0; ok && i <= g.items; i++) ok = contained_links(&g, i);
    const hn_expr e = ok ? hn_expr_graph(a->s->b, (int)nodes, g.edges, g.n) : -1;
    hn_free(g.edges);
    return e;
}

static bool contains_take(array *a, const hn_schema_item *x) {
    hn_schema *s = a->s;
    int64_t least = -1, most = -1;
    if (!json_object_get(x->node, "contains")) return true;
    if (a->contains)
        return hn_schema_refuse(s, hn_schema_step(s, x->path, "contains"), "a second contains of one array is not supported");
    if (!hn_schema_count(s, x, "minContains", true, &least) || !hn_schema_count(s, x, "maxContains", false, &most)) return false;
    a->contains = x;
    a->least = least < 0 ? 1 : least;
    a->most = most;
    return true;
}

/* ---- uniqueItems ---- */

static bool unique_take(array *a, const hn_schema_item *x) {
    if (!json_is_true(json_object_get(x->node, "uniqueItems"))) return true;
    const int32_t path = hn_schema_step(a->s, x->path, "uniqueItems");
    hn_schema_list of = {0};
    bool ok = item_list(a, &of, 0, HN_EVERY);
    const bool plain = ok && (hn_schema_types_of(a->s, &of) & ~(HN_SCHEMA_ARRAY | HN_SCHEMA_OBJECT));
    const int64_t values = plain && a->min > 1 ? hn_schema_count_of(a->s, &of) : INT64_MAX;
    hn_schema_list_fini(&of);
    if (!ok || a->s->b->failed) return false;
    if (a->prefix || a->contains) return hn_schema_refuse(a->s, path, "uniqueItems beside prefixItems or contains is not supported");
    if (!plain) return hn_schema_refuse(a->s, path, "uniqueItems of arrays or objects is not supported");
    if (values < 0) return hn_schema_refuse(a->s, path, "uniqueItems with minItems of what may have few values is not supported");
    a->unique = true;
    if (values < a->min) a->max = 0; /* there are not so many */
    return true;
}

static bool array_take(array *a) {
    const hn_schema_list *list = a->list;
    size_t n;
    for (size_t i = 0; i < list->n; i++) {
        const hn_schema_item *x = &list->at[i];
        if (!hn_schema_count(a->s, x, "minItems", true, &a->min) || !hn_schema_count(a->s, x, "maxItems", false, &a->max)) return false;
        if (!contains_take(a, x)) return false;
        prefix_of(a->s, x, &n);
        if (n > a->prefix) a->prefix = n;
    }
    for (size_t i = 0; i < list->n && !a->unique && !a->s->b->failed; i++)
        if (!unique_take(a, &list->at[i])) return false;
    return !a->s->b->failed;
}

hn_expr hn_schema_array(hn_schema *s, const hn_schema_list *list) {
    array a = {.s = s, .list = list, .max = -1};
    if (!array_take(&a)) return -1;
    if (a.max >= 0 && a.min > a.max) return hn_expr_nothing(s->b);
    if (a.contains && !contained_check(&a)) return -1;
    if (a.max > HN_GRAMMAR_MAX_REPEAT) a.max = -1;
    if (a.min > HN_GRAMMAR_MAX_REPEAT) return hn_schema_fail(s, list->at[0].path, "minItems above 2^30");
    const hn_expr items = a.contains ? with_contained(&a) : a.prefix ? with_prefix(&a) : without_prefix(&a);
    const hn_expr whole[] = {a.unique ? hn_expr_unique(s->b) : hn_expr_text(s->b, "["), items, hn_expr_text(s->b, "]")};
    return s->b->failed ? -1 : hn_expr_seq(s->b, whole, 3);
}
