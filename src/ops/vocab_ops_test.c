/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_ops_test.c - every level gives the same bits; weights are exponentials, and the filter of a race drops no winner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "ops/vocab_ops.h"

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
        if (hn_splitmix(seed) % 20 == 0)
            l[i] = odd[hn_splitmix(seed) % 40 ? hn_splitmix(seed) % 2 : hn_splitmix(seed) % 6];
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
        hn_vocab_ops_ref.weights(l, n, max, scale, want);
        for (int i = 0; i < n; i++) {
            float z = (l[i] - max) * scale;
            if (l[i] == max) assert_true(want[i] == 1);
            else if (z >= -87) worst = fmaxf(worst, ulps(want[i], exp((double)z)));
            else assert_true(want[i] == 0); /* NaN too */
        }
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            memset(got, 0x5a, sizeof got);
            hn_vocab_ops_for(isa)->weights(l, n, max, scale, got);
            assert_memory_equal(got, want, (size_t)n * sizeof *got);
            for (size_t i = (size_t)n * sizeof *got; i < sizeof got; i++)
                assert_int_equal(((unsigned char *)got)[i], 0x5a);
            memcpy(got, l, (size_t)n * sizeof *got);
            hn_vocab_ops_for(isa)->weights(got, n, max, scale, got); /* in place */
            assert_memory_equal(got, want, (size_t)n * sizeof *got);
        }
    }
    assert_true(worst <= 2);
}

/* A clear bit means a certain loss, a set one nearly a win, for any ids. */
static void check_race_ids(const float w[HN_VOCAB_BUCKET], float time, const hn_random_key *key, uint64_t *seed) {
    int32_t id[HN_VOCAB_BUCKET];
    hn_random_key k = *key;
    for (int i = 0; i < HN_VOCAB_BUCKET; i++) id[i] = (int32_t)(hn_splitmix(seed) >> 33);
    const uint64_t mask = hn_vocab_ops_ref.race_ids(id, w, time, key);
    for (int i = 0; i < HN_VOCAB_BUCKET; i++) {
        k.token = (uint32_t)id[i];
        const double rest = 1 - hn_random_uniform(&k), limit = (double)time * (double)w[i];
        if (-log(1 - rest) < limit) assert_true(mask >> i & 1);
        if (rest > 1.002 * limit + 1e-9) assert_false(mask >> i & 1);
    }
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        assert_true(hn_vocab_ops_for(isa)->race_ids(id, w, time, key) == mask);
}

/* The filter's result for a whole vocabulary: a bit for each token, and the weights of buckets with a bit set. */
enum { MOST = 5 * HN_VOCAB_BUCKET };
typedef struct filtered {
    uint64_t may[MOST / HN_VOCAB_BUCKET];
    float w[MOST];
} filtered;

static void filter_run(hn_isa isa, const float *l, int n, const float *most, float max, float scale, float time,
                 const hn_random_key *key, filtered *out) {
    memset(out, 0, sizeof *out);
    for (int b = 0; b < hn_vocab_buckets(n); b++) {
        uint64_t may = 0;
        float w[HN_VOCAB_BUCKET];
        b = hn_vocab_ops_for(isa)->race(l, n, most, b, max, scale, time, key, &may, w);
        if (b == hn_vocab_buckets(n)) return;
        assert_true(b < hn_vocab_buckets(n) && may);
        out->may[b] = may;
        memcpy(out->w + b * HN_VOCAB_BUCKET, w, sizeof w);
    }
}

/* Noise is that of base/random.h: with a time so short that about half of the ids pass, a clear bit means a certain loss and
 * a set one nearly a win. */
static void test_race(void **state) {
    (void)state;
    uint64_t seed = 4;
    int passed = 0, tried = 0;
    for (int round = 0; round < 1000; round++) {
        static filtered got, other;
        float l[MOST], want[MOST], most[MOST / HN_VOCAB_BUCKET];
        hn_random_key key = {.seed = hn_splitmix(&seed),
                             .position = hn_splitmix(&seed) >> 24,
                             .purpose = (uint32_t)hn_splitmix(&seed) & 0xFF,
                             .drafter = (uint32_t)hn_splitmix(&seed) & 0xFF,
                             .number = (uint32_t)hn_splitmix(&seed) & 0xFFFF};
        const int n = 1 + (int)(hn_splitmix(&seed) % MOST), buckets = hn_vocab_buckets(n);
        logits_make(&seed, l, n);
        const float max = hn_vocab_ops_ref.maxima(l, n, most), scale = (float)(.02 * unit(&seed));
        const float time = (float)(2 * unit(&seed) * unit(&seed));
        hn_vocab_ops_ref.weights(l, n, max, scale, want);
        hn_vocab_ops_ref.weights(most, buckets, max, scale, most);
        filter_run(HN_ISA_REF, l, n, most, max, scale, time, &key, &got);
        for (int i = 0; i < n; i++) {
            key.token = (uint32_t)i;
            double rest = 1 - hn_random_uniform(&key), limit = (double)time * (double)want[i];
            bool may = got.may[i / HN_VOCAB_BUCKET] >> (i % HN_VOCAB_BUCKET) & 1;
            if (-log(1 - rest) < limit) assert_true(may);
            if (rest > 1.002 * limit + 1e-9) assert_false(may);
            if (may) assert_true(got.w[i] == want[i]);
            passed += may;
            tried++;
        }
        for (int i = n; i < buckets * HN_VOCAB_BUCKET; i++)
            assert_false(got.may[i / HN_VOCAB_BUCKET] >> (i % HN_VOCAB_BUCKET) & 1);
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            filter_run(isa, l, n, most, max, scale, time, &key, &other);
            assert_memory_equal(&other, &got, sizeof got);
        }
        if (n >= HN_VOCAB_BUCKET) check_race_ids(want, time, &key, &seed);
    }
    assert_in_range(passed, tried / 10, tried * 9 / 10);
}

/* ---- largest, thresholds, sums ----------------------------------------------------------------------------------- */

static void test_largest(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 3000; round++) {
        float l[MOST], bucket[MOST / HN_VOCAB_BUCKET + 1];
        const int n = 1 + (int)(hn_splitmix(&seed) % MOST);
        int best = -1;
        logits_make(&seed, l, n);
        if (round % 3 == 0) for (int i = 0; i < n; i++) l[i] = rintf(l[i] / 8); /* equal ones */
        if (round % 50 == 0) for (int i = 0; i < n; i++) l[i] = hn_splitmix(&seed) % 2 ? NAN : -INFINITY;
        for (int i = 0; i < n; i++)
            if (l[i] > (best < 0 ? -INFINITY : l[best])) best = i;
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            const hn_vocab_ops *vocab_ops = hn_vocab_ops_for(isa);
            bucket[hn_vocab_buckets(n)] = 77;
            assert_int_equal(vocab_ops->argmax(l, n), best);
            assert_true(vocab_ops->maxima(l, n, bucket) == (best < 0 ? -INFINITY : l[best]));
            assert_true(bucket[hn_vocab_buckets(n)] == 77);
            for (int b = 0; b < hn_vocab_buckets(n); b++) {
                float most = -INFINITY;
                for (int i = b * HN_VOCAB_BUCKET; i < n && i < (b + 1) * HN_VOCAB_BUCKET; i++)
                    if (l[i] > most) most = l[i];
                assert_true(bucket[b] == most);
            }
        }
    }
}

static void test_thresholds(void **state) {
    (void)state;
    uint64_t seed = 6;
    for (int round = 0; round < 2000; round++) {
        float l[MOST], bucket[MOST / HN_VOCAB_BUCKET], value[MOST], key[MOST];
        int32_t id[MOST], want[MOST];
        const int n = 1 + (int)(hn_splitmix(&seed) % MOST);
        int kept = 0, again = 0;
        logits_make(&seed, l, n);
        const float least = round % 4 ? l[hn_splitmix(&seed) % (uint64_t)n] : -INFINITY,
                    other = (float)(30 * unit(&seed) - 15);
        for (int i = 0; i < n; i++)
            if (l[i] >= least) want[kept++] = i;
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            const hn_vocab_ops *vocab_ops = hn_vocab_ops_for(isa);
            vocab_ops->maxima(l, n, bucket);
            assert_int_equal(vocab_ops->gather(l, n, round % 2 ? bucket : NULL, least, id, value), kept);
            assert_memory_equal(id, want, (size_t)kept * sizeof *id);
            for (int i = 0; i < kept; i++) assert_true(value[i] == l[id[i]]);
            for (int i = 0; i < kept; i++) key[i] = -value[i];
            again = vocab_ops->keep(key, kept, other, id, value); /* with a key other than the value */
            for (int i = 0, k = 0; i < kept; i++) {
                if (!(-l[want[i]] >= other)) continue;
                assert_true(k < again && id[k] == want[i] && value[k] == l[want[i]] && key[k] == -l[want[i]]);
                k++;
            }
            const int third = vocab_ops->keep(value, again, -other - 5, id, value);
            for (int i = 0; i < third; i++) assert_true(value[i] >= -other - 5 && value[i] == l[id[i]]);
        }
    }
}

static void test_sums(void **state) {
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 1000; round++) {
        float l[MOST], w[MOST], bucket[MOST / HN_VOCAB_BUCKET];
        const int n = 1 + (int)(hn_splitmix(&seed) % MOST);
        logits_make(&seed, l, n);
        const float max = hn_vocab_ops_ref.maxima(l, n, bucket), scale = (float)(.1 + 3 * unit(&seed)),
                    least = (float)unit(&seed);
        hn_vocab_ops_ref.weights(l, n, max, scale, w);
        double sum = 0, mass = 0, numbers = 0, distance = 0, squares = 0;
        int64_t count = 0, above = 0;
        for (int i = 0; i < n; i++) {
            sum += (double)w[i];
            mass += hn_mass_of(w[i]);
            count += w[i] >= least;
            above += w[i] >= least ? (int64_t)(hn_mass_of(w[i]) * 0x1p34) : 0;
            if (!(l[i] > -INFINITY)) continue;
            numbers++;
            distance += (double)max - (double)l[i];
            squares += ((double)max - (double)l[i]) * ((double)max - (double)l[i]);
        }
        const double added = hn_vocab_ops_ref.sum(w, n);
        assert_true(fabs(added - sum) <= 1e-13 * sum);
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            const hn_vocab_ops *vocab_ops = hn_vocab_ops_for(isa);
            const int64_t whole = vocab_ops->mass(l, n, NULL, 0, max, scale),
                          some = vocab_ops->mass(l, n, bucket, max, max, scale);
            assert_true(vocab_ops->weigh(l, n, max, scale) == added && vocab_ops->sum(w, n) == added);
            assert_true((double)whole * HN_MASS_UNIT == mass);
            assert_true(max == -INFINITY || (some >= (int64_t)1 << 34 && some <= whole)); /* the bucket of the largest */
            const hn_tally part = vocab_ops->tally(w, w, n, least), counted = vocab_ops->tally(w, NULL, n, least);
            assert_true(part.count == count && part.mass == above && counted.count == count && counted.mass == 0);
            if (!isfinite(max)) continue;
            double c, s, q;
            vocab_ops->spread(l, n, max, &c, &s, &q);
            assert_true(c == numbers && fabs(s - distance) <= 1e-12 * distance && fabs(q - squares) <= 1e-12 * squares);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights), cmocka_unit_test(test_race),
                                       cmocka_unit_test(test_largest), cmocka_unit_test(test_thresholds),
                                       cmocka_unit_test(test_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
