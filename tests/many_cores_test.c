/* SPDX-License-Identifier: Apache-2.0 */
/* many_cores_test.c - a machine of more cores than a pool may have threads: a request for all of them gets the maximum.
 * This file replaces the system's answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "base/threads.h"
#include "fixture.h"

enum { CORES = 384 };

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid;
    CPU_ZERO_S(size, set);
    for (size_t i = 0; i < CORES; i++) CPU_SET_S(i, size, set);
    return 0;
}

static void test_many_cores(void **state) {
    (void)state;
    hunch_model *m = NULL;
    hunch_error err;
    const int cores = hn_cores();
    assert_in_range(cores, 1, HN_MAX_THREADS);
    if (cores < HN_MAX_THREADS) skip(); /* a control group allows fewer */
    assert_int_equal(hunch_model_open(&m, data_path("models/stories260K/stories260K.f32.gguf"), NULL, &err), HUNCH_OK);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_cores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
