/* SPDX-License-Identifier: Apache-2.0 */
/* schema_keywords.c - which keywords are honoured, which say nothing about a value, and which are refused. Nothing that constrains is
 * ignored: a keyword that is not in the table is refused too. */
#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "grammar/schema.h"

enum { HONOURED, IGNORED, REFUSED };

static const struct { const char *name; int what; } keywords[] = {
    {"$ref", HONOURED},          {"$defs", HONOURED},           {"definitions", HONOURED},      {"type", HONOURED},
    {"enum", HONOURED},          {"const", HONOURED},           {"allOf", HONOURED},            {"anyOf", HONOURED},
    {"oneOf", HONOURED},         {"properties", HONOURED},      {"required", HONOURED},         {"additionalProperties", HONOURED},
    {"minProperties", HONOURED}, {"maxProperties", HONOURED},   {"items", HONOURED},            {"prefixItems", HONOURED},
    {"minItems", HONOURED},      {"maxItems", HONOURED},        {"minLength", HONOURED},        {"maxLength", HONOURED},
    {"pattern", HONOURED},       {"format", HONOURED},          {"minimum", HONOURED},          {"maximum", HONOURED},
    {"exclusiveMinimum", HONOURED}, {"exclusiveMaximum", HONOURED}, {"not", HONOURED},          {"if", HONOURED},
    {"then", HONOURED},          {"else", HONOURED},            {"multipleOf", HONOURED},       {"contains", HONOURED},
    {"minContains", HONOURED},   {"maxContains", HONOURED},     {"uniqueItems", HONOURED},      {"propertyNames", HONOURED},
    {"patternProperties", HONOURED}, {"dependentRequired", HONOURED}, {"dependentSchemas", HONOURED}, {"dependencies", HONOURED},
    {"additionalItems", HONOURED}, {"nullable", HONOURED},
    {"title", IGNORED},          {"description", IGNORED},      {"default", IGNORED},           {"examples", IGNORED},
    {"example", IGNORED},        {"$schema", IGNORED},          {"$id", IGNORED},               {"$comment", IGNORED},
    {"deprecated", IGNORED},     {"readOnly", IGNORED},         {"writeOnly", IGNORED},         {"$vocabulary", IGNORED},
    {"contentEncoding", IGNORED}, {"contentMediaType", IGNORED}, {"contentSchema", IGNORED},    {"discriminator", IGNORED},
    {"strict", IGNORED},
    {"unevaluatedProperties", REFUSED}, {"unevaluatedItems", REFUSED}, {"$dynamicRef", REFUSED}, {"$recursiveRef", REFUSED},
    {"$anchor", REFUSED},        {"$dynamicAnchor", REFUSED},   {"id", REFUSED}};
enum { KEYWORDS = sizeof keywords / sizeof *keywords };

/* Annotations by their names too. */
bool hn_schema_says_nothing(const char *keyword) {
    int i = 0;
    while (i < KEYWORDS && strcmp(keywords[i].name, keyword) != 0) i++;
    return i < KEYWORDS ? keywords[i].what == IGNORED : strncmp(keyword, "x-", 2) == 0;
}

static bool check_one(hn_schema *s, const char *name, int32_t path) {
    for (int i = 0; i < KEYWORDS; i++) {
        if (strcmp(keywords[i].name, name) != 0) continue;
        if (keywords[i].what != REFUSED) return true;
        return hn_schema_refuse(s, hn_schema_step(s, path, name), "%s is not supported", name);
    }
    if (hn_schema_says_nothing(name)) return true;
    const char *names[KEYWORDS];
    char hint[80];
    for (int i = 0; i < KEYWORDS; i++) names[i] = keywords[i].name;
    hn_nearest_hint(hint, sizeof hint, name, names, KEYWORDS);
    return hn_schema_refuse(s, hn_schema_step(s, path, name), "an unknown keyword%s", hint);
}

bool hn_schema_check(hn_schema *s, const json_t *node, int32_t path) {
    json_t *object = (json_t *)(uintptr_t)node; /* which iterating does not change */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
        if (!check_one(s, json_object_iter_key(i), path)) return false;
    return true;
}

bool hn_schema_is_names(const json_t *of) {
    size_t n = 0;
    while (json_is_string(json_array_get(of, n))) n++;
    return json_is_array(of) && n == json_array_size(of);
}

bool hn_schema_count(hn_schema *s, const hn_schema_item *item, const char *keyword, bool least, int64_t *v) {
    const json_t *given = json_object_get(item->node, keyword);
    if (!given) return true;
    const double n = hn_json_is_number(given) ? hn_json_number_value(given) : -1;
    if (!(n >= 0) || n != floor(n))
        return hn_schema_fail(s, hn_schema_step(s, item->path, keyword), "expected an integer of 0 or more") >= 0;
    const int64_t count = n > (double)HN_GRAMMAR_MAX_REPEAT ? HN_GRAMMAR_MAX_REPEAT + (int64_t)1 : (int64_t)n;
    if (least ? count > *v : *v < 0 || count < *v) *v = count;
    return true;
}

/* ---- types ---- */

static int type_named(const char *name) {
    static const struct { const char *name; int types; } all[] = {
        {"null", HN_SCHEMA_NULL}, {"boolean", HN_SCHEMA_BOOLEAN}, {"integer", HN_SCHEMA_INTEGER},
        {"number", HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION},
        {"string", HN_SCHEMA_STRING}, {"array", HN_SCHEMA_ARRAY}, {"object", HN_SCHEMA_OBJECT}};
    for (size_t i = 0; name && i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) return all[i].types;
    return 0;
}

int hn_schema_types(hn_schema *s, const json_t *node, int32_t path) {
    const json_t *type = json_object_get(node, "type");
    int types = 0;
    if (!type) return HN_SCHEMA_ANY;
    const size_t n = json_is_array(type) ? json_array_size(type) : 1;
    for (size_t i = 0; i < n; i++) {
        const int one = type_named(json_string_value(json_is_array(type) ? json_array_get(type, i) : type));
        if (!one)
            return hn_schema_fail(s, hn_schema_step(s, path, "type"),
                                  "expected null, boolean, integer, number, string, array or object, or a list of these");
        types |= one;
    }
    if (json_is_true(json_object_get(node, "nullable"))) types |= HN_SCHEMA_NULL; /* OpenAPI 3.0: beside `type` alone */
    return types;
}

int hn_schema_type_of(const json_t *value) {
    hn_decimal d;
    if (hn_json_is_number(value)) return hn_decimal_read(value, &d) && d.n_part ? HN_SCHEMA_FRACTION : HN_SCHEMA_INTEGER;
    switch (json_typeof(value)) {
    case JSON_NULL: return HN_SCHEMA_NULL;
    case JSON_TRUE:
    case JSON_FALSE: return HN_SCHEMA_BOOLEAN;
    case JSON_STRING: return HN_SCHEMA_STRING;
    case JSON_ARRAY: return HN_SCHEMA_ARRAY;
    default: return HN_SCHEMA_OBJECT;
    }
}
