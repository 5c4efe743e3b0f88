/* SPDX-License-Identifier: Apache-2.0 */
/* call_args.c - arguments that a model writes one by one become a JSON object; their types are those of the function's schema. */
#include "base/json_load.h"
#include "calls/call_reader.h"

bool hn_json_escape(hn_bytes *out, const char *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef";
    bool ok = true;
    for (size_t i = 0, from = 0; i <= n; i++) {
        const unsigned char c = i < n ? (unsigned char)bytes[i] : 0;
        if (i < n && c >= 0x20 && c != '"' && c != '\\') continue;
        ok = ok && hn_bytes_add(out, bytes + from, i - from);
        from = i + 1;
        if (i == n) break;
        const char *names = "\"\\\b\f\n\r\t", *at = c ? strchr(names, c) : NULL;
        char code[6] = {'\\', at ? "\"\\bfnrt"[at - names] : 'u', '0', '0', digits[c >> 4], digits[c & 15]};
        ok = ok && hn_bytes_add(out, code, at ? 2 : 6);
    }
    return ok;
}

void hn_args_string(hn_call_reader *r, const char *bytes, size_t n) {
    if (!hn_json_escape(&r->args, bytes, n)) r->failed = true;
    hn_call_args(r, NULL, 0);
}

void hn_args_member(hn_call_reader *r, const char *key, size_t n) {
    hn_call_args(r, r->members ? ", \"" : "{\"", r->members ? 3 : 2);
    r->members++;
    hn_args_string(r, key, n);
    hn_call_args(r, "\": ", 3);
}

void hn_args_close(hn_call_reader *r) {
    hn_call_args(r, r->members ? "}" : "{}", r->members ? 1 : 2);
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

/* The type of a JSON value by its first byte. */
static unsigned type_of(const char *json, size_t n) {
    switch (*json) {
    case '"': return HN_TYPE_STRING;
    case '{': return HN_TYPE_OBJECT;
    case '[': return HN_TYPE_ARRAY;
    case 't':
    case 'f': return HN_TYPE_BOOLEAN;
    case 'n': return HN_TYPE_NULL;
    default: break;
    }
    for (size_t i = 0; i < n; i++)
        if (strchr(".eE", json[i])) return HN_TYPE_NUMBER;
    return HN_TYPE_NUMBER | HN_TYPE_INTEGER;
}

/* Where strings are allowed too, only what is of one of the other types counts as that. */
static bool type_fits(unsigned types, const char *json, size_t n) {
    return !(types & HN_TYPE_STRING) || (type_of(json, n) & types & ~(unsigned)HN_TYPE_STRING);
}

static bool python_add(hn_call_reader *r, unsigned types, const char *bytes, size_t n) {
    hn_literal l;
    hn_bytes json = {0};
    size_t used = 0;
    hn_literal_init(&l, HN_PYTHON);
    const bool is = hn_literal_run(&l, bytes, n, true, &used, &json) == HN_LITERAL_DONE && used == n && json.n > 0 &&
                    type_fits(types, json.at, json.n);
    if (is) hn_call_args(r, json.at, json.n);
    r->failed = r->failed || l.no_memory;
    hn_bytes_free(&json);
    return is;
}

void hn_args_value(hn_call_reader *r, unsigned types, const char *bytes, size_t n) {
    const char *inner = bytes;
    size_t len = n;
    while (len && hn_is_space(*inner)) inner++, len--;
    while (len && hn_is_space(inner[len - 1])) len--;
    if (len && types != HN_TYPE_STRING) {
        if (hn_json_is_value(inner, len) && type_fits(types, inner, len)) {
            hn_call_args(r, inner, len);
            return;
        }
        if (python_add(r, types, inner, len)) return;
    }
    hn_call_args(r, "\"", 1);
    hn_args_string(r, bytes, n);
    hn_call_args(r, "\"", 1);
}

/* ---- schemas ----------------------------------------------------------------------------------------------------------- */

enum { DEEPEST_SCHEMA = 16 };

static unsigned type_named(const char *name) {
    static const struct { const char *name; unsigned type; } types[] = {
        {"string", HN_TYPE_STRING},   {"number", HN_TYPE_NUMBER}, {"integer", HN_TYPE_INTEGER}, {"boolean", HN_TYPE_BOOLEAN},
        {"null", HN_TYPE_NULL},       {"array", HN_TYPE_ARRAY},   {"object", HN_TYPE_OBJECT}};
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0) return types[i].type;
    return 0;
}

static unsigned type_of_value(const json_t *v) {
    const char *digits = hn_json_digits(v);
    if (digits) return hn_json_is_whole(digits) ? HN_TYPE_INTEGER : HN_TYPE_NUMBER;
    switch (json_typeof(v)) {
    case JSON_STRING: return HN_TYPE_STRING;
    case JSON_INTEGER: return HN_TYPE_INTEGER;
    case JSON_REAL: return HN_TYPE_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE: return HN_TYPE_BOOLEAN;
    case JSON_NULL: return HN_TYPE_NULL;
    case JSON_ARRAY: return HN_TYPE_ARRAY;
    default: return HN_TYPE_OBJECT;
    }
}

const json_t *hn_schema_at(const json_t *root, const char *ref) {
    if (*ref++ != '#') return NULL;
    while (*ref == '/') {
        char key[HN_LONGEST_NAME];
        const size_t n = strcspn(++ref, "/");
        if (n >= sizeof key) return NULL;
        memcpy(key, ref, n);
        key[n] = 0;
        root = json_object_get(root, key);
        ref += n;
    }
    return root;
}

static unsigned schema_types(const json_t *root, const json_t *schema, int depth) {
    static const char *const lists[] = {"anyOf", "oneOf", "allOf"};
    const json_t *type = json_object_get(schema, "type"), *one;
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    unsigned types = type_named(json_string_value(type));
    size_t i;
    json_array_foreach(type, i, one) types |= type_named(json_string_value(one));
    if (types || depth == DEEPEST_SCHEMA) return types;
    if (ref) return schema_types(root, hn_schema_at(root, ref), depth + 1);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const json_t *list = json_object_get(schema, lists[k]);
        json_array_foreach(list, i, one) types |= schema_types(root, one, depth + 1);
    }
    if (types) return types;
    if (json_object_get(schema, "const")) return type_of_value(json_object_get(schema, "const"));
    const json_t *values = json_object_get(schema, "enum");
    json_array_foreach(values, i, one) types |= type_of_value(one);
    return types;
}

unsigned hn_value_types(const hn_tool_function *f, const json_t *schema) {
    return schema_types(f->parameters, schema, 0);
}

unsigned hn_param_types(const hn_tool_function *f, const char *param, size_t n) {
    const json_t *properties = json_object_get(f ? f->parameters : NULL, "properties");
    const json_t *schema = json_object_getn(properties, param, n);
    if (!schema) return HN_TYPE_STRING;
    const unsigned types = schema_types(f->parameters, schema, 0);
    return types ? types : HN_TYPE_OTHERS;
}
