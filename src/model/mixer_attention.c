/* SPDX-License-Identifier: Apache-2.0 */
/* mixer_attention.c - grouped-query attention over the paged cache. Its weights are in hn_layer: draft heads and latent attention name some
 * of its tensors too. */
#include "base/least.h"
#include "model/arch/latent_desc.h"
#include "model/mixers.h"
#include "model/split.h"
#include "ops/kv.h"

/* ---- tensors ------------------------------------------------------------------------------------------------------------ */

HN_TENSOR_SIZE(n_read, hn_layer_reads_pair(l) ? 2 * a->hidden : a->hidden) /* the input of the products of a layer's mixers */
HN_TENSOR_SIZE(n_query_norm, (l->norm_rows ? l->heads : 1) * l->head_dim)
HN_TENSOR_SIZE(n_key_norm, (l->norm_rows ? l->kv_heads : 1) * l->head_dim)
static int of_query(const hn_layer_desc *l) {
    const hn_latent_desc *d = hn_layer_latent(l);
    return d ? d->nope + d->rope : (l->gate.in_q ? 2 : 1) * l->head_dim;
}
HN_TENSOR_SIZE(n_query_rows, l->heads * of_query(l))
HN_TENSOR_SIZE(n_query_heads, l->heads)
HN_TENSOR_SIZE(n_gate, l->gate.of_heads ? l->heads : hn_layer_mixed_width(l))
HN_TENSOR_SIZE(n_keys, l->kv_heads * l->head_dim)
HN_TENSOR_SIZE(n_values, l->kv_heads * hn_layer_value_dim(l))
HN_TENSOR_SIZE(n_all_heads, (l->heads + 2 * l->kv_heads) * l->head_dim)
HN_TENSOR_SIZE(n_mixed, hn_layer_mixed_width(l))

/* Latent attention has q and o too. */
HN_TENSOR_HAS(attention, hn_layer_mixer(l, &hn_mixer_attention) >= 0)
HN_TENSOR_HAS(latent, hn_layer_latent(l))
HN_TENSOR_HAS(attends, attention(a, l) || latent(a, l))
HN_TENSOR_HAS(own_q, latent(a, l) ? !hn_layer_latent(l)->query_rank : attention(a, l) && !l->fused_qkv)
HN_TENSOR_HAS(own_k, attention(a, l) && !l->fused_qkv && l->kv_back == 0)
HN_TENSOR_HAS(own_v, own_k(a, l) && !l->v_is_k)
HN_TENSOR_HAS(one_qkv, attention(a, l) && l->fused_qkv)
HN_TENSOR_HAS(three_biases, attention(a, l) && l->qkv_bias && !l->fused_qkv)
HN_TENSOR_HAS(one_bias, attention(a, l) && l->qkv_bias && l->fused_qkv)
HN_TENSOR_HAS(qk_norm, attention(a, l) && l->qk_norm)
HN_TENSOR_HAS(k_norm, qk_norm(a, l) && l->kv_back == 0)
HN_TENSOR_HAS(sinks, attention(a, l) && l->sinks)
HN_TENSOR_HAS(own_gate, attention(a, l) && hn_gate_has_matrix(&l->gate))
HN_TENSOR_HAS(o_bias, attends(a, l) && l->o_bias)

#define n_one hn_size_one
#define n_hidden hn_size_hidden
#define GGUF HN_TENSOR_GGUF
#define FOLDER HN_TENSOR_FOLDER
#define AT HN_AT_LAYER
const hn_tensor_row hn_attention_tensors[HN_ROLES_OF_MIXERS] = {
    [HN_ROLE_Q] = {{GGUF("attn_q.weight"), FOLDER("self_attn.q_proj.weight")},
        HN_IS_MATRIX, n_read, n_query_rows, HN_PHASE_QKV, own_q, AT(q)},
    [HN_ROLE_K] = {{GGUF("attn_k.weight"), FOLDER("self_attn.k_proj.weight")},
        HN_IS_MATRIX, n_read, n_keys, HN_PHASE_QKV, own_k, AT(k)},
    [HN_ROLE_V] = {{GGUF("attn_v.weight"), FOLDER("self_attn.v_proj.weight")},
        HN_IS_MATRIX, n_read, n_values, HN_PHASE_QKV, own_v, AT(v)},
    [HN_ROLE_QKV] = {{GGUF("attn_qkv.weight"), FOLDER("self_attn.qkv_proj.weight")},
        HN_IS_MATRIX, n_read, n_all_heads, HN_PHASE_QKV, one_qkv, .of = {HN_ROLE_Q, HN_ROLE_K, HN_ROLE_V}},
    [HN_ROLE_Q_BIAS] = {{GGUF("attn_q.bias"), FOLDER("self_attn.q_proj.bias")},
        HN_IS_BIAS, n_query_rows, n_one, HN_PHASE_OTHER, three_biases, AT(heads.q_bias)},
    [HN_ROLE_K_BIAS] = {{GGUF("attn_k.bias"), FOLDER("self_attn.k_proj.bias")},
        HN_IS_BIAS, n_keys, n_one, HN_PHASE_OTHER, three_biases, AT(heads.k_bias)},
    [HN_ROLE_V_BIAS] = {{GGUF("attn_v.bias"), FOLDER("self_attn.v_proj.bias")},
        HN_IS_BIAS, n_values, n_one, HN_PHASE_OTHER, three_biases, AT(heads.v_bias)},
    [HN_ROLE_QKV_BIAS] = {{GGUF("attn_qkv.bias"), FOLDER("self_attn.qkv_proj.bias")},
        HN_IS_BIAS, n_all_heads, n_one, HN_PHASE_OTHER, one_bias, .of = {HN_ROLE_Q_BIAS, HN_ROLE_K_BIAS, HN_ROLE_V_BIAS}},
    [HN_ROLE_Q_NORM] = {{GGUF("attn_q_norm.weight"), FOLDER("self_attn.q_norm.weight")},
        HN_IS_NORM, n_query_norm, n_one, HN_PHASE_OTHER, qk_norm, AT(heads.q_norm)},
    [HN_ROLE_K_NORM] = {{GGUF("attn_k_norm.weight"), FOLDER("self_attn.k_norm.weight")},
        HN_IS_NORM, n_key_norm, n_one, HN_PHASE_OTHER, k_norm, AT(heads.k_norm)},
    [HN_ROLE_SINKS] = {{GGUF("attn_sinks.weight"), FOLDER("self_attn.attention_sink_bias")},
        HN_IS_VECTOR, n_query_heads, n_one, HN_PHASE_OTHER, sinks, AT(sinks)},
    [HN_ROLE_HEADS_GATE] = {{GGUF("attn_gate.weight"), FOLDER("self_attn.g_proj.weight")},
        HN_IS_MATRIX, n_read, n_gate, HN_PHASE_QKV, own_gate, AT(g)},
    [HN_ROLE_O] = {{GGUF("attn_output.weight"), FOLDER("self_attn.o_proj.weight")},
        HN_IS_MATRIX, n_mixed, n_hidden, HN_PHASE_O, attends, AT(o)},
    [HN_ROLE_O_BIAS] = {{GGUF("attn_output.bias"), FOLDER("self_attn.o_proj.bias")},
        HN_IS_BIAS, n_hidden, n_one, HN_PHASE_OTHER, o_bias, AT(o_bias)},};

/* ---- weights ------------------------------------------------------------------------------------------------------------ */

static int matrices(const hn_layer *l, const void *own HN_UNUSED, const hn_weight *w[]) {
    const hn_weight *const all[] = {&l->q, &l->k, &l->v, &l->g, &l->o};
    for (int i = 0; i < 5; i++) w[i] = all[i];
    return 5;
}

static int forms(const hn_backend *b, hn_layer *l, void *own HN_UNUSED) {
    const hn_weight *const read[] = {&l->q, &l->k, &l->v, &l->g};
    int of_input = 0;
    for (int i = 0; i < 4; i++)
        if (read[i]->out > 0) of_input |= hn_forms_of(b, read[i]);
    l->o_forms = hn_forms_of(b, &l->o);
    return of_input;
}

/* ---- what it keeps ------------------------------------------------------------------------------------------------------- */

static int keeps(const hn_layer_desc *l, const hn_mixer_desc *own HN_UNUSED, hn_cache_group keep[HN_MOST_KEPT]) {
    keep[0] = (hn_cache_group){.name = l->window > 0 ? "window" : "attention", .kind = HN_CACHE_KV, .window = l->window,
                               .kv_heads = l->kv_heads, .head_dim = l->head_dim, .v_dim = l->narrow};
    return 1;
}

void hn_attention_work(const hn_layer_desc *l, const hn_cache_group *keep, hn_dtype type, int committed, int n, hn_kv_work *w) {
    const hn_attention_params how = hn_layer_how(l);
    const hn_kv kv = hn_group_kv(keep, type);
    const int read = hn_kv_read(&how, committed, n);
    w->elements += hn_kv_elements(&kv, read);
    w->bytes += hn_kv_read_bytes(&kv, read);
    for (int r = 0; r < n; r++) w->macs += hn_kv_macs(&kv, &how, committed + r, committed + r);
}

static void work(const hn_layer_desc *l, const hn_mixer_desc *own, hn_dtype type, int committed, int n, hn_kv_work *w) {
    hn_cache_group keep[HN_MOST_KEPT];
    keeps(l, own, keep);
    hn_attention_work(l, keep, type, committed, n, w);
}

void hn_attention_widen(hn_widths *w, const hn_layer_desc *l, const hn_width_of *of) {
    const size_t scratch = of->backend->attention_scratch(of->backend, of->rows, l->heads, of->kv, of->positions);
    w->attended = hn_most(w->attended, l->heads * l->head_dim);
    w->kv = hn_most(w->kv, l->kv_heads * l->head_dim);
    if (scratch > w->scratch) w->scratch = scratch;
}

static void widen(hn_widths *w, const hn_layer_desc *l, const hn_mixer_desc *own HN_UNUSED, const hn_width_of *of) {
    hn_attention_widen(w, l, of);
    if (l->gate.in_q) w->fused = hn_most(w->fused, 2 * l->heads * l->head_dim);
    if (hn_gate_is(&l->gate)) w->z = hn_most(w->z, hn_layer_mixed_width(l));
}

/* ---- a pass -------------------------------------------------------------------------------------------------------------- */

/* Separates q and gates: in the product each head of q is followed by its gate. */
static void part_gates(const hn_exec *ex, hn_count n, const hn_layer_desc *d, hn_matrix q, hn_matrix gates, const hn_pass_buffers *s) {
    const hn_matrix both = hn_columns(s->fused, 0, 2 * q.cols);
    const hn_pick part[] = {{both, q, 0, d->head_dim, 2 * d->head_dim}, {both, gates, d->head_dim, d->head_dim, 2 * d->head_dim}};
    ex->ops->pick(ex, n, part, 2);
}

/* The columns of z that have the gates. */
static hn_matrix gates_of(const hn_layer_desc *d, const hn_pass_buffers *s) {
    return hn_columns(s->z, 0, d->gate.of_heads ? d->heads : hn_layer_mixed_width(d));
}

/* The attention's result, scaled or gated, in the form that o reads. */
static void mix(const hn_exec *ex, const hn_mixing *x, hn_count n, hn_matrix attended, hn_act mixed) {
    const hn_gate *gate = &x->d->gate;
    const hn_matrix by = gates_of(x->d, x->s);
    if ((gate->in_q || gate->of_numbers) && !gate->softplus) {
        const hn_glu_in in = {.gate = by, .up = attended};
        ex->ops->glu(ex, n, HN_GATE, &in, x->times, mixed);
        return;
    }
    if (hn_gate_is(gate)) {
        ex->ops->apply(ex, n, gate->softplus ? HN_SOFTPLUS : HN_SIGMOID, HN_INTO_SET, by, (hn_buf){NULL, 0}, by);
        ex->ops->scale_groups(ex, n, by, attended.cols / by.cols, attended);
    }
    if (x->times != 1) ex->ops->scale(ex, n, attended, x->times);
    ex->ops->quantise(ex, n, attended, mixed);
}

/* Queries, keys and values side by side; queries alone if the layer stores no rows. */
static hn_qkv heads_of(const hn_layer_desc *d, bool stores, const hn_pass_buffers *s) {
    const int q = d->heads * d->head_dim, k = stores ? d->kv_heads * d->head_dim : 0, v = stores ? d->kv_heads * hn_layer_value_dim(d) : 0;
    return (hn_qkv){hn_columns(s->qkv, 0, q), hn_columns(s->qkv, q, k), hn_columns(s->qkv, q + k, v), d->head_dim};
}

/* Norms over whole rows: each matrix is one head as wide as it is; so are narrow values, which have a bias alone. */
static void fix_apart(const hn_exec *ex, hn_count n, const hn_layer_desc *d, const hn_head_fix *fix, const hn_qkv *x) {
    const bool rows = hn_layer_norms_rows(d);
    const hn_qkv q = {x->q, hn_no_matrix, hn_no_matrix, rows ? x->q.cols : x->head_dim},
                 k = {hn_no_matrix, x->k, hn_no_matrix, rows ? x->k.cols : x->head_dim}, v = {hn_no_matrix, hn_no_matrix, x->v, x->v.cols};
    if (x->q.cols > 0) ex->ops->fix_heads(ex, n, fix, &q);
    if (x->k.cols > 0) ex->ops->fix_heads(ex, n, fix, &k);
    if (x->v.cols > 0 && fix->v_bias.mem) ex->ops->fix_heads(ex, n, fix, &v);
}

/* Over ranks: q and k of all heads, in whose columns the products wrote the own ones; normed, the own ones are those of x. */
static hn_qkv all_heads(const hn_mixing *m) {
    const hn_layer_split *s = &m->m->split->layer[m->layer];
    const int q = hn_slices_width(&s->q), k = hn_slices_width(&s->k);
    return (hn_qkv){hn_columns(m->s->heads, 0, q), hn_columns(m->s->heads, q, k), hn_no_matrix, m->d->head_dim};
}
static hn_qkv own_heads(const hn_mixing *m) {
    const hn_layer_split *s = &m->m->split->layer[m->layer];
    const hn_qkv all = all_heads(m);
    const int q = m->d->heads * m->d->head_dim, k = m->d->kv_heads * m->d->head_dim;
    /* of a head that others have too the slice is none */
    const int at = hn_own_count(&s->k) > 0 ? hn_own_first(&s->k) : hn_own_first(&s->k) - k;
    return (hn_qkv){hn_columns(all.q, hn_own_first(&s->q), q), hn_columns(all.k, at, k), hn_no_matrix, all.head_dim};
}

static void fix_joined(const hn_exec *ex, const hn_mixing *m, const hn_head_fix *fix, const hn_qkv *x) {
    const hn_layer_split *s = &m->m->split->layer[m->layer];
    const hn_qkv all = all_heads(m), own = own_heads(m), values = {hn_no_matrix, hn_no_matrix, x->v, x->head_dim};
    const hn_pick part[] = {{own.q, x->q, 0, x->q.cols, 0}, {own.k, x->k, 0, x->k.cols, 0}};
    const hn_count n = m->s->rows->n;
    ex->ops->join(ex, n, &s->q, all.q, m->s->join_room);
    ex->ops->join(ex, n, &s->k, all.k, m->s->join_room);
    fix_apart(ex, n, m->d, fix, &all);
    if (fix->v_bias.mem || fix->v_norm.kind) ex->ops->fix_heads(ex, n, fix, &values);
    ex->ops->pick(ex, n, part, 2);
}

/* Biases, norms and rotation in the layer's order; keys and values are stored. */
static void finish_heads(const hn_exec *ex, const hn_mixing *m, const hn_qkv *x) {
    const hn_ops *o = ex->ops;
    const hn_layer_desc *d = m->d;
    const hn_rows *rows = m->kept[0].rows;
    const hn_kv *kv = &m->kept[0].kv;
    const hn_rope_table *by = hn_layer_rotation(m->s, d);
    const hn_head_fix *fix = &m->m->layer[m->layer].heads;
    const hn_qkv q = {x->q, hn_no_matrix, hn_no_matrix, x->head_dim}, k = {x->k, hn_no_matrix, hn_no_matrix, x->head_dim};
    hn_head_fix biases = *fix, norms = {.q_norm = fix->q_norm, .k_norm = fix->k_norm};
    if (d->qk_norm && d->norm_late) { /* what is rotated as queries is not stored */
        biases.q_norm = biases.k_norm = (hn_norm){.kind = HN_NO_NORM};
        if (d->qkv_bias || d->v_norm) o->fix_heads(ex, rows->n, &biases, x);
        if (by && q.q.cols > 0) o->rope_store(ex, rows, by, kv, &q);
        if (by && k.q.cols > 0) o->rope_store(ex, rows, by, kv, &k);
        o->fix_heads(ex, rows->n, &norms, x);
        by = NULL;
    } else if (hn_layer_norms_rows(d) && m->m->split) {
        fix_joined(ex, m, fix, x);
    } else if (hn_layer_norms_rows(d) || (d->qkv_bias && d->narrow > 0)) {
        fix_apart(ex, rows->n, d, fix, x);
    } else if (d->qkv_bias || d->qk_norm || d->v_norm) {
        o->fix_heads(ex, rows->n, fix, x);
    }
    if (d->query_scale.span > 0 && x->q.cols > 0) o->scale_by_position(ex, rows, &d->query_scale, x->q);
    o->rope_store(ex, rows, by, kv, x);
}

static void run(const hn_exec *ex, const hn_mixing *m) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->m->layer[m->layer];
    const hn_layer_desc *d = m->d;
    const hn_pass_buffers *s = m->s;
    const hn_rows *rows = m->kept[0].rows;
    const hn_kv *kv = &m->kept[0].kv;
    const bool stores = rows->slot.mem && d->kv_back == 0; /* else queries alone */
    const hn_count n = rows->n;
    const int q_width = d->heads * d->head_dim, mixed_width = hn_layer_mixed_width(d);
    const hn_qkv x = heads_of(d, stores, s);
    const hn_matrix fused = hn_columns(s->fused, 0, 2 * q_width), attended = hn_columns(s->attended, 0, mixed_width);
    const bool in_q = d->gate.in_q;
    hn_linear_out product[4] = {{&l->q, in_q ? fused : x.q}, {&l->k, x.k}, {&l->v, x.v}};
    int products = !stores ? 1 : d->v_is_k ? 2 : 3;
    const hn_pick copy = {x.k, x.v, 0, x.v.cols, 0};
    const hn_linear_out out = {&l->o, m->to};
    const hn_act mixed = hn_act_of(s->mixed, mixed_width, l->o_forms);

    if (hn_layer_norms_rows(d) && m->m->split) {
        const hn_qkv own = own_heads(m);
        product[0].y = own.q;
        product[1].y = own.k;
    }
    if (hn_gate_has_matrix(&d->gate)) product[products++] = (hn_linear_out){&l->g, gates_of(d, s)};
    hn_layer_product(ex, n, m->in, product, products, false, s);
    if (in_q && d->qkv_bias) o->add_bias(ex, n, fused, l->gated_bias);
    if (in_q) part_gates(ex, n, d, x.q, gates_of(d, s), s);
    if (stores && d->v_is_k) o->pick(ex, n, &copy, 1);
    finish_heads(ex, m, &x);
    hn_attention_params how = hn_layer_how(d);
    how.sinks = l->sinks;
    how.ahead |= !rows->slot.mem; /* rows without slots see up to the last one of others */
    const bool later = hn_gate_is(&d->gate) || m->times != 1;
    o->attention(ex, rows, kv, &how, x.q, attended, hn_act_of(mixed, mixed_width, later ? 0 : l->o_forms), s->scratch);
    if (later) mix(ex, m, n, attended, mixed);
    hn_layer_product(ex, n, mixed, &out, 1, m->add, s);
    if (d->o_bias) o->add_bias(ex, n, out.y, l->o_bias);
}

/* Rows of the text in a head of blocks (DFlash, 2602.06036): keys and values by the layer's own products from one vector for each position,
 * norm(fc(feature)). */
static void context(const hn_exec *ex, const hn_mixing *m) {
    const hn_layer *l = &m->m->layer[m->layer];
    const hn_layer_desc *d = m->d;
    const hn_rows *rows = m->kept[0].rows;
    const int width = d->kv_heads * d->head_dim, values = d->kv_heads * hn_layer_value_dim(d);
    const hn_qkv x = {hn_no_matrix, hn_columns(m->s->qkv, 0, width), hn_columns(m->s->qkv, width, values), d->head_dim};
    const hn_linear_out both[] = {{&l->k, x.k}, {&l->v, x.v}};
    hn_layer_product(ex, rows->n, m->in, both, 2, false, m->s);
    finish_heads(ex, m, &x);
}

static const char *lacks(const hn_backend *b, const hn_layer_desc *l) {
    if (l->query_scale.span > 0 && !b->ops->scale_by_position) return "a scale of queries by position";
    return (l->gate.of_heads || l->gate.softplus) && !b->ops->scale_groups ? "gates of heads" : NULL;
}

const hn_mixer_kind hn_mixer_attention = {.name = "attention", .attends = true, .matrices = matrices, .forms = forms, .keeps = keeps,
                                          .work = work, .widen = widen, .run = run, .context = context, .lacks = lacks};
