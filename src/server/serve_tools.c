/* SPDX-License-Identifier: Apache-2.0 */
/* serve_tools.c - see serve_tools.h. */
#include "server/serve_tools.h"

#include <string.h>

#include "base/mem.h"
#include "server/serve_answer.h"
#include "server/serve_fields.h"

/* ---- requests ---------------------------------------------------------------------------------------------------------- */

/* "auto", "none", "required", or {"type": "function", "function": {"name"}}. */
static bool choice_read(const json_t *body, hunch_tools_options *o, serve_error *err) {
    static const char *const words[] = {"auto", "none", "required"};
    const json_t *given = serve_field(body, "tool_choice"), *function = json_object_get(given, "function");
    const char *word = json_string_value(given);
    o->choice = HUNCH_TOOLS_AUTO;
    for (int i = 0; word && i < 3; i++)
        if (strcmp(word, words[i]) == 0) return o->choice = (hunch_tool_choice)i, true;
    o->name = json_string_value(json_object_get(function ? function : given, "name"));
    if (given && !o->name)
        return serve_fail(err, 400, "tool_choice", "tool_choice is none of auto, none, required, and names no function");
    if (given) o->choice = HUNCH_TOOLS_NAMED;
    return true;
}

static size_t calls_before(const json_t *body) {
    size_t i, n = 0;
    const json_t *message;
    json_array_foreach(json_object_get(body, "messages"), i, message) n += json_array_size(json_object_get(message, "tool_calls"));
    return n;
}

bool serve_tools_read(const serve_server *s, serve_call *c, const hunch_model *m, const json_t *body, serve_error *err) {
    hunch_tools_options o;
    hunch_error why = {0};
    const json_t *tools = serve_field(body, "tools");
    bool parallel = true;
    hunch_tools_options_defaults(&o);
    if (!choice_read(body, &o, err) || !serve_field_bool(body, "parallel_tool_calls", &parallel, err)) return false;
    if (tools && !json_is_array(tools)) return serve_fail(err, 400, "tools", "tools is not a list");
    if (json_array_size(tools) == 0 && o.choice >= HUNCH_TOOLS_REQUIRED)
        return serve_fail(err, 400, "tool_choice", "tool_choice asks for a call, but no tools are offered");
    if (json_array_size(tools) == 0) return true;
    char *text = serve_json_dump(tools, 0);
    o.tools = text;
    o.one = !parallel;
    o.format = s->settings->tool_format;
    o.template_text = s->settings->template_text;
    o.earlier = calls_before(body);
    const hunch_status st = hunch_tools_open(o.choice == HUNCH_TOOLS_NONE ? &c->forbidden : &c->tools, m, &o, &why);
    hn_free(text);
    if (!st && o.choice == HUNCH_TOOLS_AUTO && !hunch_tools_format(c->tools)) hunch_tools_close(&c->tools); /* calls stay text */
    return st ? serve_fail_hunch(err, "tools", &why) : true;
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

bool serve_tools_hold(serve_call *c, const json_t *body, serve_error *err) {
    const json_t *choice = serve_field(body, "tool_choice");
    const char *word = json_string_value(choice);
    const bool required = choice && (!word || strcmp(word, "required") == 0);
    hunch_error why = {0};
    const hunch_tools *tools = c->tools ? c->tools : c->forbidden;
    if (!stop_add(c, err)) return false;
    if (!tools || (c->request.grammar && !required)) return true;
    if (c->request.grammar)
        return serve_fail(err, 400, "tool_choice", "tool_choice asks for a call, but another field holds the answer to a form");
    return hunch_tools_grammar(&c->request.grammar, tools, c->prompts[0].thinks, &why) ? serve_fail_hunch(err, "tools", &why) : true;
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
