/* SPDX-License-Identifier: Apache-2.0 */
/* prefix_net.c - see prefix_net.h. The input of the GRU is a product of all places at once, as are the gradients of its weights; only the
 * product of its state is done place by place. */
#include "train/nets/prefix_net.h"

#include <string.h>

#include "train/math/layers/activations.h"
#include "train/math/layers/gru.h"
#include "train/math/layers/layers_back.h"
#include "train/math/product/product.h"

void hn_prefix_lay_out(hn_prefix_net *n, hn_room *r) {
    const int size = n->shape.state, rows = size ? n->places * n->most_blocks : 0, drafts = size ? n->most_drafts : 0;
    const int before = size ? n->most_blocks : 0;
    n->token = hn_room_take(r, (size_t)rows, sizeof *n->token);
    n->embedded = hn_room_mat(r, rows, n->hidden);
    n->gates = hn_room_mat(r, rows, 3 * size);
    n->own = hn_room_mat(r, rows, 3 * size);
    n->state = hn_room_mat(r, before + rows, size);
    n->dstate = hn_room_mat(r, before + rows, size);
    n->joint = hn_room_mat(r, drafts, n->hidden + size);
    n->djoint = hn_room_mat(r, drafts, n->hidden + size);
    n->mid = hn_room_mat(r, drafts, n->shape.width);
    n->acted = hn_room_mat(r, drafts, n->shape.width);
    n->dmid = hn_room_mat(r, drafts, n->shape.width);
}

/* Rows of a place; of all places. */
static hn_mat at_place(const hn_prefix_net *n, hn_mat m, int place) {
    return hn_mat_part(m, place * n->blocks, n->blocks);
}
static hn_mat every(const hn_prefix_net *n, hn_mat m) {
    return hn_mat_part(m, 0, n->places * n->blocks);
}
static hn_mat from_place(const hn_prefix_net *n, hn_mat m, int place) {
    return hn_mat_part(m, place * n->blocks, (n->places - place) * n->blocks);
}

static void clear(hn_mat m) {
    for (int r = 0; r < m.rows; r++) memset(hn_mat_row(m, r), 0, (size_t)m.cols * sizeof *m.p);
}

/* The state before place k is row k of `state`, that behind it the next. */
void hn_prefix_states(hn_prefix_net *n, hn_mat table, bool back) {
    hn_workers *t = n->workers;
    hn_embed(t, table, n->token, every(n, n->embedded));
    hn_linear(t, every(n, n->embedded), n->w.gru_input, NULL, every(n, n->gates));
    clear(at_place(n, n->state, 0));
    clear(at_place(n, n->own, 0));
    for (int k = 0; k < n->places; k++) {
        const hn_mat s = at_place(n, n->state, k), own = at_place(n, n->own, k);
        if (k > 0) hn_linear(t, s, n->w.gru_state, NULL, own);
        hn_gru_step(t, at_place(n, n->gates, k), own, s, at_place(n, n->state, k + 1));
    }
    if (back) clear(hn_mat_part(n->dstate, 0, (n->places + 1) * n->blocks));
}

static hn_mat state_behind(const hn_prefix_net *n, hn_mat states) {
    return hn_mat_part(states, n->blocks, n->places * n->blocks);
}

/* A row of zeros has no bias, and gives no gradient to weights. */
void hn_prefix_bias(hn_prefix_net *n, const int *at, hn_mat normed, hn_mat logits) {
    hn_workers *t = n->workers;
    const hn_mat joint = hn_mat_part(n->joint, 0, normed.rows), mid = hn_mat_part(n->mid, 0, normed.rows),
                 acted = hn_mat_part(n->acted, 0, normed.rows), states = state_behind(n, n->state);
    clear(joint);
    for (int i = 0; i < normed.rows; i++) {
        if (at[i] < 0) continue;
        memcpy(hn_mat_row(joint, i), hn_mat_row(normed, i), (size_t)normed.cols * sizeof *joint.p);
        memcpy(hn_mat_row(joint, i) + normed.cols, hn_mat_row(states, at[i]), (size_t)states.cols * sizeof *joint.p);
    }
    hn_linear(t, joint, n->w.bias_in, NULL, mid);
    clear(acted);
    hn_silu_add(t, mid, acted, acted);
    hn_product(t, HN_ABT, acted, n->w.bias_out, logits, true);
}

static void add_row(hn_real *to, const hn_real *from, int n) {
    for (int c = 0; c < n; c++) to[c] += from[c];
}

void hn_prefix_bias_back(hn_prefix_net *n, const int *at, hn_mat dlogits, hn_mat dnormed) {
    hn_workers *t = n->workers;
    const int rows = dlogits.rows;
    const hn_mat joint = hn_mat_part(n->joint, 0, rows), djoint = hn_mat_part(n->djoint, 0, rows), mid = hn_mat_part(n->mid, 0, rows),
                 dmid = hn_mat_part(n->dmid, 0, rows), dstates = state_behind(n, n->dstate);
    hn_linear_back(t, dlogits, hn_mat_part(n->acted, 0, rows), n->w.bias_out, dmid, false, n->g.bias_out, NULL);
    hn_silu_back(t, dmid, mid, dmid);
    hn_linear_back(t, dmid, joint, n->w.bias_in, djoint, false, n->g.bias_in, NULL);
    for (int i = 0; i < rows; i++) {
        if (at[i] < 0) continue;
        add_row(hn_mat_row(dnormed, i), hn_mat_row(djoint, i), dnormed.cols);
        add_row(hn_mat_row(dstates, at[i]), hn_mat_row(djoint, i) + dnormed.cols, dstates.cols);
    }
}

/* `gates` and `own` become their gradients. The first place has no state before it. */
void hn_prefix_states_back(hn_prefix_net *n) {
    hn_workers *t = n->workers;
    const hn_mat none = {0};
    for (int k = n->places - 1; k >= 0; k--) {
        const hn_mat own = at_place(n, n->own, k), before = at_place(n, n->dstate, k);
        hn_gru_step_back(t, at_place(n, n->dstate, k + 1), at_place(n, n->gates, k), own, at_place(n, n->state, k), before);
        if (k > 0) hn_product(t, HN_AB, own, n->w.gru_state, before, true);
    }
    hn_linear_back(t, every(n, n->gates), every(n, n->embedded), n->w.gru_input, none, false, n->g.gru_input, NULL);
    if (n->places > 1)
        hn_linear_back(t, from_place(n, n->own, 1), hn_mat_part(n->state, n->blocks, (n->places - 1) * n->blocks), n->w.gru_state, none,
                       false, n->g.gru_state, NULL);
}
