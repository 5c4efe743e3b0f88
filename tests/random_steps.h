/* SPDX-License-Identifier: Apache-2.0 */
/* random_steps.h - heads of random weights (random_head.h) that have weights for each position: two positions, in the
 * layout of their published files. Include after random_head.h. */
#ifndef HN_TESTS_RANDOM_STEPS_H
#define HN_TESTS_RANDOM_STEPS_H
#include "format/torch_for_tests.h"

enum { STEPS_POSITIONS = 2 };

static inline void steps_blocks(random_head *h, const char *front, const char *linear, int k, int in, int out) {
    char name[60];
    snprintf(name, sizeof name, "%d.%s.weight", k, linear);
    head_floats(h, front, name, out, in);
    snprintf(name, sizeof name, "%d.%s.bias", k, linear);
    head_floats(h, front, name, out, 0);
}

static inline void steps_medusa(random_head *h, int hidden, int vocab) {
    char name[60];
    for (int k = 0; k < STEPS_POSITIONS; k++) {
        steps_blocks(h, "", "0.linear", k, hidden, hidden);
        snprintf(name, sizeof name, "%d.1.weight", k);
        head_floats(h, "", name, vocab, hidden);
    }
    h->config = json_pack("{s:s,s:i,s:i}", "model_type", "medusa", "medusa_num_heads", STEPS_POSITIONS, "medusa_num_layers", 1);
}

/* vLLM's form, with `outputs` tokens: every second or third. */
static inline void steps_medusa_vllm(random_head *h, int hidden, int vocab, int outputs) {
    char name[60];
    for (int k = 0; k < STEPS_POSITIONS; k++) {
        snprintf(name, sizeof name, "blocks.%d.layers.0.weight", k);
        head_floats(h, "", name, hidden, hidden);
        snprintf(name, sizeof name, "lm_heads.%d.weight", k);
        head_floats(h, "", name, outputs, hidden);
    }
    head_tensor *t = head_add(h, "", "token_map", "I64", outputs, 0);
    for (int i = 0; i < outputs; i++) {
        const int64_t id = 3 + (int64_t)i * (vocab - 4) / outputs;
        bytes_put(&t->data, &id, sizeof id);
    }
    h->config = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i}", "model_type", "medusa", "hidden_size", hidden, "num_heads", STEPS_POSITIONS,
                          "num_hidden_layers", 1, "vocab_size", vocab, "truncated_vocab_size", outputs);
}

static inline void steps_hydra(random_head *h, int hidden, int vocab) {
    char name[60];
    for (int k = 0; k < STEPS_POSITIONS; k++) {
        steps_blocks(h, "hydra_mlp.", "0.linear", k, (k + 2) * hidden, hidden);
        steps_blocks(h, "hydra_mlp.", "0.res_connection", k, (k + 2) * hidden, hidden);
        snprintf(name, sizeof name, "hydra_lm_head.%d.weight", k);
        head_floats(h, "", name, vocab, hidden);
        snprintf(name, sizeof name, "hydra_lm_head.%d.bias", k);
        head_floats(h, "", name, vocab, 0);
    }
    h->config = json_pack("{s:s,s:b,s:i}", "hydra_head_arch", "mlp", "grounded_heads", 1, "hidden_state_offset", 0);
}

static inline void steps_mlp(random_head *h, int hidden, int vocab) {
    enum { INNER = 32 };
    char name[60];
    for (int k = 0; k < STEPS_POSITIONS; k++) {
        snprintf(name, sizeof name, "speculator.emb.%d.weight", k);
        head_floats(h, "", name, vocab, INNER);
        snprintf(name, sizeof name, "speculator.proj.%d.weight", k);
        head_floats(h, "", name, INNER, k ? INNER : hidden);
        snprintf(name, sizeof name, "speculator.ln.%d.weight", k);
        head_floats(h, "", name, INNER, 0);
        snprintf(name, sizeof name, "speculator.ln.%d.bias", k);
        head_floats(h, "", name, INNER, 0);
        snprintf(name, sizeof name, "speculator.head.%d.weight", k);
        head_floats(h, "", name, vocab, INNER);
    }
    h->config = json_pack("{s:s,s:i,s:b,s:b}", "model_type", "mlp_speculator", "n_predict", STEPS_POSITIONS,
                          "tie_weights", 0, "scale_input", 1);
}

static inline void steps_meta(random_head *h, int hidden, int vocab) {
    static const char *const square[] = {"attention.wq", "attention.wk", "attention.wv", "attention.wo"};
    char name[60];
    for (int k = 0; k < STEPS_POSITIONS; k++) {
        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "extra_heads.%d.%s.weight", k, square[i]);
            head_floats(h, "", name, hidden, hidden);
        }
        for (int i = 1; i <= 3; i++) {
            snprintf(name, sizeof name, "extra_heads.%d.feed_forward.w%d.weight", k, i);
            head_floats(h, "", name, i == 2 ? hidden : 96, i == 2 ? 96 : hidden);
        }
        for (int i = 0; i < 2; i++) {
            snprintf(name, sizeof name, "extra_heads.%d.%s_norm.weight", k, i ? "ffn" : "attention");
            head_floats(h, "", name, hidden, 0);
        }
    }
    head_floats(h, "", "norm.weight", hidden, 0);
    head_floats(h, "", "output.weight", vocab, hidden);
    h->config = json_pack("{s:i,s:i,s:i,s:f}", "dim", hidden, "n_heads", 4, "n_future_tokens", STEPS_POSITIONS + 1, "norm_eps", 1e-5);
}

/* Writes a head as by torch.save, with its config.json; Meta's under the names of Meta's files. Creates the folder. */
static inline void steps_write_torch(const random_head *h, const char *to) {
    zip_builder z = {0};
    bytes pickle = {0};
    char path[600], name[40];
    pk_raw(&pickle, PK_START);
    for (int i = 0; i < h->n; i++) {
        const head_tensor *t = &h->tensor[i];
        const bool whole = !strcmp(t->type, "I64");
        snprintf(name, sizeof name, "%d", i);
        pk_text(&pickle, t->name);
        pk_put_tensor(&pickle, &(pk_tensor){whole ? "LongStorage" : "FloatStorage", name, (int64_t)(t->data.size / (whole ? 8 : 4)), 0,
                                            t->cols ? 2 : 1, {t->rows, t->cols}, {t->cols ? t->cols : 1, 1}});
    }
    pk_raw(&pickle, PK_END);
    zip_add(&z, "a/data.pkl", pickle.at, pickle.size);
    for (int i = 0; i < h->n; i++) {
        snprintf(name, sizeof name, "a/data/%d", i);
        zip_add(&z, name, h->tensor[i].data.at, h->tensor[i].data.size);
    }
    zip_finish(&z);
    const bool meta = json_object_get(h->config, "n_future_tokens");
    char *config = json_dumps(h->config, JSON_ENCODE_ANY);
    (void)mkdir(to, 0700);
    snprintf(path, sizeof path, "%s/%s", to, meta ? "consolidated.pth" : "pytorch_model.bin");
    test_file_write(path, z.b.at, z.b.size);
    snprintf(path, sizeof path, "%s/%s", to, meta ? "params.json" : "config.json");
    test_file_write(path, config, strlen(config));
    free(config);
    bytes_free(&pickle);
    bytes_free(&z.b);
}

static const struct {
    const char *kind;
    void (*make)(random_head *h, int hidden, int vocab);
} steps_kinds[] = {{"medusa", steps_medusa}, {"hydra", steps_hydra}, {"mlp", steps_mlp}, {"meta-mtp", steps_meta}};
enum { N_STEPS_KINDS = sizeof steps_kinds / sizeof *steps_kinds };

/* False: not one of these kinds. */
static inline bool steps_make(random_head *h, const char *kind, int hidden, int vocab) {
    *h = (random_head){.n = 0};
    for (int i = 0; i < N_STEPS_KINDS; i++)
        if (!strcmp(steps_kinds[i].kind, kind)) {
            steps_kinds[i].make(h, hidden, vocab);
            return true;
        }
    return false;
}

/* For stories260K. */
static inline const char *steps_write(const char *kind, const char *to) {
    random_head h;
    if (!steps_make(&h, kind, 64, 512)) return NULL;
    head_write(&h, to);
    head_free(&h);
    return to;
}
#endif
