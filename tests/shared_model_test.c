/* SPDX-License-Identifier: Apache-2.0 */
/* shared_model_test.c - the guarantees of hunch.h for threads: a model may be used from any thread, engines of one
 * model from one thread each, at the same time; models are opened and closed concurrently. All results are those of a
 * single thread. Most useful with ThreadSanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fixture.h"

enum { THREADS = 4, REQUESTS = 6, NEW = 16 };
#define STORIES "models/stories260K/stories260K.f32.gguf"
static char stories[512], folder[512], draft_spec[600];
static hunch_model *model;
static const char *const DRAFTS[THREADS] = {"ngram", "auto", "suffix,mode=tree", draft_spec};
static const hunch_token PROMPT[] = {1, 403, 407, 261, 378, 403, 407, 261};

/* cmocka's checks use longjmp, which only the main thread may: others store an error, and the main thread fails. */
typedef struct job {
    pthread_t thread;
    int number;
    char wrong[1200];
} job;

#define WRONG(j, ...) return (void)snprintf((j)->wrong, sizeof(j)->wrong, __VA_ARGS__), NULL

static void jobs_run(void *(*body)(void *job)) {
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){.number = i};
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, body, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(jobs[i].thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        if (*jobs[i].wrong) fail_msg("thread %d: %s", i, jobs[i].wrong);
}

static hunch_request ask(const hunch_model *m, int number) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = PROMPT;
    r.n_prompt = 1 + (size_t)number % (sizeof PROMPT / sizeof *PROMPT);
    r.max_tokens = NEW;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = number % 2 ? 0.9 : 0, .top_p = 0.95, .seed = (uint64_t)number};
    return r;
}

/* The results of a single thread for each request. */
static hunch_token plain[REQUESTS][NEW];

static hunch_status engine_open(hunch_engine **e, hunch_model *m, const char *draft, hunch_error *err) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = 64;
    o.page_rows = 16;
    o.parallel = 2;
    o.drafts = &draft;
    o.n_drafts = draft ? 1 : 0;
    return hunch_engine_open(e, m, &o, err);
}

static hunch_status answer_get(hunch_engine *e, const hunch_model *m, int number, hunch_token out[NEW], hunch_error *err) {
    const hunch_request r = ask(m, number);
    hunch_session *s = NULL;
    hunch_session_state st;
    hunch_status status = hunch_session_open(&s, e, &r, err);
    while (!status && hunch_engine_running(e) > 0) status = hunch_engine_round(e, err);
    if (!status) {
        hunch_session_get(s, &st);
        for (size_t i = 0; i < NEW; i++) out[i] = i < st.n_tokens ? st.tokens[i] : -1;
    }
    hunch_session_close(&s);
    return status;
}

static int setup(void **state) {
    (void)state;
    hunch_engine *e = NULL;
    strcpy(stories, data_path(STORIES));
    strcpy(folder, data_path("models/stories260K/hf"));
    snprintf(draft_spec, sizeof draft_spec, "model:%s,depth=3", data_path("models/stories260K/stories260K.f16.gguf"));
    model = open_model(stories, "best", 2, HUNCH_PRECISION_NATIVE);
    must(engine_open(&e, model, NULL, err));
    for (int i = 0; i < REQUESTS; i++) must(answer_get(e, model, i, plain[i], err));
    hunch_engine_close(&e);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

/* ---- engines of one model, a thread each ------------------------------------------------------------------------------- */

static void *engines_body(void *user) {
    job *j = user;
    hunch_error err = {0};
    hunch_token got[NEW];
    for (int turn = 0; turn < (light() ? 2 : 6); turn++) {
        hunch_engine *e = NULL;
        hunch_status st = engine_open(&e, model, DRAFTS[j->number], &err);
        for (int i = 0; !st && i < REQUESTS; i++) {
            st = answer_get(e, model, i, got, &err);
            if (!st && memcmp(got, plain[i], sizeof got) != 0) WRONG(j, "request %d with %s: another text", i, DRAFTS[j->number]);
        }
        hunch_engine_close(&e);
        if (st) WRONG(j, "%s", err.message);
    }
    return NULL;
}

/* README: "Engines and models may be used from several threads, an engine and its sessions from one at a time." */
static void test_engines(void **state) {
    (void)state;
    jobs_run(engines_body);
}

/* ---- text, while a pass runs -------------------------------------------------------------------------------------------- */

static void *text_body(void *user) {
    job *j = user;
    static const char text[] = "Once upon a time, there was a little girl named Lily.";
    for (int turn = 0; turn < (light() ? 50 : 500); turn++) {
        hunch_error err = {0};
        hunch_token *ids = NULL;
        size_t n = 0, len = 0;
        char *back = NULL;
        hunch_model_info info;
        if (j->number == 0) {
            if (turn == 0) engines_body(j);
            continue;
        }
        hunch_model_get_info(model, &info);
        hunch_status st = hunch_tokenize(model, text, sizeof text - 1, HUNCH_TEXT_ADD_SPECIAL, &ids, &n, &err);
        if (!st) st = hunch_detokenize(model, ids, n, &back, &len, &err);
        if (!st && !strstr(back, text)) WRONG(j, "\"%s\" came back", back);
        hunch_free(back);
        back = NULL;
        if (!st)
            st = hunch_template_render("{% for m in messages %}{{ m.role }}{% endfor %}", "{\"messages\":[{\"role\":\"user\"}]}", NULL,
                                       &back, &len, &err);
        if (!st && strcmp(back, "user") != 0) WRONG(j, "rendered \"%s\"", back);
        hunch_free(back);
        hunch_free(ids);
        if (st) WRONG(j, "%s", err.message);
    }
    return NULL;
}

static void test_text(void **state) {
    (void)state;
    jobs_run(text_body);
}

/* ---- models that open and close beside each other ------------------------------------------------------------------------- */

static void *models_body(void *user) {
    job *j = user;
    for (int turn = 0; turn < (light() ? 2 : 5); turn++) {
        hunch_error err = {0};
        hunch_model *m = NULL;
        hunch_engine *e = NULL;
        hunch_model_options o;
        hunch_token got[NEW];
        hunch_model_options_defaults(&o);
        o.threads = 1 + j->number % 2;
        o.mapped = j->number == 2;
        hunch_status st = hunch_model_open(&m, j->number == 3 ? folder : stories, &o, &err);
        if (!st) st = engine_open(&e, m, "ngram", &err);
        for (int i = 0; !st && i < REQUESTS; i++) {
            st = answer_get(e, m, i, got, &err);
            if (!st && j->number != 3 && memcmp(got, plain[i], sizeof got) != 0) WRONG(j, "request %d: another text", i);
        }
        hunch_engine_close(&e);
        hunch_model_close(&m);
        if (st) WRONG(j, "%s", err.message);
    }
    return NULL;
}

static void test_models(void **state) {
    (void)state;
    jobs_run(models_body);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_engines), cmocka_unit_test(test_text), cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
