/* SPDX-License-Identifier: Apache-2.0 */
/* random_steps.h - heads of random weights (random_head.h) that have weights for each position: two positions, as their published files lay them
 * out. Include after random_head.h. */
#ifndef HN_TESTS_RANDOM_STEPS_H
#define HN_TESTS_RANDOM_STEPS_H

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
    h->config = json_pack("{s:s,s:i,s:b,s:b}", "model_type", "mlp_speculator", "n_predict", STEPS_POSITIONS, "tie_weights", 0, "scale_input", 1);
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

static const struct {
    const char *kind;
    void (*make)(random_head *h, int hidden, int vocab);
} steps_kinds[] = {{"medusa", steps_medusa}, {"hydra", steps_hydra}, {"mlp", steps_mlp}, {"meta-mtp", steps_meta}};
enum { N_STEPS_KINDS = sizeof steps_kinds / sizeof *steps_kinds };

/* False: no kind of these. */
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
