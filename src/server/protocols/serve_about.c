/* SPDX-License-Identifier: Apache-2.0 */
/* serve_about.c - see serve_about.h. No answer has a path of the machine. */
#include "server/protocols/serve_about.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_endpoints.h"

json_t *serve_about_read(const char *path) {
    char *text = NULL;
    if (hunch_inspect(path, &text, NULL)) return NULL;
    json_t *all = hn_json_load(text, strlen(text), JSON_ALLOW_NUL, NULL), *kept = json_object();
    static const char *const keys[] = {"format", "metadata", "quantisation", "types", "tensor_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(all, keys[i]);
        if (value) json_object_set(kept, keys[i], value);
    }
    json_decref(all);
    hunch_free(text);
    return kept;
}

const char *serve_time(time_t at, char to[SERVE_TIME]) {
    struct tm utc;
    gmtime_r(&at, &utc);
    strftime(to, SERVE_TIME, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return to;
}

static const json_t *metadata(const serve_server *s) { return json_object_get(s->about, "metadata"); }

const char *serve_about_text(const serve_server *s, const char *key) {
    const char *text = json_string_value(json_object_get(metadata(s), key));
    return text ? text : "";
}

const char *serve_about_template(const serve_server *s) {
    return s->settings->template_text ? s->settings->template_text : serve_about_text(s, "tokenizer.chat_template");
}

json_t *serve_about_metadata(const serve_server *s) {
    const char *key;
    json_t *value, *to = json_object();
    json_object_foreach((json_t *)(uintptr_t)metadata(s), key, value) {
        if (hn_json_is_object(value) || strncmp(key, "tokenizer.chat_template", 23) == 0) continue;
        json_object_set_new(to, key, json_deep_copy(value));
    }
    return to;
}

/* The name that the file gives itself, else that of the type which most elements have. */
const char *serve_about_types(const serve_server *s) {
    const char *name = json_string_value(json_object_get(s->about, "quantisation"));
    const json_t *type;
    json_int_t most = 0;
    size_t i;
    if (name && *name) return name;
    json_array_foreach(json_object_get(s->about, "types"), i, type) {
        const json_int_t n = json_integer_value(json_object_get(type, "elements"));
        if (n <= most) continue;
        most = n;
        name = json_string_value(json_object_get(type, "type"));
    }
    return name ? name : "";
}

const char *serve_about_format(const serve_server *s) {
    const char *format = json_string_value(json_object_get(s->about, "format"));
    return format ? format : "";
}

json_int_t serve_about_bytes(const serve_server *s) { return json_integer_value(json_object_get(s->about, "tensor_bytes")); }

bool serve_about_calls(const serve_server *s, const hunch_model *m) {
    hunch_tools_options o;
    hunch_tools *tools = NULL;
    hunch_tools_options_defaults(&o);
    o.tools = "[{\"type\": \"function\", \"function\": {\"name\": \"any\"}}]";
    o.format = s->settings->tool_format;
    o.template_text = s->settings->template_text;
    const bool known = hunch_tools_open(&tools, m, &o, NULL) == HUNCH_OK && hunch_tools_format(tools);
    hunch_tools_close(&tools);
    return known;
}

bool serve_about_thinks(const serve_server *s) {
    const char *text = serve_about_template(s);
    return strstr(text, "<think>") || strstr(text, "<|channel|>");
}

json_t *serve_about_token(const hunch_model *m, const char *name) {
    char template_text[40], *text = NULL;
    size_t n = 0;
    hunch_chat_options how;
    snprintf(template_text, sizeof template_text, "{{ %s }}", name);
    hunch_chat_options_defaults(&how);
    how.template_text = template_text;
    const bool ok = hunch_chat_render(m, "{}", &how, &text, &n, NULL) == HUNCH_OK;
    json_t *token = serve_text_json(ok ? text : "", ok ? n : 0);
    hunch_free(text);
    return token;
}

/* ---- llama.cpp ------------------------------------------------------------------------------------------------- */

static json_t *defaults_json(serve_server *s, const hunch_model *m) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    json_t *params = serve_llama_settings(&r);
    json_object_set_new(params, "n_predict", json_integer(-1));
    return json_pack("{s:i,s:o}", "n_ctx", serve_engine_context(s->engine), "params", params);
}

bool serve_props(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)q;
    hunch_model *m = serve_model(s, err);
    hunch_model_info info;
    if (!m) return false;
    hunch_model_get_info(m, &info);
    const serve_load load = serve_engine_load(s->engine);
    const char *name = s->settings->model_name, *text = serve_about_template(s);
    r->json = json_pack("{s:s,s:s,s:s?,s:I,s:i,s:i,s:i,s:i,s:i,s:s,s:i,s:o}", "version", hunch_version(), "model", name,
                        "architecture", info.architecture, "parameters", (json_int_t)info.parameters, "context",
                        serve_engine_context(s->engine), "parallel", s->settings->parallel, "queue", s->settings->queue,
                        "running", load.running, "waiting", load.queued, "isa", info.isa, "threads", info.threads,
                        "drafters", json_deep_copy(s->drafters));
    json_t *more = json_pack("{s:o,s:i,s:s,s:s,s:{s:b,s:b},s:o,s:o,s:o,s:s,s:b}", "default_generation_settings", defaults_json(s, m),
                             "total_slots", s->settings->parallel, "model_alias", name, "model_path", name, "modalities", "vision", 0,
                             "audio", 0, "chat_template", serve_text_json(text, strlen(text)), "bos_token",
                             serve_about_token(m, "bos_token"), "eos_token", serve_about_token(m, "eos_token"),
                             "build_info", hunch_version(), "is_sleeping", 0);
    json_object_update(r->json, more);
    json_decref(more);
    return true;
}

/* A place that has a text of whoever asks. */
static json_t *own_json(const serve_place *p) {
    const int left = p->most ? p->most - (int)p->n_tokens : -1;
    return json_pack("{s:s,s:I,s:I,s:[{s:b,s:i,s:I}]}", "id_task", p->id, "n_prompt_tokens", (json_int_t)p->n_prompt,
                     "n_prompt_tokens_processed", (json_int_t)p->n_read, "next_token", "has_next_token", 1, "n_remain", left, "n_decoded",
                     (json_int_t)p->n_tokens);
}

/* Only those who asked for a text learn its place and how far it is. Of the others no more is told than how many have places: the first
 * that are left are shown as busy. */
bool serve_slots(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    if (!serve_model(s, err)) return false;
    const int n = s->settings->parallel, context = serve_engine_context(s->engine);
    serve_place *places = serve_alloc((size_t)n, sizeof *places);
    int others = 0;
    for (int i = 0; i < n; i++) {
        places[i] = serve_engine_place(s->engine, i);
        const bool own = places[i].taken && strcmp(places[i].client, q->client) == 0;
        others += places[i].taken && !own;
        places[i].taken = own;
    }
    r->json = json_array();
    for (int i = 0; i < n; i++) {
        const bool own = places[i].taken;
        json_t *slot = json_pack("{s:i,s:i,s:b,s:b}", "id", i, "n_ctx", context, "speculative", json_array_size(s->drafters) > 0,
                                 "is_processing", own || others > 0), *more = own ? own_json(&places[i]) : NULL;
        others -= !own;
        json_object_update(slot, more);
        json_decref(more);
        json_array_append_new(r->json, slot);
    }
    hn_free(places);
    return true;
}
