/* SPDX-License-Identifier: Apache-2.0 */
/* unrolled.c - forward and backward of a layer over the steps of training. */
#include "train/nets/unrolled.h"

#include <string.h>

#include "train/math/layers/layers_back.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void lay_out_step(hn_unrolled *u, hn_unrolled_step *at, hn_room *r) {
    const int rows = u->most_rows, q = u->heads * u->head_dim, kv = u->kv_heads * u->head_dim;
    at->x = hn_room_mat(r, rows, u->inputs);
    at->q = hn_room_mat(r, rows, q);
    at->k = hn_room_mat(r, rows, kv);
    at->v = hn_room_mat(r, rows, kv);
    at->dk = hn_room_mat(r, rows, kv);
    at->dv = hn_room_mat(r, rows, kv);
    if (u->head_norms) {
        at->plain_q = hn_room_mat(r, rows, q);
        at->plain_k = hn_room_mat(r, rows, kv);
        at->inverse_q = hn_room_mat(r, rows, u->heads).p;
        at->inverse_k = hn_room_mat(r, rows, u->kv_heads).p;
    }
    at->y = hn_room_mat(r, rows, q);
    at->r = hn_room_mat(r, rows, u->hidden);
    at->post = hn_room_mat(r, rows, u->hidden);
    at->gate = hn_room_mat(r, rows, u->ffn);
    at->up = hn_room_mat(r, rows, u->ffn);
    at->s = hn_room_mat(r, rows, u->ffn);
    at->out = hn_room_mat(r, rows, u->hidden);
    at->dout = hn_room_mat(r, rows, u->hidden);
    at->log_sums = hn_room_mat(r, rows, u->heads).p;
    at->inverse_post = hn_room_mat(r, rows, 1).p;
    at->token = hn_room_take(r, (size_t)rows, sizeof *at->token);
}

void hn_unrolled_lay_out(hn_unrolled *u, hn_room *r) {
    const int rows = u->most_rows, q = u->heads * u->head_dim;
    for (int k = 0; k < u->steps; k++) lay_out_step(u, &u->at[k], r);
    u->dq = hn_room_mat(r, rows, q);
    u->wide = hn_room_mat(r, rows, u->ffn > q ? u->ffn : q);
    u->dpost = hn_room_mat(r, rows, u->hidden);
    u->weight = hn_room_mat(r, rows, 1).p;
    u->losses = hn_room_mat(r, rows, 1).p;
    u->position = hn_room_take(r, (size_t)rows, sizeof *u->position);
    u->some = hn_room_mat(r, rows, u->hidden);
    u->dsome = hn_room_mat(r, rows, u->hidden);
    u->some_row = hn_room_take(r, (size_t)rows, sizeof *u->some_row);
    u->dist_row = hn_room_take(r, (size_t)rows, sizeof *u->dist_row);
    u->some_weight = hn_room_mat(r, rows, 1).p;
}

/* ---- a batch at a step ----------------------------------------------------------------------------------- */

int hn_unrolled_rows(const hn_unrolled *u) {
    return u->start[u->texts];
}

hn_mat hn_unrolled_now(const hn_unrolled *u, hn_mat m) {
    return hn_mat_part(m, 0, hn_unrolled_rows(u));
}

void hn_unrolled_look_ahead(hn_unrolled *u, int k, const int *token, const hn_real *weight) {
    double all = 0;
    for (int text = 0; text < u->texts; text++) {
        const int end = u->start[text + 1];
        for (int i = u->start[text]; i < end; i++) {
            const bool there = i + k < end;
            u->at[k].token[i] = token[there ? i + k : end - 1];
            u->weight[i] = there ? weight[i + k] : 0;
            u->position[i] = i - u->start[text];
            all += (double)u->weight[i];
        }
    }
    for (int i = 0; all > 0 && i < hn_unrolled_rows(u); i++) u->weight[i] = (hn_real)((double)u->weight[i] / all);
}

int hn_unrolled_pick(hn_unrolled *u, int k, hn_mat from, const int *dist_row) {
    const size_t bytes = (size_t)u->hidden * sizeof(hn_real);
    int n = 0;
    for (int i = 0; i < hn_unrolled_rows(u); i++) {
        if (u->weight[i] == 0) continue;
        memcpy(hn_mat_row(u->some, n), hn_mat_row(from, i), bytes);
        u->some_row[n] = i;
        u->dist_row[n] = dist_row ? dist_row[i + k] : i + k;
        u->some_weight[n++] = u->weight[i];
    }
    return n;
}

void hn_unrolled_put_back(hn_unrolled *u, int k, int count) {
    for (int n = 0; n < count; n++) {
        const hn_real *from = hn_mat_row(u->dsome, n);
        hn_real *to = hn_mat_row(u->at[k].dout, u->some_row[n]);
        for (int c = 0; c < u->hidden; c++) to[c] += from[c];
    }
}

static hn_attention attention_of(const hn_unrolled *u, int step) {
    hn_attention a = {.heads = u->heads, .kv_heads = u->kv_heads, .head_dim = u->head_dim};
    a.texts = u->texts;
    a.start = u->start;
    a.step = u->alone ? 0 : step;
    a.q = hn_unrolled_now(u, u->at[step].q);
    for (int k = 0; k <= a.step; k++) {
        a.k[k] = hn_unrolled_now(u, u->at[step - a.step + k].k);
        a.v[k] = hn_unrolled_now(u, u->at[step - a.step + k].v);
    }
    return a;
}

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

/* A matrix with a row for each head, for norms head by head. */
static hn_mat by_head(hn_mat m, int head_dim) {
    return hn_mat_of(m.p, m.rows * (m.cols / head_dim), head_dim);
}

/* Queries and keys, before rotation. */
static void forward_heads(hn_unrolled *u, hn_unrolled_step *at, hn_mat x) {
    hn_workers *t = u->workers;
    const hn_mat q = hn_unrolled_now(u, at->q), k = hn_unrolled_now(u, at->k);
    const hn_mat plain_q = hn_unrolled_now(u, at->plain_q), plain_k = hn_unrolled_now(u, at->plain_k);
    const hn_real eps = (hn_real)u->eps;
    const int dim = u->head_dim;
    hn_linear(t, x, u->w.q, NULL, u->head_norms ? plain_q : q);
    hn_linear(t, x, u->w.k, NULL, u->head_norms ? plain_k : k);
    if (!u->head_norms) return;
    hn_rms_norm(t, by_head(plain_q, dim), u->w.q_norm.p, eps, by_head(q, dim), at->inverse_q);
    hn_rms_norm(t, by_head(plain_k, dim), u->w.k_norm.p, eps, by_head(k, dim), at->inverse_k);
}

static void forward_attention(hn_unrolled *u, int k, hn_mat residual) {
    hn_workers *t = u->workers;
    hn_unrolled_step *at = &u->at[k];
    const hn_mat x = hn_unrolled_now(u, at->x), q = hn_unrolled_now(u, at->q), keys = hn_unrolled_now(u, at->k);
    const hn_mat y = hn_unrolled_now(u, at->y), r = hn_unrolled_now(u, at->r);
    forward_heads(u, at, x);
    hn_linear(t, x, u->w.v, NULL, hn_unrolled_now(u, at->v));
    hn_rotate(t, q, u->head_dim, u->theta, u->position, k);
    hn_rotate(t, keys, u->head_dim, u->theta, u->position, k);
    const hn_attention a = attention_of(u, k);
    hn_attend(t, &a, y, at->log_sums);
    hn_linear(t, y, u->w.o, NULL, r);
    hn_sum(t, r, residual, r);
}

void hn_unrolled_forward(hn_unrolled *u, int k, hn_mat residual) {
    hn_workers *t = u->workers;
    hn_unrolled_step *at = &u->at[k];
    const hn_mat r = hn_unrolled_now(u, at->r), post = hn_unrolled_now(u, at->post), s = hn_unrolled_now(u, at->s);
    const hn_mat gate = hn_unrolled_now(u, at->gate), up = hn_unrolled_now(u, at->up);
    const hn_mat out = hn_unrolled_now(u, at->out);
    forward_attention(u, k, residual);
    hn_rms_norm(t, r, u->w.post.p, (hn_real)u->eps, post, at->inverse_post);
    hn_linear(t, post, u->w.gate, NULL, gate);
    hn_linear(t, post, u->w.up, NULL, up);
    hn_swiglu(t, gate, up, s);
    hn_linear(t, s, u->w.down, NULL, out);
    hn_sum(t, out, r, out);
}

/* ---- backwards --------------------------------------------------------------------------------------------------- */

void hn_unrolled_begin_back(hn_unrolled *u) {
    for (int k = 0; k < u->steps; k++) {
        const size_t bytes = (size_t)hn_unrolled_rows(u) * u->at[k].dk.ld * sizeof(hn_real);
        memset(u->at[k].dk.p, 0, bytes);
        memset(u->at[k].dv.p, 0, bytes);
    }
}

/* at->dout becomes the gradient of r. */
static void backward_ffn(hn_unrolled *u, hn_unrolled_step *at) {
    hn_workers *t = u->workers;
    const hn_mat dout = hn_unrolled_now(u, at->dout), post = hn_unrolled_now(u, at->post);
    const hn_mat gate = hn_unrolled_now(u, at->gate), up = hn_unrolled_now(u, at->up);
    const hn_mat ds = hn_mat_of(u->wide.p, hn_unrolled_rows(u), u->ffn), dpost = hn_unrolled_now(u, u->dpost);
    hn_linear_back(t, dout, hn_unrolled_now(u, at->s), u->w.down, ds, false, u->g.down, NULL);
    hn_swiglu_back(t, ds, gate, up, gate, up);
    hn_linear_back(t, gate, post, u->w.gate, dpost, false, u->g.gate, NULL);
    hn_linear_back(t, up, post, u->w.up, dpost, true, u->g.up, NULL);
    hn_rms_norm_back(t, dpost, hn_unrolled_now(u, at->r), u->w.post.p, at->inverse_post, dout, true, u->g.post.p);
}

/* In place. */
static void backward_head_norms(hn_unrolled *u, hn_unrolled_step *at, hn_mat dq, hn_mat dk) {
    hn_workers *t = u->workers;
    const hn_mat q = by_head(dq, u->head_dim), k = by_head(dk, u->head_dim);
    hn_rms_norm_back(t, q, by_head(hn_unrolled_now(u, at->plain_q), u->head_dim), u->w.q_norm.p, at->inverse_q, q, false,
                     u->g.q_norm.p);
    hn_rms_norm_back(t, k, by_head(hn_unrolled_now(u, at->plain_k), u->head_dim), u->w.k_norm.p, at->inverse_k, k, false,
                     u->g.k_norm.p);
}

void hn_unrolled_back(hn_unrolled *u, int k, hn_mat dx) {
    hn_workers *t = u->workers;
    hn_unrolled_step *at = &u->at[k];
    const hn_mat x = hn_unrolled_now(u, at->x), y = hn_unrolled_now(u, at->y);
    const hn_mat dq = hn_unrolled_now(u, u->dq), dk = hn_unrolled_now(u, at->dk);
    const hn_mat dy = hn_mat_of(u->wide.p, hn_unrolled_rows(u), at->y.cols);
    backward_ffn(u, at);
    hn_linear_back(t, hn_unrolled_now(u, at->dout), y, u->w.o, dy, false, u->g.o, NULL);
    const hn_attention a = attention_of(u, k);
    hn_attention_gradients d = {.q = dq};
    for (int i = 0; i <= a.step; i++) {
        d.k[i] = hn_unrolled_now(u, u->at[k - a.step + i].dk);
        d.v[i] = hn_unrolled_now(u, u->at[k - a.step + i].dv);
    }
    hn_attend_back(t, &a, y, at->log_sums, dy, &d);
    hn_rotate_back(t, dq, u->head_dim, u->theta, u->position, k);
    hn_rotate_back(t, dk, u->head_dim, u->theta, u->position, k);
    if (u->head_norms) backward_head_norms(u, at, dq, dk);
    hn_linear_back(t, dq, x, u->w.q, dx, false, u->g.q, NULL);
    hn_linear_back(t, dk, x, u->w.k, dx, true, u->g.k, NULL);
    hn_linear_back(t, hn_unrolled_now(u, at->dv), x, u->w.v, dx, true, u->g.v, NULL);
}
