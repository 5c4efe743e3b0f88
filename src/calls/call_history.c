/* SPDX-License-Identifier: Apache-2.0 */
/* call_history.c - earlier calls as templates expect them: clients send arguments as a text of JSON, most templates want the object, one
 * the text; and ids that other models wrote become such as a family takes. */
#include "base/hash.h"
#include "base/json_load.h"
#include "base/mem.h"
#include "calls/call_families.h"

static void arguments_convert(const hn_call_family *f, json_t *function) {
    json_t *given = json_object_get(function, "arguments");
    if (f && f->text_arguments) {
        char *text = hn_json_is_object(given) ? hn_json_dump(given, 0) : NULL;
        if (text) json_object_set_new(function, "arguments", json_string(text));
        hn_free(text);
        return;
    }
    json_t *parsed = json_is_string(given) ? hn_json_load(json_string_value(given), json_string_length(given), JSON_ALLOW_NUL, NULL) : NULL;
    if (hn_json_is_object(parsed)) json_object_set(function, "arguments", parsed);
    json_decref(parsed);
}

static bool is_nine(const char *id) {
    size_t n = 0;
    for (; id[n]; n++)
        if (!((id[n] >= '0' && id[n] <= '9') || (id[n] >= 'a' && id[n] <= 'z') || (id[n] >= 'A' && id[n] <= 'Z'))) return false;
    return n == 9;
}

/* An id of nine letters for any other: the same for the call and for its result. */
static void id_convert(const hn_call_family *f, json_t *holder, const char *key) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    const char *id = json_string_value(json_object_get(holder, key));
    char made[10] = "";
    if (!f || f->ids != HN_IDS_NINE || !id || is_nine(id)) return;
    uint64_t h = hn_bytes_hash(id, strlen(id), 0);
    for (int i = 0; i < 9; i++, h /= 36) made[i] = letters[h % 36];
    json_object_set_new(holder, key, json_string(made));
}

static bool is_result(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && strcmp(role, "tool") == 0;
}

/* Which of the calls a result answers; of none of them: behind all. */
static size_t place_of(const json_t *calls, const json_t *result) {
    size_t i;
    const json_t *one, *id = json_object_get(result, "tool_call_id");
    json_array_foreach(calls, i, one)
        if (id && json_equal(id, json_object_get(one, "id"))) return i;
    return SIZE_MAX;
}

/* Most templates tell results by their order: they come in that of the calls. */
static void results_sort(json_t *messages, size_t from, const json_t *calls) {
    enum { MOST = 128 };
    size_t end = from;
    while (end < json_array_size(messages) && end - from < MOST && is_result(json_array_get(messages, end))) end++;
    for (size_t a = from + 1; a < end; a++)
        for (size_t b = a; b > from; b--) {
            json_t *x = json_array_get(messages, b - 1), *y = json_array_get(messages, b);
            if (place_of(calls, x) <= place_of(calls, y)) break;
            json_incref(x);
            json_array_set(messages, b - 1, y);
            json_array_set_new(messages, b, x);
        }
}

void hn_calls_convert(const hn_call_family *f, json_t *messages) {
    size_t i, k;
    json_t *message, *call;
    json_array_foreach(messages, i, message) {
        const json_t *calls = json_object_get(message, "tool_calls");
        if (json_array_size(calls)) results_sort(messages, i + 1, calls);
    }
    json_array_foreach(messages, i, message) {
        id_convert(f, message, "tool_call_id");
        json_t *calls = json_object_get(message, "tool_calls");
        json_array_foreach(calls, k, call) {
            id_convert(f, call, "id");
            arguments_convert(f, json_object_get(call, "function"));
        }
    }
}

size_t hn_calls_count(const json_t *messages) {
    size_t i, n = 0;
    const json_t *message;
    json_array_foreach(messages, i, message) n += json_array_size(json_object_get(message, "tool_calls"));
    return n;
}
