/* SPDX-License-Identifier: Apache-2.0 */
/* bpe_test.c - the two ways of merging against a straightforward one, over random merges, words and lengths. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "text/tokenizer/bpe.h"

enum { LETTERS = 6, MERGES = 60, LONGEST = 300 };

typedef struct rule {
    int32_t left, right, id;
    uint32_t rank;
} rule;

/* The definition: merges the pair of lowest rank, of equal ranks the leftmost, until none is left. */
static size_t merge_by_definition(const rule *rules, size_t n_rules, int32_t *ids, size_t n) {
    for (;;) {
        const rule *best = NULL;
        size_t place = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            for (size_t k = 0; k < n_rules; k++) {
                bool fits = rules[k].left == ids[i] && rules[k].right == ids[i + 1];
                if (!fits || (best && rules[k].rank >= best->rank)) continue;
                best = &rules[k];
                place = i;
            }
        }
        if (!best) return n;
        ids[place] = best->id;
        memmove(&ids[place + 1], &ids[place + 2], (n - place - 2) * sizeof *ids);
        n--;
    }
}

/* Distinct pairs of letters and earlier results; ranks in order, or several of one rank. */
static size_t random_rules(rule *rules, uint64_t *seed, bool shared_ranks) {
    size_t n = 0;
    while (n < MERGES) {
        int32_t known = LETTERS + (int32_t)n;
        rule r = {(int32_t)(hn_splitmix(seed) % (uint64_t)known), (int32_t)(hn_splitmix(seed) % (uint64_t)known), known,
                  0};
        bool taken = false;
        for (size_t k = 0; k < n; k++) taken |= rules[k].left == r.left && rules[k].right == r.right;
        if (taken) continue;
        r.rank = (uint32_t)(shared_ranks ? n / 5 : n);
        rules[n++] = r;
    }
    return n;
}

static void check_word(const hn_bpe *b, const rule *rules, hn_bpe_work *w, uint64_t *seed, size_t n) {
    int32_t want[LONGEST];
    size_t got = n, letters = 1 + hn_splitmix(seed) % LETTERS;
    assert_true(hn_bpe_work_reserve(w, n));
    for (size_t i = 0; i < n; i++) {
        bool hole = hn_splitmix(seed) % 16 == 0; /* a symbol that merges with nothing */
        want[i] = w->ids[i] = hole ? -1 : (int32_t)(hn_splitmix(seed) % letters);
        w->starts[i] = (uint32_t)i;
    }
    size_t expected = merge_by_definition(rules, MERGES, want, n);
    assert_true(hn_bpe_merge(b, w, &got));
    assert_int_equal(got, expected);
    assert_memory_equal(w->ids, want, expected * sizeof *want);
    assert_int_equal(w->starts[0], 0);
    for (size_t i = 1; i < got; i++) assert_true(w->starts[i] > w->starts[i - 1] && w->starts[i] < n);
}

static void test_against_definition(void **state) {
    (void)state;
    uint64_t seed = 2026;
    hn_bpe_work w = {0};
    for (int round = 0; round < 60; round++) {
        rule rules[MERGES];
        hn_bpe b = {0};
        size_t n = random_rules(rules, &seed, round % 2);
        assert_true(hn_bpe_init(&b, n));
        for (size_t i = 0; i < n; i++) hn_bpe_put(&b, rules[i].left, rules[i].right, rules[i].rank, rules[i].id);
        for (size_t len = 1; len <= 90; len += 1 + len / 30) check_word(&b, rules, &w, &seed, len);
        check_word(&b, rules, &w, &seed, LONGEST);
        hn_bpe_fini(&b);
    }
    hn_bpe_work_fini(&w);
}

static void test_lower_rank_stays(void **state) {
    (void)state;
    hn_bpe b = {0};
    hn_bpe_work w = {0};
    size_t n = 2;
    assert_true(hn_bpe_init(&b, 3) && hn_bpe_work_reserve(&w, 2));
    hn_bpe_put(&b, 1, 2, 9, 7);
    hn_bpe_put(&b, 1, 2, 3, 8);
    hn_bpe_put(&b, 1, 2, 5, 9);
    w.ids[0] = 1;
    w.ids[1] = 2;
    w.starts[0] = 0;
    w.starts[1] = 1;
    assert_true(hn_bpe_merge(&b, &w, &n));
    assert_int_equal(n, 1);
    assert_int_equal(w.ids[0], 8);
    hn_bpe_fini(&b);
    hn_bpe_work_fini(&w);
}

static void test_no_memory(void **state) {
    (void)state;
    hn_bpe b = {0};
    assert_true(hn_bpe_init(&b, 1));
    hn_bpe_put(&b, 0, 0, 0, 1);
    int failed = 0;
    for (int64_t after = 0; after < 40; after++) {
        hn_bpe_work w = {0};
        size_t n = 100;
        hn_fault_arm(HN_FAULT_ALLOC, after, true);
        bool ok = hn_bpe_work_reserve(&w, n);
        for (size_t i = 0; ok && i < n; i++) w.ids[i] = 0, w.starts[i] = (uint32_t)i;
        ok = ok && hn_bpe_merge(&b, &w, &n);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_int_equal(n, ok ? 50 : 100);
        failed += !ok;
        hn_bpe_work_fini(&w);
    }
    assert_in_range(failed, 4, 39); /* some of the first calls failed, some later one did not */
    hn_bpe_fini(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_definition),
        cmocka_unit_test(test_lower_rank_stays),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
