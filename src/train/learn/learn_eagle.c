/* SPDX-License-Identifier: Apache-2.0 */
/* learn_eagle.c - training of EAGLE-1 by HASS's steps (learn_kind.h): saved in SafeAILab's layout, which is also that
 * of HASS. It has neither an output nor an embedding of its own: the drafter borrows both from the target. So its label
 * is the distribution of the chosen tokens among themselves, at every place of the target's answers, whether the next token is
 * chosen or not: the state there is guessed in any case. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/nets/eagle_net.h"
#include "train/learn/learn_kind.h"

/* As published, 1 and 0.1; with equal shares a small run was no better. */
double hn_learn_dist_share(const hn_learn_options *o) {
    return o->state_share > 0 ? 0.1 : 1;
}

typedef struct eagle {
    hn_learn_setting s;
    hn_eagle_shape shape;
    hn_eagle_net *net;
} eagle;

static void eagle_close(void *head) {
    eagle *e = head;
    if (e) hn_eagle_net_close(e->net);
    hn_free(e);
}

/* Published loaders support only one width of attention heads. */
int hn_learn_head_dim(const hn_arch *a) {
    const int heads = a->layer[0].heads;
    return a->hidden % (2 * heads) == 0 ? a->hidden / heads : a->layer[0].head_dim;
}

static hunch_status eagle_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    const hn_arch *a = s->target;
    eagle *e = hn_alloc(sizeof *e);
    *out = NULL;
    if (!e) return hn_fail_memory(err, "a head in training", sizeof *e);
    *e = (eagle){.s = *s};
    e->shape = (hn_eagle_shape){.sizes = hn_learn_sizes(s), .bias = true};
    e->shape.head_dim = hn_learn_head_dim(a);
    const hn_eagle_frozen frozen = {.table = hn_mat_of(s->rows->embedding, a->vocab, a->hidden),
                                    .head = hn_mat_of(s->rows->output, s->o->vocab, a->hidden)};
    hunch_status st =
        hn_eagle_net_open(&e->net, s->workers, &e->shape, s->o->unroll, s->o->state_share,
                          hn_learn_dist_share(s->o), &frozen, s->o->rows, err);
    if (st)
        eagle_close(e);
    else
        *out = e;
    return st;
}

static size_t eagle_count(const void *head) {
    return hn_eagle_count(&((const eagle *)head)->shape);
}

static int eagle_parts(const void *head) {
    (void)head;
    return HN_EAGLE_PARTS;
}

static hn_mat eagle_part(const void *head, int part, hn_real *vector) {
    return hn_eagle_part_of(&((const eagle *)head)->shape, (hn_eagle_part)part, vector);
}

static void eagle_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    (void)head;
    snprintf(out, HN_LEARN_PART_NAME, "%s", hn_eagle_part_name((hn_eagle_part)part));
}

/* Random matrices, bias 0, norm 1; the state is passed on unchanged, so that its guesses have the size of the labels. */
static void eagle_begin(const void *head, hn_real *w) {
    const eagle *e = head;
    uint64_t x = e->s.o->seed + 1;
    for (int part = 0; part < HN_EAGLE_PARTS; part++) {
        const hn_mat m = eagle_part(e, part, w);
        const double spread = part == HN_EAGLE_O || part == HN_EAGLE_DOWN ? 0.2 / sqrt(m.cols) : 1 / sqrt(m.cols);
        if (m.rows > 1) hn_learn_random(m, spread, &x);
        for (int k = 0; m.rows == 1 && k < m.cols; k++) m.p[k] = part == HN_EAGLE_NORM_POST;
    }
    const hn_mat fc = eagle_part(e, HN_EAGLE_FC, w);
    const int hidden = e->shape.hidden;
    for (int i = 0; i < hidden; i++) {
        for (int k = 0; k < fc.cols; k++) hn_mat_row(fc, i)[k] *= (hn_real)0.1;
        hn_mat_row(fc, i)[hidden + i] += 1;
    }
}

static double eagle_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    return hn_eagle_net_loss(((eagle *)head)->net, weights, b, gradient, losses);
}

static json_t *eagle_config(const void *head) {
    const eagle *e = head;
    json_t *c = hn_config_layers(&e->s, &e->shape.sizes, "llama", 1);
    hn_config_put(&c, "architectures", json_pack("[s]", "LlamaForCausalLM"));
    hn_config_put(&c, "bias", json_boolean(e->shape.bias));
    hn_config_put(&c, "torch_dtype", json_string("bfloat16"));
    return c;
}

const hn_learn_kind hn_learn_eagle = {.name = "eagle",
                                      .others = "SafeAILab's EAGLE and HASS",
                                      .open = eagle_open,
                                      .close = eagle_close,
                                      .count = eagle_count,
                                      .parts = eagle_parts,
                                      .part = eagle_part,
                                      .part_name = eagle_part_name,
                                      .begin = eagle_begin,
                                      .loss = eagle_loss,
                                      .config = eagle_config};
