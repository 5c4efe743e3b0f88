/* SPDX-License-Identifier: Apache-2.0 */
/* pass_markov.c - the stage after DSpark's block: a draft's logits are those of its position in the block plus a bias
 * from the token before it, which is known when the draft before it was chosen.
 *
 *   e = W1[token before]
 *   vanilla   logits += W2 e
 *   gated     logits += W2 (sigmoid(G (h | e) + g) * e)              h: the position's state after the last norm
 *   rnn       a, c, o = J (s | e | h) + b;  s = sigmoid(a) * s + (1 - sigmoid(a)) * tanh(c);  logits += W2 tanh(o)
 *   confidence = sigmoid(w (h | e) + b), the probability that the draft is accepted; in some heads from h only
 */
#include <math.h>
#include <stddef.h>

#include "model/pass_places.h"

typedef struct markov {
    hn_places places;
    hn_matrix e, joint, mix, state, own, base, logits, n_certain;
    hn_act joint_in, e_in;
    hn_top best;
} markov;

static markov *markov_of(const hn_runner *r) {
    return (markov *)r->places;
}

static void list(const hn_runner *r, hn_buf_room *room) {
    const hn_arch *a = &r->m->arch;
    const int rank = a->draft_head.output.markov.rank, joint = a->hidden + 2 * rank;
    markov *k = markov_of(r);
    k->e = hn_buf_room_matrix(room, HN_MAX_ROWS, rank);
    k->own = hn_buf_room_matrix(room, HN_MAX_ROWS, rank);
    k->joint = hn_buf_room_matrix(room, HN_MAX_ROWS, joint);
    k->mix = hn_buf_room_matrix(room, HN_MAX_ROWS, 3 * rank);
    k->n_certain = hn_buf_room_results(room, HN_MAX_ROWS, 1);
    k->state = hn_buf_room_matrix(room, k->places.states, rank);
    k->base = hn_buf_room_matrix(room, HN_MAX_ROWS, a->vocab);
    k->logits = hn_buf_room_results(room, HN_MAX_ROWS, a->vocab);
    k->joint_in = hn_buf_room_act(room, HN_MAX_ROWS, joint);
    k->e_in = hn_buf_room_act(room, HN_MAX_ROWS, rank);
    k->best = hn_place_top(r, room, a->vocab);
    k->best.bias = k->base.at;
    k->best.ld_bias = k->base.ld;
    k->best.map = r->m->head.ids;
}

/* ---- the products ------------------------------------------------------------------------------------------------------- */

/* y = W (left | right): the product with the first `in` numbers of the joint rows. */
static void joint_product(const hn_exec *ex, const markov *k, const hn_weight *w, hn_matrix y) {
    hn_place_product(ex, hn_place_count(&k->places), hn_columns(k->joint, 0, w->in), k->joint_in, w, y);
}

/* h | e, and the confidence and the gate computed from it. */
static void with_state(const hn_exec *ex, const hn_runner *r) {
    const markov *k = markov_of(r);
    const hn_head *h = &r->m->head;
    const hn_output_stage *d = &r->m->arch.draft_head.output;
    const hn_ops *o = ex->ops;
    const hn_count n = hn_place_count(&k->places);
    const hn_buf none = {NULL, 0}, each = r->buf.each;
    const int hidden = r->m->arch.hidden, rank = d->markov.rank;
    const hn_matrix gate = hn_columns(k->mix, 0, rank);
    const bool gated = d->markov.kind == HN_MARKOV_GATED, confident = d->markov.confidence != HN_CONFIDENCE_NONE;
    if (!confident && !gated) return;
    o->gather(ex, n, hn_place_at(&k->places, offsetof(hn_place_image, place)), r->out.norm, none,
              hn_columns(k->joint, 0, hidden));
    o->gather(ex, n, each, k->e, none, hn_columns(k->joint, hidden, rank));
    if (confident) {
        joint_product(ex, k, &h->confidence, k->n_certain);
        o->add_bias(ex, n, k->n_certain, h->confidence_bias);
    }
    if (!gated) return;
    joint_product(ex, k, &h->markov_mix, gate);
    o->apply(ex, n, HN_SIGMOID, HN_INTO_TIMES, gate, h->markov_bias, k->e);
}

/* Replaces e by tanh(o), and updates the state. */
static void recurrent(const hn_exec *ex, const hn_runner *r) {
    const markov *k = markov_of(r);
    const hn_head *h = &r->m->head;
    const hn_ops *o = ex->ops;
    const hn_count n = hn_place_count(&k->places);
    const hn_buf none = {NULL, 0}, each = r->buf.each, bias = h->markov_bias;
    const int rank = r->m->arch.draft_head.output.markov.rank;
    const size_t part = sizeof(float) * (size_t)rank;
    const hn_matrix a = hn_columns(k->mix, 0, rank), c = hn_columns(k->mix, rank, rank), out = hn_columns(k->mix, 2 * rank, rank);
    o->gather(ex, n, hn_place_at(&k->places, offsetof(hn_place_image, from)), k->state, none, k->own);
    o->gather(ex, n, each, k->own, none, hn_columns(k->joint, 0, rank));
    o->gather(ex, n, each, k->e, none, hn_columns(k->joint, rank, rank));
    o->gather(ex, n, hn_place_at(&k->places, offsetof(hn_place_image, place)), r->out.norm, none,
              hn_columns(k->joint, 2 * rank, r->m->arch.hidden));
    joint_product(ex, k, &h->markov_mix, k->mix);
    o->apply(ex, n, HN_SIGMOID, HN_INTO_SET, a, bias, a);
    o->apply(ex, n, HN_TANH, HN_INTO_SET, c, hn_at(bias, part), c);
    o->apply(ex, n, HN_TANH, HN_INTO_SET, out, hn_at(bias, 2 * part), k->e);
    o->apply(ex, n, HN_SAME, HN_INTO_TIMES, a, none, k->own); /* a s */
    o->apply(ex, n, HN_SAME, HN_INTO_ADD, c, none, k->own);   /* + c */
    o->apply(ex, n, HN_SAME, HN_INTO_TIMES, c, none, a);
    o->scale(ex, n, a, -1);
    o->apply(ex, n, HN_SAME, HN_INTO_ADD, a, none, k->own);   /* - a c */
    o->gather(ex, n, each, k->own, hn_place_at(&k->places, offsetof(hn_place_image, to)), k->state);
}

static void run(const hn_exec *ex, const hn_runner *r) {
    const markov *k = markov_of(r);
    const hn_ops *o = ex->ops;
    const hn_head *h = &r->m->head;
    const hn_count n = hn_place_count(&k->places);
    const hn_rows rows = {.n = n, .token = hn_place_at(&k->places, offsetof(hn_place_image, token))};
    const hn_act e_in = hn_act_of(k->e_in, k->e.cols, ex->backend->act_forms(ex->backend, h->markov_out.dtype));
    const hn_output_rows out = {.scale = 1, .n_written = n, .y = k->logits};
    const hn_top best = hn_runner_top(r, k->best);
    o->embed(ex, &rows, &h->markov_in, 1, k->e);
    with_state(ex, r);
    if (r->m->arch.draft_head.output.markov.kind == HN_MARKOV_RNN) recurrent(ex, r);
    o->gather(ex, n, hn_place_at(&k->places, offsetof(hn_place_image, place)), r->out.logits, (hn_buf){NULL, 0}, k->base);
    o->quantise(ex, n, k->e, e_in);
    o->linear_top(ex, n, e_in, &h->markov_out, &out, &best);
}

static hn_place_result result(const hn_runner *r, int i) {
    const markov *k = markov_of(r);
    hn_place_result p = hn_place_of(r, i, k->logits, &k->best);
    const float *certain = hn_place_read(r, k->n_certain.at, sizeof *certain, k->n_certain.ld, i);
    if (hn_head_has_confidence(&r->m->arch.draft_head)) p.confidence = 1 / (1 + exp(-(double)*certain));
    return p;
}

const hn_places_kind hn_places_markov = {.bytes = sizeof(markov), .list = list, .run = run, .result = result};
