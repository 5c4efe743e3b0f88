/* SPDX-License-Identifier: Apache-2.0 */
/* token_rows_test.c - rows of tokens: a token keeps its row while it has it, and within a call no row is given to two; missing memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "base/random.h"
#include "model/token_rows.h"

enum { TOKENS = 40, ROWS = 12, CALLS = 400 };

/* What a user's table would have: the token that each row was computed for. */
static void test_rows_hold_their_tokens(void **state) {
    (void)state;
    hn_token_rows t;
    int32_t holds[ROWS];
    uint64_t x = 3;
    int computed = 0, found = 0;
    assert_int_equal(hn_token_rows_open(&t, TOKENS, ROWS, NULL), HUNCH_OK);
    for (int i = 0; i < ROWS; i++) holds[i] = -1;
    for (int call = 0; call < CALLS; call++) {
        int32_t token[ROWS];
        int row[ROWS];
        const int n = 1 + (int)(hn_splitmix(&x) % (ROWS - 1));
        hn_token_rows_begin(&t);
        for (int i = 0; i < n; i++) {
            bool fresh;
            token[i] = (int32_t)(hn_splitmix(&x) % (call % 2 ? TOKENS : ROWS - 2));
            row[i] = hn_token_rows_find(&t, token[i], &fresh);
            assert_in_range(row[i], 0, ROWS - 1);
            if (fresh) holds[row[i]] = token[i];
            computed += fresh;
        }
        for (int i = 0; i < n; i++) assert_int_equal(holds[row[i]], token[i]);
        found += n;
    }
    assert_in_range(computed, TOKENS, found * 2 / 3);
    hn_token_rows_close(&t);
}

static void test_without_memory(void **state) {
    (void)state;
    for (int at = 0; at < 3; at++) {
        hn_token_rows t;
        hunch_error err;
        hn_fault_arm(HN_FAULT_ALLOC, at, false);
        assert_int_equal(hn_token_rows_open(&t, TOKENS, ROWS, &err), HUNCH_NO_MEMORY);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        hn_token_rows_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_hold_their_tokens), cmocka_unit_test(test_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
