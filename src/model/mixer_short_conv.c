/* SPDX-License-Identifier: Apache-2.0 */
/* mixer_short_conv.c - a gated short convolution (LFM2): two products, and between them one operation (ops/short_conv.h). */
#include "base/least.h"
#include "model/arch/short_conv_desc.h"
#include "model/mixers.h"
#include "model/split.h"
#include "ops/short_conv.h"

typedef struct weights {
    hn_weight in, out;                /* [3 * width, hidden], [hidden, width] */
    hn_buf conv, in_bias, bias, out_bias; /* f32 [taps][width]; the biases if the description has them */
    int out_forms;
} weights;

/* ---- tensors -------------------------------------------------------------------------------------------------------------- */

static const hn_short_conv_desc *of_layer(const hn_layer_desc *l) {
    const int k = hn_layer_mixer(l, &hn_mixer_short_conv);
    return hn_short_conv_of(&l->mixer[k > 0 ? k : 0]);
}
HN_TENSOR_SIZE(n_taps, of_layer(l)->taps)
HN_TENSOR_SIZE(n_width, of_layer(l)->width)
HN_TENSOR_SIZE(n_three, 3 * of_layer(l)->width)
HN_TENSOR_HAS(biased, of_layer(l)->bias)

enum { ROWS_IN, ROWS_WIDTH }; /* shares of ranks */

#define n_one hn_size_one
#define n_hidden hn_size_hidden
#define GGUF HN_TENSOR_GGUF
#define FOLDER HN_TENSOR_FOLDER
#define AT(member) (int)offsetof(weights, member) + 1
#define ROW(role) ((int)(role) - (int)HN_ROLE_OF(short_conv, 0))
static const hn_tensor_row tensors[] = {
    [ROW(HN_ROLE_SHORT_CONV_IN)] = {{GGUF("shortconv.in_proj.weight"), FOLDER("conv.in_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_three, HN_PHASE_QKV, NULL, AT(in), .share = 1 + ROWS_IN},
    [ROW(HN_ROLE_SHORT_CONV_IN_BIAS)] = {{GGUF("shortconv.in_proj.bias"), FOLDER("conv.in_proj.bias")},
        HN_IS_BIAS, n_three, n_one, HN_PHASE_OTHER, biased, AT(in_bias), .share = 1 + ROWS_IN},
    [ROW(HN_ROLE_SHORT_CONV)] = {{GGUF("shortconv.conv.weight"), FOLDER("conv.conv.weight")},
        HN_IS_CONVOLUTION, n_taps, n_width, HN_PHASE_OTHER, NULL, AT(conv), .change = HN_CHANGE_TAPS, .share = 1 + ROWS_WIDTH},
    [ROW(HN_ROLE_SHORT_CONV_BIAS)] = {{GGUF("shortconv.conv.bias"), FOLDER("conv.conv.bias")},
        HN_IS_VECTOR, n_width, n_one, HN_PHASE_OTHER, biased, AT(bias), .share = 1 + ROWS_WIDTH},
    [ROW(HN_ROLE_SHORT_CONV_OUT)] = {{GGUF("shortconv.out_proj.weight"), FOLDER("conv.out_proj.weight")},
        HN_IS_MATRIX, n_width, n_hidden, HN_PHASE_O, NULL, AT(out), .share = HN_SHARE_STREAM},
    [ROW(HN_ROLE_SHORT_CONV_OUT_BIAS)] = {{GGUF("shortconv.out_proj.bias"), FOLDER("conv.out_proj.bias")},
        HN_IS_BIAS, n_hidden, n_one, HN_PHASE_OTHER, biased, AT(out_bias)},};

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

static int keeps(const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_cache_group keep[HN_MOST_KEPT]) {
    const hn_short_conv_desc *d = hn_short_conv_of(own);
    keep[0] = (hn_cache_group){.name = "conv", .kind = HN_CACHE_ROWS, .window = d->taps, .units = 1,
                               .unit_bytes = sizeof(float) * (size_t)((d->width + 15) & ~15)};
    return 1;
}

/* The rows before the first are read, and each is written. */
static void work(const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, hn_dtype type HN_UNUSED, int committed HN_UNUSED, int n,
                 hn_kv_work *w) {
    const hn_short_conv_desc *d = hn_short_conv_of(own);
    w->bytes += sizeof(float) * (double)d->width * (d->taps - 1 + n);
    w->macs += (double)d->taps * d->width * n;
}

static void widen(hn_widths *w, const hn_layer_desc *l HN_UNUSED, const hn_mixer_desc *own, const hn_width_of *of HN_UNUSED) {
    const hn_short_conv_desc *d = hn_short_conv_of(own);
    w->qkv = hn_most(w->qkv, 3 * d->width);
    w->mixed = hn_most(w->mixed, d->width);
}

/* ---- a pass -------------------------------------------------------------------------------------------------------------- */

static void run(const hn_exec *ex, const hn_mixing *m) {
    const hn_ops *o = ex->ops;
    const weights *w = m->weights;
    const hn_rows *rows = m->kept[0].rows;
    const hn_short_conv_desc *d = hn_short_conv_of(m->own);
    const hn_short_conv conv = {d->taps, w->conv, w->bias};
    const hn_matrix x = hn_columns(m->s->qkv, 0, 3 * d->width), y = hn_columns(x, d->width, d->width);
    const hn_act mixed = hn_act_of(m->s->mixed, d->width, w->out_forms);
    const hn_linear_out in = {&w->in, x}, out = {&w->out, m->to};
    o->linear(ex, rows->n, m->in, &in, 1, false);
    if (d->bias) o->add_bias(ex, rows->n, x, w->in_bias);
    o->short_conv(ex, rows, &conv, &m->kept[0].inputs, x);
    if (m->times != 1) o->scale(ex, rows->n, y, m->times);
    o->quantise(ex, rows->n, y, mixed);
    hn_layer_product(ex, rows->n, mixed, &out, 1, m->add, m->s);
    if (d->bias) o->add_bias(ex, rows->n, out.y, w->out_bias);
}

/* Ranks have columns, each with its own part of B, C and x. */
static bool divide(const hn_mixer_desc *whole, hn_mixer_desc *own, hn_mixer_split *s) {
    const int width = hn_short_conv_of(whole)->width;
    hn_split_columns(&s->mixed, width);
    const int first = hn_own_first(&s->mixed), count = hn_own_count(&s->mixed);
    s->rows[ROWS_IN] = (hn_runs){3, {first, width + first, 2 * width + first}, {count, count, count}};
    s->rows[ROWS_WIDTH] = (hn_runs){1, {first}, {count}};
    ((hn_short_conv_desc *)(void *)own->own)->width = count;
    return !hn_split_has_empty(&s->mixed);
}

static const char *lacks(const hn_backend *b, const hn_layer_desc *l HN_UNUSED) {
    return b->ops->short_conv ? NULL : hn_mixer_short_conv.name;
}

const hn_mixer_kind hn_mixer_short_conv = {.name = "a short convolution", .tensor = tensors, .n_tensors = sizeof tensors / sizeof *tensors,
                                           .weights = sizeof(weights), .matrices = matrices, .forms = forms, .keeps = keeps, .work = work,
                                           .widen = widen, .run = run, .lacks = lacks, .divide = divide,
                                           .result = offsetof(weights, out)};
