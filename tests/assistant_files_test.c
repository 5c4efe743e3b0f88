/* SPDX-License-Identifier: Apache-2.0 */
/* assistant_files_test.c - files of assistants of Gemma 4: a GGUF as ik_llama.cpp writes it, with the cluster of each token, drafts like
 * the folder; keys that are wrong or of another model are refused by name, with both numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fixture.h"
#include "command.h"
#include "format/source.h"
#include "random_assistant.h"

#define TARGET "goldens/qwen2-window" /* layers with and without a window */
static const hunch_token text[] = {5, 77, 201, 9, 44, 20, 133, 8, 19, 202, 150, 3, 40, 31, 77, 5, 201, 60, 61, 62, 30, 9, 1, 44};
enum { TEXT = sizeof text / sizeof *text, DEPTH = 4 };

static hunch_model *open_target(void) {
    return open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
}

static void draft(hunch_model *m, const char *path, const char *options, hunch_token out[DEPTH], double q[DEPTH]) {
    char spec[800];
    hunch_draft_result r;
    snprintf(spec, sizeof spec, "%s%s", path, options);
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    must(hunch_draft(e, text, TEXT, DEPTH, -1, NULL, NULL, NULL, &r, err));
    for (int i = 0; i < DEPTH; i++) {
        out[i] = r.node[i].token;
        q[i] = r.node[i].q;
    }
    hunch_free(r.node);
    hunch_engine_close(&e);
}

/* ---- ik_llama.cpp's files ---------------------------------------------------------------------------------------------- */

/* Their name of one of ours. */
static void other_name(const char *name, char out[128]) {
    static const char *const names[][2] = {{"nextn.pre_projection.weight", "mtp_pre_proj.weight"},
                                           {"nextn.post_projection.weight", "mtp_post_proj.weight"},
                                           {"masked_embd_centroids.weight", "mtp_centroids.weight"},
                                           {"masked_embd_ordering", "mtp_token_ordering.weight"}};
    snprintf(out, 128, "%s", name);
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i][0])) snprintf(out, 128, "%s", names[i][1]);
}

static void put_keys(hn_gguf_writer *w, const hn_arch *target, const assistant_form *f) {
    const hn_layer_desc *window = assistant_reads(target, true), *full = assistant_reads(target, false);
    int32_t kv[8], slides[8];
    for (int i = 0; i < f->layers; i++) {
        slides[i] = i < f->layers - 1;
        kv[i] = slides[i] ? window->kv_heads : full->kv_heads;
    }
    const struct {
        const char *key;
        int value;
    } numbers[] = {{"gemma4_mtp.context_length", 4096}, {"gemma4_mtp.embedding_length", f->hidden}, {"gemma4_mtp.block_count", f->layers},
                   {"gemma4_mtp.feed_forward_length", f->ffn}, {"gemma4_mtp.attention.head_count", f->heads},
                   {"gemma4_mtp.attention.key_length", full->head_dim}, {"gemma4_mtp.attention.key_length_swa", window->head_dim},
                   {"gemma4_mtp.attention.sliding_window", window->window}, {"gemma4_mtp.backbone_embedding_length", target->hidden},
                   {"gemma4_mtp.centroid_count", f->clusters}, {"gemma4_mtp.centroid_top_k", f->clusters_used}};
    must(hn_gguf_put_str(w, "general.architecture", "gemma4_mtp", 10, err));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) must(hn_gguf_put_u32(w, numbers[i].key, (uint32_t)numbers[i].value, err));
    must(hn_gguf_put_i32s(w, "gemma4_mtp.attention.head_count_kv", kv, (size_t)f->layers, err));
    must(hn_gguf_put_i32s(w, "gemma4_mtp.attention.sliding_window_pattern", slides, (size_t)f->layers, err));
    must(hn_gguf_put_f32(w, "gemma4_mtp.attention.layer_norm_rms_epsilon", 1e-6f, err));
    must(hn_gguf_put_f32(w, "gemma4_mtp.rope.freq_base", (float)target->rotation[full->rotation].scaling.theta, err));
    must(hn_gguf_put_f32(w, "gemma4_mtp.rope.freq_base_swa", (float)target->rotation[window->rotation].scaling.theta, err));
}

/* What is wrong with the cluster of one token: nothing, another one, no whole number. The last two have floats. */
typedef enum flaw { NONE, OTHER, NONE_OF_FLOATS, NO_NUMBER } flaw;

/* The cluster of each token, as integers or, as their converter writes all vectors, as floats. */
static void put_clusters(hn_gguf_writer *w, const int64_t *slot, int n, int clusters, flaw what) {
    int32_t cluster[512];
    float floats[512];
    for (int k = 0; k < n; k++) cluster[slot[k]] = k / (n / clusters);
    if (what == OTHER) cluster[7] = (cluster[7] + 1) % clusters;
    for (int k = 0; k < n; k++) floats[k] = (float)cluster[k] + (what == NO_NUMBER && k == 7 ? 0.5f : 0);
    must(hn_gguf_data(w, what >= NONE_OF_FLOATS ? (const void *)floats : cluster, (size_t)n * sizeof *cluster, err));
}

/* The tensors of our GGUF under their names, the order as the cluster of each token. */
static void write_other(const char *from, const char *to, const hn_arch *target, const assistant_form *f, flaw what) {
    hn_source *src;
    hn_gguf_writer *w;
    must(hn_source_open(&src, from, err));
    must(hn_gguf_writer_open(&w, to, err));
    put_keys(w, target, f);
    for (int write = 0; write < 2; write++)
        for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
            const hn_tensor *t = hn_source_tensor(src, i);
            const bool order = !strcmp(t->name, "masked_embd_ordering");
            char name[128];
            other_name(t->name, name);
            if (!write) {
                must(hn_gguf_declare(w, name, order ? (what >= NONE_OF_FLOATS ? HN_F32 : HN_I32) : t->dtype, t->n_dims, t->dims, err));
                continue;
            }
            if (!order) {
                must(hn_gguf_data(w, t->data, t->bytes, err));
                continue;
            }
            put_clusters(w, t->data, target->vocab, f->clusters, what);
        }
    must(hn_gguf_writer_finish(&w, err));
    hn_source_close(&src);
}

static void head_refused(hunch_model *m, const char *spec, hunch_status status, const char *says) {
    hunch_engine *e = NULL;
    hunch_engine_options o;
    hunch_error why = {0};
    hunch_engine_options_defaults(&o);
    o.drafts = &spec;
    o.n_drafts = 1;
    const hunch_status got = hunch_engine_open(&e, m, &o, &why);
    if (got != status || !strstr(why.message, says))
        fail_msg("expected %d with \"%s\", got %d: %s", (int)status, says, (int)got, why.message);
    hunch_engine_close(&e);
}

static void test_other_gguf(void **state) {
    (void)state;
    hunch_model *m = open_target();
    const hn_arch *target = &m->target.arch;
    hunch_token want[DEPTH], got[DEPTH];
    double want_q[DEPTH], got_q[DEPTH];
    const char *head = assistant_write(&CLUSTERED_ASSISTANT, target, test_path("assistant"));
    must(hunch_convert(head, test_path("ours.gguf"), NULL, err));
    write_other(test_path("ours.gguf"), test_path("other.gguf"), target, &CLUSTERED_ASSISTANT, NONE);
    write_other(test_path("ours.gguf"), test_path("floats.gguf"), target, &CLUSTERED_ASSISTANT, NONE_OF_FLOATS);
    static const char *const options[] = {"", ",output=full", ",position=last"};
    for (int i = 0; i < 3; i++) {
        draft(m, head, options[i], want, want_q);
        draft(m, test_path("other.gguf"), options[i], got, got_q);
        assert_memory_equal(want, got, sizeof want);
        assert_memory_equal(want_q, got_q, sizeof want_q);
        draft(m, test_path("floats.gguf"), options[i], got, got_q);
        assert_memory_equal(want, got, sizeof want);
        assert_memory_equal(want_q, got_q, sizeof want_q);
        draft(m, test_path("ours.gguf"), options[i], got, got_q);
        assert_memory_equal(want, got, sizeof want);
        assert_memory_equal(want_q, got_q, sizeof want_q);
    }
    write_other(test_path("ours.gguf"), test_path("other.gguf"), target, &CLUSTERED_ASSISTANT, OTHER);
    head_refused(m, test_path("other.gguf"), HUNCH_REFUSED, "tensor mtp_token_ordering.weight: output ");
    head_refused(m, test_path("other.gguf"), HUNCH_REFUSED, "expected clusters of 16");
    write_other(test_path("ours.gguf"), test_path("other.gguf"), target, &CLUSTERED_ASSISTANT, NO_NUMBER);
    head_refused(m, test_path("other.gguf"), HUNCH_REFUSED, ".5; expected a whole number of 0 to 255");
    hunch_model_close(&m);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------------- */

static void check_changed(hunch_model *m, const char *change, bool outer, const char *says) {
    random_head h;
    char spec[700];
    assistant_make(&h, &CLUSTERED_ASSISTANT, &m->target.arch);
    json_t *changes = json_loads(change, 0, NULL);
    assert_non_null(changes);
    assert_int_equal(json_object_update_recursive(outer ? h.config : json_object_get(h.config, "text_config"), changes), 0);
    head_write(&h, test_path("changed"));
    snprintf(spec, sizeof spec, "assistant:%s", test_path("changed"));
    head_refused(m, spec, HUNCH_REFUSED, says);
    json_decref(changes);
    head_free(&h);
}

static void test_keys(void **state) {
    (void)state;
    static const struct {
        const char *change;
        bool outer;
        const char *says;
    } cases[] = {
        {"{\"backbone_hidden_size\": 96}", true, "backbone_hidden_size is 96, expected the 64 of this target"},
        {"{\"num_centroids\": 15}", true, "num_centroids is 15, expected the 16 rows"},
        {"{\"centroid_intermediate_top_k\": 17}", true, "centroid_intermediate_top_k is 17, expected 1 to 16"},
        {"{\"vocab_size\": 300}", false, "vocab_size is 300, expected the 256 of this target"},
        {"{\"hidden_size\": 48}", false, "tensor pre_projection.weight has shape [128, 32]; expected [128, 48]"},
        {"{\"hidden_size\": null}", false, "hidden_size"},
        {"{\"intermediate_size\": 50}", false, "mlp.gate_proj.weight has shape"},
        {"{\"num_hidden_layers\": 2}", false, "layer_types, expected a list of 2 names"},
        {"{\"num_hidden_layers\": 17}", false, "num_hidden_layers is 17"},
        {"{\"num_kv_shared_layers\": 2}", false, "num_kv_shared_layers is 2, expected all 3 layers"},
        {"{\"num_attention_heads\": 8}", false, "self_attn.q_proj.weight has shape"},
        {"{\"num_attention_heads\": 3}", false, "3 heads of 16 numbers do not share 2 key heads"},
        {"{\"num_key_value_heads\": 1}", false, "key heads of 1, expected the 2 of layer 2 of this target"},
        {"{\"num_global_key_value_heads\": 4}", false, "key heads of 4, expected the 2 of layer 0 of this target"},
        {"{\"head_dim\": 32}", false, "heads of 32, expected the 16 of layer 2 of this target"},
        {"{\"global_head_dim\": 8}", false, "heads of 8, expected the 16 of layer 0 of this target"},
        {"{\"head_dim\": 15}", false, "4 heads of 15 numbers"},
        {"{\"sliding_window\": 32}", false, "a window of 32, expected the 16 of layer 2 of this target"},
        {"{\"rms_norm_eps\": -1}", false, "rms_norm_eps is -1"},
        {"{\"hidden_activation\": \"silu\"}", false, "hidden_activation is \"silu\", expected gelu_pytorch_tanh"},
        {"{\"layer_types\": [\"sliding_attention\", \"chunked_attention\", \"full_attention\"]}", false, "layer_types"},
        {"{\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}}}", false,
         "rope_parameters.full_attention.rope_type is \"yarn\", expected proportional"},
        {"{\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"linear\"}}}", false, "rope_type is \"linear\", expected default"},
        {"{\"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 10000}}}", false,
         "the rotation of sliding layers turns pair 1 by"},
        {"{\"rope_parameters\": {\"full_attention\": {\"partial_rotary_factor\": 0.25}}}", false,
         "the rotation of full layers turns pair 2 by 0 a position"},
        {"{\"attention_bias\": true}", false, "attention_bias is true"},
        {"{\"use_double_wide_mlp\": true}", false, "use_double_wide_mlp is true"},
        {"{\"enable_moe_block\": true}", false, "enable_moe_block is true"},
        {"{\"hidden_size_per_layer_input\": 16}", false, "hidden_size_per_layer_input is 16"},
        {"{\"final_logit_softcapping\": 30.0}", false, "final_logit_softcapping is 30"},
        {"{\"use_bidirectional_attention\": \"all\"}", false, "use_bidirectional_attention is all"},
    };
    hunch_model *m = open_target();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_changed(m, cases[i].change, cases[i].outer, cases[i].says);
    hunch_model_close(&m);
}

static void test_tensors(void **state) {
    (void)state;
    static const struct {
        const char *drop, *says;
    } cases[] = {{"model.layers.1.layer_scalar", "tensor model.layers.1.layer_scalar is missing"},
                 {"model.layers.2.self_attn.q_norm.weight", "self_attn.q_norm.weight is missing"},
                 {"model.norm.weight", "tensor model.norm.weight is missing"},
                 {"model.embed_tokens.weight", "tensor model.embed_tokens.weight: expected one of 32 inputs"},
                 {"post_projection.weight", "tensor post_projection.weight is missing"},
                 {"masked_embedding.centroids.weight",
                  "a tensor masked_embedding.token_ordering, and no masked_embedding.centroids.weight"}};
    hunch_model *m = open_target();
    char spec[700];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        assistant_make(&h, &CLUSTERED_ASSISTANT, &m->target.arch);
        head_drop(&h, cases[i].drop);
        head_write(&h, test_path("changed"));
        snprintf(spec, sizeof spec, "assistant:%s", test_path("changed"));
        head_refused(m, spec, HUNCH_REFUSED, cases[i].says);
        head_free(&h);
    }
    random_head h; /* a layer that has keys of its own */
    assistant_make(&h, &SMALL_ASSISTANT, &m->target.arch);
    head_floats(&h, "model.layers.0.", "self_attn.k_proj.weight", 32, 32);
    head_write(&h, test_path("changed"));
    head_refused(m, spec, HUNCH_REFUSED,
                 "tensor model.layers.0.self_attn.k_proj.weight: heads of this kind, of 3 layers, have none of that name");
    head_free(&h);
    snprintf(spec, sizeof spec, "assistant:%s,output=centroids", assistant_write(&SMALL_ASSISTANT, &m->target.arch, test_path("plain")));
    head_refused(m, spec, HUNCH_USAGE, "output=centroids: this file has no centroids, expected full");
    snprintf(spec, sizeof spec, "assistant:%s,position=next", test_path("plain"));
    head_refused(m, spec, HUNCH_USAGE, "position");
    snprintf(spec, sizeof spec, "eagle:%s", test_path("plain"));
    head_refused(m, spec, HUNCH_REFUSED, "no head of kind eagle: it is an assistant of Gemma 4");
    snprintf(spec, sizeof spec, "assistant:%s", data_path("goldens-heads/eagle2-nobias-gqa/head"));
    head_refused(m, spec, HUNCH_REFUSED, "no assistant of Gemma 4: expected a tensor pre_projection.weight");
    hunch_model_close(&m);
    m = open_model(data_path("goldens/mistral-sliding"), "best", test_threads(), HUNCH_PRECISION_NATIVE); /* another vocabulary */
    snprintf(spec, sizeof spec, "assistant:%s", test_path("plain"));
    head_refused(m, spec, HUNCH_REFUSED, "an output of 256 tokens, expected the 512 of this target");
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_gguf), cmocka_unit_test(test_keys), cmocka_unit_test(test_tensors)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
