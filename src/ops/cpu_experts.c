/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_experts.c - products of experts: grouping of rows, and division of the work. Choice of experts and sum of their results:
 * cpu_route.c. A strip's arithmetic is that of a plain matrix (cpu_linear.c).
 *
 * Pairs of a row and an expert are ordered by expert, so that an expert computes adjacent rows, and its weights are read once.
 * All distinct experts form one list of units, cut like plain matrices.
 */
#include <assert.h>
#include <string.h>

#include "ops/cpu_linear.h"
#include "ops/kernels.h"

static int distinct_count(const hn_routing *by) { return hn_host_i32(by->distinct)[0]; }

/* The pairs of distinct expert number i, as rows of inputs and results. */
static hn_cpu_span span_of(const hn_routing *by, const hn_act *a, int i) {
    const int expert = hn_host_i32(by->distinct)[1 + i];
    const int32_t *first = hn_host_i32(by->first) + expert;
    return (hn_cpu_span){.a = a, .from = first[0], .to = first[0], .n = first[1] - first[0], .expert = expert};
}

/* The average number of rows of an expert, which determines the size of units. */
static int usual_rows(const hn_routing *by, int n) {
    return (n * by->used + distinct_count(by) - 1) / distinct_count(by);
}

static void copy_row(const hn_act *from, int i, const hn_act *to, int k, int forms) {
    const unsigned char *src = hn_host(from->data);
    unsigned char *dst = hn_host(to->data);
    const int in = from->in;
    if (forms & HN_ACT_Q8) memcpy(dst + hn_act_q8_off(in, k), src + hn_act_q8_off(in, i), hn_act_q8_stride(in));
    if (forms & HN_ACT_F32)
        memcpy(dst + hn_act_f32_off(in, to->max_rows, k), src + hn_act_f32_off(in, from->max_rows, i), hn_act_f32_stride(in));
    if (forms & HN_ACT_BF16)
        memcpy(dst + hn_act_bf16_off(in, to->max_rows, k), src + hn_act_bf16_off(in, from->max_rows, i),
               hn_act_bf16_stride(in));
}

static void gather_pairs(const hn_exec *ex, int n, const hn_routing *by, const hn_act *a, int forms) {
    int first, last;
    hn_share(ex, n * by->used, &first, &last);
    for (int p = first; p < last; p++) copy_row(a, hn_host_i32(by->row)[p], &by->gathered, p, forms);
    hn_cpu_barrier(ex);
}

void hn_cpu_experts_glu(const hn_exec *ex, hn_count count, const hn_routing *by, hn_act a, const hn_weight *gate, const hn_weight *up,
                        const hn_expert_unit *unit, hn_act y) {
    const int n = hn_cpu_number(count);
    const hn_cpu_backend *o = hn_cpu(ex);
    const int groups = hn_act_groups(y.in);
    assert(n >= 1 && n <= by->max_rows && n * by->used <= y.max_rows && n * by->used <= by->gathered.max_rows);
    assert(gate->out == y.in && up->out == y.in && gate->in == a.in && up->in == a.in && by->gathered.in == a.in);
    if (n > 1) gather_pairs(ex, n, by, &a, hn_cpu_weight_form(o, gate) | hn_cpu_weight_form(o, up));
    const int each = hn_cpu_unit_groups(ex, gate, usual_rows(by, n), groups * distinct_count(by)), units = (groups + each - 1) / each;
    hn_claim claim = hn_cpu_claim(ex, units * distinct_count(by));
    for (int i; (i = hn_claim_next(&claim)) >= 0;) {
        hn_cpu_span span = span_of(by, n > 1 ? &by->gathered : &a, i / units);
        if (n == 1) span.from = 0;
        for (int g = i % units * each; g < (i % units + 1) * each && g < groups; g++)
            hn_cpu_run_glu(ex, &span, gate, up, unit, &y, g);
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_experts_linear(const hn_exec *ex, hn_count count, const hn_routing *by, hn_act a, const hn_weight *w, hn_matrix y) {
    const int n = hn_cpu_number(count);
    const int strips = hn_strips(w->out), distinct = distinct_count(by);
    const int unit = hn_cpu_unit_strips(ex, w, usual_rows(by, n), strips * distinct), units = (strips + unit - 1) / unit;
    const hn_linear_out out = {w, y};
    assert(n >= 1 && n * by->used <= a.max_rows && w->in == a.in);
    hn_claim claim = hn_cpu_claim(ex, units * distinct);
    for (int i; (i = hn_claim_next(&claim)) >= 0;) {
        const hn_cpu_span span = span_of(by, &a, i / units);
        const int s = i % units * unit;
        hn_cpu_run_strips(ex, &span, &out, s, s + unit < strips ? s + unit : strips, false);
    }
    hn_cpu_barrier(ex);
}
