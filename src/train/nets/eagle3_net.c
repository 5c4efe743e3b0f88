/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_net.c - EAGLE-3 around the unrolled layer: the input of a step, and its loss. There are logits of only one
 * step at a time: the gradient of the step's output is computed at once. */
#include "train/nets/eagle3_net.h"

#include <assert.h>
#include <string.h>

#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/nets/unrolled.h"

struct hn_eagle3_net {
    hn_room room;
    hn_unrolled u;
    hn_eagle3_shape shape;
    double decay;
    hn_mat table, fused; /* fused: input of step 0 in place of an output */
    hn_real *inverse_input[HN_MOST_STEPS], *inverse_hidden[HN_MOST_STEPS];
    /* of one step at a time */
    hn_mat embedded, normed, dnormed, logits, scores, dx; /* scores: of clusters */
    hn_real *inverse;
    /* of one call */
    hn_real *w, *g;
    const hn_net_batch *b;
};

static void lay_out(void *net, hn_room *r) {
    hn_eagle3_net *n = net;
    const int rows = n->u.most_rows, hidden = n->shape.hidden;
    hn_unrolled_lay_out(&n->u, r);
    for (int k = 0; k < n->u.steps; k++) {
        n->inverse_input[k] = hn_room_mat(r, rows, 1).p;
        n->inverse_hidden[k] = hn_room_mat(r, rows, 1).p;
    }
    n->fused = hn_room_mat(r, rows, hidden);
    n->embedded = hn_room_mat(r, rows, hidden);
    n->normed = hn_room_mat(r, rows, hidden);
    n->dnormed = hn_room_mat(r, rows, hidden);
    n->logits = hn_room_mat(r, rows, n->shape.vocab);
    if (n->shape.clusters.count) n->scores = hn_room_mat(r, rows, n->shape.clusters.count);
    n->dx = hn_room_mat(r, rows, 2 * hidden);
    n->inverse = hn_room_mat(r, rows, 1).p;
}

hunch_status hn_eagle3_net_open(hn_eagle3_net **out, hn_workers *t, const hn_eagle3_shape *s, int steps, double decay,
                                hn_mat table, int rows, hunch_error *err) {
    assert(steps > 0 && steps <= HN_MOST_STEPS && decay > 0 && table.cols == s->hidden && rows > 0);
    hn_eagle3_net n = {.shape = *s, .decay = decay, .table = table};
    n.u = (hn_unrolled){.sizes = s->sizes, .workers = t, .inputs = 2 * s->hidden, .steps = steps, .most_rows = rows};
    *out = hn_net_new(&n, sizeof n, lay_out, "a head in training", err);
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_eagle3_net_close(hn_eagle3_net *n) {
    hn_net_free(n);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static hn_mat weights_of(const hn_eagle3_net *n, hn_eagle3_part part) {
    return hn_eagle3_part_of(&n->shape, part, n->w);
}

static hn_mat gradient_of(const hn_eagle3_net *n, hn_eagle3_part part) {
    return hn_eagle3_part_of(&n->shape, part, n->g);
}

static hn_unrolled_layer layer_of(const hn_eagle3_shape *s, hn_real *vector) {
    return (hn_unrolled_layer){.q = hn_eagle3_part_of(s, HN_EAGLE3_Q, vector),
                               .k = hn_eagle3_part_of(s, HN_EAGLE3_K, vector),
                               .v = hn_eagle3_part_of(s, HN_EAGLE3_V, vector),
                               .o = hn_eagle3_part_of(s, HN_EAGLE3_O, vector),
                               .post = hn_eagle3_part_of(s, HN_EAGLE3_NORM_POST, vector),
                               .gate = hn_eagle3_part_of(s, HN_EAGLE3_GATE, vector),
                               .up = hn_eagle3_part_of(s, HN_EAGLE3_UP, vector),
                               .down = hn_eagle3_part_of(s, HN_EAGLE3_DOWN, vector)};
}

static hn_mat now(const hn_eagle3_net *n, hn_mat m) {
    return hn_unrolled_now(&n->u, m);
}

/* The input of step k from the step before. */
static hn_mat in_of(const hn_eagle3_net *n, int k) {
    return now(n, k > 0 ? n->u.at[k - 1].out : n->fused);
}

/* The embedding's and the state's part of a layer's input, or of its gradient. */
static hn_mat left_of(const hn_eagle3_net *n, hn_mat x) {
    return hn_mat_cols(now(n, x), 0, n->shape.hidden);
}

static hn_mat right_of(const hn_eagle3_net *n, hn_mat x) {
    return hn_mat_cols(now(n, x), n->shape.hidden, n->shape.hidden);
}

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

static void forward(hn_eagle3_net *n, int k) {
    hn_workers *t = n->u.workers;
    const hn_real eps = (hn_real)n->shape.eps;
    const hn_mat x = n->u.at[k].x, in = in_of(n, k), embedded = now(n, n->embedded);
    hn_embed(t, n->table, n->u.at[k].token, embedded);
    hn_rms_norm(t, embedded, weights_of(n, HN_EAGLE3_NORM_INPUT).p, eps, left_of(n, x), n->inverse_input[k]);
    hn_rms_norm(t, in, weights_of(n, HN_EAGLE3_NORM_HIDDEN).p, eps, right_of(n, x), n->inverse_hidden[k]);
    hn_unrolled_forward(&n->u, k, n->shape.norm_before_residual ? right_of(n, x) : in);
}

/* Of the picked rows, whose normed outputs and logits are known; gradients replace logits and scores. */
static double token_loss(hn_eagle3_net *n, hn_mat normed, hn_mat logits, hn_mat scores) {
    hn_workers *t = n->u.workers;
    if (!n->shape.clusters.count)
        return hn_loss_soft(t, logits, n->b->dist, n->u.dist_row, false, n->u.some_weight, logits, n->u.losses);
    hn_linear(t, normed, weights_of(n, HN_EAGLE3_CENTROIDS), NULL, scores);
    return hn_loss_clusters(t, logits, scores, &n->shape.clusters, n->b->dist, n->u.dist_row, n->u.some_weight, logits,
                            scores, n->u.losses);
}

/* The loss of step k, weighted by u.weight; and, with gradients, its dout. */
static double output(hn_eagle3_net *n, int k) {
    hn_workers *t = n->u.workers;
    const hn_unrolled_step *at = &n->u.at[k];
    const int count = hn_unrolled_pick(&n->u, k, n->u.at[k].out, n->b->dist_row);
    if (n->g) memset(at->dout.p, 0, (size_t)hn_unrolled_rows(&n->u) * at->dout.ld * sizeof(hn_real));
    if (count == 0) return 0;
    const hn_mat out = hn_mat_part(n->u.some, 0, count), normed = hn_mat_part(n->normed, 0, count);
    const hn_mat logits = hn_mat_part(n->logits, 0, count), head = weights_of(n, HN_EAGLE3_HEAD);
    const hn_mat gain = weights_of(n, HN_EAGLE3_NORM), scores = hn_mat_part(n->scores, 0, count);
    hn_rms_norm(t, out, gain.p, (hn_real)n->shape.eps, normed, n->inverse);
    hn_linear(t, normed, head, NULL, logits);
    const double loss = token_loss(n, normed, logits, scores);
    if (!n->g) return loss;
    const hn_mat dnormed = hn_mat_part(n->dnormed, 0, count);
    hn_linear_back(t, logits, normed, head, dnormed, false, gradient_of(n, HN_EAGLE3_HEAD), NULL);
    if (n->shape.clusters.count)
        hn_linear_back(t, scores, normed, weights_of(n, HN_EAGLE3_CENTROIDS), dnormed, true, gradient_of(n, HN_EAGLE3_CENTROIDS), NULL);
    hn_rms_norm_back(t, dnormed, out, gain.p, n->inverse, hn_mat_part(n->u.dsome, 0, count), false,
                     gradient_of(n, HN_EAGLE3_NORM).p);
    hn_unrolled_put_back(&n->u, k, count);
    return loss;
}

/* ---- backwards --------------------------------------------------------------------------------------------------- */

/* From the gradients of the input of step k's layer and of r to those of both norms, and of the output of the step before or of fc. */
static void backward(hn_eagle3_net *n, int k) {
    hn_workers *t = n->u.workers;
    const hn_mat left = left_of(n, n->dx), right = right_of(n, n->dx), dr = now(n, n->u.at[k].dout);
    const hn_mat embedded = now(n, n->embedded), gain = weights_of(n, HN_EAGLE3_NORM_HIDDEN);
    const bool normed = n->shape.norm_before_residual;
    hn_unrolled_back(&n->u, k, now(n, n->dx));
    hn_embed(t, n->table, n->u.at[k].token, embedded);
    hn_rms_norm_back(t, left, embedded, weights_of(n, HN_EAGLE3_NORM_INPUT).p, n->inverse_input[k], (hn_mat){0}, false,
                     gradient_of(n, HN_EAGLE3_NORM_INPUT).p);
    if (normed) hn_sum(t, right, dr, right);
    hn_rms_norm_back(t, right, in_of(n, k), gain.p, n->inverse_hidden[k], dr, !normed,
                     gradient_of(n, HN_EAGLE3_NORM_HIDDEN).p);
    if (k > 0)
        hn_sum(t, now(n, n->u.at[k - 1].dout), dr, now(n, n->u.at[k - 1].dout));
    else
        hn_linear_back(t, dr, now(n, n->b->state), weights_of(n, HN_EAGLE3_FC), (hn_mat){0}, false,
                       gradient_of(n, HN_EAGLE3_FC), NULL);
}

static void begin(hn_eagle3_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->u.most_rows && b->dist.cols == n->shape.vocab);
    n->w = weights;
    n->g = gradient;
    n->b = b;
    n->u.texts = b->texts;
    n->u.start = b->start;
    n->u.w = layer_of(&n->shape, weights);
    if (gradient) n->u.g = layer_of(&n->shape, gradient);
}

double hn_eagle3_net_loss(hn_eagle3_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient,
                          double *losses) {
    begin(n, weights, b, gradient);
    hn_linear(n->u.workers, now(n, b->state), weights_of(n, HN_EAGLE3_FC), NULL, now(n, n->fused));
    double sum = 0, share = 1;
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

void hn_eagle3_net_drafts(hn_eagle3_net *n, hn_real *weights, const hn_net_batch *b, hn_mat logits) {
    hn_workers *t = n->u.workers;
    begin(n, weights, b, NULL);
    assert(logits.rows == hn_unrolled_rows(&n->u) && logits.cols == n->shape.vocab);
    hn_linear(t, now(n, b->state), weights_of(n, HN_EAGLE3_FC), NULL, now(n, n->fused));
    hn_unrolled_look_ahead(&n->u, 0, b->token, b->weight);
    forward(n, 0);
    hn_rms_norm(t, now(n, n->u.at[0].out), weights_of(n, HN_EAGLE3_NORM).p, (hn_real)n->shape.eps, now(n, n->normed),
                n->inverse);
    hn_linear(t, now(n, n->normed), weights_of(n, HN_EAGLE3_HEAD), NULL, logits);
}
