/* SPDX-License-Identifier: Apache-2.0 */
/* schema_not.c - schemas that follow from others: what holds where one does not, the cases of if, then and else, and what dependencies and
 * formats of numbers mean. They are schemas in their turn, so that only types, values and patterns need know what `not` is. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "grammar/schema.h"

/* ---- what was made ---- */

static size_t slot_of(const hn_schema *s, const json_t *of, hn_schema_what what) {
    size_t at = hn_hash_word((uint64_t)what, (uintptr_t)of) & (s->cap_made - 1);
    while (s->made[at].made && (s->made[at].of != of || s->made[at].what != what)) at = (at + 1) & (s->cap_made - 1);
    return at;
}

static bool made_grow(hn_schema *s) {
    hn_schema next = {.cap_made = s->cap_made ? 2 * s->cap_made : 64};
    next.made = hn_zalloc(next.cap_made, sizeof *next.made);
    if (!next.made) return hn_builder_no_memory(s->b) >= 0;
    for (size_t i = 0; i < s->cap_made; i++)
        if (s->made[i].made) next.made[slot_of(&next, s->made[i].of, s->made[i].what)] = s->made[i];
    hn_free(s->made);
    s->made = next.made;
    s->cap_made = next.cap_made;
    return true;
}

/* Takes what was made. */
static const json_t *put(hn_schema *s, const json_t *of, hn_schema_what what, json_t *made) {
    if (made && 2 * (s->n_made + 1) <= s->cap_made) {
        s->made[slot_of(s, of, what)] = (hn_schema_made){of, made, what};
        s->n_made++;
        return made;
    }
    json_decref(made);
    if (!s->b->failed) hn_builder_no_memory(s->b);
    return NULL;
}

const json_t *hn_schema_keep(hn_schema *s, json_t *made) {
    if (2 * (s->n_made + 1) > s->cap_made && !made_grow(s)) return json_decref(made), NULL;
    return put(s, made, HN_MADE_KEPT, made);
}

void hn_schema_made_fini(hn_schema *s) {
    for (size_t i = 0; i < s->cap_made; i++) json_decref(s->made[i].made);
    hn_free(s->made);
}

/* ---- not ---- */

static bool is_literal(const json_t *of) {
    static const char *const known[] = {"type", "enum", "const", "pattern"};
    int n = 0, others = 0;
    json_t *object = (json_t *)(uintptr_t)of; /* which iterating does not change */
    if (!hn_json_is_object(of)) return false;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const char *key = json_object_iter_key(i);
        bool one = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) one |= strcmp(known[k], key) == 0;
        n += one;
        others += !one && !hn_schema_says_nothing(key);
    }
    return n == 1 && others == 0;
}

const json_t *hn_schema_not(const hn_schema_item *x) {
    const json_t *of = x->done & HN_DONE_NOT ? NULL : json_object_get(x->node, "not");
    return of && is_literal(of) ? of : NULL;
}

/* New references, or NULL, which putting them somewhere finds. */
static json_t *not_of(hn_schema *s, const json_t *of) {
    return json_incref((json_t *)(uintptr_t)hn_schema_make(s, of, HN_MADE_NOT, -1));
}

static void put_case(hn_schema *s, json_t *cases, json_t *one) {
    if (json_array_append_new(cases, one)) hn_builder_no_memory(s->b);
}

static void put_all(hn_schema *s, json_t *to, const json_t *all) {
    if (json_array_extend(to, (json_t *)(uintptr_t)all)) hn_builder_no_memory(s->b); /* of which the references are counted */
}

/* {"properties": {name: of}} */
static json_t *property_of(hn_schema *s, const char *name, json_t *of) {
    json_t *property = json_object();
    if (json_object_set_new(property, name, of)) hn_builder_no_memory(s->b);
    return json_pack("{s:o}", "properties", property);
}

/* Everything, which says nothing. */
static bool is_any(const json_t *schema) {
    return json_is_true(schema) || (hn_json_is_object(schema) && json_object_size(schema) == 0);
}

/* A count that is one more or one less: what a bound's opposite is. */
static void put_count(hn_schema *s, json_t *cases, const char *type, const char *keyword, int64_t n, int by) {
    if (n + by >= 0 && n + by <= HN_GRAMMAR_MAX_REPEAT) /* no text has more */
        put_case(s, cases, json_pack("{s:s,s:I}", "type", type, keyword, (json_int_t)n + by));
}

/* False: it is none. */
static bool put_bound(hn_schema *s, json_t *cases, const json_t *of, const char *key, int32_t path) {
    static const struct { const char *key, *type, *opposite; int by; } bounds[] = {
        {"minimum", "number", "exclusiveMaximum", 0},    {"maximum", "number", "exclusiveMinimum", 0},
        {"exclusiveMinimum", "number", "maximum", 0},    {"exclusiveMaximum", "number", "minimum", 0},
        {"minLength", "string", "maxLength", -1},        {"maxLength", "string", "minLength", 1},
        {"minItems", "array", "maxItems", -1},           {"maxItems", "array", "minItems", 1},
        {"minProperties", "object", "maxProperties", -1}, {"maxProperties", "object", "minProperties", 1}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (strcmp(bounds[i].key, key) != 0) continue;
        const hn_schema_item x = {.node = of, .path = path};
        int64_t n = -1;
        if (bounds[i].by && hn_schema_count(s, &x, key, true, &n))
            put_count(s, cases, bounds[i].type, bounds[i].opposite, n, bounds[i].by);
        else if (!bounds[i].by && hn_schema_bound(s, &x, key))
            put_case(s, cases, json_pack("{s:s,s:O}", "type", bounds[i].type, bounds[i].opposite, json_object_get(of, key)));
        return true;
    }
    return false;
}

static void put_properties(hn_schema *s, json_t *cases, const json_t *value) {
    json_t *object = (json_t *)(uintptr_t)value, *one; /* which iterating does not change */
    const char *name;
    json_object_foreach(object, name, one) {
        if (is_any(one)) continue;
        json_t *with = property_of(s, name, not_of(s, one)), *names = json_pack("{s:s,s:[s]}", "type", "object", "required", name);
        if (json_object_update(names, with)) hn_builder_no_memory(s->b);
        json_decref(with);
        put_case(s, cases, names);
    }
}

/* path: of the list. */
static void put_required(hn_schema *s, json_t *cases, const json_t *value, int32_t path) {
    if (!hn_schema_is_names(value)) hn_schema_fail(s, path, "expected a list of names");
    for (size_t i = 0; !s->b->failed && i < json_array_size(value); i++) {
        json_t *without = property_of(s, json_string_value(json_array_get(value, i)), json_false());
        if (json_object_set_new(without, "type", json_string("object"))) hn_builder_no_memory(s->b);
        put_case(s, cases, without);
    }
}

static void put_lists(hn_schema *s, json_t *cases, const char *key, const json_t *value) {
    json_t *each = json_array();
    for (size_t i = 0; i < json_array_size(value); i++) put_case(s, each, not_of(s, json_array_get(value, i)));
    if (strcmp(key, "allOf") == 0)
        put_all(s, cases, each);
    else
        put_case(s, cases, json_pack("{s:O}", "allOf", each));
    json_decref(each);
}

/* Keywords beside which the opposites of the others are all. */
static bool adds_nothing(const json_t *of, const char *key, const json_t *value) {
    if (strcmp(key, "then") == 0 || strcmp(key, "else") == 0) return !json_object_get(of, "if");
    if (strcmp(key, "nullable") == 0 || strcmp(key, "uniqueItems") == 0) return json_is_false(value);
    if (strcmp(key, "additionalProperties") == 0) return is_any(value);
    return strcmp(key, "$defs") == 0 || strcmp(key, "definitions") == 0 || hn_schema_says_nothing(key);
}

/* The cases in which one keyword of a schema does not hold; false: they cannot be told. */
static bool put_opposite(hn_schema *s, json_t *cases, const json_t *of, const char *key, const json_t *value, int32_t path) {
    if (adds_nothing(of, key, value) || put_bound(s, cases, of, key, path)) return true;
    if (strcmp(key, "type") == 0 || strcmp(key, "enum") == 0 || strcmp(key, "const") == 0)
        put_case(s, cases, json_pack("{s:{s:O}}", "not", key, value));
    else if (strcmp(key, "pattern") == 0)
        put_case(s, cases, json_pack("{s:s,s:{s:O}}", "type", "string", "not", key, value));
    else if (strcmp(key, "required") == 0)
        put_required(s, cases, value, hn_schema_step(s, path, key));
    else if (strcmp(key, "properties") == 0 && hn_json_is_object(value))
        put_properties(s, cases, value);
    else if (strcmp(key, "not") == 0)
        put_case(s, cases, json_incref((json_t *)(uintptr_t)value));
    else if (strcmp(key, "items") == 0 && !json_object_get(of, "prefixItems") && !json_is_array(value)) {
        if (!is_any(value)) put_case(s, cases, json_pack("{s:s,s:o}", "type", "array", "contains", not_of(s, value)));
    } else if (strcmp(key, "contains") == 0 && !json_object_get(of, "minContains") && !json_object_get(of, "maxContains"))
        put_case(s, cases, json_pack("{s:s,s:o}", "type", "array", "items", not_of(s, value)));
    else if ((strcmp(key, "allOf") == 0 || strcmp(key, "anyOf") == 0) && json_is_array(value))
        put_lists(s, cases, key, value);
    else if (strcmp(key, "$ref") == 0) {
        const json_t *to = hn_schema_resolve(s, value, hn_schema_step(s, path, key));
        if (to) put_case(s, cases, not_of(s, to));
    } else
        return false;
    return true;
}

/* One of these holds if a schema does not. */
static json_t *opposites(hn_schema *s, const json_t *of, int32_t path) {
    json_t *cases = json_array(), *object = (json_t *)(uintptr_t)of, *value;
    const char *key;
    if (json_is_false(of)) put_case(s, cases, json_true());
    if (!json_is_boolean(of) && !hn_json_is_object(of)) hn_schema_fail(s, path, "expected a schema: an object, true or false");
    if (!hn_json_is_object(of)) return cases;
    if (!hn_schema_check(s, of, path)) return cases;
    json_object_foreach(object, key, value) {
        if (s->b->failed || !hn_schema_worked(s, path, HN_SCHEMA_STEPS)) break;
        if (put_opposite(s, cases, of, key, value, path) || s->b->failed) continue;
        if (!hn_schema_refuse(s, hn_schema_step(s, path, key), "the opposite of %s is not supported", key)) break;
        json_array_clear(cases); /* not is ignored */
        put_case(s, cases, json_true());
        break;
    }
    return cases;
}

/* ---- if, then, else ---- */

static json_t *branches(hn_schema *s, const json_t *of) {
    json_t *test = json_object_get(of, "if"), *then = json_object_get(of, "then"), *other = json_object_get(of, "else");
    json_t *all = json_array();
    if (!then && !other) { /* it says nothing */
        put_case(s, all, json_true());
        return all;
    }
    put_case(s, all, json_pack("{s:[O,O]}", "allOf", test, then ? then : json_true()));
    put_case(s, all, json_pack("{s:[o,O]}", "allOf", not_of(s, test), other ? other : json_true()));
    return all;
}

/* A branch holds and none of the others. */
static json_t *only_one(hn_schema *s, const json_t *of) {
    const json_t *one_of = json_object_get(of, "oneOf");
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(one_of); i++) {
        json_t *each = json_array();
        for (size_t k = 0; k < json_array_size(one_of); k++)
            put_case(s, each, k == i ? json_incref(json_array_get(one_of, k)) : not_of(s, json_array_get(one_of, k)));
        put_case(s, all, json_pack("{s:o}", "allOf", each));
    }
    return all;
}

/* ---- more that must hold ---- */

/* If a property is there others are, or a schema holds. */
static bool put_dependency(hn_schema *s, json_t *more, const char *name, const json_t *value, int32_t path) {
    if (!hn_schema_is_names(value) && !json_is_boolean(value) && !hn_json_is_object(value))
        return hn_schema_fail(s, path, "expected a list of names or a schema") >= 0;
    json_t *with = json_pack("{s:[s]}", "required", name);
    if (json_is_array(value))
        put_all(s, json_object_get(with, "required"), value);
    else if (json_object_set_new(with, "allOf", json_pack("[O]", value)))
        hn_builder_no_memory(s->b);
    put_case(s, more, json_pack("{s:[o,o]}", "anyOf", property_of(s, name, json_false()), with));
    return !s->b->failed;
}

static bool put_dependencies(hn_schema *s, json_t *more, const json_t *of, const char *keyword, int32_t path) {
    json_t *all = json_object_get(of, keyword), *value;
    const char *name;
    if (!all) return true;
    path = hn_schema_step(s, path, keyword);
    if (!hn_json_is_object(all)) return hn_schema_fail(s, path, "expected an object") >= 0;
    json_object_foreach(all, name, value)
        if (!put_dependency(s, more, name, value, hn_schema_step(s, path, name))) return false;
    return true;
}

/* Formats that bound numbers. */
static void put_format(hn_schema *s, json_t *more, const json_t *of) {
    static const struct { const char *format, *bounds; } known[] = {
        {"int8", "{\"minimum\":-128,\"maximum\":127}"}, {"uint8", "{\"minimum\":0,\"maximum\":255}"},
        {"int16", "{\"minimum\":-32768,\"maximum\":32767}"}, {"uint16", "{\"minimum\":0,\"maximum\":65535}"},
        {"int32", "{\"minimum\":-2147483648,\"maximum\":2147483647}"}, {"uint32", "{\"minimum\":0,\"maximum\":4294967295}"},
        {"int64", "{\"minimum\":-9223372036854775808,\"maximum\":9223372036854775807}"},
        {"uint64", "{\"minimum\":0,\"maximum\":18446744073709551615}"}};
    const char *format = json_string_value(json_object_get(of, "format"));
    for (size_t i = 0; format && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].format, format) == 0)
            put_case(s, more, hn_json_load(known[i].bounds, strlen(known[i].bounds), 0, NULL));
}

static const char *const dependencies[] = {"dependentRequired", "dependentSchemas", "dependencies"};
enum { DEPENDENCIES = sizeof dependencies / sizeof *dependencies };

static bool has_more(const json_t *of) {
    bool has = json_object_get(of, "format") != NULL;
    for (size_t i = 0; i < DEPENDENCIES; i++) has |= json_object_get(of, dependencies[i]) != NULL;
    return has;
}

static json_t *more_of(hn_schema *s, const json_t *of, int32_t path) {
    json_t *more = json_array();
    for (size_t i = 0; i < DEPENDENCIES; i++)
        if (!put_dependencies(s, more, of, dependencies[i], path)) break;
    put_format(s, more, of);
    return more;
}

/* ---- all of them ---- */

static json_t *make(hn_schema *s, const json_t *of, hn_schema_what what, int32_t path) {
    switch (what) {
    case HN_MADE_NOT: return json_pack("{s:O}", "not", of);
    case HN_MADE_CASES: return opposites(s, json_object_get(of, "not"), path);
    case HN_MADE_BRANCHES: return branches(s, of);
    case HN_MADE_ONLY: return only_one(s, of);
    case HN_MADE_MORE: return more_of(s, of, path);
    case HN_MADE_KEPT: break;
    }
    return NULL;
}

const json_t *hn_schema_make(hn_schema *s, const json_t *of, hn_schema_what what, int32_t path) {
    if (s->b->failed || (what == HN_MADE_MORE && !has_more(of))) return NULL;
    if (!s->cap_made && !made_grow(s)) return NULL;
    const json_t *there = s->made[slot_of(s, of, what)].made;
    if (there) return there;
    if (!hn_schema_worked(s, path, HN_SCHEMA_STEPS)) return NULL;
    json_t *made = make(s, of, what, path); /* which may make others */
    if (2 * (s->n_made + 1) > s->cap_made && !made_grow(s)) return json_decref(made), NULL;
    return put(s, of, what, made);
}
