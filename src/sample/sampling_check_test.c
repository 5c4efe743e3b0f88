/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_check_test.c - parameters out of range, contradictory or not numbers are refused, naming them and what was
 * expected; the ends of the ranges are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "sample/sampler.h"

enum { VOCAB = 10 };

static void assert_refused(hunch_sampling p, const char *word) {
    hunch_error err = {0};
    if (p.top_p == 0) p.top_p = 1;
    assert_int_equal(hn_sampling_check(&p, VOCAB, &err), HUNCH_USAGE);
    if (!strstr(err.message, word) || !strstr(err.message, "expected"))
        fail_msg("the refusal says '%s', not '%s'", err.message, word);
}

static void test_ranges(void **state) {
    (void)state;
    const struct {
        hunch_sampling p;
        const char *word;
    } bad[] = {
        {{.temperature = -1}, "temperature=-1"},
        {{.temperature = NAN}, "temperature"},
        {{.temperature = INFINITY}, "temperature"},
        {{.top_k = -1}, "top_k=-1"},
        {{.top_p = -1e-9}, "top_p="},
        {{.top_p = 1.5}, "top_p=1.5"},
        {{.top_p = NAN}, "top_p"},
        {{.min_p = -.1}, "min_p=-0.1"},
        {{.min_p = 2}, "min_p=2"},
        {{.top_n_sigma = -1}, "top_n_sigma=-1"},
        {{.top_n_sigma = INFINITY}, "top_n_sigma"},
        {{.typical_p = 1.01}, "typical_p=1.01"},
        {{.typical_p = NAN}, "typical_p"},
        {{.xtc_probability = 1.5, .xtc_threshold = .1}, "xtc_probability=1.5"},
        {{.xtc_probability = .5, .xtc_threshold = .6}, "xtc_threshold=0.6"},
        {{.xtc_probability = .5}, "xtc_probability=0.5 without xtc_threshold"},
        {{.repetition_penalty = -1}, "repetition_penalty=-1"},
        {{.repetition_penalty = NAN}, "repetition_penalty"},
        {{.frequency_penalty = 2.1}, "frequency_penalty=2.1"},
        {{.frequency_penalty = -NAN}, "frequency_penalty"},
        {{.presence_penalty = -2.1}, "presence_penalty=-2.1"},
        {{.dry_multiplier = -1}, "dry_multiplier=-1"},
        {{.dry_multiplier = NAN}, "dry_multiplier"},
        {{.dry_multiplier = 1, .dry_base = .5}, "dry_base=0.5"},
        {{.dry_multiplier = 1, .dry_base = INFINITY}, "dry_base"},
        {{.dry_multiplier = 1, .dry_allowed_length = -1}, "dry_allowed_length=-1"},
        {{.dry_multiplier = 1, .dry_allowed_length = INT_MAX}, "dry_allowed_length"},
        {{.dry_multiplier = 1, .dry_range = -1}, "dry_range=-1"},
        {{.dry_base = 1.5}, "dry_base without dry_multiplier"},
        {{.dry_allowed_length = 3}, "dry_allowed_length without dry_multiplier"},
        {{.dry_range = 30}, "dry_range without dry_multiplier"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_refused(bad[i].p, bad[i].word);
}

static void test_breakers(void **state) {
    (void)state;
    const char *const words[] = {"\n", ""}, *const none[] = {NULL};
    assert_refused((hunch_sampling){.dry_multiplier = 1, .dry_breakers = words, .n_dry_breakers = 2},
                   "dry_breakers[1]");
    assert_refused((hunch_sampling){.dry_multiplier = 1, .dry_breakers = none, .n_dry_breakers = 1}, "dry_breakers[0]");
    assert_refused((hunch_sampling){.dry_multiplier = 1, .dry_breakers = words, .n_dry_breakers = -1}, "dry_breakers");
    assert_refused((hunch_sampling){.dry_multiplier = 1, .n_dry_breakers = 1}, "dry_breakers");
    assert_refused((hunch_sampling){.dry_breakers = words, .n_dry_breakers = 1}, "dry_breakers without dry_multiplier");
}

static void test_bias(void **state) {
    (void)state;
    const struct {
        hunch_bias bias[3];
        const char *word;
    } bad[] = {
        {{{1, 1}, {2, NAN}, {3, 1}}, "bias nan on token 2"},
        {{{1, 1}, {2, INFINITY}, {3, 1}}, "bias inf on token 2"},
        {{{1, 1}, {2, 1}, {3, -1e7}}, "bias -1e+07 on token 3"},
        {{{1, 1}, {VOCAB, 1}, {3, 1}}, "token 10, expected an id of the vocabulary, 0 to 9"},
        {{{1, 1}, {2, 1}, {-1, 1}}, "token -1"},
        {{{1, 1}, {2, 1}, {1, 1}}, "two biases on token 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_refused((hunch_sampling){.bias = bad[i].bias, .n_bias = 3}, bad[i].word);
    assert_refused((hunch_sampling){.bias = bad[0].bias, .n_bias = -1}, "biases");
    assert_refused((hunch_sampling){.n_bias = 1}, "biases");
    /* without a vocabulary ids are not checked; without memory the check fails */
    hunch_sampling p = {.top_p = 1, .bias = bad[3].bias, .n_bias = 3};
    assert_int_equal(hn_sampling_check(&p, 0, NULL), HUNCH_OK);
    hn_fault_arm(HN_FAULT_ALLOC, 0, false);
    p.n_bias = 1;
    assert_int_equal(hn_sampling_check(&p, VOCAB, NULL), HUNCH_OK);
    p = (hunch_sampling){.top_p = 1, .bias = bad[5].bias, .n_bias = 2};
    assert_int_equal(hn_sampling_check(&p, VOCAB, NULL), HUNCH_NO_MEMORY);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
}

static void test_ends_of_ranges(void **state) {
    (void)state;
    const hunch_bias bias[] = {{0, -INFINITY}, {9, 1e6}};
    const char *const words[] = {"\n"};
    const hunch_sampling good[] = {
        {.temperature = 0},
        {.temperature = 1000, .top_k = INT_MAX, .min_p = 1, .top_n_sigma = 1000, .typical_p = 1},
        {.xtc_probability = 1, .xtc_threshold = .5},
        {.xtc_threshold = .1}, /* a default, unused until XTC is switched on */
        {.repetition_penalty = 100, .frequency_penalty = 2, .presence_penalty = 2},
        {.repetition_penalty = .1, .frequency_penalty = -2, .presence_penalty = -2},
        {.dry_multiplier = 1000, .dry_base = 1, .dry_allowed_length = 1000, .dry_range = INT_MAX, .dry_breakers = words,
         .n_dry_breakers = 1},
        {.dry_multiplier = .1, .dry_base = 100, .dry_allowed_length = 1},
        {.bias = bias, .n_bias = 2},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        hunch_sampling p = good[i];
        hunch_error err = {0};
        p.top_p = 1;
        if (hn_sampling_check(&p, VOCAB, &err)) fail_msg("case %zu: %s", i, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges), cmocka_unit_test(test_breakers),
                                       cmocka_unit_test(test_bias), cmocka_unit_test(test_ends_of_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
