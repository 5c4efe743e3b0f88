/* SPDX-License-Identifier: Apache-2.0 */
/* call_history.c - earlier calls as templates expect them: clients send arguments as a text of JSON, most templates want the object, one
 * the text; and ids that other models wrote become such as a family takes. */
#include <stdlib.h>

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

/* An id by which calls are found, as text; NULL: there is none, or no memory for it. */
static char *id_text(const json_t *holder, const char *key) {
    const json_t *id = json_object_get(holder, key);
    return id ? hn_json_dump(id, JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
}

/* Ids of calls with their places; the first of two with one id is what is found. */
static json_t *places_of(const json_t *calls) {
    json_t *places = json_object();
    size_t i;
    const json_t *one;
    json_array_foreach(calls, i, one) {
        char *id = id_text(one, "id");
        if (id && !json_object_get(places, id)) json_object_set_new(places, id, json_integer((json_int_t)i));
        hn_free(id);
    }
    return places;
}

typedef struct placed {
    size_t place, was; /* of the call that it answers, of none of them: behind all; where it stood */
    json_t *message;
} placed;

static int placed_compare(const void *a, const void *b) {
    const placed *x = a, *y = b;
    return x->place != y->place ? (x->place > y->place) - (x->place < y->place) : (x->was > y->was) - (x->was < y->was);
}

static size_t place_of(const json_t *places, const json_t *result) {
    char *id = id_text(result, "tool_call_id");
    const json_t *place = id ? json_object_get(places, id) : NULL;
    hn_free(id);
    return place ? (size_t)json_integer_value(place) : SIZE_MAX;
}

/* Most templates tell results by their order: they come in that of the calls. Without memory for that they stay as they are. */
static void results_sort(json_t *messages, size_t from, const json_t *calls) {
    size_t n = 0;
    while (is_result(json_array_get(messages, from + n))) n++;
    placed *list = n > 1 ? hn_alloc(n * sizeof *list) : NULL;
    if (!list) return;
    json_t *places = places_of(calls);
    for (size_t i = 0; i < n; i++) {
        json_t *message = json_array_get(messages, from + i);
        list[i] = (placed){place_of(places, message), i, json_incref(message)};
    }
    qsort(list, n, sizeof *list, placed_compare);
    for (size_t i = 0; i < n; i++) json_array_set_new(messages, from + i, list[i].message);
    json_decref(places);
    hn_free(list);
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
