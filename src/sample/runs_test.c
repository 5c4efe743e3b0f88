/* SPDX-License-Identifier: Apache-2.0 */
/* runs_test.c - runs against sorting: numbers and masses as amounts, keys of any sign, many equal ones, every level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sample/runs.h"

enum { MOST = 700 };

typedef struct candidate {
    float key, value;
    int32_t id;
} candidate;

static int by_key(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static int by_id(const void *a, const void *b) {
    return ((const candidate *)a)->id < ((const candidate *)b)->id ? -1 : 1;
}

static double unit(uint64_t *seed) { return (double)(hn_splitmix(seed) >> 11) * 0x1p-53; }

/* Candidates with ascending ids; few different keys in some rounds, extremes in others. */
static void make(uint64_t *seed, int round, bool own_key, candidate *c, int n) {
    static const float odd[] = {INFINITY, 0, -0.f, 1e-45f, 3e38f, 1};
    for (int i = 0; i < n; i++) {
        c[i].id = (i ? c[i - 1].id : 0) + 1 + (int32_t)(hn_splitmix(seed) % 3);
        c[i].value = (float)exp(-20 * unit(seed));
        c[i].key = own_key ? (float)(40 * unit(seed) - 20) : c[i].value;
        if (round % 3 == 0) c[i].key = own_key ? rintf(c[i].key / 10) : (c[i].value = rintf(4 * c[i].value) / 4);
        if (own_key && round % 5 == 0) c[i].key = odd[hn_splitmix(seed) % 6];
        c[i].key += 0.0f; /* -0 and 0 are equal: sorted as one */
    }
}

/* Length of the run of sorted candidates. */
static int run_length(const candidate *sorted, int n, bool count, double target) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += count ? 1 : hn_mass_of(sorted[i].value);
        if (sum >= target) return i + 1;
    }
    return n;
}

static void test_cut(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < 3000; round++) {
        static candidate c[MOST];
        int32_t id[MOST];
        float value[MOST], key[MOST];
        const int n = 1 + (int)(hn_splitmix(&seed) % (round % 2 ? MOST : 90));
        const bool own_key = round % 4 < 2, count = round % 7 < 3;
        double all = 0, low = INFINITY, high = -INFINITY;
        make(&seed, round, own_key, c, n);
        for (int i = 0; i < n; i++) {
            all += count ? 1 : hn_mass_of(c[i].value);
            low = fmin(low, (double)c[i].key), high = fmax(high, (double)c[i].key);
        }
        const double target = count ? 1 + (double)(hn_splitmix(&seed) % (uint64_t)n) : all * unit(&seed);
        static candidate want[MOST];
        memcpy(want, c, sizeof want);
        qsort(want, (size_t)n, sizeof *want, by_key);
        const int length = run_length(want, n, count, target);
        qsort(want, (size_t)length, sizeof *want, by_id);
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            for (int i = 0; i < n; i++) id[i] = c[i].id, value[i] = c[i].value, key[i] = c[i].key;
            const hn_run run = {id, value, own_key ? key : value, n, count, target, (float)low, (float)high};
            assert_int_equal(hn_run_cut(hn_vocab_ops_for(isa), &run), length);
            for (int i = 0; i < length; i++) assert_true(id[i] == want[i].id && value[i] == want[i].value);
        }
    }
}

static void test_floor(void **state) {
    (void)state;
    uint64_t seed = 12;
    for (int round = 0; round < 2000; round++) {
        float key[MOST], high = -INFINITY;
        const int n = 1 + (int)(hn_splitmix(&seed) % MOST), least = 1 + (int)(hn_splitmix(&seed) % (uint64_t)n);
        for (int i = 0; i < n; i++) {
            key[i] = (float)(40 * unit(&seed) - 20);
            if (round % 3 == 0) key[i] = rintf(key[i]);
            if (round % 4 == 0 && hn_splitmix(&seed) % 3 == 0) key[i] = -INFINITY;
            high = fmaxf(high, key[i]);
        }
        const float floor = hn_run_floor(&hn_vocab_ops_ref, key, n, least, high);
        int reach = 0, above = 0;
        for (int i = 0; i < n; i++) reach += key[i] >= floor, above += key[i] > floor;
        assert_true(reach >= least && above < least + 64);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cut), cmocka_unit_test(test_floor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
