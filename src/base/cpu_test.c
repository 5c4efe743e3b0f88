/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_test.c - levels are consistent with what the compiler's own test of this processor says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cpu.h"

static void test_best_agrees_with_the_compiler(void **state) {
    (void)state;
    hn_isa expected = HN_ISA_REF;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) expected = HN_ISA_AVX2;
    if (expected == HN_ISA_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni")) {
        expected = HN_ISA_AVX512;
    }
#endif
    assert_int_equal(hn_isa_best(), expected);
}

static void test_parse(void **state) {
    (void)state;
    hn_isa isa, best = hn_isa_best();
    hunch_error err;
    assert_int_equal(hn_isa_parse(NULL, &isa, &err), HUNCH_OK);
    assert_int_equal(isa, best);
    assert_int_equal(hn_isa_parse("best", &isa, &err), HUNCH_OK);
    assert_int_equal(isa, best);
    for (int i = 0; i < HN_ISA_COUNT; i++) {
        hunch_status status = hn_isa_parse(hn_isa_name((hn_isa)i), &isa, &err);
        assert_int_equal(status, i <= (int)best ? HUNCH_OK : HUNCH_USAGE);
        if (status == HUNCH_OK)
            assert_int_equal(isa, i);
        else
            assert_non_null(strstr(err.message, "more than this processor has, expected ref, "));
    }
    assert_int_equal(hn_isa_parse("avx3", &isa, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "isa 'avx3' is not a level, expected ref, "));
    assert_non_null(strstr(err.message, hn_isa_name(best)));
    assert_int_equal(hn_isa_parse("", &isa, NULL), HUNCH_USAGE);
}

static void test_name(void **state) {
    (void)state;
    char name[128], small[8];
    hn_cpu_name(name, sizeof name);
    assert_true(strlen(name) > 3);
    assert_null(strchr(name, '\n'));
    hn_cpu_name(small, sizeof small);
    assert_int_equal(strncmp(small, name, sizeof small - 1), 0);
    assert_true(strlen(small) < sizeof small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_agrees_with_the_compiler),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
