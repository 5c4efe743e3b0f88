/* SPDX-License-Identifier: Apache-2.0 */
/* student_net.c - a draft model around the stack of layers, without blocks. At a time there are logits of only one batch. */
#include "train/nets/student_net.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "train/math/layers/layers_back.h"
#include "train/math/parts.h"
#include "train/math/product/product.h"

/* ---- parts --------------------------------------------------------------------------------------------------------- */

enum { INPUT, Q, K, V, Q_NORM, K_NORM, O, POST, GATE, UP, DOWN };

static hn_mat shape_of(const void *shape, int part) {
    const hn_student_shape *s = shape;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    if (part == s->layers * HN_STUDENT_LAYER_PARTS) return hn_mat_of(NULL, 1, s->hidden);
    switch (part % HN_STUDENT_LAYER_PARTS) {
    case Q: return hn_mat_of(NULL, q, s->hidden);
    case K:
    case V: return hn_mat_of(NULL, kv, s->hidden);
    case Q_NORM:
    case K_NORM: return hn_mat_of(NULL, s->head_norms, s->head_dim);
    case O: return hn_mat_of(NULL, s->hidden, q);
    case GATE:
    case UP: return hn_mat_of(NULL, s->ffn, s->hidden);
    case DOWN: return hn_mat_of(NULL, s->hidden, s->ffn);
    default: return hn_mat_of(NULL, 1, s->hidden);
    }
}

size_t hn_student_count(const hn_student_shape *s) {
    return hn_parts_before(shape_of, s, hn_student_parts(s));
}

hn_mat hn_student_part_of(const hn_student_shape *s, int part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

void hn_student_part_name(const hn_student_shape *s, int part, char *out) {
    static const char *const names[HN_STUDENT_LAYER_PARTS] = {
        "input_layernorm",  "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
        "self_attn.q_norm", "self_attn.k_norm", "self_attn.o_proj", "post_attention_layernorm",
        "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
    if (part == s->layers * HN_STUDENT_LAYER_PARTS)
        snprintf(out, 80, "model.norm.weight");
    else
        snprintf(out, 80, "model.layers.%d.%s.weight", part / HN_STUDENT_LAYER_PARTS,
                 names[part % HN_STUDENT_LAYER_PARTS]);
}

hn_stack_layer hn_student_layer_of(const hn_student_shape *s, int layer, hn_real *vector) {
    hn_mat m[HN_STUDENT_LAYER_PARTS];
    for (int i = 0; i < HN_STUDENT_LAYER_PARTS; i++)
        m[i] = hn_student_part_of(s, layer * HN_STUDENT_LAYER_PARTS + i, vector);
    return (hn_stack_layer){.input = m[INPUT],
                            .q = m[Q],
                            .k = m[K],
                            .v = m[V],
                            .q_norm = m[Q_NORM],
                            .k_norm = m[K_NORM],
                            .o = m[O],
                            .post = m[POST],
                            .gate = m[GATE],
                            .up = m[UP],
                            .down = m[DOWN]};
}

/* ---- open ---------------------------------------------------------------------------------------------------------- */

struct hn_student_net {
    hn_room room;
    hn_stack s;
    hn_student_shape shape;
    hn_divergence divergence;
    hn_mat table, head;
    int *token, *position; /* of the stack's rows; each text has one more than in the batch */
    int *start, *none;     /* [texts + 1]; none: no blocks */
    int *row, *dist_row;    /* [rows] for rows with a loss: row of the stack, row of the distributions */
    hn_mat some, normed, dnormed, logits;
    hn_real *inverse, *weight, *losses;
    /* of one call */
    hn_real *w, *g;
};

/* A text of one row has two rows in the stack. */
static void lay_out(void *net, hn_room *r) {
    hn_student_net *n = net;
    const int stack = n->s.most_texts_rows, rows = stack / 2, hidden = n->shape.hidden;
    hn_stack_lay_out(&n->s, r);
    n->token = hn_room_take(r, (size_t)stack, sizeof *n->token);
    n->position = hn_room_take(r, (size_t)stack, sizeof *n->position);
    n->start = hn_room_take(r, (size_t)rows + 1, sizeof *n->start);
    n->none = hn_room_take(r, (size_t)rows + 1, sizeof *n->none);
    n->row = hn_room_take(r, (size_t)rows, sizeof *n->row);
    n->dist_row = hn_room_take(r, (size_t)rows, sizeof *n->dist_row);
    n->some = hn_room_mat(r, rows, hidden);
    n->normed = hn_room_mat(r, rows, hidden);
    n->dnormed = hn_room_mat(r, rows, hidden);
    n->logits = hn_room_mat(r, rows, n->head.rows);
    n->inverse = hn_room_mat(r, rows, 1).p;
    n->weight = hn_room_mat(r, rows, 1).p;
    n->losses = hn_room_mat(r, rows, 1).p;
}

hunch_status hn_student_net_open(hn_student_net **out, hn_workers *t, const hn_student_shape *s, hn_divergence d,
                                 hn_mat table, hn_mat head, int rows, hunch_error *err) {
    assert(s->layers > 0 && s->layers <= HN_STACK_MOST_LAYERS && rows > 0 && table.cols == s->hidden &&
           head.cols == s->hidden);
    hn_student_net n = {.shape = *s, .divergence = d, .table = table, .head = head};
    n.s = (hn_stack){.sizes = s->sizes, .workers = t, .inputs = s->hidden, .layers = s->layers,
                     .head_norms = s->head_norms, .pass = true, .most_texts_rows = 2 * rows};
    *out = hn_net_new(&n, sizeof n, lay_out, "a draft model in training", err);
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_student_net_close(hn_student_net *n) {
    hn_net_free(n);
}

/* ---- a batch ------------------------------------------------------------------------------------------------------- */

/* Sets the rows of the stack, and shares of those with a loss, which add up to 1. Returns their number. */
static int place_rows(hn_student_net *n, const hn_net_batch *b) {
    int count = 0;
    double all = 0;
    for (int text = 0; text < b->texts; text++) {
        const int first = b->start[text] + text, from = b->start[text];
        n->start[text] = first;
        n->none[text] = 0;
        n->token[first] = b->before[text];
        n->position[first] = 0;
        for (int i = from; i < b->start[text + 1]; i++) {
            const int row = i + text + 1;
            n->token[row] = b->token[i];
            n->position[row] = row - first;
            if (b->weight[i] == 0) continue;
            n->row[count] = row;
            n->dist_row[count] = b->dist_row ? b->dist_row[i] : i;
            n->weight[count++] = b->weight[i];
            all += (double)b->weight[i];
        }
    }
    n->start[b->texts] = b->start[b->texts] + b->texts;
    n->none[b->texts] = 0;
    for (int i = 0; i < count; i++) n->weight[i] = (hn_real)((double)n->weight[i] / all);
    return count;
}

static void begin(hn_student_net *n, const hn_net_batch *b) {
    const hn_stack *s = &n->s;
    n->s.texts = b->texts;
    n->s.start = n->start;
    n->s.of = n->none;
    n->s.position = n->position;
    for (int i = 0; i < n->shape.layers; i++) {
        n->s.w[i] = hn_student_layer_of(&n->shape, i, n->w);
        if (n->g) n->s.g[i] = hn_student_layer_of(&n->shape, i, n->g);
    }
    hn_embed(s->workers, n->table, n->token, hn_stack_all(s, s->at[0].z));
}

/* The loss of the rows with one; and, with gradients, dz. */
static double output(hn_student_net *n, const hn_net_batch *b, int count) {
    hn_workers *t = n->s.workers;
    const size_t bytes = (size_t)n->shape.hidden * sizeof(hn_real);
    const int norm = hn_student_parts(&n->shape) - 1;
    const hn_mat some = hn_mat_part(n->some, 0, count), normed = hn_mat_part(n->normed, 0, count);
    const hn_mat logits = hn_mat_part(n->logits, 0, count), d = hn_mat_part(n->dnormed, 0, count);
    const hn_real *gain = hn_student_part_of(&n->shape, norm, n->w).p;
    for (int i = 0; i < count; i++) memcpy(hn_mat_row(some, i), hn_mat_row(n->s.top, n->row[i]), bytes);
    hn_rms_norm(t, some, gain, (hn_real)n->shape.eps, normed, n->inverse);
    hn_linear(t, normed, n->head, NULL, logits);
    const double loss = hn_loss_divergence(t, n->divergence, logits, b->dist, n->dist_row, n->weight, logits, n->losses);
    if (!n->g) return loss;
    hn_product(t, HN_AB, logits, n->head, d, false);
    hn_rms_norm_back(t, d, some, gain, n->inverse, d, false, hn_student_part_of(&n->shape, norm, n->g).p);
    const hn_mat dz = hn_stack_all(&n->s, n->s.dz);
    memset(dz.p, 0, (size_t)dz.rows * dz.ld * sizeof *dz.p);
    for (int i = 0; i < count; i++) memcpy(hn_mat_row(dz, n->row[i]), hn_mat_row(d, i), bytes);
    return loss;
}

double hn_student_net_loss(hn_student_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient) {
    assert(b->start[0] == 0 && 2 * b->start[b->texts] <= n->s.most_texts_rows && b->dist.cols == n->head.rows);
    n->w = weights;
    n->g = gradient;
    const int count = place_rows(n, b);
    if (count == 0) return 0;
    begin(n, b);
    hn_stack_forward(&n->s);
    const double loss = output(n, b, count);
    if (gradient) hn_stack_back(&n->s);
    return loss;
}
