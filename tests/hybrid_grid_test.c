/* SPDX-License-Identifier: Apache-2.0 */
/* hybrid_grid_test.c - models with every kind of mixers, with any drafter and any division of the work (contracts C1, C2, C4):
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
    const char *isa[HN_ISA_COUNT];
    const int best = levels(isa) - 1, n = light() ? 2 : 4;
    grid_sums sums = {0};
    grid_sizes[GRID_LEVEL] = best + 1;
    for (int i = 0; i < 2 * GRID_MODELS; i++) {
        uint64_t rng = 11 + (uint64_t)i;
        grid_cell cell[4];
        const int cells = i / 2 < GRID_HYBRIDS ? n : 2;
        for (int k = 0; k < cells; k++) {
            cell[k] = grid_draw(&rng);
            cell[k].of[GRID_MODEL] = i / 2;
            cell[k].of[GRID_HOT] = i % 2;
            cell[k].of[GRID_LEVEL] = best;
        }
        grid_check_all(cell, cells, isa[best], cell, &sums);
    }
    print_message("%d drafts accepted, %d rows restored, %d places lost\n", (int)sums.accepted, (int)sums.restored, (int)sums.preempted);
    assert_true(sums.accepted > 0 && sums.restored > 0 && sums.preempted > 0);
#define RAN(NAME) assert_true(grid_has_kind(&hn_mixer_##NAME));
    HN_MIXERS(RAN)
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
