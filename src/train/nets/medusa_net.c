/* SPDX-License-Identifier: Apache-2.0 */
/* medusa_net.c - see medusa_net.h. */
#include "train/nets/medusa_net.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "train/math/layers/activations.h"
#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/math/parts.h"
#include "train/math/product/product.h"

enum { MOST_BLOCKS = 16 };

struct hn_medusa_net {
    hn_room room;
    hn_workers *workers;
    hn_medusa_shape shape;
    double decay;
    hn_mat table;
    int most_rows;
    hn_one_wait ahead;
    /* of one position at a time */
    hn_mat joined;             /* [(positions + 1) hidden], if it is grounded */
    hn_mat y[MOST_BLOCKS + 1]; /* [hidden]: the state, and the output of each block */
    hn_mat z[MOST_BLOCKS];     /* [hidden]: before silu */
    hn_mat logits, dy, dz;
    hn_real *w, *g;
};

/* ---- parts --------------------------------------------------------------------------------------------------------------- */

static int parts_of_position(const hn_medusa_shape *s) {
    return 2 * s->resblocks + (s->grounded ? 2 : 0) + 1 + s->output_bias;
}

int hn_medusa_parts(const hn_medusa_shape *s) {
    return s->positions * parts_of_position(s);
}

hn_medusa_place hn_medusa_place_of(const hn_medusa_shape *s, int part) {
    const int each = parts_of_position(s), at = part % each, behind = at - 2 * s->resblocks;
    hn_medusa_place p = {.position = part / each};
    if (behind < 0) {
        p.block = at / 2;
        p.kind = at % 2 ? HN_MEDUSA_B : HN_MEDUSA_W;
    } else
        p.kind = (hn_medusa_kind)((int)(s->grounded ? HN_MEDUSA_RESIDUAL : HN_MEDUSA_OUTPUT) + behind);
    return p;
}

static hn_mat shape_of(const void *shape, int part) {
    const hn_medusa_shape *s = shape;
    const hn_medusa_place p = hn_medusa_place_of(s, part);
    const int wide = s->grounded ? (p.position + 2) * s->hidden : s->hidden;
    switch (p.kind) {
    case HN_MEDUSA_W: return hn_mat_of(NULL, s->hidden, p.block == 0 ? wide : s->hidden);
    case HN_MEDUSA_RESIDUAL: return hn_mat_of(NULL, s->hidden, wide);
    case HN_MEDUSA_OUTPUT: return hn_mat_of(NULL, s->vocab, s->hidden);
    case HN_MEDUSA_OUTPUT_BIAS: return hn_mat_of(NULL, 1, s->vocab);
    default: return hn_mat_of(NULL, 1, s->hidden);
    }
}

size_t hn_medusa_count(const hn_medusa_shape *s) {
    return hn_parts_before(shape_of, s, hn_medusa_parts(s));
}

hn_mat hn_medusa_part_of(const hn_medusa_shape *s, int part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

/* No matrix if there is no vector, or no such part. */
static hn_mat get(const hn_medusa_net *n, hn_real *vector, int position, hn_medusa_kind kind, int block) {
    const hn_medusa_shape *s = &n->shape;
    const int first = position * parts_of_position(s);
    if (!vector) return (hn_mat){0};
    for (int part = first; part < first + parts_of_position(s); part++) {
        const hn_medusa_place p = hn_medusa_place_of(s, part);
        if (p.kind == kind && p.block == block) return hn_medusa_part_of(s, part, vector);
    }
    return (hn_mat){0};
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static void lay_out(void *net, hn_room *r) {
    hn_medusa_net *n = net;
    const hn_medusa_shape *s = &n->shape;
    const int rows = n->most_rows;
    hn_one_wait_lay_out(&n->ahead, rows, r);
    n->joined = hn_room_mat(r, rows, s->grounded ? (s->positions + 1) * s->hidden : 0);
    for (int j = 0; j <= s->resblocks; j++) n->y[j] = hn_room_mat(r, rows, s->hidden);
    for (int j = 0; j < s->resblocks; j++) n->z[j] = hn_room_mat(r, rows, s->hidden);
    n->logits = hn_room_mat(r, rows, s->vocab);
    n->dy = hn_room_mat(r, rows, s->hidden);
    n->dz = hn_room_mat(r, rows, s->hidden);
}

hunch_status hn_medusa_net_open(hn_medusa_net **out, hn_workers *t, const hn_medusa_shape *s, double decay, hn_mat table, int rows,
                                hunch_error *err) {
    assert(s->positions > 0 && s->resblocks > 0 && s->resblocks <= MOST_BLOCKS && rows > 0 && (!s->grounded || table.cols == s->hidden));
    hn_medusa_net n = {.workers = t, .shape = *s, .decay = decay, .table = table, .most_rows = rows};
    *out = hn_net_new(&n, sizeof n, lay_out, "a head in training", err);
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_medusa_net_close(hn_medusa_net *n) {
    hn_net_free(n);
}

static hn_mat now(const hn_medusa_net *n, hn_mat m) {
    return hn_mat_part(m, 0, n->ahead.n);
}

/* The input of the first block of position k. */
static hn_mat input_of(const hn_medusa_net *n, int k) {
    const int hidden = n->shape.hidden;
    return n->shape.grounded ? hn_mat_cols(now(n, n->joined), 0, (k + 2) * hidden) : now(n, n->y[0]);
}

/* ---- forwards ------------------------------------------------------------------------------------------------------------ */

static void gather(hn_medusa_net *n, const hn_net_batch *b, int k) {
    const int hidden = n->shape.hidden;
    hn_one_wait_copy(&n->ahead, b->state, n->shape.grounded ? hn_mat_cols(now(n, n->joined), 0, hidden) : now(n, n->y[0]));
    for (int j = 0; n->shape.grounded && j <= k; j++) {
        hn_one_wait_tokens(&n->ahead, b, j);
        hn_embed(n->workers, n->table, n->ahead.token, hn_mat_cols(now(n, n->joined), (j + 1) * hidden, hidden));
    }
}

static void forward(hn_medusa_net *n, int k) {
    hn_workers *t = n->workers;
    const int last = n->shape.resblocks;
    for (int j = 0; j < last; j++) {
        const bool projected = n->shape.grounded && j == 0;
        const hn_mat in = j ? now(n, n->y[j]) : input_of(n, k), z = now(n, n->z[j]), y = now(n, n->y[j + 1]);
        hn_linear(t, in, get(n, n->w, k, HN_MEDUSA_W, j), get(n, n->w, k, HN_MEDUSA_B, j).p, z);
        if (projected) hn_linear(t, in, get(n, n->w, k, HN_MEDUSA_RESIDUAL, 0), get(n, n->w, k, HN_MEDUSA_RESIDUAL_BIAS, 0).p, y);
        hn_silu_add(t, z, projected ? y : in, y);
    }
    hn_linear(t, now(n, n->y[last]), get(n, n->w, k, HN_MEDUSA_OUTPUT, 0), get(n, n->w, k, HN_MEDUSA_OUTPUT_BIAS, 0).p,
              now(n, n->logits));
}

/* ---- backwards ----------------------------------------------------------------------------------------------------------- */

/* From the gradient of the logits, which replaces them. Nothing before the first block is trained. */
static void backward(hn_medusa_net *n, int k) {
    hn_workers *t = n->workers;
    const hn_mat dy = now(n, n->dy), dz = now(n, n->dz), none = {0};
    hn_linear_back(t, now(n, n->logits), now(n, n->y[n->shape.resblocks]), get(n, n->w, k, HN_MEDUSA_OUTPUT, 0), dy, false,
                   get(n, n->g, k, HN_MEDUSA_OUTPUT, 0), get(n, n->g, k, HN_MEDUSA_OUTPUT_BIAS, 0).p);
    for (int j = n->shape.resblocks - 1; j >= 0; j--) {
        const hn_mat in = j ? now(n, n->y[j]) : input_of(n, k);
        hn_silu_back(t, dy, now(n, n->z[j]), dz);
        if (j == 0 && n->shape.grounded)
            hn_linear_back(t, dy, in, none, none, false, get(n, n->g, k, HN_MEDUSA_RESIDUAL, 0),
                           get(n, n->g, k, HN_MEDUSA_RESIDUAL_BIAS, 0).p);
        hn_linear_back(t, dz, in, get(n, n->w, k, HN_MEDUSA_W, j), j ? dy : none, true, get(n, n->g, k, HN_MEDUSA_W, j),
                       get(n, n->g, k, HN_MEDUSA_B, j).p);
    }
}

double hn_medusa_net_loss(hn_medusa_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->most_rows && b->dist.cols == n->shape.vocab);
    double sum = 0, share = 1;
    n->w = weights;
    n->g = gradient;
    for (int k = 0; k < n->shape.positions; k++, share *= n->decay) {
        losses[k] = 0;
        hn_one_wait_pick(&n->ahead, b, k, share);
        if (n->ahead.n == 0) continue;
        gather(n, b, k);
        forward(n, k);
        const double loss = hn_loss_soft(n->workers, now(n, n->logits), b->dist, n->ahead.dist_row, false, n->ahead.weight,
                                         now(n, n->logits), n->ahead.losses);
        losses[k] = loss / share;
        sum += loss;
        if (gradient) backward(n, k);
    }
    return sum;
}
