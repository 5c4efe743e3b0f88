/* SPDX-License-Identifier: Apache-2.0 */
/* pass_prefix.c - the stage after Domino's block: a draft's logits are those of its place in the block plus a bias that depends on a
 * state of the tokens from the root to the one before it.
 *
 *   r, u, c = Wi E[token before], and a, b, d = Wh s in the same parts
 *   m = tanh(c + sigmoid(r + a) * d),  s = m + sigmoid(u + b) * (s - m)                 a GRU without biases, from 0 at each root
 *   logits += W2 swish(W1 (h | s))                      h: the place's state after the last norm; not of the first drafts (`plain`)
 *
 * W2 is as large as half an output matrix, and would be read for every draft, so it is applied to a pool of each block: the outputs
 * whose best logit of all places with a bias is largest. The others have no logit there. The pool's rows of W2 are copied once a block.
 *
 * Wi E depends on a token alone, so it is kept for many tokens. Those that the drafts of a block will most likely read, its root and the
 * best of each place without the bias, are computed together after its pass, so that Wi is read once for all of them. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "model/largest.h"
#include "model/pass_places.h"
#include "model/token_rows.h"
#include "ops/pack.h"

/* Rows of one block, side by side. */
typedef struct run_of {
    int first, n, block;
} run_of;

enum { KEPT_TOKENS = 1024 };

/* Tokens whose Wi E is to be computed, and its rows in `kept`; the row of each place's token. */
typedef struct input_image {
    int32_t n;
    int32_t token[HN_MAX_ROWS], to[HN_MAX_ROWS], row[HN_MAX_ROWS];
} input_image;

typedef struct prefix {
    hn_places places;
    hn_token_rows tokens;
    input_image wanted;
    hn_buf wanted_buf;
    hn_matrix kept, made; /* [KEPT_TOKENS] Wi E; of the wanted tokens */
    bool plain;             /* these rows have no bias */
    int row[HN_MAX_ROWS];   /* of the pass, of each place */
    int block[HN_MAX_ROWS]; /* the same */
    int n_runs, blocks; /* blocks: of the pass */
    run_of run[HN_MAX_ROWS];
    hn_matrix token, input, gates, own, state, joint, mid, logits, base; /* base: of the run's rows before the bias */
    hn_act token_in, own_in, joint_in, mid_in;
    hn_top best;
    /* pools, of each block; without them (all outputs are in it) the whole matrix is used */
    bool pools;
    hn_matrix pooled;       /* [gathered rows] logits of the pool before the bias */
    hn_buf rows, ids, outputs; /* W2's rows; int32 the target's tokens, the outputs */
    size_t rows_bytes;      /* of a block */
    uint32_t *order, *most; /* owned: [blocks][vocab] the best logit of each output; [blocks][groups] the best of neighbours */
    int32_t *room;          /* owned: [blocks][vocab] of their choice */
    int32_t *output, *token_of; /* owned: [blocks][pool] the pool's outputs, ascending; their tokens */
    float *values;          /* owned: [HN_MAX_ROWS][pool] to be written to `pooled` */
    int32_t *map;           /* owned: [vocab] the target's token of each output; NULL: the same */
} prefix;

static prefix *prefix_of(const hn_runner *r) {
    return (prefix *)r->places;
}

static const hn_prefix_desc *desc_of(const hn_runner *r) {
    return &r->m->arch.draft_head.output.prefix;
}

/* Fewer than described if the head drafts fewer tokens than it has. */
static int pool_of(const hn_runner *r) {
    const int pool = desc_of(r)->pool, vocab = r->m->arch.vocab;
    return pool < vocab ? pool : vocab;
}

static int groups_of(const hn_runner *r) {
    return (r->m->arch.vocab + HN_LARGEST_GROUP - 1) / HN_LARGEST_GROUP;
}

static int most_blocks(const hn_runner *r) {
    return HN_MAX_ROWS / r->m->arch.draft_head.rows.block.n;
}

/* ---- buffers --------------------------------------------------------------------------------------------------------------- */

static void list(const hn_runner *r, hn_buf_room *room) {
    const hn_arch *a = &r->m->arch;
    const hn_prefix_desc *d = desc_of(r);
    const hn_weight *w = &r->m->head.bias_out;
    const hn_backend *b = room->backend;
    const int pool = pool_of(r);
    prefix *k = prefix_of(r);
    k->wanted_buf = hn_buf_room_take(room, sizeof k->wanted);
    k->kept = hn_buf_room_matrix(room, KEPT_TOKENS, 3 * d->state);
    k->made = hn_buf_room_matrix(room, HN_MAX_ROWS, 3 * d->state);
    k->token = hn_buf_room_matrix(room, HN_MAX_ROWS, a->hidden);
    k->input = hn_buf_room_matrix(room, HN_MAX_ROWS, 3 * d->state);
    k->gates = hn_buf_room_matrix(room, HN_MAX_ROWS, 3 * d->state);
    k->own = hn_buf_room_matrix(room, HN_MAX_ROWS, d->state);
    k->state = hn_buf_room_matrix(room, k->places.states, d->state);
    k->joint = hn_buf_room_matrix(room, HN_MAX_ROWS, a->hidden + d->state);
    k->mid = hn_buf_room_matrix(room, HN_MAX_ROWS, d->width);
    k->base = hn_buf_room_matrix(room, HN_MAX_ROWS, pool);
    k->logits = hn_buf_room_results(room, HN_MAX_ROWS, pool);
    k->token_in = hn_buf_room_act(room, HN_MAX_ROWS, a->hidden);
    k->own_in = hn_buf_room_act(room, HN_MAX_ROWS, d->state);
    k->joint_in = hn_buf_room_act(room, HN_MAX_ROWS, a->hidden + d->state);
    k->mid_in = hn_buf_room_act(room, HN_MAX_ROWS, d->width);
    k->best = hn_place_top(r, room, pool);
    k->best.map = r->m->head.ids;
    if (!k->pools) return;
    k->rows_bytes = (b->matrix_bytes(b, w->dtype, pool, w->in) + 63) & ~(size_t)63;
    k->pooled = hn_buf_room_matrix(room, HN_MAX_ROWS, pool);
    k->rows = hn_buf_room_take(room, k->rows_bytes * (size_t)most_blocks(r));
    k->ids = hn_buf_room_take(room, sizeof(int32_t) * (size_t)(most_blocks(r) * pool));
    k->outputs = hn_buf_room_take(room, sizeof(int32_t) * (size_t)(most_blocks(r) * pool));
}

static hunch_status keep_map(const hn_runner *r, prefix *k, hunch_error *err) {
    hn_backend *b = r->m->backend;
    const size_t bytes = (size_t)r->m->arch.vocab * sizeof *k->map;
    k->map = hn_alloc(bytes);
    if (!k->map) return hn_fail_memory(err, "the tokens of outputs", bytes);
    memcpy(k->map, b->read(b, (hn_ticket){0}, r->m->head.ids, bytes), bytes);
    return HUNCH_OK;
}

static hunch_status places_open(hn_runner *r, hunch_error *err) {
    const size_t pool = (size_t)pool_of(r), vocab = (size_t)r->m->arch.vocab;
    prefix *k = prefix_of(r);
    k->pools = pool < vocab;
    const hunch_status st = hn_token_rows_open(&k->tokens, r->m->embedding.out, KEPT_TOKENS, err);
    if (st || !k->pools) return st;
    const size_t blocks = (size_t)most_blocks(r);
    k->order = hn_zalloc(blocks * vocab, sizeof *k->order);
    k->most = hn_zalloc(blocks * (size_t)groups_of(r), sizeof *k->most);
    k->room = hn_zalloc(blocks * vocab, sizeof *k->room);
    k->output = hn_zalloc(blocks * pool, sizeof *k->output);
    k->token_of = hn_zalloc(blocks * pool, sizeof *k->token_of);
    k->values = hn_zalloc(HN_MAX_ROWS * pool, sizeof *k->values);
    if (r->m->head.ids.mem && keep_map(r, k, err)) return HUNCH_NO_MEMORY;
    return k->order && k->most && k->room && k->output && k->token_of && k->values
               ? HUNCH_OK
               : hn_fail_memory(err, "the pools of a block", blocks * vocab * sizeof *k->order);
}

static void places_close(hn_runner *r) {
    prefix *k = prefix_of(r);
    hn_token_rows_close(&k->tokens);
    hn_free(k->order);
    hn_free(k->most);
    hn_free(k->room);
    hn_free(k->output);
    hn_free(k->token_of);
    hn_free(k->values);
    hn_free(k->map);
}

/* ---- pools ------------------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 4096 }; /* outputs of a claim */

/* Rows of a block with logits to which a bias is added, as gathered; returns how many. */
static int rows_with_bias(const hn_runner *r, int block, int16_t gathered[HN_MAX_ROWS]) {
    const hn_block_desc *b = &r->m->arch.draft_head.rows.block;
    int m = 0;
    for (int j = desc_of(r)->plain + !b->root_drafts; j < b->n; j++)
        if (r->out.of_row[block * b->n + j] >= 0) gathered[m++] = r->out.of_row[block * b->n + j];
    return m;
}

/* The best logit of outputs [first, last) over the rows, and of each group of them. */
static void best_of_rows(const hn_runner *r, const int16_t *row, int n, int first, int last, uint32_t *order, uint32_t *most) {
    float best[CHUNK];
    for (int i = first; i < last; i++) best[i - first] = -INFINITY;
    for (int k = 0; k < n; k++) {
        const float *logits = r->out.host_logits + (size_t)row[k] * (size_t)r->out.logits.ld;
        for (int i = first; i < last; i++) best[i - first] = logits[i] > best[i - first] ? logits[i] : best[i - first];
    }
    for (int i = first; i < last; i++) order[i] = hn_order(best[i - first]);
    for (int i = first; i < last; i += HN_LARGEST_GROUP)
        most[i / HN_LARGEST_GROUP] = hn_largest_one(order + i, last - i < HN_LARGEST_GROUP ? last - i : HN_LARGEST_GROUP);
}

/* The outputs of the block's pool, and their tokens. */
static void choose_pool(const hn_runner *r, int block) {
    const prefix *k = prefix_of(r);
    const int pool = pool_of(r), vocab = r->m->arch.vocab;
    int32_t *output = k->output + block * pool, *token = k->token_of + block * pool;
    const size_t at = (size_t)block * (size_t)vocab;
    hn_largest_of_groups(k->order + at, vocab, k->most + block * groups_of(r), pool, output, k->room + at);
    for (int i = 0; i < pool; i++) token[i] = k->map ? k->map[output[i]] : output[i];
}

/* The pool's logits before the bias, of a row of a block. */
static void take_values(const hn_runner *r, int block, int row) {
    const prefix *k = prefix_of(r);
    const int pool = pool_of(r);
    const int32_t *output = k->output + block * pool;
    const float *logits = r->out.host_logits + (size_t)row * (size_t)r->out.logits.ld;
    for (int i = 0; i < pool; i++) k->values[row * pool + i] = logits[output[i]];
}

/* On the workers of the CPU, from the logits of the pass. */
static void choose_pools(void *arg, int rank, int ranks HN_UNUSED) {
    const hn_runner *r = arg;
    const prefix *k = prefix_of(r);
    const int vocab = r->m->arch.vocab, chunks = (vocab + CHUNK - 1) / CHUNK;
    hn_claim claim = hn_claim_begin(r->m->pool, rank, chunks * k->blocks);
    for (int c; (c = hn_claim_next(&claim)) >= 0;) {
        int16_t row[HN_MAX_ROWS];
        const int block = c / chunks, n = rows_with_bias(r, block, row);
        const int first = c % chunks * CHUNK, last = first + CHUNK < vocab ? first + CHUNK : vocab;
        if (n > 0)
            best_of_rows(r, row, n, first, last, k->order + (size_t)block * (size_t)vocab, k->most + block * groups_of(r));
    }
    hn_barrier(r->m->pool, rank);
    claim = hn_claim_begin(r->m->pool, rank, k->blocks);
    for (int block; (block = hn_claim_next(&claim)) >= 0;) choose_pool(r, block);
    hn_barrier(r->m->pool, rank);
    claim = hn_claim_begin(r->m->pool, rank, k->blocks * HN_MAX_ROWS);
    for (int c; (c = hn_claim_next(&claim)) >= 0;) {
        int16_t row[HN_MAX_ROWS];
        const int block = c / HN_MAX_ROWS, j = c % HN_MAX_ROWS;
        if (j < rows_with_bias(r, block, row)) take_values(r, block, row[j]);
    }
    hn_barrier(r->m->pool, rank);
}

/* The rows of W2 that a block's rows are multiplied with. */
static hn_weight rows_of(const hn_runner *r, int block) {
    const prefix *k = prefix_of(r);
    const hn_backend *b = r->m->backend;
    hn_weight w = r->m->head.bias_out;
    if (!k->pools) return w;
    w.out = pool_of(r);
    w.place = b->place(b, w.dtype, w.in, hn_at(k->rows, k->rows_bytes * (size_t)block));
    return w;
}

/* Copies the pools' rows of W2. */
static void copy_rows(const hn_exec *ex, const void *arg) {
    const hn_runner *r = arg;
    const prefix *k = prefix_of(r);
    const hn_exec own = hn_runner_exec(ex, r);
    for (int block = 0; block < k->blocks; block++) {
        int16_t row[HN_MAX_ROWS];
        const hn_weight to = rows_of(r, block);
        if (rows_with_bias(r, block, row) == 0) continue;
        own.ops->pick_rows(&own, &r->m->head.bias_out, hn_at(k->outputs, sizeof(int32_t) * (size_t)(block * to.out)), &to);
    }
}

/* ---- inputs of the state ----------------------------------------------------------------------------------------------------- */

/* The row that holds the token's product; it is wanted if none does. */
static int want(prefix *k, int32_t token) {
    bool fresh;
    const int row = hn_token_rows_find(&k->tokens, token, &fresh);
    if (fresh) {
        k->wanted.token[k->wanted.n] = token;
        k->wanted.to[k->wanted.n++] = row;
    }
    return row;
}

static hn_buf wanted_at(const prefix *k, size_t offset) {
    return hn_at(k->wanted_buf, offset);
}

static void make_inputs(const hn_exec *ex, const hn_runner *r) {
    const prefix *k = prefix_of(r);
    const hn_count n = {wanted_at(k, offsetof(input_image, n)), k->wanted.n};
    const hn_rows rows = {.n = n, .token = wanted_at(k, offsetof(input_image, token))};
    if (n.most == 0) return;
    ex->ops->embed(ex, &rows, &r->m->embedding, r->m->arch.embed_scale, k->token);
    hn_place_product(ex, n, k->token, k->token_in, &r->m->head.gru_input, k->made);
    ex->ops->gather(ex, n, r->buf.each, k->made, wanted_at(k, offsetof(input_image, to)), k->kept);
}

static void make_likely(const hn_exec *ex, const void *arg) {
    const hn_runner *r = arg;
    const hn_exec own = hn_runner_exec(ex, r);
    make_inputs(&own, r);
}

/* The roots, and the best token of each place but the last. */
static void keep_likely(hn_runner *r, int blocks) {
    prefix *k = prefix_of(r);
    const int n = r->m->arch.draft_head.rows.block.n;
    k->wanted.n = 0;
    hn_token_rows_begin(&k->tokens);
    for (int i = 0; i < blocks * n; i++) {
        if (i % n == 0) (void)want(k, r->rows.image->token[i]);
        if (i % n == n - 1 || r->out.of_row[i] < 0) continue;
        const int32_t best = r->out.host_best[r->out.of_row[i] * r->out.best.k];
        if (best >= 0) (void)want(k, best);
    }
    hn_backend *b = r->m->backend;
    b->write(b, k->wanted_buf, &k->wanted, sizeof k->wanted);
    if (k->wanted.n > 0) b->submit(b, make_likely, r);
}

static void begin(hn_runner *r, int blocks) {
    prefix *k = prefix_of(r);
    hn_backend *o = r->m->backend;
    const int pool = pool_of(r);
    keep_likely(r, blocks);
    if (!k->pools) return;
    k->blocks = blocks;
    hn_pool_run(r->m->pool, choose_pools, r);
    o->write(o, k->ids, k->token_of, sizeof(int32_t) * (size_t)(blocks * pool));
    o->write(o, k->outputs, k->output, sizeof(int32_t) * (size_t)(blocks * pool));
    o->submit(o, copy_rows, r);
    for (int i = 0; i < r->out.n_full; i++)
        o->write(o, hn_rows_from(k->pooled, i).at, k->values + i * pool, sizeof(float) * (size_t)pool);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------------- */

static void describe(hn_runner *r, const hn_place *places) {
    prefix *k = prefix_of(r);
    const hn_block_desc *b = &r->m->arch.draft_head.rows.block;
    k->plain = places[0].row % b->n + b->root_drafts <= desc_of(r)->plain; /* all are the same distance behind their roots */
    k->n_runs = k->wanted.n = 0;
    hn_token_rows_begin(&k->tokens);
    for (int i = 0; i < k->places.n; i++) {
        k->row[i] = places[i].row;
        k->wanted.row[i] = want(k, places[i].token);
        k->block[i] = places[i].row / b->n;
        if (i == 0 || (k->pools && k->block[i] != k->block[i - 1])) k->run[k->n_runs++] = (run_of){i, 0, k->block[i]};
        k->run[k->n_runs - 1].n++;
    }
    r->m->backend->write(r->m->backend, k->wanted_buf, &k->wanted, sizeof k->wanted);
}

/* The state after each row's token, in `own` and in its place. */
static void recurrence(const hn_exec *ex, const hn_runner *r) {
    const prefix *k = prefix_of(r);
    const hn_head *h = &r->m->head;
    const hn_ops *o = ex->ops;
    const hn_count n = hn_place_count(&k->places);
    const hn_buf none = {NULL, 0};
    make_inputs(ex, r);
    o->gather(ex, n, wanted_at(k, offsetof(input_image, row)), k->kept, none, k->input);
    o->gather(ex, n, hn_place_at(&k->places, offsetof(hn_place_image, from)), k->state, none, k->own);
    hn_place_product(ex, n, k->own, k->own_in, &h->gru_state, k->gates);
    o->gru(ex, n, k->input, k->gates, k->own);
    o->gather(ex, n, r->buf.each, k->own, hn_place_at(&k->places, offsetof(hn_place_image, to)), k->state);
}

static void run_block(const hn_exec *ex, const hn_runner *r, const run_of *at) {
    const prefix *k = prefix_of(r);
    const hn_weight w = rows_of(r, at->block);
    const hn_act in = hn_act_of(k->mid_in, w.in, ex->backend->act_forms(ex->backend, w.dtype));
    const hn_matrix base = hn_rows_from(k->base, at->first);
    const hn_output_rows out = {.scale = 1, .n_written = hn_number(at->n), .y = hn_rows_from(k->logits, at->first)};
    const size_t first = (size_t)at->first, best = first * (size_t)k->best.k;
    hn_top top = hn_runner_top(r, k->best);
    top.id = hn_at(top.id, sizeof(int32_t) * best);
    top.value = hn_at(top.value, sizeof(float) * best);
    const size_t sums = sizeof(float) * first * (size_t)hn_sum_parts(w.out);
    top.sums = hn_at(top.sums, sums);
    if (top.moments.mem) top.moments = hn_at(top.moments, sums);
    top.bias = base.at;
    top.ld_bias = base.ld;
    if (k->pools) top.map = hn_at(k->ids, sizeof(int32_t) * (size_t)(at->block * w.out));
    ex->ops->quantise(ex, hn_number(at->n), hn_rows_from(k->mid, at->first), in);
    ex->ops->gather(ex, hn_number(at->n), hn_place_at(&k->places, offsetof(hn_place_image, place) + sizeof(int32_t) * first),
                    k->pools ? k->pooled : r->out.logits, (hn_buf){NULL, 0}, base);
    ex->ops->linear_top(ex, hn_number(at->n), in, &w, &out, &top);
}

static void run(const hn_exec *ex, const hn_runner *r) {
    const prefix *k = prefix_of(r);
    const hn_ops *o = ex->ops;
    const hn_count n = hn_place_count(&k->places);
    const int hidden = r->m->arch.hidden, size = desc_of(r)->state;
    const hn_buf none = {NULL, 0};
    recurrence(ex, r);
    if (k->plain) return;
    o->gather(ex, n, hn_place_at(&k->places, offsetof(hn_place_image, place)), r->out.norm, none, hn_columns(k->joint, 0, hidden));
    o->gather(ex, n, r->buf.each, k->own, none, hn_columns(k->joint, hidden, size));
    hn_place_product(ex, n, k->joint, k->joint_in, &r->m->head.bias_in, k->mid);
    o->apply(ex, n, HN_SWISH, HN_INTO_SET, k->mid, none, k->mid);
    for (int i = 0; i < k->n_runs; i++) run_block(ex, r, &k->run[i]);
}

static hn_place_result result(const hn_runner *r, int i) {
    const prefix *k = prefix_of(r);
    if (k->plain) {
        hn_place_result p = {.logits = hn_pass_logits(r, k->row[i]), .sum = hn_pass_sum(r, k->row[i]),
                             .entropy = hn_pass_entropy(r, k->row[i]), .confidence = NAN};
        p.best = hn_pass_best(r, k->row[i], &p.value);
        return p;
    }
    hn_place_result p = hn_place_of(r, i, k->logits, &k->best);
    if (!k->pools) return p;
    p.n_tokens = pool_of(r);
    p.tokens = k->token_of + k->block[i] * p.n_tokens;
    return p;
}

const hn_places_kind hn_places_prefix = {.bytes = sizeof(prefix), .list = list, .open = places_open, .close = places_close,
                                         .begin = begin, .describe = describe, .run = run, .result = result};
