/* SPDX-License-Identifier: Apache-2.0 */
/* pages_test.c - pools of all sizes, and requests of all kinds against them: the engine finishes, rounds make progress,
 * answers are those of a machine with enough memory, and requests that cannot be served give an error. Priorities of
 * sessions: scheduler_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/session.h"
#include "fixture.h"

enum { MOST = 12, PROMPT = 120, IDLE_ROUNDS = 3 };
#define STORIES "models/stories260K/stories260K.f32.gguf"

static hunch_model *model;
static char self_draft[600];

static int setup(void **state) {
    (void)state;
    model = open_model(data_path(STORIES), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    snprintf(self_draft, sizeof self_draft, "model:%s,depth=4", data_path("models/stories260K/stories260K.f16.gguf"));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static int between(uint64_t *seed, int least, int most) {
    return least + (int)(hn_splitmix(seed) % (uint64_t)(most - least + 1));
}

typedef struct work {
    hunch_token prompt[MOST][PROMPT];
    hunch_request request[MOST];
    int n;
} work;

/* Prompts that share beginnings of random lengths. */
static void work_make(work *w, uint64_t *seed, int context) {
    w->n = between(seed, 1, MOST);
    for (int i = 0; i < w->n; i++) {
        const int rows = between(seed, 1, context < PROMPT ? context : PROMPT), shared = between(seed, 0, rows);
        for (int k = 0; k < rows; k++)
            w->prompt[i][k] = k == 0 ? 1 : k < shared ? (k * 31) % 500 + 3 : between(seed, 3, 500);
        hunch_request_defaults(&w->request[i], model);
        w->request[i].prompt = w->prompt[i];
        w->request[i].n_prompt = (size_t)rows;
        w->request[i].max_tokens = between(seed, 1, 60);
        w->request[i].ignore_eos = true;
        w->request[i].sampling = (hunch_sampling){.temperature = between(seed, 0, 1) ? 0.8 : 0, .top_p = 1, .seed = (uint64_t)i};
    }
}

/* A count that only increases while sessions run; it is unchanged by a round without work. */
static uint64_t progress_of(hunch_session *const *s, int n) {
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        sum += st.passes + (st.finish != HUNCH_RUNNING);
    }
    return sum;
}

static void run_to_the_end(hunch_engine *e, const work *w, answer *got, const char *what) {
    hunch_session *s[MOST];
    uint64_t before = 0;
    int idle = 0;
    for (int i = 0; i < w->n; i++) must(hunch_session_open(&s[i], e, &w->request[i], err));
    while (hunch_engine_running(e) > 0) {
        must(hunch_engine_round(e, err));
        const uint64_t now = progress_of(s, w->n);
        idle = now == before ? idle + 1 : 0;
        before = now;
        if (idle > IDLE_ROUNDS) fail_msg("%s: %d rounds without progress, %d sessions wait", what, idle, hunch_engine_running(e));
    }
    for (int i = 0; i < w->n; i++) {
        keep_answer(&got[i], s[i]); /* none failed: one sequence always has room */
        hunch_session_close(&s[i]);
    }
    assert_true(hn_cache_valid(e->cache));
}

static void check(uint64_t number) {
    static const char *const drafts[] = {NULL, "ngram", "suffix,mode=tree", "forced,accept=0.7,depth=6,tree=random,seed=5",
                                         self_draft, "auto"};
    uint64_t seed = number;
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = between(&seed, 1, 4) == 1 ? between(&seed, 2, 40) : between(&seed, 41, 200);
    o.page_rows = 16 << between(&seed, 0, 2);
    o.chunk = between(&seed, 1, 4) == 1 ? between(&seed, 65, 200) : between(&seed, 1, 64);
    o.no_prefix_reuse = between(&seed, 0, 3) == 0;
    o.parallel = between(&seed, 1, 8);
    const char *draft = drafts[between(&seed, 0, 5)];
    static work w;
    work_make(&w, &seed, o.context);
    answer want[MOST] = {{0}}, got[MOST] = {{0}};
    char what[200];
    o.pool_rows = between(&seed, 1, o.parallel * o.context); /* fewer than one sequence takes are as many */
    snprintf(what, sizeof what, "seed %llu: context %d, pages of %d, %d rows, parallel %d, draft %s", (unsigned long long)number,
             o.context, o.page_rows, o.pool_rows, o.parallel, draft ? draft : "none");
    hunch_engine *e = open_engine_with(model, draft, o);
    run_to_the_end(e, &w, got, what);
    run_to_the_end(e, &w, want, what); /* with the rows of the first run in the index */
    hunch_engine_close(&e);
    for (int i = 0; i < w.n; i++) {
        assert_same(&want[i], &got[i], what);
        answer_free(&want[i]);
    }
    o.pool_rows = 0;
    o.no_prefix_reuse = true;
    e = open_engine_with(model, NULL, o);
    run_to_the_end(e, &w, want, what);
    hunch_engine_close(&e);
    for (int i = 0; i < w.n; i++) {
        assert_same(&want[i], &got[i], what);
        answer_free(&want[i]);
        answer_free(&got[i]);
    }
}

static void test_random_pools(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= (light() ? 15 : 80); n++) check(n);
}

/* Pools that are too large for any machine are refused with their size. */
static void test_no_room(void **state) {
    (void)state;
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_error why = {0};
    hunch_engine_options_defaults(&o);
    o.context = 512;
    o.parallel = 8;
    o.pool_rows = INT32_MAX;
    o.page_rows = 1 << 20;
    const hunch_status st = hunch_engine_open(&e, model, &o, &why);
    if (st == HUNCH_OK) { /* the system overcommits */
        hunch_engine_close(&e);
        return;
    }
    assert_true(st == HUNCH_NO_MEMORY || st == HUNCH_USAGE);
    assert_null(e);
    assert_true(strlen(why.message) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_pools), cmocka_unit_test(test_no_room)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
