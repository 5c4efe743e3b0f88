/* SPDX-License-Identifier: Apache-2.0 */
/* call_history.c - earlier calls as templates expect them: clients send arguments as a text of JSON, most templates want the object, one
 * the text; and ids that other models wrote become such as a family takes. */
#include <stdlib.h>

#include "base/hash.h"
#include "calls/call_families.h"

static void arguments_convert(const hn_call_family *f, json_t *function) {
    json_t *given = json_object_get(function, "arguments");
    if (f && f->text_arguments) {
        char *text = json_is_object(given) ? json_dumps(given, 0) : NULL;
        if (text) json_object_set_new(function, "arguments", json_string(text));
        free(text);
        return;
    }
    json_t *parsed = json_is_string(given) ? json_loadb(json_string_value(given), json_string_length(given), JSON_ALLOW_NUL, NULL) : NULL;
    if (json_is_object(parsed)) json_object_set(function, "arguments", parsed);
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

void hn_calls_convert(const hn_call_family *f, json_t *messages) {
    size_t i, k;
    json_t *message, *call;
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
