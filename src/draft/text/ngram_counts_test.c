/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_counts_test.c - counts compared with plain recounting, the memory limit, and running out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "draft/text/ngram_counts.h"

enum { TEXT = 500 };

static int count_plain(const int32_t *h, int to, const int32_t *gram, int n, int32_t token) {
    int count = 0;
    for (int i = n; i < to; i++) count += h[i] == token && !memcmp(h + i - n, gram, (size_t)n * sizeof *gram);
    return count;
}

/* Lists, sums and the best pair are consistent. */
static void expect_valid(const hn_counts *x) {
    size_t pairs = 0;
    for (size_t i = 0; i < x->n_entries; i++) {
        const hn_counts_entry *e = &x->entry[i];
        uint64_t sum = 0;
        uint32_t n = 0, last = HN_COUNTS_NONE, best = e->first;
        assert_ptr_equal(hn_counts_find(x, e->gram), e);
        for (uint32_t p = e->first; p != HN_COUNTS_NONE; p = x->pair[p].next) {
            assert_true(last == HN_COUNTS_NONE || p > last);
            assert_int_equal(x->pair[p].entry, i);
            assert_ptr_equal(hn_counts_pair_of(x, e, x->pair[p].token), &x->pair[p]);
            if (x->pair[p].count > x->pair[best].count) best = p;
            sum += x->pair[p].count;
            n++;
            last = p;
        }
        assert_int_equal(n, e->n_pairs);
        assert_int_equal(last, e->last);
        assert_int_equal(best, e->best); /* the first seen of equals */
        assert_true(sum == e->sum);
        pairs += n;
    }
    assert_int_equal(pairs, x->n_pairs);
}

static void test_against_plain_counting(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 10; round++) {
        int32_t h[TEXT], gram[HN_COUNTS_N];
        const int vocab = 2 + round;
        hn_counts x;
        hn_counts_init(&x, 0);
        for (int i = 0; i < TEXT; i++) h[i] = (int32_t)(hn_splitmix(&seed) % (uint64_t)vocab);
        for (int from = 0; from < TEXT;) {
            const int step = 1 + (int)(hn_splitmix(&seed) % 20), to = from + step < TEXT ? from + step : TEXT;
            assert_true(hn_counts_text(&x, h, from, to));
            from = to;
            const int n = 1 + (int)(hn_splitmix(&seed) % 4), at = (int)(hn_splitmix(&seed) % (uint64_t)(TEXT - n));
            hn_counts_gram(gram, h + at, n);
            const hn_counts_entry *e = hn_counts_find(&x, gram);
            for (int32_t token = 0; token < vocab; token++) {
                const hn_counts_pair *p = e ? hn_counts_pair_of(&x, e, token) : NULL;
                assert_int_equal(p ? (int)p->count : 0, count_plain(h, to, h + at, n, token));
            }
        }
        expect_valid(&x);
        hn_counts_fini(&x);
    }
}

/* Far more than fits: the limit holds at every step, the last count is found, and entries are consistent. */
static void test_limit(void **state) {
    (void)state;
    static const struct {
        int vocab;
        size_t limit;
    } cases[] = {{1 << 20, 1 << 20}, {300, 1 << 20}, {1 << 20, 1 << 14}, {3, 1 << 12}};
    uint64_t seed = 6;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        int32_t h[64], gram[HN_COUNTS_N];
        hn_counts x;
        hn_counts_init(&x, cases[k].limit);
        size_t most = 0, dropped = 0;
        for (int text = 0; text < 1000; text++) {
            for (int i = 0; i < 64; i++) h[i] = (int32_t)(hn_splitmix(&seed) % (uint64_t)cases[k].vocab);
            const size_t before = x.n_entries;
            assert_true(hn_counts_text(&x, h, 0, 64));
            dropped += x.n_entries < before;
            assert_true(hn_counts_bytes(&x) <= cases[k].limit);
            if (hn_counts_bytes(&x) > most) most = hn_counts_bytes(&x);
            hn_counts_gram(gram, h + 59, 4);
            const hn_counts_entry *e = hn_counts_find(&x, gram);
            assert_non_null(e);
            assert_non_null(hn_counts_pair_of(&x, e, h[63]));
        }
        assert_true(most > cases[k].limit / 4);
        if (cases[k].vocab > 1000) assert_true(dropped > 1);
        expect_valid(&x);
        hn_counts_fini(&x);
    }
}

static void test_counts_stay(void **state) {
    (void)state;
    static const int32_t gram[] = {1, -1, -1, -1};
    hn_counts x;
    hn_counts_init(&x, 0);
    assert_true(hn_counts_add(&x, gram, 7, UINT32_MAX - 1));
    assert_true(hn_counts_add(&x, gram, 7, 5));
    assert_true(hn_counts_add(&x, gram, 8, 5));
    const hn_counts_entry *e = hn_counts_find(&x, gram);
    assert_int_equal(hn_counts_pair_of(&x, e, 7)->count, UINT32_MAX);
    expect_valid(&x);
    hn_counts_fini(&x);
}

static void test_no_memory(void **state) {
    (void)state;
    uint64_t seed = 7;
    int32_t h[TEXT];
    for (int i = 0; i < TEXT; i++) h[i] = (int32_t)(hn_splitmix(&seed) % 30);
    for (int after = 0; after < 30; after++) {
        hn_counts x;
        hn_counts_init(&x, 0);
        hn_fault_arm(HN_FAULT_ALLOC, after, true);
        const bool all = hn_counts_text(&x, h, 0, TEXT);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_false(all);
        expect_valid(&x);
        assert_true(hn_counts_text(&x, h, 0, TEXT)); /* still usable */
        expect_valid(&x);
        hn_counts_fini(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain_counting),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_counts_stay),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
