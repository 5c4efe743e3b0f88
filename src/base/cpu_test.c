/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_test.c - levels are consistent with the compiler's own test of this processor. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cpu.h"

static void test_levels_agree_with_the_compiler(void **state) {
    (void)state;
    bool expected[HN_ISA_COUNT] = {[HN_ISA_REF] = true};
#if defined(__x86_64__)
    __builtin_cpu_init();
    expected[HN_ISA_AVX2] = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    expected[HN_ISA_AVX512] = expected[HN_ISA_AVX2] && __builtin_cpu_supports("avx512f") &&
                              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
    expected[HN_ISA_AVX512BF16] = expected[HN_ISA_AVX512] && __builtin_cpu_supports("avx512bf16");
    assert_int_equal(hn_isa_has(HN_ISA_AVX512BF16), expected[HN_ISA_AVX512BF16]);
    assert_false(hn_isa_has(HN_ISA_DOTPROD));
#endif
    assert_int_equal(hn_isa_has(HN_ISA_REF), expected[HN_ISA_REF]);
    assert_int_equal(hn_isa_has(HN_ISA_AVX2), expected[HN_ISA_AVX2]);
    assert_int_equal(hn_isa_has(HN_ISA_AVX512), expected[HN_ISA_AVX512]);
}

static void test_each_level_builds_on_an_earlier_one(void **state) {
    (void)state;
    for (hn_isa isa = HN_ISA_AVX2; isa < HN_ISA_COUNT; isa++) {
        assert_true(hn_isa_below(isa) < isa);
        assert_true(hn_isa_includes(isa, isa) && hn_isa_includes(isa, HN_ISA_REF));
        assert_true(hn_isa_includes(isa, hn_isa_below(isa)));
        if (hn_isa_has(isa)) assert_true(hn_isa_has(hn_isa_below(isa)));
    }
    assert_true(hn_isa_includes(HN_ISA_AMX, HN_ISA_AVX512) && !hn_isa_includes(HN_ISA_AMX, HN_ISA_AVXVNNI));
    assert_false(hn_isa_includes(HN_ISA_AVX2, HN_ISA_AVX512));
    int n = 0, all = 0;
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) n++;
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa++) all += hn_isa_has(isa);
    assert_int_equal(n, all);
    assert_int_equal(hn_isa_next(hn_isa_best()), HN_ISA_COUNT);
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
        assert_int_equal(status, hn_isa_has((hn_isa)i) ? HUNCH_OK : HUNCH_USAGE);
        if (status == HUNCH_OK)
            assert_int_equal(isa, i);
        else
            assert_non_null(strstr(err.message, "more than this processor has, expected ref, "));
    }
    assert_int_equal(hn_isa_parse("avx3", &isa, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "isa 'avx3' is not a level, did you mean avx2? expected ref, "));
    assert_int_equal(hn_isa_parse("warp9", &isa, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "isa 'warp9' is not a level, expected ref, "));
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
        cmocka_unit_test(test_levels_agree_with_the_compiler),
        cmocka_unit_test(test_each_level_builds_on_an_earlier_one),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
