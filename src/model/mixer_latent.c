/* SPDX-License-Identifier: Apache-2.0 */
/* mixer_latent.c - latent attention (DeepSeek-V2, 2405.04434, section 2.1), always in its absorbed form: prompts, plain and draft rows
 * read the same rows of the cache by the same products (contract C2).
 *
 *   [reduced query | c | k_r] = A norm(x)            q = Q norm(reduced query)     c and the reduced query are normed
 *   a head:  q' = [K_h q_nope | q_rope]              scores with rows [c | k_r] of all positions, of which c is the value
 *            result = V_h (weighted c)               x += o(results)
 */
#include "base/least.h"
#include "model/arch/latent_desc.h"
#include "model/mixers.h"
#include "model/split.h"

/* The norms inside have an epsilon of their own, whatever the model's is. */
#define LATENT_EPS 1e-6f

/* Beside q, o and its bias: the product that reduces to query_rank and that from its norm to the queries (none: q makes them of the input),
 * that to a latent row; for each head [rank, nope] and [value, rank]. */
typedef struct weights {
    hn_weight q_a, q_b, kv_a, k_b, v_b;
    hn_norm q_a_norm, kv_a_norm;  /* [query_rank], [rank] */
    hn_buf q_a_bias, kv_a_bias;   /* f32, the products', if any */
    int q_forms;                                     /* that the input of q_b must have */
} weights;

/* ---- tensors -------------------------------------------------------------------------------------------------------------- */

#define OF(l) hn_latent_of((l)->mixer)
HN_TENSOR_SIZE(n_query_rows, l->heads * (OF(l)->nope + OF(l)->rope))
HN_TENSOR_SIZE(n_query_rank, OF(l)->query_rank)
HN_TENSOR_SIZE(n_rank, OF(l)->rank)
HN_TENSOR_SIZE(n_latent_row, OF(l)->rank + OF(l)->rope)
HN_TENSOR_SIZE(n_nope, OF(l)->nope)
HN_TENSOR_SIZE(n_head_value, OF(l)->value)
HN_TENSOR_SIZE(n_latent_heads, l->heads * (OF(l)->nope + OF(l)->value))
HN_TENSOR_HAS(reduced, OF(l)->query_rank > 0)
HN_TENSOR_HAS(biased, l->qkv_bias)
HN_TENSOR_HAS(reduced_biased, reduced(a, l) && l->qkv_bias)
HN_TENSOR_HAS(joint, !OF(l)->split)
HN_TENSOR_HAS(split, OF(l)->split)

/* The matrices of heads, from two tensors, or from the rows of one. */
static hunch_status plan_heads(hn_plan *p, hn_tensor_id t, hunch_error *err) {
    const hn_layer_desc *l = &p->m->arch.layer[t.k];
    weights *w = p->m->layer[t.k].own[0];
    char both[128];
    const hn_part heads = hn_split_heads(p->m, t.k);
    if (!OF(l)->split) return hn_plan_heads(p, t, (hn_part){OF(l)->nope, OF(l)->value, NULL}, heads, &w->k_b, &w->v_b, err);
    hn_arch_tensor_name(&p->m->arch, HN_ROLE_KV_B, t.k, both); /* some files have the rows of one tensor too: the same numbers */
    hn_source_take(p->src, both);
    const hunch_status st = hn_plan_split_heads(p, HN_ROLE_K_B, t.k, heads, &w->k_b, err);
    return st ? st : hn_plan_split_heads(p, HN_ROLE_V_B, t.k, heads, &w->v_b, err);
}
static hunch_status planned(hn_plan *p HN_UNUSED, hn_tensor_id t HN_UNUSED, hunch_error *err HN_UNUSED) {
    return HUNCH_OK; /* with the other one */
}

#define n_one hn_size_one
#define n_hidden hn_size_hidden
#define GGUF HN_TENSOR_GGUF
#define FOLDER HN_TENSOR_FOLDER
#define AT(member) (int)offsetof(weights, member) + 1
#define ROW(role) ((int)(role) - (int)HN_ROLE_OF(latent, 0))
static const hn_tensor_row tensors[] = {
    [ROW(HN_ROLE_Q_A)] = {{GGUF("attn_q_a.weight"), FOLDER("self_attn.q_a_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_query_rank, HN_PHASE_QKV, reduced, AT(q_a)},
    [ROW(HN_ROLE_Q_A_BIAS)] = {{GGUF("attn_q_a.bias"), FOLDER("self_attn.q_a_proj.bias")},
        HN_IS_BIAS, n_query_rank, n_one, HN_PHASE_OTHER, reduced_biased, AT(q_a_bias)},
    [ROW(HN_ROLE_Q_A_NORM)] = {{GGUF("attn_q_a_norm.weight"), FOLDER("self_attn.q_a_layernorm.weight")},
        HN_IS_NORM, n_query_rank, n_one, HN_PHASE_OTHER, reduced, AT(q_a_norm), .eps = LATENT_EPS},
    [ROW(HN_ROLE_Q_B)] = {{GGUF("attn_q_b.weight"), FOLDER("self_attn.q_b_proj.weight")},
        HN_IS_MATRIX, n_query_rank, n_query_rows, HN_PHASE_QKV, reduced, AT(q_b)},
    [ROW(HN_ROLE_KV_A)] = {{GGUF("attn_kv_a_mqa.weight"), FOLDER("self_attn.kv_a_proj_with_mqa.weight")},
        HN_IS_MATRIX, n_hidden, n_latent_row, HN_PHASE_QKV, NULL, AT(kv_a)},
    [ROW(HN_ROLE_KV_A_BIAS)] = {{GGUF("attn_kv_a_mqa.bias"), FOLDER("self_attn.kv_a_proj_with_mqa.bias")},
        HN_IS_BIAS, n_latent_row, n_one, HN_PHASE_OTHER, biased, AT(kv_a_bias)},
    [ROW(HN_ROLE_KV_A_NORM)] = {{GGUF("attn_kv_a_norm.weight"), FOLDER("self_attn.kv_a_layernorm.weight")},
        HN_IS_NORM, n_rank, n_one, HN_PHASE_OTHER, NULL, AT(kv_a_norm), .eps = LATENT_EPS},
    [ROW(HN_ROLE_KV_B)] = {{GGUF("attn_kv_b.weight"), FOLDER("self_attn.kv_b_proj.weight")},
        HN_IS_MATRIX, n_rank, n_latent_heads, HN_PHASE_QKV, joint, .plan = plan_heads, .folder = true},
    [ROW(HN_ROLE_K_B)] = {{GGUF("attn_k_b.weight"), FOLDER("self_attn.kv_b_proj.weight")},
        HN_IS_OF_HEADS, n_nope, n_rank, HN_PHASE_QKV, split, .plan = plan_heads, .from = HN_ROLE_KV_B},
    [ROW(HN_ROLE_V_B)] = {{GGUF("attn_v_b.weight"), FOLDER("self_attn.kv_b_proj.weight")},
        HN_IS_OF_HEADS, n_rank, n_head_value, HN_PHASE_O, split, .plan = planned, .from = HN_ROLE_KV_B, .from_row = n_nope},};

static int matrices(const hn_layer *l, const void *own, const hn_weight *w[]) {
    const weights *of = own;
    const hn_weight *const all[] = {&l->q, &of->q_a, &of->q_b, &of->kv_a, &of->k_b, &of->v_b, &l->o};
    for (int i = 0; i < 7; i++) w[i] = all[i];
    return 7;
}

static int forms(const hn_backend *b, hn_layer *l, void *own) {
    weights *w = own;
    const bool has_rank = w->q_a.out > 0;
    w->q_forms = has_rank ? b->act_forms(b, w->q_b.dtype) : 0;
    l->o_forms = hn_forms_of(b, &l->o);
    return hn_forms_of(b, has_rank ? &w->q_a : &l->q) | hn_forms_of(b, &w->kv_a);
}

/* A folder has pairs too, unless it says otherwise. */
static hn_tensor_change change(const hn_arch *a, const hn_layer_desc *l, const hn_mixer_desc *own, hn_role role) {
    const hn_latent_desc *d = hn_latent_of(own);
    (void)l;
    if (role == HN_ROLE_K_B) return (hn_tensor_change){.way = HN_TRANSPOSED};
    if (a->rope_interleaved) return (hn_tensor_change){0};
    if (role == HN_ROLE_KV_A || role == HN_ROLE_KV_A_BIAS)
        return (hn_tensor_change){.way = HN_PAIRED, .size = d->rank + d->rope, .first = d->rank, .dims = d->rope};
    if (role == HN_ROLE_Q_B || role == HN_ROLE_Q)
        return (hn_tensor_change){.way = HN_PAIRED, .size = d->nope + d->rope, .first = d->nope, .dims = d->rope};
    return (hn_tensor_change){0};
}

/* ---- what it keeps ------------------------------------------------------------------------------------------------------- */

static int keeps(const hn_layer_desc *l, const hn_mixer_desc *own, hn_cache_group keep[HN_MOST_KEPT]) {
    keep[0] = (hn_cache_group){.name = l->window > 0 ? "window" : "attention", .kind = HN_CACHE_KV, .window = l->window,
                               .kv_heads = l->kv_heads, .head_dim = l->head_dim, .v_in_k = hn_latent_of(own)->rank};
    return 1;
}

static void work(const hn_layer_desc *l, const hn_mixer_desc *own, hn_dtype type, int committed, int n, hn_kv_work *w) {
    hn_cache_group keep[HN_MOST_KEPT];
    keeps(l, own, keep);
    hn_attention_work(l, keep, type, committed, n, w);
}

static void widen(hn_widths *w, const hn_layer_desc *l, const hn_mixer_desc *own, const hn_width_of *of) {
    const hn_latent_desc *d = hn_latent_of(own);
    hn_attention_widen(w, l, of);
    w->fused = hn_most(w->fused, hn_latent_queries_at(d) + l->heads * (d->nope + d->rope));
    w->z = hn_most(w->z, hn_layer_mixed_width(l));
    w->head = hn_most(w->head, hn_most(d->nope, d->rank));
    w->heads = hn_most(w->heads, l->heads);
    w->mixed = hn_most(w->mixed, hn_most(hn_layer_mixed_width(l), hn_most(d->query_rank, d->rank)));
}

/* ---- a pass -------------------------------------------------------------------------------------------------------------- */

/* The products that read the input, and the queries. */
static void queries_and_row(const hn_exec *ex, const hn_mixing *m, hn_count n, hn_matrix q, hn_matrix row) {
    const hn_ops *o = ex->ops;
    const weights *w = m->weights;
    const hn_latent_desc *d = hn_latent_of(m->own);
    const bool has_rank = d->query_rank > 0;
    const hn_matrix less = hn_columns(m->s->fused, 0, d->query_rank);
    const hn_act normed = hn_act_of(m->s->mixed, d->query_rank, w->q_forms);
    const hn_linear_out first[] = {{has_rank ? &w->q_a : &m->m->layer[m->layer].q, has_rank ? less : q}, {&w->kv_a, row}},
                        second = {&w->q_b, q};
    hn_layer_product(ex, n, m->in, first, 2, false, m->s);
    if (w->q_a_bias.mem) o->add_bias(ex, n, less, w->q_a_bias);
    if (w->kv_a_bias.mem) o->add_bias(ex, n, row, w->kv_a_bias);
    if (!has_rank) return;
    o->norm(ex, n, less, &w->q_a_norm, normed, hn_no_matrix);
    o->linear(ex, n, normed, &second, 1, false);
}

/* The latent row as a key: its first part normed, the rotated part copied. */
static void key_of_row(const hn_exec *ex, const hn_mixing *m, hn_count n, hn_matrix row, hn_matrix key) {
    const weights *w = m->weights;
    const hn_latent_desc *d = hn_latent_of(m->own);
    const hn_pick rotated = {hn_columns(row, d->rank, d->rope), hn_columns(key, d->rank, d->rope), 0, d->rope, d->rope};
    ex->ops->norm(ex, n, hn_columns(row, 0, d->rank), &w->kv_a_norm, hn_act_of(m->s->mixed, d->rank, 0),
                  hn_columns(key, 0, d->rank));
    ex->ops->pick(ex, n, &rotated, 1);
}

static void run(const hn_exec *ex, const hn_mixing *m) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->m->layer[m->layer];
    const weights *w = m->weights;
    const hn_layer_desc *d = m->d;
    const hn_latent_desc *t = hn_latent_of(m->own);
    const hn_pass_buffers *s = m->s;
    const hn_rows *rows = m->kept[0].rows;
    const hn_kv *kv = &m->kept[0].kv;
    const hn_count n = rows->n;
    const int width = d->heads * d->head_dim, plain = d->heads * (t->nope + t->rope);
    const hn_matrix row = hn_columns(s->fused, t->query_rank, t->rank + t->rope);
    const hn_matrix q = hn_columns(s->fused, hn_latent_queries_at(t), plain);
    const hn_qkv x = {hn_columns(s->qkv, 0, width), hn_columns(s->qkv, width, d->head_dim), hn_no_matrix, d->head_dim};
    const hn_matrix attended = hn_columns(s->attended, 0, d->heads * t->rank), results = hn_columns(s->z, 0, hn_layer_mixed_width(d));
    const hn_act mixed = hn_act_of(s->mixed, results.cols, l->o_forms);
    const hn_linear_out out = {&l->o, m->to};
    const hn_attention_params how = hn_layer_how(d);

    queries_and_row(ex, m, n, q, row);
    key_of_row(ex, m, n, row, x.k);
    if (d->query_scale.span > 0) o->scale_by_position(ex, rows, &d->query_scale, q);
    o->heads_linear(ex, n, &w->k_b, (hn_head_columns){q, t->nope + t->rope}, t->rope, s->head_in, (hn_head_columns){x.q, d->head_dim});
    o->rope_store(ex, rows, hn_layer_rotation(s, d), kv, &x);
    o->attention(ex, rows, kv, &how, x.q, attended, hn_act_of(s->mixed, attended.cols, 0), s->scratch);
    o->heads_linear(ex, n, &w->v_b, (hn_head_columns){attended, t->rank}, 0, s->head_in, (hn_head_columns){results, t->value});
    if (m->times != 1) o->scale(ex, n, results, m->times);
    o->quantise(ex, n, results, mixed);
    hn_layer_product(ex, n, mixed, &out, 1, m->add, m->s);
    if (d->o_bias) o->add_bias(ex, n, out.y, l->o_bias);
}

static const char *lacks(const hn_backend *b, const hn_layer_desc *l HN_UNUSED) {
    return b->ops->heads_linear ? NULL : hn_mixer_latent.name;
}

const hn_mixer_kind hn_mixer_latent = {.name = "latent attention", .attends = true, .tensor = tensors,
                                       .n_tensors = sizeof tensors / sizeof *tensors, .weights = sizeof(weights), .matrices = matrices,
                                       .forms = forms, .change = change, .keeps = keeps, .work = work, .widen = widen, .run = run,
                                       .lacks = lacks};
