/* SPDX-License-Identifier: Apache-2.0 */
/* soak_test.c - 2,000 of the requests of soak.h, a quarter of them for light tests. */
#include "soak.h"

/* README: "100,000 requests leave memory, descriptors and threads where they were." */
static void test_soak(void **state) {
    (void)state;
    soak_run(light() ? 500 : 2000, light() ? 12 : 50);
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_soak);
    (void)argc;
    return soak_main(argv, &test);
}
