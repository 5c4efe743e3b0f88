/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_linear.h - functions shared by products of plain matrices (cpu_linear.c) and of experts (cpu_experts.c). For
 * files of this folder only. */
#ifndef HN_CPU_LINEAR_H
#define HN_CPU_LINEAR_H
#include "ops/cpu_mem.h"

/* Neighbouring rows times one matrix: from rows [from, from + n) of a to rows [to, to + n) of the result. */
typedef struct hn_cpu_span {
    const hn_act *a;
    int from, to, n;
    int expert; /* number of the expert; 0 for a plain matrix */
} hn_cpu_span;

/* The form of rows that a matrix reads. */
int hn_cpu_weight_form(const hn_cpu_backend *o, const hn_weight *w);
/* The number of strips (groups of 64 outputs of gate and up) in a unit of work, for n rows. */
int hn_cpu_unit_strips(const hn_exec *ex, const hn_weight *w, int n, int strips);
int hn_cpu_unit_groups(const hn_exec *ex, const hn_weight *gate, int n, int groups);
/* Computes strips [s, end) of a matrix, and stores or adds the results. */
void hn_cpu_run_strips(const hn_exec *ex, const hn_cpu_span *span, const hn_linear_out *out, int s, int end, bool add);
/* A group of 64 of silu(gate a) * (up a), or of what the unit of experts says. */
void hn_cpu_run_glu(const hn_exec *ex, const hn_cpu_span *span, const hn_weight *gate, const hn_weight *up, const hn_expert_unit *unit,
                    const hn_act *y, int group);
#endif
