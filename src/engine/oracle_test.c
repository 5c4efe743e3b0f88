/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_test.c - the plain text of a request is made once: when it is asked again, no pass is spent on it, and the drafts are as right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fixture.h"

static const hunch_token prompt[] = {1, 403, 407, 261, 378};

/* Asks, and returns the rounds that the plain text took. */
static uint64_t ask(hunch_engine *e, const hunch_request *r, answer *a) {
    const uint64_t before = e->plain->stats.rounds;
    run_requests(e, r, 1, false, a);
    return e->plain->stats.rounds - before;
}

static void test_a_text_is_made_once(void **state) {
    (void)state;
    enum { TOKENS = 40 };
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "forced,accept=1,depth=9", 1, 64, HUNCH_KV_DEFAULT, 64, 256);
    const char *const stops[] = {"never in it"};
    hunch_request r, other;
    answer first = {0}, again = {0}, different = {0};
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = TOKENS;
    r.sampling.temperature = 1;
    assert_true(ask(e, &r, &first) >= TOKENS);
    assert_int_equal(ask(e, &r, &again), 0);
    assert_same(&first, &again, "asked again");
    assert_true(again.rounds <= TOKENS / 4); /* all drafts are right */
    other = r;
    other.sampling.seed = 7;
    assert_true(ask(e, &other, &different) >= TOKENS);
    assert_true(different.rounds <= TOKENS / 4);
    answer_free(&different);
    other = r;
    other.stop = stops; /* what the text depends on besides is not compared: such a text is not kept */
    other.n_stop = 1;
    for (int i = 0; i < 2; i++) {
        assert_true(ask(e, &other, &different) >= TOKENS);
        answer_free(&different);
    }
    answer_free(&first);
    answer_free(&again);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
