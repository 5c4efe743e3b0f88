/* SPDX-License-Identifier: Apache-2.0 */
/* expert_files_test.c - experts as different programs write them: a tensor of each or stacks, gates and ups apart or as one, in folders
 * and GGUF files, old ones too, 8-bit floats with factors, types that differ within a layer. The same weights give the same logits,
 * packed and left in the file; inconsistent files are refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "expert_parts.h"

/* ---- logits -------------------------------------------------------------------------------------------------- */

typedef enum way { PACKED, MAPPED_EXPERTS, MAPPED, WAYS } way;

static void say(const char *path, const char *draft, way how, hunch_precision precision, answer *out) {
    enum { VOCAB = 256 };
    hunch_model *m = NULL;
    hunch_model_options o;
    hunch_request r;
    hunch_token prompt[40];
    hunch_model_options_defaults(&o);
    o.threads = test_threads();
    o.precision = precision;
    o.mapped = how == MAPPED;
    o.mapped_experts = how == MAPPED_EXPERTS;
    must(hunch_model_open(&m, path, &o, err));
    for (int i = 0; i < 40; i++) prompt[i] = (hunch_token)((i * 97 + i * i * 31) % VOCAB);
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = 40;
    r.max_tokens = 12;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    hunch_engine *e = open_engine(m, draft, 1, 16, HUNCH_KV_DEFAULT, 16, 128);
    *out = (answer){0};
    run_requests(e, &r, 1, true, out);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* Bit for bit `want`, for any way of loading weights. */
static void same(const answer *want, const char *path, const char *what) {
    for (int how = PACKED; how < WAYS; how++) {
        answer got;
        say(path, NULL, (way)how, HUNCH_PRECISION_NATIVE, &got);
        assert_same(want, &got, what);
        answer_free(&got);
    }
}

/* Logits within a thousandth of their spread: the same values, in types whose sums are rounded otherwise. */
static void close_to(const answer *want, const char *path, way how, const char *what) {
    answer got;
    double sum = 0, squares = 0, most = 0;
    say(path, NULL, how, HUNCH_PRECISION_F32, &got);
    assert_true(got.vocab == want->vocab && got.token[0] == want->token[0]);
    for (int i = 0; i < want->vocab; i++) { /* of the first token: later ones may differ */
        const double w = (double)want->logits[i];
        sum += w;
        squares += w * w;
        most = fmax(most, fabs((double)got.logits[i] - w));
    }
    const double spread = sqrt(squares / want->vocab - sum / want->vocab * (sum / want->vocab));
    if (!(most <= 1e-3 * spread)) fail_msg("%s: a logit is off by %g, they spread %g", what, most, spread);
    answer_free(&got);
}

#define EACH "model.layers.%d.block_sparse_moe.experts.%d."
#define MIXTRAL data_path("goldens/mixtral-top2")

/* Mixtral as newer programs write it: stacks below mlp, and its router there. */
static void mixtral_stack(parts *p) {
    stack(p, EACH "w1.weight", EACH "w3.weight", "model.layers.%d.mlp.experts.gate_up_proj");
    stack(p, EACH "w2.weight", NULL, "model.layers.%d.mlp.experts.down_proj");
    for (int i = 0; i < p->n; i++) {
        char layer[96];
        const char *at = strstr(p->at[i].name, ".block_sparse_moe.gate.weight");
        if (!at) continue;
        snprintf(layer, sizeof layer, "%.*s.mlp.gate.weight", (int)(at - p->at[i].name), p->at[i].name);
        strcpy(p->at[i].name, layer);
    }
}

static void test_stacked_mixtral(void **state) {
    (void)state;
    parts p;
    answer want;
    char path[800];
    say(MIXTRAL, NULL, PACKED, HUNCH_PRECISION_NATIVE, &want);
    parts_read(&p, MIXTRAL);
    mixtral_stack(&p);
    same(&want, folder_of(&p, MIXTRAL, NULL, NULL), "stacked");
    snprintf(path, sizeof path, "%s", test_path("again.gguf"));
    must(hn_convert(test_path("folder"), path, err));
    same(&want, path, "stacked, converted");
    part_drop(&p, "model.layers.1.mlp.gate.weight");
    refused(folder_of(&p, MIXTRAL, NULL, NULL), "tensor model.layers.1.mlp.gate.weight is missing");
    parts_free(&p);
    answer_free(&want);
}

/* Old files have a tensor of each expert. */
static void test_old_mixtral(void **state) {
    (void)state;
    parts p;
    answer want;
    say(MIXTRAL, NULL, PACKED, HUNCH_PRECISION_NATIVE, &want);
    parts_read(&p, converted("goldens/mixtral-top2"));
    take_apart(&p, "blk.%d.ffn_gate_exps.weight", "blk.%d.ffn_gate.%d.weight");
    take_apart(&p, "blk.%d.ffn_up_exps.weight", "blk.%d.ffn_up.%d.weight");
    take_apart(&p, "blk.%d.ffn_down_exps.weight", "blk.%d.ffn_down.%d.weight");
    same(&want, gguf_of(&p), "a tensor of each expert");
    retype(&p, "blk.1.ffn_down.5.weight", HN_F32, false);
    refused(gguf_of(&p), "blk.1.ffn_down.5.weight has type F32, blk.1.ffn_down.0.weight has BF16: expected one type");
    part_drop(&p, "blk.1.ffn_down.5.weight");
    refused(gguf_of(&p), "tensor blk.1.ffn_down.5.weight is missing");
    parts_free(&p);
    answer_free(&want);
}

static void keep_level(void *user, int level, const float *logits, int vocab) {
    keep_logits(user, (size_t)level, logits, vocab);
}

/* The logits of the drafts of a file's own block. */
static void drafts_of(const char *path, answer *out) {
    enum { LEVELS = 3 };
    static const hunch_token text[] = {5, 71, 200, 9, 33, 180, 2};
    hunch_model *m = open_model(path, "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "mtp", 1, 16, HUNCH_KV_DEFAULT, 16, 128);
    hunch_draft_result r;
    *out = (answer){0};
    must(hunch_draft(e, text, 7, LEVELS, -1, NULL, keep_level, out, &r, err));
    assert_int_equal(r.n, LEVELS);
    out->n = LEVELS;
    out->token = calloc(LEVELS, sizeof *out->token);
    for (int i = 0; i < LEVELS; i++) out->token[i] = r.node[i].token;
    hunch_free(r.node);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void same_drafts(const answer *want, const char *path) {
    answer got;
    drafts_of(path, &got);
    assert_same(want, &got, "mtp");
    answer_free(&got);
}

/* Gates and ups in one stack of a GGUF; of layers, of a block that drafts, or both. */
static void test_joined(void **state) {
    (void)state;
    static const struct {
        const char *folder;
        int first, last;
        bool drafts;
    } models[] = {{"goldens/mixtral-top2", 0, 2, false},    {"goldens/qwen3_moe-fine", 1, 1, false},
                  {"goldens/qwen3_5_moe-fused", 0, 4, true}, {"goldens/qwen3_5_moe-fused", 4, 4, true},
                  {"goldens/qwen3_5_moe-fused", 0, 3, true}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        parts p;
        answer want, drafted = {0};
        const char *whole = converted(models[i].folder);
        say(whole, NULL, PACKED, HUNCH_PRECISION_NATIVE, &want);
        if (models[i].drafts) drafts_of(whole, &drafted);
        parts_read(&p, whole);
        const int before = p.n;
        for (int layer = models[i].first; layer <= models[i].last; layer++) join(&p, layer);
        assert_int_equal(p.n, before - (models[i].last - models[i].first + 1));
        same(&want, gguf_of(&p), models[i].folder);
        if (models[i].drafts) same_drafts(&drafted, gguf_of(&p));
        part_drop(&p, "blk.1.ffn_down_exps.weight");
        refused(gguf_of(&p), "tensor blk.1.ffn_down_exps.weight is missing");
        parts_free(&p);
        answer_free(&want);
        answer_free(&drafted);
    }
}

/* ---- types ---------------------------------------------------------------------------------------------------------- */

/* Gates, ups and downs each of a type of their own; beside them the same values as F32. */
static void test_types_of_a_layer(void **state) {
    (void)state;
    static const hn_dtype types[][3] = {{HN_F32, HN_F16, HN_BF16}, {HN_Q8_0, HN_Q4_0, HN_F16}, {HN_BF16, HN_Q8_0, HN_Q4_0}};
    static const char *const names[] = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        parts p, wide;
        answer want;
        char first[800];
        parts_read(&wide, converted("goldens/mixtral-top2"));
        for (int k = 0; k < 3; k++) retype(&wide, names[k], types[i][k], true);
        snprintf(first, sizeof first, "%s", gguf_of(&wide));
        say(first, NULL, PACKED, HUNCH_PRECISION_F32, &want);
        parts_read(&p, test_path("converted.gguf"));
        for (int k = 0; k < 3; k++) retype(&p, names[k], types[i][k], false);
        for (int how = PACKED; how < WAYS; how++) close_to(&want, gguf_of(&p), (way)how, names[i]);
        parts_free(&p);
        parts_free(&wide);
        answer_free(&want);
    }
}

/* Random codes of 8-bit floats in a stack, a factor for each block of 128 x 128 of every expert; or, wide, the values as F32. */
static void put_f8(parts *p, int layer, const char *pattern, int in, int out, bool wide) {
    const uint64_t across = ((uint64_t)in + 127) / 128, down = ((uint64_t)out + 127) / 128,
                   dims[3] = {(uint64_t)in, (uint64_t)out, EXPERTS}, grid[3] = {across, down, EXPERTS};
    char name[96], factors[120];
    bytes codes = {0}, scale = {0};
    name_layer(name, pattern, layer);
    snprintf(factors, sizeof factors, "%s_scale_inv", name);
    uint64_t x = 11 + (uint64_t)(layer * 1000 + out);
    for (uint64_t k = 0; k < across * down * EXPERTS; k++) {
        const float f = 0.02f + 0.01f * (float)(k % 7);
        bytes_put(&scale, &f, sizeof f);
    }
    for (uint64_t k = 0; k < dims[0] * dims[1] * dims[2]; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const uint8_t code = (uint8_t)((x >> 60 & 1) << 7 | (40 + (x >> 40) % 24)); /* of either sign, about 1 */
        const uint64_t col = k % dims[0], row = k / dims[0] % dims[1], e = k / dims[0] / dims[1];
        float f;
        memcpy(&f, scale.at + 4 * ((e * down + row / 128) * across + col / 128), sizeof f);
        f *= hn_f8_to_f32(code);
        bytes_put(&codes, wide ? (const void *)&f : &code, wide ? sizeof f : 1);
    }
    if (wide)
        bytes_free(&scale);
    else
        part_add(p, factors, HN_F32, 3, grid)->data = scale;
    part_add(p, name, wide ? HN_F32 : HN_F8_E4M3, 3, dims)->data = codes;
}

/* Experts wide enough for several blocks, the second of which holds gates and ups. */
static void test_stacked_f8(void **state) {
    (void)state;
    enum { WIDTH = 160 };
    static const char size[] = "\"intermediate_size\": 64", other[] = "\"intermediate_size\": 160";
    answer want = {0};
    for (int wide = 1; wide >= 0; wide--) {
        parts p;
        parts_read(&p, MIXTRAL);
        mixtral_stack(&p);
        for (int layer = 0; layer < LAYERS; layer++) {
            char name[2][96];
            name_layer(name[0], "model.layers.%d.mlp.experts.gate_up_proj", layer);
            name_layer(name[1], "model.layers.%d.mlp.experts.down_proj", layer);
            for (int k = 0; k < 2; k++) part_drop(&p, name[k]);
            put_f8(&p, layer, "model.layers.%d.mlp.experts.gate_up_proj", HIDDEN, 2 * WIDTH, wide);
            put_f8(&p, layer, "model.layers.%d.mlp.experts.down_proj", WIDTH, HIDDEN, wide);
        }
        const char *path = folder_of(&p, MIXTRAL, size, other);
        if (wide)
            say(path, NULL, PACKED, HUNCH_PRECISION_F32, &want);
        else
            for (int how = PACKED; how < WAYS; how++) close_to(&want, path, (way)how, "8-bit floats");
        if (!wide) {
            part_drop(&p, "model.layers.2.mlp.experts.down_proj_scale_inv");
            refused(folder_of(&p, MIXTRAL, size, other), "tensor model.layers.2.mlp.experts.down_proj_scale_inv is missing");
        }
        parts_free(&p);
    }
    answer_free(&want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stacked_mixtral), cmocka_unit_test(test_old_mixtral),
                                       cmocka_unit_test(test_joined), cmocka_unit_test(test_types_of_a_layer),
                                       cmocka_unit_test(test_stacked_f8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
