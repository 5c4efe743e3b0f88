/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_net.c - forward and backward of the unrolled head.
 *
 * Forwards, step by step, all that the way back reads is kept, a `kept` a step; but of the vocabulary's rows only one
 * step is there at a time: its loss is turned into the gradient of the step's output at once. Backwards, from the last
 * step to the first, the gradient of a step's keys and values is whole when the step's own turn comes, for only it and
 * later steps read them. */
#include "train/eagle3_net.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "train/layers_back.h"
#include "train/loss.h"
#include "train/product.h"

/* Of one step, [rows of the batch][..]. */
typedef struct kept {
    hn_mat in;     /* g: [hidden]; of step k > 0 the out of the step before */
    hn_mat joined; /* [2 hidden] */
    hn_mat q, k, v, dk, dv;
    hn_mat y;           /* attention's */
    hn_mat r, post;     /* [hidden]; norm_post(r) */
    hn_mat gate, up, s; /* [ffn] */
    hn_mat out, dout;
    hn_real *log_sums; /* [heads] */
    hn_real *inverse_input, *inverse_hidden, *inverse_post;
    int *token;
} kept;

struct hn_eagle3_net {
    hn_team *team;
    hn_eagle3_shape shape;
    int steps, most_rows;
    double decay;
    hn_mat table;
    void *memory;
    size_t bytes;
    kept at[HN_MOST_STEPS];
    /* of one step at a time */
    hn_mat embedded, normed, dnormed, logits, dq, djoined, wide; /* wide: [ffn], then [hidden] and attention's width */
    hn_real *weight, *losses, *inverse;
    int *position;
    /* of one call */
    hn_real *w, *g;
    const hn_eagle3_batch *b;
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct room {
    char *p; /* NULL: only counted */
    size_t used;
} room;

static void *take(room *r, size_t count, size_t size) {
    void *p = r->p ? r->p + r->used : NULL;
    r->used += (count * size + 63) / 64 * 64;
    return p;
}

static hn_mat take_mat(room *r, int rows, int cols) {
    return hn_mat_of(take(r, (size_t)rows * (size_t)cols, sizeof(hn_real)), rows, cols);
}

static void lay_out_step(hn_eagle3_net *n, kept *at, room *r) {
    const hn_eagle3_shape *s = &n->shape;
    const int rows = n->most_rows, q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    at->joined = take_mat(r, rows, 2 * s->hidden);
    at->q = take_mat(r, rows, q);
    at->k = take_mat(r, rows, kv);
    at->v = take_mat(r, rows, kv);
    at->dk = take_mat(r, rows, kv);
    at->dv = take_mat(r, rows, kv);
    at->y = take_mat(r, rows, q);
    at->r = take_mat(r, rows, s->hidden);
    at->post = take_mat(r, rows, s->hidden);
    at->gate = take_mat(r, rows, s->ffn);
    at->up = take_mat(r, rows, s->ffn);
    at->s = take_mat(r, rows, s->ffn);
    at->out = take_mat(r, rows, s->hidden);
    at->dout = take_mat(r, rows, s->hidden);
    at->log_sums = take_mat(r, rows, s->heads).p;
    at->inverse_input = take_mat(r, rows, 1).p;
    at->inverse_hidden = take_mat(r, rows, 1).p;
    at->inverse_post = take_mat(r, rows, 1).p;
    at->token = take(r, (size_t)rows, sizeof *at->token);
}

static void lay_out(hn_eagle3_net *n, room *r) {
    const hn_eagle3_shape *s = &n->shape;
    const int rows = n->most_rows, q = s->heads * s->head_dim;
    n->at[0].in = take_mat(r, rows, s->hidden);
    for (int k = 0; k < n->steps; k++) {
        lay_out_step(n, &n->at[k], r);
        if (k > 0) n->at[k].in = n->at[k - 1].out;
    }
    n->embedded = take_mat(r, rows, s->hidden);
    n->normed = take_mat(r, rows, s->hidden);
    n->dnormed = take_mat(r, rows, s->hidden);
    n->logits = take_mat(r, rows, s->vocab);
    n->dq = take_mat(r, rows, q);
    n->djoined = take_mat(r, rows, 2 * s->hidden);
    n->wide = take_mat(r, rows, s->ffn > q ? s->ffn : q);
    n->weight = take_mat(r, rows, 1).p;
    n->losses = take_mat(r, rows, 1).p;
    n->inverse = take_mat(r, rows, 1).p;
    n->position = take(r, (size_t)rows, sizeof *n->position);
}

hunch_status hn_eagle3_net_open(hn_eagle3_net **out, hn_team *t, const hn_eagle3_shape *s, int steps, double decay,
                                hn_mat table, int rows, hunch_error *err) {
    assert(steps > 0 && steps <= HN_MOST_STEPS && decay > 0 && table.cols == s->hidden && rows > 0);
    hn_eagle3_net *n = hn_alloc(sizeof *n);
    if (!n) return hn_fail_memory(err, "a head in training", sizeof *n);
    *n = (hn_eagle3_net){.team = t, .shape = *s, .steps = steps, .most_rows = rows, .decay = decay, .table = table};
    room r = {0};
    lay_out(n, &r);
    n->bytes = r.used;
    n->memory = hn_pages_alloc(n->bytes);
    if (!n->memory) {
        hn_free(n);
        return hn_fail_memory(err, "a head in training", r.used);
    }
    r = (room){.p = n->memory};
    lay_out(n, &r);
    *out = n;
    return HUNCH_OK;
}

void hn_eagle3_net_close(hn_eagle3_net *n) {
    if (!n) return;
    hn_pages_free(n->memory, n->bytes);
    hn_free(n);
}

/* ---- what a batch is at a step ----------------------------------------------------------------------------------- */

static int rows_of(const hn_eagle3_net *n) {
    return n->b->start[n->b->texts];
}

/* The rows of a batch in a matrix for the most that there may be. */
static hn_mat now(const hn_eagle3_net *n, hn_mat m) {
    return hn_mat_part(m, 0, rows_of(n));
}

static hn_mat weights_of(const hn_eagle3_net *n, hn_eagle3_part part) {
    return hn_eagle3_part_of(&n->shape, part, n->w);
}

static hn_real *gain_of(const hn_eagle3_net *n, hn_eagle3_part part) {
    return weights_of(n, part).p;
}

static hn_mat gradient_of(const hn_eagle3_net *n, hn_eagle3_part part) {
    return hn_eagle3_part_of(&n->shape, part, n->g);
}

/* The tokens that rows read at step k, and the weights of their losses, which add up to 1 or are all 0. A row beyond
 * the end of its text reads some token: it has no loss, and no other row sees it. */
static void look_ahead(hn_eagle3_net *n, int k) {
    const hn_eagle3_batch *b = n->b;
    double all = 0;
    for (int text = 0; text < b->texts; text++) {
        const int end = b->start[text + 1];
        for (int i = b->start[text]; i < end; i++) {
            const bool there = i + k < end;
            n->at[k].token[i] = b->token[there ? i + k : end - 1];
            n->weight[i] = there ? b->weight[i + k] : 0;
            n->position[i] = i - b->start[text];
            all += (double)n->weight[i];
        }
    }
    for (int i = 0; all > 0 && i < rows_of(n); i++) n->weight[i] = (hn_real)((double)n->weight[i] / all);
}

static hn_attention attention_of(const hn_eagle3_net *n, int step) {
    const hn_eagle3_shape *s = &n->shape;
    hn_attention a = {.heads = s->heads,
                      .kv_heads = s->kv_heads,
                      .head_dim = s->head_dim,
                      .texts = n->b->texts,
                      .start = n->b->start,
                      .step = step,
                      .q = now(n, n->at[step].q)};
    for (int k = 0; k <= step; k++) {
        a.k[k] = now(n, n->at[k].k);
        a.v[k] = now(n, n->at[k].v);
    }
    return a;
}

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

static void forward_attention(hn_eagle3_net *n, int k) {
    hn_team *t = n->team;
    const hn_eagle3_shape *s = &n->shape;
    const hn_real eps = (hn_real)s->eps;
    kept *at = &n->at[k];
    const hn_mat in = now(n, at->in), joined = now(n, at->joined), r = now(n, at->r), embedded = now(n, n->embedded);
    const hn_mat left = hn_mat_cols(joined, 0, s->hidden), right = hn_mat_cols(joined, s->hidden, s->hidden);
    hn_embed(t, n->table, at->token, embedded);
    hn_rms_norm(t, embedded, gain_of(n, HN_EAGLE3_NORM_INPUT), eps, left, at->inverse_input);
    hn_rms_norm(t, in, gain_of(n, HN_EAGLE3_NORM_HIDDEN), eps, right, at->inverse_hidden);
    hn_linear(t, joined, weights_of(n, HN_EAGLE3_Q), NULL, now(n, at->q));
    hn_linear(t, joined, weights_of(n, HN_EAGLE3_K), NULL, now(n, at->k));
    hn_linear(t, joined, weights_of(n, HN_EAGLE3_V), NULL, now(n, at->v));
    hn_rotate(t, now(n, at->q), s->head_dim, s->theta, n->position, k);
    hn_rotate(t, now(n, at->k), s->head_dim, s->theta, n->position, k);
    const hn_attention a = attention_of(n, k);
    hn_attend(t, &a, now(n, at->y), at->log_sums);
    hn_linear(t, now(n, at->y), weights_of(n, HN_EAGLE3_O), NULL, r);
    hn_sum(t, r, s->norm_before_residual ? right : in, r);
}

static void forward_ffn(hn_eagle3_net *n, int k) {
    hn_team *t = n->team;
    kept *at = &n->at[k];
    const hn_mat r = now(n, at->r), post = now(n, at->post), gate = now(n, at->gate), up = now(n, at->up);
    hn_rms_norm(t, r, gain_of(n, HN_EAGLE3_NORM_POST), (hn_real)n->shape.eps, post, at->inverse_post);
    hn_linear(t, post, weights_of(n, HN_EAGLE3_GATE), NULL, gate);
    hn_linear(t, post, weights_of(n, HN_EAGLE3_UP), NULL, up);
    hn_swiglu(t, gate, up, now(n, at->s));
    hn_linear(t, now(n, at->s), weights_of(n, HN_EAGLE3_DOWN), NULL, now(n, at->out));
    hn_sum(t, now(n, at->out), r, now(n, at->out));
}

/* The loss of step k; and, with gradients, dout of it. The last k rows have none. */
static double output(hn_eagle3_net *n, int k) {
    hn_team *t = n->team;
    kept *at = &n->at[k];
    const int rows = rows_of(n) - k;
    if (n->g) memset(at->dout.p, 0, (size_t)rows_of(n) * at->dout.ld * sizeof(hn_real));
    if (rows <= 0) return 0;
    const hn_mat out = hn_mat_part(at->out, 0, rows), normed = hn_mat_part(n->normed, 0, rows);
    const hn_mat logits = hn_mat_part(n->logits, 0, rows), head = weights_of(n, HN_EAGLE3_HEAD);
    hn_rms_norm(t, out, gain_of(n, HN_EAGLE3_NORM), (hn_real)n->shape.eps, normed, n->inverse);
    hn_linear(t, normed, head, NULL, logits);
    const double loss = hn_loss_soft(t, logits, hn_mat_part(n->b->law, k, rows), false, n->weight, logits, n->losses);
    if (!n->g) return loss;
    const hn_mat dnormed = hn_mat_part(n->dnormed, 0, rows);
    hn_linear_back(t, logits, normed, head, dnormed, false, gradient_of(n, HN_EAGLE3_HEAD), NULL);
    hn_rms_norm_back(t, dnormed, out, gain_of(n, HN_EAGLE3_NORM), n->inverse, hn_mat_part(at->dout, 0, rows), false,
                     gradient_of(n, HN_EAGLE3_NORM).p);
    return loss;
}

/* ---- backwards --------------------------------------------------------------------------------------------------- */

/* y = x wᵀ of a part of the weights. */
static void part_back(hn_eagle3_net *n, hn_eagle3_part part, hn_mat dy, hn_mat x, hn_mat dx, bool add) {
    hn_linear_back(n->team, dy, x, weights_of(n, part), dx, add, gradient_of(n, part), NULL);
}

/* at->dout becomes the gradient of r. */
static void backward_ffn(hn_eagle3_net *n, kept *at) {
    hn_team *t = n->team;
    const hn_mat dout = now(n, at->dout), gate = now(n, at->gate), up = now(n, at->up), post = now(n, at->post);
    const hn_mat ds = hn_mat_of(n->wide.p, rows_of(n), n->shape.ffn), dpost = now(n, n->dnormed);
    part_back(n, HN_EAGLE3_DOWN, dout, now(n, at->s), ds, false);
    hn_swiglu_back(t, ds, gate, up, gate, up);
    part_back(n, HN_EAGLE3_GATE, gate, post, dpost, false);
    part_back(n, HN_EAGLE3_UP, up, post, dpost, true);
    hn_rms_norm_back(t, dpost, now(n, at->r), gain_of(n, HN_EAGLE3_NORM_POST), at->inverse_post, dout, true,
                     gradient_of(n, HN_EAGLE3_NORM_POST).p);
}

/* From the gradient of r in at->dout to that of joined. */
static void backward_attention(hn_eagle3_net *n, int k) {
    hn_team *t = n->team;
    const hn_eagle3_shape *s = &n->shape;
    kept *at = &n->at[k];
    const hn_mat joined = now(n, at->joined), djoined = now(n, n->djoined), dq = now(n, n->dq), dk = now(n, at->dk);
    const hn_mat dy = hn_mat_of(n->wide.p, rows_of(n), at->y.cols);
    part_back(n, HN_EAGLE3_O, now(n, at->dout), now(n, at->y), dy, false);
    const hn_attention a = attention_of(n, k);
    hn_attention_gradients d = {.q = dq};
    for (int i = 0; i <= k; i++) {
        d.k[i] = now(n, n->at[i].dk);
        d.v[i] = now(n, n->at[i].dv);
    }
    hn_attend_back(t, &a, now(n, at->y), at->log_sums, dy, &d);
    hn_rotate_back(t, dq, s->head_dim, s->theta, n->position, k);
    hn_rotate_back(t, dk, s->head_dim, s->theta, n->position, k);
    part_back(n, HN_EAGLE3_Q, dq, joined, djoined, false);
    part_back(n, HN_EAGLE3_K, dk, joined, djoined, true);
    part_back(n, HN_EAGLE3_V, now(n, at->dv), joined, djoined, true);
}

/* From the gradients of joined and r to those of both norms, and to what step k read: the output of the step before,
 * fc. */
static void backward_inputs(hn_eagle3_net *n, int k) {
    hn_team *t = n->team;
    const hn_eagle3_shape *s = &n->shape;
    kept *at = &n->at[k];
    const hn_mat djoined = now(n, n->djoined), dr = now(n, at->dout), in = now(n, at->in),
                 embedded = now(n, n->embedded);
    const hn_mat left = hn_mat_cols(djoined, 0, s->hidden), right = hn_mat_cols(djoined, s->hidden, s->hidden);
    hn_real *dgain = gradient_of(n, HN_EAGLE3_NORM_HIDDEN).p;
    hn_embed(t, n->table, at->token, embedded);
    hn_rms_norm_back(t, left, embedded, gain_of(n, HN_EAGLE3_NORM_INPUT), at->inverse_input, (hn_mat){0}, false,
                     gradient_of(n, HN_EAGLE3_NORM_INPUT).p);
    if (s->norm_before_residual) hn_sum(t, right, dr, right);
    hn_rms_norm_back(t, right, in, gain_of(n, HN_EAGLE3_NORM_HIDDEN), at->inverse_hidden, dr, !s->norm_before_residual,
                     dgain);
    if (k > 0)
        hn_sum(t, now(n, n->at[k - 1].dout), dr, now(n, n->at[k - 1].dout));
    else
        hn_linear_back(t, dr, now(n, n->b->taps), weights_of(n, HN_EAGLE3_FC), (hn_mat){0}, false,
                       gradient_of(n, HN_EAGLE3_FC), NULL);
}

static void zero_keys(hn_eagle3_net *n, kept *at) {
    const size_t bytes = (size_t)rows_of(n) * at->dk.ld * sizeof(hn_real);
    memset(at->dk.p, 0, bytes);
    memset(at->dv.p, 0, bytes);
}

double hn_eagle3_net_loss(hn_eagle3_net *n, hn_real *weights, const hn_eagle3_batch *b, hn_real *gradient,
                          double *losses) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->most_rows && b->law.cols == n->shape.vocab);
    n->w = weights;
    n->g = gradient;
    n->b = b;
    hn_linear(n->team, now(n, b->taps), weights_of(n, HN_EAGLE3_FC), NULL, now(n, n->at[0].in));
    double sum = 0, share = 1;
    for (int k = 0; k < n->steps; k++, share *= n->decay) {
        look_ahead(n, k);
        forward_attention(n, k);
        forward_ffn(n, k);
        for (int i = 0; i < rows_of(n); i++) n->weight[i] *= (hn_real)share;
        const double loss = output(n, k);
        losses[k] = loss / share;
        sum += loss;
    }
    for (int k = 0; gradient && k < n->steps; k++) zero_keys(n, &n->at[k]);
    for (int k = n->steps - 1; gradient && k >= 0; k--) {
        backward_ffn(n, &n->at[k]);
        backward_attention(n, k);
        backward_inputs(n, k);
    }
    return sum;
}
