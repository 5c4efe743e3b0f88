/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - the tensors of a model by its description, and where a pass finds them. Loading: weights.c. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/ffns.h"
#include "model/head/head_steps.h"
#include "model/mixers.h"
#include "model/split.h"

enum { MOST_LAYER_TENSORS = 32 }; /* beside those of experts */

static const hn_part whole = {0, 0, NULL};

/* A tensor, or the part of it that belongs where another one would. */
static hunch_status plan_part(hn_plan *p, hn_tensor_id t, hn_tensor_id of, hn_part part, hunch_error *err) {
    void *to = hn_tensor_place(p->m, of);
    part = hn_split_part(p->m, of, part);
    const bool pair = hn_role_is_paired(of.role);
    hunch_status st;
    if (hn_tensor_row_of(t.role)->plan) return hn_tensor_row_of(t.role)->plan(p, t, err);
    switch (hn_role_kind_of(t.role)) {
    case HN_IS_MATRIX:
        st = hn_plan_matrix(p, t, part, pair, to, err);
        ((hn_weight *)to)->wide = hn_role_phase(t.role) == HN_PHASE_ROUTER; /* a wrong choice is not a rounding error */
        return st;
    case HN_IS_OF_EXPERTS: return hn_plan_experts(p, t.role, t.k, part, pair, to, err);
    case HN_IS_OF_HEADS: break; /* by `plan` */
    case HN_IS_TABLE: return hn_plan_table(p, t.role, to, err);
    case HN_IS_CONVOLUTION: return hn_plan_convolution(p, t.role, t.k, part, to, err);
    case HN_IS_EXPERT_VECTORS: return hn_plan_expert_vectors(p, t.role, t.k, part, to, err);
    case HN_IS_SIDES:
    case HN_IS_NORM:
    case HN_IS_STORED_NORM: return hn_plan_norm(p, t, to, err);
    case HN_IS_BIAS:
    case HN_IS_VECTOR:
    case HN_IS_LIST: break;
    }
    return hn_plan_vector(p, t, part, to, err);
}

/* A tensor of any role where it belongs, or its parts where those do. */
static hunch_status plan_tensor(hn_plan *p, hn_tensor_id t, hunch_error *err) {
    const hn_role *parts = hn_role_parts(t.role);
    hunch_status st = parts ? HUNCH_OK : plan_part(p, t, t, whole, err);
    for (int k = 0, first = 0; !st && parts && k < 4 && parts[k]; k++) {
        const hn_tensor_id of = {parts[k], t.k, t.block};
        uint64_t dims[2];
        hn_arch_shape(&p->m->arch, of, dims);
        const hn_part part = {first, (int)dims[hn_role_is_vector(t.role) ? 0 : 1], NULL};
        st = plan_part(p, t, of, part, err);
        first += part.count;
    }
    return st;
}

/* Room for what the layer's mixers have beside hn_layer. */
static hunch_status open_mixers(hn_layer *l, const hn_layer_desc *d, hunch_error *err) {
    for (int k = 0; k < hn_layer_mixers(d); k++) {
        const size_t bytes = d->mixer[k].kind->weights;
        l->own[k] = bytes ? hn_zalloc(1, bytes) : NULL;
        if (bytes && !l->own[k]) return hn_fail_memory(err, "layers", bytes);
    }
    return HUNCH_OK;
}

/* Matrices in the order of a pass; vectors before those that are most. */
static hunch_status plan_layer(hn_plan *p, int i, hunch_error *err) {
    static const hn_phase order[] = {HN_PHASE_QKV, HN_PHASE_O, HN_PHASE_ROUTER, HN_PHASE_OTHER, HN_PHASE_GATE_UP, HN_PHASE_DOWN};
    const hn_layer_desc *d = &p->m->arch.layer[i];
    const hn_expert_desc *e = &d->experts;
    hn_layer *l = &p->m->layer[i];
    hunch_status st = open_mixers(l, d, err);
    if (d->v_norm) l->heads.v_norm = (hn_norm){.kind = hn_arch_norms(&p->m->arch), .eps = p->m->arch.norm_eps};
    if (hn_layer_has_experts(d)) {
        l->experts.choice = (hn_router){.experts = e->count, .used = e->used, .sigmoid = e->sigmoid, .normalised = e->normalised,
                                        .groups = e->groups, .groups_used = e->groups_used, .largest = e->largest,
                                        .scale = e->scale * hn_branch_times(&p->m->arch, d->ffn_times),
                                        .sum_more = e->sum_more};
        l->experts.unit = (hn_expert_unit){.limit = e->limit > 0 ? e->limit : d->expert_limit, .alpha = e->alpha,
                                           .ld_bias = e->width, .gelu = d->ffn == HN_FFN_BESIDE};
        p->m->expert_layers++;
    }
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        for (hn_role role = 0; !st && role < HN_ROLES_OF_MODELS; role++)
            if (hn_role_of_layer(role) && hn_role_phase(role) == order[k] && hn_arch_has(&p->m->arch, role, i))
                st = plan_tensor(p, (hn_tensor_id){role, i, 0}, err);
    return st;
}

static size_t frequency_bytes(const hn_rotation *r) {
    return (size_t)r->dims / 2 * sizeof(float);
}

/* Outside of layers. What a head reads itself, such as its tokens, has no place in the plan. */
static hunch_status plan_outside(hn_plan *p, hunch_error *err) {
    hn_model *m = p->m;
    hn_tensor_id t = {0, -1, 0};
    hunch_status st = HUNCH_OK;
    while (!st && hn_arch_next(&m->arch, &t)) {
        const uint64_t bytes = m->weight_bytes;
        const double macs = m->macs_per_row;
        if (hn_role_parts(t.role) || hn_tensor_place(m, t)) st = plan_tensor(p, t, err);
        if (!hn_tensor_row_of(t.role)->by_row || (m->arch.tied && !hn_arch_is_head(&m->arch))) continue;
        m->weight_bytes = bytes;
        m->macs_per_row = macs;
    }
    return st;
}

/* The lists of what a model has several of, and of the plan. */
static hunch_status create_lists(hn_plan *p, hunch_error *err) {
    hn_model *m = p->m;
    const hn_arch *a = &m->arch;
    const hn_steps_desc *steps = hn_head_steps(&a->draft_head);
    const size_t layers = (size_t)a->layers, convs = hn_head_conv_desc(&a->draft_head) ? 2 * layers : 0;
    size_t tensors = layers * MOST_LAYER_TENSORS;
    for (hn_tensor_id t = {0, -1, 0}; hn_arch_next(a, &t);) tensors += hn_role_parts(t.role) ? 4 : 1;
    for (size_t i = 0; i < layers; i++) tensors += 3 * (size_t)a->layer[i].experts.count;
    m->layer = hn_zalloc(layers + 1, sizeof *m->layer); /* a head may have none */
    m->head.conv = convs ? hn_zalloc(convs, sizeof *m->head.conv) : NULL;
    m->head.step = steps ? hn_zalloc((size_t)steps->n, sizeof *m->head.step) : NULL;
    p->item = hn_zalloc(tensors, sizeof *p->item);
    return m->layer && (m->head.conv || !convs) && (m->head.step || !steps) && p->item
               ? HUNCH_OK
               : hn_fail_memory(err, "the list of tensors", (layers + 1) * sizeof *m->layer + convs * sizeof *m->head.conv +
                                                                tensors * sizeof *p->item);
}

void hn_plan_rotations(hn_plan *p) {
    const hn_arch *a = &p->m->arch;
    size_t bytes = 0;
    for (int i = 0; i < a->rotations; i++) bytes += (a->rotation[i].freq_long ? 2 : 1) * frequency_bytes(&a->rotation[i]);
    p->tables = hn_plan_room(p, bytes);
}

hunch_status hn_plan_all(hn_plan *p, hn_model *m, hn_source *src, hunch_error *err) {
    p->m = m;
    p->src = src;
    hunch_status st = create_lists(p, err);
    if (!st) st = plan_outside(p, err);
    for (int i = 0; !st && i < m->arch.layers; i++) st = plan_layer(p, i, err);
    hn_plan_rotations(p);
    if (m->expert_layers > 0) m->expert_bytes /= (uint64_t)m->expert_layers;
    return st;
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

hunch_status hn_model_mark(hn_source *src, hn_arch *arch, hn_model_bytes *bytes, hunch_error *err) {
    hn_model m = {0};
    hn_plan p = {0};
    m.backend = hn_cpu_sizes();
    hunch_status st = hn_arch_read(&m.arch, src, err);
    if (!st) st = hn_plan_all(&p, &m, src, err);
    if (!st) st = check_rest(&p, err);
    if (!st) hn_head_mark_own(src, &m.arch);
    if (bytes) *bytes = (hn_model_bytes){p.bytes + p.factors * sizeof(float), p.stored, p.experts_memory, p.experts_stored, p.table};
    hn_plan_end(&p);
    hn_layers_free(&m);
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

void hn_model_choose_forms(hn_model *m) {
    hn_backend *o = m->backend;
    if (!m->run.at) m->run = hn_layers_of(&m->arch);
    m->recurrent = hn_model_is_recurrent(m->run);
    for (int i = 0; i < m->run.n; i++) {
        hn_layer *l = &m->layer[i];
        const hn_layer_desc *d = &m->run.at[i];
        l->attn_forms = 0;
        for (int k = 0; k < hn_layer_mixers(d); k++) {
            const hn_mixer_kind *kind = d->mixer[k].kind;
            l->attn_forms |= kind->forms ? kind->forms(o, l, l->own[k]) : HN_ACT_F32;
        }
        const hn_ffn_kind *ffn = hn_ffn_of(d);
        if (ffn) ffn->forms(o, d, l);
        l->input_forms = o->act_forms(o, l->input_gate.dtype);
        l->input_product_forms = o->act_forms(o, l->input_product.dtype);
        l->scale = 1;
        if (l->scale_at.mem) l->scale = *(const float *)o->read(o, (hn_ticket){0}, l->scale_at, sizeof l->scale);
    }
    m->output_forms = o->act_forms(o, m->output.dtype);
    m->token_forms = o->act_forms(o, m->token_product.dtype);
}

hunch_status hn_model_open(hn_model *m, hn_source *src, const hn_model_load *load, hunch_error *err) {
    memset(m, 0, sizeof *m);
    hn_plan p = {.mapped = load->mapped, .mapped_experts = load->mapped_experts};
    m->pool = load->pool;
    m->owns_pool = !load->pool;
    m->backend = load->backend;
    m->owns_backend = load->backend;
    hunch_status st = m->owns_pool ? hn_pool_create(&m->pool, load->threads, err) : HUNCH_OK;
    if (st) {
        hn_model_close(m);
        return st;
    }
    m->isa = load->isa;
    m->told_id = load->told_id;
    st = load->backend ? HUNCH_OK
         : load->link ? hn_ranks_backend_open(&m->backend, load->link, m->pool, load->isa, load->f32, err)
         : load->like ? load->like->open_like(load->like, load->f32, &m->backend, err)
                    : hn_cpu_backend_open(&m->backend, m->pool, load->isa, load->f32, err);
    if (!st && load->account) m->backend->account = load->account;
    m->owns_backend = !st || load->backend;
    hn_head_names names;
    if (!st) st = hn_arch_read(&m->arch, src, err);
    if (!st) st = hn_model_check_operations(m, src, err);
    if (!st) st = hn_split_open(m, src, err);
    if (!st) m->has_own_head = hn_head_find_own(src, &m->arch, &names);
    if (!st) st = hn_plan_all(&p, m, src, err);
    if (!st) st = check_rest(&p, err);
    if (!st) hn_head_mark_own(src, &m->arch);
    if (!st) st = hn_plan_load(&p, load, err);
    if (!st) st = hn_model_load_rotations(m, p.tables, err);
    if (!st) st = hn_backend_failed(m->backend, err);
    if (!st) {
        if (m->arch.tied) m->output = m->embedding;
        hn_split_finish(m);
    }
    if (!st) {
        if (load->mapped || m->token_table.by_row || (load->mapped_experts && m->expert_layers > 0)) m->files = src;
        hn_model_choose_forms(m);
    }
    hn_plan_end(&p);
    if (st) hn_model_close(m);
    return st;
}

void hn_layers_free(hn_model *m) {
    for (int i = 0; m->layer && i < m->arch.layers; i++)
        for (int k = 0; k < HN_LAYER_MIXERS; k++) hn_free(m->layer[i].own[k]);
    hn_free(m->layer);
    m->layer = NULL;
}

void hn_model_close(hn_model *m) {
    hn_backend *b = m->backend;
    const hn_told end = {HN_TOLD_MODEL_END, m->told_id};
    if (b && m->split && m->told_id > 0 && hn_link_leads(b->link)) b->link->send(b->link, &end, sizeof end);
    if (b) b->mem_free(b, m->weights);
    if (b) b->mem_free(b, m->head.table);
    if (b) b->mem_free(b, m->head.bias_rows);
    hn_free(m->head.conv);
    hn_steps_close(m);
    hn_layers_free(m);
    hn_split_close(m);
    hn_arch_fini(&m->arch);
    hn_free(m->each);
    hn_free(m->factors);
    if (m->owns_backend) b->close(b);
    if (m->owns_pool) hn_pool_free(m->pool);
    memset(m, 0, sizeof *m);
}
