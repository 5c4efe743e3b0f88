/* SPDX-License-Identifier: Apache-2.0 */
/* learn_mtp.c - training of one or several consecutive modules of multi-token prediction (learn_kind.h): saved in
 * speculators' layout, with a layer of Qwen3's kind for any target. Like EAGLE-1 it drafts with the target's embedding
 * and output matrix, and its label is the distribution of the chosen tokens among themselves, at every place of the target's
 * answers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/learn/learn_kind.h"
#include "train/nets/mtp_net.h"

typedef struct mtp {
    hn_learn_setting s;
    hn_mtp_shape shape;
    hn_mtp_net *net;
} mtp;

static void mtp_usual(hn_learn_options *o) {
    o->decay = 0.6; /* FastMTP's */
}

static void mtp_close(void *head) {
    mtp *e = head;
    if (e) hn_mtp_net_close(e->net);
    hn_free(e);
}

static hunch_status mtp_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    const hn_arch *a = s->target;
    *out = NULL;
    if (s->o->layers > 1 && (s->o->layers != s->o->unroll || s->o->layers > HN_MOST_HEAD_MODULES))
        return hn_fail(
            err, HUNCH_USAGE,
            "--layers %d --unroll %d: modules in a row draft a token each: expected as many of both, at most %d",
            s->o->layers, s->o->unroll, HN_MOST_HEAD_MODULES);
    mtp *e = hn_alloc(sizeof *e);
    if (!e) return hn_fail_memory(err, "a head in training", sizeof *e);
    *e = (mtp){.s = *s};
    e->shape = (hn_mtp_shape){.sizes = hn_learn_sizes(s), .modules = s->o->layers};
    hunch_status st = hn_mtp_net_open(&e->net, s->workers, &e->shape, s->o->unroll, s->o->layers > 1 ? 1 : s->o->decay,
                                      hn_mat_of(s->rows->embedding, a->vocab, a->hidden),
                                      hn_mat_of(s->rows->output, s->o->vocab, a->hidden), s->o->rows, err);
    if (st)
        mtp_close(e);
    else
        *out = e;
    return st;
}

static size_t mtp_count(const void *head) {
    return hn_mtp_count(&((const mtp *)head)->shape);
}

static hn_mat mtp_part(const void *head, int part, hn_real *vector) {
    return hn_mtp_part_of(&((const mtp *)head)->shape, part, vector);
}

static int mtp_parts(const void *head) {
    return ((const mtp *)head)->shape.modules * HN_MTP_PARTS;
}

/* Each module drafts one of the tokens. */
static size_t mtp_read(const void *head) {
    return mtp_count(head) / (size_t)((const mtp *)head)->shape.modules;
}

static void mtp_part_name(const void *head HN_UNUSED, int part, char out[HN_LEARN_PART_NAME]) {
    hn_mtp_part_name(part, out);
}

/* Random matrices, norms 1. The state is passed on unchanged: the norm after it has one gain for all, which restores
 * the size that the target's final norm gives it. */
static void mtp_begin(const void *head, hn_real *w) {
    const mtp *e = head;
    const int hidden = e->shape.hidden;
    uint64_t x = e->s.o->seed + 1;
    double square = 0;
    for (int i = 0; i < hidden; i++) square += (double)e->s.rows->norm[i] * (double)e->s.rows->norm[i];
    for (int part = 0; part < mtp_parts(e); part++) {
        const hn_mat m = mtp_part(e, part, w);
        const int kind = part % HN_MTP_PARTS;
        const double spread = (kind == HN_MTP_O || kind == HN_MTP_DOWN ? 0.2 : kind == HN_MTP_FC ? 0.1 : 1) / sqrt(m.cols);
        const double gain = kind == HN_MTP_NORM_OUTPUT ? sqrt(square / hidden) : 1;
        if (m.rows > 1) hn_learn_random(m, spread, &x);
        for (int k = 0; m.rows == 1 && k < m.cols; k++) m.p[k] = (hn_real)gain;
        for (int i = 0; kind == HN_MTP_FC && i < hidden; i++) hn_mat_row(m, i)[hidden + i] += 1;
    }
}

static double mtp_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    return hn_mtp_net_loss(((mtp *)head)->net, weights, b, gradient, losses);
}

/* ---- config.json -------------------------------------------------------------------------------------------------------- */

static json_t *layer_config(const mtp *e) {
    json_t *c = hn_config_layers(&e->s, &e->shape.sizes, "qwen3", e->shape.modules);
    hn_config_put(&c, "layer_types", hn_config_layer_types(e->shape.modules));
    hn_config_put(&c, "rope_parameters", json_pack("{s:s, s:f}", "rope_type", "default", "rope_theta", e->shape.theta));
    hn_config_put(&c, "attention_bias", json_false());
    return c;
}

static json_t *mtp_config(const void *head) {
    const mtp *e = head;
    json_t *how = hn_config_speculators(&e->s, "mtp", e->s.o->unroll);
    return json_pack("{s:[s], s:s, s:s, s:i, s:o, s:b, s:s, s:o}", "architectures", "MTPDraftModel",
                     "speculators_model_type", "mtp", "speculators_version", "0.9.0", "num_nextn_predict_layers", e->shape.modules,
                     "transformer_layer_config", layer_config(e), "tie_word_embeddings", 0, "torch_dtype", "bfloat16",
                     "speculators_config", how);
}

const hn_learn_kind hn_learn_mtp = {.name = "mtp",
                                    .others = "vLLM's speculators",
                                    .layered = true,
                                    .one_layer_of_others = true,
                                    .usual = mtp_usual,
                                    .parts = mtp_parts,
                                    .open = mtp_open,
                                    .close = mtp_close,
                                    .count = mtp_count,
                                    .part = mtp_part,
                                    .part_name = mtp_part_name,
                                    .read = mtp_read,
                                    .begin = mtp_begin,
                                    .loss = mtp_loss,
                                    .config = mtp_config};
