/* SPDX-License-Identifier: Apache-2.0 */
/* head_rows_test.c - a draft head's rows are right in every situation: every committed row is fed once, evaluated once and at its
 * position, and a head whose rows came with a prefix, were recomputed or were long pending drafts the same tokens with the same q,
 * bit for bit, as one that reads the whole text at once. Injected mistakes in the rows are found by that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heads.h"
#include "ops/profile.h"
#include "preempt_for_tests.h"

enum { PAGE = 16, MOST = 8 };
static hunch_model *llama, *qwen, *blocks, *meta;

static int setup(void **state) {
    (void)state;
    llama = open_model(data_path(HEADS_LLAMA), "best", 1, HUNCH_PRECISION_NATIVE); /* rows are fed by one thread; qwen: two compute */
    qwen = open_model(data_path(HEADS_QWEN), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    blocks = open_model(data_path("goldens/glm4_moe-3blocks"), "best", 1, HUNCH_PRECISION_NATIVE);
    meta = open_model(data_path(HEADS_META), "best", 1, HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&llama);
    hunch_model_close(&qwen);
    hunch_model_close(&blocks);
    hunch_model_close(&meta);
    return 0;
}

static const hunch_sampling greedy = {.top_p = 1}, warm = {.temperature = 1, .top_p = 0.95, .top_k = 40};

static hunch_engine_options options(int parallel, int chunk) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.chunk = chunk;
    o.page_rows = PAGE;
    o.context = HEADS_CONTEXT;
    return o;
}

static hunch_request small_request(const hunch_model *m, const hunch_token *prompt, size_t n, int max_tokens,
                                   const hunch_sampling *params) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = n;
    r.max_tokens = max_tokens;
    r.ignore_eos = true;
    r.sampling = *params;
    r.sampling.seed = n;
    return r;
}

typedef struct kind {
    hunch_model **model;
    const char *form;
    hunch_verify verify;
    const hunch_sampling *params;
} kind;

/* Chains of every form of file, and trees that fit beside seven other texts. */
static const kind kinds[] = {
    {&llama, "eagle:@eagle1-bias-bin,depth=4,force=0.6", HUNCH_VERIFY_DEFAULT, &greedy},
    {&llama, "eagle3:@eagle3-official-d2t,depth=5,force=0.5", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "eagle:@eagle2-nobias-gqa,depth=3,tree=dynamic,topk=2,total=6,force=0.7", HUNCH_VERIFY_DEFAULT, &greedy},
    {&llama, "eagle3:@eagle3spec-plain,depth=3", HUNCH_VERIFY_RATIO, &warm},
    {&qwen, "hass:@hass-bias,depth=4,force=0.6,weights=f32", HUNCH_VERIFY_DEFAULT, &warm},
    {&qwen, "eagle3:@eagle3spec-norm-before-residual,depth=4,force=0.5,kv=f32", HUNCH_VERIFY_DEFAULT, &greedy},
    {&llama, "peagle:@peagle-spec-2layers,depth=5,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "peagle:@peagle-spec-2layers,depth=3", HUNCH_VERIFY_RATIO, &warm},
    {&llama, "peagle:@peagle-spec-2layers,depth=4,tree=best,topk=3,total=6,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "eagle3:@eagle3-official-d2t,depth=4,tree=opt,topk=2,total=6,gain=0.3,force=0.7", HUNCH_VERIFY_DEFAULT, &greedy},
    {&qwen, "mtp:@mtp-spec-qwen3,depth=4,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&qwen, "dart:@dart-7masks,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "falcon:@falcon-k2,depth=5,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "falcon:@falcon-k3,depth=4", HUNCH_VERIFY_RATIO, &warm},
    {&llama, "dart:@dart-d2t,depth=3,tree=pruned,total=7,force=0.6", HUNCH_VERIFY_DEFAULT, &greedy},
    {&llama, "dspark:@dspark-deepspec,min_confidence=0.3,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "dspark:@dspark-windows,depth=4,tree=dynamic,topk=2,total=6,force=0.6", HUNCH_VERIFY_DEFAULT, &greedy},
    {&llama, "dflash:@dflash-swa-sinks,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "domino:@domino-early,pool=100,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "dflash2:@dflash2-zlab,depth=4,tree=dynamic,topk=2,total=6,force=0.6", HUNCH_VERIFY_DEFAULT, &greedy},
    {&llama, "hydra:@hydra-prefix,depth=3,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&llama, "medusa:@medusa-4heads,depth=4,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&qwen, "mlp:@mlp-tied-scaled,depth=3", HUNCH_VERIFY_RATIO, &warm},
    {&llama, "mlp:@mlp-arctic-lstm,depth=4,force=0.6", HUNCH_VERIFY_DEFAULT, &greedy},
    {&blocks, "mtp,depth=5,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
    {&blocks, "mtp,depth=4,tree=dynamic,topk=2,total=6,force=0.7", HUNCH_VERIFY_DEFAULT, &greedy},
    {&blocks, "mtp,depth=2", HUNCH_VERIFY_RATIO, &warm},
    {&meta, "meta-mtp:@meta-3tokens,depth=2,force=0.6", HUNCH_VERIFY_DEFAULT, &warm},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MASKS = 6 };
/* Heads without a cache recompute no row of a prefix: they read only the newest feature; those of blocks as many as a block has. */
static uint64_t recompute(const kind *k) {
    return strstr(k->form, "medusa:") || strstr(k->form, "mlp:") ? 0 : (uint64_t)heads_rows_again(k->form);
}

/* Prompts contain only tokens of its model. */
static bool begin_kind(int i) {
    if (i >= N_KINDS) return false;
    heads_tokens = (*kinds[i].model)->target.arch.vocab < 480 ? (*kinds[i].model)->target.arch.vocab : 480;
    return true;
}

/* The tests that run some of the kinds each: every 4th in make test, every 18th in its sanitized run, all in the long test. They start
 * 5 kinds apart, so that together they have every kind in make test, and different ones in the sanitized run. */
enum { FED_ONCE, PREFIXES, SECOND_TURN, ONE_PROMPT, INTERRUPTED, CALLED_LATE, MISTAKES, N_TESTS };
#define EACH_KIND(i, test) for (int i = first_kind(test); begin_kind(i); i += test_every(4, 30))

static int first_kind(int test) {
    return 5 * test % test_every(4, 30);
}

static void test_every_kind(void **state) {
    (void)state;
    bool runs[N_KINDS] = {false};
    for (int test = 0; test < N_TESTS; test++) EACH_KIND(i, test) runs[i] = true;
    for (int i = 0; i < N_KINDS && !light(); i++)
        if (!runs[i]) fail_msg("no test runs %s", kinds[i].form);
}

static hunch_engine *open_kind(const kind *k, hunch_engine_options o) {
    o.verify = k->verify;
    return open_engine_with(*k->model, heads_spec(k->form), o);
}

static void same_as_fresh(const kind *k, const heads_listener *l, int every, const char *what) {
    assert_true(l->n > 0);
    heads_same_as_fresh(l, *k->model, heads_spec(k->form), k->params, k->verify, every, what);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

static void check_fed(const kind *k, int parallel, int chunk) {
    static const size_t length[MOST] = {1, 2, 17, 64, 65, 90, 33, 130};
    hunch_token prompt[MOST][130];
    hunch_request r[MOST];
    answer got[MOST] = {{0}};
    hunch_engine *e = open_kind(k, options(parallel, chunk));
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    int accepted = 0, some = 0;
    for (int i = 0; i < MOST; i++) {
        heads_prompt(prompt[i], length[i], 0, (uint64_t)i);
        r[i] = small_request(*k->model, prompt[i], length[i], 20, k->params);
    }
    run_requests(e, r, MOST, false, got);
    for (int i = 0; i < l->n; i++) {
        accepted += l->round[i].accepted > 0;
        some += l->round[i].accepted > 0 && l->round[i].accepted < l->round[i].n_drafted;
    }
    if (k->verify == HUNCH_VERIFY_DEFAULT) assert_true(accepted > 5 && some > 5);
    same_as_fresh(k, l, light() ? 7 : 5, "many at once");
    for (int i = 0; i < MOST; i++) answer_free(&got[i]);
    assert_true(hn_cache_valid(e->cache));
    heads_listen_end(l);
    hunch_engine_close(&e);
}

static void test_fed_once(void **state) {
    (void)state;
    EACH_KIND(i, FED_ONCE) {
        check_fed(&kinds[i], 1, 64);
        check_fed(&kinds[i], MOST, i % 2 ? 3 : 64);
    }
}

/* ---- evaluated once --------------------------------------------------------------------------------------------------- */

/* Number of rows in the head's passes, from the work of a matrix that is applied to every row. */
static int rows_evaluated(hn_profile *p, const hn_model *head) {
    hn_phase_sum sums[HN_PHASES];
    hn_profile_take(p, sums);
    return (int)lround(sums[HN_PHASE_O].macs / ((double)head->layer[0].o.in * head->layer[0].o.out * head->arch.layers));
}

/* A row of every token of the text except the newest, and one of each draft that is not the last, or of each mask: nothing else is
 * computed, and the masks' rows are not kept. */
static void check_evaluated(const char *form, int max_tokens) {
    hunch_token prompt[100];
    answer got = {0};
    hn_profile *profile = NULL;
    heads_prompt(prompt, 100, 0, 3);
    const hunch_request r = small_request(llama, prompt, 100, max_tokens, &greedy);
    hunch_engine *e = open_engine_with(llama, heads_spec(form), options(1, 64));
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    hn_head_passes *h = e->drafter[0].state; /* the state of every head begins with it */
    must(hn_profile_open(&profile, h->model.backend->ops, h->model.pool, err));
    hn_runner_set_ops(h->runner, hn_profile_ops(profile));
    run_requests(e, &r, 1, false, &got);
    int levels = 0;
    for (int i = 0; i < l->n; i++) levels += l->round[i].n_drafted ? l->round[i].n_drafted - 1 : 0;
    assert_true(levels > 20);
    const int text = 100 + (int)got.n;
    assert_int_equal(l->n_fed, text - 1);
    assert_int_equal(rows_evaluated(profile, &h->model), text - 1 + levels);
    heads_listen_end(l);
    answer_free(&got);
    hn_runner_set_ops(h->runner, NULL);
    hn_profile_close(&profile);
    hunch_engine_close(&e);
}

static void test_evaluated_once(void **state) {
    (void)state;
    check_evaluated("eagle:@eagle1-bias-bin,depth=4,force=1", 41);
    check_evaluated("eagle:@eagle1-bias-bin,depth=4,force=0.5", 40);
    check_evaluated("eagle3:@eagle3-official-d2t,depth=5,force=0", 30);
    check_evaluated("peagle:@peagle-spec-2layers,depth=5,force=0.5", 40);
    check_evaluated("peagle:@peagle-norms,depth=7,force=1", 57);
    check_evaluated("dart:@dart-d2t,force=0.6", 41);
    check_evaluated("mtp:@mtp-untied-bias,depth=4,force=0.5", 40);
}

/* ---- rows that were read earlier ---------------------------------------------------------------------------------------- */

/* Number of rows that a plain engine, or one with this head, restores from the index for each request, one after the other. */
static void restored_of(const kind *k, const char *draft, const hunch_request *r, int n, uint64_t *restored) {
    hunch_engine_options o = options(1, 64);
    o.pool_rows = 4 * HEADS_CONTEXT; /* nothing is evicted */
    o.verify = draft ? k->verify : HUNCH_VERIFY_DEFAULT;
    hunch_engine *e = open_engine_with(*k->model, draft, o);
    heads_listener *l = draft ? heads_listen(e, 0, HEADS_RIGHT) : NULL;
    for (int i = 0; i < n; i++) {
        answer a = {0};
        run_requests(e, &r[i], 1, false, &a);
        restored[i] = a.restored;
        answer_free(&a);
    }
    if (l) same_as_fresh(k, l, light() ? 5 : 3, "after a prefix");
    if (l) heads_listen_end(l);
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
}

/* A head recomputes one row of a prefix: the target must compute the feature that the head's first new row reads. */
static void test_prefixes(void **state) {
    (void)state;
    enum { N = 6 };
    static const size_t length[N] = {120, 120, 121, 97, 40, 112}, shared[N] = {120, 80, 121, 96, 33, 112};
    hunch_token prompt[N][130];
    EACH_KIND(i, PREFIXES) {
        const kind *k = &kinds[i];
        for (int x = 0; x < N; x++) heads_prompt(prompt[x], length[x], shared[x], (uint64_t)x);
        hunch_request r[N];
        uint64_t plain[N], head[N];
        for (int x = 0; x < N; x++) r[x] = small_request(*k->model, prompt[x], length[x], 24, k->params);
        restored_of(k, NULL, r, N, plain);
        restored_of(k, heads_spec(k->form), r, N, head);
        for (int x = 0; x < N; x++)
            if (head[x] != (plain[x] ? plain[x] - recompute(k) : 0))
                fail_msg("%s: prompt %d found %d rows, without a head %d", k->form, x, (int)head[x], (int)plain[x]);
        assert_int_equal(plain[1], 80);
        assert_int_equal(plain[2], 112);
    }
}

/* A second turn, whose prompt continues the first one's answer. */
static void test_second_turn(void **state) {
    (void)state;
    EACH_KIND(i, SECOND_TURN) {
        const kind *k = &kinds[i];
        if (k->verify != HUNCH_VERIFY_DEFAULT) continue; /* the text is not plain decoding's */
        hunch_token prompt[200];
        hunch_request r[2];
        answer first = {0};
        uint64_t plain[2], head[2];
        heads_prompt(prompt, 200, 30, (uint64_t)i);
        r[0] = small_request(*k->model, prompt, 30, 70, k->params);
        hunch_engine *e = open_engine_with(*k->model, NULL, options(1, 64));
        run_requests(e, r, 1, false, &first);
        hunch_engine_close(&e);
        memcpy(prompt + 30, first.token, 70 * sizeof *prompt);
        answer_free(&first);
        r[1] = small_request(*k->model, prompt, 110, 40, k->params);
        restored_of(k, NULL, r, 2, plain);
        restored_of(k, heads_spec(k->form), r, 2, head);
        assert_int_equal(plain[1], 99); /* the newest token of the answer had no row */
        /* a head that recomputes several rows continues at the end of a page */
        assert_int_equal(head[1], (recompute(k) > 1 ? 99 / PAGE * PAGE : 99) - recompute(k));
    }
}

/* Several answers to one prompt, opened together or one after the other: the prompt is read once. */
static void check_together(const kind *k, bool late, int mute) {
    enum { N = 4, LENGTH = 150 };
    hunch_token prompt[LENGTH];
    hunch_session *s[N] = {0};
    hunch_engine_options o = options(N, 64);
    hunch_engine *e = open_kind(k, o);
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    l->mute = mute;
    heads_prompt(prompt, LENGTH, 0, 7);
    for (int i = 0; i < N; i++) {
        hunch_request r = small_request(*k->model, prompt, LENGTH, 12, k->params);
        r.sampling.seed = (uint64_t)i;
        must(hunch_session_open(&s[i], e, &r, err));
        for (int x = 0; late && x < 4; x++) must(hunch_engine_round(e, err)); /* the prompt is read, and perhaps drafts were made */
    }
    while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
    for (int i = 0; i < N; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        assert_int_equal(st.finish, HUNCH_FINISH_LENGTH);
        if (st.n_restored != (i ? (LENGTH - 1) / PAGE * PAGE - recompute(k) : 0))
            fail_msg("%s, %s, called from %d tokens on: answer %d found %d rows", k->form, late ? "one after the other" : "together",
                     mute, i, (int)st.n_restored);
        hunch_session_close(&s[i]);
    }
    if (mute < HEADS_CONTEXT) same_as_fresh(k, l, light() ? 5 : 3, "one prompt");
    assert_true(hn_cache_valid(e->cache));
    heads_listen_end(l);
    hunch_engine_close(&e);
}

static void test_one_prompt(void **state) {
    (void)state;
    EACH_KIND(i, ONE_PROMPT)
        for (int late = 0; late < 2; late++) {
            check_together(&kinds[i], late, 0);
            check_together(&kinds[i], late, HEADS_CONTEXT); /* a head that is not called has pending rows */
        }
}

/* A text that is preempted before every k-th round. */
static void check_interrupted(const kind *k, int every, bool reuse) {
    hunch_token prompt[75];
    hunch_session *s = NULL;
    hunch_engine_options o = options(1, 64);
    o.no_prefix_reuse = !reuse;
    heads_prompt(prompt, 75, 0, (uint64_t)every);
    const hunch_request r = small_request(*k->model, prompt, 75, 40, k->params);
    hunch_engine *e = open_kind(k, o);
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    must(hunch_session_open(&s, e, &r, err));
    for (int round = 1; hunch_engine_running(e) > 0; round++) {
        if (round % every == 0 && s->id >= 0) {
            hn_session_release(s);
            hn_queue_push(s, true);
        }
        const size_t before = hn_session_emitted(s);
        do must(hunch_engine_round(e, err));
        while (hunch_engine_running(e) > 0 && hn_session_emitted(s) == before);
    }
    hunch_session_close(&s);
    /* a head without layers drafts after a pass in its place; a text that finds all of its rows has none before the next token */
    if (e->drafter[0].needs.n_groups == 0 && every == 1 && reuse)
        assert_int_equal(l->n, 0);
    else
        same_as_fresh(k, l, light() ? 4 : 2, "interrupted");
    assert_true(hn_cache_valid(e->cache));
    heads_listen_end(l);
    hunch_engine_close(&e);
}

static void test_interrupted(void **state) {
    (void)state;
    EACH_KIND(i, INTERRUPTED)
        for (int every = 1; every < (EVERY_CASE ? 3 : 2); every++) check_interrupted(&kinds[i], every, every % 2);
}

/* More texts than pages, some cancelled: drafts that are still made are right. A head that finds no page for rows of the text makes no
 * drafts for the rest of it; one that finds none for a level drafts no more levels, and a tree of its likeliest paths may have as many
 * nodes all the same, but others. */
static void check_crowd(const kind *k, int pool_rows) {
    enum { N = 10 };
    hunch_token prompt[N][100];
    hunch_session *s[N] = {0};
    hunch_engine_options o = options(8, 64);
    uint64_t preempted = 0;
    o.pool_rows = pool_rows;
    hunch_engine *e = open_kind(k, o);
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    for (int i = 0; i < N; i++) {
        heads_prompt(prompt[i], (size_t)(20 + 7 * i), 20, (uint64_t)i);
        const hunch_request r = small_request(*k->model, prompt[i], (size_t)(20 + 7 * i), 400, k->params);
        must(hunch_session_open(&s[i], e, &r, err));
    }
    for (int round = 0; hunch_engine_running(e) > 0; round++) {
        must(hunch_engine_round(e, err));
        if (round % 12 == 11) preempt_youngest(e);
        if (round == 9) hunch_session_cancel(s[1]);
        if (round == 14) hunch_session_cancel(s[5]);
    }
    assert_true(hn_cache_valid(e->cache));
    for (int i = 0; i < N; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        preempted += st.preempted;
        hunch_session_close(&s[i]);
    }
    assert_true(preempted > 0);
    int kept = 0;
    for (int i = 0; i < l->n; i++) /* rounds that may have found no page for a level, or found none for the text before, are not compared */
        if (l->round[i].starved || l->round[i].n_drafted == 0)
            free(l->round[i].text);
        else
            l->round[kept++] = l->round[i];
    l->n = kept;
    assert_true(kept > 50);
    same_as_fresh(k, l, light() ? 61 : 31, "a crowd");
    heads_listen_end(l);
    hunch_engine_close(&e);
}

static void test_crowds(void **state) {
    (void)state;
    for (int i = 1; i < (light() ? 2 : 4); i++) check_crowd(&kinds[i], 1 + 40 * i);
    check_crowd(&kinds[MASKS], 81);
}

/* All pages are taken while the head drafts. */
static int starving_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    hn_head_passes *h = d->state; /* the state of every head begins with it */
    const int other = h->n_seqs - 1;
    hn_cache_seq_begin(h->cache, other);
    for (int model_id = 0; model_id < 2; model_id++)
        while (hn_cache_free_pages(h->cache) > 0 && !hn_cache_reserve(h->cache, other, model_id, 1, NULL))
            hn_cache_commit(h->cache, other, model_id, NULL, 1);
    const int added = heads_propose(d, p, n, level);
    hn_cache_seq_end(h->cache, other);
    return added;
}

/* It drafts fewer tokens, and in the end none, until the text is read again from its beginning; the text stays the same. */
static void check_starved(const kind *k) {
    hunch_token prompt[100];
    hunch_session *s = NULL;
    answer want = {0}, got = {0};
    hunch_engine_options o = options(1, 64);
    o.context = 400;
    o.pool_rows = 1;
    heads_prompt(prompt, 100, 0, 13);
    const hunch_request r = small_request(*k->model, prompt, 100, 290, k->params);
    hunch_engine *e = open_engine_with(*k->model, NULL, o);
    run_requests(e, &r, 1, false, &want);
    hunch_engine_close(&e);
    e = open_kind(k, o);
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    must(hunch_session_open(&s, e, &r, err));
    l->ops.propose = starving_propose;
    while (hn_session_emitted(s) < 250) {
        s->health[0] = (hn_head_health){0, 0}; /* or a head without training is put aside */
        must(hunch_engine_round(e, err));
    }
    assert_true(l->round[0].n_drafted > 0 && l->round[l->n - 1].n_drafted == 0);
    const int starved = l->n;
    l->ops.propose = heads_propose;
    hn_session_release(s);
    hn_queue_push(s, true);
    while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
    keep_answer(&got, s);
    if (k->verify == HUNCH_VERIFY_DEFAULT) assert_same(&want, &got, k->form);
    for (int i = 0; i < starved; i++) free(l->round[i].text);
    l->n -= starved;
    memmove(l->round, l->round + starved, (size_t)l->n * sizeof *l->round);
    same_as_fresh(k, l, 1, "pages are available again");
    assert_true(hn_cache_valid(e->cache));
    hunch_session_close(&s);
    answer_free(&want);
    answer_free(&got);
    heads_listen_end(l);
    hunch_engine_close(&e);
}

static void test_no_pages(void **state) {
    (void)state;
    for (int i = 1; i < (light() ? 2 : 4); i++) check_starved(&kinds[i]);
    check_starved(&kinds[MASKS]);
}

/* The head is not called for a long time (`auto` may prefer other drafters): pending rows are computed when their store is full, and
 * the drafts are right when it is called at last. */
static void check_pending(const kind *k, int parallel, int chunk) {
    enum { LENGTH = 300 };
    hunch_token prompt[MOST][LENGTH];
    hunch_request r[MOST];
    answer got[MOST] = {{0}};
    hunch_engine *e = open_kind(k, options(parallel, chunk));
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    const int n = parallel < MOST ? parallel : MOST;
    l->mute = LENGTH + 100;
    for (int i = 0; i < n; i++) {
        heads_prompt(prompt[i], LENGTH, 0, (uint64_t)i);
        r[i] = small_request(*k->model, prompt[i], (size_t)(LENGTH - 9 * i), 120 + 9 * i, k->params);
    }
    run_requests(e, r, n, false, got);
    for (int i = 0; i < n; i++) answer_free(&got[i]);
    same_as_fresh(k, l, light() ? 11 : 5, "called late");
    heads_listen_end(l);
    hunch_engine_close(&e);
}

static void test_called_late(void **state) {
    (void)state;
    EACH_KIND(i, CALLED_LATE) {
        check_pending(&kinds[i], 1, 64);
        if (i < (light() ? 1 : 3)) check_pending(&kinds[i], 6, i % 2 ? 5 : 64);
    }
}

/* A round is drafted, none of it is verified, and it is drafted again: as if the target's pass found no pages. */
static int propose_twice(hn_drafter *d, hn_propose *p, int n, int level) {
    static hn_tree tree[MOST];
    hn_propose first[MOST];
    const hn_drafter_ops *inner = heads_of(d)->inner;
    assert_true(n <= MOST);
    for (int i = 0; i < n; i++) {
        tree[i] = *p[i].tree;
        first[i] = p[i];
        first[i].tree = &tree[i];
    }
    for (int up = 0; level == 0 && up < 2; up++) inner->propose(d, first, n, up);
    return heads_propose(d, p, n, level);
}

static void check_again(const kind *k, int parallel) {
    hunch_token prompt[MOST][60];
    hunch_request r[MOST];
    answer got[MOST] = {{0}};
    hunch_engine *e = open_kind(k, options(parallel, 64));
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    l->ops.propose = propose_twice;
    for (int i = 0; i < parallel; i++) {
        heads_prompt(prompt[i], 60, 0, (uint64_t)i);
        r[i] = small_request(*k->model, prompt[i], (size_t)(60 - 7 * i), 30, k->params);
    }
    run_requests(e, r, parallel, false, got);
    for (int i = 0; i < parallel; i++) answer_free(&got[i]);
    same_as_fresh(k, l, light() ? 3 : 1, "called again");
    heads_listen_end(l);
    hunch_engine_close(&e);
}

static void test_called_again(void **state) {
    (void)state;
    for (int i = 0; begin_kind(i); i++)
        if (i % test_every(1, 6) == 0 || kinds[i].model == &blocks) check_again(&kinds[i], i % 2 ? 3 : 1);
}

/* ---- mistakes are found ------------------------------------------------------------------------------------------------- */

static int differing(const kind *k, heads_mistake mistake) {
    hunch_token prompt[40];
    answer got = {0};
    hunch_engine *e = open_kind(k, options(1, 64));
    heads_listener *l = heads_listen(e, 0, mistake);
    heads_prompt(prompt, 40, 0, 11);
    const hunch_request r = small_request(*k->model, prompt, 40, 20, k->params);
    run_requests(e, &r, 1, false, &got);
    answer_free(&got);
    const int n = heads_differing(l, *k->model, heads_spec(k->form), k->params, k->verify, 1, NULL);
    heads_listen_end(l);
    hunch_engine_close(&e);
    return n;
}

/* Rows of the text read only states: keys and values of blocks are computed from nothing else. */
static bool reads_no_token(const char *form) {
    static const char *const none[] = {"medusa:", "meta-mtp:", "dflash:", "dspark:", "domino:", "dflash2:"};
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        if (strstr(form, none[k])) return true;
    return false;
}

static void test_mistakes_are_found(void **state) {
    (void)state;
    static const struct {
        heads_mistake mistake;
        const char *what;
    } wrong[] = {{HEADS_WRONG_SLOT, "rows in the wrong slots"},   {HEADS_STALE_FEATURE, "the feature of the row before"},
                 {HEADS_REJECTED_ROW, "a rejected row's feature"}, {HEADS_WRONG_NEXT, "a wrong next token"},
                 {HEADS_TAPS_SWAPPED, "states in wrong order"},  {HEADS_ONE_TOO_MANY, "a rejected row that is fed"},
                 {HEADS_ONE_MISSING, "a row that is not fed"}};
    EACH_KIND(i, MISTAKES) {
        if (strstr(kinds[i].form, "tree=")) continue; /* a row's neighbour in a tree may be of another path */
        assert_int_equal(differing(&kinds[i], HEADS_RIGHT), 0);
        assert_int_equal(differing(&kinds[i], HEADS_TWICE), 0);
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            const bool states = strstr(kinds[i].form, "eagle3:") || strstr(kinds[i].form, "peagle:");
            if (wrong[w].mistake == HEADS_TAPS_SWAPPED && !states) continue; /* it reads one state */
            if (wrong[w].mistake == HEADS_WRONG_NEXT && reads_no_token(kinds[i].form)) continue;
            if (differing(&kinds[i], wrong[w].mistake) == 0) fail_msg("%s: %s passes", kinds[i].form, wrong[w].what);
        }
    }
}

/* ---- acceptance ----------------------------------------------------------------------------------------------------------- */

typedef struct tally {
    int rounds, hits;
} tally;

/* Counts how often a round's first draft is accepted, separately for rounds after one that accepted everything, some, nothing. */
static void tally_rounds(const heads_listener *l, tally behind[3]) {
    for (int i = 1; i < l->n; i++) {
        const heads_round *r = &l->round[i], *before = &l->round[i - 1];
        if (r->seed != before->seed || r->n <= before->n || r->n_drafted == 0 || before->n_drafted == 0) continue;
        tally *t = &behind[before->accepted == 0 ? 2 : before->accepted < before->n_drafted ? 1 : 0];
        t->rounds++;
        t->hits += r->accepted > 0;
    }
}

static void check_acceptance(const char *form, double want, const bool seen[3]) {
    tally behind[3] = {{0}};
    for (int i = 0; i < (light() ? 3 : 8); i++) {
        hunch_token prompt[40];
        answer got = {0};
        hunch_engine *e = open_engine_with(llama, heads_spec(form), options(1, 64));
        heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
        heads_prompt(prompt, 40, 0, (uint64_t)i);
        hunch_request r = small_request(llama, prompt, 40, 160, &greedy);
        r.sampling.seed = (uint64_t)i;
        run_requests(e, &r, 1, false, &got);
        tally_rounds(l, behind);
        answer_free(&got);
        heads_listen_end(l);
        hunch_engine_close(&e);
    }
    for (int b = 0; b < 3; b++) {
        const double n = behind[b].rounds, spread = 5 * sqrt(want * (1 - want) / (n > 0 ? n : 1));
        if ((n > 0) != seen[b]) fail_msg("%s: %d rounds of kind %d", form, behind[b].rounds, b);
        if (n > 0 && fabs(behind[b].hits / n - want) > spread + 1e-9)
            fail_msg("%s: after kind %d (0: all accepted, 1: some, 2: none) %d of %d first drafts are accepted, expected %g of them",
                     form, b, behind[b].hits, behind[b].rounds, want);
    }
}

static void test_acceptance(void **state) {
    (void)state;
    heads_tokens = 480;
    check_acceptance("eagle3:@eagle3-official-d2t,depth=3,force=1", 1, (const bool[3]){true, false, false});
    check_acceptance("eagle3:@eagle3-official-d2t,depth=2,force=0.6", .6, (const bool[3]){true, true, true});
    check_acceptance("eagle:@eagle1-bias-bin,depth=3,force=0.5", .5, (const bool[3]){true, true, true});
    check_acceptance("eagle:@eagle1-bias-bin,depth=3,force=0", 0, (const bool[3]){false, false, true});
    check_acceptance("peagle:@peagle-spec-2layers,depth=4,force=1", 1, (const bool[3]){true, false, false});
    check_acceptance("peagle:@peagle-vllm-4layers,depth=2,force=0.6", .6, (const bool[3]){true, true, true});
    check_acceptance("peagle:@peagle-norms,depth=3,force=0", 0, (const bool[3]){false, false, true});
    check_acceptance("falcon:@falcon-k3,depth=3,force=0.6", .6, (const bool[3]){true, true, true});
    check_acceptance("dart:@dart-d2t,depth=3,force=0.6", .6, (const bool[3]){true, true, true});
    check_acceptance("medusa:@medusa-4heads,depth=3,force=0.5", .5, (const bool[3]){true, true, true});
    check_acceptance("hydra:@hydra-prefix,depth=3,force=1", 1, (const bool[3]){true, false, false});
    check_acceptance("mlp:@mlp-tied-5,depth=3,force=0.6", .6, (const bool[3]){true, true, true});
    check_acceptance("mtp:@mtp-untied-bias,depth=3,force=0.5", .5, (const bool[3]){true, true, true});
    check_acceptance("mlp:@mlp-tied-5,depth=2,tree=dynamic,topk=3,total=8,force=0.5/0.3", .8, (const bool[3]){false, true, true});
    check_acceptance("medusa:@medusa-4heads,depth=2,tree=best,topk=3,total=8,force=0.4/0.2", .6, (const bool[3]){false, true, true});
    check_acceptance("eagle:@eagle1-bias-bin,tree=mc_sim_7b_63,force=0.3/0.2/0.1", .6, (const bool[3]){false, true, true});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fed_once),     cmocka_unit_test(test_evaluated_once),     cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_second_turn),  cmocka_unit_test(test_one_prompt),         cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_crowds),       cmocka_unit_test(test_no_pages),           cmocka_unit_test(test_called_late),
        cmocka_unit_test(test_called_again), cmocka_unit_test(test_mistakes_are_found), cmocka_unit_test(test_acceptance),
        cmocka_unit_test(test_every_kind)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
