/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_ops.c - the CPU backend: its memory, and the table of its operations.
 *
 * The operations themselves: cpu_linear.c (matrix products), cpu_heads.c (a matrix for each head),
 * cpu_experts.c and cpu_route.c (experts), cpu_attention.c, cpu_delta.c,
 * cpu_kv.c (rows of the cache), cpu_rows.c (all else). Their inner
 * functions: kernels.h.
 */
#include <string.h>

#include "base/mem.h"
#include "ops/cpu_mem.h"
#include "ops/delta.h"
#include "ops/kernels.h"
#include "ops/pack.h"

static hunch_status mem_create(const hn_ops *o HN_UNUSED, size_t bytes, hn_mem **out, hunch_error *err) {
    hn_mem *m = hn_zalloc(1, sizeof *m);
    *out = NULL;
    if (!m) return hn_fail_memory(err, "a memory handle", sizeof *m);
    m->size = bytes;
    m->base = hn_pages_alloc(bytes);
    if (!m->base) {
        hn_free(m);
        return hn_fail_memory(err, "a buffer of the backend", bytes);
    }
    *out = m;
    return HUNCH_OK;
}

static void mem_free(const hn_ops *o HN_UNUSED, hn_mem *m) {
    if (!m) return;
    hn_pages_free(m->base, m->size);
    hn_free(m);
}

static void write_buf(const hn_ops *o HN_UNUSED, hn_buf dst, const void *src, size_t bytes) {
    if (bytes) memcpy(hn_host(dst), src, bytes);
}

static void read_buf(const hn_ops *o HN_UNUSED, void *dst, hn_buf src, size_t bytes) {
    if (bytes) memcpy(dst, hn_host(src), bytes);
}

static const void *view(const hn_ops *o HN_UNUSED, hn_buf b) { return hn_host(b); }

static void pack_strip(const hn_ops *o HN_UNUSED, hn_dtype t, int out, int in, const void *src, size_t row_bytes,
                       const float *factors, int first, hn_buf dst) {
    hn_pack_strip(t, out, in, src, row_bytes, factors, first, hn_host(dst));
}

static void pick_strip(const hn_ops *o HN_UNUSED, const hn_weight *w, const int32_t *ids, int n, int first, hn_buf dst) {
    const unsigned char *strips = hn_host(w->data);
    memset(hn_host(dst), 0, hn_strip_bytes(w->dtype, w->in));
    for (int lane = 0; lane < HN_STRIP && first + lane < n; lane++) {
        const int32_t id = ids[first + lane];
        hn_strip_copy_lane(w->dtype, w->in, strips + w->strip_stride * (size_t)(id / HN_STRIP), id % HN_STRIP, hn_host(dst),
                           lane);
    }
}

int hn_cpu_act_forms(const hn_ops *o, hn_dtype weight) {
    if (o->f32) return HN_ACT_F32;
    return hn_is_block_type(weight) ? HN_ACT_Q8 : weight == HN_BF16 ? HN_ACT_BF16 : HN_ACT_F32;
}

void hn_ops_cpu(hn_ops *o, hn_pool *pool, hn_isa isa, bool f32) {
    *o = (hn_ops){
        .mem_create = mem_create,
        .mem_free = mem_free,
        .write = write_buf,
        .read = read_buf,
        .view = view,
        .strip_bytes = hn_strip_bytes,
        .pack_strip = pack_strip,
        .pick_strip = pick_strip,
        .act_forms = hn_cpu_act_forms,
        .act_bytes = hn_act_size,
        .embed = hn_cpu_embed,
        .rmsnorm = hn_cpu_rmsnorm,
        .fix_heads = hn_cpu_fix_heads,
        .scale = hn_cpu_scale,
        .norm_add = hn_cpu_norm_add,
        .glu = hn_cpu_glu,
        .add_bias = hn_cpu_add_bias,
        .apply = hn_cpu_apply,
        .quantise = hn_cpu_quantise,
        .linear = hn_cpu_linear,
        .linear_glu = hn_cpu_linear_glu,
        .linear_top = hn_cpu_linear_top,
        .top_scratch = hn_cpu_top_scratch,
        .clusters_top = hn_cpu_clusters_top,
        .route = hn_cpu_route,
        .experts_glu = hn_cpu_experts_glu,
        .experts_linear = hn_cpu_experts_linear,
        .heads_linear = hn_cpu_heads_linear,
        .combine = hn_cpu_combine,
        .rope_table = hn_cpu_rope_table,
        .rope_store = hn_cpu_rope_store,
        .attention = hn_cpu_attention,
        .attention_in_bf16 = hn_cpu_attention_in_bf16,
        .attention_scratch = hn_cpu_attention_scratch,
        .gather = hn_cpu_gather,
        .kv_move = hn_cpu_kv_move,
        .rows_move = hn_cpu_rows_move,
        .pick = hn_cpu_pick,
        .gru = hn_cpu_gru,
        .convolve = hn_cpu_convolve,
        .delta = hn_cpu_delta,
        .isa = isa,
        .f32 = f32,
        .pool = pool,
        .kernels = hn_kernels_get(isa),
    };
}
