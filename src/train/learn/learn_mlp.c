/* SPDX-License-Identifier: Apache-2.0 */
/* learn_mlp.c - training of IBM's speculator (learn_kind.h), tied: one embedding, norm and output matrix for all
 * positions. The output has only the chosen tokens, unlike IBM's: no other program reads its folder. It is trained in
 * two stages, like IBM's: on all tokens of the texts, then on the target's answers. */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "train/learn/learn_kind.h"
#include "train/nets/mlp_net.h"

typedef struct mlp {
    hn_learn_setting s;
    hn_mlp_shape shape;
    hn_mlp_net *net;
} mlp;

static void mlp_close(void *head) {
    mlp *h = head;
    if (h) hn_mlp_net_close(h->net);
    hn_free(h);
}

static hunch_status mlp_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    const hn_arch *a = s->target;
    mlp *h = hn_alloc(sizeof *h);
    *out = NULL;
    if (!h) return hn_fail_memory(err, "a head in training", sizeof *h);
    *h = (mlp){.s = *s};
    h->shape = (hn_mlp_shape){.hidden = a->hidden, .inner = a->hidden, .positions = s->o->unroll, .tokens = a->vocab, .vocab = s->o->vocab,
                               .cell = s->o->cell};
    const hunch_status st = hn_mlp_net_open(&h->net, s->workers, &h->shape, s->o->decay, s->o->rows, err);
    if (st)
        mlp_close(h);
    else
        *out = h;
    return st;
}

static size_t mlp_count(const void *head) {
    return hn_mlp_count(&((const mlp *)head)->shape);
}

/* One row of the embedding is read. */
static size_t mlp_read(const void *head) {
    const hn_mlp_shape *s = &((const mlp *)head)->shape;
    return (size_t)s->inner * (size_t)((s->cell ? 4 : 1) * s->inner + s->vocab + 3);
}

static int mlp_parts(const void *head) {
    (void)head;
    return HN_MLP_PARTS;
}

static hn_mat mlp_part(const void *head, int part, hn_real *vector) {
    return hn_mlp_part_of(&((const mlp *)head)->shape, (hn_mlp_part)part, vector);
}

static void mlp_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    snprintf(out, HN_LEARN_PART_NAME, "%s", hn_mlp_part_name(&((const mlp *)head)->shape, (hn_mlp_part)part));
}

/* A matrix of the target's, scaled to the size of a random one. */
static void like(hn_mat m, const float *of, double spread) {
    const size_t n = (size_t)m.rows * (size_t)m.cols;
    double square = 0;
    for (size_t i = 0; i < n; i++) square += (double)of[i] * (double)of[i];
    const double factor = square > 0 ? spread / sqrt(square / (double)n) : 0;
    for (size_t i = 0; i < n; i++) m.p[i] = (hn_real)(factor * (double)of[i]);
}

/* With IBM's initial sizes; embedding and output are the target's, which have information on similar tokens. */
static void mlp_begin(const void *head, hn_real *w) {
    const mlp *h = head;
    const double spread = 1 / sqrt(h->shape.inner);
    uint64_t x = h->s.o->seed + 1;
    for (int part = 0; part < HN_MLP_PARTS; part++) {
        const hn_mat m = mlp_part(h, part, w);
        if (part == HN_MLP_EMBEDDING)
            like(m, h->s.rows->embedding, spread);
        else if (part == HN_MLP_OUTPUT)
            like(m, h->s.rows->output, spread);
        else if (m.rows > 1)
            hn_learn_random(m, spread, &x);
        else
            for (int k = 0; m.rows == 1 && k < m.cols; k++) m.p[k] = part == HN_MLP_NORM || part == HN_MLP_CELL_NORM;
    }
}

static double mlp_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    return hn_mlp_net_loss(((mlp *)head)->net, weights, b, gradient, losses);
}

static void mlp_usual(hn_learn_options *o) {
    o->decay = 1;
    o->clip = 1;
}

static json_t *mlp_config(const void *head) {
    const mlp *h = head;
    const hn_mlp_shape *s = &h->shape;
    json_t *c = json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:s}", "architectures", "MLPSpeculatorPreTrainedModel",
                     "model_type", "mlp_speculator", "vocab_size", s->tokens, "draft_vocab_size", s->vocab, "emb_dim",
                     s->hidden, "inner_dim", s->inner, "n_predict", s->positions, "tie_weights", 1, "scale_input", 1,
                     "torch_dtype", "bfloat16");
    if (!s->cell || !c) return c;
    hn_config_put(&c, "architectures", json_pack("[s]", "ArcticLSTMSpeculatorPreTrainedModel"));
    hn_config_put(&c, "input_hidden_dim", json_integer(s->hidden));
    hn_config_put(&c, "proj_dim", json_integer(s->inner));
    hn_config_put(&c, "tie_lstm_embs", json_true());
    hn_config_put(&c, "method", json_string("sum_lstm"));
    return c;
}

const hn_learn_kind hn_learn_mlp = {.name = "mlp",
                                    .own_output = true,
                                    .ids_name = "d2t",
                                    .no_ffn = true,
                                    .two_stages = true,
                                    .usual = mlp_usual,
                                    .open = mlp_open,
                                    .close = mlp_close,
                                    .count = mlp_count,
                                    .parts = mlp_parts,
                                    .part = mlp_part,
                                    .part_name = mlp_part_name,
                                    .read = mlp_read,
                                    .begin = mlp_begin,
                                    .loss = mlp_loss,
                                    .config = mlp_config};
