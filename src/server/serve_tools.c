/* SPDX-License-Identifier: Apache-2.0 */
/* serve_tools.c - see serve_tools.h. */
#include "server/serve_tools.h"

#include <string.h>

#include "base/mem.h"
#include "server/serve_answer.h"

/* ---- requests ---------------------------------------------------------------------------------------------------------- */

bool serve_tools_read(const serve_server *s, serve_call *c, const hunch_model *m, const serve_view *v, const serve_wanted *w,
                      serve_error *err) {
    hunch_tools_options o;
    hunch_error why = {0};
    char name[SERVE_NAME];
    hunch_tools_options_defaults(&o);
    if (json_array_size(w->tools) == 0 && w->choice >= HUNCH_TOOLS_REQUIRED)
        return serve_wrong(err, v, "tool_choice", " asks for a call, but no tools are offered");
    if (json_array_size(w->tools) == 0) return true;
    if (w->choice == HUNCH_TOOLS_NAMED && !serve_tool_find(w, w->function))
        return serve_wrong(err, v, "tool_choice", " names %.64s, which no tool is named", w->function);
    char *text = serve_json_dump(w->allowed ? w->allowed : w->tools, 0);
    o.tools = text;
    o.choice = w->choice;
    o.name = w->function;
    o.one = w->one_call;
    o.format = s->settings->tool_format;
    o.template_text = s->settings->template_text;
    o.earlier = serve_calls_count(w->messages);
    const hunch_status st = hunch_tools_open(o.choice == HUNCH_TOOLS_NONE ? &c->forbidden : &c->tools, m, &o, &why);
    hn_free(text);
    if (!st && o.choice == HUNCH_TOOLS_AUTO && !hunch_tools_format(c->tools)) hunch_tools_close(&c->tools); /* calls stay text */
    return st ? serve_fail_hunch(err, serve_field_name(v, "tools", name), &why) : true;
}

/* Adds the token that ends an answer behind its calls. */
static bool stop_add(serve_call *c, serve_error *err) {
    const hunch_token id = c->tools ? hunch_tools_stop(c->tools) : -1;
    const size_t n = (size_t)c->request.n_stop_tokens;
    if (id < 0 || n == HUNCH_MOST_STOPS) return true;
    hunch_token *ids = hn_alloc((n + 1) * sizeof *ids);
    if (!ids) return serve_fail(err, 503, NULL, "no memory for the request");
    if (n) memcpy(ids, c->request.stop_tokens, n * sizeof *ids);
    ids[n] = id;
    hn_free((void *)(uintptr_t)c->request.stop_tokens);
    c->request.stop_tokens = ids;
    c->request.n_stop_tokens++;
    return true;
}

bool serve_tools_hold(serve_call *c, const serve_view *v, const serve_wanted *w, serve_error *err) {
    hunch_error why = {0};
    char name[SERVE_NAME];
    const hunch_tools *tools = c->tools ? c->tools : c->forbidden;
    const bool required = w->choice >= HUNCH_TOOLS_REQUIRED;
    if (!stop_add(c, err)) return false;
    if (!tools || (c->request.grammar && !required)) return true;
    if (c->request.grammar)
        return serve_wrong(err, v, "tool_choice", " asks for a call, but another field holds the answer to a form");
    return hunch_tools_grammar(&c->request.grammar, tools, c->prompts[0].thinks, &why)
               ? serve_fail_hunch(err, serve_field_name(v, "tools", name), &why)
               : true;
}

bool serve_tools_begin(serve_choice *one) {
    return !one->call->tools || hunch_calls_open(&one->parts.calls, one->call->tools, one->prompt->thinks, NULL) == HUNCH_OK;
}

/* ---- answers ----------------------------------------------------------------------------------------------------------- */

bool serve_tools_called(const serve_choice *one) {
    hunch_answer a;
    hunch_calls_get(one->parts.calls, &a);
    return a.n_done > 0 && !(one->parts.cut && a.cut);
}

json_t *serve_call_id_json(const char *id) {
    return serve_text_json(id, strlen(id));
}

json_t *serve_tools_call_json(const hunch_call *call) {
    return json_pack("{s:o,s:s,s:{s:s,s:o}}", "id", serve_call_id_json(call->id), "type", "function", "function", "name",
                     call->name, "arguments", serve_text_json(call->arguments, call->n_arguments));
}
