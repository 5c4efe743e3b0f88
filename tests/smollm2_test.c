/* SPDX-License-Identifier: Apache-2.0 */
/* smollm2_test.c - bit equality on a real chat model: six ways of cutting the work at the best level.
 * smollm2_long_test.c runs the full product, and other levels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "smollm2.h"

/* README: "By default tokens and logits are the same bits with and without drafting, at temperature 0 and with
 * sampling." */
static void test_best_level(void **state) {
    (void)state;
    static const way ways[] = {{"ngram", 8, 3, 1, 0.8},
                               {"forced,accept=0.7,depth=6", 1, 64, 2, 0},
                               {"forced,accept=0.9,depth=12", 1, 1, 1, 0},
                               {"forced,accept=0.5,depth=6", 8, 64, 2, 0.8},
                               {"forced,accept=0.6,depth=6,tree=random", 8, 1, 2, 0},
                               {"forced,accept=0.8,depth=4,width=3", 1, 64, 2, 0}};
    smollm2_check(smollm2_path(), "best", ways, light() ? 2 : (int)(sizeof ways / sizeof *ways), light() ? 8 : 24);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_best_level)};
    return smollm2_path() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
