/* SPDX-License-Identifier: Apache-2.0 */
/* serve_fields.c - see serve_fields.h. */
#include "server/serve_fields.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/serve_bytes.h"

/* Counts brackets and commas outside of texts: a value takes jansson twenty times the bytes of its text, and templates recurse. */
static bool fits(const char *at, size_t n, serve_error *err) {
    int depth = 0, values = 0;
    bool text = false;
    for (size_t i = 0; i < n; i++) {
        if (at[i] == '\\' && text) i++;
        else if (at[i] == '"') text = !text;
        else if (!text && (at[i] == '}' || at[i] == ']')) depth--;
        else if (!text && at[i] == ',') values++;
        else if (!text && (at[i] == '{' || at[i] == '[')) depth++;
        if (depth > SERVE_MOST_DEPTH) return serve_fail(err, 400, NULL, "the body is nested deeper than %d", SERVE_MOST_DEPTH);
        if (values > SERVE_MOST_VALUES) return serve_fail(err, 400, NULL, "the body has more than %d values", SERVE_MOST_VALUES);
    }
    return true;
}

/* U+0000 may stand in a prompt, which is a list of tokens in any case; no other text may have it. */
static bool texts_check(const json_t *value, const char *name, bool may, serve_error *err) {
    size_t i;
    const char *key;
    json_t *one;
    if (json_is_string(value) && !may && strlen(json_string_value(value)) != json_string_length(value))
        return serve_fail(err, 400, name, "%s has the character U+0000, which only a prompt may have", name);
    json_array_foreach((json_t *)(uintptr_t)value, i, one) if (!texts_check(one, name, may, err)) return false;
    json_object_foreach((json_t *)(uintptr_t)value, key, one) if (!texts_check(one, name, may, err)) return false;
    return true;
}

static bool body_check(json_t *body, serve_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach(body, key, value) {
        const bool may = strcmp(key, "prompt") == 0 || (strcmp(key, "content") == 0 && json_is_string(value));
        if (!texts_check(value, key, may, err)) return false;
    }
    return true;
}

json_t *serve_body_parse(const char *bytes, size_t n, serve_error *err) {
    json_error_t why;
    if (n == 0) return serve_fail(err, 400, NULL, "the body is empty: expected a JSON object"), NULL;
    if (!fits(bytes, n, err)) return NULL;
    json_t *body = hn_json_load(bytes, n, JSON_ALLOW_NUL, &why);
    if (!body) return serve_fail(err, 400, NULL, "the body is not JSON: %s (line %d)", why.text, why.line), NULL;
    if (hn_json_is_object(body)) {
        if (body_check(body, err)) return body;
        json_decref(body);
        return NULL;
    }
    json_decref(body);
    return serve_fail(err, 400, NULL, "the body is not a JSON object"), NULL;
}

json_t *serve_field(const json_t *body, const char *name) {
    json_t *value = json_object_get(body, name);
    return json_is_null(value) ? NULL : value;
}

/* Of an object within the body the name begins with its own: "speculation.depth". */
static const json_t *named(const json_t *body, const char *name) {
    const char *dot = strrchr(name, '.');
    return serve_field(body, dot ? dot + 1 : name);
}

bool serve_field_bool(const json_t *body, const char *name, bool *out, serve_error *err) {
    const json_t *value = named(body, name);
    if (!value) return true;
    if (!json_is_boolean(value)) return serve_fail(err, 400, name, "%s is not true or false", name);
    *out = json_is_true(value);
    return true;
}

bool serve_field_int(const json_t *body, const char *name, int64_t least, int64_t most, int64_t *out, serve_error *err) {
    const json_t *value = named(body, name);
    if (!value) return true;
    if (!json_is_integer(value) || json_integer_value(value) < least || json_integer_value(value) > most)
        return serve_fail_value(err, name, value, "%s is not a whole number from %lld to %lld", name, (long long)least, (long long)most);
    *out = json_integer_value(value);
    return true;
}

bool serve_field_text(const json_t *body, const char *name, const char **out, serve_error *err) {
    const json_t *value = serve_field(body, name);
    if (!value) return true;
    if (!json_string_length(value)) return serve_fail(err, 400, name, "%s is not a text, or is empty", name);
    *out = json_string_value(value);
    return true;
}

bool serve_ids_read(const json_t *list, const char *name, int vocab, int32_t **ids, size_t *n, serve_error *err) {
    const size_t count = json_array_size(list);
    int32_t *to = serve_alloc(count, sizeof *to);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, i);
        if (!json_is_integer(one) || json_integer_value(one) < 0 || json_integer_value(one) >= vocab) {
            hn_free(to);
            return serve_fail_value(err, name, one, "%s[%zu] is not a token id of the model, 0 to %d", name, i, vocab - 1);
        }
        to[i] = (int32_t)json_integer_value(one);
    }
    *ids = to;
    *n = count;
    return true;
}
