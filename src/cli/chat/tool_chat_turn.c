/* SPDX-License-Identifier: Apache-2.0 */
/* tool_chat_turn.c - one answer of `hunch chat`.
 *
 * Every turn renders the conversation through the chat template and opens a session on the same engine; the shared prefix makes that cheap.
 * If the context is too small, the oldest turns are left out first. A message that cannot be answered (too long, not UTF-8, refused by the
 * template) is removed and the conversation continues. */
#include <string.h>

#include "base/utf8.h"
#include "cli/tool_calls.h"
#include "cli/chat/tool_chat.h"
#include "cli/tool_result.h"
#include "cli/tool_verify_exact.h"

/* ---- errors -------------------------------------------------------------------------------------------------- */

/* With --json-lines every message gets an object, also one that failed. */
int tool_chat_failed(tool_chat_state *c, const hunch_error *err) {
    c->failed = true;
    tool_failed(err);
    return c->o.json_lines &&
                   tool_print_json(json_pack("{s:o}", "error", tool_json_text(err->message, strlen(err->message))))
               ? HUNCH_FAILED
               : TOOL_GO_ON;
}

/* ---- what the model reads -------------------------------------------------------------------------------------- */

static int conversation_render(tool_chat_state *c, tool_rendered *out, hunch_error *err) {
    json_t *messages = tool_conversation_messages(&c->talk);
    const int code = tool_messages_render(out, &c->template, c->model, messages, err);
    json_decref(messages);
    return code;
}

/* Rows to reserve for the answer. */
static size_t room_wanted(const tool_chat_state *c) {
    const size_t quarter = (size_t)c->context / 4, most = (size_t)c->request.max_tokens;
    return most > 0 && most < quarter ? most : quarter;
}

static size_t keep_of(const tool_chat_state *c) {
    return c->o.keep == TOOL_UNSET ? 0 : (size_t)c->o.keep;
}

/* Leaves out the oldest turns until there is room for this answer and the next, so that not every later message changes the prefix that the
 * cache holds. */
static int oldest_leave_out(tool_chat_state *c, tool_rendered *r, hunch_error *err) {
    const size_t room = room_wanted(c), context = (size_t)c->context, wanted = r->n + room;
    size_t left_out = 0;
    char advice[80];
    int code = 0;
    if (wanted <= context)
        return 0;
    while (!code && r->n + 2 * room > context && tool_conversation_leave_out(&c->talk, keep_of(c))) {
        left_out++;
        hn_free(r->ids);
        code = conversation_render(c, r, err);
    }
    tool_context_advice(c->model, wanted, "/set context=", advice);
    if (left_out)
        tool_message("the context of %d rows is full: the %zu oldest turns%s are left out from here on; %s", c->context,
                     left_out, keep_of(c) ? " after those of --keep" : "", advice);
    if (!code && r->n > context)
        code = (int)hn_fail(err, HUNCH_USAGE,
                            "not sent: with this message%s the conversation has %zu tokens, the context holds %d; "
                            "/reset begins anew, %s",
                            keep_of(c) ? " and the turns of --keep" : "", r->n, c->context,
                            tool_context_advice(c->model, r->n, "/set context=", advice));
    return code;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static void totals_add(tool_chat_state *c, const hunch_session_state *st) {
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

static void turn_line(const tool_chat_state *c, const hunch_session_state *st) {
    char note[200];
    fprintf(stderr, "%s[%zu tokens, %.1f tokens/s", tool_style(c->styled, 'd'), st->n_tokens, tool_decode_speed(st));
    if (st->rounds)
        fprintf(stderr, " · acceptance length %.2f", tool_tau(st));
    fprintf(stderr, " · %llu of %zu prompt rows restored · finish %s]%s\n", (unsigned long long)st->n_restored,
            st->n_prompt, tool_finish_name(st->finish), tool_style(c->styled, '0'));
    if (c->color && c->styled && hunch_engine_drafters(c->engine) > 0)
        tool_sources_print(c->engine, st, true);
    if (*tool_rule_note(st->verify, &st->lossy, note))
        fprintf(stderr, "%s%s%s\n", tool_style(c->styled, 'y'), note, tool_style(c->styled, '0'));
}

/* Reports an answer that ended early. */
static void end_note(const tool_chat_state *c, const hunch_session_state *st) {
    char advice[80];
    if (st->finish == HUNCH_FINISH_LOOP)
        tool_message("the answer ends here: it repeated the same %d tokens a fourth time; %s turns this check off",
                     c->request.loop_tokens, c->terminal ? "/set loop_guard off" : "--no-loop-guard");
    else if (st->finish == HUNCH_FINISH_LENGTH && st->n_prompt + st->n_tokens >= (size_t)c->context)
        tool_message("the answer ends here: the context of %d rows is full; %s", c->context,
                     tool_context_advice(c->model, (size_t)c->context + 1, "/set context=", advice));
}

/* Marks that are special tokens have no place in a message, where their names are text: thinking is a field of its own, as templates with
 * such marks expect it. Other templates find what is between their marks themselves. */
static void answer_keep(tool_chat_state *c, const hunch_session_state *st, const tool_rendered *prompt) {
    const bool special = hunch_marks_are_special(c->model);
    json_t *calls = c->tools ? tool_calls_message(c->tools, prompt->thinks, st->text, st->text_len, special ? "thinking" : NULL) : NULL;
    if (calls) {
        tool_conversation_push(&c->talk, calls);
        return;
    }
    if (!prompt->chat || !special) {
        tool_conversation_add(&c->talk, "assistant", st->text, st->text_len);
        return;
    }
    tool_apart a = tool_answer_apart(c->model, prompt->thinks, st->text, st->text_len);
    tool_conversation_add(&c->talk, "assistant", a.said, a.n_said);
    if (a.n_thought)
        tool_conversation_set(&c->talk, "thinking", a.thought, a.n_thought);
    tool_apart_fini(&a);
}

static int turn_report(tool_chat_state *c, const hunch_session_state *st, const tool_rendered *prompt) {
    int code;
    totals_add(c, st);
    answer_keep(c, st, prompt);
    if (c->o.json_lines) {
        tool_result result = {.engine = c->engine,
                              .load_s = c->load_s,
                              .seed = c->request.sampling.seed,
                              .model = c->model,
                              .logprobs = c->o.logprobs,
                              .chat = prompt->chat,
                              .thinks = prompt->thinks,
                              .tools = c->tools};
        code = tool_print_json(tool_result_json(&result, st));
    } else {
        printf("%s\n", tool_style(c->color, '0'));
        code = tool_done(HUNCH_OK);
        if (!tool_quiet)
            turn_line(c, st);
    }
    end_note(c, st);
    if (!c->o.json_lines)
        tool_chat_waits(c);
    return code ? code : TOOL_GO_ON;
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

/* *answered: there is an answer, perhaps incomplete. */
static int turn_generate(tool_chat_state *c, hunch_session **s, tool_verify_exact *twin, const tool_rendered *prompt, bool *answered) {
    tool_wrap wrap = {.to = stdout};
    tool_stream stream = {
        .model = c->model, .color = c->color, .split.thinking = prompt->thinks, .wrap = tool_is_terminal(stdout) ? &wrap : NULL};
    tool_rounds rounds = {.engine = c->engine, .session = s, .n = 1, .stream = c->o.json_lines ? NULL : &stream};
    hunch_session_state st = {.finish = HUNCH_RUNNING};
    int code = 0;
    if (c->tools && rounds.stream)
        (void)hunch_calls_open(&stream.calls, c->tools, prompt->thinks, NULL); /* without memory for it all is text */
    tool_rounds_begin(&rounds, "reading the conversation");
    while (!code && st.finish == HUNCH_RUNNING) {
        code = tool_rounds_step(&rounds);
        if (!code && c->o.verify_exact)
            code = tool_verify_exact_follow(twin, c->engine, *s);
        hunch_session_get(*s, &st);
    }
    tool_wrap_end(&wrap);
    tool_rounds_end(&rounds);
    tool_ends_fini(&stream.ends);
    hunch_calls_close(&stream.calls);
    if (tool_interrupted == SIGINT)
        tool_interrupts_clear();
    if (code)
        return code;
    tool_drafters_note(c->engine);
    if (st.finish == HUNCH_FINISH_FAILED)
        return tool_chat_failed(c, &st.error);
    if (st.finish == HUNCH_FINISH_GRAMMAR)
        tool_message("the answer ends early: %s", st.error.message);
    *answered = true;
    if (c->o.verify_exact && (code = tool_verify_exact_finish(twin, c->engine, *s)))
        return code;
    code = turn_report(c, &st, prompt);
    return tool_interrupted && tool_interrupted != SIGINT ? HUNCH_CANCELLED : code;
}

static int twin_open(const tool_chat_state *c, tool_verify_exact *t, hunch_request *q) {
    hunch_engine_options o;
    tool_engine_options(&o, &c->o);
    o.context = c->context;
    return tool_verify_exact_open(t, c->model, &o, q);
}

/* What the answer may call. */
static hunch_status calls_open(tool_chat_state *c, const tool_rendered *r, hunch_error *err) {
    const tool_prompt p = {.chat = r->chat, .thinks = r->thinks, .messages = c->talk.messages};
    hunch_tools_close(&c->tools);
    return tool_calls_open(&c->tools, &c->request, c->stops, &c->template, &p, c->model, &c->o, err);
}

int tool_chat_answer(tool_chat_state *c, bool *answered) {
    hunch_error err = {0};
    const hunch_request before = c->request; /* without what belongs to this answer */
    tool_rendered r = {0};
    hunch_session *s = NULL;
    tool_verify_exact twin = {0};
    int code = conversation_render(c, &r, &err);
    if (!code)
        code = oldest_leave_out(c, &r, &err);
    c->request.prompt = r.ids;
    c->request.n_prompt = r.n;
    c->request.special_text = r.chat && hunch_marks_are_special(c->model);
    if (!code)
        code = (int)tool_grammar_open(&c->request.grammar, &c->grammar, NULL, c->model, r.chat, r.thinks, &err);
    if (!code)
        code = (int)calls_open(c, &r, &err);
    hunch_request q = c->request;
    const int twin_code = !code && c->o.verify_exact ? twin_open(c, &twin, &q) : 0;
    if (!code && !twin_code)
        code = (int)hunch_session_open(&s, c->engine, &q, &err);
    hunch_grammar_close(&c->request.grammar); /* the session has it */
    code = twin_code ? twin_code : code ? tool_chat_failed(c, &err) : turn_generate(c, &s, &twin, &r, answered);
    hunch_session_close(&s);
    tool_verify_exact_close(&twin);
    hn_free(r.ids);
    c->request.stop_tokens = before.stop_tokens;
    c->request.n_stop_tokens = before.n_stop_tokens;
    return code;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

int tool_chat_send(tool_chat_state *c, const char *text, size_t len) {
    const size_t valid = hn_utf8_check(text, len);
    hunch_error err = {0};
    bool answered = false;
    if (valid < len) {
        hn_fail(&err, HUNCH_USAGE, "the message is not valid UTF-8 at byte %zu: not sent", valid);
        return tool_chat_failed(c, &err);
    }
    if (tool_conversation_waits(&c->talk)) {
        hn_fail(&err, HUNCH_USAGE, "not sent: a call waits for its result: /tool RESULT gives it, /again answers anew");
        return tool_chat_failed(c, &err);
    }
    tool_conversation_add(&c->talk, "user", text, len);
    const int code = tool_chat_answer(c, &answered);
    if (!answered)
        tool_conversation_drop(&c->talk);
    return code;
}

int tool_chat_again(tool_chat_state *c) {
    json_t *before = NULL;
    bool answered = false;
    if (tool_conversation_last_is(&c->talk, "assistant")) {
        before = json_incref((json_t *)(uintptr_t)tool_conversation_last(&c->talk));
        tool_conversation_drop(&c->talk);
        c->request.sampling.seed = (c->request.sampling.seed + 1) & (((uint64_t)1 << 53) - 1);
        if (c->request.sampling.temperature == 0 && !tool_quiet)
            tool_message("at temperature 0 the answer is the same: try /set temperature .8");
    }
    int code = TOOL_GO_ON;
    const bool whole = tool_conversation_last_is(&c->talk, "tool") && !tool_conversation_waits(&c->talk);
    if (whole || tool_conversation_last_is(&c->talk, "user")) {
        code = tool_chat_answer(c, &answered);
    } else {
        tool_message("/again: there is no message to answer again");
        c->failed = true;
    }
    if (!answered && before)
        json_array_append(c->talk.messages, before);
    json_decref(before);
    return code;
}
