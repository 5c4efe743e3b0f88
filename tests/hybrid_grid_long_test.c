/* SPDX-License-Identifier: Apache-2.0 */
/* hybrid_grid_long_test.c - models with gated delta nets, with any drafter and any division of the work (contracts C1, C2, C4):
 * hundreds of cells of hybrid_grid.h at every level of the machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hybrid_grid.h"

/* README: "By default tokens and logits are the same bits with and without drafting, at temperature 0 and with
 * sampling." */
static void test_cells(void **state) {
    (void)state;
    for (int i = 0; i < GRID_MODELS; i++) {
        const grid_sums sums = grid_check(grid_models[i], light() ? 2 : 40, false, 211 + (uint64_t)i);
        assert_true(sums.accepted > 0 && sums.restored > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
