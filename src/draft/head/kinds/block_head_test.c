/* SPDX-License-Identifier: Apache-2.0 */
/* block_head_test.c - the layers that a head of blocks reads if its file does not list them, as its publisher's Python computes them:
 * int(round(1 + i * (L - 4) / (m - 1))), where round() takes halves to the even number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "draft/head/kinds/block_head.h"

static void test_layers_are_spread_as_published(void **state HN_UNUSED) {
    static const struct {
        int layers, n, output[16];
    } row[] = {{5, 1, {2}},
               {5, 2, {1, 2}},
               {7, 3, {1, 2, 4}}, /* 2.5 */
               {8, 3, {1, 3, 5}},
               {9, 5, {1, 2, 4, 5, 6}}, /* 2.25, 3.5, 4.75 */
               {12, 5, {1, 3, 5, 7, 9}},
               {17, 3, {1, 8, 14}},        /* 7.5 */
               {22, 5, {1, 6, 10, 14, 19}}, /* 5.5, 10, 14.5 */
               {24, 5, {1, 6, 11, 16, 21}},
               {28, 1, {14}},
               {28, 5, {1, 7, 13, 19, 25}},
               {30, 5, {1, 8, 14, 20, 27}}, /* 7.5, 14, 20.5 */
               {36, 6, {1, 7, 14, 20, 27, 33}},
               {48, 8, {1, 7, 14, 20, 26, 32, 39, 45}},
               {61, 5, {1, 15, 30, 44, 58}}, /* 29.5 */
               {94, 16, {1, 7, 13, 19, 25, 31, 37, 43, 49, 55, 61, 67, 73, 79, 85, 91}}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        int boundary[16];
        hn_block_spread(row[k].layers, row[k].n, boundary);
        for (int i = 0; i < row[k].n; i++)
            if (boundary[i] != row[k].output[i] + 1)
                fail_msg("%d of %d layers: output %d is %d, expected %d", row[k].n, row[k].layers, i, boundary[i] - 1, row[k].output[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers_are_spread_as_published)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
