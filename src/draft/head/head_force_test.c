/* SPDX-License-Identifier: Apache-2.0 */
/* head_force_test.c - key `force` of draft heads: how it is read, what the head's estimates become, and that each rank is right as often as
 * its rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draft/head/head_force.h"

static hunch_error err;

static hunch_status read_force(hn_forced_rates *r, const char *value) {
    char text[200];
    hn_spec spec;
    snprintf(text, sizeof text, "medusa:head,force=%s", value);
    assert_int_equal(hn_spec_parse(&spec, text, &err), HUNCH_OK);
    const hunch_status st = hn_forced_rates_read(r, &spec, &err);
    hn_spec_fini(&spec);
    return st;
}

static void test_read(void **state) {
    (void)state;
    static const char *const bad[] = {"1.5", "-0.1", "nan", "0.5/0.6", "0.6/0.5", "0.5/", "/0.5", "0.5//0.1", "0.5 0.1", "0x1",
                                      ".1/.1/.1/.1/.1/.1/.1/.1/.1/.1/.01/.01/.01/.01/.01/.01/.01"};
    hn_forced_rates r;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_force(&r, bad[i]), HUNCH_USAGE);
        assert_non_null(strstr(err.message, "expected a number from 0 to 1, or one for each"));
    }
    assert_int_equal(read_force(&r, "0.75"), HUNCH_OK);
    assert_true(r.n == 1 && r.of_rank[0] == 0.75);
    assert_int_equal(read_force(&r, "0.5/0.25/0"), HUNCH_OK);
    assert_true(r.n == 3 && r.of_rank[0] == 0.5 && r.of_rank[1] == 0.25 && r.of_rank[2] == 0);
}

static void test_estimate(void **state) {
    (void)state;
    static const hn_forced_rates two = {2, {0.5, 0.125}}, one = {1, {0.5}}, never = {1, {0}}, none = {0};
    float p[] = {0.25f, 0.25f, 0.25f, 1}, q[] = {0.25f, 0.25f, 1};
    hn_forced_rates_estimate(&never, p, 4);
    hn_forced_rates_estimate(&none, p, 4);
    assert_true(p[0] == 0.25f && p[3] == 1);
    hn_forced_rates_estimate(&one, q, 3);
    assert_true(q[0] == 0.5f && q[1] == 0.125f && q[2] == 0.5f);
    hn_forced_rates_estimate(&two, p, 4);
    assert_true(p[0] == 0.5f && p[1] == 0.125f);
    assert_true(p[2] == 0.375f * 0.25f);
    assert_true(p[3] == 0.125f); /* never above the last rank that has a rate */
}

enum { VOCAB = 11, TEXT = 4000, RANKS = 4 };

/* Every token of the text drafted anew: the rank that is said to be right is, and no other. */
static void test_ranks(void **state) {
    (void)state;
    static const hn_forced_rates rates = {3, {0.5, 0.25, 0.125}};
    static int32_t text[TEXT];
    int right[RANKS + 1] = {0};
    hn_head_oracle o = {0};
    for (int i = 0; i < TEXT; i++) text[i] = (i * 7 + i / 11) % VOCAB;
    const hn_begin b = {.oracle = text, .n_oracle = TEXT, .seed = 3};
    assert_int_equal(hn_head_oracle_begin(&o, &b, &err), HUNCH_OK);
    for (int i = 0; i < TEXT; i++) {
        int32_t token[RANKS];
        hn_propose p = {0};
        p.text.n = i + 1;
        p.text.n_prompt = 1;
        for (int k = 0; k < RANKS; k++) token[k] = (i + 2 * k) % VOCAB;
        const int hit = hn_head_oracle_force(&o, &p, &rates, 0, VOCAB, 0, token, RANKS);
        for (int k = 0; k < RANKS; k++) assert_true((token[k] == text[i]) == (k == hit));
        right[hit < 0 ? RANKS : hit]++;
    }
    for (int k = 0; k <= RANKS; k++) {
        const double want = k < 3 ? rates.of_rank[k] : k == 3 ? 0 : 0.125, spread = 5 * sqrt(want * (1 - want) / TEXT);
        if (fabs((double)right[k] / TEXT - want) > spread)
            fail_msg("rank %d is right %d times of %d, expected %g of them", k, right[k], TEXT, want);
    }
    hn_head_oracle_end(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_estimate), cmocka_unit_test(test_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
