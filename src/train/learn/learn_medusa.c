/* SPDX-License-Identifier: Apache-2.0 */
/* learn_medusa.c - training of Medusa and Hydra (learn_kind.h): an output matrix for each position, with the chosen
 * tokens. Medusa is saved in vLLM's layout; Hydra with the names of its release, which has no reduced vocabulary: with
 * one no other program reads it. */
#include <stdio.h>

#include "base/mem.h"
#include "train/nets/medusa_net.h"
#include "train/learn/learn_kind.h"

typedef struct resblocks {
    hn_learn_setting s;
    hn_medusa_shape shape;
    hn_medusa_net *net;
} resblocks;

static void blocks_close(void *head) {
    resblocks *h = head;
    if (h) hn_medusa_net_close(h->net);
    hn_free(h);
}

static hunch_status blocks_open(void **out, const hn_learn_setting *s, bool grounded, hunch_error *err) {
    const hn_arch *a = s->target;
    resblocks *h = hn_alloc(sizeof *h);
    *out = NULL;
    if (!h) return hn_fail_memory(err, "a head in training", sizeof *h);
    *h = (resblocks){.s = *s};
    h->shape = (hn_medusa_shape){.hidden = a->hidden,
                                 .positions = s->o->unroll,
                                 .resblocks = 1,
                                 .vocab = s->o->vocab,
                                 .grounded = grounded,
                                 .output_bias = grounded};
    const hn_mat table = hn_mat_of(s->rows->embedding, a->vocab, a->hidden);
    const hunch_status st = hn_medusa_net_open(&h->net, s->workers, &h->shape, s->o->decay, table, s->o->rows, err);
    if (st)
        blocks_close(h);
    else
        *out = h;
    return st;
}

static hunch_status medusa_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    return blocks_open(out, s, false, err);
}
static hunch_status hydra_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    return blocks_open(out, s, true, err);
}

static size_t blocks_count(const void *head) {
    return hn_medusa_count(&((const resblocks *)head)->shape);
}

static size_t blocks_read(const void *head) {
    return blocks_count(head) / (size_t)((const resblocks *)head)->shape.positions;
}

static int blocks_parts(const void *head) {
    return hn_medusa_parts(&((const resblocks *)head)->shape);
}

static hn_mat blocks_part(const void *head, int part, hn_real *vector) {
    return hn_medusa_part_of(&((const resblocks *)head)->shape, part, vector);
}

static void medusa_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    const hn_medusa_place p = hn_medusa_place_of(&((const resblocks *)head)->shape, part);
    if (p.kind == HN_MEDUSA_OUTPUT)
        snprintf(out, HN_LEARN_PART_NAME, "lm_heads.%d.weight", p.position);
    else
        snprintf(out, HN_LEARN_PART_NAME, "blocks.%d.layers.%d.%s", p.position, p.block, p.kind == HN_MEDUSA_W ? "weight" : "bias");
}

static void hydra_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    static const char *const names[] = {[HN_MEDUSA_W] = "linear.weight",
                                        [HN_MEDUSA_B] = "linear.bias",
                                        [HN_MEDUSA_RESIDUAL] = "res_connection.weight",
                                        [HN_MEDUSA_RESIDUAL_BIAS] = "res_connection.bias"};
    const hn_medusa_place p = hn_medusa_place_of(&((const resblocks *)head)->shape, part);
    if (p.kind == HN_MEDUSA_OUTPUT || p.kind == HN_MEDUSA_OUTPUT_BIAS)
        snprintf(out, HN_LEARN_PART_NAME, "hydra_lm_head.%d.%s", p.position, p.kind == HN_MEDUSA_OUTPUT ? "weight" : "bias");
    else
        snprintf(out, HN_LEARN_PART_NAME, "hydra_mlp.%d.%d.%s", p.position, p.block, names[p.kind]);
}

/* As released: resblocks that initially add nothing, before the target's own output. The projection passes the state unchanged. */
static void blocks_begin(const void *head, hn_real *w) {
    const resblocks *h = head;
    const int parts = blocks_parts(h), hidden = h->shape.hidden;
    for (int part = 0; part < parts; part++) {
        const hn_mat m = blocks_part(h, part, w);
        const hn_medusa_kind kind = hn_medusa_place_of(&h->shape, part).kind;
        for (size_t i = 0; i < (size_t)m.rows * (size_t)m.cols; i++)
            m.p[i] = kind == HN_MEDUSA_OUTPUT ? (hn_real)h->s.rows->output[i] : 0;
        for (int i = 0; kind == HN_MEDUSA_RESIDUAL && i < hidden; i++) hn_mat_row(m, i)[i] = 1;
    }
}

static double blocks_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    return hn_medusa_net_loss(((resblocks *)head)->net, weights, b, gradient, losses);
}

static json_t *medusa_config(const void *head) {
    const resblocks *h = head;
    const hn_medusa_shape *s = &h->shape;
    return json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:s}", "architectures", "MedusaModel", "model_type",
                     "medusa", "hidden_size", s->hidden, "num_heads", s->positions, "num_hidden_layers", s->resblocks,
                     "vocab_size", h->s.target->vocab, "truncated_vocab_size", s->vocab, "medusa_fc_bias", 1,
                     "original_lm_head", 0, "torch_dtype", "bfloat16");
}

static json_t *hydra_config(const void *head) {
    const resblocks *h = head;
    const hn_medusa_shape *s = &h->shape;
    return json_pack("{s:i, s:i, s:s, s:b, s:i, s:s, s:i, s:i}", "hydra_num_heads", s->positions, "hydra_num_layers",
                     s->resblocks, "hydra_head_arch", "mlp", "grounded_heads", 1, "hidden_state_offset", 0,
                     "base_model_name_or_path", h->s.target->name, "vocab_size", h->s.target->vocab, "draft_vocab_size",
                     s->vocab);
}

const hn_learn_kind hn_learn_medusa = {.name = "medusa",
                                       .others = "vLLM",
                                       .own_output = true,
                                       .ids_name = "token_map",
                                       .no_ffn = true,
                                       .open = medusa_open,
                                       .close = blocks_close,
                                       .count = blocks_count,
                                       .parts = blocks_parts,
                                       .part = blocks_part,
                                       .part_name = medusa_part_name,
                                       .read = blocks_read,
                                       .begin = blocks_begin,
                                       .loss = blocks_loss,
                                       .config = medusa_config};

const hn_learn_kind hn_learn_hydra = {.name = "hydra",
                                      .own_output = true,
                                      .ids_name = "d2t",
                                      .no_ffn = true,
                                      .open = hydra_open,
                                      .close = blocks_close,
                                      .count = blocks_count,
                                      .parts = blocks_parts,
                                      .part = blocks_part,
                                      .part_name = hydra_part_name,
                                      .read = blocks_read,
                                      .begin = blocks_begin,
                                      .loss = blocks_loss,
                                      .config = hydra_config};
