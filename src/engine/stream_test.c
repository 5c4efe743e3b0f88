/* SPDX-License-Identifier: Apache-2.0 */
/* stream_test.c - on_output: the pieces add up to the text and the tokens, whatever drafts, waits, is preempted or stops; the last call
 * gives the finish; and what a callback may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/utf8.h"
#include "engine/session.h"
#include "fixture.h"
#include "preempt_for_tests.h"

static hunch_model *model;
static const hunch_token prompts[4][6] = {
    {1, 403, 407, 261, 378, 0}, {1, 410, 261, 300, 290, 310}, {1, 403, 407, 261, 400, 0}, {1, 350, 0, 0, 0, 0}};
static const size_t lengths[4] = {5, 6, 5, 2};

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

/* What a session's callback has received, and what it shall do. */
typedef struct listener {
    char text[8192];
    hunch_token token[1024];
    int16_t drafter_of[1024];
    size_t text_len, n_tokens;
    int calls, ends, without_text; /* without_text: calls with tokens but without text, which was held back */
    hunch_finish finish;
    int stop_at;             /* the call that returns false; 0: none */
    void (*inside)(struct listener *l, const hunch_output *o);
    hunch_engine *engine;
    hunch_session *session, *other;
    struct listener *next;
} listener;

static bool listen(void *user, const hunch_output *o) {
    listener *l = user;
    assert_ptr_equal(o->session, l->session);
    assert_int_equal(l->ends, 0);
    assert_true(o->n_tokens > 0 || o->text_len > 0 || o->finish != HUNCH_RUNNING);
    assert_int_equal(hn_utf8_check(o->text, o->text_len), o->text_len);
    assert_true(l->text_len + o->text_len < sizeof l->text && l->n_tokens + o->n_tokens <= 1024);
    memcpy(l->text + l->text_len, o->text, o->text_len);
    if (o->n_tokens) {
        memcpy(l->token + l->n_tokens, o->tokens, o->n_tokens * sizeof *o->tokens);
        memcpy(l->drafter_of + l->n_tokens, o->drafter_of, o->n_tokens * sizeof *o->drafter_of);
    }
    l->text_len += o->text_len;
    l->n_tokens += o->n_tokens;
    l->calls++;
    l->without_text += o->n_tokens > 0 && o->text_len == 0;
    l->ends += o->finish != HUNCH_RUNNING;
    l->finish = o->finish;
    if (l->inside) l->inside(l, o);
    return l->calls != l->stop_at;
}

static hunch_request request(int prompt, int max_tokens, listener *l) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompts[prompt];
    r.n_prompt = lengths[prompt];
    r.max_tokens = max_tokens;
    r.on_output = l ? listen : NULL;
    r.on_output_user = l;
    return r;
}

static void start(hunch_engine *e, const hunch_request *r, listener *l) {
    l->engine = e;
    must(hunch_session_open(&l->session, e, r, err));
}

/* The pieces that were received add up to the session's output. */
static void assert_complete(const listener *l, const char *what) {
    hunch_session_state st;
    hunch_session_get(l->session, &st);
    if (l->ends != 1 || l->finish != st.finish) fail_msg("%s: %d ends, the last %d, not %d", what, l->ends, l->finish, st.finish);
    if (l->text_len != st.text_len || memcmp(l->text, st.text, st.text_len))
        fail_msg("%s: heard '%.*s', not '%s'", what, (int)l->text_len, l->text, st.text);
    assert_int_equal(l->n_tokens, st.n_tokens);
    assert_memory_equal(l->token, st.tokens, st.n_tokens * sizeof *st.tokens);
    assert_memory_equal(l->drafter_of, st.drafter_of, st.n_tokens * sizeof *st.drafter_of);
}

static void run(hunch_engine *e) {
    must(hunch_engine_run(e, err));
    assert_int_equal(hunch_engine_running(e), 0);
    assert_null(e->streams);
    assert_true(hn_cache_valid(e->cache));
}

/* Four texts in three places, which they lose again and again, so that they wait and are preempted; every drafter; two of them stopped by a
 * string that they would contain. The pieces are what plain decoding of each text alone gives. */
static void test_every_drafter(void **state) {
    (void)state;
    static char self[600];
    snprintf(self, sizeof self, "model:%s", data_path("models/stories260K/stories260K.f16.gguf"));
    const char *const specs[] = {NULL, "ngram", "suffix", "cache", "prediction", "forced,accept=0.7,depth=6", "auto", self};
    const char *const stops[] = {" the", "zebra", "."};
    static listener plain[4], l[4];
    uint64_t preempted = 0;
    for (size_t d = 0; d < sizeof specs / sizeof *specs; d++) {
        hunch_engine_options o;
        hunch_engine_options_defaults(&o);
        o.parallel = d ? 3 : 1;
        o.context = 256;
        o.page_rows = 16;
        o.pool_rows = d ? 256 : 0;
        hunch_engine *e = open_engine_with(model, specs[d], o);
        listener *to = d ? l : plain;
        memset(l, 0, sizeof l);
        for (int i = 0; i < 4; i++) {
            hunch_request r = request(i, 200, &to[i]);
            if (i % 2) {
                r.sampling = (hunch_sampling){.temperature = 1, .top_p = 1, .seed = 7};
                r.stop = stops;
                r.n_stop = 2 + i / 2;
            }
            r.prediction = plain[i].token; /* of the first run: nothing yet */
            r.n_prediction = plain[i].n_tokens;
            start(e, &r, &to[i]);
        }
        for (int round = 1; hunch_engine_running(e) > 0; round++) {
            must(hunch_engine_round(e, err));
            if (round % 11 == 0) preempt_youngest(e);
        }
        run(e);
        for (int i = 0; i < 4; i++) {
            hunch_session_state st;
            assert_complete(&to[i], specs[d] ? specs[d] : "plain");
            hunch_session_get(to[i].session, &st);
            preempted += st.preempted;
            assert_int_equal(to[i].text_len, plain[i].text_len);
            assert_memory_equal(to[i].text, plain[i].text, plain[i].text_len);
            hunch_session_close(&to[i].session);
        }
        hunch_engine_close(&e);
    }
    assert_int_equal(plain[3].finish, HUNCH_FINISH_STOP);
    assert_true(preempted > 0);
}

/* Bytes of characters of two and three bytes in any order: tokens that end inside a character are delivered, their text is not. */
static void test_characters_whole(void **state) {
    (void)state;
    enum { BYTE_0 = 3 }; /* of this vocabulary */
    static const hunch_bias bytes[] = {{BYTE_0 + 0xC3, 200}, {BYTE_0 + 0xA9, 200}, {BYTE_0 + 0xE2, 200}, {BYTE_0 + 'a', 200}};
    static listener l[2];
    for (int drafted = 0; drafted < 2; drafted++) {
        hunch_request r = request(0, 200, &l[drafted]);
        r.sampling = (hunch_sampling){.temperature = 60, .top_p = 1, .seed = 3, .bias = bytes, .n_bias = 4};
        hunch_engine *e = open_engine(model, drafted ? "forced,accept=0.8,depth=5" : NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 256);
        start(e, &r, &l[drafted]);
        run(e);
        assert_complete(&l[drafted], "bytes");
        hunch_session_close(&l[drafted].session);
        hunch_engine_close(&e);
    }
    assert_true(l[0].without_text > 20);
    assert_non_null(memmem(l[0].text, l[0].text_len, "\xC3\xA9", 2));
    assert_true(l[1].calls < l[0].calls);
    assert_int_equal(l[0].text_len, l[1].text_len);
    assert_memory_equal(l[0].text, l[1].text, l[0].text_len);
}

/* A stop string that begins like the end of the text but differs later: the text is held back, then delivered in full. */
static void test_held_back(void **state) {
    (void)state;
    static listener whole, l;
    hunch_request r = request(0, 60, &whole);
    for (int held = 0; held < 2; held++) {
        char stop[16] = {0};
        const char *const stops[] = {stop};
        listener *to = held ? &l : &whole;
        hunch_engine *e = open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 256);
        if (held) {
            memcpy(stop, whole.text + whole.text_len - 9, 9);
            stop[9] = '#';
            r = request(0, 60, &l);
            r.stop = stops;
            r.n_stop = 1;
        }
        start(e, &r, to);
        run(e);
        assert_complete(to, "held back");
        hunch_session_close(&to->session);
        hunch_engine_close(&e);
    }
    assert_int_equal(l.text_len, whole.text_len);
    assert_memory_equal(l.text, whole.text, whole.text_len);
    assert_true(l.without_text > whole.without_text);
}

static void test_limits(void **state) {
    (void)state;
    for (int n = 1; n < 12; n++) {
        listener l = {0};
        hunch_request r = request(0, n, &l);
        hunch_engine *e = open_engine(model, "forced,accept=1,depth=9", 1, 2, HUNCH_KV_DEFAULT, 64, 256);
        start(e, &r, &l);
        run(e);
        assert_complete(&l, "limit");
        assert_int_equal(l.finish, HUNCH_FINISH_LENGTH);
        assert_int_equal(l.n_tokens, n);
        hunch_session_close(&l.session);
        hunch_engine_close(&e);
    }
}

/* A callback that returns false ends its session at once, and no other. */
static void test_cancel(void **state) {
    (void)state;
    static listener alone, l[3];
    for (int stop_at = 1; stop_at < 6; stop_at++) {
        memset(l, 0, sizeof l);
        memset(&alone, 0, sizeof alone);
        hunch_engine *e = open_engine(model, "ngram", 2, 64, HUNCH_KV_DEFAULT, 16, 256);
        hunch_request r = request(1, 40, &alone);
        start(e, &r, &alone);
        run(e);
        for (int i = 0; i < 3; i++) {
            r = request(i, 40, &l[i]);
            l[i].stop_at = i == 1 ? 0 : stop_at;
            start(e, &r, &l[i]);
        }
        run(e);
        for (int i = 0; i < 3; i++) {
            hunch_session_state st;
            hunch_session_get(l[i].session, &st);
            if (i == 1) continue;
            assert_int_equal(st.finish, HUNCH_FINISH_CANCELLED);
            assert_int_equal(l[i].calls, stop_at);
            assert_int_equal(l[i].ends, 0);
            assert_int_equal(l[i].n_tokens, st.n_tokens);
            assert_memory_equal(l[i].text, st.text, l[i].text_len);
        }
        assert_complete(&l[1], "beside cancelled ones");
        assert_int_equal(l[1].text_len, alone.text_len);
        assert_memory_equal(l[1].text, alone.text, alone.text_len);
        for (int i = 0; i < 3; i++) hunch_session_close(&l[i].session);
        hunch_session_close(&alone.session);
        hunch_engine_close(&e);
    }
}

/* ---- inside the callback ------------------------------------------------------------------------------------------------ */

static void no_rounds(listener *l, const hunch_output *o) {
    (void)o;
    hunch_error err = {0};
    assert_int_equal(hunch_engine_round(l->engine, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "on_output"));
    assert_int_equal(hunch_engine_run(l->engine, &err), HUNCH_USAGE);
}

static void open_another(listener *l, const hunch_output *o) {
    if (o->finish == HUNCH_RUNNING || !l->next) return;
    hunch_request r = request(2, 20, l->next);
    start(l->engine, &r, l->next);
}

static void close_itself(listener *l, const hunch_output *o) {
    if (o->finish != HUNCH_RUNNING || l->calls == l->stop_at) hunch_session_close(&l->session);
}

static void close_other(listener *l, const hunch_output *o) {
    (void)o;
    if (l->next) hunch_session_close(&l->next->session);
}

static void cancel_itself(listener *l, const hunch_output *o) {
    hunch_session_cancel(o->session);
    (void)l;
}

static void test_inside(void **state) {
    (void)state;
    static listener l[3];
    static void (*const what[])(listener *, const hunch_output *) = {no_rounds, open_another, close_itself, close_other,
                                                                     cancel_itself};
    enum { NO_ROUNDS, OPEN_ANOTHER, CLOSE_ITSELF, CLOSE_OTHER, CANCEL_ITSELF, WAYS };
    for (int way = 0; way < WAYS; way++)
        for (int stop_at = 0; stop_at < 3; stop_at += 2) {
            const int opened = way == OPEN_ANOTHER ? 1 : 3;
            hunch_engine *e = open_engine(model, "ngram", 3, 64, HUNCH_KV_DEFAULT, 16, 256);
            memset(l, 0, sizeof l);
            for (int i = 0; i < opened; i++) {
                hunch_request r = request(i, 20, &l[i]);
                l[i].inside = what[way];
                l[i].stop_at = stop_at;
                start(e, &r, &l[i]);
            }
            if (way == OPEN_ANOTHER) l[0].next = &l[1];
            if (way == CLOSE_OTHER) l[0].next = &l[1]; /* the one after it in the list */
            run(e);
            if (way == OPEN_ANOTHER) assert_int_equal(l[1].ends, stop_at == 0);
            if (way == CLOSE_ITSELF) assert_null(l[2].session);
            if (way == CLOSE_OTHER) assert_int_equal(l[1].calls, 0);
            if (way == CANCEL_ITSELF) assert_int_equal(l[0].calls, 1);
            if (way == NO_ROUNDS && stop_at == 0) assert_complete(&l[2], "rounds refused inside");
            for (int i = 0; i < 3; i++) hunch_session_close(&l[i].session);
            hunch_engine_close(&e);
        }
}

/* ---- ends ------------------------------------------------------------------------------------------------------------------ */

/* The n-th allocation of the rounds fails: a session that cannot go on gets this in its last call, and the others get their last
 * calls. */
static void test_failure(void **state) {
    (void)state;
    static listener l[2];
    int failed = 0;
    for (int n = 0; n < 60; n++) {
        hunch_error why = {0};
        hunch_engine *e = open_engine(model, "suffix", 1, 64, HUNCH_KV_DEFAULT, 16, 256);
        memset(l, 0, sizeof l);
        for (int i = 0; i < 2; i++) { /* the second waits, and begins when the first has ended */
            hunch_request r = request(i, 40, &l[i]);
            start(e, &r, &l[i]);
        }
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        const hunch_status ended = hunch_engine_run(e, &why);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        for (int i = 0; i < 2; i++) {
            failed += l[i].finish == HUNCH_FINISH_FAILED;
            if (ended)
                assert_int_equal(ended, HUNCH_NO_MEMORY);
            else
                assert_complete(&l[i], "without memory");
            hunch_session_close(&l[i].session);
        }
        hunch_engine_close(&e);
    }
    assert_true(failed > 0);
}

/* Closing or cancelling makes no call; nor does closing the engine first. */
static void test_ended_by_the_caller(void **state) {
    (void)state;
    static listener l[4];
    hunch_engine *e = open_engine(model, NULL, 2, 64, HUNCH_KV_DEFAULT, 16, 256);
    for (int i = 0; i < 4; i++) {
        hunch_request r = request(i, 20, &l[i]);
        start(e, &r, &l[i]);
    }
    must(hunch_engine_round(e, err));
    must(hunch_engine_round(e, err));
    assert_int_equal(l[0].calls, 2);
    assert_int_equal(l[2].calls, 0); /* it waits */
    hunch_session_cancel(l[0].session);
    hunch_session_close(&l[1].session);
    must(hunch_engine_round(e, err));
    assert_int_equal(l[0].calls, 2);
    assert_int_equal(l[2].calls, 1);
    hunch_engine_close(&e);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(l[i].ends, 0);
        hunch_session_close(&l[i].session);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_drafter),    cmocka_unit_test(test_characters_whole),
                                       cmocka_unit_test(test_held_back),        cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_cancel),           cmocka_unit_test(test_inside),
                                       cmocka_unit_test(test_failure),          cmocka_unit_test(test_ended_by_the_caller)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
