/* SPDX-License-Identifier: Apache-2.0 */
/* mixer_ssm.c - a state space layer of Mamba-2: two products, and between them one operation (ops/ssm.h). */
#include "base/least.h"
#include "model/arch/ssm_desc.h"
#include "model/mixers.h"
#include "ops/ssm.h"

typedef struct weights {
    hn_weight in, out; /* z | x | B | C | dt: [2 * inner + 2 * groups * state + heads, hidden]; [hidden, inner] */
    hn_buf in_bias, out_bias, conv, conv_bias, decay, dt, skip; /* hn_ssm's; biases if the description has them */
    hn_norm norm;
    int out_forms;
} weights;

static hn_ssm sizes_of(const hn_mixer_desc *own) {
    const hn_ssm_desc *d = hn_ssm_of(own);
    return (hn_ssm){.heads = d->heads, .head_dim = d->head_dim, .groups = d->groups, .state = d->state, .taps = d->taps,
                    .least = hn_ssm_limit(d->least), .most = hn_ssm_limit(d->most)};
}

static int columns_of(const hn_ssm *n) { return hn_ssm_inner(n) + hn_ssm_channels(n) + n->heads; }

/* ---- tensors -------------------------------------------------------------------------------------------------------------- */

static const hn_mixer_desc *mixer_of(const hn_layer_desc *l) {
    const int k = hn_layer_mixer(l, &hn_mixer_ssm);
    return &l->mixer[k > 0 ? k : 0];
}
static const hn_ssm_desc *of_layer(const hn_layer_desc *l) { return hn_ssm_of(mixer_of(l)); }
HN_TENSOR_SIZE(n_taps, of_layer(l)->taps)
HN_TENSOR_SIZE(n_heads, of_layer(l)->heads)
HN_TENSOR_SIZE(n_groups, of_layer(l)->groups)
HN_TENSOR_SIZE(n_inner, of_layer(l)->heads * of_layer(l)->head_dim)
HN_TENSOR_SIZE(n_channels, n_inner(a, l, t) + 2 * (uint64_t)of_layer(l)->groups * (uint64_t)of_layer(l)->state)
HN_TENSOR_SIZE(n_columns, n_inner(a, l, t) + n_channels(a, l, t) + n_heads(a, l, t))
HN_TENSOR_HAS(has_conv_bias, of_layer(l)->conv_bias)
HN_TENSOR_HAS(has_in_bias, of_layer(l)->in_bias)
HN_TENSOR_HAS(has_out_bias, of_layer(l)->out_bias)

#define n_one hn_size_one
#define n_hidden hn_size_hidden
#define GGUF HN_TENSOR_GGUF
#define FOLDER(part) HN_TENSOR_FOLDER("mamba." part)
#define AT(member) (int)offsetof(weights, member) + 1
#define ROW(role) ((int)(role) - (int)HN_ROLE_OF(ssm, 0))
static const hn_tensor_row tensors[] = {
    [ROW(HN_ROLE_SSM_IN)] = {{GGUF("ssm_in.weight"), FOLDER("in_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_columns, HN_PHASE_QKV, NULL, AT(in)},
    [ROW(HN_ROLE_SSM_IN_BIAS)] = {{GGUF("ssm_in.bias"), FOLDER("in_proj.bias")},
        HN_IS_VECTOR, n_columns, n_one, HN_PHASE_OTHER, has_in_bias, AT(in_bias)},
    [ROW(HN_ROLE_SSM_CONV)] = {{GGUF("ssm_conv1d.weight"), FOLDER("conv1d.weight")},
        HN_IS_CONVOLUTION, n_taps, n_channels, HN_PHASE_OTHER, NULL, AT(conv), .change = HN_CHANGE_TAPS},
    [ROW(HN_ROLE_SSM_CONV_BIAS)] = {{GGUF("ssm_conv1d.bias"), FOLDER("conv1d.bias")},
        HN_IS_VECTOR, n_channels, n_one, HN_PHASE_OTHER, has_conv_bias, AT(conv_bias)},
    [ROW(HN_ROLE_SSM_DECAY)] = {{GGUF("ssm_a"), FOLDER("A_log")},
        HN_IS_VECTOR, n_heads, n_one, HN_PHASE_OTHER, NULL, AT(decay), .change = HN_CHANGE_DECAY, .across = n_heads},
    [ROW(HN_ROLE_SSM_DT)] = {{GGUF("ssm_dt.bias"), FOLDER("dt_bias")},
        HN_IS_VECTOR, n_heads, n_one, HN_PHASE_OTHER, NULL, AT(dt)},
    [ROW(HN_ROLE_SSM_SKIP)] = {{GGUF("ssm_d"), FOLDER("D")},
        HN_IS_VECTOR, n_heads, n_one, HN_PHASE_OTHER, NULL, AT(skip), .across = n_heads},
    [ROW(HN_ROLE_SSM_NORM)] = {{GGUF("ssm_norm.weight"), FOLDER("norm.weight")},
        HN_IS_STORED_NORM, n_inner, n_one, HN_PHASE_OTHER, NULL, AT(norm), .across = n_groups},
    [ROW(HN_ROLE_SSM_OUT)] = {{GGUF("ssm_out.weight"), FOLDER("out_proj.weight")},
        HN_IS_MATRIX, n_inner, n_hidden, HN_PHASE_O, NULL, AT(out)},
    [ROW(HN_ROLE_SSM_OUT_BIAS)] = {{GGUF("ssm_out.bias"), FOLDER("out_proj.bias")},
        HN_IS_BIAS, n_hidden, n_one, HN_PHASE_OTHER, has_out_bias, AT(out_bias)},};

static int matrices(const hn_layer *l HN_UNUSED, const void *own, const hn_weight *w[]) {
    const weights *of = own;
    w[0] = &of->in;
    w[1] = &of->out;
    return 2;
}

static int forms(const hn_backend *b, hn_layer *l HN_UNUSED, void *own) {
    weights *w = own;
    w->out_forms = hn_forms_of(b, &w->out);
    return b->act_forms(b, w->in.dtype);
}

/* ---- what it keeps ------------------------------------------------------------------------------------------------------- */

static size_t row_bytes(int floats) { return sizeof(float) * (size_t)((floats + 15) & ~15); }

/* A state for each head, at a multiple of HN_GRID; of rows what the convolution reads, and what sums read. The cache's number of absorbed
 * rows is HN_GRID more than the state has: so far back the rows of a cell read it. */
static int keeps(const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_cache_group keep[HN_MOST_KEPT]) {
    const hn_ssm n = sizes_of(own);
    const int back = HN_MAX_ROWS + HN_GRID;
    keep[0] = (hn_cache_group){.name = "state", .kind = HN_CACHE_STATE, .units = n.heads,
                               .unit_bytes = sizeof(float) * (size_t)hn_ssm_state(&n)};
    keep[1] = (hn_cache_group){.name = "inputs", .kind = HN_CACHE_ROWS, .window = n.taps, .back = back, .units = 1,
                               .unit_bytes = row_bytes(hn_ssm_channels(&n))};
    keep[2] = (hn_cache_group){.name = "sums", .kind = HN_CACHE_ROWS, .window = HN_GRID + 1, .back = back, .units = 1,
                               .unit_bytes = row_bytes(hn_ssm_kept(&n))};
    return 3;
}

/* The state is read once, and what rows since then keep; each row is written. */
static void work(const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_dtype type HN_UNUSED, int committed, int n,
                 hn_kv_work *w) {
    const hn_ssm s = sizes_of(own);
    const double state = (double)hn_ssm_state(&s) * s.heads, kept = hn_ssm_kept(&s);
    const int rows = committed - hn_grid_of(committed);
    w->bytes += (state + kept * (rows + n) + (double)hn_ssm_channels(&s) * (s.taps - 1 + n)) * (double)sizeof(float);
    w->macs += (state + (double)s.taps * hn_ssm_channels(&s) + kept * HN_GRID * 3 / 2) * n;
}

static void widen(hn_widths *w, const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, const hn_width_of *of) {
    const hn_ssm n = sizes_of(own);
    const size_t scratch = of->backend->ssm_scratch(of->backend, &n, of->rows);
    w->qkv = hn_most(w->qkv, columns_of(&n));
    w->mixed = hn_most(w->mixed, hn_ssm_inner(&n));
    if (scratch > w->scratch) w->scratch = scratch;
}

/* ---- a pass -------------------------------------------------------------------------------------------------------------- */

static void run(const hn_exec *ex, const hn_mixing *x) {
    const hn_ops *o = ex->ops;
    const weights *w = x->weights;
    const hn_ssm_desc *d = hn_ssm_of(x->own);
    hn_ssm net = sizes_of(x->own);
    const int inner = hn_ssm_inner(&net), channels = hn_ssm_channels(&net);
    const hn_rows *rows = x->kept[1].rows;
    const hn_matrix all = hn_columns(x->s->qkv, 0, columns_of(&net)), z = hn_columns(all, 0, inner);
    const hn_act mixed = hn_act_of(x->s->mixed, inner, w->out_forms);
    const hn_linear_out in = {&w->in, all}, out = {&w->out, x->to};
    net.conv = w->conv;
    net.conv_bias = w->conv_bias;
    net.decay = w->decay;
    net.dt = w->dt;
    net.skip = w->skip;
    net.norm = w->norm;
    const hn_ssm_job job = {.net = &net, .rows = rows, .grid = x->grid, .inputs = x->kept[1].inputs, .kept = x->kept[2].inputs,
                            .states = x->kept[0].states, .z = z, .m = hn_columns(all, inner, channels),
                            .dt = hn_columns(all, inner + channels, net.heads), .scratch = x->s->scratch};
    o->linear(ex, rows->n, x->in, &in, 1, false);
    if (d->in_bias) o->add_bias(ex, rows->n, all, w->in_bias);
    o->ssm(ex, &job);
    if (x->times != 1) o->scale(ex, rows->n, z, x->times);
    o->quantise(ex, rows->n, z, mixed);
    o->linear(ex, rows->n, mixed, &out, 1, x->add);
    if (d->out_bias) o->add_bias(ex, rows->n, out.y, w->out_bias);
}

static const char *lacks(const hn_backend *b, const hn_layer_desc *l HN_UNUSED) { return b->ops->ssm ? NULL : hn_mixer_ssm.name; }

const hn_mixer_kind hn_mixer_ssm = {.name = "a state space layer", .tensor = tensors, .n_tensors = sizeof tensors / sizeof *tensors,
                                    .weights = sizeof(weights), .grid = true, .matrices = matrices, .forms = forms, .keeps = keeps,
                                    .work = work, .widen = widen, .run = run, .lacks = lacks};
