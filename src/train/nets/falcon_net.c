/* SPDX-License-Identifier: Apache-2.0 */
/* falcon_net.c - Falcon's head around a stack of one layer: rows of texts are only keys and values, blocks draft. */
#include "train/nets/falcon_net.h"

#include <assert.h>
#include <string.h>

#include "base/random.h"
#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/math/layers/lstm.h"
#include "train/math/product/product.h"

struct hn_falcon_net {
    hn_room room;
    hn_stack s;
    hn_falcon_shape shape;
    hn_mat table, head;
    int *position, *token, *of, *cut; /* twice [rows of the stack]; [texts + 1]; [texts]: the row from which a text is cut into blocks */
    hn_text_block *block;
    int *root, *guessed;   /* the first row of each block of pass 0; [texts]: first row of a text in guess */
    hn_mat joined, gates_1, lower, gates_2, u, guess; /* guess: out of pass 0, of block rows */
    hn_mat dgates, du, dlower;
    /* for rows with a loss */
    int n, *row, *at, *draft, *dist_row;
    hn_mat some, wanted, dsome, logits;
    hn_real *weight, *scaled, *l1, *ce;
    /* of one call */
    hn_real *w, *g;
    const hn_net_batch *b;
};

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static void lay_out(void *net, hn_room *r) {
    hn_falcon_net *n = net;
    const int texts = n->s.most_texts_rows, all = texts + n->s.most_blocks_rows, hidden = n->shape.hidden;
    hn_stack_lay_out(&n->s, r);
    n->position = hn_room_take(r, (size_t)all, sizeof *n->position);
    n->token = hn_room_take(r, (size_t)all, sizeof *n->token);
    n->of = hn_room_take(r, (size_t)texts + 1, sizeof *n->of);
    n->cut = hn_room_take(r, (size_t)texts, sizeof *n->cut);
    n->block = hn_room_take(r, (size_t)texts, sizeof *n->block);
    n->root = hn_room_take(r, (size_t)texts, sizeof *n->root);
    n->guessed = hn_room_take(r, (size_t)texts, sizeof *n->guessed);
    n->joined = hn_room_mat(r, all, 2 * hidden);
    n->gates_1 = hn_room_mat(r, all, 4 * hidden);
    n->lower = hn_room_mat(r, all, hidden);
    n->gates_2 = hn_room_mat(r, all, 4 * hidden);
    n->u = hn_room_mat(r, all, hidden);
    n->dgates = hn_room_mat(r, all, 4 * hidden);
    n->du = hn_room_mat(r, all, hidden);
    n->dlower = hn_room_mat(r, all, hidden);
    n->guess = hn_room_mat(r, texts, hidden);
    n->row = hn_room_take(r, (size_t)texts, sizeof *n->row);
    n->at = hn_room_take(r, (size_t)texts, sizeof *n->at);
    n->draft = hn_room_take(r, (size_t)texts, sizeof *n->draft);
    n->dist_row = hn_room_take(r, (size_t)texts, sizeof *n->dist_row);
    n->some = hn_room_mat(r, texts, hidden);
    n->wanted = hn_room_mat(r, texts, hidden);
    n->dsome = hn_room_mat(r, texts, hidden);
    n->logits = hn_room_mat(r, texts, n->head.rows);
    n->weight = hn_room_mat(r, texts, 1).p;
    n->scaled = hn_room_mat(r, texts, 1).p;
    n->l1 = hn_room_mat(r, texts, 1).p;
    n->ce = hn_room_mat(r, texts, 1).p;
}

hunch_status hn_falcon_net_open(hn_falcon_net **out, hn_workers *t, const hn_falcon_shape *s, hn_mat table, hn_mat head,
                                int rows, hunch_error *err) {
    assert(s->span > 0 && s->span <= HN_MOST_BLOCK && s->passes > 0 && s->passes <= 2 && rows > 0 && table.cols == s->hidden &&
           head.cols == s->hidden);
    hn_falcon_net n = {.shape = *s, .table = table, .head = head};
    n.s = (hn_stack){.sizes = s->sizes, .workers = t, .inputs = s->hidden, .layers = 1, .given = true, .ahead = true,
                     .most_texts_rows = rows, .most_blocks_rows = rows};
    *out = hn_net_new(&n, sizeof n, lay_out, "a head in training", err);
    return *out ? HUNCH_OK : HUNCH_NO_MEMORY;
}

void hn_falcon_net_close(hn_falcon_net *n) {
    hn_net_free(n);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static hn_mat weight(const hn_falcon_net *n, hn_falcon_part part) {
    return hn_falcon_part_of(&n->shape, part, n->w);
}

static hn_mat gradient_of(const hn_falcon_net *n, hn_falcon_part part) {
    return hn_falcon_part_of(&n->shape, part, n->g);
}

static hn_stack_layer layer_of(const hn_falcon_shape *s, hn_real *vector) {
    return (hn_stack_layer){.q = hn_falcon_part_of(s, HN_FALCON_Q, vector),
                            .k = hn_falcon_part_of(s, HN_FALCON_K, vector),
                            .v = hn_falcon_part_of(s, HN_FALCON_V, vector),
                            .o = hn_falcon_part_of(s, HN_FALCON_O, vector),
                            .post = hn_falcon_part_of(s, HN_FALCON_POST, vector),
                            .gate = hn_falcon_part_of(s, HN_FALCON_GATE, vector),
                            .up = hn_falcon_part_of(s, HN_FALCON_UP, vector),
                            .down = hn_falcon_part_of(s, HN_FALCON_DOWN, vector)};
}

static int text_rows(const hn_falcon_net *n) {
    return hn_stack_text_rows(&n->s);
}

/* A block sees at least one row of its text: none begins at the first. */
static void cut_texts(hn_falcon_net *n) {
    uint64_t x = n->b->seed;
    for (int text = 0; text < n->b->texts; text++)
        n->cut[text] = n->b->start[text] + 1 + (int)(hn_splitmix(&x) % (uint64_t)n->shape.span);
}

/* The whole blocks of a pass: in pass 1 a text may have one less. */
static void place_blocks(hn_falcon_net *n, int pass) {
    const int k = n->shape.span;
    int blocks = 0;
    for (int text = 0; text < n->b->texts; text++) {
        n->of[text] = blocks;
        if (pass == 0) n->guessed[text] = blocks * k;
        for (int a = n->cut[text]; a + (pass + 1) * k <= n->b->start[text + 1]; a += k) {
            n->block[blocks] = (hn_text_block){blocks * k, k, a + pass * k - n->b->start[text]};
            n->root[blocks++] = a;
        }
    }
    n->of[n->b->texts] = blocks;
}

/* The row of the batch for a row of a block. */
static int place_of(const hn_falcon_net *n, int pass, int block, int j) {
    return n->root[block] + pass * n->shape.span + j;
}

static void place_rows(hn_falcon_net *n, int pass) {
    const hn_net_batch *b = n->b;
    const int hidden = n->shape.hidden, texts = text_rows(n);
    const size_t bytes = (size_t)hidden * sizeof(hn_real);
    for (int text = 0; text < b->texts; text++) {
        for (int i = b->start[text]; i < b->start[text + 1]; i++) {
            n->token[i] = b->token[i];
            n->position[i] = i - b->start[text];
            memcpy(hn_mat_row(n->joined, i) + hidden, hn_mat_row(b->state, i), bytes);
        }
        for (int block = n->of[text]; block < n->of[text + 1]; block++)
            for (int j = 0; j < n->shape.span; j++) {
                const int row = texts + n->block[block].first + j, at = place_of(n, pass, block, j);
                const hn_real *f =
                    pass ? hn_mat_row(n->guess, n->guessed[text] + (block - n->of[text]) * n->shape.span + j)
                         : hn_mat_row(b->state, at);
                n->token[row] = b->token[at];
                n->position[row] = at - b->start[text];
                memcpy(hn_mat_row(n->joined, row) + hidden, f, bytes);
            }
    }
}

/* The rows of blocks with labels: those of k - 1 places after their own in `next` and `dist`. */
static void pick_rows(hn_falcon_net *n, int pass) {
    const hn_net_batch *b = n->b;
    const int k = n->shape.span;
    double all = 0;
    n->n = 0;
    for (int text = 0; text < b->texts; text++)
        for (int block = n->of[text]; block < n->of[text + 1]; block++)
            for (int j = 0; j < k; j++) {
                const int at = place_of(n, pass, block, j) + k - 1;
                if (at >= b->start[text + 1] || b->weight[at] == 0) continue;
                n->row[n->n] = n->block[block].first + j;
                n->at[n->n] = at;
                n->draft[n->n] = pass * k + j;
                n->dist_row[n->n] = b->dist_row ? b->dist_row[at] : at;
                n->weight[n->n++] = b->weight[at];
                all += (double)b->weight[at];
            }
    for (int i = 0; i < n->n; i++) n->weight[i] = (hn_real)((double)n->weight[i] / all);
}

/* ---- forwards ------------------------------------------------------------------------------------------------------------ */

static hn_mat all_of(const hn_falcon_net *n, hn_mat m) {
    return hn_stack_all(&n->s, m);
}

/* y = W x + both biases, and the layer's output. */
static void lstm_layer(hn_falcon_net *n, hn_mat x, int layer, hn_mat gates, hn_mat h) {
    hn_workers *t = n->s.workers;
    const hn_real *more = weight(n, (hn_falcon_part)(HN_FALCON_STATE_BIAS_1 + layer)).p;
    hn_linear(t, x, weight(n, (hn_falcon_part)(HN_FALCON_LSTM_1 + layer)), weight(n, (hn_falcon_part)(HN_FALCON_BIAS_1 + layer)).p, gates);
    for (int r = 0; r < gates.rows; r++)
        for (int c = 0; c < gates.cols; c++) hn_mat_row(gates, r)[c] += more[c];
    hn_lstm_output(t, gates, h);
}

static void copy_rows(hn_mat from, hn_mat to) {
    for (int r = 0; r < to.rows; r++) memcpy(hn_mat_row(to, r), hn_mat_row(from, r), (size_t)to.cols * sizeof(hn_real));
}

static void forward(hn_falcon_net *n) {
    const hn_mat joined = all_of(n, n->joined), u = all_of(n, n->u);
    hn_embed(n->s.workers, n->table, n->token, hn_mat_cols(joined, 0, n->shape.hidden));
    lstm_layer(n, joined, 0, all_of(n, n->gates_1), all_of(n, n->lower));
    lstm_layer(n, all_of(n, n->lower), 1, all_of(n, n->gates_2), u);
    copy_rows(u, all_of(n, n->s.at[0].x));
    copy_rows(u, all_of(n, n->s.at[0].z));
    copy_rows(hn_mat_part(u, 0, text_rows(n)), hn_mat_part(n->s.beside, 0, text_rows(n)));
    hn_stack_forward(&n->s);
}

static hn_mat blocks_of(const hn_falcon_net *n, hn_mat m) {
    return hn_stack_passing(&n->s, m);
}

static const hn_real *scaled(hn_falcon_net *n, double share) {
    for (int i = 0; i < n->n; i++) n->scaled[i] = (hn_real)((double)n->weight[i] * share);
    return n->scaled;
}

/* The loss of a pass, with terms in losses and sums, and its gradient in dsome. */
static double output(hn_falcon_net *n, double *losses, double *sums) {
    hn_workers *t = n->s.workers;
    const hn_falcon_shape *s = &n->shape;
    const hn_mat some = hn_mat_part(n->some, 0, n->n), wanted = hn_mat_part(n->wanted, 0, n->n), d = hn_mat_part(n->dsome, 0, n->n);
    const hn_mat top = blocks_of(n, n->s.top), logits = hn_mat_part(n->logits, 0, n->n);
    const size_t bytes = (size_t)s->hidden * sizeof(hn_real);
    for (int i = 0; i < n->n; i++) {
        memcpy(hn_mat_row(some, i), hn_mat_row(top, n->row[i]), bytes);
        memcpy(hn_mat_row(wanted, i), hn_mat_row(n->b->next, n->at[i]), bytes);
    }
    double loss = hn_loss_smooth_l1(t, some, wanted, scaled(n, s->state_share), d, n->l1);
    hn_linear(t, some, n->head, NULL, logits);
    loss += hn_loss_soft(t, logits, n->b->dist, n->dist_row, false, scaled(n, s->dist_share), logits, n->ce);
    if (n->g) hn_product(t, HN_AB, logits, n->head, d, true);
    for (int i = 0; i < n->n; i++) {
        const double each = s->state_share * (double)n->l1[i] + s->dist_share * (double)n->ce[i];
        losses[n->draft[i]] += (double)n->weight[i] * each;
        sums[n->draft[i]] += (double)n->weight[i];
    }
    return loss;
}

/* ---- backwards ----------------------------------------------------------------------------------------------------------- */

static void lstm_layer_back(hn_falcon_net *n, hn_mat dh, hn_mat gates, hn_mat x, int layer, hn_mat dx) {
    hn_workers *t = n->s.workers;
    const hn_mat d = all_of(n, n->dgates), none = {0};
    hn_lstm_output_back(t, dh, gates, d);
    hn_linear_back(t, d, x, weight(n, (hn_falcon_part)(HN_FALCON_LSTM_1 + layer)), dx, false,
                   gradient_of(n, (hn_falcon_part)(HN_FALCON_LSTM_1 + layer)),
                   gradient_of(n, (hn_falcon_part)(HN_FALCON_BIAS_1 + layer)).p);
    hn_linear_back(t, d, none, none, none, false, none, gradient_of(n, (hn_falcon_part)(HN_FALCON_STATE_BIAS_1 + layer)).p);
}

/* From dsome. u is the layer's input, and in blocks also the stream. */
static void backward(hn_falcon_net *n) {
    hn_workers *t = n->s.workers;
    const hn_mat dz = blocks_of(n, n->s.dz), du = all_of(n, n->du), none = {0};
    const int texts = text_rows(n);
    memset(n->s.dz.p, 0, (size_t)hn_stack_rows(&n->s) * n->s.dz.ld * sizeof *n->s.dz.p);
    for (int i = 0; i < n->n; i++)
        memcpy(hn_mat_row(dz, n->row[i]), hn_mat_row(n->dsome, i), (size_t)dz.cols * sizeof(hn_real));
    hn_stack_back(&n->s);
    copy_rows(hn_mat_part(n->s.dbeside, 0, texts), hn_mat_part(du, 0, texts));
    hn_sum(t, dz, blocks_of(n, n->s.dx), hn_mat_part(du, texts, dz.rows));
    lstm_layer_back(n, du, all_of(n, n->gates_2), all_of(n, n->lower), 1, all_of(n, n->dlower));
    lstm_layer_back(n, all_of(n, n->dlower), all_of(n, n->gates_1), all_of(n, n->joined), 0, none);
}

static void begin_pass(hn_falcon_net *n, int pass) {
    n->s.of = n->of;
    n->s.block = n->block;
    n->s.position = n->position;
    place_blocks(n, pass);
    place_rows(n, pass);
    pick_rows(n, pass);
}

double hn_falcon_net_loss(hn_falcon_net *n, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    assert(b->start[0] == 0 && b->start[b->texts] <= n->s.most_texts_rows && b->dist.cols == n->head.rows);
    double sum = 0, sums[2 * HN_MOST_BLOCK] = {0};
    n->w = weights;
    n->g = gradient;
    n->b = b;
    n->s.texts = b->texts;
    n->s.start = b->start;
    n->s.w[0] = layer_of(&n->shape, weights);
    if (gradient) n->s.g[0] = layer_of(&n->shape, gradient);
    for (int d = 0; d < n->shape.passes * n->shape.span; d++) losses[d] = 0;
    cut_texts(n);
    for (int pass = 0; pass < n->shape.passes; pass++) {
        begin_pass(n, pass);
        if (n->n == 0) break;
        forward(n);
        if (pass + 1 < n->shape.passes && !b->same_guesses)
            copy_rows(blocks_of(n, n->s.top), hn_mat_part(n->guess, 0, blocks_of(n, n->s.top).rows));
        sum += output(n, losses, sums);
        if (gradient) backward(n);
    }
    for (int d = 0; d < n->shape.passes * n->shape.span; d++) losses[d] /= sums[d] > 0 ? sums[d] : 1;
    return sum;
}
