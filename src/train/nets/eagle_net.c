/* SPDX-License-Identifier: Apache-2.0 */
/* eagle_net.c - EAGLE-1 around the unrolled layer: the input of a step, and its two losses. There are logits of only one step at a time. */
#include "train/nets/eagle_net.h"

#include <assert.h>
#include <string.h>

#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/math/product/product.h"
#include "train/nets/unrolled.h"

struct hn_eagle_net {
    hn_room room;
    hn_unrolled u;
    hn_eagle_shape shape;
    double state_share, dist_share;
    hn_eagle_frozen frozen;
    hn_mat joined[HN_MOST_STEPS]; /* [2 hidden] */
    /* of one step at a time */
    hn_mat logits, dx;
    hn_real *scaled; /* weights of rows times a share */
    /* of one call */
    hn_real *w, *g;
    const hn_net_batch *b;
};

static void lay_out(void *net, hn_room *r) {
    hn_eagle_net *n = net;
    const int rows = n->u.most_rows, hidden = n->shape.hidden;
    hn_unrolled_lay_out(&n->u, r);
    for (int k = 0; k < n->u.steps; k++) n->joined[k] = hn_room_mat(r, rows, 2 * hidden);
    n->logits = hn_room_mat(r, rows, n->frozen.head.rows);
    n->dx = hn_room_mat(r, rows, hidden);
    n->scaled = hn_room_mat(r, rows, 1).p;
}

hunch_status hn_eagle_net_open(hn_eagle_net **out, hn_workers *t, const hn_eagle_shape *s, int steps, double state_share,
                               double dist_share, const hn_eagle_frozen *f, int rows, hunch_error *err) {
    assert(steps > 0 && steps <= HN_MOST_STEPS && rows > 0 && f->table.cols == s->hidden && f->head.cols == s->hidden);
    hn_eagle_net n = {.shape = *s, .state_share = state_share, .dist_share = dist_share, .frozen = *f};
    n.u = (hn_unrolled){.sizes = s->sizes, .workers = t, .inputs = s->hidden, .steps = steps, .most_rows = rows};
    *out = hn_net_new(&n, sizeof n, lay_out, "a head in training", err);
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_eagle_net_close(hn_eagle_net *n) {
    hn_net_free(n);
}

static hn_mat part_of(const hn_eagle_net *n, hn_eagle_part part, hn_real *vector) {
    return hn_eagle_part_of(&n->shape, part, vector);
}

/* NULL: there is none. */
static hn_real *bias_of(const hn_eagle_net *n, hn_real *vector) {
    return n->shape.bias ? part_of(n, HN_EAGLE_FC_BIAS, vector).p : NULL;
}

static hn_unrolled_layer layer_of(const hn_eagle_shape *s, hn_real *vector) {
    return (hn_unrolled_layer){.q = hn_eagle_part_of(s, HN_EAGLE_Q, vector),
                               .k = hn_eagle_part_of(s, HN_EAGLE_K, vector),
                               .v = hn_eagle_part_of(s, HN_EAGLE_V, vector),
                               .o = hn_eagle_part_of(s, HN_EAGLE_O, vector),
                               .post = hn_eagle_part_of(s, HN_EAGLE_NORM_POST, vector),
                               .gate = hn_eagle_part_of(s, HN_EAGLE_GATE, vector),
                               .up = hn_eagle_part_of(s, HN_EAGLE_UP, vector),
                               .down = hn_eagle_part_of(s, HN_EAGLE_DOWN, vector)};
}

static void forward(hn_eagle_net *n, int k) {
    hn_workers *t = n->u.workers;
    const int hidden = n->shape.hidden, rows = hn_unrolled_rows(&n->u);
    const hn_mat joined = hn_mat_part(n->joined[k], 0, rows), u = hn_mat_part(n->u.at[k].x, 0, rows);
    const hn_mat f = hn_mat_part(k > 0 ? n->u.at[k - 1].out : n->b->state, 0, rows);
    hn_embed(t, n->frozen.table, n->u.at[k].token, hn_mat_cols(joined, 0, hidden));
    for (int r = 0; r < rows; r++)
        memcpy(hn_mat_row(joined, r) + hidden, hn_mat_row(f, r), sizeof(hn_real) * (size_t)hidden);
    hn_linear(t, joined, part_of(n, HN_EAGLE_FC, n->w), bias_of(n, n->w), u);
    hn_unrolled_forward(&n->u, k, u);
}

/* Weights of rows' losses times a share of the whole. */
static const hn_real *scaled(const hn_eagle_net *n, const hn_real *weight, int rows, double share) {
    for (int i = 0; i < rows; i++) n->scaled[i] = (hn_real)((double)weight[i] * share);
    return n->scaled;
}

/* The loss of the distribution, and its part of dout. */
static double dist_loss(hn_eagle_net *n, int k) {
    hn_workers *t = n->u.workers;
    const int count = hn_unrolled_pick(&n->u, k, n->u.at[k].out, n->b->dist_row);
    if (count == 0) return 0;
    const hn_mat logits = hn_mat_part(n->logits, 0, count);
    hn_linear(t, hn_mat_part(n->u.some, 0, count), n->frozen.head, NULL, logits);
    const double loss =
        hn_loss_soft(t, logits, n->b->dist, n->u.dist_row, false,
                     scaled(n, n->u.some_weight, count, n->dist_share), logits, n->u.losses);
    if (!n->g) return loss;
    hn_product(t, HN_AB, logits, n->frozen.head, hn_mat_part(n->u.dsome, 0, count), false);
    hn_unrolled_put_back(&n->u, k, count);
    return loss;
}

/* The loss of step k, and its dout, also if it is not needed. The last k rows have none. */
static double output(hn_eagle_net *n, int k) {
    hn_workers *t = n->u.workers;
    const hn_unrolled_step *at = &n->u.at[k];
    const int rows = hn_unrolled_rows(&n->u) - k;
    memset(at->dout.p, 0, (size_t)hn_unrolled_rows(&n->u) * at->dout.ld * sizeof(hn_real));
    if (rows <= 0) return 0;
    const hn_mat out = hn_mat_part(at->out, 0, rows), dout = hn_mat_part(at->dout, 0, rows);
    const double loss = hn_loss_smooth_l1(t, out, hn_mat_part(n->b->next, k, rows),
                                          scaled(n, n->u.weight, rows, n->state_share), dout, n->u.losses);
    return loss + dist_loss(n, k);
}

static void backward(hn_eagle_net *n, int k) {
    hn_workers *t = n->u.workers;
    const int rows = hn_unrolled_rows(&n->u);
    const hn_mat du = hn_mat_part(n->dx, 0, rows);
    hn_unrolled_back(&n->u, k, du);
    hn_sum(t, du, hn_mat_part(n->u.at[k].dout, 0, rows), du);
    hn_linear_back(t, du, hn_mat_part(n->joined[k], 0, rows), part_of(n, HN_EAGLE_FC, n->w), (hn_mat){0}, false,
                   part_of(n, HN_EAGLE_FC, n->g), bias_of(n, n->g));
}

double hn_eagle_net_loss(hn_eagle_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient,
                         double *losses) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->u.most_rows && b->dist.cols == n->frozen.head.rows);
    n->w = weights;
    n->g = gradient;
    n->b = b;
    n->u.texts = b->texts;
    n->u.start = b->start;
    n->u.w = layer_of(&n->shape, weights);
    if (gradient) n->u.g = layer_of(&n->shape, gradient);
    double sum = 0;
    for (int k = 0; k < n->u.steps; k++) {
        hn_unrolled_look_ahead(&n->u, k, b->token, b->weight);
        forward(n, k);
        sum += losses[k] = output(n, k);
    }
    if (gradient) hn_unrolled_begin_back(&n->u);
    for (int k = n->u.steps - 1; gradient && k >= 0; k--) backward(n, k);
    return sum;
}
