/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_test.c - the table of a level that this machine lacks is that of the level below: functions that fill a table
 * are compiled for its level, and must not run. scripts/test-cpus.sh runs this on processors without any. And products
 * of bf16 whose sums are nearly zero, where the levels round differently. Results of kernels: tests/check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "ops/kernels.h"

/* README: "It runs on x86-64 processors without AVX2." */
static void test_only_levels_of_this_machine_are_filled(void **state) {
    (void)state;
    for (int isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa++) {
        const struct hn_kernels *k = hn_kernels_get((hn_isa)isa), *below = hn_kernels_get(hn_isa_below((hn_isa)isa));
        assert_non_null(k->store);
        assert_non_null(k->linear_q8[HN_Q4_0]);
        if (isa != HN_ISA_REF) assert_int_equal(memcmp(k, below, sizeof *k) != 0, hn_isa_has((hn_isa)isa));
    }
}

static uint16_t bf16_at(uint64_t *seed, int exponent, int mantissas) {
    const uint64_t r = hn_splitmix(seed);
    return hn_f32_to_bf16(ldexpf(1 + (float)(r % (uint64_t)mantissas) / 128, exponent) * (r >> 32 & 1 ? -1.0f : 1.0f));
}

/* A pair whose second product is 2^-126 or a little more, and whose first is less than the steps of denormal numbers or a few of
 * them: subtracted from 2^-126 it gives zero, unless it is so small that the difference rounds back to 2^-126. There qemu
 * differs from processors, it flushes before it rounds: under it (QEMU_CPU, by scripts/test-cpus.sh) no number is that small. */
static void test_bf16_sums_near_zero(void **state) {
    (void)state;
    enum { DIM = 32, POSITIONS = HN_KEY_CHUNK };
    const int least = getenv("QEMU_CPU") ? 4 : 8; /* exponents of what is subtracted, down from that of a step */
    uint64_t seed = 77;
    int zeros = 0;
    for (int round = 0; round < 64; round++) {
        _Alignas(64) uint16_t k[DIM * POSITIONS] = {0}, v[DIM * POSITIONS] = {0}, q[DIM] = {0}, e[HN_KEY_SPAN] = {0};
        const int d0 = round * 2 % DIM, p0 = round * 2 % POSITIONS; /* of the pair that is not zero */
        const uint16_t *const row = q;
        const hn_keys keys = {.k = {k}, .v = {v}, .k_stride = {POSITIONS}};
        q[d0] = bf16_at(&seed, -75, 128);
        e[p0] = bf16_at(&seed, -75, 128);
        q[d0 + 1] = e[p0 + 1] = hn_f32_to_bf16(0x1p-63f);
        for (int i = 0; i < POSITIONS * 2; i++)
            k[d0 * POSITIONS + i] = i % 2 ? bf16_at(&seed, -63, 2) : bf16_at(&seed, -72 - i / 2 % least, 128);
        for (int i = 0; i < DIM * 2; i++)
            v[p0 * DIM + i] = i % 2 ? bf16_at(&seed, -63, 2) : bf16_at(&seed, -72 - i / 2 % least, 128);
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            const struct hn_kernels *kernels = hn_kernels_get(isa);
            struct hn_kernels ref = *hn_kernels_get(HN_ISA_REF);
            _Alignas(64) float s[2][HN_KEY_SPAN] = {{0}}, o[2][DIM] = {{0}};
            if (kernels->sums_of_tiles) hn_kernels_ref_sums_of_tiles(&ref);
            for (int i = 0; i < 2; i++) {
                (i ? &ref : kernels)->scores_bf16(&keys, 0, 1, &row, 1, DIM, 1, s[i]);
                (i ? &ref : kernels)->values_bf16(&keys, 0, POSITIONS, e, 1, DIM, o[i], DIM);
            }
            for (int p = 0; isa == HN_ISA_REF && p < POSITIONS; p++) zeros += s[0][p] == 0;
            assert_memory_equal(s[0], s[1], sizeof s[0]);
            assert_memory_equal(o[0], o[1], sizeof o[0]);
        }
    }
    assert_in_range(zeros, 100, 64 * POSITIONS - 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_only_levels_of_this_machine_are_filled),
                                       cmocka_unit_test(test_bf16_sums_near_zero)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
