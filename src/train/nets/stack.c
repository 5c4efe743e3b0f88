/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c - see stack.h. */
#include "train/nets/stack.h"

#include <string.h>

#include "train/math/layers/layers_back.h"

/* ---- memory and rows --------------------------------------------------------------------------------------------- */

static int inputs_of(const hn_stack *s, int layer) {
    return layer == 0 ? s->inputs : s->hidden;
}

static void lay_out_layer(hn_stack *s, int layer, hn_room *r) {
    const int rows = s->most_texts_rows + s->most_blocks_rows, q = s->heads * s->head_dim,
              kv = s->kv_heads * s->head_dim;
    hn_stack_kept *at = &s->at[layer];
    at->z = hn_room_mat(r, rows, s->hidden);
    at->x = hn_room_mat(r, rows, inputs_of(s, layer));
    if (s->head_norms) {
        at->plain_q = hn_room_mat(r, rows, q);
        at->plain_k = hn_room_mat(r, rows, kv);
        at->inverse_q = hn_room_mat(r, rows, s->heads).p;
        at->inverse_k = hn_room_mat(r, rows, s->kv_heads).p;
    }
    at->q = hn_room_mat(r, rows, q);
    at->k = hn_room_mat(r, rows, kv);
    at->v = hn_room_mat(r, rows, kv);
    at->y = hn_room_mat(r, rows, q);
    at->r = hn_room_mat(r, rows, s->hidden);
    at->post = hn_room_mat(r, rows, s->hidden);
    at->gate = hn_room_mat(r, rows, s->ffn);
    at->up = hn_room_mat(r, rows, s->ffn);
    at->s = hn_room_mat(r, rows, s->ffn);
    at->inverse_input = hn_room_mat(r, rows, 1).p;
    at->inverse_post = hn_room_mat(r, rows, 1).p;
    at->log_sums = hn_room_mat(r, rows, s->heads).p;
}

void hn_stack_lay_out(hn_stack *s, hn_room *r) {
    const int rows = s->most_texts_rows + s->most_blocks_rows, q = s->heads * s->head_dim,
              kv = s->kv_heads * s->head_dim;
    for (int layer = 0; layer < s->layers; layer++) lay_out_layer(s, layer, r);
    s->top = hn_room_mat(r, rows, s->hidden);
    s->dz = hn_room_mat(r, rows, s->hidden);
    s->beside = hn_room_mat(r, s->pass ? 0 : s->most_texts_rows, s->hidden);
    s->dbeside = hn_room_mat(r, s->pass ? 0 : s->most_texts_rows, s->hidden);
    s->dx = hn_room_mat(r, rows, s->inputs > s->hidden ? s->inputs : s->hidden);
    s->dq = hn_room_mat(r, rows, q);
    s->dk = hn_room_mat(r, rows, kv);
    s->dv = hn_room_mat(r, rows, kv);
    s->wide = hn_room_mat(r, rows, s->ffn > q ? s->ffn : q);
    s->dpost = hn_room_mat(r, rows, s->hidden);
}

int hn_stack_text_rows(const hn_stack *s) {
    return s->start[s->texts];
}

static int node_rows(const hn_stack *s) {
    const int blocks = s->of[s->texts];
    return blocks ? s->block[blocks - 1].first + s->block[blocks - 1].rows : 0;
}

int hn_stack_rows(const hn_stack *s) {
    return hn_stack_text_rows(s) + node_rows(s);
}

hn_mat hn_stack_all(const hn_stack *s, hn_mat m) {
    return hn_mat_part(m, 0, hn_stack_rows(s));
}

static hn_mat texts_of(const hn_stack *s, hn_mat m) {
    return hn_mat_part(m, 0, hn_stack_text_rows(s));
}

static hn_mat blocks_of(const hn_stack *s, hn_mat m) {
    return hn_mat_part(m, hn_stack_text_rows(s), node_rows(s));
}

static int first_passing(const hn_stack *s) {
    return s->pass ? 0 : hn_stack_text_rows(s);
}

hn_mat hn_stack_passing(const hn_stack *s, hn_mat m) {
    return s->pass ? hn_stack_all(s, m) : blocks_of(s, m);
}

/* The first columns of a matrix that is wide enough for any layer. */
static hn_mat wide_of(const hn_stack *s, hn_mat m, int cols) {
    return hn_mat_of(m.p, s->most_texts_rows + s->most_blocks_rows, cols);
}

/* The numbers of the rows that pass, `each` per row. */
static hn_real *passing_numbers(const hn_stack *s, hn_real *of, int each) {
    return of + (size_t)first_passing(s) * (size_t)each;
}

static hn_mat by_head(hn_mat m, int head_dim) {
    return hn_mat_of(m.p, m.rows * (m.cols / head_dim), head_dim);
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

static hn_attention among_texts(const hn_stack *s, const hn_stack_kept *at) {
    hn_attention a = {
        .heads = s->heads, .kv_heads = s->kv_heads, .head_dim = s->head_dim, .texts = s->texts, .start = s->start};
    a.q = texts_of(s, at->q);
    a.k[0] = texts_of(s, at->k);
    a.v[0] = texts_of(s, at->v);
    return a;
}

static hn_block_attention of_blocks(const hn_stack *s, const hn_stack_kept *at) {
    return (hn_block_attention){.heads = s->heads,
                                .kv_heads = s->kv_heads,
                                .head_dim = s->head_dim,
                                .texts = s->texts,
                                .start = s->start,
                                .of = s->of,
                                .block = s->block,
                                .ahead = s->ahead,
                                .q = blocks_of(s, at->q),
                                .own_k = blocks_of(s, at->k),
                                .own_v = blocks_of(s, at->v),
                                .k = texts_of(s, at->k),
                                .v = texts_of(s, at->v)};
}

static hn_real *block_sums(const hn_stack *s, const hn_stack_kept *at) {
    return at->log_sums + (size_t)hn_stack_text_rows(s) * (size_t)s->heads;
}

static void forward_heads(hn_stack *s, int layer) {
    hn_workers *t = s->workers;
    hn_stack_kept *at = &s->at[layer];
    const hn_stack_layer *w = &s->w[layer];
    const hn_real eps = (hn_real)s->eps;
    const int dim = s->head_dim;
    const hn_mat x = hn_stack_all(s, at->x), q = hn_stack_passing(s, at->q), k = hn_stack_all(s, at->k);
    const hn_mat plain_q = s->head_norms ? hn_stack_passing(s, at->plain_q) : q;
    const hn_mat plain_k = s->head_norms ? hn_stack_all(s, at->plain_k) : k;
    hn_linear(t, hn_stack_passing(s, at->x), w->q, NULL, plain_q);
    hn_linear(t, x, w->k, NULL, plain_k);
    hn_linear(t, x, w->v, NULL, hn_stack_all(s, at->v));
    if (s->head_norms) {
        hn_rms_norm(t, by_head(plain_q, dim), w->q_norm.p, eps, by_head(q, dim),
                    passing_numbers(s, at->inverse_q, s->heads));
        hn_rms_norm(t, by_head(plain_k, dim), w->k_norm.p, eps, by_head(k, dim), at->inverse_k);
    }
    hn_rotate(t, q, dim, s->theta, s->position + first_passing(s), 0);
    hn_rotate(t, k, dim, s->theta, s->position, 0);
}

static void forward_attention(hn_stack *s, int layer) {
    hn_workers *t = s->workers;
    hn_stack_kept *at = &s->at[layer];
    forward_heads(s, layer);
    if (s->pass) {
        const hn_attention a = among_texts(s, at);
        hn_attend(t, &a, texts_of(s, at->y), at->log_sums);
    }
    const hn_block_attention b = of_blocks(s, at);
    hn_block_attend(t, &b, blocks_of(s, at->y), block_sums(s, at));
}

static void backward_heads(hn_stack *s, int layer) {
    hn_workers *t = s->workers;
    const hn_stack_kept *at = &s->at[layer];
    const hn_stack_layer *w = &s->w[layer], *g = &s->g[layer];
    const int dim = s->head_dim;
    const hn_mat dq = hn_stack_passing(s, s->dq), dk = hn_stack_all(s, s->dk), dv = hn_stack_all(s, s->dv);
    const hn_mat x = hn_stack_all(s, at->x), dx = hn_stack_all(s, wide_of(s, s->dx, at->x.cols));
    hn_rotate_back(t, dq, dim, s->theta, s->position + first_passing(s), 0);
    hn_rotate_back(t, dk, dim, s->theta, s->position, 0);
    if (s->head_norms) {
        const hn_mat q_rows = by_head(dq, dim), k_rows = by_head(dk, dim);
        hn_rms_norm_back(t, q_rows, by_head(hn_stack_passing(s, at->plain_q), dim), w->q_norm.p,
                         passing_numbers(s, at->inverse_q, s->heads), q_rows, false, g->q_norm.p);
        hn_rms_norm_back(t, k_rows, by_head(hn_stack_all(s, at->plain_k), dim), w->k_norm.p, at->inverse_k, k_rows,
                         false, g->k_norm.p);
    }
    hn_linear_back(t, dk, x, w->k, dx, false, g->k, NULL);
    hn_linear_back(t, dv, x, w->v, dx, true, g->v, NULL);
    hn_linear_back(t, dq, hn_stack_passing(s, at->x), w->q, hn_stack_passing(s, wide_of(s, s->dx, at->x.cols)), true,
                   g->q, NULL);
}

static void clear(hn_mat m) {
    memset(m.p, 0, (size_t)m.rows * m.ld * sizeof *m.p);
}

/* From the gradient of y, in `wide`, to that of x. */
static void backward_attention(hn_stack *s, int layer) {
    hn_workers *t = s->workers;
    const hn_stack_kept *at = &s->at[layer];
    const hn_mat dy = wide_of(s, s->wide, at->y.cols);
    clear(hn_stack_all(s, s->dk));
    clear(hn_stack_all(s, s->dv));
    if (s->pass) {
        const hn_attention a = among_texts(s, at);
        const hn_attention_gradients d = {texts_of(s, s->dq), {texts_of(s, s->dk)}, {texts_of(s, s->dv)}};
        hn_attend_back(t, &a, texts_of(s, at->y), at->log_sums, texts_of(s, dy), &d);
    }
    const hn_block_attention b = of_blocks(s, at);
    const hn_block_gradients d = {blocks_of(s, s->dq), blocks_of(s, s->dk), blocks_of(s, s->dv), texts_of(s, s->dk),
                                  texts_of(s, s->dv)};
    hn_block_attend_back(t, &b, blocks_of(s, at->y), block_sums(s, at), blocks_of(s, dy), &d);
    backward_heads(s, layer);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static bool is_given(const hn_stack *s, int layer) {
    return layer == 0 && s->given;
}

static hn_mat z_after(const hn_stack *s, int layer) {
    return layer + 1 < s->layers ? s->at[layer + 1].z : s->top;
}

static void forward_layer(hn_stack *s, int layer) {
    hn_workers *t = s->workers;
    hn_stack_kept *at = &s->at[layer];
    const hn_stack_layer *w = &s->w[layer];
    const hn_real eps = (hn_real)s->eps;
    const hn_mat z = hn_stack_passing(s, at->z), r = hn_stack_passing(s, at->r), post = hn_stack_passing(s, at->post);
    const hn_mat gate = hn_stack_passing(s, at->gate), up = hn_stack_passing(s, at->up),
                 act = hn_stack_passing(s, at->s);
    const hn_mat behind = hn_stack_passing(s, z_after(s, layer));
    if (!is_given(s, layer))
        hn_rms_norm(t, z, w->input.p, eps, hn_stack_passing(s, at->x), passing_numbers(s, at->inverse_input, 1));
    if (!s->pass) memcpy(at->x.p, s->beside.p, (size_t)hn_stack_text_rows(s) * (size_t)s->hidden * sizeof *at->x.p);
    forward_attention(s, layer);
    hn_linear(t, hn_stack_passing(s, at->y), w->o, NULL, r);
    hn_sum(t, r, z, r);
    hn_rms_norm(t, r, w->post.p, eps, post, passing_numbers(s, at->inverse_post, 1));
    hn_linear(t, post, w->gate, NULL, gate);
    hn_linear(t, post, w->up, NULL, up);
    hn_swiglu(t, gate, up, act);
    hn_linear(t, act, w->down, NULL, behind);
    hn_sum(t, behind, r, behind);
}

void hn_stack_forward(hn_stack *s) {
    for (int layer = 0; layer < s->layers; layer++) forward_layer(s, layer);
}

/* dz becomes the gradient of r. */
static void backward_ffn(hn_stack *s, int layer) {
    hn_workers *t = s->workers;
    const hn_stack_kept *at = &s->at[layer];
    const hn_stack_layer *w = &s->w[layer], *g = &s->g[layer];
    const hn_mat dz = hn_stack_passing(s, s->dz), post = hn_stack_passing(s, at->post),
                 dpost = hn_stack_passing(s, s->dpost);
    const hn_mat gate = hn_stack_passing(s, at->gate), up = hn_stack_passing(s, at->up);
    const hn_mat ds = hn_stack_passing(s, wide_of(s, s->wide, s->ffn));
    hn_linear_back(t, dz, hn_stack_passing(s, at->s), w->down, ds, false, g->down, NULL);
    hn_swiglu_back(t, ds, gate, up, gate, up);
    hn_linear_back(t, gate, post, w->gate, dpost, false, g->gate, NULL);
    hn_linear_back(t, up, post, w->up, dpost, true, g->up, NULL);
    hn_rms_norm_back(t, dpost, hn_stack_passing(s, at->r), w->post.p, passing_numbers(s, at->inverse_post, 1), dz, true,
                     g->post.p);
}

static void backward_layer(hn_stack *s, int layer) {
    hn_workers *t = s->workers;
    const hn_stack_kept *at = &s->at[layer];
    const hn_stack_layer *w = &s->w[layer], *g = &s->g[layer];
    const hn_mat dz = hn_stack_passing(s, s->dz), dx = wide_of(s, s->dx, at->x.cols);
    backward_ffn(s, layer);
    hn_linear_back(t, dz, hn_stack_passing(s, at->y), w->o, hn_stack_passing(s, wide_of(s, s->wide, at->y.cols)), false,
                   g->o, NULL);
    backward_attention(s, layer);
    if (!s->pass) hn_sum(t, texts_of(s, s->dbeside), texts_of(s, dx), texts_of(s, s->dbeside));
    if (!is_given(s, layer))
        hn_rms_norm_back(t, hn_stack_passing(s, dx), hn_stack_passing(s, at->z), w->input.p,
                         passing_numbers(s, at->inverse_input, 1), dz, true, g->input.p);
}

void hn_stack_back(hn_stack *s) {
    if (!s->pass) clear(texts_of(s, s->dbeside));
    for (int layer = s->layers - 1; layer >= 0; layer--) backward_layer(s, layer);
}
