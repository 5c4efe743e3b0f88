/* SPDX-License-Identifier: Apache-2.0 */
/* product_test.c - products of every form, level and shape against sums in double; the same bits for any number of
 * workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/run_mode_for_tests.h"
#include "train/math/numbers_for_tests.h"
#include "train/math/product/product.h"

typedef struct size {
    int m, n, k;
} size;
/* Below a tile, whole tiles of one level, edges of all, several slices and parts. */
static const size sizes[] = {{1, 1, 1},     {5, 7, 3},       {12, 32, 64},   {33, 47, 65},
                             {96, 64, 512}, {65, 300, 1031}, {2055, 17, 40}, {9, 2100, 33}};

static const hn_form forms[] = {HN_ABT, HN_AB, HN_ATB};

/* Element (i, k) of a, (j, k) of b in any form. */
static double of_a(hn_form f, hn_mat a, int i, int k) {
    return (double)(f == HN_ATB ? hn_mat_row(a, k)[i] : hn_mat_row(a, i)[k]);
}

static double of_b(hn_form f, hn_mat b, int j, int k) {
    return (double)(f == HN_ABT ? hn_mat_row(b, j)[k] : hn_mat_row(b, k)[j]);
}

/* a, b, c with unused numbers at the ends of rows. */
typedef struct operands {
    hn_mat a, b, c;
} operands;

static operands operands_of(hn_form f, size s, uint64_t *seed) {
    operands o = {f == HN_ATB ? wide_matrix(s.k, s.m, 3, seed) : wide_matrix(s.m, s.k, 3, seed),
                  f == HN_ABT ? wide_matrix(s.n, s.k, 5, seed) : wide_matrix(s.k, s.n, 5, seed),
                  wide_matrix(s.m, s.n, 2, seed)};
    return o;
}

static void operands_free(operands o) {
    hn_free(o.a.p);
    hn_free(o.b.p);
    hn_free(o.c.p);
}

/* c is `before` (times add) plus the product, within `error` of the sum of absolute terms. */
static void check(hn_form f, size s, operands o, hn_mat before, bool add, double error) {
    const int every_i = s.m > 500 ? 31 : 1, every_j = s.n > 500 ? 29 : 1;
    for (int i = 0; i < s.m; i++) {
        for (int j = 0; j < s.n; j++) {
            if ((i % every_i && i < s.m - 8) || (j % every_j && j < s.n - 8)) continue;
            double sum = add ? (double)hn_mat_row(before, i)[j] : 0, absolute = fabs(sum);
            for (int k = 0; k < s.k; k++) {
                const double term = of_a(f, o.a, i, k) * of_b(f, o.b, j, k);
                sum += term;
                absolute += fabs(term);
            }
            const double is = (double)hn_mat_row(o.c, i)[j];
            if (!(fabs(is - sum) <= error * absolute))
                fail_msg("form %d, %dx%dx%d: c[%d][%d] is %g, not %g", (int)f, s.m, s.n, s.k, i, j, is, sum);
        }
        for (size_t j = (size_t)s.n; j < o.c.ld; j++) /* numbers after the row do not change */
            assert_true(hn_mat_row(o.c, i)[j] == hn_mat_row(before, i)[j]);
    }
}

static void check_workers(hn_workers *t, double error, bool alone) {
    uint64_t seed = 7;
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        for (size_t f = 0; f < 3; f++) {
            for (int add = 0; add < 2; add++) {
                if (test_light() && (n + f) % 2 != (size_t)add) continue;
                const operands o = operands_of(forms[f], sizes[n], &seed);
                const hn_mat before = copy_of(o.c);
                if (alone)
                    hn_product_alone(t, 0, forms[f], o.a, o.b, o.c, add);
                else
                    hn_product(t, forms[f], o.a, o.b, o.c, add);
                check(forms[f], sizes[n], o, before, add, error);
                hn_free(before.p);
                operands_free(o);
            }
        }
    }
}

static void each_level(double error, hn_products products, bool alone) {
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        hn_pool *pool = pool_of(2);
        hn_workers t;
        hunch_error err;
        if (hn_workers_open(&t, pool, isa, products, 0, &err) == HUNCH_OK) {
            check_workers(&t, error, alone);
            hn_workers_close(&t);
        } else {
            assert_int_equal(products, HN_PRODUCTS_BF16);
            assert_int_equal(err.status, HUNCH_REFUSED);
            assert_false(hn_isa_includes(isa, HN_ISA_AVX512BF16));
        }
        hn_pool_free(pool);
    }
}

static void test_products_of_floats(void **state) {
    (void)state;
    each_level(1e-6, HN_PRODUCTS_F32, false);
    each_level(1e-6, HN_PRODUCTS_F32, true);
}

/* Both factors are rounded to 8 bits. */
static void test_products_of_bf16(void **state) {
    (void)state;
    each_level(0x1.01p-8 + 1e-6, HN_PRODUCTS_BF16, false);
}

/* With numbers that are exact in bf16, products are as precise as those of floats; rounding is to nearest. */
static void test_bf16_rounds_only_what_it_must(void **state) {
    (void)state;
    hn_pool *pool = pool_of(1);
    hn_workers t;
    hunch_error err;
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        if (hn_workers_open(&t, pool, isa, HN_PRODUCTS_BF16, 0, &err) != HUNCH_OK) continue;
        for (size_t f = 0; f < 3; f++) {
            uint64_t seed = 1;
            const size s = {35, 37, 75};
            const operands o = operands_of(forms[f], s, &seed);
            const hn_mat before = copy_of(o.c);
            for (size_t i = 0; i < (size_t)o.a.rows * o.a.ld; i++) o.a.p[i] = ldexpf(rintf(ldexpf(o.a.p[i], 7)), -7);
            for (size_t i = 0; i < (size_t)o.b.rows * o.b.ld; i++) o.b.p[i] = ldexpf(rintf(ldexpf(o.b.p[i], 6)), -6);
            hn_product(&t, forms[f], o.a, o.b, o.c, false);
            check(forms[f], s, o, before, false, 1e-6);
            hn_free(before.p);
            operands_free(o);
        }
        float x[2] = {1.00390625f + 0x1p-20f, 1.00390625f}, one = 1,
              y[2]; /* just above the middle, and the middle: to even */
        hn_product(&t, HN_ABT, hn_mat_of(x, 2, 1), hn_mat_of(&one, 1, 1), hn_mat_of(y, 2, 1), false);
        assert_true(y[0] == 1.0078125f && y[1] == 1);
        x[0] = NAN;
        hn_product(&t, HN_ABT, hn_mat_of(x, 2, 1), hn_mat_of(&one, 1, 1), hn_mat_of(y, 2, 1), false);
        assert_true(isnan(y[0]) && y[1] == 1);
        hn_workers_close(&t);
    }
    hn_pool_free(pool);
}

static void test_bits_do_not_depend_on_workers(void **state) {
    (void)state;
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int products = 0; products < 2; products++) {
            for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
                float *first = NULL;
                const size s = sizes[n];
                for (int threads = 1; threads <= 3; threads++) {
                    uint64_t seed = 3;
                    hn_pool *pool = pool_of(threads);
                    hn_workers t;
                    hunch_error err;
                    if (hn_workers_open(&t, pool, isa, (hn_products)products, 0, &err) == HUNCH_OK) {
                        const operands o = operands_of(HN_ATB, s, &seed);
                        const size_t bytes = (size_t)s.m * o.c.ld * sizeof(float);
                        hn_product(&t, HN_ATB, o.a, o.b, o.c, true);
                        if (!first) memcpy(first = hn_alloc(bytes), o.c.p, bytes);
                        assert_memory_equal(first, o.c.p, bytes);
                        operands_free(o);
                        hn_workers_close(&t);
                    }
                    hn_pool_free(pool);
                }
                hn_free(first);
            }
        }
    }
}

/* Nor on other outputs: rows and columns of a product are the product of those rows and columns. */
static void test_bits_do_not_depend_on_the_rest(void **state) {
    (void)state;
    hn_pool *pool = pool_of(2);
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int products = 0; products < 2; products++) {
            uint64_t seed = 4;
            hn_workers t;
            hunch_error err;
            if (hn_workers_open(&t, pool, isa, (hn_products)products, 0, &err) != HUNCH_OK) continue;
            const operands o = operands_of(HN_ABT, (size){100, 90, 700}, &seed);
            const hn_mat part = copy_of(hn_mat_part(o.c, 0, 41));
            hn_product(&t, HN_ABT, o.a, o.b, o.c, true);
            hn_product(&t, HN_ABT, hn_mat_part(o.a, 0, 41), hn_mat_part(o.b, 0, 37), hn_mat_cols(part, 0, 37), true);
            for (int i = 0; i < 41; i++)
                assert_memory_equal(hn_mat_row(part, i), hn_mat_row(o.c, i), 37 * sizeof(float));
            hn_free(part.p);
            operands_free(o);
            hn_workers_close(&t);
        }
    }
    hn_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_of_floats),
        cmocka_unit_test(test_products_of_bf16),
        cmocka_unit_test(test_bf16_rounds_only_what_it_must),
        cmocka_unit_test(test_bits_do_not_depend_on_workers),
        cmocka_unit_test(test_bits_do_not_depend_on_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
