/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_chat.c - `hunch chat`: a conversation, line by line from standard input.
 *
 * Every turn renders the whole history through the chat template and opens a session on the one engine; the shared
 * prefix makes that cheap. A turn that cannot be answered (too long, not UTF-8, refused by the template) is taken back
 * and the conversation goes on. Ctrl-C stops an answer, which is kept as far as it was said; at the prompt it ends the
 * command. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool_commands.h"
#include "tool_lines.h"
#include "tool_open.h"
#include "tool_render.h"
#include "tool_result.h"

typedef struct chat {
    tool_options o;
    tool_method method;
    tool_template template;
    hunch_model *model;
    hunch_engine *engine;
    hunch_request request;
    double load_s;
    int context;                  /* rows that the conversation may hold */
    bool color, styled, terminal; /* of standard output; of standard error; input comes from a terminal */
    tool_lines lines;
    json_t *history; /* messages of user and assistant */
    char *system;    /* NULL: none */
    bool warned;     /* that the context is nearly full */
    /* since the command began */
    size_t turns, tokens, rows, restored;
    uint64_t rounds, drafted, accepted;
    double decoded, decode_s; /* tokens behind the first of each answer, and their time */
} chat;

enum { GO_ON = -1 }; /* what a line led to, else the exit code of the command */

/* ---- the history --------------------------------------------------------------------------------------------- */

static void message_add(chat *c, const char *role, const char *text, size_t len) {
    json_t *message = json_pack("{s:s,s:o}", "role", role, "content", tool_json_text(text, len));
    if (!message || json_array_append_new(c->history, message) != 0) {
        tool_message("out of memory for the conversation");
        exit(HUNCH_NO_MEMORY);
    }
}

static void message_drop(chat *c) {
    json_array_remove(c->history, json_array_size(c->history) - 1);
}

static int history_render(chat *c, tool_rendered *out) {
    json_t *messages = json_copy(c->history);
    if (messages && c->system)
        json_array_insert_new(
            messages, 0,
            json_pack("{s:s,s:o}", "role", "system", "content", tool_json_text(c->system, strlen(c->system))));
    int code = tool_messages_render(out, &c->template, c->model, messages);
    json_decref(messages);
    return code;
}

static void conversation_reset(chat *c) {
    json_array_clear(c->history);
    c->warned = false;
}

static void system_set(chat *c, const char *text) {
    free(c->system);
    c->system = *text ? strcpy(tool_alloc(strlen(text) + 1, 1), text) : NULL;
}

/* ---- a turn -------------------------------------------------------------------------------------------------- */

static void totals_add(chat *c, const hunch_session_state *st) {
    c->turns++;
    c->tokens += st->n_tokens;
    c->rows += st->n_prompt;
    c->restored += (size_t)st->n_restored;
    c->rounds += st->rounds;
    c->drafted += st->drafted;
    c->accepted += st->accepted;
    c->decoded += st->rounds ? (double)st->n_tokens - 1 : 0;
    c->decode_s += st->decode_s;
}

static void turn_line(const chat *c, const hunch_session_state *st) {
    char note[200];
    fprintf(stderr, "%s[%zu tokens, %.1f tokens/s", tool_style(c->styled, 'd'), st->n_tokens, tool_decode_speed(st));
    if (st->rounds)
        fprintf(stderr, " · acceptance length %.2f", tool_tau(st));
    fprintf(stderr, " · %llu of %zu prompt rows restored · finish %s]%s\n", (unsigned long long)st->n_restored,
            st->n_prompt, tool_finish_name(st->finish), tool_style(c->styled, '0'));
    if (c->color && c->styled && hunch_engine_drafters(c->engine) > 0)
        tool_sources_print(c->engine, st, true);
    if (*tool_law_note(st->verify, &st->lossy, note))
        fprintf(stderr, "%s%s%s\n", tool_style(c->styled, 'y'), note, tool_style(c->styled, '0'));
}

static void context_policy(chat *c, const hunch_session_state *st) {
    size_t used = st->n_prompt + st->n_tokens, context = (size_t)c->context;
    char cure[80];
    tool_context_cure(c->model, context + 1, cure);
    if (st->finish == HUNCH_FINISH_LENGTH && used >= context)
        tool_message("the answer ends here: the context of %d rows is full; /reset begins anew, %s", c->context, cure);
    if (used * 10 >= context * 9 && !c->warned) {
        tool_message("%zu of %zu rows of the context are used (%zu %%): /reset begins anew, %s",
                     used < context ? used : context, context, used < context ? used * 100 / context : 100, cure);
        c->warned = true;
    }
}

static int turn_report(chat *c, const hunch_session_state *st) {
    int code;
    totals_add(c, st);
    message_add(c, "assistant", st->text, st->text_len);
    if (c->o.json_lines) {
        tool_result result = {
            .engine = c->engine, .load_s = c->load_s, .seed = c->request.sampling.seed, .model = c->model,
            .logprobs = c->o.logprobs};
        code = tool_print_json(tool_result_json(&result, st));
    } else {
        printf("%s\n", tool_style(c->color, '0'));
        code = tool_done(HUNCH_OK);
        if (!tool_quiet)
            turn_line(c, st);
    }
    context_policy(c, st);
    return code ? code : GO_ON;
}

/* The answer as it comes. */
static int turn_generate(chat *c, hunch_session **s, bool thinks) {
    tool_stream stream = {.model = c->model, .color = c->color, .thinks = thinks};
    tool_rounds rounds = {.engine = c->engine, .session = s, .n = 1, .stream = c->o.json_lines ? NULL : &stream};
    hunch_session_state st = {.finish = HUNCH_RUNNING};
    int code = 0;
    tool_rounds_begin(&rounds, "reading the conversation");
    while (!code && st.finish == HUNCH_RUNNING) {
        code = tool_rounds_step(&rounds);
        hunch_session_get(*s, &st);
    }
    tool_rounds_end(&rounds);
    tool_ends_fini(&stream.ends);
    tool_interrupts_clear();
    if (code)
        return code;
    tool_drafters_note(c->engine);
    if (st.finish != HUNCH_FINISH_FAILED)
        return turn_report(c, &st);
    tool_failed(&st.error);
    message_drop(c);
    return GO_ON;
}

static int turn_answer(chat *c, const tool_rendered *r) {
    hunch_error err = {0};
    hunch_session *s = NULL;
    int code = GO_ON;
    c->request.prompt = r->ids;
    c->request.n_prompt = r->n;
    if (hunch_session_open(&s, c->engine, &c->request, &err) == HUNCH_OK) {
        code = turn_generate(c, &s, r->thinks);
    } else {
        tool_failed(&err);
        message_drop(c);
    }
    hunch_session_close(&s);
    return code;
}

static int turn_take(chat *c, const char *text, size_t len) {
    size_t valid = tool_utf8_valid(text, len);
    if (valid < len) {
        tool_message("the message is not valid UTF-8 at byte %zu: not sent", valid);
        return GO_ON;
    }
    tool_rendered r;
    message_add(c, "user", text, len);
    if (history_render(c, &r) != 0) {
        message_drop(c);
        return GO_ON;
    }
    int code = GO_ON;
    if (r.n > (size_t)c->context) {
        char cure[80];
        tool_message("not sent: with this message the conversation has %zu tokens, the context holds %d; "
                     "/reset begins anew, %s",
                     r.n, c->context, tool_context_cure(c->model, r.n, cure));
        message_drop(c);
    } else {
        code = turn_answer(c, &r);
    }
    free(r.ids);
    return code;
}

/* ---- commands ------------------------------------------------------------------------------------------------ */

static int do_help(chat *c, const char *rest) {
    (void)c, (void)rest;
    fputs("/help         this text\n"
          "/reset        forgets the conversation\n"
          "/system TEXT  the system message from here on; without TEXT: none\n"
          "/stats        figures of all answers so far\n"
          "/exit         ends, as does the end of input\n"
          "A line that ends in a backslash goes on in the next one; a space before / makes a line a message.\n"
          "Ctrl-C stops an answer.\n",
          stderr);
    return GO_ON;
}

static int do_reset(chat *c, const char *rest) {
    (void)rest;
    conversation_reset(c);
    return GO_ON;
}

static int do_system(chat *c, const char *rest) {
    if (tool_utf8_valid(rest, strlen(rest)) < strlen(rest))
        tool_message("the system message is not valid UTF-8: not taken");
    else
        system_set(c, rest);
    return GO_ON;
}

static int do_stats(chat *c, const char *rest) {
    (void)rest;
    fprintf(stderr, "%zu answers, %zu tokens, %.1f tokens/s · %zu of %zu prompt rows restored\n", c->turns, c->tokens,
            c->decode_s > 0 ? c->decoded / c->decode_s : 0, c->restored, c->rows);
    if (c->rounds)
        fprintf(stderr, "acceptance length %.2f over %llu rounds · drafted %llu, accepted %llu\n",
                c->decoded / (double)c->rounds, (unsigned long long)c->rounds, (unsigned long long)c->drafted,
                (unsigned long long)c->accepted);
    fprintf(stderr, "context of %d rows · peak memory %.0f MiB\n", c->context, tool_peak_mib());
    return GO_ON;
}

static int do_exit(chat *c, const char *rest) {
    (void)c, (void)rest;
    return HUNCH_OK;
}

static int command_take(chat *c, const char *line) {
    static const struct {
        const char *name;
        int (*act)(chat *c, const char *rest);
    } commands[] = {
        {"help", do_help}, {"reset", do_reset}, {"system", do_system}, {"stats", do_stats}, {"exit", do_exit}};
    size_t len = strcspn(line + 1, " \t\n");
    const char *rest = line + 1 + len;
    rest += strspn(rest, " \t\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strlen(commands[i].name) == len && memcmp(commands[i].name, line + 1, len) == 0)
            return commands[i].act(c, rest);
    tool_message("unknown command %.*s, see /help", (int)len + 1, line);
    return GO_ON;
}

/* ---- input --------------------------------------------------------------------------------------------------- */

static void prompt_show(const chat *c, const char *mark) {
    if (c->terminal)
        fprintf(stderr, "%s%s%s ", tool_style(c->styled, 'b'), mark, tool_style(c->styled, '0'));
}

/* A message: a line, and those behind it while they end in a backslash. *text is to be freed with free. */
static tool_line message_read(chat *c, char **text, size_t *len) {
    size_t cap = 0, n;
    char *line;
    bool more = true;
    tool_line got = TOOL_LINE;
    *text = NULL;
    *len = 0;
    for (prompt_show(c, ">"); more && (got = tool_lines_next(&c->lines, &line, &n)) == TOOL_LINE;) {
        more = n > 0 && line[n - 1] == '\\';
        *text = tool_grow(*text, &cap, *len + n + 1, 1);
        memcpy(*text + *len, line, n);
        *len += n;
        if (more) {
            (*text)[*len - 1] = '\n';
            prompt_show(c, ".");
        }
        (*text)[*len] = 0;
    }
    return got == TOOL_LINE_END && *text ? TOOL_LINE : got;
}

static int input_take(chat *c, const char *text, size_t len) {
    if (strspn(text, " \t\r\n") == len)
        return GO_ON; /* nothing was said */
    return *text == '/' ? command_take(c, text) : turn_take(c, text, len);
}

static int conversation(chat *c) {
    int code = GO_ON;
    while (code == GO_ON) {
        char *text;
        size_t len;
        tool_line got = message_read(c, &text, &len);
        if (got == TOOL_LINE)
            code = input_take(c, text, len);
        else
            code = got == TOOL_LINE_END ? HUNCH_OK : HUNCH_CANCELLED;
        free(text);
        if (got != TOOL_LINE && c->terminal)
            fputc('\n', stderr);
    }
    return code;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

/* What the engine would choose by itself, said aloud so that the messages can name it. */
static int context_of(const tool_options *o, int model_context) {
    enum { LARGEST = 8192 };
    return o->context != TOOL_UNSET ? o->context : model_context < LARGEST ? model_context : LARGEST;
}

static int chat_open(chat *c) {
    int code = tool_template_open(&c->template, &c->o);
    if (code)
        return code;
    if (c->o.logprobs != TOOL_UNSET && !c->o.json_lines)
        return tool_usage("--logprobs needs --json-lines");
    if (c->o.system && tool_utf8_valid(c->o.system, strlen(c->o.system)) < strlen(c->o.system))
        return tool_usage("--system is not valid UTF-8");
    if ((code = tool_model_open(&c->model, &c->o, &c->load_s)))
        return code;
    hunch_model_info info;
    hunch_model_get_info(c->model, &info);
    if (!info.has_tokenizer)
        return tool_usage("the model has no tokenizer: it cannot chat");
    if ((code = tool_template_check(&c->template, c->model)))
        return code;
    c->context = context_of(&c->o, info.context);
    tool_method_init(&c->method, c->o.drafts.items, c->o.drafts.n);
    if ((code = tool_engine_open(&c->engine, c->model, &c->o, &c->method, c->context, 1)))
        return code;
    tool_request_init(&c->request, c->model, &c->o, 0);
    if ((code = tool_request_try(c->engine, &c->request)))
        return code;
    tool_drafters_note(c->engine);
    return tool_interrupts_repeat() ? 0 : HUNCH_FAILED;
}

static int chat_command(chat *c) {
    int code = chat_open(c);
    if (code)
        return code;
    c->color = !c->o.json_lines && tool_colors(c->o.color, stdout);
    c->styled = tool_colors(c->o.color, stderr);
    c->terminal = tool_is_terminal(stdin);
    c->history = json_array();
    system_set(c, c->o.system ? c->o.system : "");
    if (!tool_template_used(&c->template, c->model))
        tool_message(
            "without a chat template the conversation is one text: each message goes on where the answer ended");
    if (c->terminal && !tool_quiet)
        fputs("/help lists what can be done here\n", stderr);
    return conversation(c);
}

int tool_chat(int argc, char **argv) {
    chat c = {0};
    int code = tool_options_parse(&c.o, TOOL_CHAT, argc, argv);
    if (code >= 0)
        return code;
    code = chat_command(&c);
    hunch_engine_close(&c.engine);
    hunch_model_close(&c.model);
    tool_method_fini(&c.method);
    tool_template_fini(&c.template);
    tool_lines_fini(&c.lines);
    json_decref(c.history);
    free(c.system);
    tool_options_fini(&c.o);
    return code;
}
