/* SPDX-License-Identifier: Apache-2.0 */
/* serve_translate.c - see serve_translate.h. */
#include "server/serve_translate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/request_parameters.h"
#include "server/serve_answer.h"
#include "server/serve_fields.h"
#include "server/serve_prompt.h"
#include "server/serve_request.h"

#define SAME(name) {name, name, false}
const serve_name serve_own_names[] = {
    SAME("model"), SAME("speculation"), SAME("prediction"), SAME("speculation_metrics"), SAME("timings"), SAME("deadline"),
    SAME("cache_salt"), SAME("service_tier"), SAME("chat_template_kwargs"), SAME("structured_outputs"), {NULL, NULL, false}};
const serve_name serve_sampling_names[] = {
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, ...) SAME(SERVED),
    HN_SAMPLING_NUMBERS(ROW)
#undef ROW
    SAME("dry_sequence_breakers"), SAME("logit_bias"), SAME("seed"), SAME("min_tokens"), SAME("ignore_eos"),
    SAME("stop_token_ids"), {NULL, NULL, false}};
#undef SAME

void serve_translate(json_t *to, const json_t *from, const serve_name *names) {
    for (const serve_name *n = names; n->theirs; n++) {
        const char *dot = strrchr(n->theirs, '.');
        json_t *value = n->made ? NULL : serve_field(from, dot ? dot + 1 : n->theirs);
        if (value) json_object_set(to, n->ours, value);
    }
}

json_t *serve_translated(const json_t *from, const serve_name *names) {
    json_t *to = json_object();
    serve_translate(to, from, serve_own_names);
    serve_translate(to, from, serve_sampling_names);
    serve_translate(to, from, names);
    return to;
}

/* The list's entry of one of our names, of its first `n` bytes; NULL: there is none. */
static const serve_name *name_find(const serve_name *names, const char *ours, size_t n) {
    for (const serve_name *at = names; at->theirs; at++)
        if (strlen(at->ours) == n && strncmp(at->ours, ours, n) == 0) return at;
    return NULL;
}

/* A message begins with the field that it is about. */
bool serve_translate_error(serve_error *err, const serve_name *names) {
    serve_error was = *err;
    size_t n = 0;
    while (was.param[n] && was.param[n] != '.' && was.param[n] != '[') n++;
    const serve_name *whole = name_find(names, was.param, strlen(was.param)), *name = whole ? whole : name_find(names, was.param, n);
    if (!was.param[0] || !name) return false;
    if (whole) n = strlen(was.param);
    snprintf(err->param, sizeof err->param, "%s%.40s", name->theirs, was.param + n);
    if (strncmp(was.message, name->ours, n) == 0 && !isalnum((unsigned char)was.message[n]) && was.message[n] != '_')
        snprintf(err->message, sizeof err->message, "%s%.900s", name->theirs, was.message + n);
    return false;
}

serve_call *serve_translated_call(serve_server *s, const serve_asked *q, json_t *body, bool chat, const serve_name *names,
                                  serve_error *err) {
    serve_asked asked = *q;
    asked.body = body;
    serve_call *c = serve_request_read(s, &asked, chat, err);
    json_decref(body);
    if (!c) serve_translate_error(err, names);
    return c;
}

static bool count(serve_server *s, const json_t *body, size_t *n, serve_error *err) {
    hunch_model *m = serve_model(s, err);
    serve_rendered rendered;
    hunch_token *ids = NULL;
    if (!m || !serve_request_model(s, body, err) || !serve_prompt_render(s, m, body, true, &rendered, err)) return false;
    const bool ok = serve_rendered_tokenize(m, &rendered, SIZE_MAX, &ids, n, err);
    serve_rendered_free(&rendered);
    hunch_free(ids);
    return ok;
}

bool serve_translated_count(serve_server *s, json_t *body, const serve_name *names, size_t *n, serve_error *err) {
    const bool ok = count(s, body, n, err) || serve_translate_error(err, names);
    json_decref(body);
    return ok;
}

/* ---- fields that are only looked at --------------------------------------------------------------------------- */

bool serve_kinds_check(const json_t *body, const char *within, const serve_expected *list, serve_error *err) {
    static const char *const words[] = {"a text", "true or false", "a whole number", "a number", "an object", "a list"};
    for (const serve_expected *e = list; e->name; e++) {
        const json_t *v = serve_field(body, e->name);
        char field[80];
        const char *digits = hn_json_digits(v);
        const bool fits[] = {json_is_string(v),     json_is_boolean(v),   json_is_integer(v) || (digits && hn_json_is_whole(digits)),
                             hn_json_is_number(v), hn_json_is_object(v), json_is_array(v)};
        if (!v || fits[e->kind]) continue;
        snprintf(field, sizeof field, "%s%s", within, e->name);
        return serve_fail_value(err, field, v, "%s is not %s", field, words[e->kind]);
    }
    return true;
}

bool serve_word_read(const json_t *body, const char *name, const char *const *words, const char **out, serve_error *err) {
    const char *dot = strrchr(name, '.');
    const json_t *value = serve_field(body, dot ? dot + 1 : name);
    const char *given = json_string_value(value);
    char all[200] = "";
    if (!value) return true;
    for (size_t i = 0, at = 0; words[i]; i++) {
        if (given && strcmp(given, words[i]) == 0) return *out = given, true;
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", words[i]);
        if (at >= sizeof all) break;
    }
    return serve_fail(err, 400, name, "%s is none of %s", name, all);
}

bool serve_only_check(const json_t *body, const char *within, const serve_only *list, serve_error *err) {
    for (const serve_only *o = list; o->name; o++) {
        const json_t *value = serve_field(body, o->name);
        char field[80];
        snprintf(field, sizeof field, "%s%s", within, o->name);
        if (value && (!json_is_number(value) || json_number_value(value) != o->value))
            return serve_fail_value(err, field, value, "%s: only %g is supported", field, o->value);
    }
    return true;
}

bool serve_window_read(json_t *to, const json_t *from, const char *within, serve_error *err) {
    static const char *const penalties[] = {"repetition_penalty", "frequency_penalty", "presence_penalty"};
    const json_t *given = serve_field(from, "repeat_last_n");
    char field[80];
    bool on = false;
    snprintf(field, sizeof field, "%srepeat_last_n", within);
    if (!given) return true;
    if (!json_is_integer(given) || json_integer_value(given) < -1)
        return serve_fail_value(err, field, given, "%s is not a whole number from -1 to %lld", field, (long long)INT64_MAX);
    for (int i = 0; i < 3; i++) {
        const json_t *value = json_object_get(to, penalties[i]);
        on = on || (value && !(json_is_number(value) && json_number_value(value) == (i ? 0 : 1)));
        if (json_integer_value(given) == 0) json_object_del(to, penalties[i]);
    }
    if (!on || json_integer_value(given) <= 0) return true;
    return serve_fail(err, 400, field, "%s: penalties look at the whole text here; expected -1, or 0 for none", field);
}

json_t *serve_message_json(const char *role, json_t *content) { return json_pack("{s:s,s:o}", "role", role, "content", content); }

bool serve_ends_with_answer(const json_t *messages) {
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    return role && strcmp(role, "assistant") == 0 && !json_object_get(last, "tool_calls") &&
           json_string_length(json_object_get(last, "content"));
}

void serve_think(json_t *body, bool on) {
    static const char *const names[] = {"enable_thinking", "thinking"};
    json_t *own = json_object_get(body, "chat_template_kwargs");
    if (own && !hn_json_is_object(own)) return; /* which is refused later */
    json_t *variables = own ? json_copy(own) : json_object();
    for (int i = 0; i < 2; i++)
        if (!json_object_get(variables, names[i])) json_object_set_new(variables, names[i], json_boolean(on));
    json_object_set_new(body, "chat_template_kwargs", variables);
}

void serve_call_add(json_t *message, const json_t *id, const json_t *name, const char *arguments) {
    json_t *calls = json_object_get(message, "tool_calls");
    if (!calls) json_object_set_new(message, "tool_calls", calls = json_array());
    json_array_append_new(calls, json_pack("{s:O,s:s,s:{s:O,s:s}}", "id", id, "type", "function", "function", "name", name, "arguments",
                                           arguments));
}

void serve_text_add(json_t *message, const char *field, const char *between, json_t *more) {
    json_t *had = json_object_get(message, field);
    if (!json_is_array(had)) {
        json_t *list = json_array();
        if (json_string_length(had)) json_array_append(list, had);
        json_object_set_new(message, field, had = list);
    }
    if (json_array_size(had) && *between) json_array_append_new(had, json_string(between));
    if (json_string_length(more)) json_array_append(had, more);
}

bool serve_text_is(const json_t *message, const char *field) {
    const json_t *value = json_object_get(message, field);
    return json_string_length(value) || json_array_size(value);
}

static void text_join(json_t *message, const char *field) {
    const json_t *list = json_object_get(message, field), *one;
    serve_bytes all = {0};
    size_t i;
    if (!json_is_array(list)) return;
    json_array_foreach(list, i, one) serve_bytes_join(&all, json_string_value(one), json_string_length(one));
    json_object_set_new(message, field, serve_text_json(all.at, all.n));
    serve_bytes_free(&all);
}

void serve_texts_join(json_t *messages) {
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message) {
        text_join(message, "content");
        text_join(message, "reasoning_content");
    }
}

json_t *serve_function_json(const json_t *name, const json_t *description, const json_t *parameters) {
    json_t *function = json_object();
    json_object_set(function, "name", (json_t *)(uintptr_t)name);
    if (description) json_object_set(function, "description", (json_t *)(uintptr_t)description);
    if (parameters) json_object_set(function, "parameters", (json_t *)(uintptr_t)parameters);
    return json_pack("{s:s,s:o}", "type", "function", "function", function);
}
