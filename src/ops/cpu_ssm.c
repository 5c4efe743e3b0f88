/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_ssm.c - state space layers on the CPU, in four parts between barriers: convolutions and steps, by columns of all rows; products
 * B . C, by rows and groups, which all heads of a group share; states, a head of a sequence at a time; gates and norms, by rows and groups.
 *
 * A head's state (32 KB of 128 by 64) is read once, and stays in the nearest caches for all rows and for those that are added to it. */
#include "ops/ssm.h"

#include <assert.h>
#include <string.h>

#include "ops/cpu_mem.h"
#include "ops/kernels.h"

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

/* Of each row of the pass: where the rows that it sums over keep their numbers, ascending, and their products with its C. */
typedef struct shared {
    const float **row; /* [rows][HN_GRID_SUMS] */
    float *dot;        /* [rows][groups][HN_GRID_SUMS] */
} shared;

static size_t lines(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static size_t shared_rows(int rows) { return lines(sizeof(float *) * HN_GRID_SUMS * (size_t)rows); }
static size_t shared_dots(const hn_ssm *d, int rows) { return lines(sizeof(float) * HN_GRID_SUMS * (size_t)d->groups * (size_t)rows); }
/* Of a rank: states, results of a few rows, inputs of those that are added. */
static size_t own_bytes(const hn_ssm *d) {
    return lines(sizeof(float) * (HN_GRID_LEVELS * (size_t)hn_ssm_state(d) + (size_t)(2 * HN_GRID * hn_ssm_width(d))));
}

size_t hn_cpu_ssm_scratch(const hn_backend *b, const hn_ssm *d, int max_rows) {
    return shared_rows(max_rows) + shared_dots(d, max_rows) + own_bytes(d) * hn_cpu_threads(b);
}

static shared shared_of(const hn_ssm_job *j) {
    unsigned char *at = hn_host(j->scratch);
    return (shared){(const float **)(void *)at, (float *)(void *)(at + shared_rows(j->rows->n.most))};
}

/* ---- what rows keep ------------------------------------------------------------------------------------------------------ */

static float *own_row(const hn_ssm_job *j, const hn_input_pages *p, int i) {
    return hn_host_inputs_of(p, hn_host_i32(j->rows->seq)[i], hn_host_i32(j->rows->slot)[i]);
}

/* Columns [from, end) of row i after the convolution; those of C stay in the pass. */
static void convolve(const hn_ssm_job *j, const struct hn_kernels *k, int i, int from, int end) {
    const hn_ssm *d = j->net;
    const int seq = hn_host_i32(j->rows->seq)[i], position = hn_host_i32(j->rows->position)[i], channels = hn_ssm_channels(d);
    const int c = hn_ssm_inner(d) + d->groups * d->state;
    const float *m[HN_MOST_TAPS], *bias = d->conv_bias.mem ? hn_host_f32(d->conv_bias) : NULL;
    float *row = hn_host_row(j->m, i), *to[2] = {own_row(j, &j->kept, i), row};
    memcpy(own_row(j, &j->inputs, i) + from, row + from, sizeof *row * (size_t)(end - from));
    for (int part = 0; part < 2; part++) {
        const int first = part ? (from > c ? from : c) : from, last = part ? end : (end < c ? end : c);
        if (first >= last) continue;
        for (int t = 0; t < d->taps; t++) {
            const int at = position - d->taps + 1 + t;
            m[t] = at < 0 ? NULL : hn_host_inputs_of(&j->inputs, seq, hn_host_slot(j->rows, i, at)) + first;
        }
        k->convolve(m, d->taps, hn_host_f32(d->conv) + first, channels, bias ? bias + first : NULL, last - first, to[part] + first);
    }
}

static void take_step(const hn_ssm_job *j, int i, int head) {
    const hn_ssm *d = j->net;
    const float step = (float)hn_softplus((double)(hn_host_row(j->dt, i)[head] + hn_host_f32(d->dt)[head]));
    own_row(j, &j->kept, i)[hn_ssm_inner(d) + d->groups * d->state + head] = step < d->least ? d->least : step > d->most ? d->most : step;
}

static void keep_rows(const hn_exec *ex, const hn_ssm_job *j) {
    const struct hn_kernels *k = hn_cpu(ex)->kernels;
    const int channels = hn_ssm_channels(j->net), n = hn_cpu_number(j->rows->n);
    int first, last, head, last_head;
    hn_share(ex, (channels + HN_STRIP - 1) / HN_STRIP, &first, &last);
    hn_share(ex, j->net->heads, &head, &last_head);
    const int from = first * HN_STRIP, end = last * HN_STRIP < channels ? last * HN_STRIP : channels;
    for (int i = 0; i < n; i++) {
        if (from < end) convolve(j, k, i, from, end);
        for (int h = head; h < last_head; h++) take_step(j, i, h);
    }
}

/* ---- what rows share ----------------------------------------------------------------------------------------------------- */

static int sums_of(const hn_ssm_job *j, int i) {
    const int position = hn_host_i32(j->rows->position)[i];
    return position - hn_grid_of(position) + 1;
}

static void multiply(const hn_ssm_job *j, const struct hn_kernels *k, int i, int group) {
    const hn_ssm *d = j->net;
    const shared s = shared_of(j);
    const int position = hn_host_i32(j->rows->position)[i], n = sums_of(j, i), seq = hn_host_i32(j->rows->seq)[i];
    const int b = hn_ssm_inner(d) + group * d->state, c = b + d->groups * d->state;
    float *dot = s.dot + (size_t)(i * d->groups + group) * HN_GRID_SUMS;
    for (int r = 0; r < n; r++) {
        const float *row = hn_host_inputs_of(&j->kept, seq, hn_host_slot(j->rows, i, position - n + 1 + r));
        if (group == 0) s.row[i * HN_GRID_SUMS + r] = row;
        dot[r] = k->dot(row + b, hn_host_row(j->m, i) + c, d->state);
    }
}

/* ---- a head -------------------------------------------------------------------------------------------------------------- */

/* One head of one sequence. */
typedef struct head {
    const hn_ssm_job *j;
    const struct hn_kernels *k;
    shared shared;
    int seq, number, group, b, step; /* columns of its B and of its step in what a row keeps */
    float decay, skip;
    const float *state; /* in the cache, and where it is written: may be the same place */
    float *next;
    float *levels, *y, *u;
} head;

static float *level_of(const head *h, int level) { return h->levels + (size_t)(level - 1) * (size_t)hn_ssm_state(h->j->net); }

/* Rows of the list of slots are added to a state. */
static void add_to_state(const head *h, const float *from, float *to, const hn_grid_cell *cell) {
    const hn_ssm *d = h->j->net;
    const int width = hn_ssm_width(d);
    const int32_t *slot = hn_host_i32(h->j->grid->slot) + cell->slot;
    const float *b[HN_GRID];
    float g[HN_GRID];
    for (int done = 0; done < cell->slots; done += HN_GRID, from = to) {
        for (int r = 0; r < HN_GRID; r++) {
            const float *row = hn_host_inputs_of(&h->j->kept, h->seq, slot[done + r]), *x = row + h->number * d->head_dim;
            const float step = row[h->step];
            float *u = h->u + (size_t)r * (size_t)width;
            for (int c = 0; c < d->head_dim; c++) u[c] = step * x[c];
            for (int c = d->head_dim; c < width; c++) u[c] = 0;
            b[r] = row + h->b;
            g[r] = h->decay * step;
        }
        h->k->exps(g, HN_GRID);
        h->k->ssm_move(&(hn_ssm_move){.from = from, .to = to, .width = width, .dim = d->state, .n = HN_GRID, .b = b, .u = h->u, .g = g});
    }
}

/* Row i of the pass: y has what it reads of the state. */
static void add_own(const head *h, int i, const float *y) {
    const hn_ssm *d = h->j->net;
    const int n = sums_of(h->j, i), at = h->number * d->head_dim;
    const float *const *row = h->shared.row + i * HN_GRID_SUMS, *dot = h->shared.dot + (size_t)(i * d->groups + h->group) * HN_GRID_SUMS;
    const float *x[HN_GRID_SUMS + 1];
    float w[HN_GRID_SUMS + 1], sum = 0, *to = hn_host_row(h->j->m, i) + at;
    for (int r = 0; r < n; r++) w[r] = sum = fmaf(h->decay, row[r][h->step], sum);
    for (int r = 0; r < n; r++) w[r] = sum - w[r];
    w[n] = sum;
    h->k->exps(w, n + 1);
    const float whole = w[n];
    for (int r = 0; r < n; r++) {
        w[r] = w[r] * row[r][h->step] * dot[r];
        x[r] = row[r] + at;
    }
    w[n] = h->skip;
    x[n] = x[n - 1];
    for (int c = 0; c < d->head_dim; c++) to[c] = whole * y[c];
    h->k->add_rows(w, x, n + 1, d->head_dim, to);
}

/* A few rows of the pass that read a state; NULL: zero. */
static void read_state(const head *h, const float *s, const int32_t *rows, int n) {
    const hn_ssm *d = h->j->net;
    const int width = hn_ssm_width(d), c = hn_ssm_inner(d) + (d->groups + h->group) * d->state;
    const float *of[HN_GRID];
    for (int r = 0; r < n; r++) of[r] = hn_host_row(h->j->m, rows[r]) + c;
    if (s)
        h->k->ssm_read(&(hn_ssm_read){.s = s, .width = width, .dim = d->state, .n = n, .c = of, .y = h->y});
    else
        memset(h->y, 0, sizeof *h->y * (size_t)(n * width));
    for (int r = 0; r < n; r++) add_own(h, rows[r], h->y + (size_t)r * (size_t)width);
}

static void run_cells(const head *h) {
    const hn_state_grid *grid = h->j->grid;
    const int32_t *first = hn_host_i32(grid->first), *rows = hn_host_i32(grid->row);
    const hn_grid_cell *cells = (const hn_grid_cell *)hn_host(grid->cell);
    const float *state = h->state;
    for (int i = first[h->seq]; i < first[h->seq + 1]; i++) {
        const hn_grid_cell *c = &cells[i];
        const float *s = c->from == HN_WALK_NONE ? NULL : c->from == HN_WALK_STATE ? state : level_of(h, c->from);
        if (c->slots > 0) {
            float *to = c->to == HN_WALK_STATE ? h->next : level_of(h, c->to);
            add_to_state(h, s, to, c);
            s = to;
            if (c->to == HN_WALK_STATE) state = to;
        }
        for (int r = 0; r < c->rows; r += HN_GRID) read_state(h, s, rows + c->row + r, c->rows - r < HN_GRID ? c->rows - r : HN_GRID);
    }
}

static void run_head(const hn_exec *ex, const hn_ssm_job *j, int seq, int number) {
    const hn_ssm *d = j->net;
    const hn_state_pages *p = &j->states;
    const int unit = p->first + number, rows = j->rows->n.most;
    const size_t at = (size_t)p->stride * (size_t)seq + (size_t)(unit / p->page_units);
    unsigned char *pool = (unsigned char *)hn_host(p->pool) + p->unit_bytes * (size_t)(unit % p->page_units), *own = hn_host(j->scratch);
    own += shared_rows(rows) + shared_dots(d, rows) + own_bytes(d) * (size_t)ex->rank;
    head h = {.j = j, .k = hn_cpu(ex)->kernels, .shared = shared_of(j), .seq = seq, .number = number,
              .group = number / (d->heads / d->groups), .decay = hn_host_f32(d->decay)[number], .skip = hn_host_f32(d->skip)[number]};
    h.b = hn_ssm_inner(d) + h.group * d->state;
    h.step = hn_ssm_inner(d) + d->groups * d->state + number;
    h.state = (const float *)(const void *)(pool + p->page_bytes * (size_t)hn_host_i32(p->table)[at]);
    h.next = (float *)(void *)(pool + p->page_bytes * (size_t)hn_host_i32(p->next)[at]);
    h.levels = (float *)(void *)own;
    h.y = h.levels + HN_GRID_LEVELS * (size_t)hn_ssm_state(d);
    h.u = h.y + HN_GRID * hn_ssm_width(d);
    run_cells(&h);
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

static void finish_row(const hn_ssm_job *j, const struct hn_kernels *k, int i, int group) {
    const hn_ssm *d = j->net;
    const int inner = hn_ssm_inner(d) / d->groups, at = group * inner;
    float *z = hn_host_row(j->z, i) + at;
    k->swiglu(z, hn_host_row(j->m, i) + at, inner);
    hn_rmsnorm(k, z, hn_host_f32(d->norm.w) + at, inner, d->norm.eps, z);
}

void hn_cpu_ssm(const hn_exec *ex, const hn_ssm_job *j) {
    const struct hn_kernels *k = hn_cpu(ex)->kernels;
    const int heads = j->net->heads, groups = j->net->groups, n = hn_cpu_number(j->rows->n);
    assert(j->net->taps <= HN_MOST_TAPS && j->rows->slot.mem);
    keep_rows(ex, j);
    hn_cpu_barrier(ex);
    hn_claim c = hn_cpu_claim(ex, n * groups);
    for (int i; (i = hn_claim_next(&c)) >= 0;) multiply(j, k, i / groups, i % groups);
    hn_cpu_barrier(ex);
    c = hn_cpu_claim(ex, heads * hn_cpu_number(j->rows->n_seqs));
    for (int i; (i = hn_claim_next(&c)) >= 0;) run_head(ex, j, i / heads, i % heads);
    hn_cpu_barrier(ex);
    c = hn_cpu_claim(ex, n * groups);
    for (int i; (i = hn_claim_next(&c)) >= 0;) finish_row(j, k, i / groups, i % groups);
    hn_cpu_barrier(ex);
}
