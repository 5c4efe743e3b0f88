/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - the tensors of a model by its description, and where a pass finds them. Loading: weights.c. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/head/head_steps.h"

enum { PER_MODEL = 6 };

static const hn_part whole = {0, 0};

/* q, k and v: tensors of their own, or rows of a fused one; their biases likewise. */
static hunch_status plan_qkv(hn_plan *p, int i, hunch_error *err) {
    const hn_layer_desc *d = &p->m->arch.layer[i];
    hn_layer *l = &p->m->layer[i];
    const int q = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    static const hn_role own[] = {HN_ROLE_Q, HN_ROLE_K, HN_ROLE_V},
                         own_bias[] = {HN_ROLE_Q_BIAS, HN_ROLE_K_BIAS, HN_ROLE_V_BIAS};
    const hn_part fused[] = {{0, q}, {q, kv}, {q + kv, kv}};
    hn_weight *const w[] = {&l->q, &l->k, &l->v};
    hn_buf *const bias[] = {d->gated ? &l->gated_bias : &l->heads.q_bias, &l->heads.k_bias, &l->heads.v_bias};
    hunch_status st = HUNCH_OK;
    for (int j = 0; !st && j < 3; j++) {
        if (!d->fused_qkv && !hn_arch_has(&p->m->arch, own[j], i)) continue;
        st = d->fused_qkv ? hn_plan_matrix(p, HN_ROLE_QKV, i, fused[j], false, w[j], err)
                          : hn_plan_matrix(p, own[j], i, whole, false, w[j], err);
    }
    for (int j = 0; !st && j < 3; j++)
        st = d->fused_qkv ? hn_plan_vector(p, HN_ROLE_QKV_BIAS, i, fused[j], bias[j], err)
                          : hn_plan_vector(p, own_bias[j], i, whole, bias[j], err);
    return st;
}

/* The gated delta net in place of attention. */
static hunch_status plan_delta(hn_plan *p, int i, hunch_error *err) {
    const hn_delta_desc *d = &p->m->arch.layer[i].delta;
    hn_layer *l = &p->m->layer[i];
    hunch_status st = hn_plan_matrix(p, d->fused ? HN_ROLE_DELTA_QKVZ : HN_ROLE_DELTA_QKV, i, whole, false, &l->q, err);
    if (!st && !d->fused) st = hn_plan_matrix(p, HN_ROLE_DELTA_Z, i, whole, false, &l->z, err);
    if (!st) st = hn_plan_matrix(p, d->fused_gates ? HN_ROLE_DELTA_BA : HN_ROLE_DELTA_B, i, whole, false, &l->beta, err);
    if (!st && !d->fused_gates) st = hn_plan_matrix(p, HN_ROLE_DELTA_A, i, whole, false, &l->alpha, err);
    if (!st) st = hn_plan_convolution(p, HN_ROLE_DELTA_CONV, i, &l->conv, err);
    return st ? st : hn_plan_matrix(p, HN_ROLE_DELTA_OUT, i, whole, false, &l->o, err);
}

static hunch_status plan_latent(hn_plan *p, int i, hunch_error *err) {
    hn_layer *l = &p->m->layer[i];
    const bool reduced = p->m->arch.layer[i].latent.query_rank > 0;
    hunch_status st = reduced ? hn_plan_matrix(p, HN_ROLE_Q_A, i, whole, false, &l->q_a, err) : HUNCH_OK;
    if (!st) st = hn_plan_matrix(p, reduced ? HN_ROLE_Q_B : HN_ROLE_Q, i, whole, false, &l->q, err);
    if (!st) st = hn_plan_matrix(p, HN_ROLE_KV_A, i, whole, false, &l->kv_a, err);
    return st ? st : hn_plan_heads(p, i, err);
}

static hunch_status plan_mixer(hn_plan *p, int i, hunch_error *err) {
    const hn_mixer mixer = p->m->arch.layer[i].mixer;
    if (mixer == HN_MIXER_DELTA) return plan_delta(p, i, err);
    hunch_status st = mixer == HN_MIXER_LATENT ? plan_latent(p, i, err) : plan_qkv(p, i, err);
    return st ? st : hn_plan_matrix(p, HN_ROLE_O, i, whole, false, &p->m->layer[i].o, err);
}

static hunch_status plan_gate_up(hn_plan *p, int i, hunch_error *err) {
    const hn_layer_desc *d = &p->m->arch.layer[i];
    const bool fused = d->fused_gate_up;
    const hn_part gate = {0, fused ? d->ffn_width : 0}, up = {fused ? d->ffn_width : 0, fused ? d->ffn_width : 0};
    hn_layer *l = &p->m->layer[i];
    hunch_status st = hn_plan_matrix(p, fused ? HN_ROLE_GATE_UP : HN_ROLE_GATE, i, gate, false, &l->gate, err);
    return st ? st : hn_plan_matrix(p, fused ? HN_ROLE_GATE_UP : HN_ROLE_UP, i, up, true, &l->up, err);
}

/* A router keeps full precision: a wrong choice is not a rounding error. */
static hunch_status plan_router(hn_plan *p, hn_role role, int i, hn_weight *w, hunch_error *err) {
    hunch_status st = hn_plan_matrix(p, role, i, whole, false, w, err);
    w->wide = true;
    return st;
}

static hunch_status plan_shared(hn_plan *p, int i, hunch_error *err) {
    hn_layer_experts *l = &p->m->layer[i].experts;
    const hn_expert_desc *d = &p->m->arch.layer[i].experts;
    if (d->shared_width == 0) return HUNCH_OK;
    hunch_status st = d->shared_gate ? plan_router(p, HN_ROLE_SHARED_ROUTER, i, &l->shared_router, err) : HUNCH_OK;
    if (!st) st = hn_plan_matrix(p, HN_ROLE_SHARED_GATE, i, whole, false, &l->shared_gate, err);
    if (!st) st = hn_plan_matrix(p, HN_ROLE_SHARED_UP, i, whole, true, &l->shared_up, err);
    return st ? st : hn_plan_matrix(p, HN_ROLE_SHARED_DOWN, i, whole, false, &l->shared_down, err);
}

/* Biases of gate and up: two tensors, or one with an expert's gate and up one after another. */
static hunch_status plan_expert_biases(hn_plan *p, int i, hunch_error *err) {
    hn_layer_experts *l = &p->m->layer[i].experts;
    const hn_expert_desc *d = &p->m->arch.layer[i].experts;
    const hn_part halves[] = {{0, d->width}, {d->width, d->width}};
    l->unit = (hn_expert_unit){.limit = d->limit, .alpha = d->alpha, .ld_bias = d->width,
                               .gelu = p->m->arch.layer[i].ffn == HN_FFN_BESIDE};
    hunch_status st = hn_plan_vector(p, HN_ROLE_SCORE_BIAS, i, whole, &l->score_bias, err);
    if (!st) st = hn_plan_expert_vectors(p, HN_ROLE_EXPERT_GATE_UP_BIAS, i, halves[0], &l->unit.gate_bias, err);
    if (!st) st = hn_plan_expert_vectors(p, HN_ROLE_EXPERT_GATE_UP_BIAS, i, halves[1], &l->unit.up_bias, err);
    if (!st) st = hn_plan_expert_vectors(p, HN_ROLE_EXPERT_GATE_BIAS, i, whole, &l->unit.gate_bias, err);
    if (!st) st = hn_plan_expert_vectors(p, HN_ROLE_EXPERT_UP_BIAS, i, whole, &l->unit.up_bias, err);
    return st ? st : hn_plan_expert_vectors(p, HN_ROLE_EXPERT_DOWN_BIAS, i, whole, &l->down_bias, err);
}

static hunch_status plan_experts(hn_plan *p, int i, hunch_error *err) {
    hn_layer_experts *l = &p->m->layer[i].experts;
    const hn_expert_desc *d = &p->m->arch.layer[i].experts;
    const bool both = hn_arch_has(&p->m->arch, HN_ROLE_EXPERT_GATE_UP, i);
    const hn_part gate = {0, both ? d->width : 0}, up = {both ? d->width : 0, both ? d->width : 0};
    l->choice = (hn_router){.experts = d->count, .used = d->used, .sigmoid = d->sigmoid, .normalised = d->normalised,
                            .groups = d->groups, .groups_used = d->groups_used, .largest = d->largest, .scale = d->scale};
    p->m->expert_layers++;
    hunch_status st = plan_router(p, HN_ROLE_ROUTER, i, &l->router, err);
    if (!st) st = hn_plan_vector(p, HN_ROLE_ROUTER_BIAS, i, whole, &l->choice.bias, err);
    if (!st) st = plan_shared(p, i, err);
    if (!st) st = plan_expert_biases(p, i, err);
    if (!st) st = hn_plan_experts(p, both ? HN_ROLE_EXPERT_GATE_UP : HN_ROLE_EXPERT_GATE, i, gate, false, &l->gate, err);
    if (!st) st = hn_plan_experts(p, both ? HN_ROLE_EXPERT_GATE_UP : HN_ROLE_EXPERT_UP, i, up, true, &l->up, err);
    return st ? st : hn_plan_experts(p, HN_ROLE_EXPERT_DOWN, i, whole, false, &l->down, err);
}

static hunch_status plan_ffn(hn_plan *p, int i, hunch_error *err) {
    const hn_layer_desc *d = &p->m->arch.layer[i];
    hunch_status st = HUNCH_OK;
    if (d->ffn != HN_FFN_EXPERTS) {
        st = plan_gate_up(p, i, err);
        if (!st) st = hn_plan_matrix(p, HN_ROLE_DOWN, i, whole, false, &p->m->layer[i].down, err);
    }
    return st || !hn_layer_has_experts(d) ? st : plan_experts(p, i, err);
}

/* The token's own input of a layer. */
static hunch_status plan_input(hn_plan *p, int i, hunch_error *err) {
    hn_layer *l = &p->m->layer[i];
    if (p->m->arch.layer[i].token_input == 0) return HUNCH_OK;
    hunch_status st = hn_plan_matrix(p, HN_ROLE_INPUT_GATE, i, whole, false, &l->input_gate, err);
    return st ? st : hn_plan_matrix(p, HN_ROLE_INPUT_PRODUCT, i, whole, false, &l->input_product, err);
}

/* All vectors of the description. */
static hunch_status plan_vectors(hn_plan *p, int i, hunch_error *err) {
    hn_layer *l = &p->m->layer[i];
    const struct {
        hn_role role;
        hn_buf *dst;
    } all[] = {{HN_ROLE_ATTN_NORM, &l->attn_norm},     {HN_ROLE_O_BIAS, &l->o_bias},
               {HN_ROLE_Q_NORM, &l->heads.q_norm},     {HN_ROLE_K_NORM, &l->heads.k_norm},
               {HN_ROLE_SINKS, &l->sinks},
               {HN_ROLE_POST_ATTN_NORM, &l->post_attn_norm}, {HN_ROLE_FFN_NORM, &l->ffn_norm},
               {HN_ROLE_PRE_FFN_NORM, &l->ffn_norm},   {HN_ROLE_GATE_BIAS, &l->gate_bias},
               {HN_ROLE_UP_BIAS, &l->up_bias},         {HN_ROLE_DOWN_BIAS, &l->down_bias},
               {HN_ROLE_POST_FFN_NORM, &l->post_ffn_norm}, {HN_ROLE_HYBRID_FFN_NORM, &l->ffn_norm},
               {HN_ROLE_DELTA_DECAY, &l->decay},       {HN_ROLE_DELTA_DT, &l->dt},
               {HN_ROLE_DELTA_NORM, &l->delta_norm},   {HN_ROLE_INPUT_NORM, &l->input_norm},
               {HN_ROLE_LAYER_SCALE, &l->scale_at},
               {HN_ROLE_ROUTER_SCALE, &l->experts.router_norm}, {HN_ROLE_EXPERT_SCALE, &l->experts.choice.expert_scale},
               {HN_ROLE_PRE_EXPERTS_NORM, &l->experts.norm},    {HN_ROLE_POST_DENSE_NORM, &l->experts.post_dense_norm},
               {HN_ROLE_POST_EXPERTS_NORM, &l->experts.post_norm},
               {HN_ROLE_Q_A_NORM, &l->q_a_norm},       {HN_ROLE_KV_A_NORM, &l->kv_a_norm},
               {HN_ROLE_Q_A_BIAS, &l->q_a_bias},       {HN_ROLE_KV_A_BIAS, &l->kv_a_bias}};
    hunch_status st = HUNCH_OK;
    for (size_t k = 0; !st && k < sizeof all / sizeof *all; k++)
        st = hn_plan_vector(p, all[k].role, i, whole, all[k].dst, err);
    return st;
}

/* Matrices in the order of a pass. */
hunch_status hn_plan_layer(hn_plan *p, int i, hunch_error *err) {
    hn_layer *l = &p->m->layer[i];
    l->heads.eps = p->m->arch.norm_eps;
    l->heads.v_norm = p->m->arch.layer[i].v_norm;
    hunch_status st = plan_mixer(p, i, err);
    if (!st) st = plan_ffn(p, i, err);
    if (!st) st = plan_input(p, i, err);
    return st ? st : plan_vectors(p, i, err);
}

static size_t frequency_bytes(const hn_rotation *r) {
    return (size_t)r->dims / 2 * sizeof(float);
}

void hn_plan_rotations(hn_plan *p) {
    const hn_arch *a = &p->m->arch;
    size_t bytes = 0;
    for (int i = 0; i < a->rotations; i++) bytes += (a->rotation[i].freq_long ? 2 : 1) * frequency_bytes(&a->rotation[i]);
    p->tables = hn_plan_room(p, bytes);
}

static bool begins(const char *name, const char *with) {
    return !strncmp(name, with, strlen(with));
}

/* Whether the tensor belongs to a layer of multi-token prediction after the model's own. */
static bool of_next_layers(const hn_arch *a, const char *name) {
    int layer, end = 0;
    return a->files.next_layers > 0 && sscanf(name, "blk.%d.%n", &layer, &end) == 1 && end > 0 && layer >= a->layers &&
           layer < a->layers + a->files.next_layers;
}

/* Refuses an unused tensor of a GGUF's layers or output: the model is another one than its keys describe. (In a folder,
 * config.json describes it.) Tables of the rotation follow from the keys. */
static hunch_status check_rest(const hn_plan *p, hunch_error *err) {
    for (size_t i = 0; hn_source_get_kind(p->src) == HN_SOURCE_GGUF && i < hn_source_tensor_count(p->src); i++) {
        const hn_tensor *t = hn_source_tensor(p->src, i);
        if (of_next_layers(&p->m->arch, t->name) || hn_arch_is_unread(&p->m->arch, t->name)) continue;
        const bool inside = begins(t->name, "blk.") || begins(t->name, "output");
        if (!t->used && inside && !strstr(t->name, "rot_embd") && !strstr(t->name, "rope_"))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: %s models are read without", hn_source_path(p->src),
                           t->name, p->m->arch.architecture);
    }
    return HUNCH_OK;
}

/* What makes the inputs that each token has for every layer. */
static hunch_status plan_token_inputs(hn_plan *p, hunch_error *err) {
    hn_model *m = p->m;
    hunch_status st = hn_plan_table(p, HN_ROLE_TOKEN_TABLE, &m->token_table, err);
    if (!st && hn_arch_has(&m->arch, HN_ROLE_TOKEN_PRODUCT, 0))
        st = hn_plan_matrix(p, HN_ROLE_TOKEN_PRODUCT, 0, whole, false, &m->token_product, err);
    return st ? st : hn_plan_vector(p, HN_ROLE_TOKEN_NORM, 0, whole, &m->token_norm, err);
}

static hunch_status plan_model(hn_plan *p, hn_model *m, hn_source *src, const hn_model_load *load, hunch_error *err) {
    const hn_arch *a = &m->arch;
    const size_t room = (size_t)a->layers * HN_MOST_LAYER_TENSORS + hn_plan_expert_tensors(a) + PER_MODEL;
    hunch_status st = hn_plan_begin(p, m, src, load->mapped, room, err);
    if (st) return st;
    p->mapped_experts = load->mapped_experts;
    m->layer = hn_zalloc((size_t)a->layers, sizeof *m->layer);
    if (!m->layer) return hn_fail_memory(err, "layers", (size_t)a->layers * sizeof *m->layer);
    st = hn_plan_matrix(p, HN_ROLE_EMBEDDING, 0, whole, false, &m->embedding, err);
    if (st) return st;
    if (!a->tied) { /* a pass reads only one row of it */
        m->weight_bytes = 0;
        m->macs_per_row = 0;
    }
    st = plan_token_inputs(p, err);
    for (int i = 0; !st && i < a->layers; i++) st = hn_plan_layer(p, i, err);
    if (!st) st = hn_plan_vector(p, HN_ROLE_OUTPUT_NORM, 0, whole, &m->output_norm, err);
    if (!st && !a->tied) st = hn_plan_matrix(p, HN_ROLE_OUTPUT, 0, whole, false, &m->output, err);
    hn_plan_rotations(p);
    if (m->expert_layers > 0) m->expert_bytes /= (uint64_t)m->expert_layers;
    return st ? st : check_rest(p, err);
}

hunch_status hn_model_mark(hn_source *src, hn_arch *arch, hn_model_bytes *bytes, hunch_error *err) {
    hn_model m = {0};
    hn_plan p = {0};
    m.backend = hn_cpu_sizes();
    hunch_status st = hn_arch_read(&m.arch, src, err);
    if (!st) st = plan_model(&p, &m, src, &(hn_model_load){.mapped = false}, err);
    if (!st) hn_head_mark_own(src, &m.arch);
    if (bytes) *bytes = (hn_model_bytes){p.bytes + p.factors * sizeof(float), p.stored, p.experts_memory, p.experts_stored, p.table};
    hn_plan_end(&p);
    hn_free(m.layer);
    if (st)
        hn_arch_fini(&m.arch);
    else
        *arch = m.arch;
    return st;
}

/* Loads frequencies of a rotation to *off, and moves *off behind them. */
static hunch_status load_rope(hn_model *m, const hn_rotation *r, const double *freq, size_t *off, hn_rope *rope, hunch_error *err) {
    const size_t bytes = frequency_bytes(r);
    float *f = hn_alloc(bytes);
    if (!f) return hn_fail_memory(err, "rope frequencies", bytes);
    for (int i = 0; i < r->dims / 2; i++) f[i] = (float)freq[i];
    *rope = (hn_rope){r->first, r->dims, m->arch.rope_interleaved, r->scale, {m->weights, *off}};
    m->backend->write(m->backend, rope->freq, f, bytes);
    *off += bytes;
    hn_free(f);
    return HUNCH_OK;
}

hunch_status hn_model_load_rotations(hn_model *m, size_t off, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < m->arch.rotations; i++) {
        const hn_rotation *r = &m->arch.rotation[i];
        st = load_rope(m, r, r->freq, &off, &m->rope[i], err);
        if (!st && r->freq_long) st = load_rope(m, r, r->freq_long, &off, &m->rope_long[i], err);
    }
    return st;
}

const hn_rope *hn_model_rope(const hn_model *m, int rotation, int max_context) {
    const hn_rotation *r = &m->arch.rotation[rotation];
    return r->freq_long && max_context > (int)r->scaling.original ? &m->rope_long[rotation] : &m->rope[rotation];
}

static void choose_expert_forms(const hn_backend *o, const hn_expert_desc *d, hn_layer_experts *e) {
    e->in_forms = HN_ACT_F32 | o->act_forms(o, e->gate.dtype) | o->act_forms(o, e->up.dtype); /* routers read F32 */
    e->down_forms = o->act_forms(o, e->down.dtype);
    if (d->shared_width == 0) return;
    e->in_forms |= o->act_forms(o, e->shared_gate.dtype) | o->act_forms(o, e->shared_up.dtype);
    e->shared_forms = o->act_forms(o, e->shared_down.dtype);
}

void hn_model_choose_forms(hn_model *m) {
    hn_backend *o = m->backend;
    for (int i = 0; i < m->arch.layers; i++) {
        hn_layer *l = &m->layer[i];
        const bool reduced = l->q_a.out > 0; /* q reads another product */
        const hn_weight *const read[] = {reduced ? &l->q_a : &l->q, &l->k, &l->v, &l->z, &l->beta, &l->alpha, &l->kv_a};
        l->attn_forms = 0;
        l->q_forms = reduced ? o->act_forms(o, l->q.dtype) : 0;
        for (size_t k = 0; k < sizeof read / sizeof *read; k++)
            if (read[k]->out > 0) l->attn_forms |= o->act_forms(o, read[k]->dtype);
        l->o_forms = o->act_forms(o, l->o.dtype);
        l->ffn_forms = o->act_forms(o, l->gate.dtype) | o->act_forms(o, l->up.dtype);
        l->down_forms = o->act_forms(o, l->down.dtype);
        l->input_forms = o->act_forms(o, l->input_gate.dtype);
        l->input_product_forms = o->act_forms(o, l->input_product.dtype);
        l->scale = 1;
        if (l->scale_at.mem) l->scale = *(const float *)o->read(o, (hn_ticket){0}, l->scale_at, sizeof l->scale);
        if (hn_layer_has_experts(&m->arch.layer[i])) choose_expert_forms(o, &m->arch.layer[i].experts, &l->experts);
    }
    m->output_forms = o->act_forms(o, m->output.dtype);
    m->token_forms = o->act_forms(o, m->token_product.dtype);
}

hunch_status hn_model_open(hn_model *m, hn_source *src, const hn_model_load *load, hunch_error *err) {
    memset(m, 0, sizeof *m);
    hn_plan p = {0};
    m->pool = load->pool;
    m->owns_pool = !load->pool;
    hunch_status st = m->owns_pool ? hn_pool_create(&m->pool, load->threads, err) : HUNCH_OK;
    if (st) return st;
    m->isa = load->isa;
    st = load->like ? load->like->open_like(load->like, load->f32, &m->backend, err)
                    : hn_cpu_backend_open(&m->backend, m->pool, load->isa, load->f32, err);
    if (!st && load->account) m->backend->account = load->account;
    m->owns_backend = !st;
    hn_head_names names;
    if (!st) st = hn_arch_read(&m->arch, src, err);
    if (!st) m->has_own_head = hn_head_find_own(src, &m->arch, &names);
    if (!st) st = plan_model(&p, m, src, load, err);
    if (!st) hn_head_mark_own(src, &m->arch);
    if (!st) st = hn_plan_load(&p, load, err);
    if (!st) st = hn_model_load_rotations(m, p.tables, err);
    if (!st) {
        if (m->arch.tied) m->output = m->embedding;
        if (load->mapped || m->token_table.by_row || (load->mapped_experts && m->expert_layers > 0)) m->files = src;
        hn_model_choose_forms(m);
    }
    hn_plan_end(&p);
    if (st) hn_model_close(m);
    return st;
}

void hn_model_close(hn_model *m) {
    hn_backend *b = m->backend;
    if (b) b->mem_free(b, m->weights);
    if (b) b->mem_free(b, m->head.table);
    if (b) b->mem_free(b, m->head.bias_rows);
    hn_free(m->head.conv);
    hn_steps_close(m);
    hn_arch_fini(&m->arch);
    hn_free(m->layer);
    hn_free(m->each);
    hn_free(m->factors);
    if (m->owns_backend) b->close(b);
    if (m->owns_pool) hn_pool_free(m->pool);
    memset(m, 0, sizeof *m);
}
