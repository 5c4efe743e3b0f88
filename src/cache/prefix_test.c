/* SPDX-License-Identifier: Apache-2.0 */
/* prefix_test.c - the trie alone: nodes represent whole texts, the order of use, random adds and removes against a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/random.h"
#include "cache/prefix.h"

enum { B = 4, SLOTS = 3 };

static void init(hn_prefix *x, int max_nodes) {
    hunch_error err;
    assert_int_equal(hn_prefix_init(x, B, SLOTS, max_nodes, &err), HUNCH_OK);
}

static void test_names_are_texts(void **state) {
    (void)state;
    static const int32_t one[B] = {1, 2, 3, 4}, two[B] = {1, 2, 9, 4}, big[B] = {-1, INT32_MAX, INT32_MIN, 0};
    hn_prefix x;
    init(&x, 64);
    assert_null(hn_prefix_child(&x, 0, NULL, one));
    hn_prefix_node *a = hn_prefix_add(&x, 0, NULL, one, B), *b = hn_prefix_add(&x, 0, a, one, B), *c = hn_prefix_add(&x, 0, a, two, B),
             *d = hn_prefix_add(&x, 0, NULL, big, B);
    assert_true(a && b && c && d);
    for (int i = 0; i < SLOTS; i++) assert_int_equal(a->page[i], HN_NO_PAGE);
    assert_ptr_equal(hn_prefix_child(&x, 0, NULL, one), a);
    assert_ptr_equal(hn_prefix_child(&x, 0, a, one), b);
    assert_ptr_equal(hn_prefix_child(&x, 0, a, two), c);
    assert_ptr_equal(hn_prefix_child(&x, 0, NULL, big), d);
    assert_null(hn_prefix_child(&x, 0, NULL, two));
    assert_null(hn_prefix_child(&x, 0, b, one));
    assert_int_equal(b->depth, 1);
    assert_true(hn_prefix_valid(&x));
    hn_prefix_remove(&x, b);
    assert_null(hn_prefix_child(&x, 0, a, one));
    assert_true(hn_prefix_valid(&x));
    hn_prefix_clear(&x);
    assert_int_equal(x.n_blocks, 0);
    assert_null(hn_prefix_child(&x, 0, NULL, one));
    assert_true(hn_prefix_valid(&x));
    hn_prefix_fini(&x);
}

/* The buckets of a text are others in each index, so nobody can prepare texts of one bucket. */
static void test_buckets_are_secret(void **state) {
    (void)state;
    static const int32_t one[B] = {1, 2, 3, 4};
    hn_prefix x, y;
    init(&x, 64);
    init(&y, 64);
    const hn_prefix_node *a = hn_prefix_add(&x, 0, NULL, one, B), *b = hn_prefix_add(&y, 0, NULL, one, B);
    assert_true(a && b && a->hash != b->hash);
    hn_prefix_fini(&x);
    hn_prefix_fini(&y);
}

/* Texts of equal hash are distinguished by their tokens: changes those of a node under its hash. */
static void test_tokens_are_compared(void **state) {
    (void)state;
    static const int32_t one[B] = {1, 2, 3, 4};
    hn_prefix x;
    init(&x, 64);
    hn_prefix_node *a = hn_prefix_add(&x, 0, NULL, one, B);
    for (int i = 0; i < B; i++) {
        a->token[i] ^= 0x10000;
        assert_null(hn_prefix_child(&x, 0, NULL, one));
        a->token[i] ^= 0x10000;
    }
    assert_ptr_equal(hn_prefix_child(&x, 0, NULL, one), a);
    hn_prefix_fini(&x);
}

static void test_order_of_use(void **state) {
    (void)state;
    hn_prefix x;
    init(&x, 64);
    hn_prefix_node *path[6];
    for (int32_t i = 0; i < 6; i++) {
        const int32_t token[B] = {i, i, i, i};
        path[i] = hn_prefix_add(&x, 0, i % 3 ? path[i - 1] : NULL, token, B);
    }
    hn_prefix_touch(&x, path[1]); /* oldest to newest: 2, 3, 4, 5, then 1, 0 */
    static const int want[6] = {2, 3, 4, 5, 1, 0};
    const hn_prefix_node *b = x.oldest;
    for (int i = 0; i < 6; i++, b = b->newer) assert_ptr_equal(b, path[want[i]]);
    assert_null(b);
    hn_prefix_touch(&x, NULL);
    assert_ptr_equal(x.newest, path[0]);
    assert_true(hn_prefix_valid(&x));
    hn_prefix_fini(&x);
}

/* Of the leaves of a parent, in the order in which they were added, that with most of these tokens. */
static hn_prefix_node *naive_leaf(hn_prefix_node *const *all, const int *added, int n, const hn_prefix_node *parent, const int32_t *token,
                                  int tokens, int *same) {
    int best = -1;
    *same = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        if (all[i]->parent != parent || all[i]->n == B) continue;
        while (k < tokens && k < all[i]->n && all[i]->token[k] == token[k]) k++;
        if (k > 0 && (k > *same || (k == *same && added[i] > added[best]))) *same = k, best = i;
    }
    return best < 0 ? NULL : all[best];
}

static void test_random_walk(void **state) {
    (void)state;
    enum { MOST = 60 };
    hn_prefix x;
    init(&x, 8);
    hn_prefix_node *all[MOST];
    uint64_t rng = 3;
    int added[MOST], n = 0, leaves = 0;
    for (int step = 0; step < 5000; step++) {
        const int pick = n ? (int)(hn_splitmix(&rng) % (uint64_t)n) : 0, tokens = step % 3 ? B : 1 + (int)(hn_splitmix(&rng) % (B - 1));
        hn_prefix_node *parent = n && hn_splitmix(&rng) % 5 && all[pick]->n == B ? all[pick] : NULL;
        int32_t token[B];
        for (int i = 0; i < B; i++) token[i] = (int32_t)(hn_splitmix(&rng) % 2);
        hn_prefix_node *known = NULL;
        int same, naive;
        for (int i = 0; i < n; i++)
            if (all[i]->parent == parent && all[i]->n == B && memcmp(all[i]->token, token, sizeof token) == 0) known = all[i];
        assert_ptr_equal(hn_prefix_child(&x, 0, parent, token), known);
        hn_prefix_node *leaf = hn_prefix_leaf(&x, 0, parent, token, tokens, &same);
        assert_ptr_equal(leaf, naive_leaf(all, added, n, parent, token, tokens, &naive));
        assert_int_equal(same, naive);
        leaves += leaf != NULL;
        if (tokens < B) known = leaf && leaf->n == tokens && same == tokens ? leaf : NULL;
        if (!known && n < MOST) {
            added[n] = step;
            all[n] = hn_prefix_add(&x, 0, parent, token, tokens);
            assert_ptr_equal(x.newest, all[n++]);
        } else if (n && all[pick]->children == 0) {
            hn_prefix_remove(&x, all[pick]);
            added[pick] = added[--n];
            all[pick] = all[n];
        } else if (n)
            hn_prefix_touch(&x, all[pick]);
        assert_int_equal(x.n_blocks, n);
        assert_true(hn_prefix_valid(&x));
    }
    assert_true(leaves > 500);
    hn_prefix_fini(&x);
}

static void test_most_leaves(void **state) {
    (void)state;
    hn_prefix x;
    init(&x, 8);
    hn_prefix_node *leaf[6];
    for (int i = 0; i < 6; i++) leaf[i] = hn_prefix_add(&x, 0, NULL, (const int32_t[]){i, 7}, 2);
    assert_non_null(hn_prefix_add(&x, 0, NULL, (const int32_t[B]){1, 7, 1, 1}, B)); /* is none */
    assert_null(hn_prefix_leaf_beyond(&x, 0, NULL, 6));
    assert_ptr_equal(hn_prefix_leaf_beyond(&x, 0, NULL, 5), leaf[0]);
    assert_ptr_equal(hn_prefix_leaf_beyond(&x, 0, NULL, 2), leaf[3]);
    assert_null(hn_prefix_leaf_beyond(&x, 0, hn_prefix_child(&x, 0, NULL, (const int32_t[B]){1, 7, 1, 1}), 0));
    hn_prefix_fini(&x);
}

static void test_memory_faults(void **state) {
    (void)state;
    static const int32_t token[B] = {5, 6, 7, 8};
    hn_prefix x;
    hunch_error err;
    hn_fault_arm(HN_FAULT_ALLOC, 0, false);
    assert_int_equal(hn_prefix_init(&x, B, SLOTS, 100, &err), HUNCH_NO_MEMORY);
    hn_prefix_fini(&x);
    init(&x, 100);
    hn_prefix_node *a = hn_prefix_add(&x, 0, NULL, token, B);
    hn_fault_arm(HN_FAULT_ALLOC, 0, false);
    assert_null(hn_prefix_add(&x, 0, a, token, B));
    assert_int_equal(a->children, 0);
    assert_true(hn_prefix_valid(&x));
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    assert_non_null(hn_prefix_add(&x, 0, a, token, B));
    hn_prefix_fini(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_are_texts), cmocka_unit_test(test_buckets_are_secret),
                                       cmocka_unit_test(test_tokens_are_compared), cmocka_unit_test(test_order_of_use),
                                       cmocka_unit_test(test_random_walk), cmocka_unit_test(test_most_leaves),
                                       cmocka_unit_test(test_memory_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
