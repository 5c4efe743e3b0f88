/* SPDX-License-Identifier: Apache-2.0 */
/* command_exact_test.c - the `hunch` command: `run --verify-exact`, and the same command with a planted fault (planted_fault.c), which it
 * finds and reports. twin_test.c has what it compares. */
#include "command.h"

#define ASK "run", "-m", STORIES, "-p", "Once upon a time", "-n", "40", "--temperature", "0", "--draft", "forced,accept=.7,depth=4"

static result planted_args(const char *const *args) {
    command_program = HUNCH_COMMAND "-planted";
    result r = command_args(args);
    command_program = HUNCH_COMMAND;
    return r;
}
#define planted(...) planted_args((const char *const[]){__VA_ARGS__, NULL})

static void test_exact(void **state) {
    (void)state;
    result r = command(ASK, "--verify-exact");
    if (r.code) fail_msg("%s", r.err);
    assert_non_null(strstr(r.err, "--verify-exact: all 40 tokens and their logits are those of plain decoding"));
    result_free(&r);
}

/* Which token, whose logit, both values, and who drafted. The bit changes no token: without the flag nobody would see it. */
static void test_planted(void **state) {
    (void)state;
    result plain = command(ASK), blind = planted(ASK), r = planted(ASK, "--verify-exact");
    size_t token = 0;
    double ours = 0, theirs = 0;
    const char *at = strstr(r.err, "--verify-exact: the logits of token "), *of = strstr(r.err, "that of token 0 \"");
    assert_int_equal(blind.code, 0);
    assert_string_equal(blind.out, plain.out);
    assert_int_equal(r.code, 1);
    if (!at || !of) fail_msg("%s", r.err);
    assert_int_equal(sscanf(at, "--verify-exact: the logits of token %zu of the answer", &token), 1);
    assert_in_range(token, 4, 3 * 5 + 2); /* after two rounds and the prompt's token */
    of = strstr(of, "\": ");
    assert_true(of && sscanf(of, "\": %lf instead of %lf;", &ours, &theirs) == 2);
    assert_true(ours > theirs && ours - theirs < 1e-5 * fabs(theirs));
    assert_non_null(strstr(r.err, "the token was proposed by "));
    assert_non_null(strstr(r.err, "This is a bug of hunch\n"));
    assert_true(r.out_len > 0 && strncmp(r.out, plain.out, r.out_len) == 0); /* shown at once, as far as it came */
    result_free(&plain), result_free(&blind), result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_planted)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
