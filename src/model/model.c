/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - loading: from checked tensors to packed strips in one block of huge pages.
 *
 * First a plan is made (every matrix: its tensor, its place), then memory is taken once, then all workers pack one matrix
 * after another and the file's pages are dropped behind them, so that loading peaks little above the weights. */
#include "model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* One tensor's way into memory: a matrix (weight) or a vector of floats (vector). */
typedef struct placement {
    hn_tensor *tensor;
    hn_weight *weight;
    hn_buf *vector;
    size_t off;
    float more, times; /* a vector's values: times * value + more */
    int first, out;    /* the tensor's rows (a vector's: values) that it is */
    hn_tensor *factors; /* of F8_E4M3 */
} placement;

typedef struct plan {
    hn_model *m;
    hn_source *src;
    placement *item;
    int n;
    size_t bytes;
} plan;

enum { ALIGN = 64, PER_LAYER = 24, PER_MODEL = 3 };

static size_t align_up(size_t n) {
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static int strips(const hn_weight *w) {
    return (w->out + HN_STRIP - 1) / HN_STRIP;
}

static hunch_status find_tensor(plan *p, hn_role role, int layer, int n_dims, int in, int out, hn_tensor **t,
                                hunch_error *err) {
    char name[128];
    hn_arch_tensor_name(&p->m->arch, role, layer, name);
    hunch_status st = hn_source_need(p->src, name, n_dims, (uint64_t)in, (uint64_t)out, t, err);
    if (st) return st;
    size_t row;
    if ((*t)->dtype >= HN_WEIGHT_TYPES || !hn_dtype_row_bytes((*t)->dtype, (uint64_t)in, &row))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: rows of %d %s, expected whole blocks of a weight type",
                       hn_source_path(p->src), name, in, hn_dtype_name((*t)->dtype));
    return HUNCH_OK;
}

/* The factors of a matrix of 8-bit floats: X.weight_scale_inv, [inputs / 128, outputs / 128] (DeepSeek-V3's format). */
static hunch_status find_factors(plan *p, const hn_tensor *t, hn_tensor **factors, hunch_error *err) {
    char name[160];
    *factors = NULL;
    if (t->dtype != HN_F8_E4M3) return HUNCH_OK;
    snprintf(name, sizeof name, "%.120s_scale_inv", t->name);
    return hn_source_need(p->src, name, 2, (t->dims[0] + HN_F8_BLOCK - 1) / HN_F8_BLOCK,
                          (t->dims[1] + HN_F8_BLOCK - 1) / HN_F8_BLOCK, factors, err);
}

/* Rows of the tensor that a matrix (or values that a vector) is: all of them, or a part of a fused one. */
typedef struct part {
    int first, out, of;
} part;

static part whole(int out) {
    return (part){0, out, out};
}

static hunch_status plan_values(plan *p, hn_role role, int layer, part values, float times, float more, hn_buf *dst,
                                hunch_error *err) {
    hn_tensor *t;
    hunch_status st = find_tensor(p, role, layer, 1, values.of, 1, &t, err);
    if (st) return st;
    p->item[p->n++] = (placement){t, NULL, dst, p->bytes, more, times, values.first, values.out, NULL};
    p->bytes += align_up((size_t)values.out * sizeof(float));
    p->m->parameters += (uint64_t)values.out;
    return HUNCH_OK;
}

static hunch_status plan_norm(plan *p, hn_role role, int layer, int n, hn_buf *dst, hunch_error *err) {
    return plan_values(p, role, layer, whole(n), 1, p->m->arch.norms_less_one ? 1 : 0, dst, err);
}

static hunch_status plan_bias(plan *p, hn_role role, int layer, int n, hn_buf *dst, hunch_error *err) {
    return plan_values(p, role, layer, whole(n), 1, 0, dst, err);
}

/* Of a matrix that ends a branch: what scales its product scales it too. */
static hunch_status plan_last_bias(plan *p, hn_role role, int layer, hn_buf *dst, hunch_error *err) {
    return plan_values(p, role, layer, whole(p->m->arch.hidden), p->m->arch.residual_scale, 0, dst, err);
}

/* pair: the strips of this matrix alternate with those of the one planned before it, which has equal shape. */
static hunch_status plan_matrix(plan *p, hn_role role, int layer, int in, part rows, bool pair, hn_weight *w,
                                hunch_error *err) {
    const int out = rows.out;
    hn_tensor *t;
    hunch_status st = find_tensor(p, role, layer, 2, in, rows.of, &t, err);
    hn_tensor *factors = NULL;
    if (!st) st = find_factors(p, t, &factors, err);
    if (!st && factors && rows.first % HN_STRIP)
        st = hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: row %d begins a matrix, expected a multiple of %d for %s",
                     hn_source_path(p->src), t->name, rows.first, HN_STRIP, t->type_name);
    if (st) return st;
    const size_t strip = p->m->ops.strip_bytes(t->dtype, in);
    size_t bytes;
    *w = (hn_weight){t->dtype, out, in, {NULL, 0}, strip};
    if (!hn_mul_size(strip, (size_t)strips(w), &bytes) || !hn_add_size(p->bytes, align_up(bytes), &bytes))
        return hn_fail_memory(err, t->name, SIZE_MAX);
    p->item[p->n] = (placement){t, w, NULL, p->bytes, 0, 1, rows.first, rows.out, factors};
    if (pair) {
        placement *first = &p->item[p->n - 1];
        p->item[p->n].off = first->off + first->weight->strip_stride;
        first->weight->strip_stride += strip;
        w->strip_stride = first->weight->strip_stride;
    }
    p->n++;
    p->bytes = bytes;
    p->m->parameters += (uint64_t)in * (uint64_t)out;
    p->m->weight_bytes += strip * (size_t)strips(w);
    p->m->macs_per_row += (double)in * out;
    return HUNCH_OK;
}

/* q, k and v: tensors of their own, or rows of a fused one; their biases likewise. */
static hunch_status plan_qkv(plan *p, int i, hunch_error *err) {
    const hn_layer_desc *d = &p->m->arch.layer[i];
    hn_layer *l = &p->m->layer[i];
    const int h = p->m->arch.hidden, q = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim, all = q + 2 * kv;
    const part fused[] = {{0, q, all}, {q, kv, all}, {q + kv, kv, all}};
    const int own[] = {q, kv, kv};
    hn_weight *const w[] = {&l->q, &l->k, &l->v};
    hn_buf *const bias[] = {&l->heads.q_bias, &l->heads.k_bias, &l->heads.v_bias};
    hunch_status st = HUNCH_OK;
    for (int j = 0; !st && j < 3; j++)
        st = d->fused_qkv ? plan_matrix(p, HN_ROLE_QKV, i, h, fused[j], false, w[j], err)
                          : plan_matrix(p, (hn_role)(HN_ROLE_Q + j), i, h, whole(own[j]), false, w[j], err);
    for (int j = 0; !st && d->qkv_bias && j < 3; j++)
        st = d->fused_qkv ? plan_values(p, HN_ROLE_QKV_BIAS, i, fused[j], 1, 0, bias[j], err)
                          : plan_bias(p, (hn_role)(HN_ROLE_Q_BIAS + j), i, own[j], bias[j], err);
    return st;
}

static hunch_status plan_attention(plan *p, int i, hunch_error *err) {
    const hn_layer_desc *d = &p->m->arch.layer[i];
    const int h = p->m->arch.hidden;
    hn_layer *l = &p->m->layer[i];
    hunch_status st = plan_norm(p, HN_ROLE_ATTN_NORM, i, h, &l->attn_norm, err);
    if (!st) st = plan_qkv(p, i, err);
    if (!st) st = plan_matrix(p, HN_ROLE_O, i, d->heads * d->head_dim, whole(h), false, &l->o, err);
    if (!st && d->o_bias) st = plan_last_bias(p, HN_ROLE_O_BIAS, i, &l->o_bias, err);
    l->heads.eps = p->m->arch.norm_eps;
    if (!st && d->qk_norm) st = plan_norm(p, HN_ROLE_Q_NORM, i, d->head_dim, &l->heads.q_norm, err);
    if (!st && d->qk_norm) st = plan_norm(p, HN_ROLE_K_NORM, i, d->head_dim, &l->heads.k_norm, err);
    if (!st && d->post_norms) st = plan_norm(p, HN_ROLE_POST_ATTN_NORM, i, h, &l->post_attn_norm, err);
    return st;
}

static hunch_status plan_ffn(plan *p, int i, hunch_error *err) {
    const hn_layer_desc *d = &p->m->arch.layer[i];
    const int h = p->m->arch.hidden, ffn = d->ffn_width;
    const part gate = d->fused_gate_up ? (part){0, ffn, 2 * ffn} : whole(ffn),
               up = d->fused_gate_up ? (part){ffn, ffn, 2 * ffn} : whole(ffn);
    hn_layer *l = &p->m->layer[i];
    hunch_status st = plan_norm(p, d->post_norms ? HN_ROLE_PRE_FFN_NORM : HN_ROLE_FFN_NORM, i, h, &l->ffn_norm, err);
    if (!st) st = plan_matrix(p, d->fused_gate_up ? HN_ROLE_GATE_UP : HN_ROLE_GATE, i, h, gate, false, &l->gate, err);
    if (!st) st = plan_matrix(p, d->fused_gate_up ? HN_ROLE_GATE_UP : HN_ROLE_UP, i, h, up, true, &l->up, err);
    if (!st) st = plan_matrix(p, HN_ROLE_DOWN, i, ffn, whole(h), false, &l->down, err);
    if (!st && d->gate_up_bias) st = plan_bias(p, HN_ROLE_GATE_BIAS, i, ffn, &l->gate_bias, err);
    if (!st && d->gate_up_bias) st = plan_bias(p, HN_ROLE_UP_BIAS, i, ffn, &l->up_bias, err);
    if (!st && d->down_bias) st = plan_last_bias(p, HN_ROLE_DOWN_BIAS, i, &l->down_bias, err);
    if (!st && d->post_norms) st = plan_norm(p, HN_ROLE_POST_FFN_NORM, i, h, &l->post_ffn_norm, err);
    return st;
}

static hunch_status plan_layer(plan *p, int i, hunch_error *err) {
    hunch_status st = plan_attention(p, i, err);
    return st ? st : plan_ffn(p, i, err);
}

static bool begins(const char *name, const char *with) {
    return !strncmp(name, with, strlen(with));
}

/* A tensor of a GGUF's layers or output that nobody took would be left out in silence: the model is another one than its keys
 * say. (Of a folder, config.json says what there is.) Tables of the rotation follow from the keys. */
static hunch_status check_rest(const plan *p, hunch_error *err) {
    for (size_t i = 0; hn_source_get_kind(p->src) == HN_SOURCE_GGUF && i < hn_source_tensor_count(p->src); i++) {
        const hn_tensor *t = hn_source_tensor(p->src, i);
        const bool inside = begins(t->name, "blk.") || begins(t->name, "output");
        if (!t->used && inside && !strstr(t->name, "rot_embd") && !strstr(t->name, "rope_"))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: %s models are read without", hn_source_path(p->src),
                           t->name, p->m->arch.architecture);
    }
    return HUNCH_OK;
}

static hunch_status plan_model(plan *p, hunch_error *err) {
    hn_model *m = p->m;
    const hn_arch *a = &m->arch;
    p->item = hn_zalloc((size_t)a->layers * PER_LAYER + PER_MODEL, sizeof *p->item);
    m->layer = hn_zalloc((size_t)a->layers, sizeof *m->layer);
    if (!p->item || !m->layer) return hn_fail_memory(err, "layers", (size_t)a->layers * sizeof *m->layer);
    hunch_status st = plan_matrix(p, HN_ROLE_EMBEDDING, 0, a->hidden, whole(a->vocab), false, &m->embedding, err);
    if (st) return st;
    if (!a->tied) { /* a pass reads one row of it, no more */
        m->weight_bytes = 0;
        m->macs_per_row = 0;
    }
    for (int i = 0; !st && i < a->layers; i++) st = plan_layer(p, i, err);
    if (!st) st = plan_norm(p, HN_ROLE_OUTPUT_NORM, 0, a->hidden, &m->output_norm, err);
    if (!st && !a->tied) st = plan_matrix(p, HN_ROLE_OUTPUT, 0, a->hidden, whole(a->vocab), false, &m->output, err);
    return st ? st : check_rest(p, err);
}

hunch_status hn_model_mark(hn_source *src, hn_arch *arch, hunch_error *err) {
    hn_model m = {0};
    plan p = {.m = &m, .src = src};
    hn_ops_cpu(&m.ops, NULL, HN_ISA_REF, false);
    hunch_status st = hn_arch_read(&m.arch, src, err);
    if (!st) st = plan_model(&p, err);
    hn_free(p.item);
    hn_free(m.layer);
    if (st)
        hn_arch_fini(&m.arch);
    else
        *arch = m.arch;
    return st;
}

/* ---- packing -------------------------------------------------------------------------------------------------------- */

typedef struct pack_job {
    const hn_ops *ops;
    const hn_weight *w;
    const void *src;
    size_t row_bytes;
    const float *factors; /* of F8_E4M3: [blocks of rows][blocks of inputs] of the tensor; else NULL */
    int first;            /* row of the tensor at src */
} pack_job;

/* Those of the rows that strip s holds: strips never cross a block of rows. */
static const float *strip_factors(const pack_job *j, int s) {
    const size_t across = (size_t)(j->w->in + HN_F8_BLOCK - 1) / HN_F8_BLOCK;
    return j->factors ? j->factors + across * (size_t)((j->first + s * HN_STRIP) / HN_F8_BLOCK) : NULL;
}

static void pack_matrix(void *arg, int rank, int ranks) {
    (void)ranks;
    const pack_job *j = arg;
    hn_claim c = hn_claim_begin(j->ops->pool, rank, strips(j->w));
    for (int s; (s = hn_claim_next(&c)) >= 0;)
        j->ops->pack_strip(j->ops, j->w->dtype, j->w->out, j->w->in, j->src, j->row_bytes, strip_factors(j, s),
                           s * HN_STRIP, hn_at(j->w->data, (size_t)s * j->w->strip_stride));
    hn_barrier(j->ops->pool, rank);
}

static hunch_status load_vector(plan *p, const placement *it, hunch_error *err) {
    const size_t n = (size_t)it->tensor->dims[0];
    float *f = hn_alloc(n * sizeof *f);
    if (!f) return hn_fail_memory(err, it->tensor->name, n * sizeof *f);
    hn_dequantise(it->tensor->dtype, it->tensor->data, n, f);
    float *own = f + it->first;
    for (int i = 0; i < it->out; i++) own[i] = it->times * own[i] + it->more;
    *it->vector = (hn_buf){p->m->weights, it->off};
    p->m->ops.write(&p->m->ops, *it->vector, own, (size_t)it->out * sizeof *own);
    hn_free(f);
    return HUNCH_OK;
}

static hunch_status load_matrix(plan *p, const placement *it, hunch_error *err) {
    pack_job j = {.ops = &p->m->ops, .w = it->weight, .first = it->first};
    float *factors = NULL;
    hn_dtype_row_bytes(it->weight->dtype, (uint64_t)it->weight->in, &j.row_bytes);
    j.src = (const char *)it->tensor->data + (size_t)it->first * j.row_bytes;
    it->weight->data = (hn_buf){p->m->weights, it->off};
    if (it->factors) {
        const size_t n = (size_t)(it->factors->dims[0] * it->factors->dims[1]);
        factors = hn_alloc(n * sizeof *factors);
        if (!factors) return hn_fail_memory(err, it->factors->name, n * sizeof *factors);
        hn_dequantise(it->factors->dtype, it->factors->data, n, factors);
        j.factors = factors;
    }
    hn_pool_run(p->m->pool, pack_matrix, &j);
    hn_free(factors);
    return HUNCH_OK;
}

static hunch_status load_tensors(plan *p, const hn_model_load *load, hunch_error *err) {
    size_t done = 0, total = 1;
    for (int i = 0; i < p->n; i++) total += p->item[i].tensor->bytes;
    for (int i = 0; i < p->n; i++) {
        const placement *it = &p->item[i];
        hunch_status st = it->vector ? load_vector(p, it, err) : load_matrix(p, it, err);
        if (st) return st;
        hn_source_release(p->src, it->tensor);
        done += it->tensor->bytes;
        if (load->progress) load->progress(load->progress_user, (double)done / (double)total);
    }
    return HUNCH_OK;
}

static hunch_status load_rope(hn_model *m, const double *freq, float scale, size_t off, hn_rope *rope,
                              hunch_error *err) {
    const hn_arch *a = &m->arch;
    if (!freq) return HUNCH_OK;
    float *f = hn_alloc((size_t)a->rope_dims / 2 * sizeof *f);
    if (!f) return hn_fail_memory(err, "rope frequencies", (size_t)a->rope_dims / 2 * sizeof *f);
    for (int i = 0; i < a->rope_dims / 2; i++) f[i] = (float)freq[i];
    *rope = (hn_rope){a->rope_dims, a->rope_interleaved, scale, {m->weights, off}};
    m->ops.write(&m->ops, rope->freq, f, (size_t)a->rope_dims / 2 * sizeof *f);
    hn_free(f);
    return HUNCH_OK;
}

static hunch_status load_ropes(hn_model *m, size_t off, hunch_error *err) {
    const hn_arch *a = &m->arch;
    const size_t each = (size_t)a->rope_dims / 2 * sizeof(float);
    hunch_status st = load_rope(m, a->rope_freq, a->rope_scale, off, &m->rope, err);
    if (!st) st = load_rope(m, a->rope_long, a->rope_scale, off + each, &m->rope_long, err);
    return st ? st : load_rope(m, a->rope_local, 1, off + 2 * each, &m->rope_local, err);
}

const hn_rope *hn_model_rope(const hn_model *m, int max_context) {
    return m->arch.rope_long && max_context > m->arch.rope_original ? &m->rope_long : &m->rope;
}

static void choose_forms(hn_model *m) {
    const hn_ops *o = &m->ops;
    for (int i = 0; i < m->arch.layers; i++) {
        hn_layer *l = &m->layer[i];
        l->attn_forms = o->act_forms(o, l->q.dtype) | o->act_forms(o, l->k.dtype) | o->act_forms(o, l->v.dtype);
        l->o_forms = o->act_forms(o, l->o.dtype);
        l->ffn_forms = o->act_forms(o, l->gate.dtype) | o->act_forms(o, l->up.dtype);
        l->down_forms = o->act_forms(o, l->down.dtype);
    }
    m->output_forms = o->act_forms(o, m->output.dtype);
}

hunch_status hn_model_open(hn_model *m, hn_source *src, const hn_model_load *load, hunch_error *err) {
    memset(m, 0, sizeof *m);
    plan p = {.m = m, .src = src};
    m->pool = load->pool;
    m->owns_pool = !load->pool;
    hunch_status st = m->owns_pool ? hn_pool_create(&m->pool, load->threads, err) : HUNCH_OK;
    if (st) return st;
    hn_ops_cpu(&m->ops, m->pool, load->isa, load->f32);
    st = hn_arch_read(&m->arch, src, err);
    if (!st) st = plan_model(&p, err);
    const size_t rope_off = p.bytes;
    if (!st)
        st = m->ops.mem_create(&m->ops, rope_off + 3 * (size_t)m->arch.rope_dims / 2 * sizeof(float), &m->weights, err);
    if (!st) st = load_tensors(&p, load, err);
    if (!st) st = load_ropes(m, rope_off, err);
    if (!st) {
        if (m->arch.tied) m->output = m->embedding;
        choose_forms(m);
    }
    hn_free(p.item);
    if (st) hn_model_close(m);
    return st;
}

void hn_model_close(hn_model *m) {
    if (m->weights) m->ops.mem_free(&m->ops, m->weights);
    hn_arch_fini(&m->arch);
    hn_free(m->layer);
    if (m->owns_pool) hn_pool_free(m->pool);
    memset(m, 0, sizeof *m);
}
