/* SPDX-License-Identifier: Apache-2.0 */
/* serve_fields.c - see serve_fields.h. */
#include "server/protocols/serve_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/http/serve_bytes.h"

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

json_t *serve_value(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

/* ---- views -------------------------------------------------------------------------------------------------- */

/* The value at a path, "text.format". */
static json_t *path_get(const json_t *object, const char *path) {
    char key[SERVE_NAME];
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
        object = serve_value(object, key);
    }
    return serve_value(object, path);
}

/* The entry of a field, or of the object that it is in: of several names the first that the body has, else the first. NULL: the protocol
 * has none. *rest: what of our name is behind the entry's. */
static const serve_name *entry_find(const serve_view *v, const char *name, const char **rest) {
    const serve_name *first = NULL;
    for (const serve_name *at = v->names; at && at->theirs; at++) {
        const size_t n = strlen(at->ours);
        if (strncmp(at->ours, name, n) != 0 || (name[n] && name[n] != '.' && name[n] != '[')) continue;
        const bool has = path_get(v->body, at->theirs) != NULL;
        if (first && !has) continue;
        first = at;
        *rest = name + n;
        if (has) return at;
    }
    return first;
}

json_t *serve_field(const serve_view *v, const char *name) {
    const char *rest = "";
    const serve_name *entry = entry_find(v, name, &rest);
    if (!v->names) return path_get(v->body, name);
    if (!entry) return NULL;
    json_t *value = path_get(v->body, entry->theirs);
    if (*rest) return path_get(value, rest + 1);
    const json_int_t n = json_integer_value(value);
    return entry->none && json_is_integer(value) && n >= entry->from && n <= entry->to ? NULL : value;
}

const char *serve_field_name(const serve_view *v, const char *name, char to[SERVE_NAME]) {
    const char *rest = name;
    const serve_name *entry = entry_find(v, name, &rest);
    snprintf(to, SERVE_NAME, "%s%s%s%s", v->within ? v->within : "", v->within ? "." : "", entry ? entry->theirs : "", rest);
    return to;
}

static void wrong(serve_error *err, const serve_view *v, const char *name, const char *fmt, va_list list) {
    char field[SERVE_NAME], text[sizeof err->message];
    vsnprintf(text, sizeof text, fmt, list);
    serve_field_name(v, name, field);
    serve_fail(err, 400, field, "%s%.*s", field, (int)(sizeof text - sizeof field), text);
}

bool serve_wrong(serve_error *err, const serve_view *v, const char *name, const char *fmt, ...) {
    va_list list;
    va_start(list, fmt);
    wrong(err, v, name, fmt, list);
    va_end(list);
    return false;
}

bool serve_wrong_value(serve_error *err, const serve_view *v, const char *name, const json_t *value, const char *fmt, ...) {
    char shown[100];
    va_list list;
    va_start(list, fmt);
    wrong(err, v, name, fmt, list);
    va_end(list);
    const size_t n = strlen(err->message);
    snprintf(err->message + n, sizeof err->message - n, ", it is %s", hn_json_show(value, shown, sizeof shown));
    return false;
}

/* ---- kinds of fields ----------------------------------------------------------------------------------------- */

bool serve_field_bool(const serve_view *v, const char *name, bool *out, serve_error *err) {
    const json_t *value = serve_field(v, name);
    if (!value) return true;
    if (!json_is_boolean(value)) return serve_wrong(err, v, name, " is not true or false");
    *out = json_is_true(value);
    return true;
}

bool serve_field_int(const serve_view *v, const char *name, int64_t least, int64_t most, int64_t *out, serve_error *err) {
    const json_t *value = serve_field(v, name);
    const char *rest;
    if (!value) return true;
    if (json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= most)
        return *out = json_integer_value(value), true;
    const serve_name *entry = entry_find(v, name, &rest);
    return serve_wrong_value(err, v, name, value, " is not a whole number from %lld to %lld",
                             (long long)(entry && entry->none && entry->from < least ? entry->from : least), (long long)most);
}

bool serve_field_text(const serve_view *v, const char *name, const char **out, serve_error *err) {
    const json_t *value = serve_field(v, name);
    if (!value) return true;
    if (!json_string_length(value)) return serve_wrong(err, v, name, " is not a text, or is empty");
    *out = json_string_value(value);
    return true;
}

bool serve_field_word(const serve_view *v, const char *name, const char *const *words, const char **out, serve_error *err) {
    const json_t *value = serve_field(v, name);
    const char *given = json_string_value(value);
    char all[200] = "";
    if (!value) return true;
    for (size_t i = 0, at = 0; words[i]; i++) {
        if (given && strcmp(given, words[i]) == 0) return *out = given, true;
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", words[i]);
        if (at >= sizeof all) break;
    }
    return serve_wrong(err, v, name, " is none of %s", all);
}

bool serve_ids_read(const serve_view *v, const char *name, const json_t *list, int vocab, int32_t **ids, size_t *n, serve_error *err) {
    const size_t count = json_array_size(list);
    int32_t *to = serve_alloc(count, sizeof *to);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, i);
        if (!json_is_integer(one) || json_integer_value(one) < 0 || json_integer_value(one) >= vocab) {
            hn_free(to);
            return serve_wrong_value(err, v, name, one, "[%zu] is not a token id of the model, 0 to %d", i, vocab - 1);
        }
        to[i] = (int32_t)json_integer_value(one);
    }
    *ids = to;
    *n = count;
    return true;
}

bool serve_kinds_check(const serve_view *v, const serve_expected *list, serve_error *err) {
    static const char *const words[] = {"a text", "true or false", "a whole number", "a number", "an object", "a list"};
    for (const serve_expected *e = list; e->name; e++) {
        const json_t *value = serve_field(v, e->name);
        const char *digits = hn_json_digits(value);
        const bool fits[] = {json_is_string(value), json_is_boolean(value), json_is_integer(value) || (digits && hn_json_is_whole(digits)),
                             hn_json_is_number(value), hn_json_is_object(value), json_is_array(value)};
        if (value && !fits[e->kind]) return serve_wrong_value(err, v, e->name, value, " is not %s", words[e->kind]);
    }
    return true;
}

bool serve_only_check(const serve_view *v, const serve_only *list, serve_error *err) {
    for (const serve_only *o = list; o->name; o++) {
        const json_t *value = serve_field(v, o->name);
        if (value && (!json_is_number(value) || json_number_value(value) != o->value))
            return serve_wrong_value(err, v, o->name, value, ": only %g is supported", o->value);
    }
    return true;
}

bool serve_switch_check(const serve_view *v, const char *name, bool must, serve_error *err) {
    bool value = must;
    if (!serve_field_bool(v, name, &value, err)) return false;
    return value == must ? true : serve_wrong(err, v, name, ": only %s is supported", must ? "true" : "false");
}

static bool asks_nothing(const json_t *value) {
    return json_is_false(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (hn_json_is_object(value) && json_object_size(value) == 0) || (json_is_integer(value) && json_integer_value(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

bool serve_refused_check(const serve_view *v, const char *const *names, const char *why, serve_error *err) {
    for (; *names; names++) {
        const json_t *value = serve_field(v, *names);
        if (value && !asks_nothing(value)) return serve_wrong(err, v, *names, " is not supported%s", why);
    }
    return true;
}
