/* SPDX-License-Identifier: Apache-2.0 */
/* latent_files_test.c - matrices of heads of latent attention as different programs write them: apart, as rows of one tensor (older GGUF
 * files), both beside each other, in 8-bit floats with factors. The logits are those of the folder, or of the same numbers as float32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "model/folder_for_tests.h"
#include "expert_parts.h"

enum { N = 9, VOCAB = 512, HEADS = 4, DEPTH = 4 };
#define FOLDER data_path("goldens/deepseek_v3-noqlora")

static void keep(void *user, size_t row, const float *logits, int vocab) {
    assert_true(row < N && vocab == VOCAB);
    memcpy((float *)user + row * VOCAB, logits, VOCAB * sizeof *logits);
}

static void logits_of(const char *path, hunch_precision precision, bool mapped, float out[N * VOCAB]) {
    static const hunch_token text[N] = {5, 77, 301, 9, 44, 260, 5, 77, 12};
    hunch_model *m = open_model_as(path, "best", test_threads(), precision, mapped);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 64);
    must(hunch_evaluate(e, text, N, keep, out, err));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void check_same(const float *want, const char *path, hunch_precision precision, const char *what) {
    static float got[N * VOCAB];
    for (int mapped = 0; mapped < 2; mapped++) {
        logits_of(path, precision, mapped, got);
        if (memcmp(got, want, sizeof got)) fail_msg("%s, mapped %d, precision %d: other logits", what, mapped, precision);
    }
}

/* The number behind a key in the metadata. */
static void patch_key(parts *p, const char *key, uint32_t value) {
    unsigned char *at = memmem(p->keys.at, p->keys.size, key, strlen(key));
    assert_non_null(at);
    memcpy(at + strlen(key) + 4, &value, sizeof value); /* behind its type */
}

/* Two tensors of a layer with a matrix for each head become the rows of one. */
static void unsplit(parts *p, int layer, bool beside) {
    char keys[96], values[96], both[96];
    name_layer(keys, "blk.%d.attn_k_b.weight", layer);
    name_layer(values, "blk.%d.attn_v_b.weight", layer);
    name_layer(both, "blk.%d.attn_kv_b.weight", layer);
    const part k = *part_find(p, keys), v = *part_find(p, values);
    const size_t nope = k.dims[0], rank = k.dims[1], value = v.dims[1], size = 2;
    const uint64_t dims[2] = {rank, HEADS * (nope + value)};
    bytes all = {0};
    for (size_t h = 0; h < HEADS; h++) {
        for (size_t r = 0; r < nope; r++)
            for (size_t c = 0; c < rank; c++) bytes_put(&all, k.data.at + ((h * rank + c) * nope + r) * size, size);
        bytes_put(&all, v.data.at + h * value * rank * size, value * rank * size);
    }
    if (!beside) {
        part_drop(p, keys);
        part_drop(p, values);
    }
    part_add(p, both, HN_BF16, 2, dims)->data = all;
}

/* ik_llama.cpp's files have the matrices of all heads as rows of one. */
static void join_heads(parts *p, int layer) {
    static const char *const names[] = {"blk.%d.attn_k_b.weight", "blk.%d.attn_v_b.weight"};
    for (int i = 0; i < 2; i++) {
        char name[96];
        name_layer(name, names[i], layer);
        part *t = part_find(p, name);
        t->dims[1] *= t->dims[2];
        t->n_dims = 2;
    }
}

/* Older GGUF files: the sizes of heads are under the plain keys, and one tensor has all rows. Some have both forms. */
static void test_forms(void **state) {
    (void)state;
    static float want[N * VOCAB];
    for (int precision = HUNCH_PRECISION_NATIVE; precision <= HUNCH_PRECISION_F32; precision++) {
        logits_of(FOLDER, (hunch_precision)precision, false, want);
        check_same(want, FOLDER, (hunch_precision)precision, "the folder");
        check_same(want, converted("goldens/deepseek_v3-noqlora"), (hunch_precision)precision, "its GGUF");
        for (int beside = 0; beside < 2; beside++) {
            parts p;
            parts_read(&p, converted("goldens/deepseek_v3-noqlora"));
            for (int layer = 0; layer < DEPTH; layer++) unsplit(&p, layer, beside);
            for (int k = 0; k < 2 && !beside; k++) {
                unsigned char *at = memmem(p.keys.at, p.keys.size, "_length_mla", 11);
                assert_non_null(at);
                at[10] = 'x'; /* an unknown key */
            }
            if (!beside) patch_key(&p, "attention.key_length", 32);
            if (!beside) patch_key(&p, "attention.value_length", 16);
            check_same(want, gguf_of(&p), (hunch_precision)precision, beside ? "both forms" : "one tensor");
            for (int layer = 0; layer < DEPTH && beside; layer++) join_heads(&p, layer);
            if (beside) check_same(want, gguf_of(&p), (hunch_precision)precision, "rows of all heads");
            parts_free(&p);
        }
    }
}

/* Matrices of 8-bit floats with a factor for each 128 x 128 numbers, or the numbers that they stand for. */
static void put_f8(parts *p, int layer, const char *pattern, int in, int out, bool wide) {
    const uint64_t across = ((uint64_t)in + 127) / 128, down = ((uint64_t)out + 127) / 128, dims[2] = {(uint64_t)in, (uint64_t)out};
    char name[96], factors[120];
    bytes codes = {0}, scale = {0};
    name_layer(name, pattern, layer);
    snprintf(factors, sizeof factors, "%s_scale_inv", name);
    for (uint64_t k = 0; k < across * down; k++) {
        const float f = 0.02f + 0.01f * (float)(k % 7);
        bytes_put(&scale, &f, sizeof f);
    }
    uint64_t x = 11 + (uint64_t)(layer * 1000 + out);
    for (uint64_t k = 0; k < dims[0] * dims[1]; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const uint8_t code = (uint8_t)((x >> 60 & 1) << 7 | (40 + (x >> 40) % 24));
        float f;
        memcpy(&f, scale.at + 4 * (k / dims[0] / 128 * across + k % dims[0] / 128), sizeof f);
        f *= hn_f8_to_f32(code);
        bytes_put(&codes, wide ? (const void *)&f : &code, wide ? sizeof f : 1);
    }
    const uint64_t grid[2] = {across, down};
    part_drop(p, name);
    part_add(p, name, wide ? HN_F32 : HN_F8_E4M3, 2, dims)->data = codes;
    if (wide)
        bytes_free(&scale);
    else
        part_add(p, factors, HN_F32, 2, grid)->data = scale;
}

/* The folder with heads of `nope` + `value` and rows of 160 + 16 numbers, whose matrices of attention are 8-bit floats. */
static const char *write_f8(int nope, int value, bool wide) {
    enum { RANK = 160, ROPE = 16 };
    parts p;
    char replace[160];
    parts_read(&p, FOLDER);
    for (int layer = 0; layer < DEPTH; layer++) {
        const uint64_t rank = RANK;
        char norm[96];
        bytes ones = {0};
        put_f8(&p, layer, "model.layers.%d.self_attn.q_proj.weight", HIDDEN, HEADS * (nope + ROPE), wide);
        put_f8(&p, layer, "model.layers.%d.self_attn.kv_a_proj_with_mqa.weight", HIDDEN, RANK + ROPE, wide);
        put_f8(&p, layer, "model.layers.%d.self_attn.kv_b_proj.weight", RANK, HEADS * (nope + value), wide);
        put_f8(&p, layer, "model.layers.%d.self_attn.o_proj.weight", HEADS * value, HIDDEN, wide);
        name_layer(norm, "model.layers.%d.self_attn.kv_a_layernorm.weight", layer);
        for (int i = 0; i < RANK; i++) bytes_put(&ones, &(float){1}, sizeof(float));
        part_drop(&p, norm);
        part_add(&p, norm, HN_F32, 1, &rank)->data = ones;
    }
    snprintf(replace, sizeof replace, "\"kv_lora_rank\": 160, \"qk_nope_head_dim\": %d, \"v_head_dim\": %d, \"qk_rope_head_dim\"", nope,
             value);
    const char *path = folder_of(&p, test_path("."), "\"qk_rope_head_dim\"", replace);
    parts_free(&p);
    return path;
}

/* The golden's config.json without the keys that write_f8 sets. */
static void write_config(void) {
    static const char *const keys[] = {"\"kv_lora_rank\"", "\"qk_nope_head_dim\"", "\"v_head_dim\""};
    char path[1300];
    snprintf(path, sizeof path, "%s/config.json", FOLDER);
    bytes config = test_file_read(path);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        unsigned char *at = memmem(config.at, config.size, keys[i], strlen(keys[i]));
        assert_non_null(at);
        at[1] = 'x';
    }
    test_file_write(test_path("config.json"), config.at, config.size);
    bytes_free(&config);
}

static void check_close(const float *want, const float *got, const char *what) {
    double square = 0, d = 0;
    for (int i = 0; i < N * VOCAB; i++) {
        square += (double)want[i] * (double)want[i];
        d = fmax(d, fabs((double)got[i] - (double)want[i]));
    }
    if (!(d <= 5e-4 * sqrt(square / (N * VOCAB)))) fail_msg("%s: logits are off by %g", what, d);
}

/* Factors are found by the other index where rows and columns are exchanged; where blocks end inside a head the numbers are widened. */
static void test_f8(void **state) {
    (void)state;
    static float want[N * VOCAB], got[N * VOCAB];
    write_config();
    logits_of(write_f8(128, 128, true), HUNCH_PRECISION_F32, false, want);
    for (int mapped = 0; mapped < 2; mapped++) {
        logits_of(write_f8(128, 128, false), HUNCH_PRECISION_F32, mapped, got);
        check_close(want, got, mapped ? "8-bit floats in the file" : "8-bit floats");
    }
    static const int heads[][2] = {{64, 64}, {64, 48}, {96, 80}, {24, 40}}; /* the last: rows of a strip have two factors */
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (int mapped = 0; mapped < 2; mapped++) {
            if (mapped && heads[i][0] % 16) continue;
            logits_of(write_f8(heads[i][0], heads[i][1], true), HUNCH_PRECISION_F32, false, want);
            logits_of(write_f8(heads[i][0], heads[i][1], false), HUNCH_PRECISION_F32, mapped, got);
            check_close(want, got, mapped ? "blocks that end in a head, in the file" : "blocks that end in a head");
        }
    hunch_model *m = NULL;
    hunch_error why;
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    o.mapped = true;
    assert_int_equal(hunch_model_open(&m, write_f8(24, 40, false), &o, &why), HUNCH_REFUSED);
    assert_non_null(strstr(why.message, "row 24 of 64 of a head, expected multiples of 16 for F8_E4M3 that stay in the file"));
}

/* A folder's rotated dims may be in halves; a GGUF has pairs always. */
static void test_halves(void **state) {
    (void)state;
    static const char *const folders[] = {"deepseek_v3-noqlora", "deepseek_v3-yarn"};
    static float pairs[N * VOCAB], want[N * VOCAB], got[N * VOCAB];
    for (int i = 0; i < 2; i++) {
        folder_write_changed(folders[i], "\"hidden_act\"", "\"rope_interleave\": true, \"hidden_act\"");
        logits_of(test_path("changed"), HUNCH_PRECISION_F32, false, pairs);
        folder_write_changed(folders[i], "\"hidden_act\"", "\"rope_interleave\": false, \"hidden_act\"");
        logits_of(test_path("changed"), HUNCH_PRECISION_F32, false, want);
        must(hunch_convert(test_path("changed"), test_path("halves.gguf"), NULL, err));
        logits_of(test_path("halves.gguf"), HUNCH_PRECISION_F32, false, got);
        assert_memory_not_equal(pairs, want, sizeof want);
        check_close(want, got, folders[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_halves), cmocka_unit_test(test_f8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
