/* SPDX-License-Identifier: Apache-2.0 */
/* soak.h - a day of short requests in minutes, for soak_test.c and soak_long_test.c: every drafter, rule and way of sampling, several
 * sessions at once, texts that begin alike, too few pages, sessions that are cancelled or closed while they run, engines that are
 * closed and opened again. Checked: memory, file descriptors and threads return to their earlier values; the data of drafters stays
 * bounded; the text of every SOAK_CHECKED-th request is that of plain decoding. */
#ifndef HN_SOAK_H
#define HN_SOAK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <unistd.h>

#include "base/random.h"
#include "engine/session.h"
#include "fixture.h"
#include "preempt_for_tests.h"

enum { SOAK_CONTEXT = 128, SOAK_PAGE = 16, SOAK_CHECKED = 16, SOAK_MOST = 16, SOAK_PROMPT = 60, SOAK_NEW = 24 };
#define SOAK_MODEL "models/stories260K/stories260K.f32.gguf"

typedef struct soak_kind {
    const char *draft; /* "self": a model of another precision */
    int parallel, pool_rows;
    hunch_verify verify;
    hunch_lossy lossy;
    bool no_reuse;
} soak_kind;

static const soak_kind soak_kinds[] = {
    {NULL, 3, 0, HUNCH_VERIFY_DEFAULT, {0}, false},
    {"ngram", 1, 0, HUNCH_VERIFY_DEFAULT, {0}, false},
    {"ngram,form=hf+suffix", 10, SOAK_CONTEXT, HUNCH_VERIFY_DEFAULT, {0}, false},
    {"ngram,form=pld", 2, 0, HUNCH_VERIFY_GREEDY, {0}, true},
    {"ngram,form=longest,min=2,max=5", 3, 0, HUNCH_VERIFY_MATCH, {0}, false},
    {"ngram,form=simple,max=4", 2, 0, HUNCH_VERIFY_RATIO, {0}, false},
    {"ngram,form=map-k,max=4+ngram,form=map-k4v,max=4", 4, 0, HUNCH_VERIFY_MATCH, {0}, false},
    {"ngram,form=mod,max=4,min=2", 13, SOAK_CONTEXT, HUNCH_VERIFY_DEFAULT, {0}, true},
    {"cache,mib=1", 2, 0, HUNCH_VERIFY_RATIO, {0}, false},
    {"suffix,mode=tree,mib=1", 12, SOAK_CONTEXT, HUNCH_VERIFY_RATIO, {0}, false},
    {"self", 3, 0, HUNCH_VERIFY_TRAVERSAL, {0}, false},
    {"prediction", 3, 0, HUNCH_VERIFY_DEFAULT, {0}, false},
    {"forced,accept=0.7,depth=4,tree=random", 2, 0, HUNCH_VERIFY_DEFAULT, {0}, false},
    {"self", 9, SOAK_CONTEXT, HUNCH_VERIFY_RATIO, {0}, false},
    {"self", 2, 0, HUNCH_VERIFY_BLOCK, {0}, true},
    {"self+ngram+cache+suffix+prediction", 3, 0, HUNCH_VERIFY_MATCH, {0}, false},
    {"auto", 8, SOAK_CONTEXT, HUNCH_VERIFY_DEFAULT, {0}, false},
    {"ngram", 2, 0, HUNCH_VERIFY_DEFAULT, {HUNCH_LOSSY_LENIENCE, 0.5, 0}, false},
    {"suffix", 3, 0, HUNCH_VERIFY_DEFAULT, {HUNCH_LOSSY_TYPICAL, 0.3, 0.6}, false},
    {"self", 2, 0, HUNCH_VERIFY_DEFAULT, {HUNCH_LOSSY_TOP_M, 3, 0}, false},
    /* The last one is never closed and its drafters are never reset. */
    {"ngram,form=mod+suffix,mib=1+cache,mib=1", 4, 2 * SOAK_CONTEXT, HUNCH_VERIFY_DEFAULT, {0}, false},
};
enum { SOAK_KINDS = sizeof soak_kinds / sizeof *soak_kinds, SOAK_LASTING = SOAK_KINDS - 1 };

typedef struct soak {
    hunch_model *model;
    hunch_engine *plain, *engine[SOAK_KINDS];
    int block;       /* requests of an engine in a cycle */
    uint64_t random; /* for events; a request depends only on its number */
    size_t requests, cancelled, dropped, checked, preempted, restored, drafted, accepted;
} soak;

/* ---- resources of the process ------------------------------------------------------------------------------------------ */

__attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes(void);

/* Bytes of live allocations, the C library's and its mappings; 0: not available. glibc's cache of freed blocks would count as
 * live: soak_main switches it off. */
static size_t soak_live_bytes(void) {
    if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

static size_t soak_statm(int field) {
    size_t v[2] = {0};
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &v[0], &v[1]), 2);
    fclose(f);
    return v[field] * (size_t)sysconf(_SC_PAGESIZE);
}

static int soak_entries(const char *path) {
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

typedef struct soak_held {
    size_t live, mapped, resident;
    int files, threads;
} soak_held;

static soak_held soak_look(void) {
    return (soak_held){soak_live_bytes(), soak_statm(0), soak_statm(1), soak_entries("/proc/self/fd"), soak_entries("/proc/self/task")};
}

/* ---- requests --------------------------------------------------------------------------------------------------------- */

static const hunch_sampling soak_samplings[] = {
    {.top_p = 1},
    {.temperature = 0.8, .top_p = 0.95},
    {.temperature = 1, .top_k = 20, .top_p = 1},
    {.temperature = 0.7, .top_p = 1, .min_p = 0.05},
    {.temperature = 1.2, .top_p = 1, .top_n_sigma = 1.5},
    {.temperature = 0.9, .top_p = 1, .typical_p = 0.9},
    {.temperature = 0.8, .top_p = 1, .xtc_probability = 0.5, .xtc_threshold = 0.1},
    {.top_p = 1, .repetition_penalty = 1.2, .frequency_penalty = 0.1, .presence_penalty = 0.2},
    {.temperature = 0.8, .top_p = 0.9, .dry_multiplier = 0.8},
    {.temperature = 1, .top_p = 1},
};
static const hunch_bias soak_biases[] = {{5, -INFINITY}, {100, 1.5}, {300, -2}};
static const char *const soak_stops[] = {"the end", " a", "Tom", "\n\n"};

typedef struct soak_ask {
    hunch_token prompt[SOAK_PROMPT], prediction[SOAK_NEW];
    hunch_request r;
} soak_ask;

static uint64_t soak_below(uint64_t *state, uint64_t n) {
    return hn_splitmix(state) % n;
}

/* Prompts of eight kinds, with common prefixes. With few pages some answers continue to the end of the context. */
static void soak_make(const soak *s, const soak_kind *k, size_t number, soak_ask *a) {
    uint64_t own = number * 0x9E3779B97F4A7C15u + 1, like = soak_below(&own, 8) + 77;
    const size_t n = 1 + soak_below(&own, SOAK_PROMPT), shared = soak_below(&own, n + 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t *from = i < shared ? &like : &own;
        const uint64_t x = hn_splitmix(from);
        a->prompt[i] = i == 0 ? 1 : i > 9 && x % 16 < 9 ? a->prompt[i - 9] : (hunch_token)(x >> 33) % 512;
    }
    hunch_request *r = &a->r;
    hunch_request_defaults(r, s->model);
    r->prompt = a->prompt;
    r->n_prompt = n;
    r->max_tokens = 1 + (int)soak_below(&own, SOAK_NEW);
    r->ignore_eos = soak_below(&own, 2);
    r->logprobs = soak_below(&own, 5) == 0;
    const size_t way = soak_below(&own, sizeof soak_samplings / sizeof *soak_samplings);
    r->sampling = soak_samplings[k->verify == HUNCH_VERIFY_GREEDY ? 0 : way];
    r->sampling.seed = number;
    if (soak_below(&own, 6) == 0) {
        r->sampling.bias = soak_biases;
        r->sampling.n_bias = 3;
    }
    if (soak_below(&own, 3) == 0) {
        r->stop = soak_stops;
        r->n_stop = 4;
    }
    if (k->pool_rows && soak_below(&own, 3)) {
        r->max_tokens = 0;
        r->ignore_eos = true;
        r->n_stop = 0;
    }
    r->n_prediction = soak_below(&own, SOAK_NEW);
    r->prediction = a->prediction;
    for (size_t i = 0; i < r->n_prediction; i++) a->prediction[i] = a->prompt[soak_below(&own, n)];
}

/* ---- checking --------------------------------------------------------------------------------------------------------- */

/* With greedy and match the text is that of plain decoding, up to its end. */
static void soak_check(soak *s, const soak_kind *k, size_t number, const hunch_session *x, const hunch_request *r) {
    hunch_session_state st;
    answer want = {0};
    hunch_session_get(x, &st);
    if (st.finish == HUNCH_FINISH_FAILED) fail_msg("request %zu, %s: %s", number, k->draft ? k->draft : "none", st.error.message);
    s->preempted += st.preempted;
    s->restored += st.n_restored;
    s->drafted += st.drafted;
    s->accepted += st.accepted;
    if (number % SOAK_CHECKED || k->lossy.rule || (st.verify != HUNCH_VERIFY_GREEDY && st.verify != HUNCH_VERIFY_MATCH)) return;
    run_requests(s->plain, r, 1, false, &want);
    const bool whole = st.finish == HUNCH_FINISH_STOP || st.finish == HUNCH_FINISH_LENGTH;
    if (st.n_tokens > want.n || (whole && (st.n_tokens != want.n || st.finish != want.finish)) ||
        memcmp(st.tokens, want.token, st.n_tokens * sizeof *st.tokens) != 0)
        fail_msg("request %zu, %s: not the text of plain decoding", number, k->draft ? k->draft : "none");
    if (whole && (strlen(want.text) != st.text_len || memcmp(want.text, st.text, st.text_len) != 0))
        fail_msg("request %zu: the same tokens, another text", number);
    s->checked++;
    answer_free(&want);
}

/* ---- a block of requests on one engine ----------------------------------------------------------------------------------- */

typedef struct soak_running {
    hunch_session *session;
    size_t number;
    soak_ask ask;
    int rounds_left; /* until it is cancelled (or closed as it is, if odd); -1: never */
} soak_running;

static void soak_begin(soak *s, const soak_kind *k, hunch_engine *e, size_t number, soak_running *x) {
    *x = (soak_running){.number = number, .rounds_left = soak_below(&s->random, 12) ? -1 : (int)soak_below(&s->random, 8)};
    soak_make(s, k, number, &x->ask);
    must(hunch_session_open(&x->session, e, &x->ask.r, err));
}

/* True if it is over: checked and closed. */
static bool soak_step(soak *s, const soak_kind *k, soak_running *x) {
    hunch_session_state st;
    hunch_session_get(x->session, &st);
    if (st.finish == HUNCH_RUNNING) {
        if (x->rounds_left < 0 || x->rounds_left-- > 0) return false;
        if (x->number % 2) {
            s->dropped++;
            hunch_session_close(&x->session);
            return true;
        }
        s->cancelled++;
        hunch_session_cancel(x->session);
    }
    soak_check(s, k, x->number, x->session, &x->ask.r);
    hunch_session_close(&x->session);
    return true;
}

static void soak_block(soak *s, const soak_kind *k, hunch_engine *e) {
    static soak_running x[SOAK_MOST];
    int n = 0, started = 0;
    for (; started < s->block || n > 0;) {
        while (n < SOAK_MOST && n < k->parallel + 3 && started < s->block) {
            soak_begin(s, k, e, s->requests++, &x[n++]);
            started++;
        }
        if (soak_below(&s->random, 16) == 0) preempt_youngest(e);
        must(hunch_engine_round(e, err));
        for (int i = 0; i < n;) {
            if (!soak_step(s, k, &x[i])) {
                i++;
                continue;
            }
            x[i] = x[--n];
            x[i].ask.r.prompt = x[i].ask.prompt; /* it moved */
            x[i].ask.r.prediction = x[i].ask.prediction;
        }
    }
    assert_int_equal(hunch_engine_running(e), 0);
    assert_true(hn_cache_valid(e->cache));
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------- */

static hunch_engine *soak_open(const soak *s, const soak_kind *k) {
    static char draft[1000];
    const bool self = k->draft && strncmp(k->draft, "self", 4) == 0;
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = k->parallel;
    o.context = SOAK_CONTEXT;
    o.page_rows = SOAK_PAGE;
    o.pool_rows = k->pool_rows;
    o.verify = k->verify;
    o.lossy = k->lossy;
    o.no_prefix_reuse = k->no_reuse;
    if (self) snprintf(draft, sizeof draft, "model:%s,depth=3%s", data_path("models/stories260K/stories260K.f16.gguf"), k->draft + 4);
    return open_engine_with(s->model, self ? draft : k->draft, o);
}

/* Every kind of engine once: it is opened if needed, used, and then kept, reset, or closed. */
static void soak_cycle(soak *s) {
    for (int i = 0; i < SOAK_KINDS; i++) {
        if (!s->engine[i]) s->engine[i] = soak_open(s, &soak_kinds[i]);
        soak_block(s, &soak_kinds[i], s->engine[i]);
        const uint64_t then = i == SOAK_LASTING ? 0 : soak_below(&s->random, 4);
        if (then == 1) hunch_engine_forget(s->engine[i]);
        if (then == 2) hunch_engine_close(&s->engine[i]);
    }
}

static void soak_close_all(soak *s, int from, int to) {
    for (int i = from; i < to; i++)
        if (s->engine[i]) hunch_engine_close(&s->engine[i]);
}

static void soak_same(const soak_held *a, const soak_held *b, const char *what) {
    if (a->live != b->live) fail_msg("%s: %zu bytes are live, %zu were", what, b->live, a->live);
    if (a->files != b->files) fail_msg("%s: %d files are open, %d were", what, b->files, a->files);
    if (a->threads != b->threads) fail_msg("%s: %d threads, %d were", what, b->threads, a->threads);
}

/* The lasting engine's memory: its drafters have two stores of a MiB each and one table of n-grams. */
static void soak_bounded(size_t opened, size_t now, const char *what) {
    enum { MOST = 12 << 20 };
    if (now > opened + MOST) fail_msg("%s: the engine that lasts grew from %zu bytes to %zu", what, opened, now);
}

/* Two cycles or more, until so many requests were made. */
static void soak_run(size_t requests, int block) {
    soak s = {.model = open_model(data_path(SOAK_MODEL), "best", 2, HUNCH_PRECISION_NATIVE), .block = block, .random = 20261121};
    s.plain = soak_open(&s, &(const soak_kind){.parallel = 1, .no_reuse = true});
    soak_cycle(&s); /* one-time allocations of libraries are done */
    soak_close_all(&s, 0, SOAK_KINDS);
    const soak_held none = soak_look();
    s.engine[SOAK_LASTING] = soak_open(&s, &soak_kinds[SOAK_LASTING]);
    const size_t opened = soak_live_bytes();
    soak_held warm = {0}, before = {0};
    do {
        soak_cycle(&s);
        soak_close_all(&s, 0, SOAK_LASTING);
        const soak_held now = soak_look();
        soak_bounded(opened, now.live, "after a cycle");
        if (!before.files) before = now;
        before.live = now.live; /* bounded, not the same */
        soak_same(&before, &now, "with one engine");
        if (s.requests >= requests / 4 && warm.resident == 0) warm = now;
        if (warm.resident && !SANITIZED && now.resident > warm.resident + warm.resident / 16 + (2 << 20))
            fail_msg("%zu requests: %zu bytes resident, %zu after a quarter of them", s.requests, now.resident, warm.resident);
    } while (s.requests < requests);
    hunch_engine_forget(s.engine[SOAK_LASTING]);
    const soak_held forgot = soak_look();
    if (forgot.live > opened + (1 << 20)) fail_msg("an engine forgot, and holds %zu bytes, %zu when it was new", forgot.live, opened);
    soak_close_all(&s, 0, SOAK_KINDS);
    const soak_held last = soak_look();
    soak_same(&none, &last, "without engines");
    print_message("%zu requests (%zu cancelled, %zu closed while they ran), %zu texts as plain, %zu preemptions, %zu rows "
                  "restored, %zu of %zu drafts accepted; resident %zu KiB, %zu at a quarter\n",
                  s.requests, s.cancelled, s.dropped, s.checked, s.preempted, s.restored, s.accepted, s.drafted,
                  last.resident >> 10, warm.resident >> 10);
    assert_true(s.cancelled > 0 && s.dropped > 0 && s.preempted > 0 && s.restored > 0 && s.accepted > 0);
    assert_true(s.checked > s.requests / SOAK_CHECKED / 3);
    hunch_engine_close(&s.plain);
    hunch_model_close(&s.model);
}

/* The program again without glibc's cache of freed blocks, which is read once at its start; then the test. */
static int soak_main(char **argv, const struct CMUnitTest *test) {
    if (!getenv("GLIBC_TUNABLES")) {
        assert_int_equal(setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1), 0);
        execv("/proc/self/exe", argv);
        return 1;
    }
    return _cmocka_run_group_tests("soak", test, 1, NULL, NULL);
}
#endif
