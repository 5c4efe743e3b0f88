/* SPDX-License-Identifier: Apache-2.0 */
/* tool_answers.c - see tool_answers.h. Twice as many sessions are open as may run at once: the rest wait in the engine,
 * so that a free place is taken at once. A row is tokenized when its turn comes. */
#include "cli/tool_calls.h"
#include "cli/tool_answers.h"

#include <string.h>

#include "app/tool_open.h"
#include "cli/tool_result.h"
#include "cli/tool_row_keys.h"

/* A row being answered. Its session is window.session of the same index. */
typedef struct place {
    size_t row;
    uint64_t seed;
    tool_why why;
    hunch_tools *tools; /* that its answer may call; NULL: none */
} place;

typedef struct window {
    tool_answers *a;
    hunch_session **session; /* [size]; NULL: free */
    place *places;           /* [size] */
    int size, open;
    size_t next; /* row */
} window;

/* ---- before there is a model --------------------------------------------------------------------------------- */

/* ids: the index of each row by its id. */
static int ids_collect(const tool_prompts *p, json_t *ids) {
    for (size_t i = 0; i < p->n; i++) {
        char where[1100], *key = tool_answers_key(p->items[i].id);
        const json_t *before = json_object_get(ids, key);
        const int code = before ? tool_usage("%sthe id %s is used in line %d already",
                                             tool_prompt_where(&p->items[i], where, sizeof where), key,
                                             p->items[json_integer_value(before)].line)
                                : 0;
        json_object_set_new(ids, key, json_integer((json_int_t)i));
        hn_free(key);
        if (code)
            return code;
    }
    return 0;
}

int tool_answers_open(tool_answers *a) {
    json_t *ids = json_object();
    const bool standard = !a->o->output || strcmp(a->o->output, "-") == 0;
    a->file = (tool_answers_file){.path = standard ? NULL : a->o->output, .resume = a->o->resume, .force = a->o->force};
    a->answered = tool_alloc(a->prompts->n, sizeof *a->answered);
    int code = ids_collect(a->prompts, ids);
    if (!code)
        code = tool_answers_file_check(&a->file, ids, a->answered);
    json_decref(ids);
    for (size_t i = 0; i < a->prompts->n; i++)
        a->left += !a->answered[i];
    if (!code && a->left < a->prompts->n && !tool_quiet)
        tool_message("%s: %zu of %zu rows are answered already", a->file.path, a->prompts->n - a->left, a->prompts->n);
    return code;
}

void tool_answers_fini(tool_answers *a) {
    hn_free(a->answered);
    *a = (tool_answers){0};
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

static int line_write(tool_answers *a, json_t *line) {
    a->done++;
    return tool_answers_file_write(&a->file, line);
}

static int row_failed(tool_answers *a, size_t row, const hunch_error *err) {
    a->failed++;
    return line_write(a, json_pack("{s:O,s:o}", "id", a->prompts->items[row].id, "error",
                                   tool_json_text(err->message, strlen(err->message))));
}

static int row_open(window *w, int at) {
    tool_answers *a = w->a;
    tool_prompt *p = &a->prompts->items[w->next];
    hunch_error err = {0};
    hunch_request q;
    hunch_token stops[HUNCH_MOST_STOPS];
    int code = tool_prompt_render(p, a->model, a->template, &err);
    if (!code) {
        w->places[at] = (place){.row = w->next};
        tool_request_init(&q, a->model, a->o, a->default_n);
        tool_row_request(&q, p);
        q.special_text |= p->chat && hunch_marks_are_special(a->model);
        q.on_round = a->o->why || a->o->trees ? tool_why_add : NULL;
        q.on_round_user = &w->places[at].why;
        w->places[at].seed = q.sampling.seed;
        code = (int)tool_context_check(a->engine, a->model, q.n_prompt, &err);
        if (!code)
            code = (int)tool_row_drafters(&q, a->engine, a->o, p, &err);
        if (!code)
            code = (int)tool_grammar_open(&q.grammar, a->grammar, p->settings, a->model, p->chat, p->thinks, &err);
        if (!code)
            code = (int)tool_calls_open(&w->places[at].tools, &q, stops, a->template, p, a->model, a->o, &err);
        if (!code)
            code = (int)hunch_session_open(&w->session[at], a->engine, &q, &err);
        hunch_grammar_close(&q.grammar); /* the session has it */
    }
    tool_prompt_ids_drop(p);
    if (code) {
        hunch_tools_close(&w->places[at].tools);
        return row_failed(a, w->next, &err);
    }
    w->open++;
    return 0;
}

/* An interrupted row is not reported. */
static int row_report(window *w, int at, const hunch_session_state *st) {
    tool_answers *a = w->a;
    const place *p = &w->places[at];
    if (st->finish == HUNCH_FINISH_CANCELLED)
        return 0;
    if (st->finish == HUNCH_FINISH_FAILED)
        return row_failed(a, p->row, &st->error);
    const tool_result result = {.engine = a->engine,
                                .model = a->model,
                                .load_s = a->load_s,
                                .seed = p->seed,
                                .logprobs = a->o->logprobs,
                                .chat = a->prompts->items[p->row].chat,
                                .thinks = a->prompts->items[p->row].thinks,
                                .tools = p->tools,
                                .stops = a->prompts->items[p->row].n_stops ? a->prompts->items[p->row].stops : a->o->stops.items,
                                .why = a->o->why ? &p->why : NULL,
                                .trees = a->o->trees ? &p->why : NULL};
    json_t *line = json_pack("{s:O}", "id", a->prompts->items[p->row].id), *answer = tool_result_json(&result, st);
    json_object_update(line, answer);
    json_decref(answer);
    return line_write(a, line);
}

static void place_close(window *w, int at) {
    hunch_session_close(&w->session[at]);
    hunch_tools_close(&w->places[at].tools);
    tool_why_fini(&w->places[at].why);
    w->open--;
}

/* Free places take the next rows. */
static int window_fill(window *w) {
    int code = 0;
    for (int at = 0; at < w->size; at++)
        for (; !code && !tool_interrupted && !w->session[at] && w->next < w->a->prompts->n; w->next++)
            if (!w->a->answered[w->next])
                code = row_open(w, at);
    return code;
}

static int window_report(window *w) {
    int code = 0;
    for (int at = 0; at < w->size && !code; at++) {
        hunch_session_state st;
        if (!w->session[at])
            continue;
        hunch_session_get(w->session[at], &st);
        if (st.finish == HUNCH_RUNNING)
            continue;
        code = row_report(w, at, &st);
        place_close(w, at);
    }
    return code;
}

static int window_run(window *w, int most) {
    tool_answers *a = w->a;
    tool_rounds rounds = {
        .engine = a->engine, .session = w->session, .n = w->size, .answers = (int)a->left, .most = most};
    tool_rounds_begin(&rounds, "reading the prompts");
    int code = window_fill(w);
    while (!code && w->open > 0) {
        code = tool_rounds_step(&rounds);
        if (!code)
            code = window_report(w);
        if (!code)
            code = window_fill(w);
        rounds.reported = (int)a->done;
    }
    tool_rounds_end(&rounds);
    return code ? code : tool_interrupted ? HUNCH_CANCELLED : 0;
}

/* ---- all of them --------------------------------------------------------------------------------------------- */

static int answers_end(tool_answers *a, int code) {
    if (code == HUNCH_CANCELLED && !tool_quiet)
        tool_message("interrupted: %zu of %zu rows were done%s", a->done, a->left,
                     a->file.path ? ", --resume answers the rest" : "");
    if (!code && a->failed) {
        tool_message("%zu of %zu rows failed: their objects give the reason", a->failed, a->left);
        code = HUNCH_FAILED;
    }
    return code;
}

int tool_answers_run(tool_answers *a) {
    hunch_request base;
    tool_request_init(&base, a->model, a->o, a->default_n);
    int code = tool_request_try(a->engine, &base);
    if (code)
        return code;
    tool_drafters_note(a->engine);
    window w = {.a = a, .size = a->left < 2 * (size_t)a->parallel ? (int)a->left : 2 * a->parallel};
    w.session = tool_alloc((size_t)w.size, sizeof(hunch_session *));
    w.places = tool_alloc((size_t)w.size, sizeof *w.places);
    tool_interrupts_catch();
    code = window_run(&w, base.max_tokens);
    tool_drafters_note(a->engine);
    for (int at = 0; at < w.size; at++)
        if (w.session[at])
            place_close(&w, at);
    hn_free(w.session);
    hn_free(w.places);
    return answers_end(a, tool_answers_file_end(&a->file, code));
}
