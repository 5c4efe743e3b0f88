/* SPDX-License-Identifier: Apache-2.0 */
/* serve_ollama_about.c - what Ollama's endpoints say of the one model: /api/tags, /api/ps, /api/show, /api/version. */
#include <stdio.h>
#include <string.h>

#include "server/protocols/serve_about.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_endpoints.h"
#include "server/serve_request.h"

static json_t *details_json(const serve_server *s, const hunch_model *m) {
    hunch_model_info info;
    char size[32];
    hunch_model_get_info(m, &info);
    const double n = (double)info.parameters;
    snprintf(size, sizeof size, n < 1e6 ? "%.2fK" : n < 1e9 ? "%.2fM" : "%.1fB", n < 1e6 ? n / 1e3 : n < 1e9 ? n / 1e6 : n / 1e9);
    return json_pack("{s:s,s:s,s:s,s:[s],s:s,s:s}", "parent_model", "", "format", serve_about_format(s), "family", info.architecture,
                     "families", info.architecture, "parameter_size", size, "quantization_level", serve_about_types(s));
}

static json_t *model_json(const serve_server *s, const hunch_model *m, const char *name) {
    char started[SERVE_TIME];
    serve_time(s->started, started);
    return json_pack("{s:s,s:s,s:s,s:I,s:s,s:o}", "name", name, "model", name, "modified_at", started, "size",
                     serve_about_bytes(s), "digest", "", "details", details_json(s, m));
}

bool serve_ollama_tags(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)q;
    const hunch_model *m = serve_model(s, err);
    if (!m) return false;
    json_t *list = json_array();
    for (int i = 0; i < s->settings->n_names; i++) json_array_append_new(list, model_json(s, m, s->settings->names[i]));
    r->json = json_pack("{s:o}", "models", list);
    return true;
}

/* The model stays loaded as long as the server runs. */
bool serve_ollama_running(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)q;
    const hunch_model *m = serve_model(s, err);
    if (!m) return false;
    json_t *one = model_json(s, m, s->settings->model_name);
    json_object_set_new(one, "expires_at", json_string("9999-12-31T23:59:59Z"));
    json_object_set_new(one, "size_vram", json_integer(0));
    json_object_set_new(one, "context_length", json_integer(serve_engine_context(s->engine)));
    r->json = json_pack("{s:[o]}", "models", one);
    return true;
}

bool serve_ollama_show(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    const hunch_model *m = serve_model(s, err);
    static const serve_expected kinds[] = {{"verbose", SERVE_IS_BOOL}, {"system", SERVE_IS_TEXT}, {NULL, 0}};
    static const serve_name names[] = {{.theirs = "model", .ours = "model"}, {.theirs = "name", .ours = "model"}, {.theirs = NULL}};
    const serve_view v = {.body = q->body}, named = {.body = q->body, .names = names, .tag = ":latest"};
    if (!m || !serve_kinds_check(&v, kinds, err)) return false;
    if (!serve_field(&v, "model") && !serve_field(&v, "name")) return serve_wrong(err, &v, "model", " is missing");
    if (!serve_request_model(s, &named, err)) return false;
    char started[SERVE_TIME], file[300];
    const char *text = serve_about_template(s);
    json_t *can = json_pack("[s]", "completion"), *metadata = serve_about_metadata(s);
    if (serve_about_calls(s, m)) json_array_append_new(can, json_string("tools"));
    if (serve_about_thinks(s)) json_array_append_new(can, json_string("thinking"));
    serve_time(s->started, started);
    snprintf(file, sizeof file, "FROM %.255s\n", s->settings->model_name); /* no longer: serve_main.c */
    r->json = json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:s}", "license", serve_about_text(s, "general.license"), "modelfile", file,
                        "parameters", "", "template", serve_text_json(text, strlen(text)), "details", details_json(s, m), "model_info",
                        metadata, "capabilities", can, "modified_at", started);
    return true;
}

bool serve_ollama_version(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err) {
    (void)s, (void)q, (void)err;
    r->json = json_pack("{s:s}", "version", hunch_version());
    return true;
}
