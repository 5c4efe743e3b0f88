/* SPDX-License-Identifier: Apache-2.0 */
/* pass_markov.c - the stage after DSpark's block: a draft's logits are those of its position in the block plus a bias
 * from the token before it, which is known when the draft before it was chosen.
 *
 *   e = W1[token before]
 *   vanilla   logits += W2 e
 *   gated     logits += W2 (sigmoid(G (h | e) + g) * e)              h: the position's state after the last norm
 *   rnn       a, c, o = J (s | e | h) + b;  s = sigmoid(a) * s + (1 - sigmoid(a)) * tanh(c);  logits += W2 tanh(o)
 *   confidence = sigmoid(w (h | e) + b), the probability that the draft is accepted; in some heads from h only
 *
 * Its buffers are allocated separately from the runner's. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "model/pass_private.h"

typedef struct markov_image {
    int32_t token[HN_MAX_ROWS], place[HN_MAX_ROWS], from[HN_MAX_ROWS], to[HN_MAX_ROWS];
} markov_image;

struct hn_markov {
    hn_buf_room buffers;
    markov_image image;
    int n, states;
    hn_buf image_buf;
    hn_matrix e, joint, mix, state, own, base, logits, n_certain;
    hn_act joint_in, e_in;
    hn_top best;
};

static void list_buffers(void *runner, hn_buf_room *room) {
    const hn_runner *r = runner;
    const hn_arch *a = &r->m->arch;
    const int rank = a->draft_head.output.markov.rank, joint = a->hidden + 2 * rank;
    const size_t best = HN_MAX_ROWS * (size_t)r->out.best.k;
    hn_markov *k = r->markov;
    k->image_buf = hn_buf_room_take(room, sizeof k->image);
    k->e = hn_buf_room_matrix(room, HN_MAX_ROWS, rank);
    k->own = hn_buf_room_matrix(room, HN_MAX_ROWS, rank);
    k->joint = hn_buf_room_matrix(room, HN_MAX_ROWS, joint);
    k->mix = hn_buf_room_matrix(room, HN_MAX_ROWS, 3 * rank);
    k->n_certain = hn_buf_room_matrix(room, HN_MAX_ROWS, 1);
    k->state = hn_buf_room_matrix(room, k->states, rank);
    k->base = hn_buf_room_matrix(room, HN_MAX_ROWS, a->vocab);
    k->logits = hn_buf_room_matrix(room, HN_MAX_ROWS, a->vocab);
    k->joint_in = hn_buf_room_act(room, HN_MAX_ROWS, joint);
    k->e_in = hn_buf_room_act(room, HN_MAX_ROWS, rank);
    k->best = (hn_top){.k = r->out.best.k,
                       .id = hn_buf_room_take(room, sizeof(int32_t) * best),
                       .value = hn_buf_room_take(room, sizeof(float) * best),
                       .bias = k->base.at,
                       .ld_bias = k->base.ld,
                       .map = r->m->head.ids,
                       .scratch = hn_buf_room_take(room, room->ops->top_scratch(room->ops, HN_MAX_ROWS, r->out.best.k)),
                       .sums = hn_buf_room_take(room, sizeof(float) * HN_MAX_ROWS * (size_t)hn_sum_parts(a->vocab))};
}

hunch_status hn_markov_open(hn_runner *r, int states, hunch_error *err) {
    hn_markov *k = r->markov = hn_zalloc(1, sizeof *k);
    if (!k) return hn_fail_memory(err, "a Markov head", sizeof *k);
    k->states = states + 1; /* the first is zero, for the begin of a block */
    return hn_buf_room_open(&k->buffers, &r->m->ops, list_buffers, r, err);
}

void hn_markov_close(hn_runner *r) {
    if (r->markov) hn_buf_room_close(&r->markov->buffers);
    hn_free(r->markov);
    r->markov = NULL;
}

/* ---- the products ------------------------------------------------------------------------------------------------------- */

static hn_buf image_at(const hn_markov *k, size_t offset) {
    return hn_at(k->image_buf, offset);
}

/* y = W (left | right): the product with the first `in` numbers of the joint rows. */
static void joint_product(const hn_exec *ex, const hn_markov *k, const hn_weight *w, hn_matrix y) {
    const hn_act in = hn_act_of(k->joint_in, w->in, ex->ops->act_forms(ex->ops, w->dtype));
    const hn_linear_out out = {w, y};
    ex->ops->quantise(ex, k->n, hn_columns(k->joint, 0, w->in), in);
    ex->ops->linear(ex, k->n, in, &out, 1, false);
}

/* h | e, and the confidence and the gate computed from it. */
static void with_state(const hn_exec *ex, const hn_runner *r) {
    const hn_markov *k = r->markov;
    const hn_head *h = &r->m->head;
    const hn_output_stage *d = &r->m->arch.draft_head.output;
    const hn_ops *o = ex->ops;
    const hn_buf none = {NULL, 0}, each = r->buf.each;
    const int hidden = r->m->arch.hidden, rank = d->markov.rank;
    const hn_matrix gate = hn_columns(k->mix, 0, rank);
    const bool gated = d->markov.kind == HN_MARKOV_GATED, confident = d->markov.confidence != HN_CONFIDENCE_NONE;
    if (!confident && !gated) return;
    o->gather(ex, k->n, image_at(k, offsetof(markov_image, place)), r->out.norm, none, hn_columns(k->joint, 0, hidden));
    o->gather(ex, k->n, each, k->e, none, hn_columns(k->joint, hidden, rank));
    if (confident) {
        joint_product(ex, k, &h->confidence, k->n_certain);
        o->add_bias(ex, k->n, k->n_certain, h->confidence_bias);
    }
    if (!gated) return;
    joint_product(ex, k, &h->markov_mix, gate);
    o->apply(ex, k->n, HN_SIGMOID, HN_INTO_TIMES, gate, h->markov_bias, k->e);
}

/* Replaces e by tanh(o), and updates the state. */
static void recurrent(const hn_exec *ex, const hn_runner *r) {
    const hn_markov *k = r->markov;
    const hn_head *h = &r->m->head;
    const hn_ops *o = ex->ops;
    const hn_buf none = {NULL, 0}, each = r->buf.each, bias = h->markov_bias;
    const int rank = r->m->arch.draft_head.output.markov.rank;
    const size_t part = sizeof(float) * (size_t)rank;
    const hn_matrix a = hn_columns(k->mix, 0, rank), c = hn_columns(k->mix, rank, rank), out = hn_columns(k->mix, 2 * rank, rank);
    o->gather(ex, k->n, image_at(k, offsetof(markov_image, from)), k->state, none, k->own);
    o->gather(ex, k->n, each, k->own, none, hn_columns(k->joint, 0, rank));
    o->gather(ex, k->n, each, k->e, none, hn_columns(k->joint, rank, rank));
    o->gather(ex, k->n, image_at(k, offsetof(markov_image, place)), r->out.norm, none,
              hn_columns(k->joint, 2 * rank, r->m->arch.hidden));
    joint_product(ex, k, &h->markov_mix, k->mix);
    o->apply(ex, k->n, HN_SIGMOID, HN_INTO_SET, a, bias, a);
    o->apply(ex, k->n, HN_TANH, HN_INTO_SET, c, hn_at(bias, part), c);
    o->apply(ex, k->n, HN_TANH, HN_INTO_SET, out, hn_at(bias, 2 * part), k->e);
    o->apply(ex, k->n, HN_SAME, HN_INTO_TIMES, a, none, k->own); /* a s */
    o->apply(ex, k->n, HN_SAME, HN_INTO_ADD, c, none, k->own);   /* + c */
    o->apply(ex, k->n, HN_SAME, HN_INTO_TIMES, c, none, a);
    o->scale(ex, k->n, a, -1);
    o->apply(ex, k->n, HN_SAME, HN_INTO_ADD, a, none, k->own);   /* - a c */
    o->gather(ex, k->n, each, k->own, image_at(k, offsetof(markov_image, to)), k->state);
}

static void forward(void *arg, int rank, int ranks) {
    const hn_runner *r = arg;
    const hn_markov *k = r->markov;
    const hn_exec ex = {r->ops, rank, ranks};
    const hn_ops *o = r->ops;
    const hn_head *h = &r->m->head;
    const hn_rows rows = {.n = k->n, .token = image_at(k, offsetof(markov_image, token))};
    const hn_act e_in = hn_act_of(k->e_in, k->e.cols, o->act_forms(o, h->markov_out.dtype));
    const hn_output_rows out = {.scale = 1, .n_written = k->n, .y = k->logits};
    o->embed(&ex, &rows, &h->markov_in, 1, k->e);
    with_state(&ex, r);
    if (r->m->arch.draft_head.output.markov.kind == HN_MARKOV_RNN) recurrent(&ex, r);
    o->gather(&ex, k->n, image_at(k, offsetof(markov_image, place)), r->out.logits, (hn_buf){NULL, 0}, k->base);
    o->quantise(&ex, k->n, k->e, e_in);
    o->linear_top(&ex, k->n, e_in, &h->markov_out, &out, &k->best);
}

void hn_pass_markov(hn_runner *r, const hn_markov_row *rows, int n) {
    hn_markov *k = r->markov;
    const hn_ops *o = &r->m->ops;
    assert(n >= 1 && n <= HN_MAX_ROWS);
    for (int i = 0; i < n; i++) {
        assert(r->out.of_row[rows[i].place] >= 0 && rows[i].from < k->states - 1 && rows[i].to >= 0 && rows[i].to < k->states - 1);
        k->image.token[i] = rows[i].token;
        k->image.place[i] = r->out.of_row[rows[i].place];
        k->image.from[i] = rows[i].from + 1;
        k->image.to[i] = rows[i].to + 1;
    }
    k->n = n;
    o->write(o, k->image_buf, &k->image, sizeof k->image);
    hn_pool_run(o->pool, forward, r);
}

const float *hn_markov_logits(const hn_runner *r, int i) {
    const float *all = r->m->ops.view(&r->m->ops, r->markov->logits.at);
    return all + (size_t)i * (size_t)r->markov->logits.ld;
}

const int32_t *hn_markov_best(const hn_runner *r, int i, const float **value) {
    const hn_ops *o = &r->m->ops;
    *value = (const float *)o->view(o, r->markov->best.value) + i * r->markov->best.k;
    return (const int32_t *)o->view(o, r->markov->best.id) + i * r->markov->best.k;
}

double hn_markov_sum(const hn_runner *r, int i) {
    const int parts = hn_sum_parts(r->m->arch.vocab);
    const float *sums = r->m->ops.view(&r->m->ops, r->markov->best.sums);
    double sum = 0;
    for (int p = 0; p < parts; p++) sum += (double)sums[i * parts + p];
    return sum > 1 ? sum : 1;
}

double hn_markov_confidence(const hn_runner *r, int i) {
    const float *n_certain = r->m->ops.view(&r->m->ops, r->markov->n_certain.at);
    return hn_head_has_confidence(&r->m->arch.draft_head) ? 1 / (1 + exp(-(double)n_certain[i * r->markov->n_certain.ld])) : NAN;
}
