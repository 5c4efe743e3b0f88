/* SPDX-License-Identifier: Apache-2.0 */
/* learn_eagle3.c - training of EAGLE-3 (learn_kind.h): saved in speculators' layout, which vLLM and SGLang read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/eagle3_net.h"
#include "train/learn_kind.h"

typedef struct eagle3 {
    hn_learn_setting s;
    hn_eagle3_shape shape;
    hn_eagle3_net *net;
} eagle3;

static void eagle3_close(void *head) {
    eagle3 *e = head;
    if (e) hn_eagle3_net_close(e->net);
    hn_free(e);
}

static hunch_status eagle3_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    const hn_arch *a = s->target;
    eagle3 *e = hn_alloc(sizeof *e);
    *out = NULL;
    if (!e) return hn_fail_memory(err, "a head in training", sizeof *e);
    *e = (eagle3){.s = *s};
    e->shape = (hn_eagle3_shape){.hidden = a->hidden,
                                 .taps = s->n_taps * a->hidden,
                                 .heads = a->layer[0].heads,
                                 .kv_heads = a->layer[0].kv_heads,
                                 .head_dim = a->layer[0].head_dim,
                                 .ffn = s->o->ffn,
                                 .vocab = s->o->vocab,
                                 .eps = (double)a->norm_eps,
                                 .theta = 10000,
                                 .norm_before_residual = s->o->norm_before_residual};
    const hn_mat table = hn_mat_of(s->rows->embedding, a->vocab, a->hidden);
    hunch_status st =
        hn_eagle3_net_open(&e->net, s->team, &e->shape, s->o->unroll, s->o->decay, table, s->o->rows, err);
    if (st)
        eagle3_close(e);
    else
        *out = e;
    return st;
}

static size_t eagle3_count(const void *head) {
    return hn_eagle3_count(&((const eagle3 *)head)->shape);
}

static int eagle3_parts(const void *head) {
    (void)head;
    return HN_EAGLE3_PARTS;
}

static hn_mat eagle3_part(const void *head, int part, hn_real *vector) {
    return hn_eagle3_part_of(&((const eagle3 *)head)->shape, (hn_eagle3_part)part, vector);
}

/* The layer's tensors as speculators names them. */
static void eagle3_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    (void)head;
    static const char middle[] = "midlayer.";
    const char *name = hn_eagle3_part_name((hn_eagle3_part)part);
    const bool layer = !strncmp(name, middle, sizeof middle - 1);
    snprintf(out, HN_LEARN_PART_NAME, "%s%s", layer ? "layers.0." : "", layer ? name + sizeof middle - 1 : name);
}

/* Random matrices, norms 1; the last tap is passed unchanged to the target's own norm and output, so that the head
 * starts better than random. */
static void eagle3_begin(const void *head, hn_real *w) {
    const eagle3 *e = head;
    uint64_t x = e->s.o->seed + 1;
    for (int part = 0; part < HN_EAGLE3_PARTS; part++) {
        const hn_mat m = eagle3_part(e, part, w);
        const double spread = part == HN_EAGLE3_O || part == HN_EAGLE3_DOWN ? 0.2 / sqrt(m.cols) : 1 / sqrt(m.cols);
        if (m.rows > 1) hn_learn_random(m, spread, &x);
        for (int k = 0; m.rows == 1 && k < m.cols; k++) m.p[k] = 1;
    }
    const hn_mat fc = eagle3_part(e, HN_EAGLE3_FC, w), norm = eagle3_part(e, HN_EAGLE3_NORM, w),
                 output = eagle3_part(e, HN_EAGLE3_HEAD, w);
    const int hidden = e->shape.hidden;
    for (int i = 0; i < hidden; i++) {
        for (int k = 0; k < fc.cols; k++) hn_mat_row(fc, i)[k] *= (hn_real)0.1;
        hn_mat_row(fc, i)[fc.cols - hidden + i] += 1;
        norm.p[i] = e->s.rows->norm[i];
    }
    for (size_t i = 0; i < (size_t)output.rows * (size_t)hidden; i++) output.p[i] = e->s.rows->output[i];
}

static double eagle3_loss(void *head, hn_real *weights, const hn_learn_batch *b, hn_real *gradient, double *losses) {
    const hn_eagle3_batch batch = {.texts = b->texts,
                                   .start = b->start,
                                   .token = b->token,
                                   .taps = b->states,
                                   .law = b->law,
                                   .weight = b->weight,
                                   .law_row = b->law_row};
    return hn_eagle3_net_loss(((eagle3 *)head)->net, weights, &batch, gradient, losses);
}

/* ---- config.json -------------------------------------------------------------------------------------------------------- */

static json_t *layer_config(const eagle3 *e) {
    const hn_eagle3_shape *s = &e->shape;
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:i, s:i, s:b, s:b, s:b}", "model_type",
                     "llama", "hidden_act", "silu", "hidden_size", s->hidden, "intermediate_size", s->ffn,
                     "num_attention_heads", s->heads, "num_key_value_heads", s->kv_heads, "head_dim", s->head_dim,
                     "num_hidden_layers", 1, "rms_norm_eps", s->eps, "rope_theta", s->theta, "vocab_size",
                     e->s.target->vocab, "max_position_embeddings", e->s.target->context, "attention_bias", 0,
                     "mlp_bias", 0, "tie_word_embeddings", 0);
}

static json_t *eagle3_config(const void *head) {
    const eagle3 *e = head;
    const hn_arch *target = e->s.target;
    json_t *taps = json_array();
    for (int i = 0; i < e->s.n_taps; i++) json_array_append_new(taps, json_integer(e->s.taps[i]));
    json_t *way = json_pack("[{s:s, s:i}]", "proposal_type", "greedy", "speculative_tokens", e->s.o->unroll);
    json_t *how =
        json_pack("{s:s, s:s, s:o, s:{s:s, s:[]}}", "algorithm", "eagle3", "default_proposal_method", "greedy",
                  "proposal_methods", way, "verifier", "name_or_path", target->name, "architectures");
    return json_pack("{s:[s], s:s, s:s, s:o, s:i, s:i, s:o, s:b, s:b, s:o}", "architectures", "Eagle3Speculator",
                     "speculators_model_type", "eagle3", "speculators_version", "0.9.0", "transformer_layer_config",
                     layer_config(e), "draft_vocab_size", e->shape.vocab, "target_hidden_size", target->hidden,
                     "eagle_aux_hidden_state_layer_ids", taps, "norm_before_residual",
                     e->shape.norm_before_residual ? 1 : 0, "tie_word_embeddings", 0, "speculators_config", how);
}

const hn_learn_kind hn_learn_eagle3 = {.name = "eagle3",
                                       .about = "a head of EAGLE-3, by training-time test",
                                       .others = "vLLM and SGLang",
                                       .reads_layers = true,
                                       .own_output = true,
                                       .open = eagle3_open,
                                       .close = eagle3_close,
                                       .count = eagle3_count,
                                       .parts = eagle3_parts,
                                       .part = eagle3_part,
                                       .part_name = eagle3_part_name,
                                       .begin = eagle3_begin,
                                       .loss = eagle3_loss,
                                       .config = eagle3_config};
