/* SPDX-License-Identifier: Apache-2.0 */
/* levels_as_best.h - the instruction levels whose texts are those of the best one. */
#ifndef HN_TEST_LEVELS_AS_BEST_H
#define HN_TEST_LEVELS_AS_BEST_H
#include "base/helper_for_tests.h"
#include "ops/kernels.h"

/* Whether a level adds the products over a BF16 cache as the best one does. */
HELPER bool sums_as_best(hn_isa isa) {
    return hn_kernels_get(isa)->sums_of_tiles == hn_kernels_get(hn_isa_best())->sums_of_tiles;
}

HELPER int levels_as_best(const char *names[HN_ISA_COUNT]) {
    int n = 0;
    for (hn_isa i = HN_ISA_REF; i < HN_ISA_COUNT; i = hn_isa_next(i))
        if (sums_as_best(i)) names[n++] = hn_isa_name(i);
    return n;
}
#endif
