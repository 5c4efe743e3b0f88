/* SPDX-License-Identifier: Apache-2.0 */
/* smollm2_long_test.c - the full product on a real chat model: every level, drafter, chunk, thread and batch size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "smollm2.h"

static void test_full_product(void **state) {
    (void)state;
    static const char *const drafts[] = {"ngram", "forced,accept=0.7,depth=6", "forced,accept=0.6,depth=6,tree=random",
                                         "forced,accept=0.8,depth=4,width=3"};
    static const int chunks[] = {1, 3, 64};
    static way ways[4 * 3 * 2 * 2 * 2];
    const char *isa[HN_ISA_COUNT];
    int n = 0;
    for (int d = 0; d < 4; d++)
        for (int c = 0; c < 3; c++)
            for (int parallel = 1; parallel <= 8; parallel += 7)
                for (int threads = 1; threads <= 2; threads++)
                    for (int t = 0; t < 2; t++) ways[n++] = (way){drafts[d], parallel, chunks[c], threads, t ? 0.8 : 0};
    for (int k = levels(isa), i = 0; i < k; i++)
        smollm2_check(smollm2_path(), isa[i], ways, n, i == 0 ? 8 : 64); /* ref is slow and the same code at any length */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_full_product)};
    return smollm2_path() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
