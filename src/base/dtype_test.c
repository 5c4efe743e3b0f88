/* SPDX-License-Identifier: Apache-2.0 */
/* dtype_test.c - conversions over all their inputs; block layouts, by hand-made blocks and by the results of the Python
 * package gguf (F8_E4M3: ml_dtypes) for the blocks in tests/data/dtypes; sizes and names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"

static uint32_t bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* The value of a half by the definition of the format. */
static double f16_value(uint16_t h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -v : v;
}

static void test_f16_all_values(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = hn_f16_to_f32((uint16_t)h);
        if ((h & 0x7C00) == 0x7C00) {
            assert_true(h & 0x3FF ? isnan(f) : isinf(f));
            assert_int_equal(signbit(f) != 0, h >> 15);
            if (!isnan(f))
                assert_int_equal(hn_f32_to_f16(f), h);
            else
                assert_int_equal(hn_f32_to_f16(f), h | 0x200);
            continue;
        }
        assert_true((double)f == f16_value((uint16_t)h) && (signbit(f) != 0) == h >> 15);
        assert_int_equal(hn_f32_to_f16(f), h);
    }
}

/* Just below, at and just above the middle between neighbouring halves: nearest, ties to even. */
static void test_f16_rounding(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7C00; h++) {
        double next = h == 0x7BFF ? 65536.0 : f16_value((uint16_t)(h + 1));
        float middle = (float)((f16_value((uint16_t)h) + next) / 2); /* exact in f32 */
        assert_int_equal(hn_f32_to_f16(nextafterf(middle, 0)), h);
        assert_int_equal(hn_f32_to_f16(nextafterf(middle, INFINITY)), h + 1);
        assert_int_equal(hn_f32_to_f16(middle), h + (h & 1));
        assert_int_equal(hn_f32_to_f16(-middle), 0x8000 | (h + (h & 1)));
    }
    assert_int_equal(hn_f32_to_f16(1e30f), 0x7C00);
    assert_int_equal(hn_f32_to_f16(1e-30f), 0);
    assert_int_equal(hn_f32_to_f16(from_bits(1)), 0);
}

static void test_bf16(void **state) {
    (void)state;
    for (uint32_t b = 0; b < 0x10000; b++) {
        float f = hn_bf16_to_f32((uint16_t)b);
        if (isnan(f)) {
            assert_true(isnan(hn_bf16_to_f32(hn_f32_to_bf16(f))));
            continue;
        }
        assert_int_equal(hn_f32_to_bf16(f), b);
        if (isinf(f)) continue;
        uint32_t tie = bits(f) | 0x8000;
        assert_int_equal(hn_f32_to_bf16(from_bits(tie)), b + (b & 1));
        assert_int_equal(hn_f32_to_bf16(from_bits(tie - 1)), b);
        assert_int_equal(hn_f32_to_bf16(from_bits(tie + 1)), b + 1);
    }
    assert_true(isnan(hn_bf16_to_f32(hn_f32_to_bf16(from_bits(0x7F800001)))));
}

static void test_sizes(void **state) {
    (void)state;
    static const struct {
        hn_dtype type;
        const char *name;
        uint32_t ggml;
        size_t row_of_256;
    } cases[] = {
        {HN_F32, "F32", 0, 1024},      {HN_F16, "F16", 1, 512},        {HN_BF16, "BF16", 30, 512},
        {HN_Q4_0, "Q4_0", 2, 144},     {HN_Q4_1, "Q4_1", 3, 160},      {HN_Q8_0, "Q8_0", 8, 272},
        {HN_Q5_0, "Q5_0", 6, 176},     {HN_Q5_1, "Q5_1", 7, 192},      {HN_Q2_K, "Q2_K", 10, 84},
        {HN_Q3_K, "Q3_K", 11, 110},    {HN_Q4_K, "Q4_K", 12, 144},     {HN_Q5_K, "Q5_K", 13, 176},
        {HN_Q6_K, "Q6_K", 14, 210},    {HN_IQ4_NL, "IQ4_NL", 20, 144}, {HN_IQ4_XS, "IQ4_XS", 23, 136},
        {HN_MXFP4, "MXFP4", 39, 136},  {HN_I32, "I32", 26, 1024},      {HN_I64, "I64", 27, 2048},
        {HN_I8, "I8", 24, 256},        {HN_I16, "I16", 25, 512},       {HN_F64, "F64", 28, 2048},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_dtype t = cases[i].type, found;
        size_t bytes = 0, block = (size_t)hn_dtype_block(t), block_bytes = (size_t)hn_dtype_block_bytes(t);
        assert_string_equal(hn_dtype_name(t), cases[i].name);
        assert_true(hn_dtype_from_ggml(cases[i].ggml, &found) && found == t);
        assert_string_equal(hn_ggml_type_name(cases[i].ggml), cases[i].name);
        assert_true(hn_dtype_row_bytes(t, 256, &bytes));
        assert_int_equal(bytes, cases[i].row_of_256);
        assert_int_equal(256 / block * block_bytes, bytes);
        assert_true(hn_dtype_row_bytes(t, 0, &bytes) && bytes == 0);
        for (uint64_t part = 1; part < block; part++) assert_false(hn_dtype_row_bytes(t, 512 + part, &bytes));
        /* The longest row of whole blocks overflows exactly where its bytes are more than a size_t counts. */
        uint64_t most = UINT64_MAX / block;
        assert_int_equal(hn_dtype_row_bytes(t, most * block, &bytes), most <= SIZE_MAX / block_bytes);
    }
    hn_dtype t;
    assert_false(hn_dtype_from_ggml(16, &t)); /* IQ2_XXS: known, not read */
    assert_false(hn_dtype_from_ggml(UINT32_MAX, &t)); /* U8 and F8_E4M3 are not of GGUF */
    size_t bytes;
    assert_string_equal(hn_dtype_name(HN_F8_E4M3), "F8_E4M3");
    assert_true(hn_dtype_row_bytes(HN_F8_E4M3, 77, &bytes) && bytes == 77);
    assert_string_equal(hn_ggml_type_name(16), "IQ2_XXS");
    assert_null(hn_ggml_type_name(4000));
}

/* Every weight type against the blocks, and their decoded weights, in tests/data/dtypes. */
static void test_weights_of_others(void **state) {
    (void)state;
    for (hn_dtype t = 0; t < HN_WEIGHT_TYPES; t++) {
        char path[512], *data;
        size_t size, block = (size_t)hn_dtype_block(t), block_bytes = (size_t)hn_dtype_block_bytes(t);
        snprintf(path, sizeof path, "%s/dtypes/%s.bin", HUNCH_TEST_DATA, hn_dtype_name(t));
        assert_int_equal(hn_file_read(path, 1 << 16, &data, &size, NULL), HUNCH_OK);
        size_t n = size / (block_bytes + block * sizeof(float)), weights = n * block;
        assert_int_equal(n * (block_bytes + block * sizeof(float)), size);
        assert_true(n >= 5);
        float *have = hn_zalloc(weights, sizeof *have);
        assert_non_null(have);
        hn_dequantise(t, data, weights, have);
        for (size_t i = 0; i < weights; i++) {
            uint32_t want;
            memcpy(&want, data + n * block_bytes + i * sizeof want, sizeof want);
            if (bits(have[i]) != want && !(isnan(have[i]) && isnan(from_bits(want))))
                fail_msg("%s: weight %zu is %a, expected %a", hn_dtype_name(t), i, (double)have[i],
                         (double)from_bits(want));
        }
        hn_free(have);
        hn_free(data);
    }
}

static void test_blocks(void **state) {
    (void)state;
    float w[64];
    unsigned char q4[2 * 20] = {0}, q8[34];
    const uint16_t d = hn_f32_to_f16(0.5f), m = hn_f32_to_f16(-3.0f);
    for (int i = 0; i < 16; i++) q4[2 + i] = (unsigned char)(i | (15 - i) << 4);
    memcpy(q4, &d, 2);
    hn_dequantise(HN_Q4_0, q4, 32, w);
    for (int i = 0; i < 16; i++) assert_true(w[i] == 0.5f * (float)(i - 8) && w[i + 16] == 0.5f * (float)(7 - i));
    for (int block = 0; block < 2; block++) {
        unsigned char *b = q4 + 20 * block;
        memcpy(b, &d, 2);
        memcpy(b + 2, &m, 2);
        for (int i = 0; i < 16; i++) b[4 + i] = (unsigned char)(block ? 0xF0 : i | (15 - i) << 4);
    }
    hn_dequantise(HN_Q4_1, q4, 64, w);
    for (int i = 0; i < 16; i++) {
        assert_true(w[i] == 0.5f * (float)i - 3 && w[i + 16] == 0.5f * (float)(15 - i) - 3);
        assert_true(w[32 + i] == -3 && w[48 + i] == 4.5f);
    }
    memcpy(q8, &d, 2);
    for (int i = 0; i < 32; i++) q8[2 + i] = (unsigned char)(i == 0 ? -128 : i * 4);
    hn_dequantise(HN_Q8_0, q8, 32, w);
    for (int i = 1; i < 32; i++) assert_true(w[i] == 2.0f * (float)i);
    assert_true(w[0] == -64);
}

/* d has 11 bits and a nibble 4, so the product is exact, and only the sum is rounded. */
static void test_q4_1_rounds_the_sum(void **state) {
    (void)state;
    uint64_t s = 1;
    for (int n = 0; n < 2000; n++) {
        unsigned char block[20];
        uint16_t d = (uint16_t)(0x1000 + hn_splitmix(&s) % 0x2000), m = (uint16_t)(0x8000 | hn_splitmix(&s) % 0x4000);
        memcpy(block, &d, 2);
        memcpy(block + 2, &m, 2);
        memset(block + 4, 0xD5, 16);
        float w[32];
        hn_dequantise(HN_Q4_1, block, 32, w);
        assert_true(w[0] == (float)(f16_value(d) * 5 + f16_value(m)));
        assert_true(w[31] == (float)(f16_value(d) * 13 + f16_value(m)));
    }
}

static void test_scalars(void **state) {
    (void)state;
    float w[3];
    const float f32[] = {1.5f, -0.0f, 3e-39f};
    hn_dequantise(HN_F32, f32, 3, w);
    assert_memory_equal(w, f32, sizeof f32);
    hn_dequantise(HN_F32, NULL, 0, w);
    const uint16_t f16[] = {0x3C00, 0xC000, 1}, bf16[] = {0x3F80, 0xC000, 0x4049};
    hn_dequantise(HN_F16, f16, 3, w);
    assert_true(w[0] == 1 && w[1] == -2 && w[2] == 0x1p-24f);
    hn_dequantise(HN_BF16, bf16, 3, w);
    assert_true(w[0] == 1 && w[1] == -2 && w[2] == 3.140625f);
    const int64_t i64[] = {-5, 1 << 20};
    hn_dequantise(HN_I64, i64, 2, w);
    assert_true(w[0] == -5 && w[1] == 1 << 20);
    const int32_t i32[] = {-7};
    hn_dequantise(HN_I32, i32, 1, w);
    assert_true(w[0] == -7);
    const double f64[] = {0.1};
    hn_dequantise(HN_F64, f64, 1, w);
    assert_true(w[0] == 0.1f);
    const unsigned char small[] = {200, 0, 255, 255};
    hn_dequantise(HN_U8, small, 1, w);
    assert_true(w[0] == 200);
    hn_dequantise(HN_I8, small, 1, w);
    assert_true(w[0] == -56);
    hn_dequantise(HN_I16, small + 2, 1, w);
    assert_true(w[0] == -1);
}

/* ---- quantising --------------------------------------------------------------------------------------------------- */

static float spread(int i) { return (float)((i * 37) % 64 - 31) / 16; }
static float largest_is_negative(int i) { return i == 5 ? -3.0f : (float)(i % 7 - 3) * 0.37f; }
static float both_ends(int i) { return i == 3 ? 2.5f : i == 20 ? -2.5f : (float)(i % 5 - 2) * 0.6f; }
static float other_end_first(int i) { return i == 3 || i == 20 ? -both_ends(i) : both_ends(i); }
static float steps(int i) { return (float)(i - 16) * 0.5f; }
static float on_halves(int i) { return i ? (float)i - 15.5f : 127; } /* Q8_0: away from 0 */

/* Against the results of the Python package gguf, which are those of ggml, for the same numbers. */
static void test_quantise_as_ggml(void **state) {
    static const struct {
        float (*x)(int);
        unsigned char q8_0[34], q4_0[18];
    } cases[] = {
        {spread,
         {8,  36, 133, 24,  173, 64,  212, 103, 252, 145, 36,  185, 75,  224, 115, 8,   157,
          48, 196, 87, 236, 127, 20,  169, 60,  208, 99,  248, 141, 32,  181, 71,  220, 111},
         {0, 180, 207, 55, 157, 4, 123, 226, 72, 191, 38, 157, 243, 106, 209, 72, 174, 21}},
        {largest_is_negative,
         {12,  38, 209, 225, 240, 0,   16, 129, 47,  209, 225, 240, 0,   16, 31,  47,  209,
          225, 240, 0,  16,  31,  47,  209, 225, 240, 0,  16,  31,  47,  209, 225, 240, 0},
         {0, 54, 117, 134, 151, 168, 185, 80, 107, 117, 134, 151, 168, 185, 90, 107, 117, 134}},
        {both_ends,
         {10, 37, 195, 226, 0,  127, 61,  195, 226, 0,  30,  61,  195, 226, 0,  30,  61,
          195, 226, 0, 30,  61, 129, 226, 0,   30,  61, 195, 226, 0,   30,  61, 195, 226},
         {0, 181, 172, 138, 104, 64, 244, 172, 138, 104, 70, 196, 172, 138, 104, 70, 196, 172}},
        {other_end_first,
         {10, 37, 195, 226, 0,  129, 61,  195, 226, 0,  30,  61,  195, 226, 0,  30,  61,
          195, 226, 0, 30,  61, 127, 226, 0,   30,  61, 195, 226, 0,   30,  61, 195, 226},
         {0, 53, 100, 134, 168, 192, 252, 100, 134, 168, 202, 76, 100, 134, 168, 202, 76, 100}},
        {steps,
         {8,   44,  129, 137, 145, 153, 161, 169, 177, 185, 192, 200, 208, 216, 224, 232, 240,
          248, 0,   8,   16,  24,  32,  40,  48,  56,  64,  71,  79,  87,  95,  103, 111, 119},
         {0, 60, 128, 145, 145, 162, 162, 179, 179, 196, 196, 213, 213, 230, 230, 247, 247, 248}},
        {on_halves,
         {0,   60, 127, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254,
          255, 1,  2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15,  16},
         {240, 203, 128, 137, 137, 137, 137, 137, 137, 137, 120, 120, 120, 120, 120, 120, 120, 120}}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        float x[32];
        unsigned char have[34];
        for (int i = 0; i < 32; i++) x[i] = cases[c].x(i);
        hn_quantise(HN_Q8_0, x, 32, have);
        assert_memory_equal(have, cases[c].q8_0, 34);
        hn_quantise(HN_Q4_0, x, 32, have);
        assert_memory_equal(have, cases[c].q4_0, 18);
    }
}

/* The largest number of a block. */
static double most_of(const float *x) {
    double most = 0;
    for (int i = 0; i < 32; i++) most = fmax(most, fabs((double)x[i]));
    return most;
}

/* The error is at most half a step of the block, plus that of rounding the step to a half. */
static void test_round_trip(void **state) {
    enum { BLOCKS = 500 };
    static float x[32 * BLOCKS], back[32 * BLOCKS];
    static unsigned char stored[BLOCKS * 34];
    uint64_t rng = 3;
    (void)state;
    for (int i = 0; i < 32 * BLOCKS; i++)
        x[i] = (float)(((double)(hn_splitmix(&rng) >> 40) / (1 << 23) - 1) * exp2((double)(i / 32 % 30) - 15));
    hn_quantise(HN_Q8_0, x, 32 * BLOCKS, stored);
    hn_dequantise(HN_Q8_0, stored, 32 * BLOCKS, back);
    for (int i = 0; i < 32 * BLOCKS; i++) {
        const double most = most_of(x + i / 32 * 32); /* a subnormal half has fewer digits */
        assert_true(fabs((double)x[i] - (double)back[i]) <= most / 254 + most * 0x1p-11 + 127 * 0x1p-25 + 1e-7 * most);
    }
    hn_quantise(HN_Q4_0, x, 32 * BLOCKS, stored);
    hn_dequantise(HN_Q4_0, stored, 32 * BLOCKS, back);
    for (int i = 0; i < 32 * BLOCKS; i++) { /* the end of the other sign is short by a whole step */
        const double most = most_of(x + i / 32 * 32);
        assert_true(fabs((double)x[i] - (double)back[i]) <= most / 8 + most * 0x1p-11 + 8 * 0x1p-25 + 1e-7 * most);
    }
    for (int i = 0; i < 32 * BLOCKS; i++) {
        float f;
        uint16_t h;
        hn_quantise(HN_F32, x + i, 1, &f);
        assert_int_equal(bits(f), bits(x[i]));
        hn_quantise(HN_BF16, x + i, 1, &h);
        assert_int_equal(h, hn_f32_to_bf16(x[i]));
        hn_quantise(HN_F16, x + i, 1, &h);
        assert_int_equal(h, hn_f32_to_f16(x[i]));
    }
}

/* Blocks whose step is 0, or rounded to 0 as a half, are zeros. */
static void test_quantise_nothing(void **state) {
    static const float tiny[] = {0, -0.0f, 1e-45f, -1e-40f, 2e-38f, -3e-9f};
    (void)state;
    for (size_t c = 0; c < sizeof tiny / sizeof *tiny; c++) {
        float x[32], back[32];
        unsigned char stored[34];
        for (int i = 0; i < 32; i++) x[i] = i % 3 ? tiny[c] : 0;
        hn_quantise(HN_Q8_0, x, 32, stored);
        hn_dequantise(HN_Q8_0, stored, 32, back);
        for (int i = 0; i < 32; i++) assert_true(back[i] == 0);
        hn_quantise(HN_Q4_0, x, 32, stored);
        hn_dequantise(HN_Q4_0, stored, 32, back);
        for (int i = 0; i < 32; i++) assert_true(back[i] == 0);
        for (int i = 2; i < 18 && fabsf(tiny[c]) < 1e-37f; i++) assert_int_equal(stored[i], 0x88); /* whose inverse is no float */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_all_values), cmocka_unit_test(test_f16_rounding),
        cmocka_unit_test(test_bf16),           cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_blocks),         cmocka_unit_test(test_q4_1_rounds_the_sum),
        cmocka_unit_test(test_scalars),        cmocka_unit_test(test_weights_of_others),
        cmocka_unit_test(test_quantise_as_ggml), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_quantise_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
