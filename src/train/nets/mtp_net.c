/* SPDX-License-Identifier: Apache-2.0 */
/* mtp_net.c - multi-token prediction around the unrolled layer: the input of a step, its loss, and the gradient through
 * the chain. There are logits of only one step at a time. */
#include "train/nets/mtp_net.h"

#include <assert.h>
#include <string.h>

#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/math/product/product.h"
#include "train/nets/unrolled.h"

/* Data of each step beside the unrolled layer. */
typedef struct step {
    hn_mat joined, u, o; /* [2 hidden], [hidden] twice */
    hn_real *inverse_token, *inverse_hidden, *inverse_input, *inverse_output;
} step;

struct hn_mtp_net {
    hn_room room;
    hn_unrolled u;
    hn_mtp_shape shape;
    double decay;
    hn_mat table, head;
    step at[HN_MOST_STEPS];
    /* of one step at a time */
    hn_mat embedded, logits, dx, djoined;
    /* of one call */
    hn_real *w, *g;
    const hn_net_batch *b;
};

static void lay_out(void *net, hn_room *r) {
    hn_mtp_net *n = net;
    const int rows = n->u.most_rows, hidden = n->shape.hidden;
    hn_unrolled_lay_out(&n->u, r);
    for (int k = 0; k < n->u.steps; k++) {
        step *at = &n->at[k];
        at->joined = hn_room_mat(r, rows, 2 * hidden);
        at->u = hn_room_mat(r, rows, hidden);
        at->o = hn_room_mat(r, rows, hidden);
        at->inverse_token = hn_room_mat(r, rows, 1).p;
        at->inverse_hidden = hn_room_mat(r, rows, 1).p;
        at->inverse_input = hn_room_mat(r, rows, 1).p;
        at->inverse_output = hn_room_mat(r, rows, 1).p;
    }
    n->embedded = hn_room_mat(r, rows, hidden);
    n->logits = hn_room_mat(r, rows, n->head.rows);
    n->dx = hn_room_mat(r, rows, hidden);
    n->djoined = hn_room_mat(r, rows, 2 * hidden);
}

hunch_status hn_mtp_net_open(hn_mtp_net **out, hn_workers *t, const hn_mtp_shape *s, int steps, double decay, hn_mat table,
                             hn_mat head, int rows, hunch_error *err) {
    assert(steps > 0 && steps <= HN_MOST_STEPS && (s->modules == 1 || s->modules == steps) && decay > 0 && rows > 0 &&
           table.cols == s->hidden && head.cols == s->hidden);
    hn_mtp_net n = {.shape = *s, .decay = decay, .table = table, .head = head};
    n.u = (hn_unrolled){.sizes = s->sizes, .workers = t, .inputs = s->hidden, .head_norms = true, .alone = s->modules > 1,
                        .steps = steps, .most_rows = rows};
    *out = hn_net_new(&n, sizeof n, lay_out, "a head in training", err);
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_mtp_net_close(hn_mtp_net *n) {
    hn_net_free(n);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* The module of step k. */
static int first_part(const hn_mtp_net *n, int k) {
    return n->shape.modules > 1 ? k * HN_MTP_PARTS : 0;
}

static hn_mat weights_of(const hn_mtp_net *n, int k, hn_mtp_part part) {
    return hn_mtp_part_of(&n->shape, first_part(n, k) + (int)part, n->w);
}

static hn_mat gradient_of(const hn_mtp_net *n, int k, hn_mtp_part part) {
    return hn_mtp_part_of(&n->shape, first_part(n, k) + (int)part, n->g);
}

static hn_unrolled_layer layer_of(const hn_mtp_shape *s, int first, hn_real *vector) {
    return (hn_unrolled_layer){.q = hn_mtp_part_of(s, first + HN_MTP_Q, vector),
                               .k = hn_mtp_part_of(s, first + HN_MTP_K, vector),
                               .v = hn_mtp_part_of(s, first + HN_MTP_V, vector),
                               .o = hn_mtp_part_of(s, first + HN_MTP_O, vector),
                               .q_norm = hn_mtp_part_of(s, first + HN_MTP_Q_NORM, vector),
                               .k_norm = hn_mtp_part_of(s, first + HN_MTP_K_NORM, vector),
                               .post = hn_mtp_part_of(s, first + HN_MTP_NORM_POST, vector),
                               .gate = hn_mtp_part_of(s, first + HN_MTP_GATE, vector),
                               .up = hn_mtp_part_of(s, first + HN_MTP_UP, vector),
                               .down = hn_mtp_part_of(s, first + HN_MTP_DOWN, vector)};
}

static hn_mat now(const hn_mtp_net *n, hn_mat m) {
    return hn_unrolled_now(&n->u, m);
}

/* The input of step k in place of a state. */
static hn_mat in_of(const hn_mtp_net *n, int k) {
    return now(n, k > 0 ? n->at[k - 1].o : n->b->state);
}

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

static void forward(hn_mtp_net *n, int k) {
    hn_workers *t = n->u.workers;
    step *at = &n->at[k];
    const int hidden = n->shape.hidden;
    const hn_real eps = (hn_real)n->shape.eps;
    const hn_mat joined = now(n, at->joined), u = now(n, at->u), embedded = now(n, n->embedded);
    n->u.w = layer_of(&n->shape, first_part(n, k), n->w);
    hn_embed(t, n->table, n->u.at[k].token, embedded);
    hn_rms_norm(t, embedded, weights_of(n, k, HN_MTP_NORM_TOKEN).p, eps, hn_mat_cols(joined, 0, hidden),
                at->inverse_token);
    hn_rms_norm(t, in_of(n, k), weights_of(n, k, HN_MTP_NORM_HIDDEN).p, eps, hn_mat_cols(joined, hidden, hidden),
                at->inverse_hidden);
    hn_linear(t, joined, weights_of(n, k, HN_MTP_FC), NULL, u);
    hn_rms_norm(t, u, weights_of(n, k, HN_MTP_NORM_INPUT).p, eps, now(n, n->u.at[k].x), at->inverse_input);
    hn_unrolled_forward(&n->u, k, u);
    hn_rms_norm(t, now(n, n->u.at[k].out), weights_of(n, k, HN_MTP_NORM_OUTPUT).p, eps, now(n, at->o), at->inverse_output);
}

/* The loss of step k, weighted by u.weight; and, with gradients, that of o in dout. */
static double output(hn_mtp_net *n, int k) {
    hn_workers *t = n->u.workers;
    const hn_mat dout = now(n, n->u.at[k].dout);
    const int count = hn_unrolled_pick(&n->u, k, n->at[k].o, n->b->dist_row);
    if (n->g) memset(dout.p, 0, (size_t)dout.rows * dout.ld * sizeof(hn_real));
    if (count == 0) return 0;
    const hn_mat logits = hn_mat_part(n->logits, 0, count);
    hn_linear(t, hn_mat_part(n->u.some, 0, count), n->head, NULL, logits);
    const double loss = hn_loss_soft(t, logits, n->b->dist, n->u.dist_row, false, n->u.some_weight, logits, n->u.losses);
    if (!n->g) return loss;
    hn_product(t, HN_AB, logits, n->head, hn_mat_part(n->u.dsome, 0, count), false);
    hn_unrolled_put_back(&n->u, k, count);
    return loss;
}

/* ---- backwards --------------------------------------------------------------------------------------------------- */

/* From the gradient of both halves of fc's input to those of the norms, and of o of the step before. */
static void backward_inputs(hn_mtp_net *n, int k) {
    hn_workers *t = n->u.workers;
    const step *at = &n->at[k];
    const int hidden = n->shape.hidden;
    const hn_mat djoined = now(n, n->djoined), embedded = now(n, n->embedded);
    hn_embed(t, n->table, n->u.at[k].token, embedded);
    hn_rms_norm_back(t, hn_mat_cols(djoined, 0, hidden), embedded, weights_of(n, k, HN_MTP_NORM_TOKEN).p,
                     at->inverse_token, (hn_mat){0}, false, gradient_of(n, k, HN_MTP_NORM_TOKEN).p);
    hn_rms_norm_back(t, hn_mat_cols(djoined, hidden, hidden), in_of(n, k), weights_of(n, k, HN_MTP_NORM_HIDDEN).p,
                     at->inverse_hidden, k > 0 ? now(n, n->u.at[k - 1].dout) : (hn_mat){0}, true,
                     gradient_of(n, k, HN_MTP_NORM_HIDDEN).p);
}

/* dout is the complete gradient of o: from its own loss, and from the next step. */
static void backward(hn_mtp_net *n, int k) {
    hn_workers *t = n->u.workers;
    const step *at = &n->at[k];
    const hn_mat dout = now(n, n->u.at[k].dout), dx = now(n, n->dx);
    n->u.w = layer_of(&n->shape, first_part(n, k), n->w);
    n->u.g = layer_of(&n->shape, first_part(n, k), n->g);
    hn_rms_norm_back(t, dout, now(n, n->u.at[k].out), weights_of(n, k, HN_MTP_NORM_OUTPUT).p, at->inverse_output, dout,
                     false, gradient_of(n, k, HN_MTP_NORM_OUTPUT).p);
    hn_unrolled_back(&n->u, k, dx);
    hn_rms_norm_back(t, dx, now(n, at->u), weights_of(n, k, HN_MTP_NORM_INPUT).p, at->inverse_input, dout, true,
                     gradient_of(n, k, HN_MTP_NORM_INPUT).p);
    hn_linear_back(t, dout, now(n, at->joined), weights_of(n, k, HN_MTP_FC), now(n, n->djoined), false,
                   gradient_of(n, k, HN_MTP_FC), NULL);
    backward_inputs(n, k);
}

/* The sum of the steps' shares before normalisation. */
static double shares(const hn_mtp_net *n) {
    double sum = 0, share = 1;
    for (int k = 0; k < n->u.steps; k++, share *= n->decay) sum += share;
    return sum;
}

double hn_mtp_net_loss(hn_mtp_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->u.most_rows && b->dist.cols == n->head.rows);
    n->w = weights;
    n->g = gradient;
    n->b = b;
    n->u.texts = b->texts;
    n->u.start = b->start;
    double sum = 0, share = 1 / shares(n);
    for (int k = 0; k < n->u.steps; k++, share *= n->decay) {
        hn_unrolled_look_ahead(&n->u, k, b->token, b->weight);
        forward(n, k);
        for (int i = 0; i < hn_unrolled_rows(&n->u); i++) n->u.weight[i] *= (hn_real)share;
        const double loss = output(n, k);
        losses[k] = loss / share;
        sum += loss;
    }
    if (gradient) hn_unrolled_begin_back(&n->u);
    for (int k = n->u.steps - 1; gradient && k >= 0; k--) backward(n, k);
    return sum;
}
