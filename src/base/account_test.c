/* SPDX-License-Identifier: Apache-2.0 */
/* account_test.c - what is promised is not offered twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/account.h"

static void test_promises(void **state) {
    (void)state;
    hn_account a = {0};
    assert_int_equal(hn_account_left(&a, 1000), 1000);
    hn_account_add(&a, HN_ACCOUNT_PAGES, 600, 0);
    assert_int_equal(hn_account_left(&a, 1000), 400);
    hn_account_add(&a, HN_ACCOUNT_PAGES, 0, 250); /* the system has less by as much */
    assert_int_equal(hn_account_left(&a, 750), 400);
    hn_account_add(&a, HN_ACCOUNT_GRAMMARS, 10, 30); /* more than planned: nothing is promised */
    assert_int_equal(hn_account_left(&a, 720), 370);
    hn_account_add(&a, HN_ACCOUNT_STORES, 5000, 0);
    assert_int_equal(hn_account_left(&a, 720), 370);
    assert_int_equal(hn_account_left(&a, 300), 0);
    assert_int_equal(hn_account_planned(&a, HN_ACCOUNT_PAGES), 600);
    assert_int_equal(hn_account_taken(&a, HN_ACCOUNT_PAGES), 250);
    hn_account_add(NULL, HN_ACCOUNT_PAGES, 1, 1);
    assert_int_equal(hn_account_left(NULL, 5), 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
