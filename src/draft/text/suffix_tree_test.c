/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_tree_test.c - counts, followers and shape compared with recounting, through growth, cuts and removals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/random.h"
#include "draft/text/suffix_tree.h"
#include "fixture.h"
#include "suffix_naive.h"

/* Every string of the texts and every one-token change of it: its count, its followers and their order. */
static void check_counts(const hn_suffix_tree *t, const naive_texts *x) {
    for (int k = 0; k < x->n; k++)
        for (int i = 0; i < x->text[k].n; i++)
            for (int len = 1; len <= x->window + 1 && i + len <= x->text[k].n; len++)
                for (int change = 0; change < 2; change++) {
                    int32_t s[NAIVE_TOKENS], token[NAIVE_VOCAB];
                    int count[NAIVE_VOCAB], last;
                    memcpy(s, x->text[k].token + i, (size_t)len * sizeof *s);
                    s[len - 1] ^= change;
                    hn_suffix_point p;
                    int want = naive_count(x, s, len, &last);
                    assert_int_equal(hn_suffix_find(t, s, len, &p), want > 0);
                    if (!want) continue;
                    assert_int_equal(hn_suffix_total(t, p), want);
                    hn_suffix_next next[NAIVE_VOCAB];
                    int n = naive_follow(x, s, len, token, count);
                    assert_int_equal(hn_suffix_follow(t, p, 1, next, NAIVE_VOCAB), n);
                    for (int f = 0; f < n; f++) {
                        assert_int_equal(next[f].token, token[f]);
                        assert_int_equal(next[f].count, count[f]);
                    }
                    /* the best of them, and those that are frequent enough, come first */
                    if (n) assert_int_equal(hn_suffix_follow(t, p, (uint32_t)count[n / 2], next, 1), 1);
                    if (n) assert_int_equal(next[0].token, token[0]);
                    int least = 0;
                    while (least < n && count[least] >= 2) least++;
                    assert_int_equal(hn_suffix_follow(t, p, 2, next, NAIVE_VOCAB), least);
                }
}

static uint32_t nodes_live(const hn_suffix_tree *t) {
    return t->n_nodes ? t->n_nodes - t->n_free - 1 : 0; /* without the root */
}

/* Storing the same texts at once gives a tree with as many nodes; with equal counts and the unique shape it is the same. */
static void check_rebuilt(const hn_suffix_tree *t, const naive_texts *x) {
    hn_suffix_tree fresh;
    hn_suffix_init(&fresh, x->window, 100000);
    assert_true(hn_suffix_count(&fresh));
    for (int k = 0; k < x->n; k++) {
        hn_suffix_break(&fresh);
        assert_true(hn_suffix_put(&fresh, x->text[k].token, (uint32_t)x->text[k].n));
        assert_true(hn_suffix_count(&fresh));
    }
    assert_int_equal(nodes_live(&fresh), nodes_live(t));
    hn_suffix_fini(&fresh);
}

/* The tails of the growing text are at the places that a search for them finds. */
static void check_tails(const hn_suffix_tree *t, const naive_texts *x) {
    const int32_t *token = x->text[x->n - 1].token;
    int n = x->text[x->n - 1].n;
    assert_int_equal(t->n_active, n < x->window - 1 ? n : x->window - 1);
    for (int m = 1; m <= t->n_active; m++) {
        hn_suffix_point p, tail = hn_suffix_tail(t, (uint32_t)m);
        assert_true(hn_suffix_find(t, token + n - m, m, &p));
        assert_true(p.node == tail.node && p.used == tail.used);
    }
}

static void text_drop(naive_texts *x, int k) {
    x->n--;
    memmove(&x->text[k], &x->text[k + 1], (size_t)(x->n - k) * sizeof x->text[0]);
}

static void test_counts(void **state) {
    (void)state;
    static naive_texts x;
    for (uint64_t seed = 1, round = 0; round < (light() ? 60 : 300); round++) {
        uint64_t vocab = 2 + hn_splitmix(&seed) % 4;
        uint32_t first = round % 3 ? 0 : UINT32_MAX - 40; /* positions wrap */
        uint32_t start[NAIVE_TEXTS];
        hn_suffix_tree t;
        x.window = 1 + (int)(hn_splitmix(&seed) % 16);
        x.n = 0;
        hn_suffix_init(&t, x.window, 1000);
        hn_suffix_clear(&t, first);
        int texts = 1 + (int)(hn_splitmix(&seed) % 6);
        for (int k = 0; k < texts; k++) {
            if (x.n && hn_splitmix(&seed) % 2) { /* removes the oldest */
                uint32_t end = start[0] + (uint32_t)x.text[0].n;
                hn_suffix_remove(&t, start[0], end, end);
                hn_suffix_release(&t, end);
                text_drop(&x, 0);
                memmove(start, start + 1, sizeof start - sizeof *start);
                assert_true(hn_suffix_valid(&t));
            }
            hn_suffix_break(&t);
            start[x.n] = t.end;
            int n = (int)(hn_splitmix(&seed) % 40);
            x.text[x.n++].n = 0;
            for (int i = 0; i < n;) { /* grows in steps */
                int step = 1 + (int)(hn_splitmix(&seed) % 5);
                for (; step > 0 && i < n; step--, i++) {
                    int32_t token = (int32_t)(hn_splitmix(&seed) % vocab);
                    x.text[x.n - 1].token[x.text[x.n - 1].n++] = token;
                    assert_true(hn_suffix_put(&t, &token, 1));
                }
                assert_true(hn_suffix_count(&t));
                assert_true(hn_suffix_valid(&t));
                check_tails(&t, &x);
            }
            check_rebuilt(&t, &x);
        }
        check_counts(&t, &x);
        while (x.n) {
            uint32_t end = start[0] + (uint32_t)x.text[0].n;
            hn_suffix_remove(&t, start[0], end, end);
            hn_suffix_release(&t, end);
            text_drop(&x, 0);
            memmove(start, start + 1, sizeof start - sizeof *start);
            check_rebuilt(&t, &x);
        }
        assert_int_equal(nodes_live(&t), 0);
        hn_suffix_fini(&t);
    }
}

/* One text of which only the newest part is stored, and which is rewound now and then. */
static void test_sliding(void **state) {
    (void)state;
    static naive_texts x = {.window = 9, .n = 1};
    int32_t text[NAIVE_TOKENS];
    uint64_t seed = 5;
    hn_suffix_tree t;
    hn_suffix_init(&t, x.window, 60);
    uint32_t n = 0;
    for (int step = 0; step < (light() ? 500 : 3000); step++) {
        if (t.end - t.head == 60) {
            hn_suffix_remove(&t, t.head, t.head + 7, t.open);
            hn_suffix_release(&t, t.head + 7);
        }
        text[n % NAIVE_TOKENS] = (int32_t)(hn_splitmix(&seed) % 3);
        assert_true(hn_suffix_put(&t, &text[n++ % NAIVE_TOKENS], 1));
        if (step % 4) continue;
        if (step % 100 == 96) hn_suffix_cut(&t, n -= 5);
        assert_true(hn_suffix_count(&t));
        assert_true(hn_suffix_valid(&t));
        x.text[0].n = (int)(n - t.head);
        for (uint32_t i = t.head; i < n; i++) x.text[0].token[i - t.head] = text[i % NAIVE_TOKENS];
        check_tails(&t, &x);
        if (step % 20 == 0) check_counts(&t, &x);
    }
    hn_suffix_fini(&t);
}

/* Large token ids, and a node with very many children: the search trees stay shallow. */
static void test_many_kids(void **state) {
    (void)state;
    enum { KIDS = 5000 };
    hn_suffix_tree t;
    hn_suffix_init(&t, 3, 4 * KIDS);
    for (int round = 0; round < 2; round++)
        for (int32_t i = 0; i < KIDS; i++) assert_true(hn_suffix_put(&t, (int32_t[]){7, INT32_MAX - 64 * i}, 2));
    assert_true(hn_suffix_count(&t));
    assert_true(hn_suffix_valid(&t));
    hn_suffix_point p;
    hn_suffix_next next[3];
    assert_true(hn_suffix_find(&t, (int32_t[]){7}, 1, &p));
    assert_int_equal(hn_suffix_total(&t, p), 2 * KIDS);
    assert_int_equal(hn_suffix_follow(&t, p, 2, next, 3), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(next[i].token, INT32_MAX - 64 * i); /* the first that occurred twice */
    hn_suffix_fini(&t);
}

/* Never more tokens and bytes than allowed, for any text. */
static void test_bounds(void **state) {
    (void)state;
    const size_t bytes = 200000;
    uint32_t most = hn_suffix_capacity(bytes);
    assert_true(most > bytes / 90);
    uint64_t seed = 6;
    for (uint64_t vocab = 1; vocab < 200000; vocab *= 40) {
        hn_suffix_tree t;
        hn_suffix_init(&t, 16, most);
        for (uint32_t i = 0; i < most; i++)
            assert_true(hn_suffix_put(&t, &(int32_t){(int32_t)(hn_splitmix(&seed) % vocab)}, 1));
        assert_false(hn_suffix_put(&t, &(int32_t){0}, 1));
        assert_true(hn_suffix_count(&t));
        assert_true(hn_suffix_bytes(&t) <= bytes);
        assert_true(hn_suffix_valid(&t));
        hn_suffix_fini(&t);
    }
    assert_int_equal(hn_suffix_capacity(0), 0);
}

/* An allocation that fails changes nothing; the next attempt succeeds. */
static void test_no_memory(void **state) {
    (void)state;
    hn_suffix_tree t;
    hn_suffix_init(&t, 8, 10000);
    int failed = 0;
    uint64_t seed = 7;
    for (int i = 0; i < 3000; i++) {
        int32_t token = (int32_t)(hn_splitmix(&seed) % 9);
        hn_fault_arm(HN_FAULT_ALLOC, 0, true);
        uint32_t end = t.end, open = t.open;
        if (!hn_suffix_put(&t, &token, 1)) {
            failed++;
            assert_int_equal(t.end, end);
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            assert_true(hn_suffix_put(&t, &token, 1));
            hn_fault_arm(HN_FAULT_ALLOC, 0, true);
        }
        if (!hn_suffix_count(&t)) {
            failed++;
            assert_int_equal(t.open, open);
            assert_true(hn_suffix_valid(&t));
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            assert_true(hn_suffix_count(&t));
        }
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    }
    assert_true(failed > 10);
    assert_true(hn_suffix_valid(&t));
    hn_suffix_fini(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_sliding),   cmocka_unit_test(test_many_kids),
        cmocka_unit_test(test_bounds), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
