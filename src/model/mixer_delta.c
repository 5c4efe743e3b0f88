/* SPDX-License-Identifier: Apache-2.0 */
/* mixer_delta.c - a gated delta net: its products, and between them one operation (ops/delta.h). */
#include <assert.h>

#include "base/least.h"
#include "model/arch/delta_desc.h"
#include "model/mixers.h"
#include "model/split.h"
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

enum { ROWS_CHANNELS, ROWS_VALUES, ROWS_HEADS, ROWS_FUSED, ROWS_FUSED_GATES }; /* shares of ranks */

#define n_one hn_size_one
#define n_hidden hn_size_hidden
#define GGUF HN_TENSOR_GGUF
#define FOLDER HN_TENSOR_FOLDER
#define AT(member) (int)offsetof(weights, member) + 1
#define ROW(role) ((int)(role) - (int)HN_ROLE_OF(delta, 0))
static const hn_tensor_row tensors[] = {
    [ROW(HN_ROLE_DELTA_QKV)] = {{GGUF("attn_qkv.weight"), FOLDER("linear_attn.in_proj_qkv.weight")},
        HN_IS_MATRIX, n_hidden, n_channels, HN_PHASE_QKV, qkv_and_z, AT(q), .share = 1 + ROWS_CHANNELS},
    [ROW(HN_ROLE_DELTA_Z)] = {{GGUF("attn_gate.weight"), FOLDER("linear_attn.in_proj_z.weight")},
        HN_IS_MATRIX, n_hidden, n_values, HN_PHASE_QKV, qkv_and_z, AT(z), .share = 1 + ROWS_VALUES},
    [ROW(HN_ROLE_DELTA_QKVZ)] = {{GGUF("ssm_in.weight"), FOLDER("linear_attn.in_proj_qkvz.weight")},
        HN_IS_MATRIX, n_hidden, n_channels_values, HN_PHASE_QKV, one_qkvz, AT(q), .share = 1 + ROWS_FUSED},
    [ROW(HN_ROLE_DELTA_B)] = {{GGUF("ssm_beta.weight"), FOLDER("linear_attn.in_proj_b.weight")},
        HN_IS_MATRIX, n_hidden, n_value_heads, HN_PHASE_QKV, b_and_a, AT(beta), .share = 1 + ROWS_HEADS},
    [ROW(HN_ROLE_DELTA_A)] = {{GGUF("ssm_alpha.weight"), FOLDER("linear_attn.in_proj_a.weight")},
        HN_IS_MATRIX, n_hidden, n_value_heads, HN_PHASE_QKV, b_and_a, AT(alpha), .share = 1 + ROWS_HEADS},
    [ROW(HN_ROLE_DELTA_BA)] = {{GGUF("ssm_ba.weight"), FOLDER("linear_attn.in_proj_ba.weight")},
        HN_IS_MATRIX, n_hidden, n_both_heads, HN_PHASE_QKV, one_ba, AT(beta), .share = 1 + ROWS_FUSED_GATES},
    [ROW(HN_ROLE_DELTA_CONV)] = {{GGUF("ssm_conv1d.weight"), FOLDER("linear_attn.conv1d.weight")},
        HN_IS_CONVOLUTION, n_taps, n_channels, HN_PHASE_OTHER, NULL, AT(conv), .change = HN_CHANGE_TAPS, .share = 1 + ROWS_CHANNELS},
    [ROW(HN_ROLE_DELTA_DECAY)] = {{GGUF("ssm_a"), FOLDER("linear_attn.A_log")},
        HN_IS_VECTOR, n_value_heads, n_one, HN_PHASE_OTHER, NULL, AT(decay), .change = HN_CHANGE_DECAY, .share = 1 + ROWS_HEADS},
    [ROW(HN_ROLE_DELTA_DT)] = {{GGUF("ssm_dt.bias"), FOLDER("linear_attn.dt_bias")},
        HN_IS_VECTOR, n_value_heads, n_one, HN_PHASE_OTHER, NULL, AT(dt), .share = 1 + ROWS_HEADS},
    [ROW(HN_ROLE_DELTA_NORM)] = {{GGUF("ssm_norm.weight"), FOLDER("linear_attn.norm.weight")},
        HN_IS_STORED_NORM, n_value, n_one, HN_PHASE_OTHER, NULL, AT(norm)},
    [ROW(HN_ROLE_DELTA_OUT)] = {{GGUF("ssm_out.weight"), FOLDER("linear_attn.out_proj.weight")},
        HN_IS_MATRIX, n_values, n_hidden, HN_PHASE_O, NULL, AT(o), .share = HN_SHARE_STREAM},};

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
    w->o_forms = hn_forms_of(b, &w->o);
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
    hn_layer_product(ex, n, mixed, &out, 1, x->add, s);
}

/* ---- over ranks ------------------------------------------------------------------------------------------------------------- */

/* The first of `all` things that rank has, or of the ranks of a thing the first. */
static int part_of(int all, int ranks, int rank) { return (all * rank + ranks - 1) / ranks; }

static void add_run(hn_runs *r, int first, int count) {
    if (count <= 0) return;
    r->first[r->n] = first;
    r->count[r->n++] = count;
}

/* Runs of heads, `each` rows of a tensor, from row `at` on. */
static void add_heads(hn_runs *r, const hn_runs *heads, int at, int each) {
    for (int i = 0; i < heads->n; i++) add_run(r, at + each * heads->first[i], each * heads->count[i]);
}

/* Key heads of a rank, with all their value heads; `each` of these. They stand together in the result, or one in each of its stripes. */
static void divide_keys(const hn_delta_desc *d, int each, hn_slices *s, hn_runs *keys, hn_runs *values) {
    const int first = part_of(d->key_heads, s->ranks, s->rank), count = part_of(d->key_heads, s->ranks, s->rank + 1) - first;
    s->stripes = d->tiled ? each : 1;
    for (int r = 0; r <= s->ranks; r++) s->first[r] = part_of(d->key_heads, s->ranks, r) * (d->tiled ? 1 : each) * d->value_dim;
    add_run(keys, first, count);
    for (int j = 0; j < s->stripes; j++) add_run(values, j * d->key_heads + first * each / s->stripes, count * each / s->stripes);
}

/* Value heads of a rank, where there are more ranks than key heads: those of one, which several ranks have; or tiled ones, whose key heads
 * are others one after another. */
static void divide_values(const hn_delta_desc *d, int each, hn_slices *s, hn_runs *keys, hn_runs *values) {
    s->stripes = 1;
    for (int r = 0; r <= s->ranks; r++) {
        const int of = r * d->key_heads / s->ranks; /* the key head, whose ranks are [begin, end) */
        const int begin = part_of(s->ranks, d->key_heads, of);
        const int end = part_of(s->ranks, d->key_heads, of + 1);
        const int untiled = of * each + (end > begin ? each * (r - begin) / (end - begin) : 0);
        s->first[r] = d->value_dim * (d->tiled ? part_of(d->value_heads, s->ranks, r) : untiled);
    }
    const int first = hn_own_first(s) / d->value_dim, count = hn_own_count(s) / d->value_dim;
    const int key = d->tiled ? first % d->key_heads : first / each, n = d->tiled ? hn_least(count, d->key_heads) : 1;
    add_run(values, first, count);
    add_run(keys, key, hn_least(n, d->key_heads - key));
    add_run(keys, 0, key + n - d->key_heads);
}

/* The own rows of matrices whose parts are interleaved by key heads: `keys` rows, and parts of `value` rows for each value head. */
static void fuse(const hn_delta_desc *d, int each, const hn_runs *values, int keys, int value, hn_runs *r) {
    const int all = keys + 2 * each * value, first = values->first[0], count = values->count[0], key = first / each;
    if (count % each == 0) {
        add_run(r, key * all, count / each * all);
        return;
    }
    assert(!d->tiled && values->n == 1);
    add_run(r, key * all, keys);
    for (int k = 0; k < 2; k++) add_run(r, key * all + keys + (k * each + first % each) * value, count * value);
}

static bool divide(const hn_mixer_desc *whole, hn_mixer_desc *own, hn_mixer_split *s) {
    const hn_delta_desc *d = hn_delta_of(whole);
    hn_delta_desc *to = (void *)own->own;
    const int each = d->value_heads / d->key_heads, keys = d->key_heads * d->key_dim;
    hn_runs key = {0}, value = {0};
    if (d->key_heads >= s->mixed.ranks && 2 + each <= HN_MOST_RUNS)
        divide_keys(d, each, &s->mixed, &key, &value);
    else
        divide_values(d, each, &s->mixed, &key, &value);
    hn_split_mark_groups(&s->mixed);
    if (hn_split_has_empty(&s->mixed)) return false;
    to->key_heads = to->value_heads = 0;
    for (int i = 0; i < key.n; i++) to->key_heads += key.count[i];
    for (int i = 0; i < value.n; i++) to->value_heads += value.count[i];
    add_heads(&s->rows[ROWS_CHANNELS], &key, 0, d->key_dim);
    add_heads(&s->rows[ROWS_CHANNELS], &key, keys, d->key_dim);
    add_heads(&s->rows[ROWS_CHANNELS], &value, 2 * keys, d->value_dim);
    add_heads(&s->rows[ROWS_VALUES], &value, 0, d->value_dim);
    add_heads(&s->rows[ROWS_HEADS], &value, 0, 1);
    if (d->fused) fuse(d, each, &value, 2 * d->key_dim, d->value_dim, &s->rows[ROWS_FUSED]);
    if (d->fused_gates) fuse(d, each, &value, 0, 1, &s->rows[ROWS_FUSED_GATES]);
    return true;
}

static const char *lacks(const hn_backend *b, const hn_layer_desc *l HN_UNUSED) { return b->ops->delta ? NULL : hn_mixer_delta.name; }

const hn_mixer_kind hn_mixer_delta = {.name = "a gated delta net", .as_stored = "a gated delta net's weights", .tensor = tensors,
                                      .n_tensors = sizeof tensors / sizeof *tensors, .weights = sizeof(weights), .matrices = matrices,
                                      .forms = forms, .change = change, .keeps = keeps, .work = work, .widen = widen, .run = run,
                                      .lacks = lacks, .divide = divide, .result = offsetof(weights, o)};
