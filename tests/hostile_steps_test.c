/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_steps_test.c - heads with weights for each position (Medusa, Hydra, speculators, Meta's heads) that are
 * inconsistent, damaged or made for another model: refused in one line with the reason, by the command, and never a
 * crash (contract C6). */
#include "hostile_head.h"

#include "random_steps.h"

/* In a folder, and as a checkpoint of PyTorch. */
static void assert_steps_refused(const random_head *h, const char *kind, const char *says) {
    head_write(h, path_of("head"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at(kind, path_of("head"), ""), says);
    const char *torch = strcmp(kind, "meta-mtp") ? "torch" : "torch-of-meta"; /* its files have other names */
    steps_write_torch(h, path_of(torch));
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at(kind, path_of(torch), ""), says);
}

/* And by convert, which leaves no file. */
static void assert_refused_everywhere(const random_head *h, const char *kind, const char *says) {
    char head[300];
    assert_steps_refused(h, kind, says);
    snprintf(head, sizeof head, "%s", path_of("head"));
    result r = command("convert", head, "--target", LLAMA, "-o", path_of("refused.gguf"));
    if (r.code != HUNCH_REFUSED && r.code != HUNCH_USAGE) fail_msg("convert of a head that is refused (%s): %d, %s", says, r.code, r.err);
    assert_int_equal(access(path_of("refused.gguf"), F_OK), -1);
    result_free(&r);
}

static void make_steps(random_head *h, const char *kind) {
    assert_true(steps_make(h, kind, 64, 480));
}

/* Unchanged they open. */
static void test_right_ones(void **state) {
    (void)state;
    for (int i = 0; i < N_STEPS_KINDS; i++) {
        random_head h;
        make_steps(&h, steps_kinds[i].kind);
        head_write(&h, path_of("head"));
        steps_write_torch(&h, path_of(steps_kinds[i].kind));
        result r[2];
        for (int k = 0; k < 2; k++) {
            const char *path = path_of(k ? steps_kinds[i].kind : "head");
            r[k] = command("draft", "-m", LLAMA, "--draft", spec_at(steps_kinds[i].kind, path, ""), "--tokens", IDS);
            if (r[k].code) fail_msg("%s: %s", steps_kinds[i].kind, r[k].err);
            assert_non_null(strstr(r[k].err, ": 2 positions"));
        }
        assert_string_equal(r[0].out, r[1].out);
        result_free(&r[0]);
        result_free(&r[1]);
        head_free(&h);
    }
}

static void test_configs(void **state) {
    (void)state;
    static const struct {
        const char *kind, *change, *says;
    } cases[] = {
        {"medusa", "{\"logit_scale\": 0}", "logit_scale is 0"},
        {"medusa", "{\"logit_scale\": \"x\"}", "logit_scale is a string"},
        {"hydra", "{\"hydra_head_arch\": \"cross-attn\"}",
         "hydra_head_arch is \"cross-attn\", expected mlp or prefix-mlp"},
        {"hydra", "{\"hydra_head_arch\": 3}", "hydra_head_arch is 3"},
        {"hydra", "{\"hidden_state_offset\": 9}", "hidden_state_offset is 9, expected 0 to the 8 layers"},
        {"hydra", "{\"hidden_state_offset\": -1}", "hidden_state_offset is -1"},
        {"mlp", "{\"n_predict\": 3}", "speculator.proj.2.weight is missing"},
        {"mlp", "{\"n_predict\": 1}", "tensor speculator.emb.1.weight: heads of this kind, of 1 position"},
        {"mlp", "{\"n_predict\": 0}", "0 positions are drafted, expected 1 to 16"},
        {"mlp", "{\"n_predict\": 4294967298}", "17 positions are drafted, expected 1 to 16"},
        {"mlp", "{\"n_predict\": \"4\"}", "n_predict is a string"},
        {"mlp", "{\"n_predict\": null, \"tie_weights\": true}", "the number of tokens that it drafts is not specified: expected n_predict"},
        {"mlp", "{\"tie_weights\": 1}", "tie_weights is 1"},
        {"mlp", "{\"scale_input\": \"yes\"}", "scale_input is a string"},
        {"meta-mtp", "{\"n_heads\": 5}", "5 heads, 5 of keys, of a model 64 wide"},
        {"meta-mtp", "{\"n_heads\": 64}", "64 heads, 64 of keys, of a model 64 wide: expected heads of an even width"},
        {"meta-mtp", "{\"n_heads\": null}", "n_heads is missing"},
        {"meta-mtp", "{\"n_heads\": 1e9}", "n_heads is 1000000000"},
        {"meta-mtp", "{\"n_kv_heads\": 3}", "4 heads, 3 of keys"},
        {"meta-mtp", "{\"n_kv_heads\": 2}", "extra_heads.0.attention.wk.weight has shape [64, 64]; expected [64, 32]"},
        {"meta-mtp", "{\"norm_eps\": -1}", "norm_eps is -1"},
        {"meta-mtp", "{\"rope_theta\": 0}", "rope_theta is 0"},
        {"hydra", "{\"hydra_num_heads\": 3}", "hydra_num_heads is 3, expected 2, the positions"},
        {"hydra", "{\"hydra_num_layers\": 2}", "hydra_num_layers is 2, expected 1, the resblocks a position"},
        {"hydra", "{\"grounded_heads\": false}",
         "grounded_heads is false, and there is a tensor hydra_mlp.0.*.res_connection.weight"},
        {"hydra", "{\"grounded_heads\": 1}", "grounded_heads is 1"},
        {"hydra", "{\"hydra_head_arch\": \"prefix-mlp\"}",
         "hydra_head_arch is \"prefix-mlp\", and there is no layer prefix_embeding_layer.*"},
        {"mlp", "{\"vocab_size\": 512}", "vocab_size is 512, expected 480, the tokens of this target"},
        {"mlp", "{\"tie_weights\": true}",
         "tensor speculator.emb.1.weight: its weights are tied, expected a copy of speculator.emb.0.weight"},
        {"meta-mtp", "{\"n_future_tokens\": 4}", "n_future_tokens is 4, expected 3, the tokens at once"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make_steps(&h, cases[i].kind);
        json_t *change = json_loads(cases[i].change, 0, NULL);
        assert_int_equal(json_object_update(h.config, change), 0);
        assert_refused_everywhere(&h, cases[i].kind, cases[i].says);
        json_decref(change);
        head_free(&h);
    }
}

/* rows 0: removes it. */
static void test_tensors(void **state) {
    (void)state;
    static const struct {
        const char *kind, *name;
        int rows, cols;
        const char *says;
    } cases[] = {
        {"medusa", "0.0.linear.weight", 0, 0, "no head of kind medusa: expected a tensor 0.0.linear.weight or blocks.0.layers.0.weight"},
        {"hydra", "hydra_mlp.0.0.linear.weight", 0, 0, "0 positions are drafted"},
        {"medusa", "1.0.linear.weight", 0, 0, "heads of this kind, of 1 position, have none of that name"},
        {"medusa", "1.0.linear.bias", 0, 0, "tensor 1.0.linear.bias is missing"},
        {"medusa", "0.0.linear.weight", 64, 65, "0.0.linear.weight has shape [65, 64]; expected [64, 64]"},
        {"medusa", "0.0.linear.bias", 63, 0, "0.0.linear.bias has shape [63]; expected [64]"},
        {"medusa", "0.1.weight", 481, 64, "an output of 481 tokens, expected at most the 480"},
        {"medusa", "0.1.weight", 100, 64, "100 draft tokens of 480"},
        {"medusa", "0.1.weight", 480, 0, "tensor 0.1.weight has 1 dimensions, expected 2"},
        {"medusa", "0.1.weight", 480, 63, "0.1.weight has shape [63, 480]; expected [64, 480]"},
        {"hydra", "hydra_mlp.0.0.linear.weight", 64, 64, "hydra_mlp.0.0.linear.weight has shape [64, 64]; expected [128, 64]"},
        {"hydra", "hydra_mlp.1.0.res_connection.bias", 0, 0, "hydra_mlp.1.0.res_connection.bias is missing"},
        {"hydra", "hydra_lm_head.1.bias", 479, 0, "hydra_lm_head.1.bias has shape [479]; expected [480]"},
        {"hydra", "hydra_lm_head.1.weight", 0, 0, "hydra_lm_head.1.weight is missing"},
        {"mlp", "speculator.emb.0.weight", 479, 32, "an embedding of 479 tokens, expected the 480"},
        {"mlp", "speculator.emb.1.weight", 480, 31, "speculator.emb.1.weight has shape [31, 480]; expected [32, 480]"},
        {"mlp", "speculator.proj.0.weight", 32, 32, "speculator.proj.0.weight has shape [32, 32]; expected [64, 32]"},
        {"mlp", "speculator.ln.0.bias", 0, 0, "speculator.ln.0.bias is missing"},
        {"mlp", "speculator.head.0.weight", 0, 0, "no tensor head.0.weight of a speculator"},
        {"mlp", "speculator.head.1.weight", 470, 32, "speculator.head.1.weight has shape [32, 470]; expected [32, 480]"},
        {"meta-mtp", "extra_heads.0.feed_forward.w1.weight", 0, 0, "expected 1 to 16 blocks of attention and feed_forward"},
        {"meta-mtp", "extra_heads.0.feed_forward.w2.weight", 64, 64, "feed_forward.w2.weight has shape [64, 64]; expected [96, 64]"},
        {"meta-mtp", "extra_heads.1.ffn_norm.weight", 0, 0, "extra_heads.1.ffn_norm.weight is missing"},
        {"meta-mtp", "extra_heads.1.attention_norm.weight", 0, 0, "n_future_tokens is 3, expected 2, the tokens at once"},
        {"meta-mtp", "norm.weight", 0, 0, "norm.weight is missing"},
        {"meta-mtp", "norm.weight", 60, 0, "norm.weight has shape [60]; expected [64]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make_steps(&h, cases[i].kind);
        if (cases[i].rows)
            head_shape(head_find(&h, cases[i].name), cases[i].rows, cases[i].cols);
        else
            head_drop(&h, cases[i].name);
        assert_refused_everywhere(&h, cases[i].kind, cases[i].says);
        head_free(&h);
    }
}

static void test_more_tensors(void **state) {
    (void)state;
    static const struct {
        const char *kind, *name;
        int rows, cols;
        const char *says;
    } cases[] = {
        {"medusa", "3.0.linear.weight", 64, 64,
         "tensor 3.0.linear.weight: heads of this kind, of 2 positions, have none"},
        {"medusa", "0.2.weight", 480, 64, "tensor 0.2.weight: heads of this kind, of 2 positions"},
        {"hydra", "hydra_mlp.2.0.linear.bias", 64, 0,
         "tensor hydra_mlp.2.0.linear.bias: heads of this kind, of 2 positions"},
        {"medusa", "blocks.0.layers.0.weight", 64, 64,
         "tensor blocks.0.layers.0.weight: heads of this kind, of 2 positions"},
        {"medusa", "token_map", 480, 0, "tensor token_map: heads of this kind, of 2 positions"},
        {"medusa", "norm.weight", 64, 0, "tensor norm.weight: heads of this kind, of 2 positions"},
        {"hydra", "lm_head.weight", 480, 64, "tensor lm_head.weight: heads of this kind, of 2 positions"},
        {"hydra", "prefix_embeding_layer.norm.weight", 64, 0,
         "tensor prefix_embeding_layer.norm.weight: heads of this kind"},
        {"mlp", "speculator.projs.0.weight", 128, 64,
         "tensor speculator.projs.0.weight: heads of this kind, of 2 positions"},
        {"mlp", "speculator.emb.0.bias", 32, 0, "tensor speculator.emb.0.bias: heads of this kind, of 2 positions"},
        {"mlp", "layers.0.weight", 32, 32, "tensor layers.0.weight: heads of this kind, of 2 positions"},
        {"hydra", "prefix_embeding_layer.layers.0.self_attn.q_proj.weight", 64, 64,
         "hydra_head_arch is \"mlp\", and there is a layer prefix_embeding_layer.*"},
        {"hydra", "prefix_embeding_layer.layers.1.mlp.up_proj.weight", 96, 64,
         "prefix_embeding_layer.layers.1.mlp.up_proj.weight: heads of this kind"},
        {"mlp", "speculator.proj.2.weight", 32, 32,
         "tensor speculator.proj.2.weight: heads of this kind, of 2 positions"},
        {"meta-mtp", "extra_heads.1.attention.wq.bias", 64, 0,
         "tensor extra_heads.1.attention.wq.bias: heads of this kind, of 2 positions"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make_steps(&h, cases[i].kind);
        head_floats(&h, "", cases[i].name, cases[i].rows, cases[i].cols);
        assert_refused_everywhere(&h, cases[i].kind, cases[i].says);
        head_free(&h);
    }
}

/* ---- vLLM's files, tied speculators ------------------------------------------------------------------------------------------ */

enum { MAPPED = 160 };

static void make_mapped(random_head *h) {
    *h = (random_head){.n = 0};
    steps_medusa_vllm(h, 64, 480, MAPPED);
}

static void test_mapped(void **state) {
    (void)state;
    static const struct {
        const char *config; /* that it is changed to */
        int at;             /* whose token of the map becomes ... */
        int64_t id;
        const char *name; /* of a tensor that is dropped (rows 0), reshaped or added */
        int rows, cols;
        const char *says;
    } cases[] = {
        {"{\"num_heads\": 3}", 0, 0, NULL, 0, 0, "num_heads is 3, expected 2, the positions"},
        {"{\"num_hidden_layers\": 2}", 0, 0, NULL, 0, 0, "num_hidden_layers is 2, expected 1, the resblocks a position"},
        {"{\"truncated_vocab_size\": 161}", 0, 0, NULL, 0, 0, "truncated_vocab_size is 161, expected 160, the tokens of its output"},
        {"{\"vocab_size\": 512}", 0, 0, NULL, 0, 0, "vocab_size is 512, expected 480, the tokens of this target"},
        {"{\"num_heads\": \"2\"}", 0, 0, NULL, 0, 0, "num_heads is a string"},
        {NULL, 7, -1, NULL, 0, 0, "draft token 7 is token -1, expected 0 to 479"},
        {NULL, 7, 480, NULL, 0, 0, "draft token 7 is token 480, expected 0 to 479"},
        {NULL, 159, 3, NULL, 0, 0, "draft token 159 is token 3, as one before it is"},
        {NULL, 0, INT64_MAX, NULL, 0, 0, "element 0 of tensor token_map is 9223372036854775807"},
        {NULL, 0, 0, "token_map", 0, 0, "160 draft tokens of 480, but no tensor token_map with their ids"},
        {NULL, 0, 0, "token_map", 159, 0, "tensor token_map has shape [159]; expected [160]"},
        {NULL, 0, 0, "token_map", 80, 2, "tensor token_map has shape [2, 80]; expected [160]"},
        {NULL, 0, 0, "lm_heads.1.weight", 159, 64, "lm_heads.1.weight has shape [64, 159]; expected [64, 160]"},
        {NULL, 0, 0, "lm_heads.2.weight", MAPPED, 64, "tensor lm_heads.2.weight: heads of this kind, of 2 positions"},
        {NULL, 0, 0, "blocks.1.layers.0.weight", 0, 0, "num_heads is 2, expected 1, the positions"},
        {NULL, 0, 0, "blocks.1.layers.1.weight", 64, 64, "tensor blocks.1.layers.1.weight: heads of this kind"},
        {NULL, 0, 0, "blocks.0.layers.0.bias", 64, 0, "blocks.1.layers.0.bias is missing"},
        {NULL, 0, 0, "d2t", MAPPED, 0, "tensor d2t: heads of this kind"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make_mapped(&h);
        if (cases[i].config) {
            json_t *change = json_loads(cases[i].config, 0, NULL);
            assert_int_equal(json_object_update(h.config, change), 0);
            json_decref(change);
        } else if (!cases[i].name) {
            memcpy(head_find(&h, "token_map")->data.at + 8 * cases[i].at, &cases[i].id, 8);
        } else if (!cases[i].rows) {
            head_drop(&h, cases[i].name);
        } else if (head_find(&h, cases[i].name)) {
            head_shape(head_find(&h, cases[i].name), cases[i].rows, cases[i].cols);
        } else {
            head_floats(&h, "", cases[i].name, cases[i].rows, cases[i].cols);
        }
        assert_refused_everywhere(&h, "medusa", cases[i].says);
        head_free(&h);
    }
}

/* Tied speculators may have copies of shared tensors: the same drafts with and without; other contents are refused. */
static void test_copies(void **state) {
    (void)state;
    static const char *const shared[] = {"emb", "ln", "head"};
    random_head h;
    char name[40], first[40];
    result r[2];
    make_steps(&h, "mlp");
    json_object_set_new(h.config, "tie_weights", json_true());
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "speculator.%s.1.weight", shared[i]);
        snprintf(first, sizeof first, "speculator.%s.0.weight", shared[i]);
        memcpy(head_find(&h, name)->data.at, head_find(&h, first)->data.at, head_find(&h, name)->data.size);
    }
    assert_steps_refused(&h, "mlp", "tensor speculator.ln.1.bias: its weights are tied, expected a copy of speculator.ln.0.bias");
    memcpy(head_find(&h, "speculator.ln.1.bias")->data.at, head_find(&h, "speculator.ln.0.bias")->data.at, 4 * 32);
    for (int i = 0; i < 2; i++) {
        head_write(&h, path_of("head"));
        r[i] = command("draft", "-m", LLAMA, "--draft", spec_at("mlp", path_of("head"), ""), "--tokens", IDS);
        if (r[i].code) fail_msg("%s", r[i].err);
        for (int k = 0; i == 0 && k < 3; k++) {
            snprintf(name, sizeof name, "speculator.%s.1.weight", shared[k]);
            head_drop(&h, name);
        }
        if (i == 0) head_drop(&h, "speculator.ln.1.bias");
    }
    assert_string_equal(r[0].out, r[1].out);
    result_free(&r[0]);
    result_free(&r[1]);
    head_floats(&h, "", "speculator.head.1.weight", 480, 31);
    assert_steps_refused(&h, "mlp", "tensor speculator.head.1.weight: its weights are tied, expected a copy of speculator.head.0.weight");
    head_drop(&h, "speculator.head.1.weight");
    json_object_set_new(h.config, "tie_weights", json_false());
    assert_steps_refused(&h, "mlp", "speculator.emb.1.weight is missing");
    head_free(&h);
}

/* ---- GGUF -------------------------------------------------------------------------------------------------------------------- */

/* The place of a text in a file; there is one. */
static unsigned char *place_of(const bytes *b, const char *text) {
    unsigned char *at = memmem(b->at, b->size, text, strlen(text));
    if (!at) fail_msg("%s is not in the file", text);
    return at;
}

/* As written by convert, then with a name or a number changed; only the end of a name, with the same length. */
static void test_gguf(void **state) {
    (void)state;
    static const struct {
        const char *kind, *text, *becomes; /* NULL: the number after it */
        uint32_t value;
        const char *says;
    } cases[] = {
        {"medusa", "hunch-head.steps", NULL, 3, "hunch-head.steps is 3, expected 2, the positions"},
        {"medusa", "hunch-head.steps", "hunch-head.stepz", 0,
         "no head of kind medusa: expected a tensor 0.0.linear.weight"},
        {"medusa", "hunch-head.vocab_size", NULL, 512, "hunch-head.vocab_size is 512, expected 480"},
        {"medusa", "step.1.output.weight", "step.2.output.weight", 0, "step.2.output.weight: heads of this kind"},
        {"medusa", "step.1.ffn.0.weight", "step.2.ffn.0.weight", 0, "hunch-head.steps is 2, expected 1, the positions"},
        {"medusa", "step.1.ffn.0.bias", "step.1.ffn.1.bias", 0, "step.1.ffn.0.bias is missing"},
        {"medusa", "medusa", "mlp   ", 0, "hunch.head.kind is \"mlp   \", expected medusa"},
        {"hydra", "step.0.ffn_residual.weight", "step.3.ffn_residual.weight", 0,
         "step.0.ffn.0.weight has shape [128, 64]; expected [64, 64]"},
        {"hydra", "step.1.ffn_residual.bias", "step.1.ffn_residual.bia_", 0, "step.1.ffn_residual.bias is missing"},
        {"hydra", "hunch-head.steps", NULL, 0, "hunch-head.steps is 0, expected 2, the positions"},
        {"mlp", "hunch-head.steps", NULL, 1, "step.1.proj.weight: heads of this kind, of 1 position"},
        {"mlp", "hunch-head.steps", NULL, 3, "step.2.proj.weight is missing"},
        {"mlp", "hunch-head.steps", NULL, 17, "17 positions are drafted, expected 1 to 16"},
        {"mlp", "step.1.norm.bias", "step.1.norm.b_as", 0, "step.1.norm.bias is missing"},
        {"meta-mtp", "hunch-head.steps", NULL, 3, "hunch-head.steps is 3, expected 2, the positions"},
        {"meta-mtp", "hunch-head.block_count", NULL, 3, "hunch-head.steps is 2, expected 3, the positions"},
        {"meta-mtp", "hunch-head.block_count", NULL, 1, "hunch-head.steps is 2, expected 1, the positions"},
        {"meta-mtp", "blk.1.attn_k.weight", "blk.2.attn_k.weight", 0, "blk.1.attn_k.weight is missing"},
        {"meta-mtp", "output_norm.weight", "output_nerm.weight", 0, "output_norm.weight is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make_steps(&h, cases[i].kind);
        head_write(&h, path_of("head"));
        head_free(&h);
        char head[300];
        snprintf(head, sizeof head, "%s", path_of("head"));
        result r = command("convert", head, "--target", LLAMA, "-o", path_of("head.gguf"), "--force");
        if (r.code) fail_msg("%s", r.err);
        result_free(&r);
        bytes b = test_file_read(path_of("head.gguf"));
        unsigned char *at = place_of(&b, cases[i].text);
        if (cases[i].becomes)
            memcpy(at, cases[i].becomes, strlen(cases[i].text));
        else
            memcpy(at + strlen(cases[i].text) + 4, &cases[i].value, 4); /* after its type */
        test_file_write(path_of("head.gguf"), b.at, b.size);
        bytes_free(&b);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at(cases[i].kind, path_of("head.gguf"), ""), cases[i].says);
    }
}

/* A head without a kind, read as one without layers of attention. */
static void test_layers(void **state) {
    (void)state;
    result r = command("convert", HEADS "/hydra-prefix/head", "--target", LLAMA, "-o", path_of("head.gguf"), "--force");
    if (r.code) fail_msg("%s", r.err);
    result_free(&r);
    bytes b = test_file_read(path_of("head.gguf"));
    memcpy(place_of(&b, "hunch.head.kind"), "hunch.head.k_nd", 15);
    test_file_write(path_of("head.gguf"), b.at, b.size);
    bytes_free(&b);
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("medusa", path_of("head.gguf"), ""), "1 layer of attention, expected a head without");
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("mlp", path_of("head.gguf"), ""), "1 layer of attention, expected a head without");
}

static void test_no_numbers(void **state) {
    (void)state;
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < N_STEPS_KINDS; i++)
        for (int k = 0; k < 3; k++) {
            random_head h;
            char says[120];
            make_steps(&h, steps_kinds[i].kind);
            head_tensor *t = &h.tensor[(k * 5 + i) % (h.n - (i == 3))]; /* the last of Meta's is not read */
            memcpy(t->data.at + t->data.size - 4, &values[k], 4);
            snprintf(says, sizeof says, "tensor %s: a value is not finite", t->name);
            assert_steps_refused(&h, steps_kinds[i].kind, says);
            head_free(&h);
        }
}

/* Each kind's folder as each other's, and for a model of another width. */
static void test_other_kinds(void **state) {
    (void)state;
    for (int i = 0; i < N_STEPS_KINDS; i++) {
        random_head h;
        make_steps(&h, steps_kinds[i].kind);
        head_write(&h, path_of("head"));
        for (int k = 0; k < N_STEPS_KINDS; k++)
            if (k != i) spec_refused(HUNCH_REFUSED, LLAMA, spec_at(steps_kinds[k].kind, path_of("head"), ""), "not");
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), ""),
                     "no head of kind eagle: it has weights for each position");
        spec_refused(HUNCH_REFUSED, QWEN3, spec_at(steps_kinds[i].kind, path_of("head"), ""), "");
        spec_refused(HUNCH_USAGE, LLAMA, spec_at(steps_kinds[i].kind, path_of("head"), ",taps=2"), "taps");
        head_free(&h);
    }
}

/* Changed bytes, in folders and in files of convert: refused with one line, or used for drafting. */
static void test_damaged(void **state) {
    (void)state;
    const int n = getenv("HUNCH_TEST_LIGHT") ? 3 : 40;
    uint64_t seed = 5;
    for (int i = 0; i < N_STEPS_KINDS; i++) {
        random_head h;
        char spec[900];
        make_steps(&h, steps_kinds[i].kind);
        head_write(&h, path_of("head"));
        result r = command("convert", path_of("head"), "--target", LLAMA, "-o", path_of("head.gguf"), "--force");
        assert_int_equal(r.code, 0);
        result_free(&r);
        bytes whole = test_file_read(path_of("head.gguf"));
        for (int k = 0; k < n; k++) {
            bytes b = {0};
            bytes_put(&b, whole.at, whole.size);
            const size_t at = hn_splitmix(&seed) % (k % 4 ? 2000 : b.size);
            b.at[at] = (unsigned char)hn_splitmix(&seed);
            if (k % 5 == 0) b.size -= hn_splitmix(&seed) % (b.size - 8);
            test_file_write(path_of("bad.gguf"), b.at, b.size);
            snprintf(spec, sizeof spec, "%s:%s", steps_kinds[i].kind, path_of("bad.gguf"));
            r = command("draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS);
            if (r.code != 0 && r.code != HUNCH_REFUSED && r.code != HUNCH_USAGE) fail_msg("%s: byte %zu: %d, %s", spec, at, r.code, r.err);
            result_free(&r);
            bytes_free(&b);
        }
        bytes_free(&whole);
        head_free(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_right_ones),   cmocka_unit_test(test_configs),
                                       cmocka_unit_test(test_tensors),      cmocka_unit_test(test_more_tensors),
                                       cmocka_unit_test(test_mapped), cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_gguf),         cmocka_unit_test(test_layers),
                                       cmocka_unit_test(test_no_numbers),   cmocka_unit_test(test_other_kinds),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
