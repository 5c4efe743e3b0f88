/* SPDX-License-Identifier: Apache-2.0 */
/* learn_meta.c - training of the further heads of Meta's multi-token prediction (learn_kind.h): a layer for each
 * position after the target's trunk, which is all but its last layer; that is the first head. They start as copies of
 * that layer if their folder can hold such a layer, draft with the target's output matrix, and learn the distribution of the
 * chosen tokens among themselves. The folder has Meta's names; their loaders need the trunk in the same file, so no
 * other program reads it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/learn/learn_kind.h"
#include "train/learn/learn_student_file.h"
#include "train/nets/meta_net.h"

typedef struct meta {
    hn_learn_setting s;
    hn_meta_shape shape;
    hn_student last; /* its second layer is the target's last; empty if that is of another kind */
    hn_meta_net *net;
} meta;

static void meta_usual(hn_learn_options *o) {
    o->decay = 1; /* as published */
}

static void meta_close(void *head) {
    meta *e = head;
    if (e) {
        hn_meta_net_close(e->net);
        hn_student_free(&e->last);
    }
    hn_free(e);
}

/* The folder supports only heads that together have the width of the state, without norms. */
static hunch_status read_last(meta *e, hunch_error *err) {
    const hn_learn_setting *s = &e->s;
    const hn_layer_desc *l = &s->target->layer[s->target->layers - 1];
    const bool alike = l->heads * l->head_dim == s->target->hidden && !l->qk_norm && s->target->layers > 1;
    const hunch_status st = alike ? hn_student_read(&e->last, s->path, 2, s->target->vocab, s->ids, s->o->vocab, err) : HUNCH_REFUSED;
    return st == HUNCH_REFUSED ? HUNCH_OK : st;
}

static hunch_status check(const hn_learn_setting *s, hunch_error *err) {
    const hn_arch *a = s->target;
    const int heads = a->layer[0].heads;
    if (s->taps[s->n_taps - 1] != a->layers - 1)
        return hn_fail(err, HUNCH_REFUSED, "features of state %d: heads of kind meta-mtp read the state entering the "
                                           "last layer, %d",
                       s->taps[s->n_taps - 1], a->layers - 1);
    if (a->hidden % (2 * heads))
        return hn_fail(err, HUNCH_REFUSED,
                       "a model %d wide with %d heads: expected heads of an even width, which meta-mtp needs",
                       a->hidden, heads);
    return HUNCH_OK;
}

static hunch_status meta_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    const hn_arch *a = s->target;
    *out = NULL;
    hunch_status st = check(s, err);
    if (st) return st;
    meta *e = hn_zalloc(1, sizeof *e);
    if (!e) return hn_fail_memory(err, "a head in training", sizeof *e);
    e->s = *s;
    st = read_last(e, err);
    e->shape = (hn_meta_shape){.sizes = hn_learn_sizes(s), .positions = s->o->unroll};
    e->shape.head_dim = a->hidden / e->shape.heads;
    if (e->last.begin) e->shape.theta = e->last.shape.theta;
    const hn_mat head = hn_mat_of(s->rows->output, s->o->vocab, a->hidden);
    if (!st) st = hn_meta_net_open(&e->net, s->workers, &e->shape, s->o->decay, head, s->o->rows, err);
    if (st)
        meta_close(e);
    else
        *out = e;
    return st;
}

static size_t meta_count(const void *head) {
    return hn_meta_count(&((const meta *)head)->shape);
}

static int meta_parts(const void *head) {
    return hn_meta_parts(&((const meta *)head)->shape);
}

static hn_mat meta_part(const void *head, int part, hn_real *vector) {
    return hn_meta_part_of(&((const meta *)head)->shape, part, vector);
}

static void meta_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    hn_meta_part_name(&((const meta *)head)->shape, part, out);
}

static bool is_norm(const meta *e, int part) {
    return part == hn_meta_parts(&e->shape) - 1;
}

static int meta_turned(const void *head, int part) {
    const meta *e = head;
    const int of_layer = part % HN_META_LAYER_PARTS;
    return !is_norm(e, part) && (of_layer == HN_META_Q || of_layer == HN_META_K) ? e->shape.head_dim : 0;
}

/* One pass makes all drafts. */
static size_t meta_read(const void *head) {
    return meta_count(head) / (size_t)((const meta *)head)->shape.positions;
}

/* The part `of_layer` of the target's last layer, if it has the same shape; else no matrix. */
static hn_mat of_last(const meta *e, int of_layer, hn_mat like) {
    const hn_student *l = &e->last;
    if (!l->begin) return (hn_mat){0};
    const hn_stack_layer s = hn_student_layer_of(&l->shape, 1, l->begin);
    const hn_mat all[HN_META_LAYER_PARTS] = {s.input, s.q, s.k, s.v, s.o, s.post, s.gate, s.up, s.down};
    const hn_mat m = all[of_layer];
    return m.rows == like.rows && m.cols == like.cols ? m : (hn_mat){0};
}

/* The last layer's matrices, else random ones, and norms of 1; the final norm is the target's. */
static void meta_begin(const void *head, hn_real *w) {
    const meta *e = head;
    uint64_t x = e->s.o->seed + 1;
    for (int part = 0; part < meta_parts(e); part++) {
        const int of_layer = part % HN_META_LAYER_PARTS;
        const hn_mat m = meta_part(e, part, w), from = is_norm(e, part) ? (hn_mat){0} : of_last(e, of_layer, m);
        const bool ends = of_layer == HN_META_O || of_layer == HN_META_DOWN;
        if (!from.p && m.rows > 1) hn_learn_random(m, (ends ? 0.2 : 1) / sqrt(m.cols), &x);
        for (int k = 0; !from.p && m.rows == 1 && k < m.cols; k++) m.p[k] = is_norm(e, part) ? (hn_real)e->s.rows->norm[k] : 1;
        for (int i = 0; i < from.rows; i++) memcpy(hn_mat_row(m, i), hn_mat_row(from, i), (size_t)m.cols * sizeof *m.p);
    }
}

static double meta_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    const int hidden = ((const meta *)head)->shape.hidden;
    hn_net_batch own = *b;
    own.state = hn_mat_cols(b->state, b->state.cols - hidden, hidden);
    return hn_meta_net_loss(((meta *)head)->net, weights, &own, gradient, losses);
}

static json_t *meta_config(const void *head) {
    const meta *e = head;
    const hn_meta_shape *s = &e->shape;
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:i}", "dim", s->hidden, "n_layers",
                     e->s.target->layers + s->positions, "n_heads", s->heads, "n_kv_heads", s->kv_heads,
                     "n_future_tokens", s->positions + 1, "norm_eps", s->eps, "rope_theta", s->theta, "vocab_size",
                     e->s.target->vocab);
}

const hn_learn_kind hn_learn_meta_mtp = {.name = "meta-mtp",
                                         .reads_layers = true,
                                         .reads_trunk = true,
                                         .usual = meta_usual,
                                         .open = meta_open,
                                         .close = meta_close,
                                         .count = meta_count,
                                         .parts = meta_parts,
                                         .part = meta_part,
                                         .part_name = meta_part_name,
                                         .turned = meta_turned,
                                         .read = meta_read,
                                         .begin = meta_begin,
                                         .loss = meta_loss,
                                         .config = meta_config};
