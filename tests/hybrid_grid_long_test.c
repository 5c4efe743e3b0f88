/* SPDX-License-Identifier: Apache-2.0 */
/* hybrid_grid_long_test.c - models with every kind of mixers, with any drafter and any division of the work (contracts C1, C2, C4): cells
 * of hybrid_grid.h so that every two choices meet in one (every drafter at every level, every level with every chunk, ...), several
 * times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hybrid_grid.h"

enum { SEEDS = 2, SEED = 211, MOST_CELLS = 300, MOST_SIZE = 20, TRIES = 60 };
static bool met[GRID_CHOICES][GRID_CHOICES][MOST_SIZE][MOST_SIZE]; /* two choices, and what they were */

/* How many pairs of a cell no cell before it has; with `meet` they are marked. */
static int new_pairs(const grid_cell *c, bool meet) {
    int n = 0;
    for (int i = 0; i < GRID_CHOICES; i++)
        for (int k = i + 1; k < GRID_CHOICES; k++) {
            bool *m = &met[i][k][c->of[i]][c->of[k]];
            n += !*m;
            *m |= meet;
        }
    return n;
}

/* Each cell is the one of some drawn ones that has most new pairs, until there are none left. */
static int draw_cells(grid_cell *cell, uint64_t seed) {
    uint64_t rng = seed;
    int left = 0, n = 0;
    memset(met, 0, sizeof met);
    for (int i = 0; i < GRID_CHOICES; i++)
        for (int k = i + 1; k < GRID_CHOICES; k++) left += grid_sizes[i] * grid_sizes[k];
    for (int most; left > 0; left -= new_pairs(&cell[n++], true)) {
        assert_true(n < MOST_CELLS);
        most = 0;
        for (int t = 0; t < TRIES || most == 0; t++) {
            const grid_cell c = grid_draw(&rng);
            const int pairs = new_pairs(&c, false);
            if (pairs > most) cell[n] = c;
            most = pairs > most ? pairs : most;
        }
    }
    return n;
}

static void check_model(int model) {
    static grid_cell cell[SEEDS * MOST_CELLS];
    static int n, seeds;
    const char *isa[HN_ISA_COUNT];
    grid_cell like = {{0}};
    grid_sums sums = {0};
    grid_sizes[GRID_LEVEL] = levels(isa);
    for (; seeds < SEEDS; seeds++) n += draw_cells(cell + n, SEED + (uint64_t)seeds);
    for (int level = 0; level < grid_sizes[GRID_LEVEL]; level++)
        for (int hot = 0; hot < 2; hot++) {
            if (light() && (level + hot + model) % 6) continue;
            like.of[GRID_MODEL] = model;
            like.of[GRID_LEVEL] = level;
            like.of[GRID_HOT] = hot;
            grid_check_all(cell, n, isa[level], &like, &sums);
        }
    print_message("%s%s, of %d cells of seeds %d to %d: %d drafts accepted, %d rows restored, %d places lost\n",
                  grid_models[model].path, grid_models[model].what, n, SEED, SEED + SEEDS - 1, (int)sums.accepted,
                  (int)sums.restored, (int)sums.preempted);
    if (light() && model >= GRID_HYBRIDS) return; /* perhaps none of its cells */
    assert_true(sums.accepted > 0 && sums.restored > 0 && (light() || sums.preempted > 0));
}

/* README: "By default tokens and logits are the same bits with and without drafting, at temperature 0 and with
 * sampling." */
static void test_dense(void **state) {
    (void)state;
    check_model(0);
}

static void test_next(void **state) {
    (void)state;
    check_model(1);
}

static void test_experts(void **state) {
    (void)state;
    check_model(2);
}

static void test_odd(void **state) {
    (void)state;
    check_model(3);
}

static void test_others(void **state) {
    (void)state;
    for (int model = 4; model < GRID_MODELS; model++) check_model(model);
}

/* The argument is one of the tests, if not all are wanted. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dense), cmocka_unit_test(test_next), cmocka_unit_test(test_experts),
                                       cmocka_unit_test(test_odd), cmocka_unit_test(test_others)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
