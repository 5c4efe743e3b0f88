/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_ops.c - the CPU backend: its memory, and the table of its operations.
 *
 * The operations themselves: cpu_linear.c (matrix products), cpu_heads.c (a matrix for each head),
 * cpu_experts.c and cpu_route.c (experts), cpu_attention.c, cpu_delta.c, cpu_short_conv.c, cpu_ssm.c,
 * cpu_kv.c (rows of the cache), cpu_tokens.c (tokens, draws, paths), cpu_rows.c (all else). Their inner
 * functions: kernels.h.
 */
#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ops/cpu_mem.h"
#include "ops/delta.h"
#include "ops/short_conv.h"
#include "ops/ssm.h"
#include "ops/kernels.h"
#include "ops/pack.h"

static hn_cpu_backend *state_of(hn_backend *b) { return (hn_cpu_backend *)(void *)b; }

/* ---- memory ------------------------------------------------------------------------------------------------- */

/* Pages are counted by who knows which are touched (cache.c). */
static void count(hn_backend *b, hn_mem_kind kind, int64_t bytes) {
    if (kind == HN_MEM_PAGES) return;
    hn_account_add(b->account, kind == HN_MEM_WEIGHTS ? HN_ACCOUNT_WEIGHTS : HN_ACCOUNT_BUFFERS, bytes, bytes);
}

static hunch_status mem_create(hn_backend *b, hn_mem_kind kind, size_t bytes, hn_mem **out, hunch_error *err) {
    hn_mem *m = hn_zalloc(1, sizeof *m);
    *out = NULL;
    if (!m) return hn_fail_memory(err, "a memory handle", sizeof *m);
    m->size = bytes;
    m->kind = kind;
    m->base = hn_pages_alloc(bytes);
    if (!m->base) {
        hn_free(m);
        return hn_fail_memory(err, "a buffer of the backend", bytes);
    }
    count(b, kind, (int64_t)bytes);
    *out = m;
    return HUNCH_OK;
}

static void mem_free(hn_backend *b, hn_mem *m) {
    if (!m) return;
    count(b, m->kind, -(int64_t)m->size);
    hn_pages_free(m->base, m->size);
    hn_free(m);
}

static void write_buf(hn_backend *b HN_UNUSED, hn_buf dst, const void *src, size_t bytes) {
    if (bytes) memcpy(hn_host(dst), src, bytes);
}

static void release(hn_backend *b HN_UNUSED, hn_buf at, size_t bytes) { hn_pages_release(hn_host(at), bytes); }

/* ---- work --------------------------------------------------------------------------------------------------- */

typedef struct recorded {
    const hn_cpu_backend *c;
    hn_record_fn *record;
    const void *arg;
} recorded;

static void run_rank(void *arg, int rank, int ranks) {
    const recorded *r = arg;
    const hn_exec ex = hn_cpu_exec(r->c, rank, ranks);
    r->record(&ex, r->arg);
}

static hn_ticket submit(hn_backend *b, hn_record_fn *record, const void *arg) {
    hn_cpu_backend *c = state_of(b);
    recorded r = {c, record, arg};
    const double start = hn_now();
    if (record) hn_pool_run(c->pool, run_rank, &r);
    return (hn_ticket){++c->submitted, record ? hn_now() - start : 0};
}

static double wait_for(hn_backend *b HN_UNUSED, hn_ticket t) { return t.seconds; }

static bool is_done(const hn_backend *b HN_UNUSED, hn_ticket t HN_UNUSED) { return true; }

static const void *read_buf(hn_backend *b HN_UNUSED, hn_ticket t HN_UNUSED, hn_buf src, size_t bytes HN_UNUSED) { return hn_host(src); }

/* ---- weights ------------------------------------------------------------------------------------------------ */

static size_t matrix_bytes(const hn_backend *b HN_UNUSED, hn_dtype t, int out, int in) {
    return hn_strip_bytes(t, in) * (size_t)hn_strips(out);
}

static hn_matrix_place place(const hn_backend *b HN_UNUSED, hn_dtype t, int in, hn_buf at) {
    return (hn_matrix_place){at, hn_strip_bytes(t, in)};
}

/* Their strips alternate. */
static void pair(const hn_backend *b HN_UNUSED, hn_matrix_place *first, hn_matrix_place *second) {
    second->at = hn_at(first->at, first->step);
    first->step += second->step;
    second->step = first->step;
}

static size_t stored_room(const hn_backend *b, hn_dtype t, int in) {
    return hn_strip_bytes(t, in) * HN_RANK_STRIPS * hn_cpu_threads(b);
}

static hn_matrix_place place_stored(const hn_backend *b, hn_buf room, size_t bytes) {
    return (hn_matrix_place){room, bytes / (HN_RANK_STRIPS * hn_cpu_threads(b))};
}

static void pack(hn_backend *b HN_UNUSED, const hn_weight *w, int matrix, int first, const void *rows, size_t row_bytes,
                 const float *factors) {
    const size_t strip = (size_t)matrix * (size_t)hn_strips(w->out) + (size_t)(first / HN_STRIP);
    hn_pack_strip(w->dtype, w->out - first, w->in, rows, row_bytes, factors, 0, hn_host(hn_at(w->place.at, w->place.step * strip)));
}

void hn_cpu_pick_rows(const hn_exec *ex, const hn_weight *w, hn_buf ids, const hn_weight *to) {
    const int n = to->out;
    const unsigned char *strips = hn_host(w->place.at);
    const int32_t *id = hn_host_i32(ids);
    hn_claim claim = hn_cpu_claim(ex, hn_strips(n));
    assert(w->in == to->in && w->dtype == to->dtype);
    for (int s; (s = hn_claim_next(&claim)) >= 0;) {
        unsigned char *dst = hn_host(hn_at(to->place.at, to->place.step * (size_t)s));
        memset(dst, 0, hn_strip_bytes(w->dtype, w->in));
        for (int i = s * HN_STRIP; i < (s + 1) * HN_STRIP && i < n; i++)
            hn_strip_copy_lane(w->dtype, w->in, strips + w->place.step * (size_t)(id[i] / HN_STRIP), id[i] % HN_STRIP, dst,
                               i % HN_STRIP);
    }
    hn_cpu_barrier(ex);
}

/* ---- the table, and the backend ----------------------------------------------------------------------------- */

int hn_cpu_act_forms(const hn_backend *b, hn_dtype weight) {
    if (b->f32) return HN_ACT_F32;
    return hn_is_block_type(weight) ? HN_ACT_Q8 : weight == HN_BF16 ? HN_ACT_BF16 : HN_ACT_F32;
}

static void limits(const hn_backend *b, hn_backend_limits *out) {
    *out = (hn_backend_limits){.name = hn_isa_name(hn_cpu_of(b)->isa),
                               .memory_left = hn_account_left(b->account, hn_memory_available()),
                               .prompt_rows = 2 * HN_MAX_ROWS};
}

static void close_backend(hn_backend *b) { hn_free(b); }

static hunch_status open_like(hn_backend *b, bool f32, hn_backend **out, hunch_error *err) {
    const hunch_status st = hn_cpu_backend_open(out, hn_cpu_of(b)->pool, hn_cpu_of(b)->isa, f32, err);
    if (!st) (*out)->account = b->account;
    return st;
}

static const hn_ops operations = {
    .embed = hn_cpu_embed,
    .norm = hn_cpu_norm,
    .fix_heads = hn_cpu_fix_heads,
    .scale = hn_cpu_scale,
    .norm_add = hn_cpu_norm_add,
    .scale_groups = hn_cpu_scale_groups,
    .scale_by_position = hn_cpu_scale_by_position,
    .glu = hn_cpu_glu,
    .add_bias = hn_cpu_add_bias,
    .apply = hn_cpu_apply,
    .quantise = hn_cpu_quantise,
    .permute = hn_cpu_permute,
    .linear = hn_cpu_linear,
    .linear_glu = hn_cpu_linear_glu,
    .linear_top = hn_cpu_linear_top,
    .clusters_top = hn_cpu_clusters_top,
    .route = hn_cpu_route,
    .experts_glu = hn_cpu_experts_glu,
    .experts_linear = hn_cpu_experts_linear,
    .heads_linear = hn_cpu_heads_linear,
    .combine = hn_cpu_combine,
    .rope_table = hn_cpu_rope_table,
    .rope_store = hn_cpu_rope_store,
    .attention = hn_cpu_attention,
    .gather = hn_cpu_gather,
    .kv_move = hn_cpu_kv_move,
    .rows_move = hn_cpu_rows_move,
    .pick = hn_cpu_pick,
    .gru = hn_cpu_gru,
    .convolve = hn_cpu_convolve,
    .delta = hn_cpu_delta,
    .short_conv = hn_cpu_short_conv,
    .ssm = hn_cpu_ssm,
    .pick_rows = hn_cpu_pick_rows,
    .take_tokens = hn_cpu_take_tokens,
    .sample = hn_cpu_sample,
    .verify_match = hn_cpu_verify_match,
    .beam = hn_cpu_beam,
};

void hn_cpu_backend_init(hn_cpu_backend *c, hn_pool *pool, hn_isa isa, bool f32) {
    const hn_backend b = {
        .ops = &operations,
        .f32 = f32,
        .close = close_backend,
        .open_like = open_like,
        .limits = limits,
        .mem_create = mem_create,
        .mem_free = mem_free,
        .release = release,
        .write = write_buf,
        .submit = submit,
        .wait = wait_for,
        .done = is_done,
        .read = read_buf,
        .matrix_bytes = matrix_bytes,
        .place = place,
        .pair = pair,
        .stored_room = stored_room,
        .place_stored = place_stored,
        .pack = pack,
        .act_forms = hn_cpu_act_forms,
        .act_bytes = hn_act_size,
        .top_scratch = hn_cpu_top_scratch,
        .attention_scratch = hn_cpu_attention_scratch,
        .delta_scratch = hn_cpu_delta_scratch,
        .ssm_scratch = hn_cpu_ssm_scratch,
        .sample_scratch = hn_cpu_sample_scratch,
        .attention_in_bf16 = hn_cpu_attention_in_bf16,
    };
    *c = (hn_cpu_backend){.base = b, .isa = isa, .pool = pool, .kernels = hn_kernels_get(isa)};
}

hunch_status hn_cpu_backend_open(hn_backend **out, hn_pool *pool, hn_isa isa, bool f32, hunch_error *err) {
    hn_cpu_backend *c = hn_zalloc(1, sizeof *c);
    *out = NULL;
    if (!c) return hn_fail_memory(err, "a backend", sizeof *c);
    hn_cpu_backend_init(c, pool, isa, f32);
    *out = &c->base;
    return HUNCH_OK;
}

static hn_cpu_backend sizes;
static void init_sizes(void) { hn_cpu_backend_init(&sizes, NULL, HN_ISA_REF, false); }

hn_backend *hn_cpu_sizes(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_sizes);
    return &sizes.base;
}
