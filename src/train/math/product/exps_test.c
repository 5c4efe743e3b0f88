/* SPDX-License-Identifier: Apache-2.0 */
/* exps_test.c - e^x of floats against the C library's in double, over its whole range and beyond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/math/product/exps.h"

static void test_exps(void **state) {
    (void)state;
    double worst = 0;
    for (int i = -87 * 4096; i <= 88 * 4096; i++) {
        float x = (float)i / 4096 + 0.25f, y;
        if (x > 88) continue;
        hn_exps(&y, &x, 0.25f, 1);
        const double want = exp((double)(x - 0.25f));
        worst = fmax(worst, fabs((double)y / want - 1));
    }
    assert_true(worst < 2.0 * 0x1p-23);
    float far[8] = {-1000, 1000, NAN, 0, -INFINITY, INFINITY, 1, -1};
    hn_exps(far, far, 0, 8);
    assert_true(far[0] > 0 && far[0] < 2e-38f && far[4] == far[0]);
    assert_true(far[1] > 1.6e38f && far[5] == far[1] && isfinite(far[1]));
    assert_true(isnan(far[2]) && far[3] == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
