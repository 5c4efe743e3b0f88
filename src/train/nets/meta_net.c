/* SPDX-License-Identifier: Apache-2.0 */
/* meta_net.c - see meta_net.h. A head is a stack of one layer without blocks. */
#include "train/nets/meta_net.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/math/parts.h"
#include "train/math/product/product.h"

struct hn_meta_net {
    hn_room room;
    hn_stack s;
    hn_meta_shape shape;
    double decay;
    hn_mat head;
    hn_one_wait ahead;
    int *position, *none; /* none [texts + 1]: no blocks */
    hn_mat some, normed, dnormed, logits;
    hn_real *inverse;
    /* of one call */
    hn_real *w, *g;
    const hn_net_batch *b;
};

/* ---- parts --------------------------------------------------------------------------------------------------------------- */

/* Of a layer; the norm follows the last one. */
static const hn_part_row parts[HN_META_LAYER_PARTS] = {
    [HN_META_INPUT] = {"attention_norm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    [HN_META_Q] = {"attention.wq.weight", HN_WIDTH_QUERIES, HN_WIDTH_HIDDEN},
    [HN_META_K] = {"attention.wk.weight", HN_WIDTH_KEYS, HN_WIDTH_HIDDEN},
    [HN_META_V] = {"attention.wv.weight", HN_WIDTH_KEYS, HN_WIDTH_HIDDEN},
    [HN_META_O] = {"attention.wo.weight", HN_WIDTH_HIDDEN, HN_WIDTH_QUERIES},
    [HN_META_POST] = {"ffn_norm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    [HN_META_GATE] = {"feed_forward.w1.weight", HN_WIDTH_FFN, HN_WIDTH_HIDDEN},
    [HN_META_UP] = {"feed_forward.w3.weight", HN_WIDTH_FFN, HN_WIDTH_HIDDEN},
    [HN_META_DOWN] = {"feed_forward.w2.weight", HN_WIDTH_HIDDEN, HN_WIDTH_FFN}};
static const hn_part_row last = {"norm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN};

static const hn_part_row *row_of(const hn_meta_shape *s, int part) {
    return part == s->positions * HN_META_LAYER_PARTS ? &last : &parts[part % HN_META_LAYER_PARTS];
}

static hn_mat shape_of(const void *shape, int part) {
    const hn_meta_shape *s = shape;
    int width[HN_WIDTHS];
    hn_widths_of(width, &s->sizes);
    return hn_part_shaped(row_of(s, part), width);
}

size_t hn_meta_count(const hn_meta_shape *s) {
    return hn_parts_before(shape_of, s, hn_meta_parts(s));
}

hn_mat hn_meta_part_of(const hn_meta_shape *s, int part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

void hn_meta_part_name(const hn_meta_shape *s, int part, char *out) {
    if (part == s->positions * HN_META_LAYER_PARTS)
        snprintf(out, 80, "%s", last.name);
    else
        snprintf(out, 80, "extra_heads.%d.%s", part / HN_META_LAYER_PARTS, row_of(s, part)->name);
}

static hn_stack_layer layer_of(const hn_meta_shape *s, int position, hn_real *vector) {
    hn_mat m[HN_META_LAYER_PARTS];
    for (int i = 0; i < HN_META_LAYER_PARTS; i++) m[i] = hn_meta_part_of(s, position * HN_META_LAYER_PARTS + i, vector);
    return (hn_stack_layer){.input = m[HN_META_INPUT],
                            .q = m[HN_META_Q],
                            .k = m[HN_META_K],
                            .v = m[HN_META_V],
                            .o = m[HN_META_O],
                            .post = m[HN_META_POST],
                            .gate = m[HN_META_GATE],
                            .up = m[HN_META_UP],
                            .down = m[HN_META_DOWN]};
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static void lay_out(void *net, hn_room *r) {
    hn_meta_net *n = net;
    const int rows = n->s.most_texts_rows, hidden = n->shape.hidden;
    hn_stack_lay_out(&n->s, r);
    hn_one_wait_lay_out(&n->ahead, rows, r);
    n->position = hn_room_take(r, (size_t)rows, sizeof *n->position);
    n->none = hn_room_take(r, (size_t)rows + 1, sizeof *n->none);
    n->some = hn_room_mat(r, rows, hidden);
    n->normed = hn_room_mat(r, rows, hidden);
    n->dnormed = hn_room_mat(r, rows, hidden);
    n->logits = hn_room_mat(r, rows, n->head.rows);
    n->inverse = hn_room_mat(r, rows, 1).p;
}

hunch_status hn_meta_net_open(hn_meta_net **out, hn_workers *t, const hn_meta_shape *s, double decay, hn_mat head,
                              int rows, hunch_error *err) {
    assert(s->positions > 0 && s->positions <= HN_MOST_STEPS && rows > 0 && head.cols == s->hidden);
    hn_meta_net n = {.shape = *s, .decay = decay, .head = head};
    n.s = (hn_stack){.sizes = s->sizes, .workers = t, .inputs = s->hidden, .layers = 1, .pass = true,
                     .most_texts_rows = rows};
    *out = hn_net_new(&n, sizeof n, lay_out, "a head in training", err);
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_meta_net_close(hn_meta_net *n) {
    hn_net_free(n);
}

/* ---- forwards and backwards ---------------------------------------------------------------------------------------------- */

static void begin(hn_meta_net *n) {
    n->s.texts = n->b->texts;
    n->s.start = n->b->start;
    n->s.of = n->none;
    n->s.position = n->position;
    for (int text = 0; text <= n->b->texts; text++) n->none[text] = 0;
    for (int text = 0; text < n->b->texts; text++)
        for (int i = n->b->start[text]; i < n->b->start[text + 1]; i++) n->position[i] = i - n->b->start[text];
}

/* The layer of position k for all rows: its keys and values affect later rows. */
static void forward(hn_meta_net *n, int k) {
    const hn_mat z = hn_stack_all(&n->s, n->s.at[0].z);
    for (int i = 0; i < z.rows; i++) memcpy(hn_mat_row(z, i), hn_mat_row(n->b->state, i), (size_t)z.cols * sizeof(hn_real));
    n->s.w[0] = layer_of(&n->shape, k, n->w);
    if (n->g) n->s.g[0] = layer_of(&n->shape, k, n->g);
    hn_stack_forward(&n->s);
}

/* The weighted loss of the rows that have one; and, with gradients, dz. */
static double output(hn_meta_net *n) {
    hn_workers *t = n->s.workers;
    hn_one_wait *a = &n->ahead;
    const int norm = hn_meta_parts(&n->shape) - 1;
    const hn_mat some = hn_mat_part(n->some, 0, a->n), normed = hn_mat_part(n->normed, 0, a->n), d = hn_mat_part(n->dnormed, 0, a->n);
    const hn_mat logits = hn_mat_part(n->logits, 0, a->n), dz = hn_stack_all(&n->s, n->s.dz);
    const hn_real *gain = hn_meta_part_of(&n->shape, norm, n->w).p;
    hn_one_wait_copy(a, n->s.top, some);
    hn_rms_norm(t, some, gain, (hn_real)n->shape.eps, normed, n->inverse);
    hn_linear(t, normed, n->head, NULL, logits);
    const double loss = hn_loss_soft(t, logits, n->b->dist, a->dist_row, false, a->weight, logits, a->losses);
    if (!n->g) return loss;
    hn_product(t, HN_AB, logits, n->head, d, false);
    hn_rms_norm_back(t, d, some, gain, n->inverse, d, false, hn_meta_part_of(&n->shape, norm, n->g).p);
    memset(dz.p, 0, (size_t)dz.rows * dz.ld * sizeof *dz.p);
    for (int i = 0; i < a->n; i++) memcpy(hn_mat_row(dz, a->row[i]), hn_mat_row(d, i), (size_t)d.cols * sizeof(hn_real));
    return loss;
}

double hn_meta_net_loss(hn_meta_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->s.most_texts_rows && b->dist.cols == n->head.rows);
    double sum = 0, share = 1;
    n->w = weights;
    n->g = gradient;
    n->b = b;
    begin(n);
    for (int k = 0; k < n->shape.positions; k++, share *= n->decay) {
        losses[k] = 0;
        hn_one_wait_pick(&n->ahead, b, k, share);
        if (n->ahead.n == 0) continue;
        forward(n, k);
        const double loss = output(n);
        losses[k] = loss / share;
        sum += loss;
        if (gradient) hn_stack_back(&n->s);
    }
    return sum;
}
