/* SPDX-License-Identifier: Apache-2.0 */
/* mixer_delta.c - a gated delta net: its products, and between them one operation (ops/delta.h). */
#include "base/least.h"
#include "model/arch/delta_desc.h"
#include "model/mixers.h"
#include "ops/delta.h"

/* q | k | v, of which fused ones have z after those of each key head; [values, hidden]; [value heads, hidden] twice, no alpha if beta has
 * both; [hidden, values]. */
typedef struct weights {
    hn_weight q, z, beta, alpha, o;
    hn_buf conv, decay, dt; /* hn_delta's */
    hn_norm norm;
    int o_forms;
} weights;

static hn_delta sizes_of(const hn_mixer_desc *own) {
    const hn_delta_desc *n = hn_delta_of(own);
    return (hn_delta){.key_heads = n->key_heads, .value_heads = n->value_heads, .key_dim = n->key_dim, .value_dim = n->value_dim,
                      .taps = n->taps, .tiled = n->tiled};
}

/* ---- tensors -------------------------------------------------------------------------------------------------------------- */

static const hn_delta_desc *of_layer(const hn_layer_desc *l) {
    const int k = hn_layer_mixer(l, &hn_mixer_delta);
    return hn_delta_of(&l->mixer[k > 0 ? k : 0]);
}
HN_TENSOR_SIZE(n_taps, of_layer(l)->taps)
HN_TENSOR_SIZE(n_values, of_layer(l)->value_heads * of_layer(l)->value_dim)
HN_TENSOR_SIZE(n_channels, 2 * of_layer(l)->key_heads * of_layer(l)->key_dim + of_layer(l)->value_heads * of_layer(l)->value_dim)
HN_TENSOR_SIZE(n_channels_values, n_channels(a, l, t) + n_values(a, l, t))
HN_TENSOR_SIZE(n_value_heads, of_layer(l)->value_heads)
HN_TENSOR_SIZE(n_both_heads, 2 * of_layer(l)->value_heads)
HN_TENSOR_SIZE(n_value, of_layer(l)->value_dim)
HN_TENSOR_HAS(qkv_and_z, !of_layer(l)->fused)
HN_TENSOR_HAS(one_qkvz, of_layer(l)->fused)
HN_TENSOR_HAS(b_and_a, !of_layer(l)->fused_gates)
HN_TENSOR_HAS(one_ba, of_layer(l)->fused_gates)

#define n_one hn_size_one
#define n_hidden hn_size_hidden
#define GGUF HN_TENSOR_GGUF
#define FOLDER HN_TENSOR_FOLDER
#define AT(member) (int)offsetof(weights, member) + 1
#define ROW(role) ((int)(role) - (int)HN_ROLE_OF(delta, 0))
static const hn_tensor_row tensors[] = {
    [ROW(HN_ROLE_DELTA_QKV)] = {{GGUF("attn_qkv.weight"), FOLDER("linear_attn.in_proj_qkv.weight")},
        HN_IS_MATRIX, n_hidden, n_channels, HN_PHASE_QKV, qkv_and_z, AT(q)},
    [ROW(HN_ROLE_DELTA_Z)] = {{GGUF("attn_gate.weight"), FOLDER("linear_attn.in_proj_z.weight")},
        HN_IS_MATRIX, n_hidden, n_values, HN_PHASE_QKV, qkv_and_z, AT(z)},
    [ROW(HN_ROLE_DELTA_QKVZ)] = {{GGUF("ssm_in.weight"), FOLDER("linear_attn.in_proj_qkvz.weight")},
        HN_IS_MATRIX, n_hidden, n_channels_values, HN_PHASE_QKV, one_qkvz, AT(q)},
    [ROW(HN_ROLE_DELTA_B)] = {{GGUF("ssm_beta.weight"), FOLDER("linear_attn.in_proj_b.weight")},
        HN_IS_MATRIX, n_hidden, n_value_heads, HN_PHASE_QKV, b_and_a, AT(beta)},
    [ROW(HN_ROLE_DELTA_A)] = {{GGUF("ssm_alpha.weight"), FOLDER("linear_attn.in_proj_a.weight")},
        HN_IS_MATRIX, n_hidden, n_value_heads, HN_PHASE_QKV, b_and_a, AT(alpha)},
    [ROW(HN_ROLE_DELTA_BA)] = {{GGUF("ssm_ba.weight"), FOLDER("linear_attn.in_proj_ba.weight")},
        HN_IS_MATRIX, n_hidden, n_both_heads, HN_PHASE_QKV, one_ba, AT(beta)},
    [ROW(HN_ROLE_DELTA_CONV)] = {{GGUF("ssm_conv1d.weight"), FOLDER("linear_attn.conv1d.weight")},
        HN_IS_CONVOLUTION, n_taps, n_channels, HN_PHASE_OTHER, NULL, AT(conv), .change = HN_CHANGE_TAPS},
    [ROW(HN_ROLE_DELTA_DECAY)] = {{GGUF("ssm_a"), FOLDER("linear_attn.A_log")},
        HN_IS_VECTOR, n_value_heads, n_one, HN_PHASE_OTHER, NULL, AT(decay), .change = HN_CHANGE_DECAY},
    [ROW(HN_ROLE_DELTA_DT)] = {{GGUF("ssm_dt.bias"), FOLDER("linear_attn.dt_bias")},
        HN_IS_VECTOR, n_value_heads, n_one, HN_PHASE_OTHER, NULL, AT(dt)},
    [ROW(HN_ROLE_DELTA_NORM)] = {{GGUF("ssm_norm.weight"), FOLDER("linear_attn.norm.weight")},
        HN_IS_STORED_NORM, n_value, n_one, HN_PHASE_OTHER, NULL, AT(norm)},
    [ROW(HN_ROLE_DELTA_OUT)] = {{GGUF("ssm_out.weight"), FOLDER("linear_attn.out_proj.weight")},
        HN_IS_MATRIX, n_values, n_hidden, HN_PHASE_O, NULL, AT(o)},};

static int matrices(const hn_layer *l HN_UNUSED, const void *own, const hn_weight *w[]) {
    const weights *of = own;
    const hn_weight *const all[] = {&of->q, &of->z, &of->beta, &of->alpha, &of->o};
    for (int i = 0; i < 5; i++) w[i] = all[i];
    return 5;
}

static int forms(const hn_backend *b, hn_layer *l HN_UNUSED, void *own) {
    weights *w = own;
    const hn_weight *const read[] = {&w->q, &w->z, &w->beta, &w->alpha};
    int of_input = 0;
    for (int i = 0; i < 4; i++)
        if (read[i]->out > 0) of_input |= b->act_forms(b, read[i]->dtype);
    w->o_forms = b->act_forms(b, w->o.dtype);
    return of_input;
}

/* Value heads are tiled in a GGUF, but where its b and a are by key heads. */
static hn_tensor_change change(const hn_arch *a HN_UNUSED, const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_role role) {
    const hn_delta_desc *d = hn_delta_of(own);
    hn_tensor_change c = {.way = HN_TILED, .size = d->value_dim, .keys = d->key_heads,
                          .each = d->fused_gates ? 1 : d->value_heads / d->key_heads};
    switch (ROW(role)) {
    case ROW(HN_ROLE_DELTA_QKV):
    case ROW(HN_ROLE_DELTA_CONV): c.first = 2 * d->key_heads * d->key_dim; return c;
    case ROW(HN_ROLE_DELTA_Z): return c;
    case ROW(HN_ROLE_DELTA_OUT): c.way = HN_TILED_COLUMNS; return c;
    case ROW(HN_ROLE_DELTA_B):
    case ROW(HN_ROLE_DELTA_A):
    case ROW(HN_ROLE_DELTA_DECAY):
    case ROW(HN_ROLE_DELTA_DT): c.size = 1; return c;
    default: return (hn_tensor_change){0};
    }
}

/* ---- what it keeps ------------------------------------------------------------------------------------------------------- */

/* A state for each value head, and the inputs of rows until they are absorbed into it. */
static int keeps(const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_cache_group keep[HN_MOST_KEPT]) {
    const hn_delta d = sizes_of(own);
    keep[0] = (hn_cache_group){.name = "state", .kind = HN_CACHE_STATE, .units = d.value_heads,
                               .unit_bytes = sizeof(float) * (size_t)hn_delta_state(&d)};
    keep[1] = (hn_cache_group){.name = "inputs", .kind = HN_CACHE_ROWS, .window = d.taps, .units = 1,
                               .unit_bytes = sizeof(float) * (size_t)((hn_delta_inputs(&d) + 15) & ~15)};
    return 2;
}

/* The state is read and written; each of its numbers is used twice and then computed anew. */
static void work(const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_dtype type HN_UNUSED, int committed HN_UNUSED, int n,
                 hn_kv_work *w) {
    const hn_delta d = sizes_of(own);
    const double state = (double)hn_delta_state(&d) * d.value_heads;
    w->bytes += 2 * state * (double)sizeof(float);
    w->macs += 3 * state * n;
}

static void widen(hn_widths *w, const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, const hn_width_of *of) {
    const hn_delta d = sizes_of(own);
    const hn_delta_desc *n = hn_delta_of(own);
    const size_t scratch = of->backend->delta_scratch(of->backend, &d);
    w->qkv = hn_most(w->qkv, hn_delta_channels(&d));
    w->mixed = hn_most(w->mixed, hn_delta_values(&d));
    w->z = hn_most(w->z, hn_delta_values(&d));
    w->gates = hn_most(w->gates, 2 * d.value_heads);
    if (n->fused || n->fused_gates) w->fused = hn_most(w->fused, hn_delta_channels(&d) + hn_delta_values(&d) + 2 * d.value_heads);
    if (scratch > w->scratch) w->scratch = scratch;
}

/* ---- a pass -------------------------------------------------------------------------------------------------------------- */

static hn_delta net_of(const hn_mixing *x) {
    const weights *w = x->weights;
    hn_delta d = sizes_of(x->own);
    d.conv = w->conv;
    d.decay = w->decay;
    d.dt = w->dt;
    d.norm = w->norm;
    return d;
}

/* The products of a layer's input as the net reads them: q | k | v, z, and b | a; and those whose parts are interleaved by key heads,
 * one after another. */
typedef struct parts {
    hn_matrix m, z, b, a;
    hn_matrix all, gates; /* fused: of q, k, v and z; of b and a */
} parts;

static parts parts_of(const hn_delta *net, const hn_pass_buffers *s) {
    const int channels = hn_delta_channels(net), values = hn_delta_values(net), heads = net->value_heads;
    return (parts){.m = hn_columns(s->qkv, 0, channels),
                   .z = hn_columns(s->z, 0, values),
                   .b = hn_columns(s->gates, 0, heads),
                   .a = hn_columns(s->gates, heads, heads),
                   .all = hn_columns(s->fused, 0, channels + values),
                   .gates = hn_columns(s->fused, channels + values, 2 * heads)};
}

/* Reorders fused products. */
static void sort_out(const hn_exec *ex, hn_count n, const hn_delta_desc *d, const hn_delta *net, const parts *p) {
    const int each = d->value_heads / d->key_heads, values = each * d->value_dim, key = d->key_dim, run = 2 * key + 2 * values;
    const int keys = hn_delta_keys(net);
    hn_pick part[6];
    int k = 0;
    if (d->fused) {
        part[k++] = (hn_pick){p->all, hn_columns(p->m, 0, keys), 0, key, run};
        part[k++] = (hn_pick){p->all, hn_columns(p->m, keys, keys), key, key, run};
        part[k++] = (hn_pick){p->all, hn_columns(p->m, 2 * keys, hn_delta_values(net)), 2 * key, values, run};
        part[k++] = (hn_pick){p->all, p->z, 2 * key + values, values, run};
    }
    if (d->fused_gates) {
        part[k++] = (hn_pick){p->gates, p->b, 0, each, 2 * each};
        part[k++] = (hn_pick){p->gates, p->a, each, each, 2 * each};
    }
    if (k > 0) ex->ops->pick(ex, n, part, k);
}

/* The products of the layer's input. */
static void products(const hn_exec *ex, const hn_mixing *x, hn_count n, const hn_delta *net, const parts *p) {
    const weights *w = x->weights;
    const hn_delta_desc *d = hn_delta_of(x->own);
    hn_linear_out out[4];
    int k = 0;
    out[k++] = (hn_linear_out){&w->q, d->fused ? p->all : p->m};
    if (!d->fused) out[k++] = (hn_linear_out){&w->z, p->z};
    out[k++] = (hn_linear_out){&w->beta, d->fused_gates ? p->gates : p->b};
    if (!d->fused_gates) out[k++] = (hn_linear_out){&w->alpha, p->a};
    ex->ops->linear(ex, n, x->in, out, k, false);
    sort_out(ex, n, d, net, p);
}

static void run(const hn_exec *ex, const hn_mixing *x) {
    const hn_ops *o = ex->ops;
    const weights *w = x->weights;
    const hn_pass_buffers *s = x->s;
    const hn_delta net = net_of(x);
    const parts p = parts_of(&net, s);
    const hn_count n = s->rows->n;
    const hn_act mixed = hn_act_of(s->mixed, p.z.cols, w->o_forms);
    const hn_linear_out out = {&w->o, x->to};
    const hn_delta_job job = {.net = &net,
                              .walk = x->walk,
                              .n_seqs = s->rows->n_seqs,
                              .inputs = x->kept[1].inputs,
                              .states = x->kept[0].states,
                              .m = p.m,
                              .z = p.z,
                              .b = p.b,
                              .a = p.a,
                              .scratch = s->scratch};
    products(ex, x, n, &net, &p);
    o->delta(ex, &job);
    if (x->times != 1) o->scale(ex, n, p.z, x->times);
    o->quantise(ex, n, p.z, mixed);
    o->linear(ex, n, mixed, &out, 1, x->add);
}

static const char *lacks(const hn_backend *b, const hn_layer_desc *l HN_UNUSED) { return b->ops->delta ? NULL : hn_mixer_delta.name; }

const hn_mixer_kind hn_mixer_delta = {.name = "a gated delta net", .as_stored = "a gated delta net's weights", .tensor = tensors,
                                      .n_tensors = sizeof tensors / sizeof *tensors, .weights = sizeof(weights), .matrices = matrices,
                                      .forms = forms, .change = change, .keeps = keeps, .work = work, .widen = widen, .run = run,
                                      .lacks = lacks};
