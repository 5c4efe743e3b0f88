/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_test.c - levels that this machine has are complete, those that it lacks were never touched: what fills a table is
 * compiled for its level. scripts/test-cpus.sh runs this on processors without any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/kernels.h"

/* README: "It runs on x86-64 processors without AVX2." */
static void test_only_levels_of_this_machine_are_filled(void **state) {
    (void)state;
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa++) {
        const struct hn_kernels *k = hn_kernels_get(isa);
        assert_int_equal(k->store != NULL, hn_isa_has(isa));
        assert_int_equal(k->linear_q8[HN_Q4_0] != NULL, hn_isa_has(isa));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_only_levels_of_this_machine_are_filled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
