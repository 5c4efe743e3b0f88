/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks_test.c - cancel, close and forget inside callbacks, at every call of each: what was asked for happens when the round or the
 * call ends, texts of other sessions are those of plain decoding, and nothing is freed that is in use (under AddressSanitizer). And
 * hunch_evaluate beside texts that have all pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session.h"
#include "fixture.h"

enum { SESSIONS = 4, PLACES = 3, CONTEXT = 96, PAGE = 16, TOKENS = 14, PROMPT = 20 };
enum action { CANCEL_SELF, CANCEL_OTHER, CLOSE_SELF, CLOSE_OTHER, CLOSE_ALL, FORGET, ACTIONS };

static hunch_model *model;
static hunch_token prompt[SESSIONS][PROMPT];

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < SESSIONS; i++)
        for (int k = 0; k < PROMPT; k++) prompt[i][k] = k == 0 ? 1 : (hunch_token)((k * 31 + (k < 17 ? 0 : i * 57)) % 200 + 300);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static hunch_engine *open_places(const char *draft, int parallel, int context, int pool_rows) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = context;
    o.page_rows = PAGE;
    o.pool_rows = pool_rows;
    return open_engine_with(model, draft, o);
}

typedef struct crowd {
    hunch_engine *e;
    hunch_session *s[SESSIONS];
    struct listener {
        struct crowd *c;
        int me, outputs;
        bool cancelled;
    } l[SESSIONS];
    enum action action;
    int calls, act_at; /* calls of callbacks; the one that acts */
    bool acted, forgotten;
} crowd;

static hunch_finish finish_of(const hunch_session *s) {
    hunch_session_state st;
    hunch_session_get(s, &st);
    return st.finish;
}

/* A session that runs is still running after it was cancelled: the round has not ended. */
static void cancel(crowd *c, int i) {
    if (!c->s[i]) return;
    const hunch_finish before = finish_of(c->s[i]);
    const bool placed = c->s[i]->id >= 0;
    hunch_session_cancel(c->s[i]);
    c->l[i].cancelled = c->l[i].outputs == 0; /* there is no call of on_output any more */
    if (placed) assert_int_equal(finish_of(c->s[i]), before);
}

static void act(struct listener *l) {
    crowd *c = l->c;
    if (c->calls++ != c->act_at) return;
    c->acted = true;
    const int other = (l->me + 1) % SESSIONS;
    switch (c->action) {
    case CANCEL_SELF: cancel(c, l->me); break;
    case CANCEL_OTHER: cancel(c, other); break;
    case CLOSE_SELF: hunch_session_close(&c->s[l->me]); break;
    case CLOSE_OTHER: hunch_session_close(&c->s[other]); break;
    case CLOSE_ALL:
        for (int i = 0; i < SESSIONS; i++) hunch_session_close(&c->s[i]);
        break;
    default: hunch_engine_forget(c->e); c->forgotten = true;
    }
}

static void in_logits(void *user, size_t index, const float *logits, int vocab) {
    (void)index, (void)logits, (void)vocab;
    act(user);
}

static void in_round(void *user, const hunch_round_report *report) {
    (void)report;
    act(user);
}

static void in_row(void *user, size_t at, const float *logits, int vocab) {
    (void)at, (void)logits, (void)vocab;
    act(user);
}

static bool in_output(void *user, const hunch_output *output) {
    struct listener *l = user;
    assert_ptr_equal(output->session, l->c->s[l->me]); /* none after a close */
    l->outputs += output->finish != HUNCH_RUNNING;
    return true;
}

static hunch_request request_of(struct listener *l, bool by_round) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt[l->me];
    r.n_prompt = PROMPT;
    r.max_tokens = TOKENS + l->me;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    if (by_round) r.on_round = in_round;
    else r.on_logits = in_logits;
    r.on_round_user = r.on_logits_user = r.on_output_user = l;
    r.on_output = in_output;
    return r;
}

static void plain_texts(hunch_token out[SESSIONS][TOKENS + SESSIONS]) {
    hunch_engine *e = open_places(NULL, 1, CONTEXT, 0);
    for (int i = 0; i < SESSIONS; i++) {
        struct listener none = {.me = i};
        answer a = {0};
        hunch_request r = request_of(&none, true);
        r.on_round = NULL;
        r.on_output = NULL;
        run_requests(e, &r, 1, false, &a);
        memcpy(out[i], a.token, a.n * sizeof *a.token);
        answer_free(&a);
    }
    hunch_engine_close(&e);
}

/* One run, in which call `at` acts. False: there were no so many calls. */
static bool run_crowd(const char *draft, int pool_rows, enum action action, bool by_round, int at,
                      hunch_token plain[SESSIONS][TOKENS + SESSIONS]) {
    crowd c = {.action = action, .act_at = at};
    c.e = open_places(draft, PLACES, CONTEXT, pool_rows);
    for (int i = 0; i < SESSIONS; i++) {
        c.l[i] = (struct listener){.c = &c, .me = i};
        const hunch_request r = request_of(&c.l[i], by_round);
        must(hunch_session_open(&c.s[i], c.e, &r, err));
    }
    must(hunch_engine_run(c.e, err));
    assert_true(hn_cache_valid(c.e->cache));
    for (int i = 0; i < SESSIONS; i++) {
        hunch_session_state st;
        if (!c.s[i]) continue;
        hunch_session_get(c.s[i], &st);
        assert_true(st.finish == HUNCH_FINISH_LENGTH || (st.finish == HUNCH_FINISH_CANCELLED && c.l[i].cancelled));
        assert_int_equal(c.l[i].outputs, !c.l[i].cancelled);
        assert_true(st.n_tokens <= (size_t)(TOKENS + i));
        assert_memory_equal(st.tokens, plain[i], st.n_tokens * sizeof *st.tokens);
        hunch_session_close(&c.s[i]);
    }
    assert_false(c.e->busy || c.e->forget || c.e->n_held);
    hunch_engine_close(&c.e);
    return c.acted;
}

static void test_rounds(void **state) {
    (void)state;
    static char self[600];
    snprintf(self, sizeof self, "model:%s,depth=3", data_path("models/stories260K/stories260K.f16.gguf"));
    const char *const drafts[] = {NULL, "ngram,min=1+suffix", self};
    hunch_token plain[SESSIONS][TOKENS + SESSIONS];
    plain_texts(plain);
    for (int way = 0; way < 12; way++) {
        const char *draft = drafts[way % 3];
        const int pool_rows = way / 3 % 2 ? CONTEXT : 0;
        for (int action = 0; action < ACTIONS; action++) {
            if (light() && (way + action) % 2) continue;
            int at = 0;
            while (run_crowd(draft, pool_rows, (enum action)action, way >= 6, at, plain)) at += light() ? 7 : 3;
            assert_true(at > 6);
        }
    }
}

/* In the middle of reading a text, whose logits do not change. */
static void test_evaluate(void **state) {
    (void)state;
    hunch_token plain[SESSIONS][TOKENS + SESSIONS];
    plain_texts(plain);
    for (int action = 0; action < ACTIONS; action++) {
        crowd c = {.action = (enum action)action, .act_at = -1};
        c.e = open_places("ngram,min=1", PLACES, CONTEXT, 0);
        for (int i = 0; i < SESSIONS; i++) {
            c.l[i] = (struct listener){.c = &c, .me = i};
            const hunch_request r = request_of(&c.l[i], true);
            must(hunch_session_open(&c.s[i], c.e, &r, err));
        }
        for (int i = 0; i < 4; i++) must(hunch_engine_round(c.e, err));
        c.calls = 0;
        c.act_at = 5;
        must(hunch_evaluate(c.e, prompt[1], PROMPT, in_row, &c.l[1], err));
        assert_true(c.acted);
        if (action == CANCEL_SELF) assert_int_equal(finish_of(c.s[1]), HUNCH_FINISH_CANCELLED);
        must(hunch_engine_run(c.e, err));
        for (int i = 0; i < SESSIONS; i++) hunch_session_close(&c.s[i]);
        assert_true(hn_cache_valid(c.e->cache));
        hunch_engine_close(&c.e);
    }
}

/* ---- beside a full engine ---------------------------------------------------------------------------------------------- */

/* A text as long as the context is read while other texts have all pages: they give way, and continue with the same tokens. */
static void test_beside_a_full_engine(void **state) {
    (void)state;
    enum { LONG = 512, HALF = 230 };
    hunch_token text[LONG];
    answer alone = {0}, beside = {0};
    answer want[PLACES] = {{0}};
    hunch_session *s[PLACES];
    hunch_request r[PLACES];
    uint64_t preempted = 0;
    for (int k = 0; k < LONG; k++) text[k] = (hunch_token)(k * 17 % 500 + 1);
    hunch_engine *e = open_places(NULL, 1, LONG, 0);
    must(hunch_evaluate(e, text, LONG, keep_logits, &alone, err));
    for (int i = 0; i < PLACES; i++) {
        struct listener none = {.me = i};
        r[i] = request_of(&none, true);
        r[i].on_round = NULL;
        r[i].on_output = NULL;
        r[i].max_tokens = HALF + 40 * i;
        run_requests(e, &r[i], 1, false, &want[i]);
    }
    hunch_engine_close(&e);
    e = open_places("suffix", PLACES, LONG, LONG);
    for (int i = 0; i < PLACES; i++) must(hunch_session_open(&s[i], e, &r[i], err));
    while (hn_session_emitted(s[0]) < HALF - 30) must(hunch_engine_round(e, err));
    must(hunch_evaluate(e, text, LONG, keep_logits, &beside, err));
    assert_memory_equal(alone.logits, beside.logits, LONG * (size_t)alone.vocab * sizeof(float));
    must(hunch_engine_run(e, err));
    for (int i = 0; i < PLACES; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        assert_int_equal(st.n_tokens, want[i].n);
        assert_memory_equal(st.tokens, want[i].token, want[i].n * sizeof *st.tokens);
        preempted += st.preempted;
        hunch_session_close(&s[i]);
        answer_free(&want[i]);
    }
    assert_true(preempted > 0);
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
    answer_free(&alone);
    answer_free(&beside);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds), cmocka_unit_test(test_evaluate),
                                       cmocka_unit_test(test_beside_a_full_engine)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
