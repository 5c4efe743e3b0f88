/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_store_test.c - which earlier texts count: first in first out, one of two if one is a prefix of the other, and never
 * more memory than allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/random.h"
#include "draft/text/suffix_store.h"
#include "fixture.h"
#include "suffix_naive.h"

/* As at the end of a sequence; its text need not be counted. */
static void add(hn_suffix_store *s, const int32_t *token, int n) {
    hn_suffix_tree text;
    hn_suffix_init(&text, 8, 100000);
    assert_true(hn_suffix_put(&text, token, (uint32_t)n));
    hn_suffix_store_add(s, &text);
    hn_suffix_fini(&text);
}

static int count(const hn_suffix_store *s, const int32_t *token, int n) {
    hn_suffix_point p;
    return hn_suffix_find(&s->tree, token, n, &p) ? (int)hn_suffix_total(&s->tree, p) : 0;
}
#define COUNT(s, ...) count(s, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
#define ADD(s, ...) add(s, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void test_replaced(void **state) {
    (void)state;
    hn_suffix_store s;
    assert_true(hn_suffix_store_init(&s, 8, 1 << 20, 4));
    ADD(&s, 1, 2, 3);
    ADD(&s, 1, 2, 9); /* another text */
    assert_int_equal(COUNT(&s, 1, 2), 2);
    ADD(&s, 1, 2, 3, 4); /* continues the first one: counts once */
    assert_int_equal(COUNT(&s, 1, 2), 2);
    assert_int_equal(COUNT(&s, 2, 3), 1);
    assert_int_equal(COUNT(&s, 3, 4), 1);
    ADD(&s, 1, 2, 3, 4); /* the same again */
    ADD(&s, 1, 2);       /* its beginning */
    assert_int_equal(COUNT(&s, 1, 2), 2);
    assert_int_equal(s.n, 2); /* the replaced text was the oldest, so it is removed completely */
    ADD(&s, 1, 2, 9, 9);      /* here it stays until it is the oldest */
    ADD(&s, 5);
    ADD(&s, 1, 2, 9, 9, 9);
    assert_int_equal(COUNT(&s, 9, 9), 2);
    assert_int_equal(COUNT(&s, 1, 2), 2);
    assert_true(hn_suffix_valid(&s.tree));
    ADD(&s, 6);
    assert_int_equal(COUNT(&s, 1, 2), 1); /* {1, 2, 3, 4} was the oldest of four */
    hn_suffix_store_clear(&s);
    assert_int_equal(COUNT(&s, 1), 0);
    ADD(&s, 1, 2);
    assert_int_equal(COUNT(&s, 1), 1);
    hn_suffix_store_fini(&s);
    assert_true(hn_suffix_store_init(&s, 8, 1 << 20, 0));
    ADD(&s, 1, 2);
    assert_int_equal(COUNT(&s, 1), 0);
    hn_suffix_store_fini(&s);
}

/* Whether the one of fewer tokens is a prefix of the other. */
static bool overlap(const int32_t *a, int n, const int32_t *b, int m) {
    return !memcmp(a, b, (size_t)(n < m ? n : m) * sizeof *a);
}

/* Random texts, many of them cut from earlier ones or extending them: drafts equal those of recounting the texts that must be
 * stored, so a removed text has no effect. */
static void test_oracle(void **state) {
    (void)state;
    static naive_texts x = {.window = 8};
    const hn_suffix_rules path = {.depth = 8, .factor = 2, .min_p = .1},
                          tree = {.tree = true, .depth = 8, .factor = 2, .min_p = .1};
    uint64_t seed = 3;
    for (int round = 0; round < (light() ? 20 : 100); round++) {
        hn_suffix_store s;
        x.n = 0;
        assert_true(hn_suffix_store_init(&s, x.window, 1 << 20, 64)); /* room for all */
        for (int step = 0; step < 20; step++) {
            int32_t text[NAIVE_TOKENS];
            int n = 0, base = x.n ? (int)(hn_splitmix(&seed) % (uint64_t)x.n) : 0;
            if (x.n && hn_splitmix(&seed) % 2) {
                n = x.text[base].n - (int)(hn_splitmix(&seed) % 4);
                if (n < 0) n = 0;
                memcpy(text, x.text[base].token, (size_t)n * sizeof *text);
            }
            for (int more = 1 + (int)(hn_splitmix(&seed) % 20); more > 0 && n < 100; more--)
                text[n++] = (int32_t)(hn_splitmix(&seed) % 3);
            bool known = false;
            for (int k = 0; k < x.n; k++) known |= x.text[k].n >= n && overlap(x.text[k].token, x.text[k].n, text, n);
            add(&s, text, n);
            if (!known) {
                int kept = 0;
                for (int k = 0; k < x.n; k++)
                    if (!overlap(x.text[k].token, x.text[k].n, text, n)) x.text[kept++] = x.text[k];
                if (kept == NAIVE_TEXTS) break;
                x.text[kept].n = n;
                memcpy(x.text[kept].token, text, (size_t)n * sizeof *text);
                x.n = kept + 1;
            }
            assert_true(hn_suffix_valid(&s.tree));
            for (int k = 0; k < 4; k++) {
                hn_suffix_draft d, want;
                n = 2 + (int)(hn_splitmix(&seed) % 8);
                for (int i = 0; i < n; i++) text[i] = (int32_t)(hn_splitmix(&seed) % 3);
                const hn_suffix_rules *r = k % 2 ? &path : &tree;
                hn_suffix_best(&s.tree, r, text + n, n < x.window ? n - 1 : x.window - 1, &d);
                naive_best(&x, r, text, n, &want);
                assert_true(naive_same(&d, &want));
            }
        }
        hn_suffix_store_fini(&s);
    }
}

/* A million tokens of many texts, one of them larger than the store. */
static void test_bound(void **state) {
    (void)state;
    enum { LONGEST = 20000 };
    const size_t bytes = 1 << 20;
    int32_t *text = malloc(LONGEST * sizeof *text);
    uint64_t seed = 4;
    hn_suffix_store s;
    assert_true(hn_suffix_store_init(&s, 64, bytes, 100));
    const uint32_t most = s.tree.max_tokens;
    assert_true(most < LONGEST && most > 10000);
    long tokens = 0;
    for (int k = 0; tokens < (light() ? 100000 : 1000000); k++) {
        int n = k % 40 == 7 ? LONGEST : 1 + (int)(hn_splitmix(&seed) % 1500), vocab = 3 + k % 500 * (k % 500);
        for (int i = 0; i < n; i++)
            text[i] = i >= 300 && i % 200 < 100 ? text[i - 300] : (int32_t)(hn_splitmix(&seed) % (uint64_t)vocab);
        add(&s, text, n);
        tokens += n;
        assert_true(hn_suffix_bytes(&s.tree) <= bytes);
        assert_true(s.n <= 100 && s.tree.end - s.tree.head <= most);
        assert_true(count(&s, text + n - 5 * (n > 5), n > 5 ? 5 : n) > 0); /* the newest text is stored, to its end */
        if (k % 100 == 0) assert_true(hn_suffix_valid(&s.tree));
    }
    assert_true(hn_suffix_valid(&s.tree));
    hn_suffix_store_fini(&s);
    free(text);
}

/* A text for which there is no memory is left out; the others stay, later ones are added. */
static void test_no_memory(void **state) {
    (void)state;
    int32_t text[3000];
    uint64_t seed = 5;
    for (int i = 0; i < 3000; i++) text[i] = (int32_t)(hn_splitmix(&seed) % 1000);
    hn_fault_arm(HN_FAULT_ALLOC, 0, true);
    hn_suffix_store s;
    assert_false(hn_suffix_store_init(&s, 8, 1 << 20, 10));
    hn_suffix_store_fini(&s);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    assert_true(hn_suffix_store_init(&s, 8, 1 << 20, 10));
    hn_suffix_tree large;
    hn_suffix_init(&large, 8, 3000);
    assert_true(hn_suffix_put(&large, text, 3000));
    ADD(&s, 5001, 5002);
    bool entered = false;
    for (int after = 0; !entered; after++) {
        assert_true(after < 100);
        hn_fault_arm(HN_FAULT_ALLOC, after, true);
        hn_suffix_store_add(&s, &large);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        entered = count(&s, text, 8) == 1;
        assert_int_equal(s.n, 1 + entered);
        assert_true(hn_suffix_valid(&s.tree));
        assert_int_equal(COUNT(&s, 5001, 5002), 1);
        assert_int_equal(s.tree.open, s.tree.end);
        assert_true(after > 0 || !entered);
    }
    hn_suffix_fini(&large);
    hn_suffix_store_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
