/* SPDX-License-Identifier: Apache-2.0 */
/* tool_calls.c - see tool_calls.h. */
#include "cli/tool_calls.h"

#include <string.h>

#include "base/status.h"
#include "app/tool_output.h"

static void choice_read(hunch_tools_options *o, const char *choice) {
    static const char *const words[] = {"auto", "none", "required"};
    o->choice = choice ? HUNCH_TOOLS_NAMED : HUNCH_TOOLS_AUTO;
    o->name = choice;
    for (int i = 0; choice && i < 3; i++)
        if (strcmp(choice, words[i]) == 0)
            o->choice = (hunch_tool_choice)i;
}

/* The functions in the format of the answer. */
static hunch_status tools_open(hunch_tools **out, const json_t *tools, hunch_tools_options *how, const hunch_model *m, hunch_error *err) {
    char *text = tool_json_dump(tools, 0);
    how->tools = text;
    const hunch_status st = hunch_tools_open(out, m, how, err);
    hn_free(text);
    return st;
}

/* Holds the answer to calls, or keeps it from them, unless it obeys a form already. */
static hunch_status calls_hold(hunch_request *r, const hunch_tools *tools, const hunch_tools_options *how, bool thinks, hunch_error *err) {
    if (!r->grammar)
        return hunch_tools_grammar(&r->grammar, tools, thinks, err);
    return how->choice < HUNCH_TOOLS_REQUIRED
               ? HUNCH_OK
               : hn_fail(err, HUNCH_USAGE, "--tool-choice asks for a call, but the answer is held to another form: give one of them");
}

/* Calls of a conversation: some formats count them. */
static size_t calls_before(const json_t *messages) {
    size_t i, n = 0;
    const json_t *message;
    json_array_foreach(messages, i, message)
        n += json_array_size(json_object_get(message, "tool_calls"));
    return n;
}

/* Adds the token that ends an answer behind its calls. */
static void stop_add(hunch_request *r, hunch_token stops[HUNCH_MOST_STOPS], const hunch_tools *tools) {
    const hunch_token id = tools ? hunch_tools_stop(tools) : -1;
    if (id < 0 || r->n_stop_tokens == HUNCH_MOST_STOPS)
        return;
    if (r->n_stop_tokens)
        memcpy(stops, r->stop_tokens, (size_t)r->n_stop_tokens * sizeof *stops);
    stops[r->n_stop_tokens++] = id;
    r->stop_tokens = stops;
}

hunch_status tool_calls_open(hunch_tools **out, hunch_request *r, hunch_token stops[HUNCH_MOST_STOPS], const tool_template *t,
                             const tool_prompt *p, const hunch_model *m, const tool_options *o, hunch_error *err) {
    const json_t *tools = p->tools ? p->tools : json_object_get(t->args, "tools");
    hunch_tools_options how;
    *out = NULL;
    hunch_tools_options_defaults(&how);
    choice_read(&how, o->tool_choice);
    if (!p->chat || json_array_size(tools) == 0)
        return how.choice < HUNCH_TOOLS_REQUIRED ? HUNCH_OK
                                                 : hn_fail(err, HUNCH_USAGE, "--tool-choice %s: no tools are offered", o->tool_choice);
    how.format = o->tool_format;
    how.template_text = t->text;
    how.earlier = calls_before(p->messages);
    hunch_status st = tools_open(out, tools, &how, m, err);
    if (!st)
        st = calls_hold(r, *out, &how, p->thinks, err);
    if (st || how.choice == HUNCH_TOOLS_NONE || (how.choice == HUNCH_TOOLS_AUTO && !hunch_tools_format(*out)))
        hunch_tools_close(out); /* calls stay text */
    r->special_text |= *out != NULL;
    stop_add(r, stops, *out);
    return st;
}

/* Arguments are an object here, or, if that cannot be read again, their text. */
static json_t *call_json(const hunch_call *c) {
    json_t *args = hn_json_load(c->arguments, c->n_arguments, JSON_ALLOW_NUL, NULL);
    return json_pack("{s:s,s:s,s:o}", "id", c->id, "name", c->name, "arguments",
                     args ? args : tool_json_text(c->arguments, c->n_arguments));
}

void tool_calls_json(json_t *out, const hunch_tools *tools, bool thinks, const char *text, size_t len) {
    hunch_calls *c = NULL;
    hunch_answer a;
    if (!hunch_calls_open(&c, tools, thinks, NULL))
        hunch_calls_feed(c, text, len, true, NULL);
    hunch_calls_get(c, &a);
    json_t *calls = json_array();
    for (size_t i = 0; i < a.n_calls; i++)
        if (a.call[i].state == HUNCH_CALL_DONE)
            json_array_append_new(calls, call_json(&a.call[i]));
    json_object_set_new(out, "answer", tool_json_text(a.text, a.n_text));
    json_object_set_new(out, "thinking", a.n_thinking ? tool_json_text(a.thinking, a.n_thinking) : json_null());
    json_object_set_new(out, "tool_calls", calls);
    if (a.n_broken)
        json_object_set_new(out, "broken_calls", tool_json_text(a.broken, a.n_broken));
    hunch_calls_close(&c);
}

/* ---- conversations ------------------------------------------------------------------------------------------------ */

/* Calls as OpenAI's protocol has them, their arguments as text. */
static json_t *message_calls(const hunch_answer *a) {
    json_t *calls = json_array();
    for (size_t i = 0; i < a->n_calls; i++)
        if (a->call[i].state == HUNCH_CALL_DONE)
            json_array_append_new(calls, json_pack("{s:s,s:s,s:{s:s,s:o}}", "id", a->call[i].id, "type", "function", "function",
                                                   "name", a->call[i].name, "arguments",
                                                   tool_json_text(a->call[i].arguments, a->call[i].n_arguments)));
    return calls;
}

static json_t *message_of(const hunch_answer *a, const char *thinking) {
    json_t *m = json_pack("{s:s,s:o}", "role", "assistant", "content", tool_json_text(a->text, a->n_text));
    if (thinking && a->n_thinking && a->n_text) { /* both are thinking */
        char *both = tool_alloc(a->n_thinking + a->n_text + 2, 1);
        snprintf(both, a->n_thinking + a->n_text + 2, "%.*s\n%.*s", (int)a->n_thinking, a->thinking, (int)a->n_text, a->text);
        json_object_set_new(m, thinking, tool_json_text(both, strlen(both)));
        json_object_set_new(m, "content", json_string(""));
        hn_free(both);
    } else if (a->n_thinking) {
        json_object_set_new(m, thinking ? thinking : "reasoning_content", tool_json_text(a->thinking, a->n_thinking));
    }
    json_object_set_new(m, "tool_calls", message_calls(a));
    return m;
}

json_t *tool_calls_message(const hunch_tools *tools, bool thinks, const char *text, size_t len, const char *thinking) {
    hunch_calls *c = NULL;
    hunch_answer a;
    if (!hunch_calls_open(&c, tools, thinks, NULL))
        hunch_calls_feed(c, text, len, true, NULL);
    hunch_calls_get(c, &a);
    json_t *message = a.n_done ? message_of(&a, thinking) : NULL;
    hunch_calls_close(&c);
    return message;
}
