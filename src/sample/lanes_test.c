/* SPDX-License-Identifier: Apache-2.0 */
/* lanes_test.c - every level gives the same bits; weights are exponentials, and the first look at a race misses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "sample/lanes.h"

static double unit(uint64_t *seed) {
    return (double)(hn_splitmix(seed) >> 11) * 0x1p-53;
}

/* Logits at and below max, NaN and infinities among them. */
static float logits_make(uint64_t *seed, float *l, int n) {
    static const float odd[] = {NAN, -INFINITY, INFINITY, -3e38f, 0, -0.f};
    float max = -INFINITY;
    double spread = hn_splitmix(seed) % 4 ? 30 : 150;
    for (int i = 0; i < n; i++) {
        l[i] = (float)(spread * (unit(seed) - .5));
        if (hn_splitmix(seed) % 20 == 0) l[i] = odd[hn_splitmix(seed) % 40 ? hn_splitmix(seed) % 2 : hn_splitmix(seed) % 6];
        if (l[i] > max) max = l[i];
    }
    return max;
}

static float ulps(float got, double want) {
    return (float)(fabs((double)got - want) / (nextafterf((float)want, 2) - (float)want));
}

static void test_weights(void **state) {
    (void)state;
    enum { N = 203, GUARD = 16 };
    uint64_t seed = 3;
    float worst = 0;
    for (int round = 0; round < 2000; round++) {
        float l[N], want[N], got[N + GUARD];
        int n = (int)(hn_splitmix(&seed) % N);
        float max = logits_make(&seed, l, n), scale = (float)(.1 + 3 * unit(&seed));
        hn_lanes_ref.weights(l, n, max, scale, want);
        for (int i = 0; i < n; i++) {
            float z = (l[i] - max) * scale;
            if (l[i] == max) assert_true(want[i] == 1);
            else if (z >= -87) worst = fmaxf(worst, ulps(want[i], exp((double)z)));
            else assert_true(want[i] == 0); /* NaN too */
        }
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            memset(got, 0x5a, sizeof got);
            hn_lanes_for(isa)->weights(l, n, max, scale, got);
            assert_memory_equal(got, want, (size_t)n * sizeof *got);
            for (size_t i = (size_t)n * sizeof *got; i < sizeof got; i++) assert_int_equal(((unsigned char *)got)[i], 0x5a);
            memcpy(got, l, (size_t)n * sizeof *got);
            hn_lanes_for(isa)->weights(got, n, max, scale, got); /* in place */
            assert_memory_equal(got, want, (size_t)n * sizeof *got);
        }
    }
    assert_true(worst <= 2);
}

/* A clear bit is a sure loss, a set one a near win, wherever the ids lie. */
static void check_race_ids(const float w[HN_LANES_BLOCK], float time, const hn_random_key *key, uint64_t *seed) {
    int32_t id[HN_LANES_BLOCK];
    hn_random_key k = *key;
    for (int i = 0; i < HN_LANES_BLOCK; i++) id[i] = (int32_t)(hn_splitmix(seed) >> 33);
    const uint64_t mask = hn_lanes_ref.race_ids(id, w, time, key);
    for (int i = 0; i < HN_LANES_BLOCK; i++) {
        k.token = (uint32_t)id[i];
        const double rest = 1 - hn_random_uniform(&k), limit = (double)time * (double)w[i];
        if (-log(1 - rest) < limit) assert_true(mask >> i & 1);
        if (rest > 1.002 * limit + 1e-9) assert_false(mask >> i & 1);
    }
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        assert_true(hn_lanes_for(isa)->race_ids(id, w, time, key) == mask);
}

/* Bits are those of base/random.h: with a time so short that about half of the ids pass, a clear bit is a sure loss and a
 * set one a near win. */
static void test_race(void **state) {
    (void)state;
    uint64_t seed = 4;
    int passed = 0, tried = 0;
    for (int round = 0; round < 3000; round++) {
        float l[HN_LANES_BLOCK], w[HN_LANES_BLOCK], want[HN_LANES_BLOCK], other[HN_LANES_BLOCK];
        hn_random_key key = {.seed = hn_splitmix(&seed),
                             .position = hn_splitmix(&seed) >> 24,
                             .purpose = (uint32_t)hn_splitmix(&seed) & 0xFF,
                             .drafter = (uint32_t)hn_splitmix(&seed) & 0xFF,
                             .number = (uint32_t)hn_splitmix(&seed) & 0xFFFF};
        uint32_t first = (uint32_t)hn_splitmix(&seed);
        float max = logits_make(&seed, l, HN_LANES_BLOCK), scale = (float)(.02 * unit(&seed));
        float time = (float)(2 * unit(&seed) * unit(&seed));
        uint64_t mask = hn_lanes_ref.race(l, max, scale, 1, time, &key, first, w);
        hn_lanes_ref.weights(l, HN_LANES_BLOCK, max, scale, want);
        if (mask) assert_memory_equal(w, want, sizeof w);
        float most = 0;
        for (int i = 0; i < HN_LANES_BLOCK; i++) {
            most = fmaxf(most, want[i]);
            key.token = first + (uint32_t)i;
            double rest = 1 - hn_random_uniform(&key), limit = (double)time * (double)w[i];
            bool may = mask >> i & 1;
            if (-log(1 - rest) < limit) assert_true(may);
            if (rest > 1.002 * limit + 1e-9) assert_false(may);
            passed += may;
            tried++;
        }
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            assert_true(hn_lanes_for(isa)->race(l, max, scale, 1, time, &key, first, other) == mask);
            if (mask) assert_memory_equal(other, want, sizeof w);
            assert_true(hn_lanes_for(isa)->race(l, max, scale, most, time, &key, first, other) == mask);
        }
        check_race_ids(want, time, &key, &seed);
    }
    assert_in_range(passed, tried / 10, tried * 9 / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights), cmocka_unit_test(test_race)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
