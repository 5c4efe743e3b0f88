/* SPDX-License-Identifier: Apache-2.0 */
/* serve_stream_test.c - the engine's thread beside readers of streams: making an event, however long that takes, holds no round up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <semaphore.h>
#include <unistd.h>

#include "base/clock.h"
#include "fixture.h"
#include "server/protocols/serve_endpoints.h"
#include "server/server_for_tests.h"

enum { PATIENCE_S = 30, MORE = 40 };

static int setup(void **state) {
    (void)state;
    test_server_start(2, 4, 512, NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    test_server_stop();
    return 0;
}

/* ---- a reader ------------------------------------------------------------------------------------------------- */

static sem_t woken;

static void wake(void *user) { (void)user, sem_post(&woken); }

static void fall_asleep(void *user) { ((serve_call *)user)->asleep = true; }

static serve_call *call_open(const char *text) {
    serve_error err = {0};
    serve_http_request q = {.id = "id", .body = json_loads(text, 0, NULL), .received_s = hn_now()};
    serve_reply r = {0};
    if (!serve_completion(&server, &q, &r, &err)) fail_msg("%s", err.message);
    serve_call *c = r.call;
    json_decref(q.body);
    sem_init(&woken, 0, 0);
    c->wake = wake;
    if (!serve_engine_submit(server.engine, c, &err)) fail_msg("%s", err.message);
    return c;
}

/* The whole of a stream. */
static void stream_take(const serve_protocol *p, serve_call *c, serve_bytes *out) {
    for (serve_more more = SERVE_BYTES; more != SERVE_LAST;) {
        more = serve_stream_read(p, &server, c, out, fall_asleep, c);
        assert_true(more != SERVE_GONE);
        if (more == SERVE_NOTHING_YET) sem_wait(&woken);
    }
}

/* An event that is not made before the engine has gone on without waiting for it. */
static size_t seen;
static bool gave_up;

static size_t made(serve_call *c) {
    pthread_mutex_lock(&c->lock);
    const size_t n = c->choices[0].over ? MORE : c->choices[0].made.n_tokens; /* over: it did not wait */
    pthread_mutex_unlock(&c->lock);
    return n;
}

static void slow_next(const serve_server *s, serve_call *c, serve_choice *one, serve_bytes *out) {
    const double end = hn_now() + PATIENCE_S;
    if (one->n_tokens > 0 && !one->done && !seen) {
        while (made(c) < MORE) {
            if (hn_now() > end) return (void)(gave_up = true, seen = MORE);
            usleep(1000);
        }
        seen = made(c);
    }
    serve_openai.next(s, c, one, out);
}

static void test_slow_events_hold_nobody_up(void **state) {
    (void)state;
    serve_protocol slow = serve_openai;
    serve_bytes out = {0};
    slow.next = slow_next;
    seen = 0;
    serve_call *c = call_open("{\"prompt\": \"Once\", \"max_tokens\": 100, \"stream\": true, \"ignore_eos\": true, \"logprobs\": 2}");
    stream_take(&slow, c, &out);
    assert_true(seen >= MORE && !gave_up);
    assert_int_equal(c->choices[0].n_tokens, 100);
    assert_int_equal(c->choices[0].state.finish, HUNCH_FINISH_LENGTH);
    assert_non_null(c->choices[0].logprobs);
    assert_non_null(c->choices[0].top);
    serve_bytes_free(&out);
    serve_engine_abandon(server.engine, c);
    serve_call_release(c);
}

/* What is taken in pieces is what is taken at once. */
static void test_pieces_and_whole(void **state) {
    (void)state;
    static const char body[] = "{\"prompt\": \"Once\", \"max_tokens\": 60, \"stream\": %s, \"ignore_eos\": true, \"logprobs\": 3, "
                               "\"seed\": 5, "
                               "\"temperature\": 1, \"echo\": true, \"n\": 2}";
    char text[300];
    serve_bytes out = {0};
    snprintf(text, sizeof text, body, "true");
    serve_call *pieces = call_open(text);
    stream_take(&serve_openai, pieces, &out);
    snprintf(text, sizeof text, body, "false");
    serve_call *whole = call_open(text);
    sem_init(&woken, 0, 0);
    for (bool over = false; !over; usleep(1000)) {
        pthread_mutex_lock(&whole->lock);
        over = whole->left == 0;
        pthread_mutex_unlock(&whole->lock);
    }
    serve_call_collect(whole);
    serve_call_absorb(whole);
    for (int i = 0; i < 2; i++) {
        const serve_choice *a = &pieces->choices[i], *b = &whole->choices[i];
        assert_int_equal(a->n_tokens, 60);
        assert_int_equal(b->n_tokens, 60);
        assert_memory_equal(a->tokens, b->tokens, 60 * sizeof *a->tokens);
        assert_int_equal(a->text.n, b->text.n);
        assert_memory_equal(a->text.at, b->text.at, a->text.n);
        assert_memory_equal(a->logprobs, b->logprobs, 60 * sizeof *a->logprobs);
        assert_int_equal(a->n_top, 3);
        for (int k = 0; k < 60 * 3; k++) {
            assert_int_equal(a->top[k].token, b->top[k].token);
            assert_true(memcmp(&a->top[k].logprob, &b->top[k].logprob, sizeof a->top[k].logprob) == 0);
        }
        assert_true(a->prompt_logprobs && b->prompt_logprobs && a->done && b->done);
    }
    serve_bytes_free(&out);
    serve_engine_abandon(server.engine, pieces);
    serve_engine_abandon(server.engine, whole);
    serve_call_release(pieces);
    serve_call_release(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slow_events_hold_nobody_up), cmocka_unit_test(test_pieces_and_whole)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
