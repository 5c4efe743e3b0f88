/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_test.c - a level that this machine lacks is the level below it, of which it has everything: what fills a table is
 * compiled for its level, and must not run. scripts/test-cpus.sh runs this on processors without any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "ops/kernels.h"

/* README: "It runs on x86-64 processors without AVX2." */
static void test_only_levels_of_this_machine_are_filled(void **state) {
    (void)state;
    for (int isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa++) {
        const struct hn_kernels *k = hn_kernels_get((hn_isa)isa), *below = hn_kernels_get(hn_isa_below((hn_isa)isa));
        assert_non_null(k->store);
        assert_non_null(k->linear_q8[HN_Q4_0]);
        if (isa != HN_ISA_REF) assert_int_equal(memcmp(k, below, sizeof *k) != 0, hn_isa_has((hn_isa)isa));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_only_levels_of_this_machine_are_filled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
