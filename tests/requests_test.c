/* SPDX-License-Identifier: Apache-2.0 */
/* requests_test.c - what a request may ask for, each with and without drafts: where a text may end and what it is then said to have
 * ended with, who may draft for it and how much, with whom it shares rows, and when it gets a place; and the
 * numbers of an engine that serves them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session.h"
#include "fixture.h"
#include "preempt_for_tests.h"

enum { CONTEXT = 256, PAGE = 16, BEGIN = 1, END = 2 }; /* special tokens of the model */
static hunch_model *model;
static char self_draft[600]; /* another precision of the same model as a draft model */
static const hunch_token prompt[] = {1, 403, 407, 261, 378};

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    snprintf(self_draft, sizeof self_draft, "model:%s,depth=4", data_path("models/stories260K/stories260K.f16.gguf"));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static hunch_request request(int max_tokens) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = max_tokens;
    return r;
}

static hunch_request hot(int max_tokens, uint64_t seed) { /* so flat that any token comes, the end too */
    hunch_request r = request(max_tokens);
    r.sampling = (hunch_sampling){.temperature = 8, .top_p = 1, .seed = seed};
    return r;
}

typedef struct ending {
    answer a;
    int stop_string;
    hunch_token stop_token;
} ending;

static hunch_engine *open_with(const char *draft, int parallel) {
    return open_engine(model, draft, parallel, 64, HUNCH_KV_DEFAULT, PAGE, CONTEXT);
}

static ending run_one(const char *draft, const hunch_request *r) {
    ending out = {0};
    hunch_engine *e = open_with(draft, 1);
    hunch_session *s = NULL;
    hunch_session_state st;
    must(hunch_session_open(&s, e, r, err));
    must(hunch_engine_run(e, err));
    hunch_session_get(s, &st);
    out.stop_string = st.stop_string;
    out.stop_token = st.stop_token;
    keep_answer(&out.a, s);
    assert_true(hn_cache_valid(e->cache));
    hunch_session_close(&s);
    hunch_engine_close(&e);
    return out;
}

/* The request with each drafter is the plain one: tokens, text, and what ended it. Returns the plain one. */
static ending run_all(const hunch_request *r) {
    const char *const drafts[] = {"forced,accept=1,depth=9", "forced,accept=0.6,depth=5,tree=random,seed=4", "ngram", self_draft, "auto"};
    ending plain = run_one(NULL, r);
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
        ending drafted = run_one(drafts[d], r);
        assert_same(&plain.a, &drafted.a, drafts[d]);
        assert_string_equal(plain.a.text, drafted.a.text);
        assert_int_equal(plain.a.finish, drafted.a.finish);
        assert_int_equal(plain.stop_string, drafted.stop_string);
        assert_int_equal(plain.stop_token, drafted.stop_token);
        answer_free(&drafted.a);
    }
    return plain;
}

/* ---- where it ends -------------------------------------------------------------------------------------------------------- */

static void test_stop_tokens(void **state) {
    (void)state;
    hunch_request r = request(60);
    ending whole = run_one(NULL, &r);
    assert_int_equal(whole.stop_token, -1);
    for (size_t at = 2; at < whole.a.n; at += 11) {
        const hunch_token stops[] = {511, whole.a.token[at]};
        size_t first = 0;
        while (whole.a.token[first] != stops[1]) first++;
        r.stop_tokens = stops;
        r.n_stop_tokens = 2;
        r.ignore_eos = at % 2;
        ending got = run_all(&r);
        assert_int_equal(got.a.finish, HUNCH_FINISH_STOP);
        assert_int_equal(got.a.n, first + 1);
        assert_int_equal(got.stop_token, stops[1]);
        assert_int_equal(got.stop_string, -1);
        char *text; /* without the token that ended it */
        size_t len;
        must(hunch_detokenize(model, whole.a.token, first, &text, &len, err));
        assert_true(strlen(got.a.text) <= len + 1 && strstr(got.a.text, text[0] == ' ' ? text + 1 : text));
        hunch_free(text);
        answer_free(&got.a);
    }
    answer_free(&whole.a);
}

static void test_which_stop_string(void **state) {
    (void)state;
    hunch_request r = request(100);
    ending whole = run_one(NULL, &r);
    char early[6] = {0}, late[6] = {0};
    memcpy(early, whole.a.text + 30, 5);
    memcpy(late, whole.a.text + 60, 5);
    const char *const stops[] = {late, "never in it", early};
    r.stop = stops;
    r.n_stop = 3;
    ending got = run_all(&r);
    assert_int_equal(got.stop_string, 2);
    assert_int_equal(got.stop_token, -1);
    assert_int_equal(got.a.finish, HUNCH_FINISH_STOP);
    answer_free(&got.a);
    answer_free(&whole.a);
}

/* The end has probability 0 before: the tokens are those of a bias of -infinity on it, and not those of a text that went on after it. */
static void test_least_tokens(void **state) {
    (void)state;
    enum { LEAST = 40, STOPS = 12 };
    hunch_token also[STOPS];
    hunch_bias bias[STOPS + 1] = {{END, -INFINITY}};
    int short_without = 0, ended = 0;
    for (int i = 0; i < STOPS; i++) {
        also[i] = 300 + i;
        bias[i + 1] = (hunch_bias){300 + i, -INFINITY};
    }
    for (uint64_t seed = 0; seed < 12; seed++) {
        hunch_request r = hot(LEAST, seed);
        r.stop_tokens = also;
        r.n_stop_tokens = STOPS;
        ending without = run_one(NULL, &r);
        short_without += without.a.n < LEAST;
        answer_free(&without.a);
        r.sampling.bias = bias;
        r.sampling.n_bias = STOPS + 1;
        ending never = run_one(NULL, &r);
        assert_int_equal(never.a.n, LEAST);
        r.sampling.n_bias = 0;
        r.max_tokens = 240;
        r.min_tokens = LEAST;
        ending got = run_all(&r);
        assert_true(got.a.n >= LEAST);
        assert_memory_equal(got.a.token, never.a.token, LEAST * sizeof *never.a.token);
        if (got.a.finish == HUNCH_FINISH_STOP) {
            ended++;
            assert_true(got.a.n > LEAST);
            assert_int_equal(got.stop_token, got.a.token[got.a.n - 1]);
        }
        answer_free(&got.a);
        answer_free(&never.a);
    }
    assert_true(short_without > 3 && ended > 3);
}

/* At temperature 0 the best of the tokens that do not end it is taken, and with all of them as soon as it may end. */
static void test_least_tokens_greedily(void **state) {
    (void)state;
    const hunch_bias up = {END, 1000};
    hunch_request r = request(50);
    r.sampling.bias = &up;
    r.sampling.n_bias = 1;
    r.min_tokens = 20;
    ending got = run_all(&r);
    assert_int_equal(got.a.n, 21);
    assert_int_equal(got.stop_token, END);
    hunch_request plain = request(20);
    ending without = run_one(NULL, &plain);
    assert_memory_equal(got.a.token, without.a.token, 20 * sizeof *got.a.token);
    answer_free(&got.a);
    answer_free(&without.a);
}

/* A stop string that is complete before is text, also if it ends exactly there; a later one ends it. */
static void test_least_tokens_and_stop_strings(void **state) {
    (void)state;
    hunch_request r = request(120);
    ending whole = run_one(NULL, &r);
    const char *const stops[] = {"e"};
    r.stop = stops;
    r.n_stop = 1;
    for (int least = 0; least < 60; least += 7) {
        char *before;
        size_t len;
        must(hunch_detokenize(model, whole.a.token, (size_t)least, &before, &len, err));
        const size_t from = least == 0 ? 0 : len + (whole.a.text[0] == ' '); /* a text that continues keeps its first space */
        r.min_tokens = least;
        ending got = run_all(&r);
        assert_int_equal(got.stop_string, 0);
        const char *const at = strchr(whole.a.text + from, 'e');
        assert_int_equal(strlen(got.a.text), at - whole.a.text);
        assert_memory_equal(got.a.text, whole.a.text, strlen(got.a.text));
        hunch_free(before);
        answer_free(&got.a);
    }
    answer_free(&whole.a);
}

static void test_special_text(void **state) {
    (void)state;
    const hunch_bias up = {BEGIN, 1000};
    hunch_request r = request(3);
    r.sampling.bias = &up;
    r.sampling.n_bias = 1;
    ending without = run_all(&r);
    assert_string_equal(without.a.text, "");
    r.special_text = true;
    ending with = run_all(&r);
    const char *name;
    size_t len;
    must(hunch_token_piece(model, BEGIN, &name, &len, NULL, err));
    assert_int_equal(strlen(with.a.text), 3 * len);
    assert_memory_equal(with.a.text + len, name, len);
    char stop[100] = {0};
    const char *const stops[] = {stop};
    memcpy(stop, name, len);
    r.stop = stops;
    r.n_stop = 1;
    ending stopped = run_all(&r);
    assert_int_equal(stopped.a.finish, HUNCH_FINISH_STOP);
    assert_int_equal(stopped.a.n, 1);
    answer_free(&without.a);
    answer_free(&with.a);
    answer_free(&stopped.a);
}

/* ---- who drafts ------------------------------------------------------------------------------------------------------------ */

typedef struct seen {
    int rows, depth;
    uint32_t drafters; /* bits */
} seen;

static void look(void *user, const hunch_round_report *r) {
    seen *s = user;
    int depth[HUNCH_MAX_ROWS + 1] = {0};
    if (r->rows - 1 > s->rows) s->rows = r->rows - 1;
    for (int i = 0; i < r->rows - 1; i++) {
        depth[i] = r->node[i].parent < 0 ? 1 : depth[r->node[i].parent] + 1;
        if (depth[i] > s->depth) s->depth = depth[i];
        s->drafters |= (uint32_t)1 << r->node[i].drafter;
    }
}

/* Texts of one engine with different drafters: each has its own, and the plain text. */
static void test_drafters_of_a_text(void **state) {
    (void)state;
    enum { N = 4 };
    static const uint32_t mask[N] = {1, 2, 0, HUNCH_ALL_DRAFTERS};
    char specs[700];
    snprintf(specs, sizeof specs, "forced,accept=0.9,depth=4+%s", self_draft);
    hunch_engine *e = open_with(specs, N);
    hunch_session *s[N];
    seen got[N] = {{0}};
    hunch_request r = request(80);
    answer plain = {0}, drafted[N] = {{0}};
    hunch_engine *bare = open_with(NULL, 1);
    run_requests(bare, &r, 1, false, &plain);
    for (int i = 0; i < N; i++) {
        r.drafters = mask[i];
        r.on_round = look;
        r.on_round_user = &got[i];
        must(hunch_session_open(&s[i], e, &r, err));
    }
    must(hunch_engine_run(e, err));
    for (int i = 0; i < N; i++) {
        keep_answer(&drafted[i], s[i]);
        assert_same(&plain, &drafted[i], "drafters of a text");
        assert_int_equal(got[i].drafters & 3, mask[i] & 3);
        answer_free(&drafted[i]);
        hunch_session_close(&s[i]);
    }
    answer_free(&plain);
    hunch_engine_close(&bare);
    hunch_engine_close(&e);
}

/* With a controller: one text of several may be drafted for by nobody, another by one. */
static void test_drafters_of_a_text_controlled(void **state) {
    (void)state;
    enum { N = 6 };
    char specs[700];
    snprintf(specs, sizeof specs, "auto+%s", self_draft);
    hunch_engine *e = open_with(specs, N);
    hunch_session *s[N];
    seen got[N] = {{0}};
    uint32_t all = 0;
    const int n = hunch_engine_drafters(e);
    assert_true(n > 2);
    for (int wave = 0; wave < 4; wave++) {
        for (int i = 0; i < N; i++) {
            hunch_request r = request(200);
            r.drafters = i == 0 ? HUNCH_ALL_DRAFTERS : i == 1 ? 0 : (uint32_t)1 << ((i + wave) % n);
            r.on_round = look;
            r.on_round_user = &got[i];
            got[i] = (seen){0};
            must(hunch_session_open(&s[i], e, &r, err));
        }
        must(hunch_engine_run(e, err));
        for (int i = 0; i < N; i++) {
            const uint32_t may = i == 0 ? HUNCH_ALL_DRAFTERS : i == 1 ? 0 : (uint32_t)1 << ((i + wave) % n);
            assert_int_equal(got[i].drafters & ~may, 0);
            all |= got[i].drafters;
            hunch_session_close(&s[i]);
        }
    }
    assert_true(all != 0);
    hunch_engine_close(&e);
}

static void test_depth_and_rows(void **state) {
    (void)state;
    static const char *const drafts[] = {"forced,accept=0.9,depth=9", "forced,accept=0.6,depth=5,tree=random,seed=4", self_draft};
    hunch_request r = request(60);
    ending plain = run_one(NULL, &r);
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++)
        for (int limit = 1; limit <= 4; limit++)
            for (int by_rows = 0; by_rows < 2; by_rows++) {
                seen got = {0};
                r = request(60);
                *(by_rows ? &r.draft_rows : &r.draft_depth) = limit;
                r.on_round = look;
                r.on_round_user = &got;
                ending drafted = run_one(drafts[d], &r);
                assert_same(&plain.a, &drafted.a, drafts[d]);
                assert_int_equal(by_rows ? got.rows : got.depth, limit);
                answer_free(&drafted.a);
            }
    answer_free(&plain.a);
}

/* ---- shared rows ----------------------------------------------------------------------------------------------------------- */

static void test_salts(void **state) {
    (void)state;
    static const char *const salt[] = {NULL, "a", "b", "a", "", "b", NULL, "ab"};
    static const bool known[] = {false, false, false, true, true, true, true, false};
    hunch_token text[100];
    for (int i = 0; i < 100; i++) text[i] = i == 0 ? 1 : 260 + i;
    hunch_request r = request(20);
    r.prompt = text;
    r.n_prompt = 100;
    answer plain = {0};
    hunch_engine *e = open_with(NULL, 1);
    run_requests(e, &r, 1, true, &plain);
    hunch_engine_close(&e);
    e = open_with(self_draft, 1);
    for (size_t i = 0; i < sizeof salt / sizeof *salt; i++) {
        answer got = {0};
        r.salt = salt[i];
        run_requests(e, &r, 1, true, &got);
        assert_same(&plain, &got, salt[i] ? salt[i] : "no salt");
        assert_int_equal(got.restored, known[i] ? 99 / PAGE * PAGE : 0);
        assert_true(hn_cache_valid(e->cache));
        answer_free(&got);
    }
    hunch_engine_close(&e);
    answer_free(&plain);
}

/* Together: texts of one salt compute their common rows once, others do not wait for them. */
static void test_salts_together(void **state) {
    (void)state;
    enum { N = 4 };
    static const char *const salt[N] = {"a", "b", "a", NULL};
    hunch_token text[100];
    for (int i = 0; i < 100; i++) text[i] = i == 0 ? 1 : 260 + i;
    hunch_engine *e = open_with(NULL, N);
    hunch_session *s[N];
    hunch_session_state st;
    for (int i = 0; i < N; i++) {
        hunch_request r = request(20);
        r.prompt = text;
        r.n_prompt = 100;
        r.salt = salt[i];
        must(hunch_session_open(&s[i], e, &r, err));
        hunch_session_get(s[i], &st);
        assert_int_equal(st.waiting, i == 2);
    }
    must(hunch_engine_run(e, err));
    for (int i = 0; i < N; i++) {
        hunch_session_get(s[i], &st);
        assert_int_equal(st.n_restored, i == 2 ? 96 : 0);
        hunch_session_close(&s[i]);
    }
    hunch_engine_close(&e);
}

/* ---- a place ----------------------------------------------------------------------------------------------------------------- */

enum { MOST_ORDERED = 40 };
typedef struct order {
    const hunch_session *first[MOST_ORDERED]; /* whose first token came when */
    int n;
} order;

static bool note_first(void *user, const hunch_output *o) {
    order *k = user;
    hunch_session_state st;
    hunch_session_get(o->session, &st);
    if (st.n_tokens == o->n_tokens && o->n_tokens > 0) k->first[k->n++] = o->session;
    return true;
}

static int when(const order *k, const hunch_session *s) {
    for (int i = 0; i < k->n; i++)
        if (k->first[i] == s) return i;
    fail_msg("a session gave no token");
    return -1;
}

static hunch_session *open_ordered(hunch_engine *e, order *k, int priority) {
    hunch_session *s = NULL;
    hunch_request r = request(4);
    r.ignore_eos = true;
    r.priority = priority;
    r.on_output = note_first;
    r.on_output_user = k;
    must(hunch_session_open(&s, e, &r, err));
    return s;
}

static void test_priorities(void **state) {
    (void)state;
    static const int priority[] = {0, 0, -3, 5, 0, 5, 7}, place[] = {0, 4, 6, 2, 5, 3, 1}; /* the first gets the place at once */
    enum { N = sizeof priority / sizeof *priority };
    order k = {.n = 0};
    hunch_session *s[N];
    hunch_engine *e = open_with(NULL, 1);
    for (int i = 0; i < N; i++) s[i] = open_ordered(e, &k, priority[i]);
    must(hunch_engine_run(e, err));
    for (int i = 0; i < N; i++) {
        assert_int_equal(when(&k, s[i]), place[i]);
        hunch_session_close(&s[i]);
    }
    hunch_engine_close(&e);
}

/* However many of a higher priority come, one place in eight goes to the oldest. */
static void test_none_starves(void **state) {
    (void)state;
    enum { LOW = 3, HIGH = 34 };
    order k = {.n = 0};
    hunch_session *low[LOW], *high[HIGH];
    hunch_engine *e = open_with(NULL, 1);
    high[0] = open_ordered(e, &k, 1);
    for (int i = 0; i < LOW; i++) low[i] = open_ordered(e, &k, 0);
    for (int i = 1; i < HIGH; i++) high[i] = open_ordered(e, &k, 1);
    must(hunch_engine_run(e, err));
    for (int i = 0; i < LOW; i++) assert_int_equal(when(&k, low[i]), 8 * (i + 1));
    for (int i = 0; i < LOW; i++) hunch_session_close(&low[i]);
    for (int i = 0; i < HIGH; i++) hunch_session_close(&high[i]);
    hunch_engine_close(&e);
}

static int last_calls;
static bool count_last(void *user, const hunch_output *o) {
    (void)user;
    last_calls += o->finish == HUNCH_FINISH_DEADLINE;
    return true;
}

/* Waiting or running, it ends with a reason of its own and the beginning of its text; without one nothing ends. */
static void test_deadlines(void **state) {
    (void)state;
    hunch_request r = request(200);
    r.ignore_eos = true;
    ending plain = run_one(NULL, &r);
    hunch_engine *e = open_with("ngram", 1);
    hunch_session *running = NULL, *waiting = NULL, *whole = NULL;
    hunch_session_state st;
    r.deadline_s = 1e-9;
    r.on_output = count_last;
    must(hunch_session_open(&running, e, &r, err));
    must(hunch_session_open(&waiting, e, &r, err));
    running->request.deadline += 3600; /* later */
    r.deadline_s = 0;
    must(hunch_session_open(&whole, e, &r, err));
    last_calls = 0;
    for (int i = 0; i < 20; i++) must(hunch_engine_round(e, err));
    hunch_session_get(waiting, &st);
    assert_int_equal(st.finish, HUNCH_FINISH_DEADLINE);
    assert_int_equal(st.n_tokens, 0);
    assert_int_equal(last_calls, 1);
    hunch_session_get(running, &st);
    assert_int_equal(st.finish, HUNCH_RUNNING);
    assert_true(st.n_tokens > 10);
    running->request.deadline -= 3600;
    must(hunch_engine_run(e, err));
    hunch_session_get(running, &st);
    assert_int_equal(st.finish, HUNCH_FINISH_DEADLINE);
    assert_true(st.n_tokens < 200);
    assert_memory_equal(st.tokens, plain.a.token, st.n_tokens * sizeof *st.tokens);
    assert_int_equal(last_calls, 2);
    hunch_session_get(whole, &st);
    assert_int_equal(st.n_tokens, 200);
    assert_true(hn_cache_valid(e->cache));
    hunch_session_close(&running);
    hunch_session_close(&waiting);
    hunch_session_close(&whole);
    hunch_engine_close(&e);
    answer_free(&plain.a);
}

/* ---- what is refused ---------------------------------------------------------------------------------------------------------- */

static void refused(hunch_engine *e, const hunch_request *r, const char *message) {
    hunch_session *s = NULL;
    hunch_error why = {0};
    assert_int_equal(hunch_session_open(&s, e, r, &why), HUNCH_USAGE);
    assert_null(s);
    if (!strstr(why.message, message)) fail_msg("\"%s\", expected \"%s\"", why.message, message);
}

static void test_refusals(void **state) {
    (void)state;
    static const hunch_token beyond[] = {3, 512};
    hunch_engine *e = open_with("ngram", 1);
    char salt[HUNCH_MOST_SALT_BYTES + 2];
    memset(salt, 'x', sizeof salt);
    salt[sizeof salt - 1] = 0;
#define REFUSED(field, value, message) \
    do { \
        hunch_request r = request(10); \
        r.field = value; \
        refused(e, &r, message); \
    } while (0)
    REFUSED(min_tokens, -1, "min_tokens is -1");
    REFUSED(min_tokens, 11, "min_tokens is 11, expected 0 to max_tokens (10)");
    REFUSED(n_stop_tokens, 1, "stop_tokens: 1 of them");
    REFUSED(n_stop_tokens, -1, "stop_tokens: -1 of them");
    REFUSED(drafters, 2, "drafters is 0x2, expected bits of the engine's 1 drafters");
    REFUSED(draft_depth, -1, "draft_depth is -1");
    REFUSED(draft_depth, HUNCH_MAX_DEPTH + 1, "draft_depth is 64, expected 0");
    REFUSED(draft_rows, HUNCH_MAX_ROWS + 1, "draft_rows is 64, expected 0");
    REFUSED(salt, salt, "salt has 257 bytes, expected at most 256");
    REFUSED(deadline_s, -1, "deadline_s is -1");
    REFUSED(deadline_s, NAN, "deadline_s is nan");
#undef REFUSED
    hunch_request r = request(10);
    r.stop_tokens = beyond;
    r.n_stop_tokens = 2;
    refused(e, &r, "stop_tokens: token 1 is 512");
    salt[HUNCH_MOST_SALT_BYTES] = 0;
    r = request(2);
    r.salt = salt;
    r.drafters = 1;
    r.draft_depth = HUNCH_MAX_DEPTH;
    r.min_tokens = 2;
    hunch_session *s = NULL;
    must(hunch_session_open(&s, e, &r, err));
    hunch_session_close(&s);
    hunch_engine_close(&e);
}

/* ---- the numbers of an engine -------------------------------------------------------------------------------------------------- */

/* Sums over sessions, and over drafters, are the engine's; pages add up at any time; nothing is lost when a session closes. */
static void test_numbers(void **state) {
    (void)state;
    enum { N = 12, PLACES = 6 };
    char specs[700];
    snprintf(specs, sizeof specs, "ngram+forced,accept=0.7,depth=4+%s", self_draft);
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = PLACES;
    o.context = CONTEXT;
    o.page_rows = PAGE;
    o.pool_rows = CONTEXT;
    hunch_engine *e = open_engine_with(model, specs, o);
    hunch_session *s[N];
    hunch_engine_stats n;
    const hunch_token often[] = {290, 300, 310, 320, 330, 340, 350, 360};
    uint64_t tokens = 0, accepted = 0, drafted = 0, restored = 0, preempted = 0, trees = 0, at[4] = {0}, by[3] = {0};
    for (int i = 0; i < N; i++) {
        hunch_request r = hot(200, (uint64_t)i);
        r.ignore_eos = true;
        r.stop_tokens = often;
        r.n_stop_tokens = i < 3 ? 8 : 0;
        must(hunch_session_open(&s[i], e, &r, err));
    }
    hunch_engine_get_stats(e, &n);
    assert_in_range(n.running, 2, PLACES);
    assert_int_equal(n.running + n.waiting, N);
    assert_int_equal(n.n_drafters, 3);
    uint64_t rounds = 0;
    while (hunch_engine_running(e) > 0) {
        must(hunch_engine_round(e, err));
        if (rounds % 10 == 9) preempt_youngest(e);
        hunch_engine_get_stats(e, &n);
        rounds++;
        assert_int_equal(n.running + n.waiting, hunch_engine_running(e));
        assert_true(n.running <= PLACES && n.pages_used >= 0 && n.pages_idle >= 0 && n.pages_free >= 0);
        assert_int_equal(n.pages, n.pages_used + n.pages_idle + n.pages_free);
        assert_true(n.running == 0 || n.pages_used > 0);
    }
    assert_int_equal(n.pages_used, 0);
    assert_true(n.pages_idle > 0 && n.page_bytes > 0);
    for (int i = 0; i < N; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        tokens += st.n_tokens;
        accepted += st.accepted;
        drafted += st.drafted;
        restored += st.n_restored;
        preempted += st.preempted;
        for (int k = 0; k < 4; k++) at[k] += st.accepted_per_position[k];
        for (size_t k = 0; k < st.n_tokens; k++)
            if (st.drafter_of[k] >= 0) by[st.drafter_of[k]]++;
        assert_true(st.wait_s >= 0 && (i < PLACES || st.wait_s > 0));
        trees += st.rounds;
        hunch_session_close(&s[i]);
    }
    hunch_engine_get_stats(e, &n);
    assert_int_equal(n.tokens, tokens);
    assert_int_equal(n.accepted, accepted);
    assert_int_equal(n.drafted, drafted);
    assert_int_equal(n.prefix_hits, restored);
    assert_int_equal(n.prefix_queries, N * sizeof prompt / sizeof *prompt);
    assert_int_equal(n.prompt_tokens, N * sizeof prompt / sizeof *prompt);
    assert_int_equal(n.preemptions, preempted);
    assert_true(preempted > 0);
    assert_true(n.recomputed < n.rows);
    assert_true(n.recomputed <= n.prompt_rows);
    assert_int_equal(n.rounds, rounds);
    assert_true(n.passes >= n.rounds && n.rows > n.prompt_rows);
    assert_true(n.drafts > 0 && n.drafts <= trees);
    assert_int_equal(n.finished[HUNCH_FINISH_LENGTH] + n.finished[HUNCH_FINISH_STOP], N);
    assert_true(n.finished[HUNCH_FINISH_STOP] > 0);
    uint64_t by_drafter = 0;
    for (int d = 0; d < 3; d++) {
        uint64_t sum = 0, right = 0;
        assert_int_equal(n.drafter[d].accepted, by[d]);
        for (int k = 0; k < HUNCH_MAX_DEPTH; k++) {
            sum += n.drafter[d].drafted_per_position[k];
            right += n.drafter[d].accepted_per_position[k];
            assert_true(n.drafter[d].accepted_per_position[k] <= n.drafter[d].drafted_per_position[k]);
        }
        assert_int_equal(sum, n.drafter[d].drafted);
        assert_int_equal(right, n.drafter[d].accepted);
        by_drafter += sum;
    }
    assert_int_equal(by_drafter, drafted);
    for (int k = 0; k < 4; k++) assert_int_equal(n.accepted_per_position[k], at[k]);
    assert_true(n.drafter[2].pass_s > 0 && n.drafter[0].pass_s == 0);
    assert_true(n.drafter[0].draft_s > 0 && n.drafter[2].draft_s > 0);
    assert_true(n.drafter[0].draft_s + n.drafter[1].draft_s + n.drafter[2].draft_s <= 1.0001 * n.draft_s);
    assert_true(n.pass_s > 0 && n.draft_s > 0 && n.verify_s > 0 && n.pass_s + n.draft_s + n.verify_s <= n.round_s);
    hunch_engine_close(&e);
}

/* Recomputed rows are those that were lost: with prefixes off, all that a preempted text had. */
static void test_hits_and_rows(void **state) {
    (void)state;
    hunch_token text[100];
    for (int i = 0; i < 100; i++) text[i] = i == 0 ? 1 : 260 + i;
    hunch_engine *e = open_with(NULL, 1);
    hunch_engine_stats n;
    for (int i = 0; i < 3; i++) {
        hunch_request r = request(2);
        answer a = {0};
        r.prompt = text;
        r.n_prompt = 100;
        run_requests(e, &r, 1, false, &a);
        hunch_engine_get_stats(e, &n);
        assert_int_equal(n.prefix_queries, 100 * (i + 1));
        assert_int_equal(n.prefix_hits, 99 * i); /* all but the row that decides the first token */
        assert_int_equal(n.prompt_rows, 100 + i);
        assert_int_equal(n.rows, 100 + i + i + 1); /* the second token has a row of its own */
        assert_int_equal(n.recomputed, 0);
        answer_free(&a);
    }
    hunch_engine_get_stats(NULL, &n);
    assert_int_equal(n.pages, 0);
    hunch_engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_tokens),
        cmocka_unit_test(test_which_stop_string),
        cmocka_unit_test(test_least_tokens),
        cmocka_unit_test(test_least_tokens_greedily),
        cmocka_unit_test(test_least_tokens_and_stop_strings),
        cmocka_unit_test(test_special_text),
        cmocka_unit_test(test_drafters_of_a_text),
        cmocka_unit_test(test_drafters_of_a_text_controlled),
        cmocka_unit_test(test_depth_and_rows),
        cmocka_unit_test(test_salts),
        cmocka_unit_test(test_salts_together),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_none_starves),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_hits_and_rows),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
