/* SPDX-License-Identifier: Apache-2.0 */
/* make_texts.c - see make_texts.h. */
#include "train/data/make_texts.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "engine/engine.h"
#include "train/data/answers.h"
#include "train/data/texts.h"

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
static hunch_status next_question(const answering *a, const json_t *all, const hn_answer *said, int turns,
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

static hunch_status prompt_of_row(void *user, size_t job, const hn_answer *said, int turns, hunch_token **ids, size_t *n,
                            hunch_request *r, hunch_error *err) {
    const answering *a = user;
    const hn_train_row *row = row_of(a, job);
    *ids = NULL;
    if (!row->messages) return HUNCH_OK;
    r->sampling.temperature = a->how->temperature[job / a->rows->n];
    r->sampling.seed = a->how->seed + job * HN_MOST_TURNS + (uint64_t)turns;
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

static hunch_status row_done(void *user, size_t job, const hn_answer *said, int turns, hunch_error *err) {
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
    const hn_answers all = {.model = m,
                            .speaker = how->speaker ? how->speaker : m,
                            .how = how,
                            .drafts = "auto",
                            .user = &a,
                            .ask = prompt_of_row,
                            .take = row_done};
    const size_t jobs = rows->n * (size_t)how->n_temperatures;
    size_t done = 0;
    hunch_model_get_info(m, &a.info);
    hunch_status st = hn_train_texts_resume(&a.file, path, &done, err);
    if (st) return st;
    if (done > jobs)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %zu jobs are done, and the rows make %zu: expected one of the same rows",
                     path, done, jobs);
    if (!st) st = hn_answers_make(&all, done, jobs, err);
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
    static const char vars[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"@user words@\"}], \"add_generation_prompt\": true}";
    hunch_status st = hunch_chat_render(a->model, vars, NULL, &text, &len, err);
    if (st) return st;
    char *at = strstr(text, mark);
    st = at ? hunch_tokenize(a->model, text, (size_t)(at - text), HUNCH_TEXT_RENDERED, &ids, &a->n_front, err)
            : hn_fail(err, HUNCH_REFUSED, "the chat template does not repeat a user's words: expected one that does");
    hunch_free(text);
    return st ? st : copy_ids(ids, a->n_front, &a->front, err);
}

static hunch_status prompt_of_model(void *user, size_t job, const hn_answer *said HN_UNUSED, int turns, hunch_token **ids,
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

static hunch_status model_prompt_done(void *user, size_t job HN_UNUSED, const hn_answer *said, int turns, hunch_error *err) {
    asking *a = user;
    return turns > 0 && strlen(said[0].text) >= 8 ? hn_train_rows_add_prompt(a->rows, said[0].text, err)
                                                  : HUNCH_OK;
}

hunch_status hn_train_rows_of_model(hunch_model *m, hn_train_rows *rows, size_t n, const hn_train_make *how,
                                    hunch_error *err) {
    asking a = {.model = m, .rows = rows, .how = how};
    const hn_answers all = {.model = m,
                            .speaker = m,
                            .how = how,
                            .drafts = "auto",
                            .user = &a,
                            .ask = prompt_of_model,
                            .take = model_prompt_done};
    hunch_model_get_info(m, &a.info);
    hunch_status st = find_front(&a, err);
    if (!st) st = hn_answers_make(&all, 0, n, err);
    hn_free(a.front);
    return st;
}
