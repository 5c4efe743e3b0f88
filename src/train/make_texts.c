/* SPDX-License-Identifier: Apache-2.0 */
/* make_texts.c - see make_texts.h. */
#include "train/make_texts.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "engine/engine.h"
#include "train/texts.h"

/* ---- many sessions at once, collected in order ------------------------------------------------------------------------------ */

enum { MOST_TURNS = 8 };

/* The result of one turn of a job. */
typedef struct turn_result {
    hunch_token *ids; /* prompt and answer; hn_free */
    size_t n, own;    /* the answer starts at `own` */
    char *text;       /* the answer's; hn_free */
} turn_result;

/* Jobs are started in order, many at once, and collected in the same order. */
typedef struct line {
    hunch_model *model;   /* of the tokens */
    hunch_model *speaker; /* the model that answers */
    hunch_engine *engine;
    const hn_train_make *how;
    void *user;
    /* The prompt of job k's next turn, after the earlier turns, as *ids (hn_free), and r's sampling. *ids NULL: there is none. */
    hunch_status (*ask)(void *user, size_t job, const turn_result *said, int turns, hunch_token **ids, size_t *n,
                        hunch_request *r, hunch_error *err);
    hunch_status (*take)(void *user, size_t job, const turn_result *said, int turns, hunch_error *err);
} line;

typedef struct place {
    size_t job;
    bool done;
    hunch_session *session;
    hunch_token *prompt;
    size_t n_prompt;
    turn_result said[MOST_TURNS];
    int turns;
} place;

static void place_clear(place *p) {
    hunch_session_close(&p->session);
    hn_free(p->prompt);
    for (int i = 0; i < p->turns; i++) {
        hn_free(p->said[i].ids);
        hn_free(p->said[i].text);
    }
    *p = (place){0};
}

/* Opens the next turn of the place's job, or marks the job as done. */
static hunch_status place_open(const line *l, place *p, hunch_error *err) {
    hunch_request r;
    hunch_request_defaults(&r, l->model);
    r.sampling = (hunch_sampling){.top_p = 1};
    r.max_tokens = l->how->max_tokens;
    p->prompt = NULL;
    p->done = p->turns == MOST_TURNS;
    if (p->done) return HUNCH_OK;
    hunch_status st = l->ask(l->user, p->job, p->said, p->turns, &p->prompt, &p->n_prompt, &r, err);
    if (st) return st;
    /* a prompt without room for an answer ends the conversation */
    p->done = !p->prompt || p->n_prompt + 16 > (size_t)hunch_engine_context(l->engine);
    if (p->done) return HUNCH_OK;
    r.prompt = p->prompt;
    r.n_prompt = p->n_prompt;
    return hunch_session_open(&p->session, l->engine, &r, err);
}

/* Cuts a speaker's answer where the model would end; *text is the caller's. The speaker may have neither the model's
 * end tokens nor its tokenizer. */
static hunch_status cut_answer(const line *l, const hunch_session_state *s, size_t *n, char **text, hunch_error *err) {
    const hn_tokenizer *t = l->model->tokenizer;
    char *made = NULL;
    size_t len = s->text_len;
    hunch_status st = HUNCH_OK;
    *n = s->n_tokens;
    if (l->speaker != l->model) {
        for (size_t i = 0; t && i < *n; i++)
            if (hn_tokenizer_is_end(t, s->tokens[i])) *n = i + 1;
        st = hunch_detokenize(l->model, s->tokens, *n, &made, &len, err);
        if (st) return st;
    }
    *text = hn_strndup(made ? made : s->text ? s->text : "", made || s->text ? len : 0);
    hunch_free(made);
    return *text ? HUNCH_OK : hn_fail_memory(err, "an answer", len);
}

static hunch_status place_collect(const line *l, place *p, const hunch_session_state *s, hunch_error *err) {
    turn_result *said = &p->said[p->turns];
    size_t n;
    char *text = NULL;
    hunch_status st = cut_answer(l, s, &n, &text, err);
    *said = (turn_result){.ids = st ? NULL : hn_alloc((p->n_prompt + n) * sizeof *said->ids),
                     .n = p->n_prompt + n,
                     .own = p->n_prompt,
                     .text = text};
    p->turns++;
    if (st) return st;
    if (!said->ids) return hn_fail_memory(err, "an answer", said->n * sizeof *said->ids);
    memcpy(said->ids, p->prompt, p->n_prompt * sizeof *said->ids);
    memcpy(said->ids + p->n_prompt, s->tokens, n * sizeof *said->ids);
    hn_free(p->prompt);
    p->prompt = NULL;
    hunch_session_close(&p->session);
    return place_open(l, p, err);
}

static hunch_status places_collect(const line *l, place *places, int n, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < n; i++) {
        hunch_session_state s;
        if (!places[i].session) continue;
        hunch_session_get(places[i].session, &s);
        if (s.finish == HUNCH_RUNNING) continue;
        st = s.finish == HUNCH_FINISH_FAILED ? hn_fail(err, s.error.status, "%s", s.error.message)
                                             : place_collect(l, &places[i], &s, err);
    }
    return st;
}

/* Jobs first .. n - 1. */
static hunch_status line_run(const line *l, size_t first, size_t n, hunch_error *err) {
    const int width = 2 * l->how->parallel; /* early results wait for the first */
    place *places = hn_zalloc((size_t)width, sizeof *places);
    size_t asked = first, taken = first;
    const double start = hn_now();
    uint64_t tokens = 0;
    hunch_status st = places ? HUNCH_OK : hn_fail_memory(err, "answers", (size_t)width * sizeof *places);
    while (!st && taken < n) {
        for (; !st && asked < n && asked < taken + (size_t)width; asked++) {
            place *p = &places[asked % (size_t)width];
            *p = (place){.job = asked};
            st = place_open(l, p, err);
        }
        if (!st && hunch_engine_running(l->engine)) st = hunch_engine_round(l->engine, err);
        if (!st) st = places_collect(l, places, width, err);
        for (place *p; !st && taken < asked && (p = &places[taken % (size_t)width])->done; taken++) {
            st = l->take(l->user, p->job, p->said, p->turns, err);
            for (int i = 0; i < p->turns; i++) tokens += p->said[i].n;
            place_clear(p);
            if (l->how->progress) l->how->progress(l->how->user, taken + 1, n, tokens, hn_now() - start);
        }
        if (!st && l->how->stop && *l->how->stop)
            st = hn_fail(err, HUNCH_CANCELLED, "interrupted: %zu of %zu rows were done", taken, n);
    }
    for (int i = 0; places && i < width; i++) place_clear(&places[i]);
    hn_free(places);
    return st;
}

static hunch_status engine_open(line *l, hunch_error *err) {
    static const char *const drafts[] = {"auto"};
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.drafts = drafts;
    o.n_drafts = 1;
    o.context = l->how->context;
    o.parallel = l->how->parallel;
    return hunch_engine_open(&l->engine, l->speaker, &o, err);
}

/* ---- answers ----------------------------------------------------------------------------------------------------------- */

typedef struct answering {
    hunch_model *model;
    const hn_train_rows *rows;
    const hn_train_make *how;
    hunch_model_info info;
    FILE *file;
    const char *path;
} answering;

/* Jobs are rows at a temperature: all rows at the first, then all at the next; a text is a job at the first only. */
static const hn_train_row *row_of(const answering *a, size_t job) {
    return &a->rows->item[job % a->rows->n];
}

static hunch_status copy_ids(hunch_token *ids, size_t n, hunch_token **out, hunch_error *err) {
    *out = hn_alloc((n ? n : 1) * sizeof **out);
    if (*out && n) memcpy(*out, ids, n * sizeof **out);
    hunch_free(ids);
    return *out ? HUNCH_OK : hn_fail_memory(err, "a prompt", n * sizeof **out);
}

/* The tokens of messages: through the template, or without one only those of the last message. */
static hunch_status messages_ids(const answering *a, const hunch_message *m, size_t count, hunch_token **ids, size_t *n,
                                 hunch_error *err) {
    hunch_token *made = NULL;
    const char *last = m[count - 1].content;
    hunch_status st = a->info.has_chat_template
                          ? hunch_chat_tokens(a->model, m, count, &made, n, err)
                          : hunch_tokenize(a->model, last, strlen(last), HUNCH_TEXT_ADD_SPECIAL, &made, n, err);
    return st ? st : copy_ids(made, *n, ids, err);
}

/* The messages up to the next question, with the target's answers in place of those of the row. *ids NULL: no more questions. */
static hunch_status next_question(const answering *a, const json_t *all, const turn_result *said, int turns,
                                  hunch_token **ids, size_t *n, hunch_error *err) {
    hunch_message *m = hn_zalloc(2 * json_array_size(all) + 1, sizeof *m);
    size_t count = 0, i;
    int questions = 0;
    bool found = false;
    const json_t *one;
    if (!m) return hn_fail_memory(err, "a conversation", json_array_size(all) * sizeof *m);
    json_array_foreach(all, i, one) {
        const char *role = json_string_value(json_object_get(one, "role"));
        if (found || !strcmp(role, "assistant")) continue;
        m[count++] = (hunch_message){role, json_string_value(json_object_get(one, "content"))};
        if (strcmp(role, "user") != 0) continue;
        found = questions == turns;
        if (!found) m[count++] = (hunch_message){"assistant", said[questions++].text};
    }
    if (turns > 0 && !a->info.has_chat_template) found = false;
    hunch_status st = found ? messages_ids(a, m, count, ids, n, err) : HUNCH_OK;
    hn_free(m);
    return st;
}

static hunch_status prompt_of_row(void *user, size_t job, const turn_result *said, int turns, hunch_token **ids, size_t *n,
                            hunch_request *r, hunch_error *err) {
    const answering *a = user;
    const hn_train_row *row = row_of(a, job);
    *ids = NULL;
    if (!row->messages) return HUNCH_OK;
    r->sampling.temperature = a->how->temperature[job / a->rows->n];
    r->sampling.seed = a->how->seed + job * MOST_TURNS + (uint64_t)turns;
    return next_question(a, row->messages, said, turns, ids, n, err);
}

/* A text in unchanged pieces that fit the context. */
static hunch_status text_append(answering *a, size_t job, const char *text, hunch_error *err) {
    hunch_token *ids;
    size_t n;
    char id[60];
    hunch_status st = hunch_tokenize(a->model, text, strlen(text), HUNCH_TEXT_ADD_SPECIAL, &ids, &n, err);
    if (st) return st;
    const size_t piece = (size_t)a->how->context;
    for (size_t at = 0, k = 0; !st && at < n; at += piece, k++) {
        snprintf(id, sizeof id, "%zu-text-%zu", job, k);
        st = hn_train_texts_append(a->file, a->path, id, ids + at, n - at < piece ? n - at : piece, at == 0, err);
    }
    hunch_free(ids);
    return st;
}

static hunch_status row_done(void *user, size_t job, const turn_result *said, int turns, hunch_error *err) {
    answering *a = user;
    const hn_train_row *row = row_of(a, job);
    char id[60];
    hunch_status st = row->messages || job >= a->rows->n ? HUNCH_OK : text_append(a, job, row->text, err);
    for (int i = 0; !st && i < turns; i++) {
        snprintf(id, sizeof id, "%zu-%d", job, i);
        st = hn_train_texts_append(a->file, a->path, id, said[i].ids, said[i].n, said[i].own, err);
    }
    return st ? st : hn_train_texts_done(a->file, a->path, job + 1, err);
}

hunch_status hn_train_texts_make(hunch_model *m, const hn_train_rows *rows, const hn_train_make *how, const char *path,
                                 hunch_error *err) {
    answering a = {.model = m, .rows = rows, .how = how, .path = path};
    line l = {.model = m, .how = how, .user = &a, .ask = prompt_of_row, .take = row_done};
    l.speaker = how->speaker ? how->speaker : m;
    const size_t jobs = rows->n * (size_t)how->n_temperatures;
    size_t done = 0;
    hunch_model_get_info(m, &a.info);
    hunch_status st = hn_train_texts_resume(&a.file, path, &done, err);
    if (st) return st;
    if (done > jobs)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %zu jobs are done, and the rows make %zu: expected one of the same rows",
                     path, done, jobs);
    if (!st) st = engine_open(&l, err);
    if (!st) st = line_run(&l, done, jobs, err);
    hunch_engine_close(&l.engine);
    if (fclose(a.file) != 0 && !st) st = hn_fail(err, HUNCH_FAILED, "%s: cannot be written", path);
    return st;
}

/* ---- prompts generated by the model ----------------------------------------------------------------------------------------- */

typedef struct asking {
    hunch_model *model;
    hn_train_rows *rows;
    const hn_train_make *how;
    hunch_model_info info;
    hunch_token *front; /* the template's tokens before a user's text; NULL: there is no template */
    size_t n_front;
} asking;

/* Finds the template's text before a user's text: the part before a marker rendered in its place. */
static hunch_status find_front(asking *a, hunch_error *err) {
    static const char mark[] = "@user words@";
    char *text;
    size_t len;
    hunch_token *ids;
    if (!a->info.has_chat_template) return HUNCH_OK;
    hunch_status st = hunch_chat_render(
        a->model,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"@user words@\"}], \"add_generation_prompt\": true}", &text,
        &len, err);
    if (st) return st;
    char *at = strstr(text, mark);
    st = at ? hunch_tokenize(a->model, text, (size_t)(at - text), HUNCH_TEXT_RENDERED, &ids, &a->n_front, err)
            : hn_fail(err, HUNCH_REFUSED, "the chat template does not repeat a user's words: expected one that does");
    hunch_free(text);
    return st ? st : copy_ids(ids, a->n_front, &a->front, err);
}

static hunch_status prompt_of_model(void *user, size_t job, const turn_result *said HN_UNUSED, int turns, hunch_token **ids,
                               size_t *n, hunch_request *r, hunch_error *err) {
    const asking *a = user;
    hn_random_key key = {.seed = a->how->seed, .position = job, .purpose = HN_PURPOSE_PROPOSAL};
    *ids = NULL;
    if (turns > 0) return HUNCH_OK;
    *n = a->front ? a->n_front : 1;
    *ids = hn_alloc(*n * sizeof **ids);
    if (!*ids) return hn_fail_memory(err, "a prompt", *n * sizeof **ids);
    if (a->front)
        memcpy(*ids, a->front, *n * sizeof **ids);
    else
        (*ids)[0] = (hunch_token)(hn_random_uniform(&key) * a->info.vocab);
    r->sampling.temperature = 1;
    r->sampling.seed = a->how->seed + job;
    r->max_tokens = 200;
    return HUNCH_OK;
}

static hunch_status model_prompt_done(void *user, size_t job HN_UNUSED, const turn_result *said, int turns, hunch_error *err) {
    asking *a = user;
    return turns > 0 && strlen(said[0].text) >= 8 ? hn_train_rows_add_prompt(a->rows, said[0].text, err)
                                                  : HUNCH_OK;
}

hunch_status hn_train_rows_of_model(hunch_model *m, hn_train_rows *rows, size_t n, const hn_train_make *how,
                                    hunch_error *err) {
    asking a = {.model = m, .rows = rows, .how = how};
    line l = {.model = m, .speaker = m, .how = how, .user = &a, .ask = prompt_of_model, .take = model_prompt_done};
    hunch_model_get_info(m, &a.info);
    hunch_status st = find_front(&a, err);
    if (!st) st = engine_open(&l, err);
    if (!st) st = line_run(&l, 0, n, err);
    hunch_engine_close(&l.engine);
    hn_free(a.front);
    return st;
}
