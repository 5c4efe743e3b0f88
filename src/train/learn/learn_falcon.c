/* SPDX-License-Identifier: Apache-2.0 */
/* learn_falcon.c - training of Falcon (learn_kind.h): half of --unroll in a pass, and two passes. Saved in its
 * release's layout without weight_hh, which is only multiplied by a zero state: its own loader requires it, so no other
 * program reads the folder. Like EAGLE-1 it drafts with the target's embedding and output matrix. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/nets/falcon_net.h"
#include "train/learn/learn_kind.h"

enum { PASSES = 2, MOST_SPAN = 8 };

typedef struct falcon {
    hn_learn_setting s;
    hn_falcon_shape shape;
    hn_falcon_net *net;
} falcon;

static void falcon_usual(hn_learn_options *o) {
    o->unroll = 4;
}

static void falcon_close(void *head) {
    falcon *e = head;
    if (e) hn_falcon_net_close(e->net);
    hn_free(e);
}

static hunch_status falcon_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    const hn_arch *a = s->target;
    *out = NULL;
    if (s->o->unroll % PASSES || s->o->unroll > PASSES * MOST_SPAN)
        return hn_fail(err, HUNCH_USAGE,
                       "--unroll %d: a head of kind falcon learns two passes: expected an even number, 2 to %d",
                       s->o->unroll, PASSES * MOST_SPAN);
    falcon *e = hn_alloc(sizeof *e);
    if (!e) return hn_fail_memory(err, "a head in training", sizeof *e);
    *e = (falcon){.s = *s};
    e->shape = (hn_falcon_shape){.sizes = hn_learn_sizes(s), .span = s->o->unroll / PASSES, .passes = PASSES,
                                 .state_share = s->o->state_share, .dist_share = hn_learn_dist_share(s->o)};
    e->shape.head_dim = hn_learn_head_dim(a);
    const hn_mat table = hn_mat_of(s->rows->embedding, a->vocab, a->hidden), head = hn_mat_of(s->rows->output, s->o->vocab, a->hidden);
    const hunch_status st = hn_falcon_net_open(&e->net, s->workers, &e->shape, table, head, s->o->rows, err);
    if (st)
        falcon_close(e);
    else
        *out = e;
    return st;
}

static size_t falcon_count(const void *head) {
    return hn_falcon_count(&((const falcon *)head)->shape);
}

static int falcon_parts(const void *head HN_UNUSED) {
    return HN_FALCON_PARTS;
}

static hn_mat falcon_part(const void *head, int part, hn_real *vector) {
    return hn_falcon_part_of(&((const falcon *)head)->shape, (hn_falcon_part)part, vector);
}

static void falcon_part_name(const void *head HN_UNUSED, int part, char out[HN_LEARN_PART_NAME]) {
    snprintf(out, HN_LEARN_PART_NAME, "%s", hn_falcon_part_name((hn_falcon_part)part));
}

/* A pass drafts k tokens. */
static size_t falcon_read(const void *head) {
    return falcon_count(head) / (size_t)((const falcon *)head)->shape.span;
}

/* Random matrices, norm 1; the input and output gates start open, and the LSTM passes the state on as well as numbers
 * below 1 can: a quarter of its second layer's input if it is small. */
static void falcon_begin(const void *head, hn_real *w) {
    const falcon *e = head;
    const int hidden = e->shape.hidden;
    uint64_t x = e->s.o->seed + 1;
    for (int part = 0; part < HN_FALCON_PARTS; part++) {
        const hn_mat m = falcon_part(e, part, w);
        const bool lstm = part == HN_FALCON_LSTM_1 || part == HN_FALCON_LSTM_2, ends = part == HN_FALCON_O || part == HN_FALCON_DOWN;
        if (m.rows > 1) hn_learn_random(m, (lstm || ends ? 0.2 : 1) / sqrt(m.cols), &x);
        for (int k = 0; m.rows == 1 && k < m.cols; k++) m.p[k] = part == HN_FALCON_POST;
    }
    for (int layer = 0; layer < 2; layer++) {
        const hn_mat m = falcon_part(e, HN_FALCON_LSTM_1 + layer, w), bias = falcon_part(e, HN_FALCON_BIAS_1 + layer, w);
        for (int i = 0; i < hidden; i++) {
            hn_mat_row(m, 2 * hidden + i)[m.cols - hidden + i] += (hn_real)(layer ? 1 : 0.5);
            bias.p[i] = bias.p[3 * hidden + i] = 2;
        }
    }
}

static double falcon_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    return hn_falcon_net_loss(((falcon *)head)->net, weights, b, gradient, losses);
}

static json_t *falcon_config(const void *head) {
    const falcon *e = head;
    json_t *c = hn_config_layers(&e->s, &e->shape.sizes, "llama", 1);
    hn_config_put(&c, "architectures", json_pack("[s]", "LlamaForCausalLM"));
    hn_config_put(&c, "k_mask", json_integer(e->shape.span));
    hn_config_put(&c, "torch_dtype", json_string("bfloat16"));
    return c;
}

const hn_learn_kind hn_learn_falcon = {.name = "falcon",
                                       .usual = falcon_usual,
                                       .open = falcon_open,
                                       .close = falcon_close,
                                       .count = falcon_count,
                                       .parts = falcon_parts,
                                       .part = falcon_part,
                                       .part_name = falcon_part_name,
                                       .read = falcon_read,
                                       .begin = falcon_begin,
                                       .loss = falcon_loss,
                                       .config = falcon_config};
