/* SPDX-License-Identifier: Apache-2.0 */
/* serve_speculation.c - see serve_speculation.h. A request chooses among the drafters that the server has opened; it never names a file. */
#include "server/protocols/serve_speculation.h"

#include <stdio.h>
#include <string.h>

#include "server/protocols/serve_fields.h"
#include "server/serve_prompt.h"

/* Index of the drafter of this name; -1: there is none. */
static int drafter_find(const serve_server *s, const char *name) {
    for (size_t i = 0; i < json_array_size(s->drafters); i++)
        if (strcmp(json_string_value(json_array_get(s->drafters, i)), name) == 0) return (int)i;
    return -1;
}

static bool unknown(const serve_server *s, const char *name, serve_error *err) {
    char names[300] = "";
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(s->drafters) && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, ", %s", json_string_value(json_array_get(s->drafters, i)));
    return serve_fail(err, 400, "speculation.draft", "speculation.draft: no drafter %.60s here: expected \"auto\", \"none\" or a list of%s",
                      name, at ? names + 1 : " none, since the server drafts nothing");
}

static bool mask_read(const serve_server *s, const json_t *draft, uint32_t *mask, serve_error *err) {
    const char *word = json_string_value(draft);
    if (word && strcmp(word, "auto") == 0) return true;
    *mask = 0;
    if (word && strcmp(word, "none") == 0) return true;
    if (word) return unknown(s, word, err);
    if (!json_is_array(draft))
        return serve_fail(err, 400, "speculation.draft", "speculation.draft is not \"auto\", \"none\" or a list of drafters");
    for (size_t i = 0; i < json_array_size(draft); i++) {
        const char *name = json_string_value(json_array_get(draft, i));
        const int at = name ? drafter_find(s, name) : -1;
        if (at < 0) return unknown(s, name ? name : "without a name", err);
        *mask |= 1U << at;
    }
    return *mask ? true : unknown(s, "in an empty list", err);
}

/* A text, or a list of text parts. */
static bool prediction_read(const serve_server *s, serve_call *c, hunch_model *m, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "prediction");
    hunch_token *ids = NULL;
    if (!given) return true;
    const char *type = json_string_value(json_object_get(given, "type"));
    json_t *text = type && strcmp(type, "content") == 0 ? serve_prompt_content(v, "prediction.content", err) : NULL;
    if (!text) return serve_wrong(err, v, "prediction", " is not {\"type\": \"content\", \"content\": TEXT or text parts}");
    const bool ok = serve_prompt_tokenize(m, v, json_string_value(text), json_string_length(text), 0, "prediction", SIZE_MAX, &ids,
                                          &c->request.n_prediction, err);
    c->request.prediction = ids;
    c->predicting = drafter_find(s, "prediction");
    if (c->predicting >= 0 && c->request.drafters) c->request.drafters |= 1U << c->predicting;
    json_decref(text);
    return ok;
}

bool serve_speculation_read(const serve_server *s, serve_call *c, hunch_model *m, const serve_view *v, serve_error *err) {
    const json_t *given = serve_field(v, "speculation"), *draft = serve_field(v, "speculation.draft");
    const char *key;
    json_t *value;
    if (given && !hn_json_is_object(given)) return serve_wrong(err, v, "speculation", " is not an object");
    json_object_foreach((json_t *)(uintptr_t)given, key, value) {
        char field[SERVE_NAME];
        snprintf(field, sizeof field, "speculation.%.60s", key);
        if (strcmp(key, "draft") != 0 && strcmp(key, "depth") != 0 && strcmp(key, "rows") != 0)
            return serve_wrong(err, v, field, " is not known: expected draft, depth, rows");
    }
    return (!draft || mask_read(s, draft, &c->request.drafters, err)) && prediction_read(s, c, m, v, err);
}
