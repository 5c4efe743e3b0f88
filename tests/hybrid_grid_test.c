/* SPDX-License-Identifier: Apache-2.0 */
/* hybrid_grid_test.c - models with gated delta nets, with any drafter and any division of the work (contracts C1, C2, C4):
 * some cells of hybrid_grid.h at the best level; hybrid_grid_long_test.c has many, at every level. */
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
    uint64_t accepted = 0;
    for (int i = 0; i < GRID_MODELS; i++) accepted += grid_check(grid_models[i], light() ? 2 : 4, true, 11 + (uint64_t)i).accepted;
    assert_true(accepted > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
