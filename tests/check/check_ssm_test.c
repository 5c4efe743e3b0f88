/* SPDX-License-Identifier: Apache-2.0 */
/* check_ssm_test.c - the kernels of state space layers at every level against plain C, and the operation against the recurrence of
 * ops/ssm.h in double; and that a row has the same bits whatever else is in its pass: prompts in chunks of any size behind states that are
 * kept or made anew, and a tree whose rows come together or one by one, wherever its root lies in a cell of the grid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/check.h"
#include "ops/cpu_mem.h"
#include "ops/ssm.h"

static void kernels_once(const struct hn_kernels *k, const char *name) {
    const int width = 16 * check_int(1, 9), dim = check_int(1, 40), n = check_int(1, HN_GRID), count = check_int(1, 150);
    check_buf bs, by, bz, bu, bt, bc[HN_GRID + 1], bg, ba, bb;
    float *s = check_guarded(&bs, dim * width), *y = check_guarded(&by, n * width), *z = check_guarded(&bz, n * width),
          *u = check_guarded(&bu, n * width), *t = check_guarded(&bt, dim * width), *g = check_guarded(&bg, HN_GRID);
    const float *c[HN_GRID + 1];
    check_fill(s, dim * width, USUAL);
    check_fill(u, n * width, USUAL);
    check_fill(g, HN_GRID, USUAL);
    for (int i = 0; i < n; i++) {
        float *row = check_guarded(&bc[i], dim > count ? dim : count);
        check_fill(row, dim > count ? dim : count, check_any_kind());
        c[i] = row;
    }
    check_ref()->ssm_read(&(hn_ssm_read){s, width, dim, n, c, y});
    k->ssm_read(&(hn_ssm_read){s, width, dim, n, c, z});
    check_same_row(z, y, n * width, name, width);
    const float *from = check_int(0, 3) ? s : NULL;
    check_ref()->ssm_move(&(hn_ssm_move){from, t, width, dim, n, c, u, g});
    k->ssm_move(&(hn_ssm_move){from, s, width, dim, n, c, u, g}); /* in place */
    check_same_row(s, t, dim * width, name, width);
    float *a = check_guarded(&ba, count), *b = check_guarded(&bb, count);
    check_fill(a, count, USUAL);
    memcpy(b, a, (size_t)count * sizeof *a);
    check_ref()->add_rows(g, c, n, count, a);
    k->add_rows(g, c, n, count, b);
    check_same_row(b, a, count, name, count);
    for (int i = 0; i < n; i++) check_free(&bc[i]);
    check_buf *const all[] = {&bs, &by, &bz, &bu, &bt, &bg, &ba, &bb};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check_free(all[i]);
}

static void kernel_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (int round = 0; round < 100; round++) kernels_once(hn_kernels_get(isa), hn_isa_name(isa));
}

/* ---- the operation: one text of OLD committed rows at most and a tree of NEW rows behind them ------------------------------------ */

enum { OLD = 70, NEW = 40, SLOTS = 112, PAGE = 4, MOST = 400 };

typedef struct bench {
    check_ops c;
    hn_ssm net;
    hn_ssm_job job;
    hn_rows rows;
    hn_state_grid grid;
    int old, parent[NEW]; /* committed rows; of new ones, -1: the last committed one */
    float *m[OLD + NEW], *z[OLD + NEW], *dt[OLD + NEW]; /* inputs */
    float out[OLD + NEW][MOST];
    int held; /* rows in the state of the cache */
} bench;

static int32_t *ints(hn_buf b) { return hn_host(b); }

static void run_rank(void *arg, int rank, int ranks) {
    const bench *b = arg;
    const hn_exec ex = {b->c.o->ops, b->c.o, rank, ranks};
    b->c.o->ops->ssm(&ex, &b->job);
}

/* The path of a row: slots from position 0 on; returns how many. */
static int path_of(const bench *b, int row, int32_t *slots) {
    if (row < b->old) {
        for (int i = 0; i <= row; i++) slots[i] = i;
        return row + 1;
    }
    const int parent = b->parent[row - b->old], n = path_of(b, parent < 0 ? b->old - 1 : b->old + parent, slots);
    slots[n] = row;
    return n + 1;
}

/* Runs rows of the text in one pass, of which those below `committed` are committed. keep: rows that the state of the cache gets. Without
 * a state each row has a cell of its own from zero. */
static void pass(bench *b, const int *rows, int n, int committed, int keep, bool anew) {
    int32_t path[SLOTS];
    int n_path = 0, n_cells = 0, n_slots = 0;
    hn_grid_cell *cells = hn_host(b->grid.cell);
    for (int i = 0; i < n; i++) {
        const int length = path_of(b, rows[i], path), position = length - 1, a = hn_grid_of(position);
        memcpy(hn_host_row(b->job.m, i), b->m[rows[i]], sizeof(float) * (size_t)hn_ssm_channels(&b->net));
        memcpy(hn_host_row(b->job.z, i), b->z[rows[i]], sizeof(float) * (size_t)hn_ssm_inner(&b->net));
        memcpy(hn_host_row(b->job.dt, i), b->dt[rows[i]], sizeof(float) * (size_t)b->net.heads);
        ints(b->rows.slot)[i] = rows[i];
        ints(b->rows.seq)[i] = 0;
        ints(b->rows.position)[i] = position;
        ints(b->rows.path_start)[i] = n_path;
        ints(b->grid.row)[i] = i;
        for (int k = committed; k < length; k++) ints(b->rows.path_slots)[n_path++] = path[k];
        const bool own = anew || a < b->held;
        hn_grid_cell c = {.from = own || b->held == 0 ? HN_WALK_NONE : HN_WALK_STATE, .to = 1, .slot = n_slots, .row = i, .rows = 1};
        for (int k = own ? 0 : b->held; k < a; k++) ints(b->grid.slot)[n_slots++] = path[k];
        c.slots = n_slots - c.slot;
        cells[n_cells++] = c;
    }
    if (keep > b->held) {
        cells[n_cells++] = (hn_grid_cell){b->held ? HN_WALK_STATE : HN_WALK_NONE, HN_WALK_STATE, n_slots, keep - b->held, 0, 0};
        for (int k = b->held; k < keep; k++) ints(b->grid.slot)[n_slots++] = k;
        b->held = keep;
    }
    ints(b->grid.first)[1] = n_cells;
    ints(b->rows.committed)[0] = committed;
    b->rows.n = check_number(n);
    hn_pool_run(b->c.pool, run_rank, b);
    for (int i = 0; i < n; i++) memcpy(b->out[rows[i]], hn_host_row(b->job.z, i), sizeof(float) * (size_t)hn_ssm_inner(&b->net));
}

/* Of all taps of the rows of a path the last one's numbers after the convolution, in double. */
static void convolved(const bench *b, const int32_t *path, int at, double *u) {
    for (int c = 0; c < hn_ssm_channels(&b->net); c++) {
        double sum = b->net.conv_bias.mem ? (double)hn_host_f32(b->net.conv_bias)[c] : 0;
        for (int t = 0; t < b->net.taps; t++) {
            const int k = at - b->net.taps + 1 + t;
            if (k >= 0) sum += (double)hn_host_f32(b->net.conv)[t * hn_ssm_channels(&b->net) + c] * (double)b->m[path[k]][c];
        }
        u[c] = sum / (1 + exp(-sum));
    }
}

static void check_row(const bench *b, int row) {
    const hn_ssm *d = &b->net;
    const int inner = hn_ssm_inner(d), n_state = d->state * d->head_dim;
    static double u[MOST], y[MOST], state[MOST * 40];
    int32_t path[SLOTS];
    const int length = path_of(b, row, path);
    memset(state, 0, sizeof state);
    for (int at = 0; at < length; at++) {
        convolved(b, path, at, u);
        for (int h = 0; h < d->heads; h++) {
            const int g = h / (d->heads / d->groups);
            const double step = fmin(fmax(log1p(exp((double)(b->dt[path[at]][h] + hn_host_f32(d->dt)[h]))), (double)d->least),
                                     (double)d->most);
            const double a = exp((double)hn_host_f32(d->decay)[h] * step);
            for (int p = 0; p < d->head_dim; p++) {
                const double x = u[h * d->head_dim + p];
                double sum = 0;
                for (int k = 0; k < d->state; k++) {
                    double *s = &state[h * n_state + p * d->state + k];
                    *s = a * *s + step * x * u[inner + g * d->state + k];
                    sum += *s * u[inner + (d->groups + g) * d->state + k];
                }
                y[h * d->head_dim + p] = sum + (double)hn_host_f32(d->skip)[h] * x;
            }
        }
    }
    for (int g = 0; g < d->groups; g++) {
        const int width = inner / d->groups, from = g * width;
        double squares = 0;
        for (int c = from; c < from + width; c++) {
            const double z = (double)b->z[row][c];
            y[c] *= z / (1 + exp(-z));
            squares += y[c] * y[c];
        }
        const double root = sqrt(squares / width + (double)d->norm.eps);
        for (int c = from; c < from + width; c++) {
            const double weight = fabs((double)hn_host_f32(d->norm.w)[c]), want = y[c] / root * (double)hn_host_f32(d->norm.w)[c];
            assert_true(fabs((double)b->out[row][c] - want) <= 2e-5 * (1 + fabs(want) + weight / root));
        }
    }
}

static void chain(bench *b, int most) {
    for (int done = 0, n; done < b->old; done += n) {
        int rows[OLD];
        n = check_int(1, most) < b->old - done ? check_int(1, most) : b->old - done;
        if (n > b->old - done) n = b->old - done;
        for (int i = 0; i < n; i++) rows[i] = done + i;
        pass(b, rows, n, done, most == OLD ? 0 : hn_grid_of(done), false);
    }
}

static void one_operation(int old) {
    static bench b;
    memset(&b, 0, sizeof b);
    b.c = check_open(check_int(1, 4), hn_isa_best(), false);
    hn_backend *o = b.c.o;
    const int groups = check_int(1, 3), heads = groups * check_int(1, 3), dim = check_int(1, 21), n_state = check_int(1, 24);
    b.net = (hn_ssm){.heads = heads, .head_dim = dim, .groups = groups, .state = n_state, .taps = check_int(1, 5),
                     .least = check_int(0, 1) ? 0 : 0.5f, .most = check_int(0, 1) ? 3.0e38f : 1.2f};
    const int channels = hn_ssm_channels(&b.net), inner = hn_ssm_inner(&b.net), kept = hn_ssm_kept(&b.net);
    b.net.conv = check_put_random(o, b.net.taps * channels);
    if (check_int(0, 1)) b.net.conv_bias = check_put_random(o, channels);
    b.net.decay = check_put_random(o, heads);
    for (int h = 0; h < heads; h++) hn_host_f32(b.net.decay)[h] = -fabsf(hn_host_f32(b.net.decay)[h]) - 0.01f;
    b.net.dt = check_put_random(o, heads);
    b.net.skip = check_put_random(o, heads);
    b.net.norm = (hn_norm){.w = check_put_random(o, inner), .eps = 1e-5f, .kind = HN_RMS_NORM};
    b.old = old;
    for (int i = 0; i < NEW; i++) b.parent[i] = i == 0 ? -1 : check_int(0, 2) ? i - 1 : check_int(-1, i - 1);
    static float in[OLD + NEW][3][MOST];
    for (int i = 0; i < OLD + NEW; i++) {
        for (int k = 0; k < 3; k++) check_fill(in[i][k], MOST, USUAL);
        b.m[i] = in[i][0];
        b.z[i] = in[i][1];
        b.dt[i] = in[i][2];
    }
    const int most_rows = OLD > NEW ? OLD : NEW, units = (int)(sizeof(float) * (size_t)hn_ssm_state(&b.net));
    b.rows = (hn_rows){.n_seqs = check_number(1), .slot = check_mem(o, 4 * SLOTS), .seq = check_mem(o, 4 * SLOTS),
                       .position = check_mem(o, 4 * SLOTS), .path_start = check_mem(o, 4 * SLOTS),
                       .path_slots = check_mem(o, 4 * SLOTS * SLOTS), .committed = check_mem(o, 4), .direct = check_mem(o, 4)};
    b.grid = (hn_state_grid){check_mem(o, sizeof(hn_grid_cell) * 2 * SLOTS), check_mem(o, 8), check_mem(o, 4 * SLOTS * SLOTS),
                             check_mem(o, 4 * SLOTS)};
    const hn_buf table = check_mem(o, 4 * SLOTS), pages = check_mem(o, sizeof(int32_t) * (size_t)heads);
    for (int i = 0; i < SLOTS / PAGE; i++) ints(table)[i] = (i * 5 + 3) % (SLOTS / PAGE);
    for (int i = 0; i < heads; i++) ints(pages)[i] = heads - 1 - i;
    ints(b.grid.first)[0] = ints(b.rows.direct)[0] = 0;
    const size_t m_row = sizeof(float) * (size_t)channels, kept_row = sizeof(float) * (size_t)kept;
    b.job = (hn_ssm_job){
        .net = &b.net, .rows = &b.rows, .grid = &b.grid,
        .inputs = {check_mem(o, m_row * SLOTS), table, m_row * PAGE, m_row, 0, PAGE, SLOTS / PAGE},
        .kept = {check_mem(o, kept_row * SLOTS), table, kept_row * PAGE, kept_row, 0, PAGE, SLOTS / PAGE},
        .states = {check_mem(o, (size_t)(units * heads)), pages, pages, (size_t)units, (size_t)units, 0, 1, heads},
        .z = {check_mem(o, sizeof(float) * (size_t)(most_rows * inner)), inner, inner},
        .m = {check_mem(o, sizeof(float) * (size_t)(most_rows * channels)), channels, channels},
        .dt = {check_mem(o, sizeof(float) * (size_t)(most_rows * heads)), heads, heads},
        .scratch = check_mem(o, o->ssm_scratch(o, &b.net, most_rows))};
    static float first[OLD + NEW][MOST];
    int rows[NEW];
    chain(&b, OLD);
    for (int i = 0; i < NEW; i++) rows[i] = old + i;
    pass(&b, rows, NEW, old, 0, true);
    memcpy(first, b.out, sizeof first);
    for (int i = 0; i < old + NEW; i++) check_row(&b, i);
    b.held = 0;
    chain(&b, 19); /* other chunks, behind a state */
    for (int i = 0; i < NEW; i++) pass(&b, &rows[i], 1, old, hn_grid_of(old), false);
    for (int i = 0; i < old + NEW; i++) assert_memory_equal(first[i], b.out[i], sizeof(float) * (size_t)inner);
    const hn_buf all[] = {b.net.conv, b.net.conv_bias, b.net.decay, b.net.dt, b.net.skip, b.net.norm.w, b.rows.slot, b.rows.seq,
                          b.rows.position, b.rows.path_start, b.rows.path_slots, b.rows.committed, b.rows.direct, b.grid.cell,
                          b.grid.first, b.grid.slot, b.grid.row, table, pages, b.job.inputs.pool, b.job.kept.pool, b.job.states.pool,
                          b.job.z.at, b.job.m.at, b.job.dt.at, b.job.scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].mem) o->mem_free(o, all[i].mem);
    check_close(&b.c);
}

static void operation_test(void **state HN_UNUSED) {
    for (int old = 1; old <= OLD; old++) one_operation(old);
}

int main(void) {
    check_seed();
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernel_test), cmocka_unit_test(operation_test)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
