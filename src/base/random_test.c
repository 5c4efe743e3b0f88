/* SPDX-License-Identifier: Apache-2.0 */
/* random_test.c - Philox against published vectors, the packing of keys, and the distribution of the numbers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/random.h"

/* Known-answer vectors of the authors' library Random123 for philox4x32, 10 rounds. */
static void test_philox_vectors(void **state) {
    (void)state;
    static const uint32_t cases[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
         0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
         0x24126ea1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        hn_philox(cases[i], cases[i] + 4, out);
        assert_memory_equal(out, cases[i] + 6, sizeof out);
    }
}

/* Each field at its largest and each alone: no two keys may have the same counter. */
static void test_fields_do_not_overlap(void **state) {
    (void)state;
    hn_random_key keys[] = {
        {0},
        {.position = 1},
        {.position = (uint64_t)1 << 32},
        {.position = ((uint64_t)1 << 40) - 1},
        {.purpose = 1},
        {.purpose = 255},
        {.drafter = 1},
        {.drafter = 255},
        {.number = 1},
        {.number = 65535},
        {.token = 1},
        {.token = UINT32_MAX},
        {.seed = 1},
        {.seed = (uint64_t)1 << 32},
    };
    enum { KEYS = sizeof keys / sizeof *keys };
    for (int i = 0; i < KEYS; i++) {
        assert_true(hn_random_u64(&keys[i]) == hn_random_u64(&keys[i]));
        for (int j = 0; j < i; j++) assert_true(hn_random_u64(&keys[i]) != hn_random_u64(&keys[j]));
    }
}

/* The two words of output 0 for seed 0 and an all-zero counter are those of the first vector. */
static void test_u64_is_the_first_words(void **state) {
    (void)state;
    hn_random_key key = {0};
    assert_true(hn_random_u64(&key) == 0xe169c58d6627e8d5u);
}

static void test_uniform_dist(void **state) {
    (void)state;
    enum { N = 100000, CELLS = 64 };
    int cells[CELLS] = {0};
    double sum = 0, log_sum = 0, previous = 0.5, lag = 0;
    for (uint32_t i = 0; i < N; i++) {
        hn_random_key key = {.seed = 42, .position = 17, .purpose = HN_PURPOSE_TARGET, .token = i};
        double u = hn_random_uniform(&key), e = -log(u); /* the noise of a race */
        assert_true(u > 0 && u < 1 && e > 0 && isfinite(e));
        cells[(int)(u * CELLS)]++;
        sum += u;
        log_sum += e;
        lag += (u - 0.5) * (previous - 0.5);
        previous = u;
    }
    double chi = 0;
    for (int i = 0; i < CELLS; i++) chi += pow(cells[i] - (double)N / CELLS, 2) / ((double)N / CELLS);
    assert_true(chi > 30 && chi < 115); /* 63 degrees of freedom: both ends beyond 4 sigma */
    assert_true(fabs(sum / N - 0.5) < 0.004);
    assert_true(fabs(log_sum / N - 1) < 0.014);
    assert_true(fabs(lag / N) * 12 < 0.014);
}

/* The sequence for tests and tools starts at published values too (SplitMix64 from seed 0). */
static void test_splitmix(void **state) {
    (void)state;
    uint64_t s = 0;
    assert_true(hn_splitmix(&s) == 0xE220A8397B1DCDAFu);
    assert_true(hn_splitmix(&s) == 0x6E789E6AA1B965F4u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_vectors),
        cmocka_unit_test(test_fields_do_not_overlap),
        cmocka_unit_test(test_u64_is_the_first_words),
        cmocka_unit_test(test_uniform_dist),
        cmocka_unit_test(test_splitmix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
