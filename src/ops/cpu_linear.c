/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_linear.c - matrix products on the CPU: division of strips among threads, and places of the results.
 *
 * The work is cut into units of neighbouring strips. Every rank owns one contiguous range of units, read as one
 * ascending stream, and when done claims units from the end of another's range (base/threads.h). A strip is computed by
 * a kernel (kernels.h).
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "ops/cpu_linear.h"
#include "ops/kernels.h"

/* The approximate time of a unit: long compared with a claim (some 10 ns), short compared with an operation and with 50
 * us, the longest that a thread should wait for another. From rough rates of one core, which affect only the split. */
enum { UNIT_NS = 2000, CORE_BYTES_NS = 20, CORE_MACS_NS = 100, UNITS_A_RANK = 12 };

/* The matrices of a call and how they are cut. */
typedef struct split {
    int unit;                        /* strips a unit */
    int first_unit[HN_MAX_LINEAR + 1];
} split;

int hn_cpu_unit_strips(const hn_exec *ex, const hn_weight *w, int n, int strips) {
    size_t bytes = hn_strip_bytes(w->dtype, w->in), macs = (size_t)w->in * HN_STRIP * (size_t)n;
    size_t ns = bytes / CORE_BYTES_NS > macs / CORE_MACS_NS ? bytes / CORE_BYTES_NS : macs / CORE_MACS_NS;
    int by_time = ns >= UNIT_NS ? 1 : (int)(UNIT_NS / (ns + 1));
    int by_count = strips / (UNITS_A_RANK * ex->ranks);
    int unit = by_time < by_count ? by_time : by_count;
    return unit < 1 ? 1 : unit > 64 ? 64 : unit;
}

static split split_strips(const hn_exec *ex, int n, const hn_linear_out *outs, int n_outs) {
    int strips = 0;
    for (int i = 0; i < n_outs; i++) strips += hn_strips(outs[i].w->out);
    split s = {.unit = hn_cpu_unit_strips(ex, outs[0].w, n, strips)};
    for (int i = 0; i < n_outs; i++) {
        s.first_unit[i + 1] = s.first_unit[i] + (hn_strips(outs[i].w->out) + s.unit - 1) / s.unit;
    }
    return s;
}

int hn_cpu_weight_form(const hn_cpu_backend *o, const hn_weight *w) {
    return w->wide ? HN_ACT_F32 : hn_cpu_act_forms(&o->base, w->dtype);
}

/* The kernel of a matrix and the rows it reads, from row `first` of a on. */
static hn_strips_fn *choose(const hn_cpu_backend *o, const hn_act *a, int first, const hn_weight *w, hn_strips_job *j) {
    const unsigned char *base = hn_host(a->data);
    const int form = hn_cpu_weight_form(o, w);
    assert((a->forms & form) && a->in == w->in);
    j->in = w->in;
    if (form == HN_ACT_Q8) {
        j->x = base + hn_act_q8_off(a->in, first);
        j->x_stride = hn_act_q8_stride(a->in);
        return o->kernels->linear_q8[w->dtype];
    }
    if (form == HN_ACT_BF16) {
        j->x = base + hn_act_bf16_off(a->in, a->max_rows, first);
        j->x_stride = hn_act_bf16_stride(a->in);
        return o->kernels->linear_bf16;
    }
    j->x = base + hn_act_f32_off(a->in, a->max_rows, first);
    j->x_stride = hn_act_f32_stride(a->in);
    return o->kernels->linear_f32[w->dtype];
}

/* A stored strip is packed first, into the rank's buffer number `place`, which stays in its L2 cache. */
static const unsigned char *strip_at(const hn_exec *ex, const hn_weight *w, int expert, int strip, int place) {
    if (!hn_is_stored(w))
        return (const unsigned char *)hn_host(w->place.at) + w->place.step * (size_t)(expert * hn_strips(w->out) + strip);
    const hn_stored *from = w->each ? &w->each[expert] : &w->stored;
    unsigned char *to = (unsigned char *)hn_host(w->place.at) + w->place.step * (size_t)(ex->rank * HN_RANK_STRIPS + place);
    assert(place < HN_RANK_STRIPS && hn_strip_bytes(w->dtype, w->in) <= w->place.step);
    const int first = strip * HN_STRIP;
    const unsigned char *rows = (const unsigned char *)from->rows + from->row_bytes * (size_t)hn_run_row(from->runs, first);
    if (from->scales)
        hn_pack_parts(w->out, w->in, from, first, to);
    else
        hn_pack_strip(w->dtype, w->out - first, w->in, rows, from->row_bytes, hn_stored_factors(from, w->in, first), 0, to);
    return to;
}

static int most_strips(const hn_weight *w) {
    return hn_is_stored(w) ? HN_RANK_STRIPS : HN_CALL_STRIPS;
}

static int columns(const hn_weight *w, int strip) {
    int left = w->out - strip * HN_STRIP;
    return left < HN_STRIP ? left : HN_STRIP;
}

/* Multiplies some available strips with all rows, in as many calls as these need. y: row 0, column 0 of the first strip. */
static void run_rows(const hn_exec *ex, const hn_cpu_span *span, const hn_linear_out *out, int s, bool add, hn_strips_fn *fn,
                     hn_strips_job *j, float *c) {
    const hn_cpu_backend *o = hn_cpu(ex);
    const unsigned char *x = j->x;
    for (int first = 0; first < span->n; first += j->n) {
        j->n = span->n - first < HN_CALL_ROWS ? span->n - first : HN_CALL_ROWS;
        j->x = x + j->x_stride * (size_t)first;
        fn(j);
        float *y = hn_host_row(out->y, span->to + first) + s * HN_STRIP;
        for (int i = 0; i < j->strips; i++)
            o->kernels->store(c + i * j->n * HN_STRIP, j->n, y + i * HN_STRIP, out->y.ld, columns(out->w, s + i), add);
    }
    j->x = x;
}

void hn_cpu_run_strips(const hn_exec *ex, const hn_cpu_span *span, const hn_linear_out *out, int s, int end, bool add) {
    _Alignas(64) float c[HN_CALL_STRIPS * HN_CALL_ROWS * HN_STRIP];
    hn_strips_job j = {.c = c};
    hn_strips_fn *fn = choose(hn_cpu(ex), span->a, span->from, out->w, &j);
    const int most = most_strips(out->w);
    for (; s < end; s += j.strips) {
        j.strips = end - s < most ? end - s : most;
        for (int i = 0; i < j.strips; i++) j.w[i] = strip_at(ex, out->w, span->expert, s + i, i);
        run_rows(ex, span, out, s, add, fn, &j, c);
    }
}

void hn_cpu_linear(const hn_exec *ex, hn_count count, hn_act a, const hn_linear_out *outs, int n_outs, bool add) {
    const int n = hn_cpu_number(count);
    assert(n >= 1 && n <= a.max_rows && n_outs >= 1 && n_outs <= HN_MAX_LINEAR);
    const hn_cpu_span span = {.a = &a, .n = n};
    split s = split_strips(ex, n, outs, n_outs);
    hn_claim claim = hn_cpu_claim(ex, s.first_unit[n_outs]);
    for (int unit; (unit = hn_claim_next(&claim)) >= 0;) {
        int m = 0;
        while (unit >= s.first_unit[m + 1]) m++;
        int first = (unit - s.first_unit[m]) * s.unit, strips = hn_strips(outs[m].w->out);
        hn_cpu_run_strips(ex, &span, &outs[m], first, first + s.unit < strips ? first + s.unit : strips, add);
    }
    hn_cpu_barrier(ex);
}

enum { GROUP_STRIPS = HN_GROUP / HN_STRIP };

/* The unit of an expert for a strip of outputs from `first` on; c: n rows of gate, then n of up, [16] each. */
static void store_unit(const struct hn_kernels *k, const hn_expert_unit *unit, int expert, float *c, int n, int first, int cols, float *y) {
    float *up = c + n * HN_STRIP;
    if (unit->gelu) {
        k->geglu(c, up, n * HN_STRIP);
        k->store(c, n, y, HN_GROUP, cols, false);
        return;
    }
    if (unit->alpha == 0) {
        hn_cpu_limited_glu(k, c, up, n * HN_STRIP, unit->limit);
        k->store(c, n, y, HN_GROUP, cols, false);
        return;
    }
    const size_t at = (size_t)expert * (size_t)unit->ld_bias + (size_t)first;
    for (int r = 0; r < n; r++) {
        k->add(c + r * HN_STRIP, hn_host_f32(unit->gate_bias) + at, cols);
        k->add(up + r * HN_STRIP, hn_host_f32(unit->up_bias) + at, cols);
    }
    k->clamped_glu(c, up, n * HN_STRIP, unit->alpha, unit->limit);
    k->store(c, n, y, HN_GROUP, cols, false);
}

/* Strip pairs [s, end) of gate and up, at most a group of outputs; y [n][64]. */
static void run_pairs(const hn_exec *ex, const hn_cpu_span *span, const hn_weight *gate, const hn_weight *up, const hn_expert_unit *unit,
                      int s, int end, float *y) {
    const hn_cpu_backend *o = hn_cpu(ex);
    const int n = span->n;
    _Alignas(64) float c[2 * HN_CALL_ROWS * HN_STRIP];
    bool same = gate->dtype == up->dtype;
    hn_strips_job jg = {.n = n, .c = c, .strips = same ? 2 : 1};
    hn_strips_job ju = {.n = n, .c = c + n * HN_STRIP, .strips = 1};
    hn_strips_fn *fg = choose(o, span->a, span->from, gate, &jg), *fu = choose(o, span->a, span->from, up, &ju);
    for (; s < end; s++, y += HN_STRIP) {
        jg.w[0] = strip_at(ex, gate, span->expert, s, 0);
        jg.w[1] = ju.w[0] = strip_at(ex, up, span->expert, s, 1);
        fg(&jg);
        if (!same) fu(&ju);
        if (unit->gelu || unit->limit > 0)
            store_unit(o->kernels, unit, span->expert, c, n, s * HN_STRIP, columns(gate, s), y);
        else
            o->kernels->store_glu(c, c + n * HN_STRIP, n, y, HN_GROUP, columns(gate, s));
    }
}

void hn_cpu_run_glu(const hn_exec *ex, const hn_cpu_span *span, const hn_weight *gate, const hn_weight *up, const hn_expert_unit *unit,
                    const hn_act *y, int group) {
    float hidden[HN_CALL_ROWS * HN_GROUP];
    const int left = y->in - group * HN_GROUP, count = left < HN_GROUP ? left : HN_GROUP;
    hn_cpu_span part = *span;
    for (int first = 0; first < span->n; first += part.n) {
        part.from = span->from + first;
        part.n = span->n - first < HN_CALL_ROWS ? span->n - first : HN_CALL_ROWS;
        run_pairs(ex, &part, gate, up, unit, group * GROUP_STRIPS, group * GROUP_STRIPS + hn_strips(count), hidden);
        for (int r = 0; r < part.n; r++)
            hn_cpu_put_inputs(hn_cpu(ex), hidden + HN_GROUP * r, count, y, y->forms, span->to + first + r, group);
    }
}

int hn_cpu_unit_groups(const hn_exec *ex, const hn_weight *gate, int n, int groups) {
    return (hn_cpu_unit_strips(ex, gate, n, 2 * GROUP_STRIPS * groups) + 2 * GROUP_STRIPS - 1) / (2 * GROUP_STRIPS);
}

/* Computes whole groups of the next product's input, so that they can be quantised at once. */
void hn_cpu_linear_glu(const hn_exec *ex, hn_count count, hn_act a, const hn_weight *gate, const hn_weight *up, hn_glu act, hn_act y) {
    const int n = hn_cpu_number(count);
    assert(n >= 1 && n <= y.max_rows && gate->out == y.in && up->out == y.in && gate->in == up->in && act != HN_GATE);
    const hn_cpu_span span = {.a = &a, .n = n};
    const hn_expert_unit plain = {.gelu = act == HN_GELU};
    const int groups = hn_act_groups(y.in), unit = hn_cpu_unit_groups(ex, gate, n, groups);
    hn_claim claim = hn_cpu_claim(ex, (groups + unit - 1) / unit);
    for (int i; (i = hn_claim_next(&claim)) >= 0;)
        for (int g = i * unit; g < (i + 1) * unit && g < groups; g++) hn_cpu_run_glu(ex, &span, gate, up, &plain, &y, g);
    hn_cpu_barrier(ex);
}

/* ---- the best outputs of a row -------------------------------------------------------------------------------------- */

typedef struct best {
    float value;
    int32_t id;
} best;

/* The best outputs that a rank has computed for each row, in order, their number, and the least value of a further one.
 * In the scratch buffer, one rank after another. */
typedef struct found {
    int n, k;
    int32_t *count; /* [n] */
    float *least;   /* [n] */
    best *list;     /* [n][k] */
} found;

static size_t found_bytes(int n, int k) {
    return ((size_t)n * (sizeof(int32_t) + sizeof(float) + (size_t)k * sizeof(best)) + 63) / 64 * 64;
}

static found found_by(const hn_top *top, int n, int rank) {
    unsigned char *base = (unsigned char *)hn_host(top->scratch) + found_bytes(n, top->k) * (size_t)rank;
    int32_t *count = (int32_t *)(void *)base;
    return (found){n, top->k, count, (float *)(count + n), (best *)(void *)(count + 2 * n)};
}

size_t hn_cpu_top_scratch(const hn_backend *b, int max_rows, int k) {
    return found_bytes(max_rows, k) * hn_cpu_threads(b);
}

static bool before(best a, best b) { return a.value > b.value || (a.value == b.value && a.id < b.id); }

/* Units are computed in any order, so a tie may have the lower id. */
static void insert(const found *s, int row, best b) {
    best *list = s->list + (size_t)row * (size_t)s->k;
    int at = s->count[row];
    if (at == s->k) {
        if (!before(b, list[at - 1])) return;
        at--;
    } else
        s->count[row]++;
    for (; at > 0 && before(b, list[at - 1]); at--) list[at] = list[at - 1];
    list[at] = b;
    if (s->count[row] == s->k) s->least[row] = list[s->k - 1].value;
}

/* The outputs of a strip for n rows from `row` on; c [n][16]. */
static void find_in_strip(const hn_cpu_backend *o, const found *s, const float *c, int row, int n, int first, int cols,
                          const int32_t *map) {
    uint16_t lanes[HN_CALL_ROWS];
    if (!o->kernels->at_least(c, n, cols, s->least + row, lanes)) return;
    for (int r = 0; r < n; r++) {
        for (unsigned left = lanes[r]; left; left &= left - 1) {
            const int lane = __builtin_ctz(left), at = first + lane;
            insert(s, row + r, (best){c[r * HN_STRIP + lane], map ? map[at] : at});
        }
    }
}

static void add_to_strip(const hn_cpu_backend *o, float *c, int n, const float *bias, size_t ld, int cols) {
    for (int r = 0; r < n; r++) o->kernels->add(c + r * HN_STRIP, bias + ld * (size_t)r, cols);
}

/* The call of a rank: what all its strips or clusters have in common. */
typedef struct top_call {
    const hn_exec *ex;
    const hn_act *a;
    const hn_weight *w;
    const hn_output_rows *out;
    const hn_top *top;
    found found;
    int n_written;
} top_call;

/* Outputs of some strips from s on for rows [row, row + j->n): adds the bias, scales, caps, finds the best, and writes those of the rows
 * that are written. */
static void read_outputs(const top_call *k, const hn_strips_job *j, int row, int s) {
    const hn_top *how = k->top;
    const hn_output_rows *out = k->out;
    const hn_cpu_backend *o = hn_cpu(k->ex);
    const int32_t *map = how->map.mem ? hn_host_i32(how->map) : NULL;
    const float *bias = how->bias.mem ? hn_host_f32(how->bias) + (size_t)how->ld_bias * (size_t)row : NULL;
    const int written = hn_least(hn_most(k->n_written - row, 0), j->n), values = j->strips * j->n * HN_STRIP;
    for (int i = 0; bias && i < j->strips; i++)
        add_to_strip(o, j->c + i * j->n * HN_STRIP, j->n, bias + (s + i) * HN_STRIP, (size_t)how->ld_bias, columns(k->w, s + i));
    if (out->scale != 1) o->kernels->scale(j->c, j->c, values, out->scale);
    if (out->cap > 0) o->kernels->softcap(j->c, values, out->cap);
    for (int i = 0; i < j->strips; i++) {
        const float *strip = j->c + i * j->n * HN_STRIP;
        const int first = (s + i) * HN_STRIP, cols = columns(k->w, s + i);
        find_in_strip(o, &k->found, strip, row, j->n, first, cols, map);
        if (written > 0) o->kernels->store(strip, written, hn_host_row(out->y, row) + first, out->y.ld, cols, false);
    }
}

/* Strips [s, end), each with all rows while it is in the cache. */
static void run_top(const top_call *k, int s, int end) {
    const int n = k->found.n, most = most_strips(k->w);
    _Alignas(64) float c[HN_CALL_STRIPS * HN_CALL_ROWS * HN_STRIP];
    hn_strips_job j = {.c = c};
    hn_strips_fn *fn = choose(hn_cpu(k->ex), k->a, 0, k->w, &j);
    const unsigned char *x = j.x;
    for (; s < end; s += j.strips) {
        j.strips = hn_least(end - s, most);
        for (int i = 0; i < j.strips; i++) j.w[i] = strip_at(k->ex, k->w, 0, s + i, i);
        for (int row = 0; row < n; row += j.n) {
            j.n = hn_least(n - row, HN_CALL_ROWS);
            j.x = x + j.x_stride * (size_t)row;
            fn(&j);
            read_outputs(k, &j, row, s);
        }
    }
}

/* Merges the lists of all ranks for one row into the first one's, and writes the result. */
static void merge_row(const hn_exec *ex, const hn_top *top, int n, int row) {
    const found all = found_by(top, n, 0);
    const size_t at = (size_t)row * (size_t)top->k;
    for (int rank = 1; rank < ex->ranks; rank++) {
        const found s = found_by(top, n, rank);
        for (int i = 0; i < s.count[row]; i++) insert(&all, row, s.list[at + (size_t)i]);
    }
    for (int i = 0; i < top->k; i++) {
        const best b = i < all.count[row] ? all.list[at + (size_t)i] : (best){NAN, -1};
        ((int32_t *)hn_host(top->id))[at + (size_t)i] = b.id;
        hn_host_f32(top->value)[at + (size_t)i] = b.value;
    }
}

/* The sums and moments. Divided like strips: most outputs are in the cache of the rank that computed them. */
static void sum_rows(const hn_exec *ex, int n, hn_matrix y, const hn_top *top) {
    const struct hn_kernels *k = hn_cpu(ex)->kernels;
    const int parts = hn_sum_parts(y.cols);
    hn_claim claim = hn_cpu_claim(ex, parts * n);
    for (int i; (i = hn_claim_next(&claim)) >= 0;) {
        const int row = i % n, part = i / n, first = part * HN_SUM_PART;
        const int left = y.cols - first, count = left < HN_SUM_PART ? left : HN_SUM_PART;
        const float *x = hn_host_row(y, row) + first, most = hn_host_f32(top->value)[row * top->k];
        if (top->sums.mem) hn_host_f32(top->sums)[row * parts + part] = k->exp_sum(x, count, most);
        if (top->moments.mem) hn_host_f32(top->moments)[row * parts + part] = k->exp_moment(x, count, most);
    }
    hn_cpu_barrier(ex);
}

static void found_begin(const found *s) {
    for (int r = 0; r < s->n; r++) {
        s->count[r] = 0;
        s->least[r] = -INFINITY;
    }
}

/* After all outputs: the result of all ranks. */
static void finish_top(const hn_exec *ex, int n, const hn_output_rows *out, const hn_top *top) {
    const int n_written = hn_cpu_number(out->n_written);
    int from, to;
    hn_cpu_barrier(ex);
    hn_share(ex, n, &from, &to);
    for (int r = from; r < to; r++) merge_row(ex, top, n, r);
    hn_cpu_barrier(ex);
    if ((top->sums.mem || top->moments.mem) && n_written > 0) sum_rows(ex, n_written, out->y, top);
}

void hn_cpu_linear_top(const hn_exec *ex, hn_count count, hn_act a, const hn_weight *w, const hn_output_rows *out, const hn_top *top) {
    const int n = hn_cpu_number(count), n_written = hn_cpu_number(out->n_written);
    assert(n >= 1 && n <= a.max_rows && n_written <= n && top->k >= 1 && top->k <= HN_MAX_TOP);
    assert(n_written == 0 || out->y.cols == w->out);
    const top_call k = {ex, &a, w, out, top, found_by(top, n, ex->rank), n_written};
    const split s = split_strips(ex, n, &(hn_linear_out){.w = w}, 1);
    found_begin(&k.found);
    hn_claim claim = hn_cpu_claim(ex, s.first_unit[1]);
    for (int unit; (unit = hn_claim_next(&claim)) >= 0;) {
        const int first = unit * s.unit, strips = hn_strips(w->out);
        run_top(&k, first, first + s.unit < strips ? first + s.unit : strips);
    }
    finish_top(ex, n, out, top);
}

/* ---- the best of a row's clusters ---------------------------------------------------------------------------------- */

/* Finds the best of outputs [at, end) for a row among strips that begin with output `first`; c [strips][16]. */
static void find_between(const top_call *k, int row, const float *c, int first, int at, int end) {
    const int32_t *map = k->top->map.mem ? hn_host_i32(k->top->map) : NULL;
    for (int strip = at / HN_STRIP * HN_STRIP; strip < end; strip += HN_STRIP) {
        const float *outputs = c + (strip - first);
        uint16_t lanes;
        if (!hn_cpu(k->ex)->kernels->at_least(outputs, 1, HN_STRIP, k->found.least + row, &lanes)) continue;
        for (unsigned left = lanes; left; left &= left - 1) {
            const int lane = __builtin_ctz(left), id = strip + lane;
            if (id >= at && id < end) insert(&k->found, row, (best){outputs[lane], map ? map[id] : id});
        }
    }
}

/* Outputs [at, end) of a row; y NULL: they are not written. Whole strips are computed, and their other outputs dropped. */
static void run_cluster(const top_call *k, int row, int at, int end, float *y) {
    const hn_cpu_backend *o = hn_cpu(k->ex);
    _Alignas(64) float c[HN_CALL_STRIPS * HN_STRIP];
    hn_strips_job j = {.n = 1, .c = c};
    hn_strips_fn *fn = choose(o, k->a, row, k->w, &j);
    const int most = most_strips(k->w), last = hn_strips(end);
    for (int s = at / HN_STRIP; s < last; s += j.strips) {
        j.strips = last - s < most ? last - s : most;
        for (int i = 0; i < j.strips; i++) j.w[i] = strip_at(k->ex, k->w, 0, s + i, i);
        fn(&j);
        if (k->out->scale != 1) o->kernels->scale(c, c, j.strips * HN_STRIP, k->out->scale);
        if (k->out->cap > 0) o->kernels->softcap(c, j.strips * HN_STRIP, k->out->cap);
        const int first = s * HN_STRIP, behind = first + j.strips * HN_STRIP, to = behind < end ? behind : end;
        find_between(k, row, c, first, at, to);
        if (y) memcpy(y, c + (at - first), (size_t)(to - at) * sizeof *y);
        if (y) y += to - at;
        at = to;
    }
}

/* Each cluster of each row is a unit: the product of one row, whose bits are those of any number of rows. */
void hn_cpu_clusters_top(const hn_exec *ex, hn_count count, hn_act a, const hn_weight *w, const hn_clusters *of, const hn_output_rows *out,
                         const hn_top *top) {
    const int n = hn_cpu_number(count), n_written = hn_cpu_number(out->n_written);
    assert(n >= 1 && n <= a.max_rows && n_written <= n && top->k >= 1 && top->k <= HN_MAX_TOP && !top->bias.mem);
    assert(n_written == 0 || out->y.cols == of->used * of->size);
    const top_call k = {ex, &a, w, out, top, found_by(top, n, ex->rank), n_written};
    const int32_t *id = hn_host_i32(of->id);
    found_begin(&k.found);
    hn_claim claim = hn_cpu_claim(ex, n * of->used);
    for (int unit; (unit = hn_claim_next(&claim)) >= 0;) {
        const int row = unit / of->used, place = unit % of->used, at = id[unit] * of->size;
        float *to = row < n_written ? hn_host_row(out->y, row) + place * of->size : NULL;
        assert(at + of->size <= w->out);
        if (id[unit] >= 0) run_cluster(&k, row, at, at + of->size, to);
        for (int i = 0; id[unit] < 0 && to && i < of->size; i++) to[i] = -INFINITY;
    }
    finish_top(ex, n, out, top);
}
