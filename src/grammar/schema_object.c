/* SPDX-License-Identifier: Apache-2.0 */
/* schema_object.c - objects: their own properties in the order in which they are declared, then additional ones, whose keys may be of
 * patterns (schema_names.c). That no key is written twice among the additional ones is the matcher's task (matcher.h). */
#include <stdlib.h>
#include <string.h>

#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/number_index.h"
#include "grammar/schema.h"

enum { MAX_NODES = 100000 };

typedef struct property {
    hn_word name;
    bool required;
    hn_expr pair; /* "name": value */
} property;

typedef struct object {
    hn_schema *s;
    const hn_schema_list *list;
    property *own;
    size_t n, cap;
    int32_t *index; /* a hash table of names, their numbers and one */
    size_t cap_index;
    uint64_t key[2]; /* of its hash */
    hn_expr additional; /* a pair */
    int64_t min, max;
    hn_schema_names names;
} object;

/* ---- names ---- */

static uint64_t hash_of_property(const void *of, size_t i) {
    const object *o = of;
    return hn_keyed_hash(o->key, o->own[i].name.bytes, o->own[i].name.len);
}

/* The property of this name, added if it is new. NULL: failed. */
static property *own_property(object *o, const char *name, size_t len) {
    if (2 * (o->n + 1) > o->cap_index && !hn_number_index_grow(&o->index, &o->cap_index, 64, 0, o->n, hash_of_property, o))
        return hn_builder_no_memory(o->s->b), NULL;
    size_t at = hn_keyed_hash(o->key, name, len) & (o->cap_index - 1);
    for (; o->index[at]; at = (at + 1) & (o->cap_index - 1)) {
        property *p = &o->own[o->index[at] - 1];
        if (p->name.len == len && memcmp(p->name.bytes, name, len) == 0) return p;
    }
    if (!hn_grow((void **)&o->own, &o->cap, o->n + 1, sizeof *o->own)) return hn_builder_no_memory(o->s->b), NULL;
    o->own[o->n] = (property){{name, len}, false, -1};
    o->index[at] = (int32_t)o->n + 1;
    return &o->own[o->n++];
}

static bool names_take(object *o, const hn_schema_item *x) {
    json_t *properties = json_object_get(x->node, "properties");
    if (properties && !hn_json_is_object(properties))
        return hn_schema_fail(o->s, hn_schema_step(o->s, x->path, "properties"), "expected an object of schemas") >= 0;
    for (void *i = json_object_iter(properties); i; i = json_object_iter_next(properties, i))
        if (!own_property(o, json_object_iter_key(i), json_object_iter_key_len(i))) return false;
    return hn_schema_count(o->s, x, "minProperties", true, &o->min) && hn_schema_count(o->s, x, "maxProperties", false, &o->max);
}

static bool required_take(object *o, const hn_schema_item *x) {
    const json_t *required = json_object_get(x->node, "required");
    if (required && !hn_schema_is_names(required))
        return hn_schema_fail(o->s, hn_schema_step(o->s, x->path, "required"), "expected a list of names") >= 0;
    for (size_t i = 0; i < json_array_size(required); i++) {
        const json_t *name = json_array_get(required, i);
        property *p = own_property(o, json_string_value(name), json_string_length(name));
        if (!p) return false;
        p->required = true;
    }
    return true;
}

/* ---- values ---- */

/* What the schemas of the list say about a property's value; name NULL: about one that has no name in any of them. matches: which of the
 * patterns its key is of. */
static hn_expr value_of(object *o, const hn_word *name, uint32_t matches) {
    hn_schema_list of = {0};
    hn_schema *s = o->s;
    bool ok = o->list->n == 0 || hn_schema_worked(s, o->list->at[0].path, HN_SCHEMA_STEPS * o->list->n);
    for (size_t i = 0; ok && i < o->list->n; i++) {
        const hn_schema_item *x = &o->list->at[i];
        const json_t *properties = json_object_get(x->node, "properties"), *others = json_object_get(x->node, "additionalProperties");
        const json_t *own = name ? json_object_get(properties, name->bytes) : NULL;
        bool spoken = own;
        if (own) ok = hn_schema_add(s, &of, own, hn_schema_step(s, hn_schema_step(s, x->path, "properties"), name->bytes), -1);
        for (int k = 0; ok && k < o->names.n_patterns; k++) {
            const hn_schema_pattern *p = &o->names.pattern[k];
            if (p->item != i || !(matches >> k & 1)) continue;
            ok = hn_schema_add(s, &of, p->schema, p->path, -1);
            spoken = true;
        }
        if (ok && others && !spoken) ok = hn_schema_add(s, &of, others, hn_schema_step(s, x->path, "additionalProperties"), -1);
    }
    if (ok && name && !hn_schema_names_allow(s, &o->names, name)) of.never = true;
    const hn_expr e = ok ? hn_schema_rule_of(s, &of) : -1;
    hn_schema_list_fini(&of);
    return e;
}

static hn_expr pair_of(object *o, hn_expr key, const hn_word *name, uint32_t matches) {
    const hn_expr part[] = {key, hn_json_colon(o->s->b), value_of(o, name, matches)};
    return hn_expr_seq(o->s->b, part, 3);
}

static int compare_names(const void *a, const void *b) {
    const hn_word *x = a, *y = b;
    const int order = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);
    return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

/* The object's own names, sorted. NULL: no memory. */
static hn_word *own_names(object *o) {
    hn_word *names = hn_alloc((o->n + 1) * sizeof *names);
    if (!names) return hn_builder_no_memory(o->s->b), NULL;
    for (size_t i = 0; i < o->n; i++) names[i] = o->own[i].name;
    if (o->n) qsort(names, o->n, sizeof *names, compare_names);
    return names;
}

/* Pairs whose keys are of some patterns and of no other, for each choice of patterns. */
static hn_expr patterned(object *o, const hn_word *names) {
    const uint32_t choices = (uint32_t)1 << o->names.n_patterns;
    hn_expr part[1 << HN_SCHEMA_PATTERNS];
    size_t n = 0;
    for (uint32_t matches = 0; matches < choices && !o->s->b->failed; matches++) {
        const hn_expr value = value_of(o, NULL, matches);
        if (o->s->b->failed || o->s->b->exprs[value].kind == HN_EXPR_NOTHING) continue;
        const hn_expr pair[] = {hn_schema_names_key(o->s, &o->names, names, o->n, matches), hn_json_colon(o->s->b), value};
        part[n++] = hn_expr_seq(o->s->b, pair, 3);
    }
    return o->s->b->failed ? -1 : hn_expr_alt(o->s->b, part, n);
}

static bool additional_find(object *o) {
    hn_word *names = own_names(o);
    if (!names) return false;
    o->additional = o->names.narrow ? patterned(o, names) : pair_of(o, hn_json_key_beside(o->s->b, names, o->n), NULL, 0);
    hn_free(names);
    return o->additional >= 0;
}

/* ---- the order of properties ---- */

/* A graph: node (i, c) has passed the first i properties and written c of them; from `cap` on c is not counted. */
typedef struct property_graph {
    object *o;
    int64_t cap;
    hn_graph_edge *edges;
    size_t n, cap_edges;
    hn_expr comma, empty;
} property_graph;

static bool link(property_graph *g, int64_t from, int64_t to, hn_expr label) {
    if (g->o->s->b->failed) return false;
    if (!hn_grow((void **)&g->edges, &g->cap_edges, g->n + 1, sizeof *g->edges)) return hn_builder_no_memory(g->o->s->b) >= 0;
    g->edges[g->n++] = (hn_graph_edge){(int32_t)from, (int32_t)to, label};
    return true;
}

/* Additional properties behind c of the object's own. */
static hn_expr additional_after(property_graph *g, int64_t c) {
    const object *o = g->o;
    hn_builder *b = o->s->b;
    const int64_t min = o->min > c ? o->min - c : 0, max = o->max < 0 ? -1 : o->max - c;
    const hn_expr more[] = {g->comma, o->additional}, next = hn_expr_seq(b, more, 2);
    if (c > 0) return hn_expr_repeat(b, next, (int)min, (int)max);
    if (max == 0) return g->empty;
    const hn_expr some[] = {o->additional, hn_expr_repeat(b, next, (int)(min > 1 ? min - 1 : 0), max < 0 ? -1 : (int)max - 1)};
    return hn_expr_repeat(b, hn_expr_seq(b, some, 2), min > 0, 1);
}

static bool node_links(property_graph *g, size_t i, int64_t c) {
    const object *o = g->o;
    const int64_t wide = g->cap + 1, at = (int64_t)i * wide + c;
    if (i == o->n) return link(g, at, ((int64_t)o->n + 1) * wide, additional_after(g, c));
    const property *p = &o->own[i];
    if (!p->required && !link(g, at, at + wide, g->empty)) return false;
    if (o->max >= 0 && c >= o->max) return true;
    const hn_expr part[] = {g->comma, p->pair};
    const int64_t next = c < g->cap ? c + 1 : c;
    return link(g, at, ((int64_t)i + 1) * wide + next, c ? hn_expr_seq(o->s->b, part, 2) : p->pair);
}

static hn_expr properties_of(object *o) {
    hn_schema *s = o->s;
    property_graph g = {.o = o, .cap = 1, .comma = hn_json_comma(s->b), .empty = hn_expr_empty(s->b)};
    if (o->n) g.cap = o->max > 1 ? o->max : o->max < 0 && o->min > 1 ? o->min : 1;
    if (g.cap > (int64_t)o->n && o->n) g.cap = (int64_t)o->n; /* so many can be written */
    const int64_t nodes = ((int64_t)o->n + 1) * (g.cap + 1) + 1;
    if (nodes > MAX_NODES) return hn_schema_fail(s, o->list->at[0].path, "too many properties for minProperties or maxProperties");
    bool ok = true;
    for (size_t i = 0; ok && i <= o->n; i++)
        for (int64_t c = 0; ok && c <= g.cap && c <= (int64_t)i; c++) ok = node_links(&g, i, c);
    const hn_expr e = ok ? hn_expr_graph(s->b, (int)nodes, g.edges, g.n) : -1;
    hn_free(g.edges);
    return e;
}

/* Several of keys that may be few: those of a pattern. False: failed. */
static bool least_take(object *o, size_t required) {
    hn_schema *s = o->s;
    if (o->min <= (int64_t)required) o->min = 0;
    if (o->min <= 1 || !o->names.narrow || o->names.values || s->b->exprs[o->additional].kind == HN_EXPR_NOTHING) return true;
    size_t i = 0;
    while (i + 1 < o->list->n && !json_object_get(o->list->at[i].node, "minProperties")) i++;
    o->min = required ? 0 : 1; /* where the rest is ignored */
    return hn_schema_refuse(s, hn_schema_step(s, o->list->at[i].path, "minProperties"),
                            "minProperties above 1 beside patternProperties or propertyNames is not supported");
}

static hn_expr object_of(object *o) {
    hn_schema *s = o->s;
    size_t required = 0;
    for (size_t i = 0; i < o->list->n; i++)
        if (!names_take(o, &o->list->at[i])) return -1;
    for (size_t i = 0; i < o->list->n; i++)
        if (!required_take(o, &o->list->at[i])) return -1;
    if (!hn_schema_names_take(s, &o->names, o->list)) return -1;
    for (size_t i = 0; i < json_array_size(o->names.values); i++) { /* a key of these is as a property of its own */
        const json_t *name = json_array_get(o->names.values, i);
        if (json_is_string(name) && !own_property(o, json_string_value(name), json_string_length(name))) return -1;
    }
    for (size_t i = 0; i < o->n && !s->b->failed; i++) {
        property *p = &o->own[i];
        required += p->required;
        const hn_word name = p->name;
        p->pair = pair_of(o, hn_json_word(s->b, name.bytes, name.len), &name, hn_schema_names_match(s, &o->names, &name));
    }
    if (s->b->failed || !additional_find(o) || !least_take(o, required)) return -1;
    if (o->max >= 0 && o->max < (int64_t)required) return hn_expr_nothing(s->b);
    if (o->max >= 0 && o->min > o->max) return hn_expr_nothing(s->b);
    if (o->max > HN_GRAMMAR_MAX_REPEAT) o->max = -1;
    if (o->min > HN_GRAMMAR_MAX_REPEAT) return hn_schema_fail(s, o->list->at[0].path, "minProperties above 2^30");
    const hn_expr whole[] = {hn_expr_text(s->b, "{"), properties_of(o), hn_expr_text(s->b, "}")};
    return s->b->failed ? -1 : hn_expr_seq(s->b, whole, 3);
}

hn_expr hn_schema_object(hn_schema *s, const hn_schema_list *list) {
    object o = {.s = s, .list = list, .max = -1};
    hn_hash_key(o.key);
    const hn_expr e = object_of(&o);
    hn_schema_names_fini(&o.names);
    hn_free(o.own);
    hn_free(o.index);
    return e;
}
