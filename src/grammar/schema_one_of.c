/* SPDX-License-Identifier: Apache-2.0 */
/* schema_one_of.c - whether the branches of oneOf exclude each other, so that it means what anyOf means: by their types, values, ranges of
 * numbers, or a property that both have and that excludes. Of a few branches that cannot be shown so each is joined with the opposites of
 * the others (schema_not.c). */
#include <string.h>

#include "grammar/schema.h"

enum { MAX_DEPTH = 12, MAX_BRANCHES = 512, MAX_EXCLUDED = 8 /* branches, each with the opposites of the others */ };

typedef struct exclusion {
    hn_schema *s;
    const hn_schema_list *base; /* what must hold beside the branches */
    int32_t path;
} exclusion;

/* A schema can be such that the proof takes for ever. */
static bool worked(exclusion *x, size_t n) { return hn_schema_worked(x->s, x->path, n); }

static const json_t *follow(exclusion *x, const json_t *node) {
    for (int i = 0; i < MAX_DEPTH && json_object_get(node, "$ref") && !x->s->b->failed; i++) {
        const json_t *to = json_object_size(node) == 1 ? hn_schema_resolve(x->s, json_object_get(node, "$ref"), x->path) : NULL;
        if (!to) break;
        node = to;
    }
    return node;
}

/* The types of all values that a schema allows, or more. */
static int types_of(exclusion *x, const json_t *node, int depth) {
    node = follow(x, node);
    if (json_is_false(node)) return 0;
    if (!hn_json_is_object(node) || depth == 0 || !worked(x, HN_SCHEMA_STEPS)) return HN_SCHEMA_ANY;
    const json_t *only = json_object_get(node, "const"), *some = json_object_get(node, "enum"), *all = json_object_get(node, "allOf");
    int types = hn_schema_types(x->s, node, x->path), listed = 0;
    if (types < 0) return HN_SCHEMA_ANY;
    if (only) types &= hn_schema_type_of(only);
    for (size_t i = 0; i < json_array_size(some) && worked(x, 1); i++) listed |= hn_schema_type_of(json_array_get(some, i));
    if (some) types &= listed;
    for (size_t i = 0; i < json_array_size(all); i++) types &= types_of(x, json_array_get(all, i), depth - 1);
    for (int k = 0; k < 2; k++) {
        const json_t *any = json_object_get(node, k ? "oneOf" : "anyOf");
        int either = 0;
        for (size_t i = 0; i < json_array_size(any); i++) either |= types_of(x, json_array_get(any, i), depth - 1);
        if (any) types &= either;
    }
    return types;
}

static bool requires(exclusion *x, const json_t *node, const char *name) {
    const json_t *names = json_object_get(node, "required");
    for (size_t i = 0; i < json_array_size(names) && worked(x, 1); i++)
        if (json_is_string(json_array_get(names, i)) && strcmp(json_string_value(json_array_get(names, i)), name) == 0) return true;
    return false;
}

static bool base_requires(exclusion *x, const char *name) {
    for (size_t i = 0; i < x->base->n; i++)
        if (requires(x, x->base->at[i].node, name)) return true;
    return false;
}

/* Every value of one is no value of the other. */
static bool excludes(exclusion *x, const json_t *a, const json_t *b, int base_types, int depth);

/* A property that objects of a must have, and that b forbids or gives other values. */
static bool property_excludes(exclusion *x, const json_t *a, const json_t *b, bool top, int depth) {
    json_t *of_a = json_object_get(a, "properties");
    const json_t *of_b = json_object_get(b, "properties"), *names = json_object_get(a, "required");
    for (void *i = json_object_iter(of_a); i; i = json_object_iter_next(of_a, i)) {
        const char *name = json_object_iter_key(i);
        const json_t *other = json_object_get(of_b, name);
        const bool given = requires(x, a, name) || requires(x, b, name) || (top && base_requires(x, name));
        if (given && other && excludes(x, json_object_iter_value(i), other, HN_SCHEMA_ANY, depth - 1)) return true;
    }
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const json_t *own = name ? json_object_get(of_b, name) : NULL;
        if (name && (own ? json_is_false(own) : json_is_false(json_object_get(b, "additionalProperties")))) return true;
    }
    return false;
}

static const json_t *number_of(const json_t *node, const char *keyword) {
    const json_t *value = json_object_get(node, keyword);
    return hn_json_is_number(value) ? value : NULL;
}

static hn_json_bound bound_of(const json_t *node, const char *closed, const char *open, int sign) {
    const hn_json_bound at = {number_of(node, closed), false}, beyond = {number_of(node, open), true};
    return beyond.value && (!at.value || sign * hn_json_order(beyond.value, at.value) >= 0) ? beyond : at;
}

static bool ranges_exclude(const json_t *a, const json_t *b) {
    const hn_json_bound high = bound_of(a, "maximum", "exclusiveMaximum", -1), low = bound_of(b, "minimum", "exclusiveMinimum", 1);
    const int order = high.value && low.value ? hn_json_order(high.value, low.value) : 1;
    return order < 0 || (order == 0 && (low.exclusive || high.exclusive));
}

/* One may have less than the other must, of characters or of items. */
static bool lengths_exclude(const json_t *a, const json_t *b, const char *least, const char *most) {
    for (int k = 0; k < 2; k++) {
        const json_t *max = json_object_get(k ? a : b, most), *min = json_object_get(k ? b : a, least);
        if (max && min && hn_json_number_value(max) < hn_json_number_value(min)) return true;
    }
    return false;
}

/* The list of values of a schema: const or enum; a const is a list of one. */
static bool values_exclude(exclusion *x, const json_t *a, const json_t *b) {
    const json_t *one_a = json_object_get(a, "const"), *one_b = json_object_get(b, "const");
    const json_t *some_a = json_object_get(a, "enum"), *some_b = json_object_get(b, "enum");
    const size_t n = one_a ? 1 : json_array_size(some_a), m = one_b ? 1 : json_array_size(some_b);
    if ((!one_a && !some_a) || (!one_b && !some_b)) return false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++)
            if (!worked(x, 1) ||
                hn_json_same(one_a ? one_a : json_array_get(some_a, i), one_b ? one_b : json_array_get(some_b, k))) return false;
    return true;
}

/* All branches of a's choices exclude b, or one of the schemas that must hold with it does. */
static bool parts_exclude(exclusion *x, const json_t *a, const json_t *b, int base_types, int depth) {
    const json_t *all = json_object_get(a, "allOf");
    for (size_t i = 0; i < json_array_size(all); i++)
        if (excludes(x, json_array_get(all, i), b, base_types, depth - 1)) return true;
    for (int k = 0; k < 2; k++) {
        const json_t *any = json_object_get(a, k ? "oneOf" : "anyOf");
        size_t i = 0;
        while (i < json_array_size(any) && excludes(x, json_array_get(any, i), b, base_types, depth - 1)) i++;
        if (any && i == json_array_size(any)) return true;
    }
    return false;
}

static bool excludes(exclusion *x, const json_t *a, const json_t *b, int base_types, int depth) {
    if (depth == 0 || x->s->b->failed || !worked(x, HN_SCHEMA_STEPS)) return false;
    const int types = types_of(x, a, depth) & types_of(x, b, depth) & base_types;
    a = follow(x, a);
    b = follow(x, b);
    if (types == 0 || values_exclude(x, a, b)) return true;
    if (!hn_json_is_object(a) || !hn_json_is_object(b)) return false;
    if ((types & ~(HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION)) == 0 && (ranges_exclude(a, b) || ranges_exclude(b, a))) return true;
    if (types == HN_SCHEMA_STRING && lengths_exclude(a, b, "minLength", "maxLength")) return true;
    if (types == HN_SCHEMA_ARRAY && lengths_exclude(a, b, "minItems", "maxItems")) return true;
    const bool top = depth == MAX_DEPTH;
    if (types == HN_SCHEMA_OBJECT && (property_excludes(x, a, b, top, depth) || property_excludes(x, b, a, top, depth))) return true;
    return parts_exclude(x, a, b, base_types, depth) || parts_exclude(x, b, a, base_types, depth);
}

int hn_schema_types_of(hn_schema *s, const hn_schema_list *list) {
    exclusion x = {s, list, -1};
    int types = list->never ? 0 : HN_SCHEMA_ANY;
    for (size_t i = 0; i < list->n; i++) types &= types_of(&x, list->at[i].node, MAX_DEPTH);
    return types;
}

bool hn_schema_exclusive(hn_schema *s, const hn_schema_list *list, const json_t *branches, int32_t path) {
    exclusion x = {s, list, path};
    const size_t n = json_array_size(branches);
    int types = HN_SCHEMA_ANY;
    for (size_t i = 0; i < list->n; i++) types &= hn_schema_types(s, list->at[i].node, list->at[i].path);
    if (s->b->failed) return false;
    if (n > MAX_BRANCHES) return hn_schema_fail(s, path, "more than %d branches", MAX_BRANCHES) >= 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (!excludes(&x, json_array_get(branches, i), json_array_get(branches, k), types, MAX_DEPTH)) {
                if (n > MAX_EXCLUDED)
                    hn_schema_refuse(s, path, "branches %zu and %zu of oneOf may both hold, expected at most %d branches or such that "
                                     "exclude each other", i, k, MAX_EXCLUDED);
                return n > MAX_EXCLUDED && !s->b->failed;
            }
    return true;
}
