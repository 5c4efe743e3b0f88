/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler_test.c - sharing and taking turns change no bit (contracts C2, C7): a prompt that starts after a shared
 * prefix, a session that waited, one that lost its pages and was computed again, at any moment, with any drafter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/pass_costs.h"
#include "engine/prefixes.h"
#include "fixture.h"
#include "goldens.h"

enum { CONTEXT = 256, PAGE = 16, MOST = 16 };
#define STORIES "models/stories260K/stories260K.f32.gguf"
static char self_draft[600]; /* model:PATH of another precision of the same model */
static hunch_model *model;

static void use_model(const char *path, const char *draft) {
    hunch_model_close(&model);
    model = open_model(data_path(path), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    snprintf(self_draft, sizeof self_draft, "model:%s,depth=4", data_path(draft));
}

static int setup(void **state) {
    (void)state;
    use_model(STORIES, "models/stories260K/stories260K.f16.gguf");
    return 0;
}
static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

/* A text of `n` tokens in the model's style, the first `shared` of them the same for every salt. */
static hunch_token *make_prompt(size_t n, size_t shared, uint64_t salt) {
    hunch_token *t = malloc(n * sizeof *t);
    uint64_t x = 99, y = salt * 7919 + 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t *from = i < shared ? &x : &y;
        *from = *from * 6364136223846793005u + 1442695040888963407u;
        t[i] = i == 0 ? 1 : i > 9 && (*from >> 60) < 11 ? t[i - 9] : (hunch_token)((*from >> 33) % 512);
    }
    return t;
}

static hunch_request ask(const hunch_token *prompt, size_t n, int max_tokens, double temperature) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt;
    r.n_prompt = n;
    r.max_tokens = max_tokens;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = temperature, .top_p = 0.95, .seed = n};
    return r;
}

static hunch_engine *open_sized(const char *draft, int parallel, int context, int pool_rows, bool reuse, hunch_verify verify) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = context;
    o.max_pause = 1000; /* prompts take the same rounds on every machine */
    o.chunk = 64; /* of windows the pool has so many rows for every text */
    o.page_rows = PAGE;
    o.pool_rows = pool_rows;
    o.no_prefix_reuse = !reuse;
    o.verify = verify;
    return open_engine_with(model, draft, o);
}

static hunch_engine *open_small(const char *draft, int parallel, int pool_rows, bool reuse, hunch_verify verify) {
    return open_sized(draft, parallel, CONTEXT, pool_rows, reuse, verify);
}

static hunch_engine *open_pool(const char *draft, int parallel, int context, int pool_rows) {
    return open_sized(draft, parallel, context, pool_rows, true, HUNCH_VERIFY_DEFAULT);
}

static void alone(const hunch_request *r, const char *draft, hunch_verify verify, answer *out) {
    hunch_engine *e = open_small(draft, 1, 0, false, verify);
    run_requests(e, r, 1, true, out);
    assert_int_equal(out->restored, 0);
    hunch_engine_close(&e);
}

/* ---- prefixes ---------------------------------------------------------------------------------------------------------- */

/* pool_rows: room enough that nothing is evicted. */
static void check_prefixes(const char *draft, int pool_rows) {
    enum { N = 6 }; /* 112: whole pages up to its last row, which must be computed in any case */
    static const size_t length[N] = {120, 120, 121, 97, 40, 112}, shared[N] = {120, 80, 121, 96, 33, 112};
    hunch_engine *e = open_small(draft, 1, pool_rows, true, HUNCH_VERIFY_DEFAULT);
    for (int i = 0; i < N; i++) {
        hunch_token *prompt = make_prompt(length[i], shared[i], (uint64_t)i);
        const hunch_request r = ask(prompt, length[i], 40, i % 2 ? 0.8 : 0);
        answer want = {0}, got = {0};
        alone(&r, NULL, HUNCH_VERIFY_DEFAULT, &want);
        run_requests(e, &r, 1, true, &got);
        assert_same(&want, &got, draft ? draft : "none");
        /* as many whole pages as the first text, of 120 tokens, shares; the last prompt row is always computed */
        const size_t common = shared[i] < length[i] - 1 ? shared[i] : length[i] - 1;
        assert_int_equal(got.restored, i == 0 ? 0 : (common < 120 ? common : 120) / PAGE * PAGE);
        assert_true(hn_cache_valid(e->cache));
        answer_free(&want);
        answer_free(&got);
        free(prompt);
    }
    hunch_engine_close(&e);
}

static void test_prefixes(void **state) {
    (void)state;
    const char *const drafts[] = {NULL, "ngram", "forced,accept=0.7,depth=4", self_draft, "auto"};
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++) check_prefixes(drafts[i], 0);
}

/* The text of the prompt's first n tokens and others after them: of a text that the index has up to there the rest is computed. */
static void check_branch(hunch_engine *e, const char *draft, hunch_token *prompt, size_t n) {
    answer want = {0}, got = {0};
    for (size_t i = n; i < n + 10; i++) prompt[i] = prompt[i] == 300 ? 301 : 300;
    const hunch_request r = ask(prompt, n + 10, 20, 0.8);
    alone(&r, NULL, HUNCH_VERIFY_DEFAULT, &want);
    run_requests(e, &r, 1, true, &got);
    assert_same(&want, &got, draft);
    assert_int_equal(got.restored, n);
    answer_free(&want);
    answer_free(&got);
}

/* A second turn: the first one's answer, whose rows were drafted and committed out of order, is part of the prompt. It computes the new
 * rows alone, wherever in a page they begin; so does a third one that branches inside the last page of the second. */
static void check_second_turn(void) {
    const char *const drafts[] = {"forced,accept=0.8,depth=5,tree=random,seed=3", self_draft};
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
        hunch_engine *e = open_small(drafts[d], 1, 0, true, HUNCH_VERIFY_DEFAULT);
        hunch_token *prompt = make_prompt(200, 30, d);
        hunch_request r = ask(prompt, 30, 70, 0);
        answer first = {0}, want = {0}, got = {0};
        run_requests(e, &r, 1, false, &first);
        assert_int_equal(first.n, 70);
        memcpy(prompt + 30, first.token, 70 * sizeof *prompt);
        r = ask(prompt, 110, 40, 0);
        alone(&r, NULL, HUNCH_VERIFY_DEFAULT, &want);
        run_requests(e, &r, 1, true, &got);
        assert_same(&want, &got, drafts[d]);
        assert_int_equal(got.restored, 99); /* the newest token of the answer had no row */
        memcpy(prompt + 110, got.token, 40 * sizeof *prompt);
        answer_free(&got);
        check_branch(e, drafts[d], prompt, 147);
        hunch_engine_forget(e);
        run_requests(e, &r, 1, true, &got);
        assert_same(&want, &got, drafts[d]);
        assert_int_equal(got.restored, 0);
        answer_free(&first);
        answer_free(&want);
        answer_free(&got);
        free(prompt);
        hunch_engine_close(&e);
    }
}

static void test_second_turn(void **state) {
    (void)state;
    check_second_turn();
}

/* Runs them while the internal sequence takes all free pages for some rounds, again and again: the youngest lose their places. */
static void run_squeezed(hunch_engine *e, const hunch_request *r, int n, answer *out) {
    enum { EVERY = 24 };
    hunch_session *s[MOST];
    const int seq = hn_internal_seq(e);
    for (int i = 0; i < n; i++) {
        hunch_request q = r[i];
        q.on_logits = keep_logits;
        q.on_logits_user = &out[i];
        must(hunch_session_open(&s[i], e, &q, err));
    }
    for (int round = 1; hunch_engine_running(e) > 0; round++) {
        hunch_engine_stats now;
        hunch_engine_get_stats(e, &now);
        if (round % EVERY == EVERY / 4 && now.running > 1) { /* one alone would fail */
            hn_cache_seq_begin(e->cache, seq);
            while (hn_cache_free_pages(e->cache) > 0 && hn_cache_committed(e->cache, seq, 0) < CONTEXT - 1 &&
                   !hn_cache_reserve(e->cache, seq, 0, 1, NULL))
                hn_cache_commit(e->cache, seq, 0, NULL, 1);
        }
        must(hunch_engine_round(e, err));
        if (round % EVERY == EVERY - 1) hn_cache_seq_end(e->cache, seq);
    }
    hn_cache_seq_end(e->cache, seq);
    for (int i = 0; i < n; i++) {
        keep_answer(&out[i], s[i]);
        hunch_session_close(&s[i]);
    }
}

/* ---- turns --------------------------------------------------------------------------------------------------------------- */

static uint64_t check_crowd(const char *draft, int parallel, int pool_rows, double temperature, int n) {
    hunch_token *prompt[MOST];
    hunch_request r[MOST];
    answer got[MOST] = {{0}};
    uint64_t preempted = 0;
    hunch_engine *e = open_small(draft, parallel, pool_rows, true, HUNCH_VERIFY_DEFAULT);
    for (int i = 0; i < n; i++) {
        prompt[i] = make_prompt((size_t)(20 + 7 * i), 20, (uint64_t)i);
        r[i] = ask(prompt[i], (size_t)(20 + 7 * i), 160, temperature);
    }
    if (pool_rows) run_squeezed(e, r, n, got);
    else run_requests(e, r, n, true, got);
    assert_true(hn_cache_valid(e->cache));
    for (int i = 0; i < n; i++) {
        char what[200];
        answer want = {0};
        snprintf(what, sizeof what, "%s, %d of %d at a time, %d rows, session %d", draft ? draft : "none", parallel, n,
                 pool_rows, i);
        alone(&r[i], NULL, HUNCH_VERIFY_DEFAULT, &want);
        assert_same(&want, &got[i], what);
        preempted += got[i].preempted;
        answer_free(&want);
        answer_free(&got[i]);
        free(prompt[i]);
    }
    hunch_engine_close(&e);
    return preempted;
}

static void test_waiting(void **state) {
    (void)state;
    hunch_engine *e = open_small("ngram", 2, 0, true, HUNCH_VERIFY_DEFAULT);
    hunch_token *prompt = make_prompt(12, 12, 0); /* less than a page: no session waits for another's rows */
    const hunch_request r = ask(prompt, 12, 12, 0);
    hunch_session *s[4];
    hunch_session_state st;
    for (int i = 0; i < 4; i++) {
        must(hunch_session_open(&s[i], e, &r, err));
        hunch_session_get(s[i], &st);
        assert_int_equal(st.waiting, i >= 2);
    }
    assert_int_equal(hunch_engine_running(e), 4);
    hunch_session_cancel(s[2]); /* out of the queue */
    hunch_session_cancel(s[0]); /* its place is free */
    must(hunch_engine_round(e, err));
    hunch_session_get(s[3], &st);
    assert_false(st.waiting);
    assert_true(st.n_prefilled > 0);
    while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
    hunch_session_get(s[3], &st);
    assert_int_equal(st.n_tokens, 12);
    hunch_session_close(&s[0]);
    hunch_session_close(&s[1]);
    must(hunch_session_open(&s[0], e, &r, err));
    must(hunch_session_open(&s[1], e, &r, err));
    hunch_session *queued;
    must(hunch_session_open(&queued, e, &r, err));
    hunch_engine_close(&e); /* with two that run and one that waits */
    hunch_session_close(&queued);
    for (int i = 0; i < 4; i++) hunch_session_close(&s[i]);
    free(prompt);
}

/* A session that waits remembers what it has in common with those placed: the same answer, whoever has a place by then. */
static void test_pairs_are_remembered(void **state) {
    (void)state;
    hunch_engine *e = open_sized(NULL, 2, CONTEXT, 0, true, HUNCH_VERIFY_DEFAULT);
    hunch_token *long_one = make_prompt(200, 200, 0), *like = make_prompt(220, 100, 3);
    hunch_request r = ask(long_one, 200, 4, 0), other = ask(like, 220, 4, 0);
    hunch_session *s[3];
    hunch_session_state st;
    must(hunch_session_open(&s[0], e, &r, err));
    must(hunch_session_open(&s[1], e, &other, err)); /* waits for 96 rows of the first */
    hunch_session_get(s[1], &st);
    assert_true(st.waiting);
    for (int i = 0; i < 3; i++) assert_true(hn_shared_rows_pending(e, s[1]));
    while (hn_cache_committed(e->cache, s[0]->id, 0) < 96) {
        assert_true(hn_shared_rows_pending(e, s[1]));
        must(hunch_engine_round(e, err));
    }
    must(hunch_engine_round(e, err));
    hunch_session_get(s[1], &st);
    assert_false(st.waiting);
    assert_int_equal(st.n_restored, 96);
    must(hunch_engine_run(e, err));
    for (int i = 0; i < 2; i++) hunch_session_close(&s[i]);
    hunch_engine_close(&e);
    free(long_one);
    free(like);
}

/* The plain text that a forced drafter knows is made beside the engine: texts that run do not give way to it. */
static void test_plain_text_beside(void **state) {
    (void)state;
    hunch_engine *e = open_small("forced,accept=0.6,depth=4", 1, CONTEXT, true, HUNCH_VERIFY_DEFAULT);
    hunch_token *prompt = make_prompt(CONTEXT - 40, 0, 2), *other = make_prompt(150, 0, 3);
    const hunch_request r[2] = {ask(prompt, CONTEXT - 40, 40, 0), ask(other, 150, 60, 0)};
    hunch_session *s[2];
    hunch_session_state st[2];
    must(hunch_session_open(&s[0], e, &r[0], err));
    do {
        must(hunch_engine_round(e, err));
        hunch_session_get(s[0], &st[0]);
    } while (st[0].n_tokens < 20);
    must(hunch_session_open(&s[1], e, &r[1], err));
    must(hunch_engine_run(e, err));
    for (int i = 0; i < 2; i++) {
        hunch_session_get(s[i], &st[i]);
        assert_true(st[i].drafted > st[i].accepted && st[i].accepted > 10);
        assert_int_equal(st[i].preempted, 0);
        hunch_session_close(&s[i]);
    }
    hunch_engine_close(&e);
    free(prompt);
    free(other);
}

/* Several answers to one prompt, opened together: it is read once, and a session with another prompt does not wait. */
static void test_one_prompt(void **state) {
    (void)state;
    enum { N = 6, LENGTH = 150 };
    hunch_engine *e = open_small(self_draft, N, 0, true, HUNCH_VERIFY_DEFAULT);
    hunch_token *prompt = make_prompt(LENGTH, LENGTH, 0), *other = make_prompt(30, 0, 1);
    hunch_request r[N];
    answer got[N] = {{0}};
    for (int i = 0; i < N; i++) {
        r[i] = i == 4 ? ask(other, 30, 20, 0) : ask(prompt, LENGTH, 30, 0.9);
        r[i].sampling.seed = (uint64_t)i;
    }
    run_requests(e, r, N, true, got);
    for (int i = 0; i < N; i++) {
        answer want = {0};
        alone(&r[i], NULL, HUNCH_VERIFY_DEFAULT, &want);
        assert_same(&want, &got[i], "one prompt");
        assert_int_equal(got[i].restored, i == 0 || i == 4 ? 0 : (LENGTH - 1) / PAGE * PAGE);
        answer_free(&want);
        answer_free(&got[i]);
    }
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
    free(prompt);
    free(other);
}

/* README: "Texts that share a prefix, wait, or are preempted when memory runs out are the same as if each were
 * generated alone." */
static void test_crowds(void **state) {
    (void)state;
    const char *const drafts[] = {NULL, "ngram+forced,accept=0.6,depth=5", self_draft, "auto"};
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++)
        for (int t = 0; t < 2; t++) {
            const double temperature = t ? 0.9 : 0;
            if (t != (int)d % 2 && (d != 1 || light())) continue; /* one of the drafters at both temperatures */
            assert_int_equal(check_crowd(drafts[d], 3, 0, temperature, 5), 0);
            if (check_crowd(drafts[d], 4, CONTEXT, temperature, 9) == 0)
                fail_msg("%s at temperature %g: nobody had to give way", drafts[d] ? drafts[d] : "none", temperature);
            if (!light()) (void)check_crowd(drafts[d], 16, CONTEXT, temperature, 16);
        }
}

/* The text of a session that loses its place before every k-th round. */
static void interrupted(const hunch_request *r, const char *draft, hunch_verify verify, int k, answer *out) {
    hunch_engine *e = open_small(draft, 1, 0, k % 2, verify);
    hunch_session *s = NULL;
    hunch_request q = *r;
    q.on_logits = keep_logits;
    q.on_logits_user = out;
    must(hunch_session_open(&s, e, &q, err));
    for (int round = 1; hunch_engine_running(e) > 0; round++) {
        if (round % k == 0 && s->id >= 0) {
            hn_session_release(s);
            hn_queue_push(s, true);
        }
        const size_t before = hn_session_emitted(s);
        must(hunch_engine_round(e, err));
        /* computing rows again takes rounds; the rounds between interruptions must make progress */
        while (hunch_engine_running(e) > 0 && hn_session_emitted(s) == before) must(hunch_engine_round(e, err));
    }
    keep_answer(out, s);
    hunch_session_close(&s);
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
}

typedef struct way {
    const char *draft;
    hunch_verify verify;
} way;

/* With `ratio` the text depends on the drafts, so the drafts themselves must be the same again. */
static void check_resumed(const way *w, const hunch_token *prompt, size_t n, double temperature, int most) {
    const hunch_request r = ask(prompt, n, 40, temperature);
    const bool as_plain = w->verify == HUNCH_VERIFY_DEFAULT || temperature == 0;
    answer want = {0};
    alone(&r, as_plain ? NULL : w->draft, as_plain ? HUNCH_VERIFY_DEFAULT : w->verify, &want);
    for (int k = 1; k <= most; k++) {
        answer got = {0};
        interrupted(&r, w->draft, w->verify, k, &got);
        assert_same(&want, &got, w->draft ? w->draft : "none");
        answer_free(&got);
    }
    answer_free(&want);
}

/* README: "Texts that share a prefix, wait, or are preempted when memory runs out are the same as if each were
 * generated alone." */
static void test_resumed_anywhere(void **state) {
    (void)state;
    const way ways[] = {{NULL, HUNCH_VERIFY_DEFAULT},       {"ngram", HUNCH_VERIFY_DEFAULT},
                        {"suffix", HUNCH_VERIFY_DEFAULT},   {"cache", HUNCH_VERIFY_DEFAULT},
                        {self_draft, HUNCH_VERIFY_DEFAULT}, {"forced,accept=0.7,depth=5,tree=random", HUNCH_VERIFY_DEFAULT},
                        {self_draft, HUNCH_VERIFY_RATIO},   {self_draft, HUNCH_VERIFY_BLOCK},
                        {"auto", HUNCH_VERIFY_DEFAULT}};
    hunch_token *prompt = make_prompt(45, 20, 5);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int t = 0; t < 2; t++) check_resumed(&ways[w], prompt, 45, t ? 0.9 : 0, light() ? 2 : 5);
    free(prompt);
}

static bool attends_by_windows(const hn_arch *a) { return golden_attends(a) && golden_windows(a) && a->vocab >= 512 /* of prompts */; }
static bool full_layers(const char *path) {
    hunch_model *m = open_model(data_path(path), "best", 1, HUNCH_PRECISION_NATIVE);
    bool full = false;
    for (int i = 0; i < m->target.arch.layers; i++) full |= m->target.arch.layer[i].window == 0;
    hunch_model_close(&m);
    return full;
}

/* All of it with models whose layers, or most of them, see 16 rows, as target and as draft model. */
static void test_windows(void **state) {
    (void)state;
    char families[MOST_GOLDENS][GOLDEN_NAME];
    const int n = golden_apart(attends_by_windows, UINT64_MAX, families);
    const char *const trees = "forced,accept=0.8,depth=5,tree=random,seed=3";
    for (int f = 0; f < n; f += light() ? n : 1) {
        use_model(families[f], families[f]);
        snprintf(self_draft + strlen(self_draft), sizeof self_draft - strlen(self_draft), ",precision=f32");
        const way ways[] = {{NULL, HUNCH_VERIFY_DEFAULT}, {self_draft, HUNCH_VERIFY_RATIO}, {trees, HUNCH_VERIFY_DEFAULT}};
        hunch_token *prompt = make_prompt(100, 20, 5);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            check_prefixes(ways[w].draft, 20 * CONTEXT);
            for (int t = 0; t < 2; t++) check_resumed(&ways[w], prompt, 100, t ? 0.9 : 0, light() ? 1 : 3);
            check_crowd(ways[w].draft, 3, 0, w ? 0.9 : 0, 5);
        }
        check_second_turn();
        free(prompt);
        if (light()) continue;
        const uint64_t gave_way = check_crowd(NULL, 16, CONTEXT, 0, 16);
        const bool some = full_layers(families[f]);
        assert_true(some ? gave_way > 0 : gave_way == 0); /* windows of all sessions are planned for, full rows are not */
    }
    setup(NULL);
}

/* ---- a pool at its limit ---------------------------------------------------------------------------------------------------- */

/* Many texts at once, and pages for some of them. */
typedef struct crowd {
    const char *draft;
    int context, pool, parallel;
    int prompt;      /* tokens of the longest */
    int least, most; /* tokens of an answer */
    bool cut;        /* the request allows as many as the context holds, and the text is cancelled there */
} crowd;

typedef struct watched {
    hunch_session *s;
    uint64_t admission;   /* its newest place, as seen after a round */
    size_t tokens, most;  /* that it had then; that it is to have */
} watched;

static void open_crowd(hunch_engine *e, const crowd *c, watched *w, int n) {
    for (int i = 0; i < n; i++) {
        const size_t length = (size_t)(20 + i * 37 % (c->prompt - 20));
        hunch_token *prompt = make_prompt(length, 1, (uint64_t)i);
        const int most = c->least + i * 53 % (c->most - c->least);
        const hunch_request r = ask(prompt, length, c->cut ? c->context - (int)length : most, 0.8);
        w[i] = (watched){.most = (size_t)most};
        must(hunch_session_open(&w[i].s, e, &r, err));
        free(prompt);
    }
}

/* Runs a round. Returns how many texts with less than 32 tokens since they got their place had it when a text lost its own. */
static int round_watched(hunch_engine *e, watched *w, int n, int *most_running) {
    enum { FIRST = 32 };
    hunch_engine_stats before, after;
    int beginning = 0;
    hunch_engine_get_stats(e, &before);
    must(hunch_engine_round(e, err));
    hunch_engine_get_stats(e, &after);
    for (int i = 0; i < n; i++) {
        const hunch_session *s = w[i].s;
        const size_t tokens = s->text.n - s->text.n_prompt;
        if (s->admission != w[i].admission) w[i] = (watched){w[i].s, s->admission, tokens, w[i].most};
        beginning += s->admission > 0 && hn_session_running(s) && tokens - w[i].tokens < FIRST;
        if (tokens >= w[i].most) hunch_session_cancel(w[i].s);
    }
    *most_running = after.running > *most_running ? after.running : *most_running;
    return after.preemptions > before.preemptions ? beginning : 0;
}

/* Few rows are computed again, also of answers that become longer than was to be expected; and no text loses its place while one is there
 * that has just got its own. */
static void check_crowd_of(const crowd *c, double most_again) {
    enum { N = 64 };
    static watched w[N];
    hunch_engine *e = open_pool(c->draft, c->parallel, c->context, c->pool);
    hunch_engine_stats n;
    int most = 0;
    open_crowd(e, c, w, N);
    while (hunch_engine_running(e) > 0) {
        const int beginning = round_watched(e, w, N, &most);
        if (beginning) fail_msg("%s, pool of %d: a text lost its place beside %d that had just got theirs", c->draft ? c->draft : "none",
                                c->pool, beginning);
    }
    hunch_engine_get_stats(e, &n);
    if ((double)n.recomputed > most_again * (double)n.rows)
        fail_msg("%s, pool of %d: %llu of %llu rows computed again", c->draft ? c->draft : "none", c->pool,
                 (unsigned long long)n.recomputed, (unsigned long long)n.rows);
    assert_true(most > c->pool / c->context); /* and places are used */
    assert_int_equal(n.finished[HUNCH_FINISH_LENGTH] + n.finished[HUNCH_FINISH_CANCELLED], N);
    for (int i = 0; i < N; i++) hunch_session_close(&w[i].s);
    hunch_engine_close(&e);
}

static void test_pool_at_its_limit(void **state) {
    (void)state;
    static const char *const drafts[] = {NULL, "forced,accept=0.7,depth=4"};
    static const int pools[] = {1500, 3000, 6000};
    for (int d = 0; d < 2; d++)
        for (int p = 0; p < (light() ? 1 : 3); p++) check_crowd_of(&(crowd){drafts[d], 256, pools[p], 64, 80, 100, 160, false}, 0.02);
    for (int p = 0; p < 2 && !light(); p++) {
        check_crowd_of(&(crowd){NULL, 512, pools[p], 16, 60, 390, 410, false}, 0.02);
        check_crowd_of(&(crowd){NULL, 512, pools[p], 16, 60, 300, 410, true}, 0.02);
    }
}

/* Takes pages for a sequence that is no session's, until so many are free. */
static void hoard(hunch_engine *e, int seq, int left) {
    hn_cache_seq_begin(e->cache, seq);
    while (hn_cache_free_pages(e->cache) > left && hn_cache_committed(e->cache, seq, 0) < e->context - 1) {
        must(hn_cache_reserve(e->cache, seq, 0, 1, err));
        hn_cache_commit(e->cache, seq, 0, NULL, 1);
    }
}

/* When pages run out the text of the lower priority yields, though it is the older one, and its tokens stay the same; one that has its
 * place because it waited longest does not yield to priority. */
static void test_priority_yields(void **state) {
    (void)state;
    enum { HOARDS = 7, LEFT = 2 };
    for (int turn = 0; turn < 2; turn++) {
        hunch_engine *e = open_sized(NULL, 2 + HOARDS, CONTEXT, 4 * CONTEXT, true, HUNCH_VERIFY_DEFAULT);
        hunch_token *prompt[2] = {make_prompt(20, 0, 1), make_prompt(20, 0, 2)};
        hunch_session *s[2], *alone;
        hunch_session_state st[2], plain;
        for (int i = 0; i < 2; i++) {
            hunch_request r = ask(prompt[i], 20, 220, 0);
            r.priority = i ? 100 : -100;
            must(hunch_session_open(&s[i], e, &r, err));
        }
        s[0]->in_turn = turn;
        for (int i = 0; i < 30; i++) must(hunch_engine_round(e, err));
        for (int i = 0; i < HOARDS; i++) hoard(e, 2 + i, LEFT);
        assert_int_equal(hn_cache_free_pages(e->cache), LEFT);
        for (int i = 0; i < 60; i++) must(hunch_engine_round(e, err));
        for (int i = 0; i < HOARDS; i++) hn_cache_seq_end(e->cache, 2 + i);
        must(hunch_engine_run(e, err));
        for (int i = 0; i < 2; i++) hunch_session_get(s[i], &st[i]);
        assert_int_equal(st[turn].preempted > 0, 1);
        assert_int_equal(st[!turn].preempted, 0);
        hunch_engine *other = open_sized(NULL, 1, CONTEXT, 0, false, HUNCH_VERIFY_DEFAULT);
        const hunch_request r = ask(prompt[0], 20, 220, 0);
        must(hunch_session_open(&alone, other, &r, err));
        must(hunch_engine_run(other, err));
        hunch_session_get(alone, &plain);
        assert_int_equal(plain.n_tokens, st[0].n_tokens);
        assert_memory_equal(plain.tokens, st[0].tokens, plain.n_tokens * sizeof *plain.tokens);
        for (int i = 0; i < 2; i++) hunch_session_close(&s[i]), free(prompt[i]);
        hunch_session_close(&alone);
        hunch_engine_close(&other);
        hunch_engine_close(&e);
    }
}

/* Texts that get many tokens a round, and one that gets one: while it has less than 32 nobody loses a place, however few pages are left. */
static void check_first_tokens(int left) {
    enum { FAST = 8, ROOM = 4, FIRST = 32 };
    watched w[FAST + 1];
    hunch_engine *e = open_pool("forced,accept=0.95,depth=8", FAST + 1 + ROOM, 2 * CONTEXT, 9 * 2 * CONTEXT);
    const crowd fast = {.prompt = 30, .least = 470, .most = 471}, slow = {.prompt = 30, .least = 40, .most = 41};
    hunch_engine_stats n;
    int most = 0;
    open_crowd(e, &fast, w, FAST);
    while (w[FAST - 1].s->text.n < 290) (void)round_watched(e, w, FAST, &most);
    for (int i = 0; i < ROOM; i++) hoard(e, FAST + 1 + i, left);
    assert_int_equal(hn_cache_free_pages(e->cache), left);
    open_crowd(e, &slow, w + FAST, 1);
    w[FAST].s->request.drafters = 0;
    while (w[FAST].s->text.n < w[FAST].s->text.n_prompt + FIRST)
        if (round_watched(e, w, FAST + 1, &most)) fail_msg("%d pages left: a text lost its place to one that had just got its own", left);
    for (int i = 0; i < ROOM; i++) hn_cache_seq_end(e->cache, FAST + 1 + i);
    must(hunch_engine_run(e, err));
    hunch_engine_get_stats(e, &n);
    assert_int_equal(n.finished[HUNCH_FINISH_LENGTH], FAST + 1);
    for (int i = 0; i <= FAST; i++) hunch_session_close(&w[i].s);
    hunch_engine_close(&e);
}

static void test_first_tokens(void **state) {
    (void)state;
    for (int left = 80; left <= 140; left += light() ? 60 : 20) check_first_tokens(left);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prefixes), cmocka_unit_test(test_second_turn),
                                       cmocka_unit_test(test_plain_text_beside), cmocka_unit_test(test_waiting),
                                       cmocka_unit_test(test_priority_yields),
                                       cmocka_unit_test(test_pairs_are_remembered),
                                       cmocka_unit_test(test_one_prompt), cmocka_unit_test(test_crowds),
                                       cmocka_unit_test(test_resumed_anywhere), cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_pool_at_its_limit), cmocka_unit_test(test_first_tokens)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
