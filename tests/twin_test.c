/* SPDX-License-Identifier: Apache-2.0 */
/* twin_test.c - `--verify-exact` (cli/tool_verify_exact.h): a session that is what plain decoding gives, one whose logits a planted fault
 * changed by a bit, and one whose tokens differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "fixture.h"
#include "cli/tool_verify_exact.h"

static hunch_model *model;
static hunch_engine_options options;
static const hunch_token prompt[] = {1, 403, 407, 261, 378};

static hunch_request request_of(double temperature) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt;
    r.n_prompt = 5;
    r.max_tokens = 40;
    r.ignore_eos = true;
    r.sampling.temperature = temperature;
    r.sampling.seed = 3;
    return r;
}

/* What the command does; biased: the session, not its twin. What was said is in `said`. */
static char said[2000];

static int decode(double temperature, const hunch_bias *biased) {
    hunch_request r = request_of(temperature);
    hunch_engine *e = open_engine_with(model, "forced,accept=.7,depth=4", options);
    hunch_session *s = NULL;
    hunch_session_state st = {.finish = HUNCH_RUNNING};
    tool_verify_exact twin;
    int code = tool_verify_exact_open(&twin, model, &options, &r);
    char name[] = "/tmp/hunch-twin-XXXXXX";
    const int kept = dup(STDERR_FILENO), file = mkstemp(name);
    assert_true(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    r.sampling.bias = biased;
    r.sampling.n_bias = biased != NULL;
    must(hunch_session_open(&s, e, &r, err));
    while (!code && st.finish == HUNCH_RUNNING) {
        must(hunch_engine_round(e, err));
        code = tool_verify_exact_follow(&twin, e, s);
        hunch_session_get(s, &st);
    }
    if (!code) code = tool_verify_exact_finish(&twin, e, s);
    assert_true(dup2(kept, STDERR_FILENO) >= 0 && lseek(file, 0, SEEK_SET) == 0);
    const ssize_t n = read(file, said, sizeof said - 1);
    said[n > 0 ? n : 0] = 0;
    close(file), close(kept), unlink(name);
    hunch_session_close(&s);
    hunch_engine_close(&e);
    tool_verify_exact_close(&twin);
    return code;
}

static void test_same(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(decode(i ? 0.8 : 0, NULL), 0);
        assert_non_null(strstr(said, "all 40 tokens and their logits are those of plain decoding"));
    }
}

/* The fault is in the third pass with drafts, and in no other. */
static void test_planted_fault(void **state) {
    (void)state;
    hn_fault_arm(HN_FAULT_LOGIT, 2, false);
    const int code = decode(0, NULL);
    hn_fault_arm(HN_FAULT_LOGIT, -1, false);
    assert_int_equal(code, HUNCH_FAILED);
    assert_non_null(strstr(said, "are not those of plain decoding: that of token 0 \""));
    assert_int_equal(decode(0, NULL), 0);
}

static void test_other_token(void **state) {
    static const hunch_bias to_42 = {42, 1000};
    (void)state;
    assert_int_equal(decode(0, &to_42), HUNCH_FAILED);
    assert_non_null(strstr(said, "token 1 of the answer is not that of plain decoding"));
    assert_non_null(strstr(said, "logits of 42 \""));
    assert_non_null(strstr(said, "proposed by nobody"));
}

static int setup(void **state) {
    (void)state;
    hunch_engine_options_defaults(&options);
    options.context = 128;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), NULL, 1, HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_planted_fault),
                                       cmocka_unit_test(test_other_token)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
