/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_mem.h - the memory of a handle of the CPU backend. For files of this folder only. */
#ifndef HN_CPU_MEM_H
#define HN_CPU_MEM_H
#include <assert.h>
#include <math.h>

#include "ops/cpu_backend.h"
#include "ops/kv.h"
#include "ops/walk.h"

struct hn_mem {
    unsigned char *base; /* 2 MiB aligned, huge pages */
    size_t size;
    hn_mem_kind kind;
};

static inline void *hn_host(hn_buf b) { return b.mem->base + b.off; }
static inline float *hn_host_f32(hn_buf b) { return (float *)hn_host(b); }
static inline const int32_t *hn_host_i32(hn_buf b) { return (const int32_t *)hn_host(b); }
static inline float *hn_host_row(hn_matrix m, int row) { return hn_host_f32(m.at) + (size_t)m.ld * (size_t)row; }

/* The inputs of a layer at a slot of a text whose pages are these, or of sequence `seq` of the pass. */
static inline float *hn_host_inputs(const hn_input_pages *p, const int32_t *pages, int slot) {
    unsigned char *page = (unsigned char *)hn_host(p->pool) + p->page_bytes * (size_t)pages[slot / p->page_rows];
    return (float *)(void *)(page + p->row_bytes * (size_t)(slot % p->page_rows) + p->off);
}
static inline float *hn_host_inputs_of(const hn_input_pages *p, int seq, int slot) {
    return hn_host_inputs(p, hn_host_i32(p->table) + (size_t)p->stride * (size_t)seq, slot);
}
/* The slot of the row at a position of row i's path. */
static inline int hn_host_slot(const hn_rows *rows, int i, int position) {
    const int seq = hn_host_i32(rows->seq)[i], committed = hn_host_i32(rows->committed)[seq];
    const bool in_order = position < committed || hn_host_i32(rows->direct)[seq];
    return in_order ? position : hn_host_i32(rows->path_slots)[hn_host_i32(rows->path_start)[i] + position - committed];
}
/* ln(1 + e^x), in double, so that every C library gives the same float. */
static inline double hn_softplus(double x) { return x > 30 ? x : log1p(exp(x)); }

static inline int hn_cpu_number(hn_count n) {
    const int number = n.at.mem ? *hn_host_i32(n.at) : n.most;
    assert(number >= 0 && number <= n.most);
    return number;
}
static inline size_t hn_cpu_threads(const hn_backend *b) { return hn_cpu_of(b)->pool ? (size_t)hn_pool_threads(hn_cpu_of(b)->pool) : 1; }

/* The part [*first, *last) of `count` items of a rank: contiguous, of nearly equal size. */
static inline void hn_share(const hn_exec *ex, int count, int *first, int *last) {
    *first = (int)((int64_t)count * ex->rank / ex->ranks);
    *last = (int)((int64_t)count * (ex->rank + 1) / ex->ranks);
}

/* Operations, one file per group; cpu_ops.c puts them in the table. Contracts: ops.h. */
void hn_cpu_embed(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_matrix x);
void hn_cpu_fix_heads(const hn_exec *ex, hn_count n, const hn_head_fix *fix, const hn_qkv *x);
void hn_cpu_norm_add(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, float times, hn_matrix y);
void hn_cpu_glu(const hn_exec *ex, hn_count n, hn_glu act, const hn_glu_in *in, float scale, hn_act y);
void hn_cpu_add_bias(const hn_exec *ex, hn_count n, hn_matrix x, hn_buf bias);
void hn_cpu_apply(const hn_exec *ex, hn_count n, hn_function f, hn_into into, hn_matrix x, hn_buf bias, hn_matrix y);
void hn_cpu_scale(const hn_exec *ex, hn_count n, hn_matrix x, float a);
void hn_cpu_norm(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, hn_act a, hn_matrix y);
void hn_cpu_quantise(const hn_exec *ex, hn_count n, hn_matrix x, hn_act a);
void hn_cpu_permute(const hn_exec *ex, hn_count n, hn_act from, hn_buf order, hn_act to);
void hn_cpu_linear(const hn_exec *ex, hn_count n, hn_act a, const hn_linear_out *outs, int n_outs, bool add);
void hn_cpu_linear_glu(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *gate, const hn_weight *up, hn_glu act, hn_act y);
void hn_cpu_linear_top(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_output_rows *out, const hn_top *top);
void hn_cpu_clusters_top(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_clusters *of, const hn_output_rows *out,
                         const hn_top *top);
/* gate = min(silu(gate), limit) * up brought into [-limit, limit] */
void hn_cpu_limited_glu(const struct hn_kernels *k, float *gate, const float *up, int count, float limit);
void hn_cpu_route(const hn_exec *ex, hn_count n, const hn_router *router, hn_matrix scores, const hn_routing *to);
void hn_cpu_experts_glu(const hn_exec *ex, hn_count n, const hn_routing *by, hn_act a, const hn_weight *gate, const hn_weight *up,
                        const hn_expert_unit *unit, hn_act y);
void hn_cpu_experts_linear(const hn_exec *ex, hn_count n, const hn_routing *by, hn_act a, const hn_weight *w, hn_matrix y);
void hn_cpu_heads_linear(const hn_exec *ex, hn_count n, const hn_weight *w, hn_head_columns x, int rest, hn_act room, hn_head_columns y);
void hn_cpu_combine(const hn_exec *ex, hn_count n, const hn_routing *by, hn_matrix results, hn_buf bias, const hn_shared *shared,
                    bool add, hn_matrix x);
size_t hn_cpu_top_scratch(const hn_backend *b, int max_rows, int k);
void hn_cpu_scale_groups(const hn_exec *ex, hn_count n, hn_matrix by, int each, hn_matrix x);
void hn_cpu_scale_by_position(const hn_exec *ex, const hn_rows *rows, const hn_position_scale *by, hn_matrix x);
void hn_cpu_rope_table(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *to);
void hn_cpu_rope_store(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *by, const hn_kv *kv, const hn_qkv *x);
void hn_cpu_attention(const hn_exec *ex, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how, hn_matrix q,
                      hn_matrix out, hn_act a, hn_buf scratch);
bool hn_cpu_attention_in_bf16(const hn_backend *b, hn_dtype cache);
size_t hn_cpu_attention_scratch(const hn_backend *b, int max_rows, int heads, const hn_kv *kv, int max_positions);
void hn_cpu_gather(const hn_exec *ex, hn_count n, hn_buf from, hn_matrix src, hn_buf to, hn_matrix dst);
void hn_cpu_gru(const hn_exec *ex, hn_count n, hn_matrix input, hn_matrix own, hn_matrix s);
void hn_cpu_convolve(const hn_exec *ex, hn_count n, const hn_convolution *c, hn_matrix x, bool add, hn_matrix y);
void hn_cpu_pick(const hn_exec *ex, hn_count n, const hn_pick *parts, int n_parts);
void hn_cpu_rows_move(const hn_exec *ex, const hn_plain_rows *at, hn_count n, hn_buf moves);
void hn_cpu_kv_move(const hn_exec *ex, const hn_kv *kv, hn_count n, hn_buf moves);
void hn_cpu_pick_rows(const hn_exec *ex, const hn_weight *w, hn_buf ids, const hn_weight *to);
void hn_cpu_take_tokens(const hn_exec *ex, hn_count n, hn_buf from, hn_buf src, hn_buf to, hn_buf dst);
void hn_cpu_sample(const hn_exec *ex, hn_count n, const hn_sample *s);
size_t hn_cpu_sample_scratch(const hn_backend *b, int vocab);
void hn_cpu_verify_match(const hn_exec *ex, const hn_match *m);
void hn_cpu_beam(const hn_exec *ex, const hn_beam_level *l);
size_t hn_cpu_delta_scratch(const hn_backend *b, const struct hn_delta *d);
size_t hn_cpu_ssm_scratch(const hn_backend *b, const struct hn_ssm *d, int max_rows);
int hn_cpu_act_forms(const hn_backend *b, hn_dtype weight);

/* Writes `count` inputs to a row in these forms, from the start of its group number `group`. */
void hn_cpu_put_inputs(const hn_cpu_backend *o, const float *x, int count, const hn_act *a, int forms, int row, int group);
#endif
