/* SPDX-License-Identifier: Apache-2.0 */
/* block_net.c - heads of blocks around the stack of layers: the input of its rows, and the loss of all drafts. At a
 * time there are only as many rows of logits as a batch has rows of texts. */
#include "train/nets/block_net.h"

#include <assert.h>
#include <string.h>

#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/math/product/product.h"

/* A draft that is learned. */
typedef struct draft {
    int row, dist, k, before; /* row of the stack; row of the distributions; number of the draft in its row; the text's token before it */
    int place;                /* with a prefix: of that token, -1: it has no bias */
    double weight;
} draft;

struct hn_block_net {
    hn_room room;
    hn_stack s;
    hn_block_shape shape;
    hn_block_plan plan;
    hn_prefix_net prefix;
    hn_mat table, head;
    int *token, *position;  /* of all rows */
    hn_mat fused, embedded; /* DFLASH: fc of the taps; others: embeddings */
    hn_real *inverse_token, *inverse_state;
    hn_mat mask, dmask; /* one row: fc of PEAGLE's mask; a sum over masks */
    draft *draft;
    int drafts;
    /* of some drafts at a time */
    hn_mat some, once, normed, dnormed, logits, markov, dmarkov, biased; /* biased: logits with the bias of a prefix */
    hn_real *inverse, *inverse_twice, *weight, *losses, *base_weight, *base_losses;
    int *dist_row, *before, *place;
    /* of one call */
    hn_real *w, *g;
    const hn_net_batch *b;
};

static bool is_dflash(const hn_block_net *n) {
    return n->shape.kind == HN_BLOCK_DFLASH;
}

/* ---- open -------------------------------------------------------------------------------------------------------- */

static void lay_out_plan(hn_block_plan *p, hn_room *r) {
    const size_t rows = (size_t)p->most_rows;
    p->of = hn_room_take(r, rows, sizeof *p->of);
    p->root = hn_room_take(r, rows, sizeof *p->root);
    p->first = hn_room_take(r, rows + 1, sizeof *p->first);
    p->chosen = hn_room_take(r, rows, sizeof *p->chosen);
    p->depth = hn_room_take(r, rows, sizeof *p->depth);
}

static void lay_out(void *net, hn_room *r) {
    hn_block_net *n = net;
    const int texts = n->s.most_texts_rows, rows = texts + n->s.most_blocks_rows, hidden = n->shape.hidden;
    hn_stack_lay_out(&n->s, r);
    lay_out_plan(&n->plan, r);
    n->token = hn_room_take(r, (size_t)rows, sizeof *n->token);
    n->position = hn_room_take(r, (size_t)rows, sizeof *n->position);
    n->fused = hn_room_mat(r, is_dflash(n) ? texts : 0, hidden);
    n->embedded = hn_room_mat(r, is_dflash(n) ? 0 : rows, hidden);
    n->inverse_token = hn_room_mat(r, rows, 1).p;
    n->inverse_state = hn_room_mat(r, rows, 1).p;
    n->mask = hn_room_mat(r, 1, hidden);
    n->dmask = hn_room_mat(r, 1, 2 * hidden);
    n->draft = hn_room_take(r, (size_t)rows, sizeof *n->draft);
    n->some = hn_room_mat(r, texts, hidden);
    n->once = hn_room_mat(r, texts, hidden);
    n->normed = hn_room_mat(r, texts, hidden);
    n->dnormed = hn_room_mat(r, texts, hidden);
    n->logits = hn_room_mat(r, texts, n->shape.vocab);
    n->markov = hn_room_mat(r, texts, n->shape.markov_rank);
    n->dmarkov = hn_room_mat(r, texts, n->shape.markov_rank);
    n->before = hn_room_take(r, (size_t)texts, sizeof *n->before);
    n->inverse = hn_room_mat(r, texts, 1).p;
    n->inverse_twice = hn_room_mat(r, texts, 1).p;
    n->weight = hn_room_mat(r, texts, 1).p;
    n->losses = hn_room_mat(r, texts, 1).p;
    n->dist_row = hn_room_take(r, (size_t)texts, sizeof *n->dist_row);
    n->place = hn_room_take(r, (size_t)texts, sizeof *n->place);
    n->biased = hn_room_mat(r, n->shape.prefix.state ? texts : 0, n->shape.vocab);
    n->base_weight = hn_room_mat(r, texts, 1).p;
    n->base_losses = hn_room_mat(r, texts, 1).p;
    hn_prefix_lay_out(&n->prefix, r);
}

static hn_stack stack_of(const hn_block_shape *s, hn_workers *t, int rows, const hn_block_plan *plan) {
    const bool dflash = s->kind == HN_BLOCK_DFLASH;
    return (hn_stack){.sizes = s->sizes, .workers = t, .inputs = dflash ? s->hidden : 2 * s->hidden, .layers = s->layers,
                      .head_norms = dflash, .pass = !dflash, .given = !dflash, .ahead = dflash && !s->causal,
                      .most_texts_rows = rows, .most_blocks_rows = hn_block_plan_most(plan)};
}

static int block_of(const hn_block_shape *s) {
    return s->kind == HN_BLOCK_PEAGLE ? 0 : s->kind == HN_BLOCK_DART ? s->drafts - 1 : s->drafts + 1;
}

hunch_status hn_block_net_open(hn_block_net **out, hn_workers *t, const hn_block_shape *s, hn_mat table, hn_mat head,
                               int rows, hunch_error *err) {
    assert(s->layers > 0 && s->layers <= HN_STACK_MOST_LAYERS && s->drafts > 1 && s->drafts < HN_MOST_BLOCK);
    assert(rows > 0 && table.cols == s->hidden && (!s->borrowed || head.rows == s->vocab) &&
           s->mask_token < table.rows && s->decay > 0);
    hn_block_net n = {.shape = *s, .table = table, .head = head};
    n.plan = (hn_block_plan){
        .most_rows = rows, .drafts = s->drafts, .block = block_of(s), .keep = s->keep, .least = s->least};
    n.s = stack_of(s, t, rows, &n.plan);
    n.prefix = (hn_prefix_net){.workers = t, .shape = s->prefix, .hidden = s->hidden, .places = s->drafts, .most_drafts = rows};
    n.prefix.most_blocks = hn_block_plan_most(&n.plan) / (s->drafts + 1);
    *out = hn_net_new(&n, sizeof n, lay_out, "a head in training", err);
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_block_net_close(hn_block_net *n) {
    hn_net_free(n);
}

/* ---- weights and rows -------------------------------------------------------------------------------------------- */

static hn_mat weights_of(const hn_block_net *n, int part) {
    return hn_block_part_of(&n->shape, part, n->w);
}

static hn_mat head_of(const hn_block_net *n) {
    return n->shape.borrowed ? n->head : weights_of(n, HN_BLOCK_HEAD);
}

static hn_mat gradient_of(const hn_block_net *n, int part) {
    return hn_block_part_of(&n->shape, part, n->g);
}

static hn_stack_layer layer_of(const hn_block_shape *s, int layer, hn_real *vector) {
    hn_mat m[HN_BLOCK_LAYER_PARTS];
    for (int i = 0; i < HN_BLOCK_LAYER_PARTS; i++)
        m[i] = hn_block_part_of(s, hn_block_layer_part(layer, (hn_block_part)i), vector);
    return (hn_stack_layer){.input = m[HN_BLOCK_INPUT],
                            .q = m[HN_BLOCK_Q],
                            .k = m[HN_BLOCK_K],
                            .v = m[HN_BLOCK_V],
                            .o = m[HN_BLOCK_O],
                            .q_norm = m[HN_BLOCK_Q_NORM],
                            .k_norm = m[HN_BLOCK_K_NORM],
                            .post = m[HN_BLOCK_POST],
                            .gate = m[HN_BLOCK_GATE],
                            .up = m[HN_BLOCK_UP],
                            .down = m[HN_BLOCK_DOWN]};
}

static hn_prefix_weights prefix_of(const hn_block_shape *s, hn_real *vector) {
    return (hn_prefix_weights){.gru_input = hn_block_part_of(s, HN_BLOCK_GRU_INPUT, vector),
                               .gru_state = hn_block_part_of(s, HN_BLOCK_GRU_STATE, vector),
                               .bias_in = hn_block_part_of(s, HN_BLOCK_BIAS_IN, vector),
                               .bias_out = hn_block_part_of(s, HN_BLOCK_BIAS_OUT, vector)};
}

static int text_rows(const hn_block_net *n) {
    return hn_stack_text_rows(&n->s);
}

static hn_mat texts_of(const hn_block_net *n, hn_mat m) {
    return hn_mat_part(m, 0, text_rows(n));
}

static hn_mat masks_of(const hn_block_net *n, hn_mat m) {
    return hn_mat_part(m, text_rows(n), n->plan.rows);
}

/* The columns of the embedding and of the state in a matrix with 2 hidden columns. */
static hn_mat left_of(const hn_block_net *n, hn_mat x) {
    return hn_mat_cols(x, 0, n->shape.hidden);
}

static hn_mat right_of(const hn_block_net *n, hn_mat x) {
    return hn_mat_cols(x, n->shape.hidden, n->shape.hidden);
}

static void add_draft(hn_block_net *n, int row, int at, int k, int place) {
    if (!(n->b->weight[at] > 0)) return;
    n->draft[n->drafts++] = (draft){row, n->b->dist_row ? n->b->dist_row[at] : at, k, n->b->token[at], place, (double)n->b->weight[at]};
}

/* The tokens that a block's drafts follow; behind the end of the text any, since there is no loss. */
static void place_prefix(hn_block_net *n, int block, int root, int end) {
    for (int k = 0; n->shape.prefix.state && k < n->shape.drafts; k++)
        n->prefix.token[hn_prefix_place(&n->prefix, block, k)] = n->b->token[root + k < end ? root + k : end - 1];
}

/* How many drafts a block's row is behind its number. */
static int rows_ahead(const hn_block_net *n) {
    return is_dflash(n) ? n->shape.prefix.shifted - 1 : 1;
}

/* Positions and tokens of the rows of the blocks after a text's rows, and their drafts. */
static void place_blocks(hn_block_net *n, int text) {
    const int start = n->b->start[text], end = n->b->start[text + 1], ahead = rows_ahead(n);
    for (int i = n->plan.first[text]; i < n->plan.first[text + 1]; i++) {
        const hn_text_block *block = &n->plan.of[i];
        const int root = n->plan.root[i];
        place_prefix(n, i, root, end);
        for (int j = 0; j < block->rows; j++) {
            const int row = text_rows(n) + block->first + j, k = j + ahead;
            n->position[row] = root - start + 1 + j;
            n->token[row] = is_dflash(n) && j == 0 ? n->b->token[root] : n->shape.mask_token;
            if (k >= 0 && k < n->shape.drafts && root + k < end)
                add_draft(n, row, root + k, k, k < n->shape.prefix.plain ? -1 : hn_prefix_place(&n->prefix, i, k));
        }
    }
}

static void place_rows(hn_block_net *n) {
    n->drafts = 0;
    n->prefix.blocks = n->plan.blocks;
    for (int text = 0; text < n->b->texts; text++) {
        for (int i = n->b->start[text]; i < n->b->start[text + 1]; i++) {
            n->position[i] = i - n->b->start[text];
            n->token[i] = n->b->token[i];
            if (!is_dflash(n)) add_draft(n, i, i, 0, -1);
        }
        place_blocks(n, text);
    }
}

/* Weights times decay^k, as shares that add up to 1; the sum for each draft in sums [drafts], 0: none. */
static bool share_weights(hn_block_net *n, double *sums) {
    double share[HN_MOST_STEPS] = {1}, all = 0;
    for (int k = 1; k < n->shape.drafts; k++) share[k] = share[k - 1] * n->shape.decay;
    for (int k = 0; k < n->shape.drafts; k++) sums[k] = 0;
    for (int i = 0; i < n->drafts; i++) {
        draft *d = &n->draft[i];
        d->weight *= share[d->k];
        sums[d->k] += d->weight;
        all += d->weight;
    }
    for (int i = 0; i < n->drafts; i++) n->draft[i].weight /= all;
    for (int k = 0; k < n->shape.drafts; k++) sums[k] /= all > 0 ? all : 1;
    return all > 0;
}

/* ---- input of the rows ------------------------------------------------------------------------------------------ */

static void copy_rows(hn_mat to, const hn_real *row) {
    for (int i = 0; i < to.rows; i++) memcpy(hn_mat_row(to, i), row, (size_t)to.cols * sizeof *row);
}

static void begin_dflash(hn_block_net *n) {
    hn_workers *t = n->s.workers;
    const hn_mat fused = texts_of(n, n->fused);
    hn_linear(t, texts_of(n, n->b->state), weights_of(n, HN_BLOCK_FC), NULL, fused);
    hn_rms_norm(t, fused, weights_of(n, HN_BLOCK_NORM_STATE).p, (hn_real)n->shape.eps, texts_of(n, n->s.beside),
                n->inverse_state);
    hn_embed(t, n->table, n->token + text_rows(n), masks_of(n, n->s.at[0].z));
}

/* Rows with a token and taps: in DART those of texts, in PEAGLE also masks. */
static hn_mat paired(const hn_block_net *n, hn_mat m) {
    return n->shape.kind == HN_BLOCK_DART ? texts_of(n, m) : hn_stack_all(&n->s, m);
}

static int norm_token(void) {
    return hn_block_layer_part(0, HN_BLOCK_INPUT);
}

static void begin_pairs(hn_block_net *n) {
    hn_workers *t = n->s.workers;
    const hn_real eps = (hn_real)n->shape.eps;
    const hn_mat z = n->s.at[0].z, x = n->s.at[0].x, mask = weights_of(n, HN_BLOCK_MASK),
                 embedded = paired(n, n->embedded);
    hn_linear(t, texts_of(n, n->b->state), weights_of(n, HN_BLOCK_FC), NULL, texts_of(n, z));
    if (n->shape.kind == HN_BLOCK_PEAGLE) {
        hn_linear(t, mask, weights_of(n, HN_BLOCK_FC), NULL, n->mask);
        copy_rows(masks_of(n, z), n->mask.p);
    } else {
        copy_rows(masks_of(n, z), mask.p);
        copy_rows(masks_of(n, x), mask.p);
    }
    hn_embed(t, n->table, n->token, embedded);
    hn_rms_norm(t, embedded, weights_of(n, norm_token()).p, eps, left_of(n, paired(n, x)), n->inverse_token);
    hn_rms_norm(t, paired(n, z), weights_of(n, HN_BLOCK_NORM_STATE).p, eps, right_of(n, paired(n, x)),
                n->inverse_state);
}

/* sum += the rows of m. */
static void add_rows(hn_mat m, hn_real *sum) {
    for (int i = 0; i < m.rows; i++)
        for (int c = 0; c < m.cols; c++) sum[c] += hn_mat_row(m, i)[c];
}

static void end_dflash(hn_block_net *n) {
    hn_workers *t = n->s.workers;
    const hn_mat d = texts_of(n, n->s.dbeside);
    hn_rms_norm_back(t, d, texts_of(n, n->fused), weights_of(n, HN_BLOCK_NORM_STATE).p, n->inverse_state, d, false,
                     gradient_of(n, HN_BLOCK_NORM_STATE).p);
    hn_linear_back(t, d, texts_of(n, n->b->state), weights_of(n, HN_BLOCK_FC), (hn_mat){0}, false,
                   gradient_of(n, HN_BLOCK_FC), NULL);
}

static void end_pairs(hn_block_net *n) {
    hn_workers *t = n->s.workers;
    const hn_mat dx = n->s.dx, dz = n->s.dz, fc = weights_of(n, HN_BLOCK_FC), dfc = gradient_of(n, HN_BLOCK_FC);
    const hn_mat dmask = gradient_of(n, HN_BLOCK_MASK);
    hn_rms_norm_back(t, left_of(n, paired(n, dx)), paired(n, n->embedded), weights_of(n, norm_token()).p,
                     n->inverse_token, (hn_mat){0}, false, gradient_of(n, norm_token()).p);
    hn_rms_norm_back(t, right_of(n, paired(n, dx)), paired(n, n->s.at[0].z), weights_of(n, HN_BLOCK_NORM_STATE).p,
                     n->inverse_state, paired(n, dz), true, gradient_of(n, HN_BLOCK_NORM_STATE).p);
    hn_linear_back(t, texts_of(n, dz), texts_of(n, n->b->state), fc, (hn_mat){0}, false, dfc, NULL);
    if (n->shape.kind == HN_BLOCK_DART) {
        add_rows(masks_of(n, dx), dmask.p);
        add_rows(masks_of(n, dz), dmask.p);
    } else {
        const hn_mat sum = left_of(n, n->dmask);
        memset(sum.p, 0, (size_t)sum.cols * sizeof *sum.p);
        add_rows(masks_of(n, dz), sum.p);
        hn_linear_back(t, sum, weights_of(n, HN_BLOCK_MASK), fc, dmask, true, dfc, NULL);
    }
}

/* ---- drafts ------------------------------------------------------------------------------------------------------ */

/* The norm (in DART applied twice) of `count` rows of `some`. */
static void norm_some(hn_block_net *n, int count) {
    hn_workers *t = n->s.workers;
    const hn_real *gain = weights_of(n, HN_BLOCK_NORM).p, eps = (hn_real)n->shape.eps;
    const hn_mat some = hn_mat_part(n->some, 0, count), once = hn_mat_part(n->once, 0, count);
    const hn_mat normed = hn_mat_part(n->normed, 0, count);
    if (n->shape.kind == HN_BLOCK_DART) {
        hn_rms_norm(t, some, gain, eps, once, n->inverse);
        hn_rms_norm(t, once, gain, eps, normed, n->inverse_twice);
    } else
        hn_rms_norm(t, some, gain, eps, normed, n->inverse);
}

/* From the gradient of the logits to that of the rows of `some`, in dnormed. */
static void back_some(hn_block_net *n, int count) {
    hn_workers *t = n->s.workers;
    const hn_real *gain = weights_of(n, HN_BLOCK_NORM).p;
    hn_real *dgain = gradient_of(n, HN_BLOCK_NORM).p;
    const hn_mat d = hn_mat_part(n->dnormed, 0, count);
    hn_linear_back(t, hn_mat_part(n->logits, 0, count), hn_mat_part(n->normed, 0, count), head_of(n), d, false,
                   n->shape.borrowed ? (hn_mat){0} : gradient_of(n, HN_BLOCK_HEAD), NULL);
    if (n->shape.kind == HN_BLOCK_DART)
        hn_rms_norm_back(t, d, hn_mat_part(n->once, 0, count), gain, n->inverse_twice, d, false, dgain);
    if (n->shape.prefix.state) hn_prefix_bias_back(&n->prefix, n->place, hn_mat_part(n->biased, 0, count), d);
    hn_rms_norm_back(t, d, hn_mat_part(n->some, 0, count), gain, n->inverse, d, false, dgain);
}

/* Adds the Markov bias of the tokens before `count` drafts to their logits. */
static void add_markov(hn_block_net *n, int count) {
    hn_workers *t = n->s.workers;
    const hn_mat e = hn_mat_part(n->markov, 0, count);
    if (n->shape.markov_rank == 0) return;
    hn_embed(t, weights_of(n, HN_BLOCK_MARKOV_IN), n->before, e);
    hn_product(t, HN_ABT, e, weights_of(n, HN_BLOCK_MARKOV_OUT), hn_mat_part(n->logits, 0, count), true);
}

static void back_markov(hn_block_net *n, int count) {
    hn_workers *t = n->s.workers;
    const hn_mat de = hn_mat_part(n->dmarkov, 0, count);
    if (n->shape.markov_rank == 0) return;
    hn_linear_back(t, hn_mat_part(n->logits, 0, count), hn_mat_part(n->markov, 0, count), weights_of(n, HN_BLOCK_MARKOV_OUT), de, false,
                   gradient_of(n, HN_BLOCK_MARKOV_OUT), NULL);
    hn_embed_back(t, de, n->before, gradient_of(n, HN_BLOCK_MARKOV_IN));
}

/* From the logits of `count` drafts to the loss and its gradient, in their place; losses of the drafts in n->losses. */
static double loss_of_some(hn_block_net *n, int count) {
    add_markov(n, count);
    const hn_mat logits = hn_mat_part(n->logits, 0, count);
    return hn_loss_soft(n->s.workers, logits, n->b->dist, n->dist_row, false, n->weight, logits, n->losses);
}

/* The same with a prefix: in `biased` is the gradient of the logits with the bias. */
static double loss_with_prefix(hn_block_net *n, int count) {
    hn_workers *t = n->s.workers;
    const double share = n->b->base_share;
    const hn_mat logits = hn_mat_part(n->logits, 0, count), biased = hn_mat_part(n->biased, 0, count);
    for (int i = 0; i < count; i++) {
        memcpy(hn_mat_row(biased, i), hn_mat_row(logits, i), (size_t)logits.cols * sizeof *logits.p);
        n->base_weight[i] = (hn_real)share * n->weight[i];
        n->weight[i] -= n->base_weight[i];
    }
    hn_prefix_bias(&n->prefix, n->place, hn_mat_part(n->normed, 0, count), biased);
    const double loss = hn_loss_soft(t, biased, n->b->dist, n->dist_row, false, n->weight, biased, n->losses) +
                        hn_loss_soft(t, logits, n->b->dist, n->dist_row, false, n->base_weight, logits, n->base_losses);
    hn_sum(t, logits, biased, logits);
    for (int i = 0; i < count; i++) n->losses[i] = (hn_real)((1 - share) * (double)n->losses[i] + share * (double)n->base_losses[i]);
    return loss;
}

/* The loss of `count` drafts; adds to losses and, with gradients, to dz. */
static double some_drafts(hn_block_net *n, const draft *d, int count, double *losses) {
    hn_workers *t = n->s.workers;
    const size_t bytes = (size_t)n->shape.hidden * sizeof(hn_real);
    const hn_mat logits = hn_mat_part(n->logits, 0, count);
    for (int i = 0; i < count; i++) {
        memcpy(hn_mat_row(n->some, i), hn_mat_row(n->s.top, d[i].row), bytes);
        n->dist_row[i] = d[i].dist;
        n->before[i] = d[i].before;
        n->place[i] = d[i].place;
        n->weight[i] = (hn_real)d[i].weight;
    }
    norm_some(n, count);
    hn_linear(t, hn_mat_part(n->normed, 0, count), head_of(n), NULL, logits);
    const double loss = n->shape.prefix.state ? loss_with_prefix(n, count) : loss_of_some(n, count);
    for (int i = 0; i < count; i++) losses[d[i].k] += d[i].weight * (double)n->losses[i];
    if (!n->g) return loss;
    back_markov(n, count);
    back_some(n, count);
    for (int i = 0; i < count; i++) {
        hn_real *to = hn_mat_row(n->s.dz, d[i].row);
        for (int c = 0; c < n->shape.hidden; c++) to[c] += hn_mat_row(n->dnormed, i)[c];
    }
    return loss;
}

static double all_drafts(hn_block_net *n, const double *sums, double *losses) {
    const hn_mat dz = hn_stack_all(&n->s, n->s.dz);
    double loss = 0;
    if (n->g) memset(dz.p, 0, (size_t)dz.rows * dz.ld * sizeof *dz.p);
    for (int i = 0; i < n->drafts; i += n->s.most_texts_rows) {
        const int left = n->drafts - i;
        loss += some_drafts(n, n->draft + i, left < n->s.most_texts_rows ? left : n->s.most_texts_rows, losses);
    }
    for (int k = 0; k < n->shape.drafts; k++) losses[k] /= sums[k] > 0 ? sums[k] : 1;
    return loss;
}

static void begin(hn_block_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->s.most_texts_rows && b->dist.cols == n->shape.vocab);
    n->w = weights;
    n->g = gradient;
    n->b = b;
    hn_block_plan_choose(&n->plan, b->texts, b->start, b->weight, b->seed);
    n->s.texts = b->texts;
    n->s.start = b->start;
    n->s.of = n->plan.first;
    n->s.block = n->plan.of;
    n->s.position = n->position;
    for (int i = 0; i < n->shape.layers; i++) {
        n->s.w[i] = layer_of(&n->shape, i, weights);
        if (gradient) n->s.g[i] = layer_of(&n->shape, i, gradient);
    }
    place_rows(n);
    n->prefix.w = prefix_of(&n->shape, weights);
    if (gradient) n->prefix.g = prefix_of(&n->shape, gradient);
}

double hn_block_net_loss(hn_block_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient,
                         double *losses) {
    double sums[HN_MOST_STEPS];
    begin(n, weights, b, gradient);
    for (int k = 0; k < n->shape.drafts; k++) losses[k] = 0;
    if (!share_weights(n, sums)) return 0;
    if (is_dflash(n))
        begin_dflash(n);
    else
        begin_pairs(n);
    hn_stack_forward(&n->s);
    if (n->shape.prefix.state) hn_prefix_states(&n->prefix, n->table, gradient != NULL);
    const double loss = all_drafts(n, sums, losses);
    if (!gradient) return loss;
    if (n->shape.prefix.state) hn_prefix_states_back(&n->prefix);
    hn_stack_back(&n->s);
    if (is_dflash(n))
        end_dflash(n);
    else
        end_pairs(n);
    return loss;
}
