/* SPDX-License-Identifier: Apache-2.0 */
/* schema_for_tests.h - whether a JSON value is valid under a schema, by the plain definition of a few keywords; another keyword fails the
 * test. Include after cmocka. */
#ifndef HN_SCHEMA_FOR_TESTS_H
#define HN_SCHEMA_FOR_TESTS_H
#include <jansson.h>
#include <string.h>

#include "base/helper_for_tests.h"

HELPER bool schema_type_is(const char *type, const json_t *v) {
    if (!strcmp(type, "object")) return json_is_object(v);
    if (!strcmp(type, "array")) return json_is_array(v);
    if (!strcmp(type, "string")) return json_is_string(v);
    if (!strcmp(type, "integer")) return json_is_integer(v);
    if (!strcmp(type, "number")) return json_is_number(v);
    if (!strcmp(type, "boolean")) return json_is_boolean(v);
    return json_is_null(v);
}

HELPER size_t schema_characters(const json_t *v) {
    size_t n = 0;
    for (const char *s = json_string_value(v); *s; s++) n += (*s & 0xC0) != 0x80;
    return n;
}

/* "#", or "#/$defs/NAME". */
HELPER const json_t *schema_at(const json_t *root, const char *ref) {
    return strcmp(ref, "#") ? json_object_get(json_object_get(root, "$defs"), strrchr(ref, '/') + 1) : root;
}

HELPER bool schema_valid(const json_t *root, const json_t *schema, const json_t *v);

HELPER bool schema_object_valid(const json_t *root, const json_t *schema, const json_t *v) {
    const json_t *properties = json_object_get(schema, "properties"), *more = json_object_get(schema, "additionalProperties");
    const json_t *required = json_object_get(schema, "required");
    const char *key;
    json_t *one;
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(v, json_string_value(json_array_get(required, i)))) return false;
    json_object_foreach((json_t *)(uintptr_t)v, key, one) {
        const json_t *of = json_object_get(properties, key);
        if (!of) of = more;
        if (of && !schema_valid(root, of, one)) return false;
    }
    return true;
}

HELPER bool schema_array_valid(const json_t *root, const json_t *schema, const json_t *v) {
    const json_t *items = json_object_get(schema, "items"), *least = json_object_get(schema, "minItems"),
                 *most = json_object_get(schema, "maxItems");
    for (size_t i = 0; items && i < json_array_size(v); i++)
        if (!schema_valid(root, items, json_array_get(v, i))) return false;
    return (!least || (json_int_t)json_array_size(v) >= json_integer_value(least)) &&
           (!most || (json_int_t)json_array_size(v) <= json_integer_value(most));
}

HELPER bool schema_key_valid(const json_t *root, const json_t *schema, const char *key, const json_t *want, const json_t *v) {
    const double x = json_number_value(v), y = json_number_value(want);
    bool found = false;
    if (!strcmp(key, "type") && json_is_string(want)) return schema_type_is(json_string_value(want), v);
    if (!strcmp(key, "const")) return json_equal(want, v);
    if (!strcmp(key, "$ref")) return schema_valid(root, schema_at(root, json_string_value(want)), v);
    if (!strcmp(key, "minimum")) return !json_is_number(v) || x >= y;
    if (!strcmp(key, "maximum")) return !json_is_number(v) || x <= y;
    if (!strcmp(key, "minLength")) return !json_is_string(v) || schema_characters(v) >= (size_t)y;
    if (!strcmp(key, "maxLength")) return !json_is_string(v) || schema_characters(v) <= (size_t)y;
    if (!strcmp(key, "properties")) return !json_is_object(v) || schema_object_valid(root, schema, v);
    if (!strcmp(key, "items")) return !json_is_array(v) || schema_array_valid(root, schema, v);
    for (size_t i = 0; i < json_array_size(want) && !found; i++) {
        const json_t *one = json_array_get(want, i);
        found = !strcmp(key, "type")    ? schema_type_is(json_string_value(one), v)
                : !strcmp(key, "enum")  ? json_equal(one, v)
                : !strcmp(key, "anyOf") ? schema_valid(root, one, v)
                                        : true;
    }
    if (!strcmp(key, "type") || !strcmp(key, "enum") || !strcmp(key, "anyOf")) return found;
    static const char *const with_others[] = {"required", "additionalProperties", "minItems", "maxItems", "$defs"};
    for (size_t i = 0; i < sizeof with_others / sizeof *with_others; i++)
        if (!strcmp(key, with_others[i])) return true;
    fail_msg("schema_for_tests.h does not know the keyword %s", key);
    return false;
}

HELPER bool schema_valid(const json_t *root, const json_t *schema, const json_t *v) {
    const char *key;
    json_t *want;
    if (json_is_boolean(schema)) return json_is_true(schema);
    json_object_foreach((json_t *)(uintptr_t)schema, key, want)
        if (!schema_key_valid(root, schema, key, want, v)) return false;
    return true;
}
#endif
