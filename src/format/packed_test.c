/* SPDX-License-Identifier: Apache-2.0 */
/* packed_test.c - packed integers of AWQ, GPTQ and compressed-tensors: folders of random codes, zeros and scales are written by the
 * formats' own definitions, and every weight that is read is (code - zero) * scale, of the type that is expected; and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "format/bytes_for_tests.h"
#include "format/source.h"

enum { MOST_IN = 256, MOST_OUT = 96, MOST_GROUPS = 16, MOST_BITS = 8 };
typedef enum layout { AWQ, GPTQ, GPTQ_V2, COMPRESSED, BYTES } layout;

/* A matrix, and how it is stored. */
typedef struct matrix {
    layout layout;
    int bits, in, out, groups;
    bool zeros;       /* not all in the middle */
    bool act_order;   /* groups in no order */
    bool bf16;        /* scales; some of them too small for F16 if `tiny` */
    bool tiny;
    bool one;          /* a scale for the whole matrix */
    const char *extra; /* one more tensor of the module, of one F32 */
    const char *config; /* quantization_config; NULL: the layout's own */
    int code[MOST_OUT][MOST_IN], zero[MOST_OUT][MOST_GROUPS], group[MOST_IN];
    uint16_t scale[MOST_OUT][MOST_GROUPS];
} matrix;

static uint64_t rng = 5;
static int below(int n) { return (int)(hn_splitmix(&rng) % (uint64_t)n); }

static int middle_of(const matrix *m) { return m->layout == BYTES ? 0 : 1 << (m->bits - 1); }

static void fill(matrix *m) {
    for (int i = 0; i < m->in; i++) m->group[i] = m->act_order ? below(m->groups) : i / (m->in / m->groups);
    for (int o = 0; o < m->out; o++) {
        for (int i = 0; i < m->in; i++) m->code[o][i] = below(1 << m->bits) - (m->layout == BYTES ? 128 : 0);
        for (int g = 0; g < m->groups; g++) {
            m->zero[o][g] = m->zeros ? below(1 << m->bits) - (m->layout == BYTES ? 128 : 0) : middle_of(m);
            const float scale = (float)(1 + below(1000)) * (m->tiny && below(3) == 0 ? 1e-12f : 1e-4f);
            m->scale[o][g] = m->one && o > 0 ? m->scale[0][0] : m->bf16 ? hn_f32_to_bf16(scale) : hn_f32_to_f16(scale);
        }
    }
}

static float scale_of(const matrix *m, int o, int g) {
    return m->bf16 ? hn_bf16_to_f32(m->scale[o][g]) : hn_f16_to_f32(m->scale[o][g]);
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

/* Field number `at` of a string of bits. */
static void put_field(unsigned char *words, int bits, size_t at, int value) {
    for (int b = 0; b < bits; b++) {
        const size_t bit = at * (size_t)bits + (size_t)b;
        words[bit / 8] = (unsigned char)(words[bit / 8] & ~(1u << bit % 8));
        words[bit / 8] = (unsigned char)(words[bit / 8] | (unsigned)(value >> b & 1) << bit % 8);
    }
}

static unsigned char *list(bytes *data, size_t n) {
    const size_t at = data->size;
    bytes_zeros(data, n);
    return data->at + at;
}

typedef struct folder {
    bytes head, data;
    const char *module;
} folder;

static void put_head(folder *f, const char *name, const char *type, int rows, int columns, size_t size) {
    char text[300], shape[40];
    snprintf(shape, sizeof shape, columns > 0 ? "[%d, %d]" : "[%d]", rows, columns);
    snprintf(text, sizeof text, "%s\"%s.%s\": {\"dtype\": \"%s\", \"shape\": %s, \"data_offsets\": [%zu, %zu]}",
             f->head.size ? ", " : "{", f->module, name, type, shape, f->data.size, f->data.size + size);
    bytes_put(&f->head, text, strlen(text));
}

static void put_awq(const matrix *m, folder *f) {
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7}; /* field k is of column 8j + order[k] */
    const int words = m->out / 8;
    put_head(f, "qweight", "I32", m->in, words, (size_t)(m->in * words * 4));
    unsigned char *to = list(&f->data, (size_t)(m->in * words * 4));
    for (int i = 0; i < m->in; i++)
        for (int j = 0; j < words; j++)
            for (int k = 0; k < 8; k++) put_field(to + 4 * (i * words + j), 4, (size_t)k, m->code[8 * j + order[k]][i]);
    put_head(f, "qzeros", "I32", m->groups, words, (size_t)(m->groups * words * 4));
    to = list(&f->data, (size_t)(m->groups * words * 4));
    for (int g = 0; g < m->groups; g++)
        for (int j = 0; j < words; j++)
            for (int k = 0; k < 8; k++) put_field(to + 4 * (g * words + j), 4, (size_t)k, m->zero[8 * j + order[k]][g]);
}

static void put_gptq(const matrix *m, folder *f) {
    const int words = m->in * m->bits / 32, zeros = (m->out * m->bits + 31) / 32, mask = (1 << m->bits) - 1;
    unsigned char column[MOST_IN * MOST_BITS / 8], row[MOST_OUT * MOST_BITS / 8] = {0};
    put_head(f, "qweight", "I32", words, m->out, (size_t)(words * m->out * 4));
    unsigned char *to = list(&f->data, (size_t)(words * m->out * 4));
    for (int o = 0; o < m->out; o++) {
        for (int i = 0; i < m->in; i++) put_field(column, m->bits, (size_t)i, m->code[o][i]);
        for (int w = 0; w < words; w++) memcpy(to + 4 * (w * m->out + o), column + 4 * w, 4);
    }
    put_head(f, "qzeros", "I32", m->groups, zeros, (size_t)(m->groups * zeros * 4));
    to = list(&f->data, (size_t)(m->groups * zeros * 4));
    for (int g = 0; g < m->groups; g++, to += 4 * zeros) {
        for (int o = 0; o < m->out; o++) put_field(row, m->bits, (size_t)o, (m->zero[o][g] - (m->layout == GPTQ)) & mask);
        memcpy(to, row, (size_t)zeros * 4);
    }
    if (!m->act_order && below(2)) return; /* a list in order may be there, or not */
    put_head(f, "g_idx", "I32", m->in, 0, (size_t)m->in * 4);
    for (int i = 0; i < m->in; i++) bytes_number(&f->data, (uint64_t)m->group[i], 4);
}

static void put_columns(const matrix *m, folder *f) {
    if (m->layout == AWQ) put_awq(m, f);
    else put_gptq(m, f);
    put_head(f, "scales", m->bf16 ? "BF16" : "F16", m->groups, m->out, (size_t)(m->groups * m->out * 2));
    for (int g = 0; g < m->groups; g++)
        for (int o = 0; o < m->out; o++) bytes_number(&f->data, m->scale[o][g], 2);
}

static void put_rows(const matrix *m, folder *f) {
    const int words = (m->in * m->bits + 31) / 32, shared = (m->out * m->bits + 31) / 32;
    unsigned char *to;
    if (m->layout == BYTES) {
        put_head(f, "weight", "I8", m->out, m->in, (size_t)(m->out * m->in));
        for (int o = 0; o < m->out; o++)
            for (int i = 0; i < m->in; i++) bytes_number(&f->data, (uint64_t)(uint8_t)m->code[o][i], 1);
    } else {
        put_head(f, "weight_packed", "I32", m->out, words, (size_t)(m->out * words * 4));
        to = list(&f->data, (size_t)(m->out * words * 4));
        for (int o = 0; o < m->out; o++)
            for (int i = 0; i < m->in; i++) put_field(to + 4 * o * words, m->bits, (size_t)i, m->code[o][i]);
        put_head(f, "weight_shape", "I64", 2, 0, 16);
        bytes_number(&f->data, (uint64_t)m->out, 8);
        bytes_number(&f->data, (uint64_t)m->in, 8);
    }
    if (m->zeros && m->layout == BYTES) {
        put_head(f, "weight_zero_point", "I8", m->out, m->groups, (size_t)(m->out * m->groups));
        for (int o = 0; o < m->out; o++)
            for (int g = 0; g < m->groups; g++) bytes_number(&f->data, (uint64_t)(uint8_t)m->zero[o][g], 1);
    } else if (m->zeros) {
        unsigned char column[MOST_OUT * MOST_BITS / 8 + 4];
        put_head(f, "weight_zero_point", "I32", shared, m->groups, (size_t)(shared * m->groups * 4));
        to = list(&f->data, (size_t)(shared * m->groups * 4));
        for (int g = 0; g < m->groups; g++) {
            for (int o = 0; o < m->out; o++) put_field(column, m->bits, (size_t)o, m->zero[o][g]);
            for (int w = 0; w < shared; w++) memcpy(to + 4 * (w * m->groups + g), column + 4 * w, 4);
        }
    }
    if (m->act_order) {
        put_head(f, "weight_g_idx", "I32", m->in, 0, (size_t)m->in * 4);
        for (int i = 0; i < m->in; i++) bytes_number(&f->data, (uint64_t)m->group[i], 4);
    }
    const int scales = m->one ? 1 : m->out;
    put_head(f, "weight_scale", m->bf16 ? "BF16" : "F16", scales, m->one ? 0 : m->groups, (size_t)(scales * m->groups * 2));
    for (int o = 0; o < scales; o++)
        for (int g = 0; g < m->groups; g++) bytes_number(&f->data, m->scale[o][g], 2);
}

static void write_folder(const char *config, const folder *f) {
    char path[1400], text[600];
    bytes b = {0};
    (void)mkdir(test_path("packed"), 0700);
    bytes_number(&b, f->head.size + 1, 8);
    bytes_put(&b, f->head.at, f->head.size);
    bytes_put(&b, "}", 1);
    bytes_put(&b, f->data.at, f->data.size);
    snprintf(path, sizeof path, "%s/model.safetensors", test_path("packed"));
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
    snprintf(path, sizeof path, "%s/config.json", test_path("packed"));
    snprintf(text, sizeof text, "{\"model_type\": \"x\", \"quantization_config\": %s}", config);
    test_file_write(path, text, strlen(text));
}

static void put_matrix(const matrix *m, folder *f) {
    const float number = 3;
    if (m->layout < COMPRESSED) put_columns(m, f);
    else put_rows(m, f);
    if (!m->extra) return;
    put_head(f, m->extra, "F32", 1, 0, sizeof number);
    bytes_put(&f->data, &number, sizeof number);
}

static void write_matrix(const matrix *m) {
    char own[300];
    folder f = {.module = "a"};
    const char *config = m->config;
    if (m->layout == AWQ) snprintf(own, sizeof own, "{\"quant_method\": \"awq\", \"bits\": 4, \"version\": \"gemm\"}");
    else if (m->layout < COMPRESSED)
        snprintf(own, sizeof own, "{\"quant_method\": \"gptq\", \"bits\": %d, \"checkpoint_format\": \"%s\"}", m->bits,
                 m->layout == GPTQ ? "gptq" : "gptq_v2");
    else
        snprintf(own, sizeof own, "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], "
                                  "\"weights\": {\"num_bits\": %d, \"type\": \"int\"}}}}", m->bits);
    put_matrix(m, &f);
    write_folder(config ? config : own, &f);
    bytes_free(&f.head);
    bytes_free(&f.data);
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static void check(matrix *m, hn_dtype type) {
    hn_source *s = NULL;
    hunch_error err = {0};
    fill(m);
    write_matrix(m);
    if (hn_source_open(&s, test_path("packed"), &err)) fail_msg("%s", err.message);
    assert_int_equal(hn_source_tensor_count(s), 1);
    hn_tensor *t = hn_source_take(s, "a.weight");
    assert_non_null(t);
    if (t->dtype != type) fail_msg("layout %d, %d bits: type %s, expected %s", m->layout, m->bits, t->type_name, hn_dtype_name(type));
    assert_true(t->n_dims == 2 && t->dims[0] == (uint64_t)m->in && t->dims[1] == (uint64_t)m->out && !t->data);
    const size_t row = t->bytes / (size_t)m->out;
    unsigned char *all = malloc(t->bytes), *piece = malloc(t->bytes);
    float got[MOST_IN];
    if (hn_source_read(s, t, 0, t->bytes, all, &err)) fail_msg("%s", err.message);
    for (int o = 0; o < m->out; o++) {
        hn_dequantise(type, all + (size_t)o * row, (size_t)m->in, got);
        for (int i = 0; i < m->in; i++) {
            const float want = (float)(m->code[o][i] - m->zero[o][m->group[i]]) * scale_of(m, o, m->group[i]);
            if (got[i] != want)
                fail_msg("layout %d, %d bits, row %d, weight %d is %g, expected %g", m->layout, m->bits, o, i, (double)got[i],
                         (double)want);
        }
    }
    for (int k = 0; k < 40; k++) {
        const size_t off = (size_t)below((int)t->bytes), n = (size_t)below(k % 2 ? 50 : (int)(t->bytes - off)) + 1;
        if (off + n > t->bytes) continue;
        assert_int_equal(hn_source_read(s, t, off, n, piece, &err), HUNCH_OK);
        assert_memory_equal(piece, all + off, n);
    }
    free(all);
    free(piece);
    hn_source_close(&s);
}

static void test_layouts(void **state) {
    (void)state;
    static const struct {
        layout layout;
        int bits;
        bool zeros;
        hn_dtype type;
    } cases[] = {{AWQ, 4, true, HN_Q5_0},         {AWQ, 4, false, HN_Q4_0},        {GPTQ, 4, false, HN_Q4_0},
                 {GPTQ, 4, true, HN_Q5_0},        {GPTQ, 2, true, HN_Q4_0},        {GPTQ, 3, true, HN_Q4_0},
                 {GPTQ, 3, false, HN_Q4_0},       {GPTQ, 8, false, HN_Q8_0},       {GPTQ, 8, true, HN_F32},
                 {GPTQ_V2, 4, true, HN_Q5_0},     {GPTQ_V2, 2, true, HN_Q4_0},     {GPTQ_V2, 8, false, HN_Q8_0},
                 {COMPRESSED, 4, false, HN_Q4_0}, {COMPRESSED, 4, true, HN_Q5_0},  {COMPRESSED, 8, false, HN_Q8_0},
                 {COMPRESSED, 8, true, HN_F32},   {BYTES, 8, false, HN_Q8_0},      {BYTES, 8, true, HN_F32}};
    static const int groups[] = {1, 2, 4, 8};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
            matrix m = {.layout = cases[c].layout, .bits = cases[c].bits, .in = 256, .out = g % 2 ? 96 : 32, .groups = groups[g],
                        .zeros = cases[c].zeros, .bf16 = c >= 12 && g % 2};
            if (c >= 12 && g == 2) m.out = 13; /* rows that no word divides */
            check(&m, cases[c].type);
        }
}

/* What no block type holds: groups of other sizes or in no order, inputs that are no whole blocks, scales out of F16's range. */
static void test_floats(void **state) {
    (void)state;
    static const layout by_order[] = {GPTQ, GPTQ_V2, COMPRESSED};
    for (int i = 0; i < 3; i++) {
        matrix m = {.layout = by_order[i], .bits = 4, .in = 128, .out = 64, .groups = 4, .zeros = i != 1, .act_order = true};
        check(&m, HN_F32);
    }
    check(&(matrix){.layout = AWQ, .bits = 4, .in = 128, .out = 32, .groups = 8, .zeros = true}, HN_F32);
    check(&(matrix){.layout = COMPRESSED, .bits = 4, .in = 72, .out = 8, .groups = 1}, HN_F32);
    check(&(matrix){.layout = COMPRESSED, .bits = 4, .in = 77, .out = 5, .groups = 7, .zeros = true}, HN_F32);
    check(&(matrix){.layout = COMPRESSED, .bits = 4, .in = 128, .out = 32, .groups = 4, .bf16 = true, .tiny = true}, HN_F32);
}

/* A scale for all of a matrix, in either form. */
static void test_one_scale(void **state) {
    (void)state;
    check(&(matrix){.layout = BYTES, .bits = 8, .in = 64, .out = 40, .groups = 1, .one = true}, HN_Q8_0);
    check(&(matrix){.layout = COMPRESSED, .bits = 4, .in = 64, .out = 40, .groups = 1, .one = true, .bf16 = true}, HN_Q4_0);
}

/* A layer's experts have one type for each of their matrices, not one for all. */
static void test_experts(void **state) {
    (void)state;
    static const char config[] = "{\"quant_method\": \"gptq\", \"bits\": 4, \"dynamic\": {\"+:.*down\": {\"bits\": 8}}}";
    hn_source *s = NULL;
    char name[40];
    folder f = {.module = name};
    for (int i = 0; i < 24; i++) {
        const bool down = i % 2;
        matrix m = {.layout = GPTQ, .bits = down ? 8 : 4, .in = 64, .out = 32, .groups = 2, .zeros = !down && i == 6};
        snprintf(name, sizeof name, "b.experts.%d.%s", i / 2, down ? "down" : "up");
        fill(&m);
        put_matrix(&m, &f);
    }
    write_folder(config, &f);
    bytes_free(&f.head);
    bytes_free(&f.data);
    assert_int_equal(hn_source_open(&s, test_path("packed"), NULL), HUNCH_OK);
    assert_int_equal(hn_source_tensor_count(s), 24);
    for (size_t i = 0; i < 24; i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        assert_int_equal(t->dtype, strstr(t->name, "down") ? HN_Q8_0 : HN_Q5_0); /* one of `up` needs five bits */
    }
    hn_source_close(&s);
}

/* Groups in no order, of whole blocks each: sorted, rows are those of a block type. */
static void test_sorted(void **state) {
    (void)state;
    static const layout by_order[] = {GPTQ, GPTQ_V2, COMPRESSED};
    for (int i = 0; i < 9; i++) {
        matrix m = {.layout = by_order[i % 3], .bits = i < 6 ? 4 : 8, .in = 256, .out = 64, .groups = 4, .zeros = i < 3};
        hn_source *s = NULL;
        hunch_error err = {0};
        const int32_t *order, *again;
        float got[MOST_IN];
        fill(&m);
        for (int k = m.in - 1; k > 0; k--) {
            const int j = below(k + 1), kept = m.group[k];
            m.group[k] = m.group[j];
            m.group[j] = kept;
        }
        m.act_order = true;
        write_matrix(&m);
        assert_int_equal(hn_source_open(&s, test_path("packed"), &err), HUNCH_OK);
        hn_tensor *t = hn_source_take(s, "a.weight");
        assert_int_equal(t->dtype, HN_F32);
        assert_int_equal(hn_source_sort(t, &order, &err), HUNCH_OK);
        assert_int_equal(hn_source_sort(t, &again, &err), HUNCH_OK);
        assert_true(order && order == again && t->dtype == (i < 3 ? HN_Q5_0 : i < 6 ? HN_Q4_0 : HN_Q8_0));
        const size_t row = t->bytes / (size_t)m.out;
        unsigned char *all = malloc(t->bytes);
        assert_int_equal(hn_source_read(s, t, 0, t->bytes, all, &err), HUNCH_OK);
        bool seen[MOST_IN] = {false};
        for (int k = 0; k < m.in; k++) {
            assert_true(order[k] >= 0 && order[k] < m.in && !seen[order[k]]);
            seen[order[k]] = true;
        }
        for (int o = 0; o < m.out; o++) {
            hn_dequantise(t->dtype, all + (size_t)o * row, (size_t)m.in, got);
            for (int k = 0; k < m.in; k++) {
                const int at = order[k], g = m.group[at];
                assert_true(got[k] == (float)(m.code[o][at] - m.zero[o][g]) * scale_of(&m, o, g));
            }
        }
        free(all);
        hn_source_close(&s);
    }
    /* uneven groups, and a matrix in order, stay as they are */
    for (int uneven = 0; uneven < 2; uneven++) {
        matrix m = {.layout = GPTQ, .bits = 4, .in = 128, .out = 32, .groups = 2, .act_order = uneven};
        hn_source *s = NULL;
        const int32_t *order;
        fill(&m);
        if (uneven) m.group[0] = 1, m.group[1] = 0, m.group[2] = 1;
        write_matrix(&m);
        assert_int_equal(hn_source_open(&s, test_path("packed"), NULL), HUNCH_OK);
        hn_tensor *t = hn_source_take(s, "a.weight");
        int of_first = 0;
        for (int k = 0; k < m.in; k++) of_first += m.group[k] == 0;
        assert_int_equal(hn_source_sort(t, &order, NULL), HUNCH_OK);
        assert_true((order != NULL) == (uneven && of_first % 32 == 0));
        assert_int_equal(t->dtype, order || !uneven ? HN_Q4_0 : HN_F32);
        hn_source_close(&s);
    }
}

/* ---- refusals -------------------------------------------------------------------------------------------------------------- */

typedef struct damage {
    const char *from, *to; /* in the head of the file of weights; both as long */
    const char *words;
} damage;

static void refused(matrix *m, const damage *d) {
    char path[1400];
    hn_source *s = NULL;
    hunch_error err = {0};
    fill(m);
    write_matrix(m);
    snprintf(path, sizeof path, "%s/model.safetensors", test_path("packed"));
    bytes file = test_file_read(path);
    unsigned char *at = d->from ? memmem(file.at, file.size, d->from, strlen(d->from)) : NULL;
    assert_true(!d->from || (at && strlen(d->from) == strlen(d->to)));
    if (d->from) memcpy(at, d->to, strlen(d->to));
    test_file_write(path, file.at, file.size);
    bytes_free(&file);
    assert_int_equal(hn_source_open(&s, test_path("packed"), &err), HUNCH_REFUSED);
    if (!strstr(err.message, d->words)) fail_msg("%s: expected %s", err.message, d->words);
}

static void test_misfits(void **state) {
    (void)state;
    static const damage of_gptq[] = {
        {"a.scales", "a.scalex", "tensor a.qweight has no scales beside it: expected type F16"},
        {"a.qzeros", "a.qzerox", "tensor a.qweight has no qzeros beside it"},
        {"\"F16\"", "\"I16\"", "tensor a.scales has type I16, expected type F16"},
        {"a.qzeros\": {\"dtype\": \"I32\"", "a.qzeros\": {\"dtype\": \"F32\"", "tensor a.qzeros has type F32, expected type I32"},
        {"a.qweight\": {\"dtype\": \"I32\", \"shape\": [16, 64]", "a.qweight\": {\"dtype\": \"I32\", \"shape\": [64, 16]",
         "tensor a.qweight has shape [16, 64], expected [64, 64]: tensor a.scales has [64, 4]"},
        {"a.qzeros\": {\"dtype\": \"I32\", \"shape\": [4, 8]", "a.qzeros\": {\"dtype\": \"I32\", \"shape\": [2,16]",
         "tensor a.qweight has codes of 8 bits by the shapes beside it, but quantization_config says 4"},
        {"a.qweight\": {\"dtype\": \"I32\"", "a.qweight\": {\"dtype\": \"F32\"", "tensor a.qweight has type F32, expected type I32"},
        {"a.qweight", "a.qweighx", "has neither qweight nor weight beside it"}};
    static const damage of_compressed[] = {
        {"a.weight_scale", "a.weight_scalf", "tensor a.weight_packed has no weight_scale beside it"},
        {"a.weight_shape", "a.weight_shapf", "tensor a.weight_packed has no weight_shape beside it"},
        {"a.weight_zero_point\": {\"dtype\": \"I32\"", "a.weight_zero_point\": {\"dtype\": \"F32\"",
         "tensor a.weight_zero_point has type F32, expected type I32"},
        {"\"shape\": [64, 4]", "\"shape\": [32, 8]",
         "tensor a.weight_scale has shape [8, 32], expected [8, 64]: tensor a.weight_packed has [16, 64]"},
        {"a.weight_packed", "a.weight_packex", " has neither weight_packed nor weight beside it"}};
    matrix gptq = {.layout = GPTQ, .bits = 4, .in = 128, .out = 64, .groups = 4, .zeros = true};
    matrix compressed = {.layout = COMPRESSED, .bits = 4, .in = 128, .out = 64, .groups = 4, .zeros = true};
    for (size_t i = 0; i < sizeof of_gptq / sizeof *of_gptq; i++) refused(&gptq, &of_gptq[i]);
    for (size_t i = 0; i < sizeof of_compressed / sizeof *of_compressed; i++) refused(&compressed, &of_compressed[i]);
    matrix wide = {.layout = COMPRESSED, .bits = 2, .in = 128, .out = 64, .groups = 4};
    refused(&wide, &(damage){NULL, NULL, "has codes of 2 bits by the shapes beside it, expected 4 or 8"});
    matrix partial = {.layout = AWQ, .bits = 4, .in = 100, .out = 32, .groups = 3};
    refused(&partial, &(damage){NULL, NULL, "tensor a.scales has 3 groups for 100 inputs"});
    matrix narrow = {.layout = GPTQ, .bits = 3, .in = 64, .out = 40, .groups = 2};
    refused(&narrow, &(damage){NULL, NULL, "tensor a.scales has scales of 40 outputs, expected a multiple of 32"});
    gptq.extra = compressed.extra = "weight"; /* which of them is meant? */
    refused(&gptq, &(damage){NULL, NULL, "tensor a.qweight has tensor a.weight beside it, expected one of them"});
    refused(&compressed, &(damage){NULL, NULL, "tensor a.weight_packed has tensor a.weight beside it"});
}

/* A list of groups, or a scale, that no matrix has. */
static void test_numbers(void **state) {
    (void)state;
    matrix m = {.layout = GPTQ, .bits = 4, .in = 64, .out = 32, .groups = 2, .act_order = true};
    for (int bad = 0; bad < 2; bad++) {
        hn_source *s = NULL;
        hunch_error err = {0};
        fill(&m);
        m.group[17] = bad ? 2 : -1;
        write_matrix(&m);
        assert_int_equal(hn_source_open(&s, test_path("packed"), &err), HUNCH_REFUSED);
        if (!strstr(err.message, "element 17 of tensor a.g_idx")) fail_msg("%s", err.message);
    }
    unsigned char nan[2] = {0x00, 0x7e};
    matrix scaled = {.layout = GPTQ, .bits = 4, .in = 64, .out = 32, .groups = 2};
    hn_source *s = NULL;
    hunch_error err = {0};
    fill(&scaled);
    memcpy(&scaled.scale[9][1], nan, 2);
    write_matrix(&scaled);
    assert_int_equal(hn_source_open(&s, test_path("packed"), &err), HUNCH_OK);
    hn_tensor *t = hn_source_take(s, "a.weight");
    unsigned char *all = malloc(t->bytes);
    assert_int_equal(hn_source_read(s, t, 0, t->bytes, all, &err), HUNCH_REFUSED);
    if (!strstr(err.message, "tensor a.weight: that of row 9, group 1 is not finite")) fail_msg("%s", err.message);
    free(all);
    hn_source_close(&s);
}

#define CT_CONFIG(more) \
    "{\"quant_method\": \"compressed-tensors\"" more ", \"config_groups\": {\"g\": {\"weights\": {\"num_bits\": 4, \"type\": \"int\"}}}}"

/* What changes nothing in the configuration, and the second name of a version's key. */
static void test_configurations(void **state) {
    (void)state;
    static const char *const same[] = {CT_CONFIG(", \"transform_config\": {}, \"sparsity_config\": {\"format\": \"dense\"}"),
                                       CT_CONFIG(", \"format\": \"mixed-precision\", \"transform_config\": {\"config_groups\": {}}")};
    for (int i = 0; i < 2; i++)
        check(&(matrix){.layout = COMPRESSED, .bits = 4, .in = 64, .out = 32, .groups = 2, .zeros = true, .config = same[i]}, HN_Q5_0);
    check(&(matrix){.layout = GPTQ_V2, .bits = 4, .in = 64, .out = 32, .groups = 2, .zeros = true,
                    .config = "{\"quant_method\": \"gptq\", \"bits\": 4, \"format\": \"gptq_v2\"}"}, HN_Q5_0);
}

/* Scales of inputs and of caches are for GPUs, and used by nothing here; other names are told as not used. */
static void test_scales_of_inputs(void **state) {
    (void)state;
    static const char *const names[] = {"input_scale", "output_scale", "k_scale", "other_scale"};
    for (int i = 0; i < 4; i++) {
        matrix m = {.layout = COMPRESSED, .bits = 4, .in = 64, .out = 32, .groups = 2, .extra = names[i]};
        char name[40];
        hn_source *s = NULL;
        fill(&m);
        write_matrix(&m);
        snprintf(name, sizeof name, "a.%s", names[i]);
        assert_int_equal(hn_source_open(&s, test_path("packed"), NULL), HUNCH_OK);
        assert_int_equal(hn_source_find(s, name)->used, i < 3);
        hn_source_close(&s);
    }
}

/* Versions that are packed otherwise stay as they are, and the model says which they are when it looks for the matrix. */
static void test_versions(void **state) {
    (void)state;
    static const struct {
        layout layout;
        const char *config, *words;
    } cases[] = {
        {AWQ, "{\"quant_method\": \"awq\", \"bits\": 4, \"version\": \"gemv\"}", "awq (version gemv, bits 4)"},
        {AWQ, "{\"quant_method\": \"awq\", \"bits\": 8, \"version\": \"gemm\"}", "awq (version gemm, bits 8)"},
        {GPTQ, "{\"quant_method\": \"gptq\", \"bits\": 4, \"checkpoint_format\": \"marlin\"}", "gptq (checkpoint_format marlin, bits 4)"},
        {GPTQ, "{\"quant_method\": \"gptq\", \"bits\": 4, \"is_marlin_format\": true}", "gptq (bits 4, is_marlin_format true)"},
        {GPTQ, "{\"quant_method\": \"auto-round\", \"bits\": 4, \"packing_format\": \"auto_round:auto_gptq\"}",
         "auto-round (packing_format"},
        {GPTQ, "{}", "tensor a.qweight is packed, and no file says how (tensor a.weight is missing)"},
        {COMPRESSED, CT_CONFIG(", \"format\": \"marlin-24\""), "compressed-tensors (format marlin-24"},
        {COMPRESSED, CT_CONFIG(", \"transform_config\": {\"config_groups\": {\"R1\": {}}}"), "compressed-tensors (with a transform_config"},
        {COMPRESSED, CT_CONFIG(", \"sparsity_config\": {\"format\": \"sparse-24-bitmask\"}"), "compressed-tensors (with a sparsity_config"},
    };
    const uint64_t dims[2] = {64, 32};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        matrix m = {.layout = cases[i].layout, .bits = 4, .in = 64, .out = 32, .groups = 2, .config = cases[i].config};
        hn_source *s = NULL;
        hn_tensor *t;
        hunch_error err = {0};
        fill(&m);
        write_matrix(&m);
        assert_int_equal(hn_source_open(&s, test_path("packed"), &err), HUNCH_OK);
        assert_non_null(hn_source_find(s, m.layout == COMPRESSED ? "a.weight_packed" : "a.qweight"));
        assert_int_equal(hn_source_need_shape(s, "a.weight", 2, dims, &t, &err), HUNCH_REFUSED);
        if (!strstr(err.message, cases[i].words)) fail_msg("%s: expected %s", err.message, cases[i].words);
        hn_source_close(&s);
    }
}

/* Damaged folders are refused, or read to the end. */
static void test_mutations(void **state) {
    (void)state;
    enum { EACH = 100 };
    int opened = 0;
    for (int how = AWQ; how <= BYTES; how++) {
        matrix m = {.layout = (layout)how, .bits = how == BYTES ? 8 : 4, .in = 64, .out = 32, .groups = 2, .zeros = true,
                    .act_order = how == GPTQ_V2};
        for (int i = 0; i < EACH; i++) {
            char path[1400];
            hn_source *s = NULL;
            hunch_error err = {0};
            fill(&m);
            write_matrix(&m);
            snprintf(path, sizeof path, "%s/%s", test_path("packed"), i % 4 ? "model.safetensors" : "config.json");
            bytes file = test_file_read(path);
            const size_t most = i % 4 ? (i % 4 == 1 ? file.size : 500) : file.size;
            for (int k = 0; k <= i % 3; k++) {
                const size_t at = (size_t)below((int)most);
                if (at >= 8 || i % 4 == 0) file.at[at] = (unsigned char)(i % 2 ? '0' + below(10) : below(256));
            }
            test_file_write(path, file.at, file.size);
            bytes_free(&file);
            const hunch_status status = hn_source_open(&s, test_path("packed"), &err);
            assert_true(status == HUNCH_OK || (status == HUNCH_REFUSED && err.message[0]));
            for (size_t t = 0; s && t < hn_source_tensor_count(s); t++) {
                const hn_tensor *one = hn_source_tensor(s, t);
                unsigned char *all = malloc(one->bytes + 1);
                const hunch_status read = hn_source_read(s, one, 0, one->bytes, all, &err);
                assert_true(read == HUNCH_OK || read == HUNCH_REFUSED);
                opened += one->view != NULL;
                free(all);
            }
            hn_source_close(&s);
        }
    }
    assert_true(opened > EACH); /* the damage is not such that all are refused at once */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts), cmocka_unit_test(test_floats), cmocka_unit_test(test_sorted),
                                       cmocka_unit_test(test_one_scale), cmocka_unit_test(test_experts), cmocka_unit_test(test_misfits),
                                       cmocka_unit_test(test_numbers), cmocka_unit_test(test_configurations),
                                       cmocka_unit_test(test_scales_of_inputs), cmocka_unit_test(test_versions),
                                       cmocka_unit_test(test_mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
