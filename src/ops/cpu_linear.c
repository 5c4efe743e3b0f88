/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_linear.c - matrix products on the CPU: which strips a thread takes, and where their results go.
 *
 * The work is cut into units of neighbouring strips. Every rank owns one contiguous range of units, read as one
 * ascending stream, and when done claims units from the end of another's range (base/threads.h). What happens inside a
 * strip is a kernel's matter (kernels.h).
 */
#include <assert.h>

#include "ops/cpu_mem.h"
#include "ops/kernels.h"

/* How long a unit should take, about: long against a claim (some 10 ns), short against an operation and against 50 us,
 * the most that a thread should have to wait for another. From coarse rates of one core, which only shape the split. */
enum { UNIT_NS = 2000, CORE_BYTES_NS = 20, CORE_MACS_NS = 100, UNITS_A_RANK = 12 };

/* The matrices of a call and how they are cut. */
typedef struct split {
    int unit;                        /* strips a unit */
    int first_unit[HN_MAX_LINEAR + 1];
} split;

static int unit_strips(const hn_exec *ex, hn_dtype t, int in, int n, int strips) {
    size_t bytes = hn_strip_bytes(t, in), macs = (size_t)in * HN_STRIP * (size_t)n;
    size_t ns = bytes / CORE_BYTES_NS > macs / CORE_MACS_NS ? bytes / CORE_BYTES_NS : macs / CORE_MACS_NS;
    int by_time = ns >= UNIT_NS ? 1 : (int)(UNIT_NS / (ns + 1));
    int by_count = strips / (UNITS_A_RANK * ex->ranks);
    int unit = by_time < by_count ? by_time : by_count;
    return unit < 1 ? 1 : unit > 64 ? 64 : unit;
}

static split split_strips(const hn_exec *ex, int n, const hn_linear_out *outs, int n_outs) {
    int strips = 0;
    for (int i = 0; i < n_outs; i++) strips += hn_strips(outs[i].w->out);
    split s = {.unit = unit_strips(ex, outs[0].w->dtype, outs[0].w->in, n, strips)};
    for (int i = 0; i < n_outs; i++) {
        s.first_unit[i + 1] = s.first_unit[i] + (hn_strips(outs[i].w->out) + s.unit - 1) / s.unit;
    }
    return s;
}

/* The kernel of a matrix and the rows it reads. */
static hn_strips_fn *choose(const hn_ops *o, const hn_act *a, const hn_weight *w, hn_strips_job *j) {
    const unsigned char *base = hn_host(a->data);
    j->in = w->in;
    if (hn_cpu_act_forms(o, w->dtype) == HN_ACT_Q8) {
        j->x = base;
        j->x_stride = hn_act_q8_stride(a->in);
        return o->kernels->linear_q8[w->dtype];
    }
    j->x = base + hn_act_f32_off(a->in, a->max_rows, 0);
    j->x_stride = hn_act_f32_stride(a->in);
    return o->kernels->linear_f32[w->dtype];
}

/* A stored one is packed first, into the rank's place number `place`, which stays in its L2 cache. */
static const unsigned char *strip_at(const hn_exec *ex, const hn_weight *w, int strip, int place) {
    if (!w->stored.rows) return (const unsigned char *)hn_host(w->data) + w->strip_stride * (size_t)strip;
    const hn_ops *o = ex->ops;
    unsigned char *to = (unsigned char *)hn_host(o->strips) + o->strip_room * (size_t)(ex->rank * HN_RANK_STRIPS + place);
    assert(place < HN_RANK_STRIPS && hn_strip_bytes(w->dtype, w->in) <= o->strip_room);
    hn_pack_strip(w->dtype, w->out, w->in, w->stored.rows, w->stored.row_bytes,
                  hn_stored_factors(&w->stored, w->in, strip * HN_STRIP), strip * HN_STRIP, to);
    return to;
}

static int most_strips(const hn_weight *w) {
    return w->stored.rows ? HN_RANK_STRIPS : HN_CALL_STRIPS;
}

static int columns(const hn_weight *w, int strip) {
    int left = w->out - strip * HN_STRIP;
    return left < HN_STRIP ? left : HN_STRIP;
}

/* Strips [s, end) of one matrix. */
static void run_strips(const hn_exec *ex, int n, const hn_act *a, const hn_linear_out *out, int s, int end, bool add) {
    _Alignas(64) float c[HN_CALL_STRIPS * HN_MAX_ROWS * HN_STRIP];
    hn_strips_job j = {.n = n, .c = c};
    const hn_ops *o = ex->ops;
    hn_strips_fn *fn = choose(o, a, out->w, &j);
    const int most = most_strips(out->w);
    float *y = hn_host_f32(out->y);
    for (; s < end; s += j.strips) {
        j.strips = end - s < most ? end - s : most;
        for (int i = 0; i < j.strips; i++) j.w[i] = strip_at(ex, out->w, s + i, i);
        fn(&j);
        for (int i = 0; i < j.strips; i++) {
            o->kernels->store(c + i * n * HN_STRIP, n, y + (s + i) * HN_STRIP, out->ldy, columns(out->w, s + i), add);
        }
    }
}

void hn_cpu_linear(const hn_exec *ex, int n, hn_act a, const hn_linear_out *outs, int n_outs, bool add) {
    assert(n >= 1 && n <= HN_MAX_ROWS && n_outs >= 1 && n_outs <= HN_MAX_LINEAR);
    split s = split_strips(ex, n, outs, n_outs);
    hn_claim claim = hn_claim_begin(ex->ops->pool, ex->rank, s.first_unit[n_outs]);
    for (int unit; (unit = hn_claim_next(&claim)) >= 0;) {
        int m = 0;
        while (unit >= s.first_unit[m + 1]) m++;
        int first = (unit - s.first_unit[m]) * s.unit, strips = hn_strips(outs[m].w->out);
        int end = first + s.unit < strips ? first + s.unit : strips;
        run_strips(ex, n, &a, &outs[m], first, end, add);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

/* Strip pairs [s, end) of gate and up. */
static void run_pairs(const hn_exec *ex, int n, const hn_act *a, const hn_weight *gate, const hn_weight *up, float *y,
                      int ldy, int s, int end) {
    const hn_ops *o = ex->ops;
    _Alignas(64) float c[HN_CALL_STRIPS * HN_MAX_ROWS * HN_STRIP];
    bool same = gate->dtype == up->dtype;
    hn_strips_job jg = {.n = n, .c = c, .strips = same ? 2 : 1};
    hn_strips_job ju = {.n = n, .c = c + n * HN_STRIP, .strips = 1};
    hn_strips_fn *fg = choose(o, a, gate, &jg), *fu = choose(o, a, up, &ju);
    for (; s < end; s++) {
        jg.w[0] = strip_at(ex, gate, s, 0);
        jg.w[1] = ju.w[0] = strip_at(ex, up, s, 1);
        fg(&jg);
        if (!same) fu(&ju);
        o->kernels->store_glu(c, c + n * HN_STRIP, n, y + s * HN_STRIP, ldy, columns(gate, s));
    }
}

void hn_cpu_linear_glu(const hn_exec *ex, int n, hn_act a, const hn_weight *gate, const hn_weight *up, hn_buf y,
                       int ldy) {
    assert(n >= 1 && n <= HN_MAX_ROWS && gate->out == up->out && gate->in == up->in);
    int strips = hn_strips(gate->out);
    int unit = (unit_strips(ex, gate->dtype, gate->in, n, 2 * strips) + 1) / 2;
    hn_claim claim = hn_claim_begin(ex->ops->pool, ex->rank, (strips + unit - 1) / unit);
    for (int i; (i = hn_claim_next(&claim)) >= 0;) {
        int end = (i + 1) * unit < strips ? (i + 1) * unit : strips;
        run_pairs(ex, n, &a, gate, up, hn_host_f32(y), ldy, i * unit, end);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}
