/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_steps_test.c - heads with weights for each position (Medusa, Hydra, speculators, Meta's heads) that lie, are damaged or made for another
 * model: refused in one line that says why, through the command, and never a crash (contract C6). */
#include "hostile_head.h"

#include "random_steps.h"

static void assert_steps_refused(const random_head *h, const char *kind, const char *says) {
    head_write(h, path_of("head"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at(kind, path_of("head"), ""), says);
}

static void make_steps(random_head *h, const char *kind) {
    assert_true(steps_make(h, kind, 64, 480));
}

/* As they are made they open. */
static void test_right_ones(void **state) {
    (void)state;
    for (int i = 0; i < N_STEPS_KINDS; i++) {
        random_head h;
        make_steps(&h, steps_kinds[i].kind);
        head_write(&h, path_of("head"));
        result r = command("draft", "-m", LLAMA, "--draft", spec_at(steps_kinds[i].kind, path_of("head"), ""), "--tokens", IDS);
        if (r.code) fail_msg("%s: %s", steps_kinds[i].kind, r.err);
        assert_non_null(strstr(r.err, ": 2 positions"));
        result_free(&r);
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
        {"hydra", "{\"hydra_head_arch\": \"cross-attn\"}", "hydra_head_arch is \"cross-attn\", expected mlp or prefix-mlp"},
        {"hydra", "{\"hydra_head_arch\": 3}", "hydra_head_arch is 3"},
        {"hydra", "{\"hidden_state_offset\": 9}", "hidden_state_offset is 9, expected 0 to the 8 layers"},
        {"hydra", "{\"hidden_state_offset\": -1}", "hidden_state_offset is -1"},
        {"mlp", "{\"n_predict\": 3}", "speculator.proj.2.weight is missing"},
        {"mlp", "{\"n_predict\": 1}", "tensor speculator.emb.1.weight: heads of this kind, of 1 position"},
        {"mlp", "{\"n_predict\": 0}", "0 positions are drafted, expected 1 to 16"},
        {"mlp", "{\"n_predict\": 4294967298}", "17 positions are drafted, expected 1 to 16"},
        {"mlp", "{\"n_predict\": \"4\"}", "n_predict is a string"},
        {"mlp", "{\"n_predict\": null, \"tie_weights\": true}", "how many tokens does it draft? expected n_predict"},
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
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make_steps(&h, cases[i].kind);
        json_t *change = json_loads(cases[i].change, 0, NULL);
        assert_int_equal(json_object_update(h.config, change), 0);
        assert_steps_refused(&h, cases[i].kind, cases[i].says);
        json_decref(change);
        head_free(&h);
    }
}

/* rows 0: it is dropped. */
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
        {"meta-mtp", "extra_heads.1.attention_norm.weight", 0, 0, "tensor extra_heads.1."},
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
        assert_steps_refused(&h, cases[i].kind, cases[i].says);
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
        {"medusa", "3.0.linear.weight", 64, 64, "tensor 3.0.linear.weight: heads of this kind, of 2 positions, have none"},
        {"medusa", "0.2.weight", 480, 64, "tensor 0.2.weight: heads of this kind, of 2 positions"},
        {"hydra", "hydra_mlp.2.0.linear.bias", 64, 0, "tensor hydra_mlp.2.0.linear.bias: heads of this kind, of 2 positions"},
        {"hydra", "prefix_embeding_layer.layers.0.self_attn.q_proj.weight", 64, 64, "prefix_embeding_layer.layers.0.self_attn.k_proj.weight is missing"},
        {"hydra", "prefix_embeding_layer.layers.1.mlp.up_proj.weight", 96, 64, "prefix_embeding_layer.layers.1.mlp.up_proj.weight: heads of this kind"},
        {"mlp", "speculator.proj.2.weight", 32, 32, "tensor speculator.proj.2.weight: heads of this kind, of 2 positions"},
        {"meta-mtp", "extra_heads.1.attention.wq.bias", 64, 0, "tensor extra_heads.1.attention.wq.bias: heads of this kind, of 2 positions"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make_steps(&h, cases[i].kind);
        head_floats(&h, "", cases[i].name, cases[i].rows, cases[i].cols);
        assert_steps_refused(&h, cases[i].kind, cases[i].says);
        head_free(&h);
    }
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
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), ""), "no head of kind eagle: it has weights for each position");
        spec_refused(HUNCH_REFUSED, QWEN3, spec_at(steps_kinds[i].kind, path_of("head"), ""), "");
        spec_refused(HUNCH_USAGE, LLAMA, spec_at(steps_kinds[i].kind, path_of("head"), ",taps=2"), "taps");
        head_free(&h);
    }
}

/* Bytes that are others, of folders and of what convert writes: refused or drafted from, in one line or none. */
static void test_damaged(void **state) {
    (void)state;
    const int n = getenv("HUNCH_TEST_LIGHT") ? 6 : 40;
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
                                       cmocka_unit_test(test_no_numbers),   cmocka_unit_test(test_other_kinds),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
