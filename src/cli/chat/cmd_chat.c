/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_chat.c - `hunch chat`: a conversation, line by line from standard input. tool_chat.h lists its parts.
 *
 * At a terminal Ctrl-C stops an answer, whose tokens so far are kept, and clears the line being typed; pressed twice at an empty line it
 * ends the command. Without a terminal as input it ends the command at once. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/least.h"
#include "base/utf8.h"
#include "cli/chat/tool_chat.h"
#include "app/tool_tty.h"

/* ---- messages ------------------------------------------------------------------------------------------------ */

static int message_take(tool_chat_state *c, const tool_chat_message *m) {
    if (strspn(m->text, " \t\r\n") == m->len)
        return TOOL_GO_ON; /* an empty message */
    tool_editor_pause(c->editor);
    const int code = *m->text == '/' && !m->block ? tool_chat_command(c, m->text) : tool_chat_send(c, m->text, m->len);
    tool_editor_resume(c->editor);
    if (c->terminal && tool_interrupted == SIGINT)
        tool_interrupts_clear(); /* came too late to stop anything: it must not clear the next line */
    return code;
}

/* *presses: consecutive presses of Ctrl-C at an empty line. */
static int interrupt_take(const tool_chat_state *c, const tool_chat_message *m, int *presses) {
    if (!c->terminal || tool_interrupted != SIGINT)
        return HUNCH_CANCELLED;
    if (!c->editor)
        tool_tty_drop_typed();
    *presses = tool_interrupts_clear() + (m->begun ? -1 : *presses); /* the first clears a line that had begun */
    if (*presses >= 2) {
        tool_interrupted = SIGINT;
        return HUNCH_CANCELLED;
    }
    if (*presses == 1)
        fputs(c->editor ? "Ctrl-C again leaves\n" : "\nCtrl-C again leaves\n", stderr);
    return TOOL_GO_ON;
}

static int conversation(tool_chat_state *c) {
    int code = TOOL_GO_ON, presses = 0;
    while (code == TOOL_GO_ON) {
        tool_chat_message m;
        const tool_line got = tool_chat_read(c, &m);
        if (got == TOOL_LINE) {
            presses = 0;
            code = message_take(c, &m);
        } else {
            code = got == TOOL_LINE_END ? HUNCH_OK : interrupt_take(c, &m, &presses);
        }
        hn_free(m.text);
        if (code != TOOL_GO_ON && got != TOOL_LINE && c->terminal)
            fputc('\n', stderr);
    }
    return code == HUNCH_OK && c->failed && !c->terminal ? HUNCH_FAILED : code;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

enum { EXIT_PRESSES = 3 }; /* presses of Ctrl-C after the one that stops an answer, before the process ends */

/* The engine's default, computed here so that messages can name it. */
static int context_of(const tool_options *o, int model_context) {
    enum { LARGEST = 8192 };
    return o->context != TOOL_UNSET ? o->context : hn_least(model_context, LARGEST);
}

int tool_chat_engine_open(tool_chat_state *c) {
    hunch_model_info info;
    hunch_model_get_info(c->model, &info);
    c->context = context_of(&c->o, info.context);
    tool_method_fini(&c->method);
    tool_method_init(&c->method, c->o.drafts.items, c->o.drafts.n);
    int code = tool_engine_open(&c->engine, c->model, &c->o, &c->method, c->context, 1);
    if (code)
        return code;
    tool_request_init(&c->request, c->model, &c->o, 0);
    if ((code = tool_request_try(c->engine, &c->request)))
        return code;
    tool_drafters_note(c->engine);
    return 0;
}

int tool_chat_grammar(tool_chat_state *c, const tool_options *o) {
    tool_grammar next;
    hunch_grammar *tried = NULL;
    hunch_error err = {0};
    int code = tool_grammar_read(&next, o);
    if (!code && tool_grammar_open(&tried, &next, NULL, c->model, true, false, &err))
        code = tool_failed(&err);
    hunch_grammar_close(&tried);
    if (code) {
        tool_grammar_fini(&next);
        return code;
    }
    tool_grammar_fini(&c->grammar);
    c->grammar = next;
    return 0;
}

static int chat_open(tool_chat_state *c) {
    int code = tool_template_open(&c->template, &c->o);
    if (code)
        return code;
    if (c->o.logprobs != TOOL_UNSET && !c->o.json_lines)
        return tool_usage("--logprobs needs --json-lines");
    if (c->o.system && hn_utf8_check(c->o.system, strlen(c->o.system)) < strlen(c->o.system))
        return tool_usage("--system is not valid UTF-8");
    if ((code = tool_model_open(&c->model, &c->o, &c->load_s)))
        return code;
    hunch_model_info info;
    hunch_model_get_info(c->model, &info);
    if (!info.has_tokenizer)
        return tool_usage("the model has no tokenizer: it cannot chat");
    if ((code = tool_template_check(&c->template, c->model)))
        return code;
    if ((code = tool_chat_grammar(c, &c->o)) || (code = tool_chat_engine_open(c)))
        return code;
    return tool_interrupts_repeat(tool_is_terminal(stdin) ? EXIT_PRESSES : 0) ? 0 : HUNCH_FAILED;
}

static int chat_command(tool_chat_state *c) {
    int code = chat_open(c);
    if (code)
        return code;
    c->color = !c->o.json_lines && tool_colors(c->o.color, stdout);
    c->styled = tool_colors(c->o.color, stderr);
    c->terminal = tool_is_terminal(stdin);
    tool_conversation_system(&c->talk, c->o.system ? c->o.system : "");
    if (!tool_template_used(&c->template, c->model))
        tool_message(
            "without a chat template the conversation is one text: each message goes on where the answer ended");
    if (c->terminal && !tool_quiet)
        fputs("/help lists what can be done here\n", stderr);
    if (c->terminal && tool_tty_begin())
        c->editor = tool_editor_open(c->styled, tool_chat_names, !c->o.no_history);
    code = conversation(c);
    tool_editor_close(&c->editor);
    tool_tty_end();
    return code;
}

int tool_chat(int argc, char **argv) {
    tool_chat_state c = {.words = json_array()};
    int code = tool_options_parse(&c.o, TOOL_CHAT, argc, argv);
    if (code >= 0) {
        json_decref(c.words);
        return code;
    }
    tool_conversation_init(&c.talk);
    code = chat_command(&c);
    hunch_engine_close(&c.engine);
    hunch_tools_close(&c.tools);
    hunch_model_close(&c.model);
    tool_method_fini(&c.method);
    tool_template_fini(&c.template);
    tool_grammar_fini(&c.grammar);
    tool_lines_fini(&c.lines);
    tool_conversation_fini(&c.talk);
    tool_options_fini(&c.o);
    json_decref(c.words);
    return code;
}
