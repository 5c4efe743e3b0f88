/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_net.c - see mlp_net.h. States are computed for all rows of a batch, outputs for those with a loss. */
#include "train/nets/mlp_net.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "train/math/layers/activations.h"
#include "train/math/layers/attention_back.h"
#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/math/parts.h"

static const hn_real eps = (hn_real)1e-6;

/* One position, all rows. */
typedef struct position {
    hn_mat sum, normed, state; /* [inner]: before the norm, after it, after gelu; with a cell, sum is the cell */
    hn_mat dstate;             /* gradient from its loss and later positions */
    /* with a cell: [4 inner]; its new input, after its norm and after gelu; before the output gate */
    hn_mat gates, fresh_normed, fresh, out, dcell;
    hn_real *fresh_inverse;
    hn_real *inverse;
    int *token;
} position;

struct hn_mlp_net {
    hn_room room;
    hn_workers *workers;
    hn_mlp_shape shape;
    double decay;
    hn_real token_weight;
    int most_rows;
    hn_one_wait ahead;
    hn_mat root;       /* [hidden]: input of the first position */
    hn_real *half;     /* [hidden]: the gain 1 / sqrt 2 */
    hn_real *root_inverse;
    position at[HN_MOST_STEPS];
    hn_mat embedded;                /* [inner], for one position */
    hn_mat dgates, dout;            /* with a cell: [4 inner], [inner] */
    hn_mat some, dsome, logits;     /* of the rows with a loss */
    hn_real *w, *g;
    const hn_net_batch *b;
};

/* ---- parts --------------------------------------------------------------------------------------------------------------- */

static hn_mat shape_of(const void *shape, int part) {
    const hn_mlp_shape *s = shape;
    const int wide = s->cell ? 4 * s->inner : s->inner;
    switch (part) {
    case HN_MLP_EMBEDDING: return hn_mat_of(NULL, s->tokens, s->inner);
    case HN_MLP_FIRST: return hn_mat_of(NULL, wide, s->hidden);
    case HN_MLP_LATER: return hn_mat_of(NULL, s->positions > 1 ? wide : 0, s->inner);
    case HN_MLP_CELL_NORM:
    case HN_MLP_CELL_BIAS: return hn_mat_of(NULL, s->cell, s->inner);
    case HN_MLP_OUTPUT: return hn_mat_of(NULL, s->vocab, s->inner);
    default: return hn_mat_of(NULL, 1, s->inner);
    }
}

size_t hn_mlp_count(const hn_mlp_shape *s) {
    return hn_parts_before(shape_of, s, HN_MLP_PARTS);
}

hn_mat hn_mlp_part_of(const hn_mlp_shape *s, hn_mlp_part part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

const char *hn_mlp_part_name(const hn_mlp_shape *s, hn_mlp_part part) {
    static const char *const names[HN_MLP_PARTS][2] = {[HN_MLP_EMBEDDING] = {"speculator.emb.0.weight", "forget_emb.0.weight"},
                                                       [HN_MLP_FIRST] = {"speculator.proj.0.weight", "projs.0.weight"},
                                                       [HN_MLP_LATER] = {"speculator.proj.1.weight", "projs.1.weight"},
                                                       [HN_MLP_NORM] = {"speculator.ln.0.weight", "state_ln.0.weight"},
                                                       [HN_MLP_BIAS] = {"speculator.ln.0.bias", "state_ln.0.bias"},
                                                       [HN_MLP_CELL_NORM] = {"", "cell_ln.0.weight"},
                                                       [HN_MLP_CELL_BIAS] = {"", "cell_ln.0.bias"},
                                                       [HN_MLP_OUTPUT] = {"speculator.head.0.weight", "head.0.weight"}};
    return names[part][s->cell];
}

static hn_mat weight(const hn_mlp_net *n, hn_mlp_part part) {
    return hn_mlp_part_of(&n->shape, part, n->w);
}
static hn_mat gradient_of(const hn_mlp_net *n, hn_mlp_part part) {
    return hn_mlp_part_of(&n->shape, part, n->g);
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static void lay_out_cell(position *at, int rows, int inner, hn_room *r) {
    at->gates = hn_room_mat(r, rows, 4 * inner);
    at->fresh_normed = hn_room_mat(r, rows, inner);
    at->fresh = hn_room_mat(r, rows, inner);
    at->out = hn_room_mat(r, rows, inner);
    at->dcell = hn_room_mat(r, rows, inner);
    at->fresh_inverse = hn_room_mat(r, rows, 1).p;
}

static void lay_out(void *net, hn_room *r) {
    hn_mlp_net *n = net;
    const int rows = n->most_rows, inner = n->shape.inner;
    hn_one_wait_lay_out(&n->ahead, rows, r);
    n->root = hn_room_mat(r, rows, n->shape.hidden);
    n->half = hn_room_mat(r, 1, n->shape.hidden).p;
    n->root_inverse = hn_room_mat(r, rows, 1).p;
    for (int k = 0; k < n->shape.positions; k++) {
        position *at = &n->at[k];
        at->sum = hn_room_mat(r, rows, inner);
        at->normed = hn_room_mat(r, rows, inner);
        at->state = hn_room_mat(r, rows, inner);
        at->dstate = hn_room_mat(r, rows, inner);
        at->inverse = hn_room_mat(r, rows, 1).p;
        if (n->shape.cell) lay_out_cell(at, rows, inner, r);
        at->token = hn_room_take(r, (size_t)rows, sizeof *at->token);
    }
    n->embedded = hn_room_mat(r, rows, inner);
    n->dgates = hn_room_mat(r, n->shape.cell ? rows : 0, 4 * inner);
    n->dout = hn_room_mat(r, n->shape.cell ? rows : 0, inner);
    n->some = hn_room_mat(r, rows, inner);
    n->dsome = hn_room_mat(r, rows, inner);
    n->logits = hn_room_mat(r, rows, n->shape.vocab);
}

hunch_status hn_mlp_net_open(hn_mlp_net **out, hn_workers *t, const hn_mlp_shape *s, double decay, int rows, hunch_error *err) {
    assert(s->positions > 0 && s->positions <= HN_MOST_STEPS && rows > 0);
    hn_mlp_net n = {.workers = t, .shape = *s, .decay = decay, .most_rows = rows};
    const double state = pow(0.5, 0.5 / s->positions);
    n.token_weight = (hn_real)(sqrt((1 - state * state) * s->inner / 2) / state);
    *out = hn_net_new(&n, sizeof n, lay_out, "a head in training", err);
    for (int i = 0; *out && i < s->hidden; i++) (*out)->half[i] = (hn_real)0.70710678118654752440;
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_mlp_net_close(hn_mlp_net *n) {
    hn_net_free(n);
}

/* ---- forwards ------------------------------------------------------------------------------------------------------------ */

static hn_mat now(const hn_mlp_net *n, hn_mat m) {
    return hn_mat_part(m, 0, n->b->start[n->b->texts]);
}

/* The input of position k. */
static hn_mat read_by(const hn_mlp_net *n, int k) {
    return now(n, k ? n->at[k - 1].state : n->root);
}

static hn_mlp_part product_of(int k) {
    return k ? HN_MLP_LATER : HN_MLP_FIRST;
}

/* A row whose text ends before that reads any token: it has no loss from there on. */
static void look_ahead(hn_mlp_net *n, int k) {
    const hn_net_batch *b = n->b;
    for (int text = 0; text < b->texts; text++)
        for (int i = b->start[text], end = b->start[text + 1]; i < end; i++)
            n->at[k].token[i] = b->token[i + k < end ? i + k : end - 1];
}

static void scale(hn_mat m, hn_real by) {
    for (int r = 0; r < m.rows; r++)
        for (int c = 0; c < m.cols; c++) hn_mat_row(m, r)[c] *= by;
}

enum { FORGET, INPUT, OUTPUT, FRESH };

/* One of the four gates. */
static hn_mat gate_of(const hn_mlp_net *n, hn_mat gates, int gate) {
    return hn_mat_cols(now(n, gates), gate * n->shape.inner, n->shape.inner);
}

static void forward_cell(hn_mlp_net *n, int k) {
    hn_workers *t = n->workers;
    position *at = &n->at[k];
    const hn_mat gates = now(n, at->gates), cell = now(n, at->sum), fresh = now(n, at->fresh), out = now(n, at->out);
    const hn_mat fresh_normed = now(n, at->fresh_normed), normed = now(n, at->normed);
    hn_linear(t, read_by(n, k), weight(n, product_of(k)), NULL, gates);
    for (int gate = 0; gate < 4; gate++) hn_sum(t, gate_of(n, at->gates, gate), now(n, n->embedded), gate_of(n, at->gates, gate));
    hn_rms_norm(t, gate_of(n, at->gates, FRESH), weight(n, HN_MLP_CELL_NORM).p, eps, fresh_normed, at->fresh_inverse);
    hn_gelu(t, fresh_normed, weight(n, HN_MLP_CELL_BIAS).p, fresh);
    hn_gated(t, gate_of(n, at->gates, INPUT), fresh, cell, false);
    if (k > 0) hn_gated(t, gate_of(n, at->gates, FORGET), now(n, n->at[k - 1].sum), cell, true);
    hn_rms_norm(t, cell, weight(n, HN_MLP_NORM).p, eps, normed, at->inverse);
    hn_gelu(t, normed, weight(n, HN_MLP_BIAS).p, out);
    hn_gated(t, gate_of(n, at->gates, OUTPUT), out, now(n, at->state), false);
}

static void forward(hn_mlp_net *n, int k) {
    hn_workers *t = n->workers;
    position *at = &n->at[k];
    const hn_mat sum = now(n, at->sum), normed = now(n, at->normed), embedded = now(n, n->embedded);
    look_ahead(n, k);
    hn_embed(t, weight(n, HN_MLP_EMBEDDING), at->token, embedded);
    scale(embedded, n->token_weight);
    if (n->shape.cell) {
        forward_cell(n, k);
        return;
    }
    hn_linear(t, read_by(n, k), weight(n, product_of(k)), NULL, sum);
    hn_sum(t, sum, embedded, sum);
    hn_rms_norm(t, sum, weight(n, HN_MLP_NORM).p, eps, normed, at->inverse);
    hn_gelu(t, normed, weight(n, HN_MLP_BIAS).p, now(n, at->state));
}

/* The loss of position k times its share; and dstate, zero without loss. */
static double output(hn_mlp_net *n, int k, double share) {
    hn_workers *t = n->workers;
    hn_one_wait *a = &n->ahead;
    memset(n->at[k].dstate.p, 0, (size_t)now(n, n->root).rows * n->at[k].dstate.ld * sizeof(hn_real));
    hn_one_wait_pick(a, n->b, k, share);
    if (a->n == 0) return 0;
    const hn_mat some = hn_mat_part(n->some, 0, a->n), dsome = hn_mat_part(n->dsome, 0, a->n), logits = hn_mat_part(n->logits, 0, a->n);
    const hn_mat u = weight(n, HN_MLP_OUTPUT);
    hn_one_wait_copy(a, n->at[k].state, some);
    hn_linear(t, some, u, NULL, logits);
    const double loss = hn_loss_soft(t, logits, n->b->dist, a->dist_row, false, a->weight, logits, a->losses);
    if (!n->g) return loss;
    hn_linear_back(t, logits, some, u, dsome, false, gradient_of(n, HN_MLP_OUTPUT), NULL);
    for (int i = 0; i < a->n; i++)
        memcpy(hn_mat_row(n->at[k].dstate, a->row[i]), hn_mat_row(dsome, i), (size_t)dsome.cols * sizeof(hn_real));
    return loss;
}

/* ---- backwards ----------------------------------------------------------------------------------------------------------- */

/* From dstate and dcell of position k to those of the one before, and the gradient of the scaled embedding in `embedded`. */
static void backward_cell(hn_mlp_net *n, int k) {
    hn_workers *t = n->workers;
    position *at = &n->at[k];
    const hn_mat dcell = now(n, at->dcell), dout = now(n, n->dout), dgates = now(n, n->dgates), none = {0};
    const hn_mat dforget = gate_of(n, n->dgates, FORGET), dfresh = gate_of(n, n->dgates, FRESH), embedded = now(n, n->embedded);
    hn_gated_back(t, now(n, at->dstate), gate_of(n, at->gates, OUTPUT), now(n, at->out), gate_of(n, n->dgates, OUTPUT), dout, false);
    hn_gelu_back(t, dout, now(n, at->normed), weight(n, HN_MLP_BIAS).p, dout);
    hn_linear_back(t, dout, none, none, none, false, none, gradient_of(n, HN_MLP_BIAS).p);
    hn_rms_norm_back(t, dout, now(n, at->sum), weight(n, HN_MLP_NORM).p, at->inverse, dcell, true, gradient_of(n, HN_MLP_NORM).p);
    if (k > 0)
        hn_gated_back(t, dcell, gate_of(n, at->gates, FORGET), now(n, n->at[k - 1].sum), dforget, now(n, n->at[k - 1].dcell), false);
    else
        for (int r = 0; r < dforget.rows; r++) memset(hn_mat_row(dforget, r), 0, (size_t)dforget.cols * sizeof(hn_real));
    hn_gated_back(t, dcell, gate_of(n, at->gates, INPUT), now(n, at->fresh), gate_of(n, n->dgates, INPUT), dout, false);
    hn_gelu_back(t, dout, now(n, at->fresh_normed), weight(n, HN_MLP_CELL_BIAS).p, dout);
    hn_linear_back(t, dout, none, none, none, false, none, gradient_of(n, HN_MLP_CELL_BIAS).p);
    hn_rms_norm_back(t, dout, gate_of(n, at->gates, FRESH), weight(n, HN_MLP_CELL_NORM).p, at->fresh_inverse, dfresh, false,
                     gradient_of(n, HN_MLP_CELL_NORM).p);
    hn_linear_back(t, dgates, read_by(n, k), weight(n, product_of(k)), k ? now(n, n->at[k - 1].dstate) : none, true,
                   gradient_of(n, product_of(k)), NULL);
    hn_sum(t, gate_of(n, n->dgates, 0), gate_of(n, n->dgates, 1), embedded);
    for (int gate = 2; gate < 4; gate++) hn_sum(t, embedded, gate_of(n, n->dgates, gate), embedded);
    scale(embedded, n->token_weight);
    hn_embed_back(t, embedded, at->token, gradient_of(n, HN_MLP_EMBEDDING));
}

static void backward(hn_mlp_net *n, int k) {
    hn_workers *t = n->workers;
    position *at = &n->at[k];
    if (n->shape.cell) {
        backward_cell(n, k);
        return;
    }
    const hn_mat d = now(n, at->dstate), none = {0};
    hn_gelu_back(t, d, now(n, at->normed), weight(n, HN_MLP_BIAS).p, d);
    hn_linear_back(t, d, none, none, none, false, none, gradient_of(n, HN_MLP_BIAS).p);
    hn_rms_norm_back(t, d, now(n, at->sum), weight(n, HN_MLP_NORM).p, at->inverse, d, false, gradient_of(n, HN_MLP_NORM).p);
    hn_linear_back(t, d, read_by(n, k), weight(n, product_of(k)), k ? now(n, n->at[k - 1].dstate) : none, true,
                   gradient_of(n, product_of(k)), NULL);
    scale(d, n->token_weight);
    hn_embed_back(t, d, at->token, gradient_of(n, HN_MLP_EMBEDDING));
}

double hn_mlp_net_loss(hn_mlp_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->most_rows && b->dist.cols == n->shape.vocab);
    double sum = 0, share = 1;
    n->w = weights;
    n->g = gradient;
    n->b = b;
    hn_rms_norm(n->workers, hn_mat_part(b->state, 0, b->start[b->texts]), n->half, eps, now(n, n->root), n->root_inverse);
    for (int k = 0; k < n->shape.positions; k++, share *= n->decay) {
        forward(n, k);
        const double loss = output(n, k, share);
        losses[k] = loss / share;
        sum += loss;
    }
    const hn_mat last = now(n, n->at[n->shape.positions - 1].dcell);
    if (gradient && n->shape.cell) memset(last.p, 0, (size_t)last.rows * last.ld * sizeof *last.p);
    for (int k = n->shape.positions - 1; gradient && k >= 0; k--) backward(n, k);
    return sum;
}
