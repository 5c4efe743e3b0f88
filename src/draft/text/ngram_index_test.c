/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_index_test.c - the index compared with a plain search, grown in random steps, rewound, and without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "draft/text/ngram_index.h"

enum { TEXT = 300 };

/* Where token[n-len..n) occurs so that it ends at or before `end`; -1: nowhere. */
static int plain_find(const int32_t *token, int n, int end, int len, bool latest) {
    int found = -1;
    for (int i = 0; i + len <= end && i + len <= n; i++)
        if (!memcmp(token + i, token + n - len, (size_t)len * sizeof *token)) {
            found = i;
            if (!latest) break;
        }
    return found;
}

static void expect_plain(const hn_ngram_index *x, const int32_t *token, int n) {
    int32_t position[HN_NGRAM_MAX + 1];
    int longest = hn_ngram_index_find(x, token, n, position);
    int expected = 0;
    for (int len = x->min; len <= x->max && len <= n; len++) {
        int at = plain_find(token, n, x->end, len, x->latest);
        if (at < 0) continue;
        expected = len;
        assert_true(len <= longest);
        assert_int_equal(position[len], at);
    }
    assert_int_equal(longest, expected);
}

/* The memory of an index is known before it is made. */
static void test_bytes(void **state) {
    (void)state;
    int32_t token[TEXT];
    for (int i = 0; i < TEXT; i++) token[i] = i;
    for (int n = 0; n <= TEXT; n += 7) {
        hn_ngram_index x;
        size_t bytes = 0;
        hn_ngram_index_init(&x, 2, 5, true);
        hn_ngram_index_extend(&x, token, n);
        for (int len = 2; len <= 5; len++) bytes += x.table[len].size * sizeof *x.table[len].slot;
        const size_t most = hn_ngram_index_bytes(&x, (size_t)n); /* of n n-grams each; the text has a few less */
        if (n > 5 && (bytes > most || bytes < hn_ngram_index_bytes(&x, (size_t)n - 4))) fail_msg("%d tokens: %zu bytes", n, bytes);
        hn_ngram_index_fini(&x);
    }
}

static void test_against_plain_search(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 60; round++) {
        int32_t token[TEXT];
        int vocab = 1 + (int)(hn_splitmix(&seed) % 4), min = 1 + (int)(hn_splitmix(&seed) % 4);
        for (int i = 0; i < TEXT; i++) token[i] = (int32_t)(hn_splitmix(&seed) % (uint64_t)vocab);
        hn_ngram_index x;
        hn_ngram_index_init(&x, min, min + (int)(hn_splitmix(&seed) % 8), round % 2);
        for (int n = 0; n <= TEXT; n += 1 + (int)(hn_splitmix(&seed) % 9)) {
            if (hn_splitmix(&seed) % 16 == 0) n /= 2; /* rewound: occurrences after n are removed */
            hn_ngram_index_extend(&x, token, n > 0 ? n - 1 : 0);
            hn_ngram_index_extend(&x, token, n > 0 ? n - 1 : 0); /* idempotent */
            expect_plain(&x, token, n);
        }
        hn_ngram_index_fini(&x);
    }
}

/* Growth that fails leaves n-grams out, never a wrong position. */
static void test_no_memory(void **state) {
    (void)state;
    uint64_t seed = 6;
    int32_t token[TEXT], position[HN_NGRAM_MAX + 1];
    for (int i = 0; i < TEXT; i++) token[i] = (int32_t)(hn_splitmix(&seed) % 40);
    for (int after = 0; after < 12; after++) {
        hn_ngram_index x;
        hn_ngram_index_init(&x, 1, 3, true);
        hn_fault_arm(HN_FAULT_ALLOC, after, true);
        hn_ngram_index_extend(&x, token, TEXT - 1);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        int longest = hn_ngram_index_find(&x, token, TEXT, position);
        for (int n = 1; n <= longest; n++) assert_memory_equal(token + position[n], token + TEXT - n, (size_t)n * sizeof *token);
        hn_ngram_index_fini(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes), cmocka_unit_test(test_against_plain_search),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
