/* SPDX-License-Identifier: Apache-2.0 */
/* head_kind_test.c - the kind of a folder is found by its contents, and SPECs that are only a path are distinguished from kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "draft/drafter.h"
#include "draft/head/open/head_kind.h"
#include "fixture.h"
#include "random_head.h"

static const char *kind_at(const char *path) {
    hn_source *src;
    must(hn_source_open_head(&src, path, err));
    const char *kind;
    hunch_error error;
    static char copy[sizeof error.message];
    const hunch_status st = hn_head_kind(src, &kind, &error);
    snprintf(copy, sizeof copy, "%s", st ? error.message : kind ? kind : "nothing");
    hn_source_close(&src);
    return copy;
}

static void test_folders(void **state) {
    (void)state;
    static const char *const folders[][2] = {
        {"goldens-heads/eagle1-bias-bin/head", "eagle"},      {"goldens-heads/eagle2-nobias-gqa/head", "eagle"},
        {"goldens-heads/hass-bias/head", "eagle"},            {"goldens-heads/eagle3-official-d2t/head", "eagle3"},
        {"goldens-heads/eagle3-official-fullvocab/head", "eagle3"}, {"goldens-heads/eagle3spec-plain/head", "eagle3"},
        {"goldens-heads/eagle3-narrow/head", "eagle3"},       {"goldens-heads/peagle-spec-2layers/head", "peagle"},
        {"goldens-heads/peagle-vllm-4layers/head", "peagle"}, {"goldens-heads/peagle-norms/head", "peagle"},
        {"goldens-heads/mtp-spec-qwen3/head", "mtp"},         {"goldens-heads/targets/llama-a", "model"},
        {"goldens-heads/targets/qwen3-a", "model"}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) assert_string_equal(kind_at(data_path(folders[i][0])), folders[i][1]);
}

/* The known kinds, by a few of their tensors as they are published, with or without "model." before them. */
static void test_tensors(void **state) {
    (void)state;
    static const struct {
        const char *kind, *name[4], *config;
    } cases[] = {
        {"eagle", {"fc.weight", "fc.bias", "layers.0.self_attn.q_proj.weight", "embed_tokens.weight"}, "{}"},
        {"eagle", {"fc.weight", "layers.0.self_attn.q_proj.weight"}, "{\"model_type\": \"qwen2\"}"},
        {"eagle3", {"fc.weight", "midlayer.hidden_norm.weight", "d2t", "t2d"}, "{\"model_type\": \"llama\"}"},
        {"eagle3", {"fc.weight", "layers.0.hidden_norm.weight", "verifier_lm_head.weight", "embed_tokens.weight"}, "{}"},
        {"peagle", {"mask_hidden", "fc.weight", "layers.0.hidden_norm.weight", "layers.3.mlp.up_proj.weight"},
         "{\"parallel_drafting\": true, \"dflash_config\": {\"mask_token_id\": 3}}"},
        {"peagle", {"mask_hidden", "fc.weight", "midlayer.hidden_norm.weight"}, "{\"model_type\": \"llama\"}"},
        {"mtp", {"mtp_layers.0.input_proj.weight", "embed_tokens.weight", "lm_head.weight"}, "{}"},
        {"medusa", {"0.0.linear.weight", "0.1.weight", "1.0.linear.weight"}, "{}"},
        {"medusa", {"blocks.0.layers.0.weight", "lm_heads.0.weight", "token_map"}, "{\"model_type\": \"medusa\"}"},
        {"medusa", {"medusa_head.0.0.linear.weight", "medusa_head.0.1.weight"}, "{}"},
        {"hydra", {"hydra_mlp.0.0.linear.weight", "hydra_mlp.0.0.res_connection.weight", "hydra_lm_head.0.weight"}, "{}"},
        {"mlp", {"speculator.emb.0.weight", "speculator.head.0.weight", "speculator.ln.0.weight"}, "{}"},
        {"medusa", {"medusa_heads.blocks.0.layers.0.weight", "medusa_heads.lm_heads.0.weight"}, "{}"},
        {"medusa", {"blocks.0.layers.0.weight", "blocks.1.layers.0.weight"}, "{}"},
        {"mlp", {"emb.0.0.weight", "head.0.weight", "ln.0.0.weight"}, "{\"model_type\": \"mlp_speculator\"}"},
        {"mlp", {"forget_emb.0.weight", "head.0.weight", "cell_ln.0.weight"}, "{}"},
        {"mlp", {"speculator.forget_emb.0.weight", "speculator.projs.0.weight"}, "{}"},
        {"dflash", {"fc.weight", "hidden_norm.weight", "layers.0.self_attn.q_proj.weight", "norm.weight"}, "{\"block_size\": 8}"},
        {"dflash", {"fc.weight", "layers.0.self_attn.q_proj.weight"}, "{\"dflash_config\": {}}"},
        {"dflash", {"encoder.fc.weight", "encoder.output_norm_enc.weight", "layers.0.self_attn.q_proj.weight"}, "{}"},
        {"dspark", {"fc.weight", "hidden_norm.weight", "layers.0.self_attn.q_proj.weight", "markov_head.markov_w1.weight"}, "{}"},
        {"pard", {"embed_tokens.weight", "layers.0.self_attn.q_proj.weight", "norm.weight", "lm_head.weight"},
         "{\"model_type\": \"qwen3\", \"pard_token\": 3}"},
        {"peagle", {"mask_hidden", "fc.weight", "layers.0.hidden_norm.weight", "embed_tokens.weight"}, "{\"pard_token\": 3}"},
        {"jetspec", {"fc.weight", "hidden_norm.weight", "layers.0.self_attn.q_proj.weight"},
         "{\"dflash_config\": {\"causal_head\": true}}"},
        {"jetspec", {"fc.weight", "layers.0.self_attn.q_proj.weight"}, "{\"dflash_config\": {\"causal\": true}}"},
        {"dflash", {"fc.weight", "layers.0.self_attn.q_proj.weight"},
         "{\"dflash_config\": {\"causal\": false, \"causal_head\": true}}"},
        {"dart", {"fc.weight", "midlayer.hidden_norm.weight", "midlayer.mask_rep", "d2t"}, "{}"},
        {"falcon", {"lstm.weight_ih_l0", "layers.0.self_attn.q_proj.weight", "fc.weight"}, "{}"},
        {"assistant", {"pre_projection.weight", "post_projection.weight", "layers.0.self_attn.q_proj.weight", "embed_tokens.weight"},
         "{\"model_type\": \"gemma4_assistant\"}"},
        {"meta-mtp", {"tok_embeddings.weight", "layers.0.attention.wq.weight", "extra_heads.0.attention.wq.weight"}, "{}"},
        {"model",
         {"embed_tokens.weight", "layers.0.input_layernorm.weight", "layers.0.self_attn.q_proj.weight", "layers.0.mlp.c_fc.weight"},
         "{\"model_type\": \"starcoder2\"}"},
        {"model",
         {"language_model.embed_tokens.weight", "language_model.layers.0.input_layernorm.weight"},
         "{\"model_type\": \"gemma3\"}"},
        {"dflash2", {"fc.weight", "layers.0.hidden_norm.weight"}, "{\"speculators_model_type\": \"dflash2\"}"},
        {"dflash2", {"fc.weight", "hidden_norm.weight", "layers.0.self_attn.q_proj.weight", "candidate_selector.hidden.weight"}, "{}"},
        {"xpress", {"fc.weight", "hidden_norm.weight", "layers.0.self_attn.q_proj.weight", "refiner_head.readout.weight"}, "{}"},
        {"domino", {"fc.weight", "hidden_norm.weight", "layers.0.self_attn.q_proj.weight", "prefix_gru.weight_ih_l0"}, "{}"},
        {"domino", {"fc.weight", "hidden_norm.weight", "layers.0.self_attn.q_proj.weight"},
         "{\"dflash_config\": {\"projector_type\": \"domino\"}}"},
        {"nothing", {"fc.weight", "bert.encoder.layer.0.attention.self.query.weight"}, "{\"model_type\": \"bert\"}"},
        {"nothing", {"embed_tokens.weight", "layers.0.input_layernorm.weight"}, "{}"},
        {"nothing", {"encoder.lstm.weight", "x0.0.linear.weight"}, "{\"speculators_model_type\": 7}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int inner = 0; inner < 2; inner++) {
            random_head h = {.config = json_loads(cases[i].config, 0, NULL)};
            for (int k = 0; k < 4 && cases[i].name[k]; k++) head_floats(&h, inner ? "model." : "", cases[i].name[k], 2, 2);
            head_write(&h, test_path("head"));
            head_free(&h);
            if (strcmp(kind_at(test_path("head")), cases[i].kind) != 0)
                fail_msg("case %zu is %s, expected %s", i, kind_at(test_path("head")), cases[i].kind);
        }
}

/* Heads of two kinds in one folder: neither is guessed. */
static void test_two(void **state) {
    (void)state;
    static const struct {
        const char *name[2], *kinds;
    } cases[] = {{{"hydra_mlp.0.0.linear.weight", "0.0.linear.weight"}, "medusa and hydra"},
                 {{"mask_hidden", "midlayer.mask_rep"}, "peagle and dart"},
                 {{"lstm.weight_ih_l0", "markov_head.markov_w1.weight"}, "dspark and falcon"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h = {.config = json_object()};
        for (int k = 0; k < 2; k++) head_floats(&h, "", cases[i].name[k], 2, 2);
        head_write(&h, test_path("head"));
        head_free(&h);
        if (!strstr(kind_at(test_path("head")), cases[i].kinds)) fail_msg("%s, expected %s", kind_at(test_path("head")), cases[i].kinds);
    }
}

/* One file of weights with its config.json beside it. */
static void test_files(void **state) {
    (void)state;
    char path[700];
    snprintf(path, sizeof path, "%s/model.safetensors", head_write_form(&LLAMA_PEAGLE, test_path("head")));
    assert_string_equal(kind_at(path), "peagle");
    assert_string_equal(kind_at(data_path("goldens-heads/eagle1-bias-bin/head/pytorch_model.bin")), "eagle");
    assert_string_equal(kind_at(data_path("goldens-heads/mtp-untied-bias/head/model.safetensors")), "mtp");
    assert_string_equal(kind_at(data_path("models/stories260K/stories260K.f16.gguf")), "model");
    assert_string_equal(kind_at(data_path("models/stories260K/hf")), "model");
}

/* Tensors of other models whose names contain those of heads. */
static void test_models_are_models(void **state) {
    static const char *const more[] = {"model.layers.0.mlp.c_fc.weight", "model.mtp_layers.0.input_proj.weight",
                                       "mtp_layers.0.norm.weight"};
    (void)state;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        random_head h;
        head_make(&h, &LLAMA_EAGLE);
        head_drop(&h, "fc.weight");
        for (int k = 0; k < h.n; k++) {
            char name[80];
            snprintf(name, sizeof name, "model.%.70s", h.tensor[k].name);
            strcpy(h.tensor[k].name, name);
        }
        head_floats(&h, "model.", "embed_tokens.weight", 480, 64);
        head_floats(&h, "model.layers.0.", "input_layernorm.weight", 64, 0);
        head_floats(&h, "", more[i], 8, 8);
        head_write(&h, test_path("model"));
        head_free(&h);
        assert_string_equal(kind_at(test_path("model")), "model");
    }
}

static void check_spec(const char *text, const char *kind, const char *path, int n) {
    hn_spec s;
    must(hn_spec_parse(&s, text, err));
    if (kind)
        assert_string_equal(s.kind, kind);
    else
        assert_null(s.kind);
    if (path)
        assert_string_equal(s.path, path);
    else
        assert_null(s.path);
    assert_int_equal(s.n, n);
    assert_string_equal(s.text, text);
    hn_spec_fini(&s);
}

static void test_specs(void **state) {
    (void)state;
    char file[600], spec[700];
    check_spec("./head", NULL, "./head", 0);
    check_spec("/a/b:c,depth=3", NULL, "/a/b:c", 1);
    check_spec("eagle3:/a/b,depth=3,topk=4", "eagle3", "/a/b", 2);
    check_spec("ngram", "ngram", NULL, 0);
    check_spec("nowhere", "nowhere", NULL, 0); /* no such file: an unknown kind */
    snprintf(file, sizeof file, "%s", data_path("goldens-heads/hass-bias/head"));
    snprintf(spec, sizeof spec, "%s,tree=dynamic", file);
    check_spec(spec, NULL, file, 1);
}

/* Folders in the current directory: the name of a kind is the kind, any other name a path. */
static void test_named_like_kinds(void **state) {
    (void)state;
    static const char *const names[] = {"eagle3", "ngram", "none", "auto", "head"};
    char before[600];
    assert_non_null(getcwd(before, sizeof before));
    (void)mkdir(test_path("kinds"), 0700);
    assert_int_equal(chdir(test_path("kinds")), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) (void)mkdir(names[i], 0700);
    check_spec("eagle3", "eagle3", NULL, 0);
    check_spec("ngram,n=3", "ngram", NULL, 1);
    check_spec("none,depth=3", "none", NULL, 1);
    check_spec("auto,depth=3", "auto", NULL, 1);
    check_spec("eagle3:head", "eagle3", "head", 0);
    check_spec("head,depth=3", NULL, "head", 1);
    check_spec("./ngram", NULL, "./ngram", 0);
    check_spec("ngram/", NULL, "ngram/", 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) rmdir(names[i]);
    assert_int_equal(chdir(before), 0);
    rmdir(test_path("kinds"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folders), cmocka_unit_test(test_models_are_models),
                                       cmocka_unit_test(test_tensors), cmocka_unit_test(test_two), cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_specs), cmocka_unit_test(test_named_like_kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
