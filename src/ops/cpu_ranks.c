/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_ranks.c - the CPU as one rank of some (docs/machines.md): the operations that join what each has computed. Each output was summed by
 * one rank, in the order that one process has, and is copied: no sum crosses ranks, so no bit depends on how many there are.
 *
 * Slices are packed rank after rank into a room of all, each [n][columns]; rank 0 of the workers exchanges them, and all unpack. A Q8 row
 * goes as codes and scales alone, 72 bytes for 64 inputs: their sums are made again from the codes, as `quantise` makes them. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ops/cpu_mem.h"
#include "ops/kernels.h"

typedef struct ranks_backend {
    hn_cpu_backend cpu; /* first */
    hn_ops ops;
} ranks_backend;

enum { Q8_BYTES = HN_GROUP + 2 * (int)sizeof(float) }; /* of a group, as it goes */

/* ---- where the parts are ------------------------------------------------------------------------------------------------- */

/* The parts of an exchange: bytes of a row of each rank, and where its rows begin in the room. */
typedef struct pieces {
    int row[HN_MOST_RANKS], at[HN_MOST_RANKS], bytes[HN_MOST_RANKS];
} pieces;

static pieces pieces_of(const hn_slices *s, int n, int (*row_bytes)(int cols)) {
    pieces p = {0};
    for (int r = 0, at = 0; r < s->ranks; r++) {
        p.row[r] = row_bytes(hn_slice_count(s, r));
        p.bytes[r] = n * p.row[r];
        p.at[r] = at;
        at += p.bytes[r];
    }
    return p;
}

static unsigned char *part_row(const pieces *p, hn_buf room, int rank, int row) {
    return (unsigned char *)hn_host(room) + p->at[rank] + (size_t)row * (size_t)p->row[rank];
}

/* Once all workers have packed; then they may unpack. */
static void exchange(const hn_exec *ex, const pieces *p, hn_buf room) {
    hn_link *l = ex->backend->link;
    hn_cpu_barrier(ex);
    if (ex->rank == 0) l->exchange(l, hn_host(room), p->at, p->bytes);
    hn_cpu_barrier(ex);
}

/* ---- columns of numbers -------------------------------------------------------------------------------------------------------- */

static int float_bytes(int cols) { return cols * (int)sizeof(float); }

static void join(const hn_exec *ex, hn_count count, const hn_slices *of, hn_matrix y, hn_buf room) {
    const int n = hn_cpu_number(count);
    const pieces p = pieces_of(of, n, float_bytes);
    int from, to;
    assert(of->stripes == 1 && y.cols == of->first[of->ranks]);
    hn_share(ex, n, &from, &to);
    for (int i = from; i < to; i++)
        memcpy(part_row(&p, room, of->rank, i), hn_host_row(y, i) + hn_own_first(of), (size_t)p.row[of->rank]);
    exchange(ex, &p, room);
    for (int i = from; i < to; i++)
        for (int r = 0; r < of->ranks; r++)
            if (r != of->rank) memcpy(hn_host_row(y, i) + of->first[r], part_row(&p, room, r, i), (size_t)p.row[r]);
    hn_cpu_barrier(ex);
}

/* ---- inputs of products ---------------------------------------------------------------------------------------------------------- */

static int q8_bytes(int cols) { return hn_act_groups(cols) * Q8_BYTES; }
static int bf16_bytes(int cols) { return cols * (int)sizeof(uint16_t); }

static hn_q8_group *q8_row(const hn_act *a, int row) {
    return (hn_q8_group *)(void *)((unsigned char *)hn_host(a->data) + hn_act_q8_off(a->in, row));
}
static hn_q8_parts *parts_row(const hn_act *a, int row) {
    return (hn_q8_parts *)(void *)((unsigned char *)(void *)q8_row(a, row) + hn_act_parts_off(a->in));
}
static float *f32_row(const hn_act *a, int row) {
    return (float *)(void *)((unsigned char *)hn_host(a->data) + hn_act_f32_off(a->in, a->max_rows, row));
}
static uint16_t *bf16_row(const hn_act *a, int row) {
    return (uint16_t *)(void *)((unsigned char *)hn_host(a->data) + hn_act_bf16_off(a->in, a->max_rows, row));
}

static void pack_q8(const hn_act *a, int row, unsigned char *to) {
    const hn_q8_group *g = q8_row(a, row);
    for (int i = 0; i < hn_act_groups(a->in); i++, to += Q8_BYTES) {
        memcpy(to, g[i].q, HN_GROUP);
        memcpy(to + HN_GROUP, g[i].d, sizeof g[i].d);
    }
}

/* The sums of a group's codes, by its blocks and parts. */
static void sum_codes(hn_q8_group *g, hn_q8_parts *parts) {
    for (int b = 0; b < 2; b++) {
        int32_t part[2] = {0, 0};
        for (int i = 0; i < HN_BLOCK; i++) part[i / HN_PART] += g->q[b * HN_BLOCK + i];
        hn_q8_set_sums(g, parts, b, part);
    }
}

static void unpack_q8(const hn_act *a, int row, int first, int cols, const unsigned char *from) {
    hn_q8_group *g = q8_row(a, row) + first / HN_GROUP;
    hn_q8_parts *parts = parts_row(a, row) + first / HN_GROUP;
    for (int i = 0; i < hn_act_groups(cols); i++, from += Q8_BYTES) {
        memcpy(g[i].q, from, HN_GROUP);
        memcpy(g[i].d, from + HN_GROUP, sizeof g[i].d);
        sum_codes(&g[i], &parts[i]);
    }
}

/* Columns from `first` on of a row in one form; returns what follows them where they came from. */
static const unsigned char *unpack(const hn_act *whole, int form, int row, int first, int cols, const unsigned char *from) {
    if (form == HN_ACT_Q8) {
        unpack_q8(whole, row, first, cols, from);
        return from + q8_bytes(cols);
    }
    if (form == HN_ACT_BF16) {
        memcpy(bf16_row(whole, row) + first, from, (size_t)bf16_bytes(cols));
        return from + bf16_bytes(cols);
    }
    memcpy(f32_row(whole, row) + first, from, (size_t)float_bytes(cols));
    return from + float_bytes(cols);
}

/* One form of all rows. */
static void join_form(const hn_exec *ex, int n, const hn_slices *of, const hn_act *own, const hn_act *whole, int form, hn_buf room) {
    const pieces p = pieces_of(of, n, form == HN_ACT_Q8 ? q8_bytes : form == HN_ACT_BF16 ? bf16_bytes : float_bytes);
    int from, to;
    hn_share(ex, n, &from, &to);
    for (int i = from; i < to; i++) {
        unsigned char *at = part_row(&p, room, of->rank, i);
        if (form == HN_ACT_Q8) pack_q8(own, i, at);
        else memcpy(at, form == HN_ACT_BF16 ? (void *)bf16_row(own, i) : f32_row(own, i), (size_t)p.row[of->rank]);
    }
    exchange(ex, &p, room);
    for (int i = from; i < to; i++)
        for (int r = 0; r < of->ranks; r++) {
            const unsigned char *at = part_row(&p, room, r, i);
            for (int k = 0; k < of->stripes; k++)
                at = unpack(whole, form, i, k * of->first[of->ranks] + of->first[r], of->first[r + 1] - of->first[r], at);
        }
    if (form == HN_ACT_BF16 && whole->in % 2)
        for (int i = from; i < to; i++) bf16_row(whole, i)[whole->in] = 0;
    hn_cpu_barrier(ex); /* nobody packs another form before all have read this one */
}

static void join_act(const hn_exec *ex, hn_count count, int each, const hn_slices *of, hn_act own, hn_act whole, hn_buf room) {
    static const int forms[] = {HN_ACT_Q8, HN_ACT_BF16, HN_ACT_F32};
    const int n = hn_cpu_number(count) * each, joined = of->groups ? whole.forms : HN_ACT_F32;
    assert(own.in == hn_own_count(of) && whole.in == hn_slices_width(of) && (own.forms & joined) == joined);
    for (int k = 0; k < 3; k++)
        if (joined & forms[k]) join_form(ex, n, of, &own, &whole, forms[k], room);
    int from, to;
    hn_share(ex, n, &from, &to);
    for (int i = from; i < to && joined != whole.forms; i++)
        hn_cpu_put_inputs(hn_cpu(ex), f32_row(&whole, i), whole.in, &whole, whole.forms & ~HN_ACT_F32, i, 0);
    hn_cpu_barrier(ex);
}

/* ---- outputs ------------------------------------------------------------------------------------------------------------------------ */

/* The best of a row's lists, one after another of the ranks: value descending, ties to the lower id, none (-1) at the end. */
static void merge_lists(const hn_slices *of, int k, size_t apart, const int32_t *id, const float *value, int32_t *best, float *best_value) {
    int at[HN_MOST_RANKS] = {0};
    for (int i = 0; i < k; i++) {
        int from = -1;
        for (int r = 0; r < of->ranks; r++) {
            if (at[r] == k || id[(size_t)r * apart + (size_t)at[r]] < 0) continue;
            /* slices ascend, and so do ids: the first of equal values is that of the lower */
            if (from < 0 || value[(size_t)r * apart + (size_t)at[r]] > value[(size_t)from * apart + (size_t)at[from]]) from = r;
        }
        best[i] = from < 0 ? -1 : id[(size_t)from * apart + (size_t)at[from]];
        best_value[i] = from < 0 ? NAN : value[(size_t)from * apart + (size_t)at[from]];
        if (from >= 0) at[from]++;
    }
}

/* A list of each rank, [n][k], to the leader's room. */
static void bring_lists(hn_link *l, const hn_slices *of, size_t numbers, const void *own, void *all) {
    int at[HN_MOST_RANKS], bytes[HN_MOST_RANKS];
    for (int r = 0; r < of->ranks; r++) {
        bytes[r] = (int)(sizeof(float) * numbers);
        at[r] = r * bytes[r];
    }
    if (of->rank == 0) memcpy(all, own, sizeof(float) * numbers);
    l->bring(l, own, all, at, bytes);
}

static void bring_rows(hn_link *l, const hn_slices *of, int n, hn_matrix y) {
    int at[HN_MOST_RANKS], bytes[HN_MOST_RANKS];
    for (int r = 0; r < of->ranks; r++) {
        at[r] = of->first[r] * (int)sizeof(float);
        bytes[r] = (of->first[r + 1] - of->first[r]) * (int)sizeof(float);
    }
    for (int i = 0; i < n; i++) l->bring(l, hn_host_row(y, i) + hn_own_first(of), hn_host_row(y, i), at, bytes);
}

static void join_top(const hn_exec *ex, hn_count count, const hn_slices *of, const hn_output_rows *out, const hn_top *top, hn_buf room) {
    const int n = hn_cpu_number(count), k = top->k;
    const size_t numbers = (size_t)n * (size_t)k;
    hn_link *l = ex->backend->link;
    if (ex->rank == 0) {
        int32_t *id = hn_host(top->id), *ids = hn_host(room);
        float *value = hn_host_f32(top->value), *values = (float *)(void *)(ids + numbers * (size_t)of->ranks);
        for (size_t i = 0; i < numbers; i++) {
            if (hn_own_count(of) == 0) id[i] = -1;
            if (id[i] >= 0) id[i] += hn_own_first(of);
        }
        bring_lists(l, of, numbers, id, ids);
        bring_lists(l, of, numbers, value, values);
        bring_rows(l, of, hn_cpu_number(out->n_written), out->y);
        for (int i = 0; i < n && of->rank == 0; i++)
            merge_lists(of, k, numbers, ids + i * k, values + i * k, id + i * k, value + i * k);
    }
    hn_cpu_barrier(ex);
}

/* ---- the backend -------------------------------------------------------------------------------------------------------------------- */

static size_t join_room(const hn_backend *b, int max_rows, int cols, int top_rows, int k) {
    const size_t rows = sizeof(float) * (size_t)max_rows * ((size_t)cols + HN_GROUP * (size_t)b->link->ranks);
    const size_t lists = 2 * sizeof(float) * (size_t)top_rows * (size_t)k * (size_t)b->link->ranks;
    return rows > lists ? rows : lists;
}

hunch_status hn_ranks_backend_open(hn_backend **out, hn_link *link, hn_pool *pool, hn_isa isa, bool f32, hunch_error *err) {
    ranks_backend *r = hn_zalloc(1, sizeof *r);
    *out = NULL;
    if (!r) return hn_fail_memory(err, "a backend", sizeof *r);
    hn_cpu_backend_init(&r->cpu, pool, isa, f32);
    r->ops = *r->cpu.base.ops;
    r->ops.join = join;
    r->ops.join_act = join_act;
    r->ops.join_top = join_top;
    r->cpu.base.ops = &r->ops;
    r->cpu.base.link = link;
    r->cpu.base.join_room = join_room;
    *out = &r->cpu.base;
    return HUNCH_OK;
}
