/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_delta.c - gated delta nets on the CPU: a value head of a sequence at a time, from the convolution to the gated norm.
 *
 * A head's state is read once, 64 columns at a time, which stay in the L1 cache for all rows. Ranks claim heads; inputs
 * that several heads share are computed by each: a hundredth of the work, and no barrier. */
#include "ops/delta.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "ops/cpu_mem.h"
#include "ops/kernels.h"

#define L2_EPS 1e-6f

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static int pad16(int n) {
    return (n + 15) & ~15;
}

/* Floats of a step: k | q | v | out, each a multiple of 16. */
static int step_floats(const hn_delta *d) {
    return 2 * pad16(d->key_dim) + 2 * pad16(d->value_dim);
}

static int level_floats(const hn_delta *d) {
    const int cols = pad16(d->value_dim);
    return d->key_dim * (cols < HN_STATE_COLS ? cols : HN_STATE_COLS);
}

/* Bytes of a rank, whole cache lines. */
static size_t scratch_bytes(const hn_delta *d) {
    const size_t steps = (size_t)HN_WALK_STEPS * (size_t)step_floats(d), levels = (size_t)HN_WALK_LEVELS * (size_t)level_floats(d);
    return (sizeof(float) * (steps + levels) + 63) & ~(size_t)63;
}

size_t hn_cpu_delta_scratch(const hn_backend *b, const hn_delta *d) { return scratch_bytes(d) * hn_cpu_threads(b); }

/* ---- a head ------------------------------------------------------------------------------------------------------ */

/* One value head of one sequence. */
typedef struct head {
    const hn_delta_job *j;
    const struct hn_kernels *k;
    int seq, number, key;             /* of the value head, and of its key head */
    const hn_walk_step *step;
    int n;
    const int32_t *pages;             /* of inputs */
    const float *state;               /* in the cache */
    float *next;                      /* where it is written: may be the same place */
    float *rows;                      /* [n][step_floats] */
    float *levels;
    float g[HN_WALK_STEPS], beta[HN_WALK_STEPS], kq[HN_WALK_STEPS];
} head;

/* The inputs at a slot. */
static float *inputs_at(const head *h, int slot) { return hn_host_inputs(&h->j->inputs, h->pages, slot); }

/* m of a row, in the pass or in the cache; NULL: there is none. */
static const float *m_of(const head *h, int32_t row) {
    if (row == HN_WALK_NONE) return NULL;
    return row < 0 ? inputs_at(h, -2 - row) : hn_host_row(h->j->m, row);
}

static const float *own_m(const head *h, const hn_walk_step *s) {
    return m_of(h, s->row < 0 ? hn_walk_slot(s->slot) : s->row);
}

/* Whether this head stores the inputs that the heads of its key head share. */
static bool stores_keys(const head *h) {
    const hn_delta *d = h->j->net;
    return d->tiled ? h->number < d->key_heads : h->number % (d->value_heads / d->key_heads) == 0;
}

/* The gates of step i: computed for a row of the pass, and stored in the cache with its m. */
static void read_gates(head *h, int i) {
    const hn_delta_job *j = h->j;
    const hn_delta *d = j->net;
    const hn_walk_step *s = &h->step[i];
    const int channels = hn_delta_channels(d), keys = hn_delta_keys(d);
    float *at = inputs_at(h, s->slot);
    if (s->row < 0) {
        h->beta[i] = at[channels + h->number];
        h->g[i] = at[channels + d->value_heads + h->number];
        return;
    }
    const double x = (double)(hn_host_row(j->a, s->row)[h->number] + hn_host_f32(d->dt)[h->number]);
    h->g[i] = (float)exp((double)hn_host_f32(d->decay)[h->number] * hn_softplus(x));
    h->beta[i] = 1 / (1 + hn_exp(-hn_host_row(j->b, s->row)[h->number]));
    at[channels + h->number] = h->beta[i];
    at[channels + d->value_heads + h->number] = h->g[i];
    const float *m = own_m(h, s);
    const size_t value = (size_t)(2 * keys + h->number * d->value_dim), key = (size_t)(h->key * d->key_dim);
    memcpy(at + value, m + value, sizeof *m * (size_t)d->value_dim);
    if (!stores_keys(h)) return;
    memcpy(at + key, m + key, sizeof *m * (size_t)d->key_dim);
    memcpy(at + keys + key, m + keys + key, sizeof *m * (size_t)d->key_dim);
}

/* `count` channels from `first` on of step i after the convolution. */
static void convolve(const head *h, int i, int first, int count, float *y) {
    const hn_delta *d = h->j->net;
    const hn_walk_step *s = &h->step[i];
    const float *m[HN_MOST_TAPS];
    for (int t = 0; t < d->taps; t++) {
        const float *row = t == d->taps - 1 ? own_m(h, s) : m_of(h, s->before[d->taps - 2 - t]);
        m[t] = row ? row + first : NULL;
    }
    h->k->convolve(m, d->taps, hn_host_f32(d->conv) + first, hn_delta_channels(d), NULL, count, y);
}

/* x / sqrt(its squares + eps) * scale */
static void make_unit(const head *h, float *x, int dim, double scale) {
    const float r = h->k->inverse_rms(x, dim, L2_EPS / (float)dim);
    h->k->scale(x, x, dim, r * (float)(scale / sqrt((double)dim)));
}

/* k, q and v of all steps. */
static void make_rows(head *h) {
    const hn_delta *d = h->j->net;
    const int keys = hn_delta_keys(d), key = pad16(d->key_dim);
    for (int i = 0; i < h->n; i++) {
        float *k = h->rows + (size_t)step_floats(d) * (size_t)i, *q = k + key, *v = q + key;
        read_gates(h, i);
        convolve(h, i, keys + h->key * d->key_dim, d->key_dim, k);
        make_unit(h, k, d->key_dim, 1);
        convolve(h, i, 2 * keys + h->number * d->value_dim, d->value_dim, v);
        memset(v + d->value_dim, 0, sizeof *v * (size_t)(pad16(d->value_dim) - d->value_dim));
        if (h->step[i].row < 0) continue;
        convolve(h, i, h->key * d->key_dim, d->key_dim, q);
        make_unit(h, q, d->key_dim, 1 / sqrt((double)d->key_dim));
        h->kq[i] = h->k->dot(k, q, d->key_dim);
    }
}

/* All steps over one panel of columns. */
static void walk_columns(const head *h, int first) {
    const hn_delta *d = h->j->net;
    const int key = pad16(d->key_dim), left = pad16(d->value_dim) - first, width = left < HN_STATE_COLS ? left : HN_STATE_COLS;
    const float *state = h->state + (size_t)d->key_dim * (size_t)first;
    float *next = h->next + (size_t)d->key_dim * (size_t)first;
    if (hn_host_i32(h->j->walk->fresh)[h->seq]) {
        memset(next, 0, sizeof *next * (size_t)(d->key_dim * width));
        state = next;
    }
    for (int i = 0; i < h->n; i++) {
        const hn_walk_step *s = &h->step[i];
        float *k = h->rows + (size_t)step_floats(d) * (size_t)i, *q = k + key, *v = q + key;
        const size_t level = (size_t)level_floats(d);
        const hn_delta_step one = {.from = s->from ? h->levels + level * (size_t)(s->from - 1) : state,
                                   .to = s->to < 0 ? NULL : s->to ? h->levels + level * (size_t)(s->to - 1) : next,
                                   .width = width, .dim = d->key_dim, .k = k, .q = s->row < 0 ? NULL : q, .v = v + first,
                                   .o = v + pad16(d->value_dim) + first, .g = h->g[i], .beta = h->beta[i], .kq = h->kq[i]};
        h->k->delta_step(&one);
        if (s->to == HN_WALK_STATE) state = next;
    }
}

/* y = silu(z) * rmsnorm(out), in place of z. */
static void finish_rows(const head *h) {
    const hn_delta *d = h->j->net;
    for (int i = 0; i < h->n; i++) {
        float *out = h->rows + (size_t)step_floats(d) * (size_t)i + 2 * pad16(d->key_dim) + pad16(d->value_dim);
        if (h->step[i].row < 0) continue;
        hn_rmsnorm(h->k, out, hn_host_f32(d->norm.w), d->value_dim, d->norm.eps, out);
        h->k->swiglu(hn_host_row(h->j->z, h->step[i].row) + h->number * d->value_dim, out, d->value_dim);
    }
}

static void run_head(const hn_exec *ex, const hn_delta_job *j, int seq, int number) {
    const hn_delta *d = j->net;
    const hn_state_pages *p = &j->states;
    const int32_t *first = hn_host_i32(j->walk->first);
    const int unit = p->first + number;
    const size_t at = (size_t)p->stride * (size_t)seq + (size_t)(unit / p->page_units);
    unsigned char *pool = (unsigned char *)hn_host(p->pool) + p->unit_bytes * (size_t)(unit % p->page_units);
    head h = {.j = j, .k = hn_cpu(ex)->kernels, .seq = seq, .number = number, .n = first[seq + 1] - first[seq]};
    h.key = d->tiled ? number % d->key_heads : number / (d->value_heads / d->key_heads);
    h.step = (const hn_walk_step *)hn_host(j->walk->step) + first[seq];
    h.pages = hn_host_i32(j->inputs.table) + (size_t)j->inputs.stride * (size_t)seq;
    h.state = (const float *)(const void *)(pool + p->page_bytes * (size_t)hn_host_i32(p->table)[at]);
    h.next = (float *)(void *)(pool + p->page_bytes * (size_t)hn_host_i32(p->next)[at]);
    h.levels = (float *)(void *)((unsigned char *)hn_host(j->scratch) + scratch_bytes(d) * (size_t)ex->rank);
    h.rows = h.levels + (size_t)HN_WALK_LEVELS * (size_t)level_floats(d);
    assert(h.n <= HN_WALK_STEPS);
    make_rows(&h);
    for (int c = 0; c < d->value_dim; c += HN_STATE_COLS) walk_columns(&h, c);
    finish_rows(&h);
}

void hn_cpu_delta(const hn_exec *ex, const hn_delta_job *j) {
    const int heads = j->net->value_heads;
    hn_claim c = hn_cpu_claim(ex, heads * hn_cpu_number(j->n_seqs));
    for (int i; (i = hn_claim_next(&c)) >= 0;) run_head(ex, j, i / heads, i % heads);
    hn_cpu_barrier(ex);
}
