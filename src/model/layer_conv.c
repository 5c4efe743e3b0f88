/* SPDX-License-Identifier: Apache-2.0 */
/* layer_conv.c - convolutions around both halves of a layer of a block (DFlash 2): over a row and those before it in its block, with
 * coefficients that depend on the row. A half of a layer becomes
 *
 *   a = norm(x);  P = W a                                      coefficients of both sides, a number for each tap and group of columns
 *   x += conv(out, P[1])  with  out = half(conv(a, P[0]))
 *   conv(y, p)[j] = sum over taps t of (base[t] + p[j][t]) y[j - t]
 *
 * Keys and values of the text's rows are computed without (mixer_attention.c). */
#include "model/layers.h"

static hn_convolution convolution_of(const hn_model *m, const hn_head_conv *c, int side, const hn_pass_buffers *s) {
    const hn_conv_desc *d = hn_head_conv_desc(&m->arch.draft_head);
    const int hidden = m->arch.hidden, each = d->taps * (hidden / d->group);
    return (hn_convolution){.block = m->arch.draft_head.rows.block.n,
                            .taps = d->taps,
                            .group = d->group,
                            .base = hn_at(c->base, sizeof(float) * (size_t)(side * d->taps * hidden)),
                            .coefficients = hn_columns(s->coefficients, side * each, each)};
}

void hn_layer_conv_in(const hn_exec *ex, const hn_model *m, const hn_head_conv *c, const hn_norm *norm, hn_act in,
                      const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_count n = s->rows->n;
    const hn_act read = hn_act_of(s->in, m->arch.hidden, m->backend->act_forms(m->backend, c->product.dtype));
    const hn_linear_out out = {&c->product, s->coefficients};
    const hn_convolution conv = convolution_of(m, c, 0, s);
    o->norm(ex, n, s->x, norm, read, s->normed);
    o->linear(ex, n, read, &out, 1, false);
    o->convolve(ex, n, &conv, s->normed, false, s->branch);
    o->quantise(ex, n, s->branch, in);
}

void hn_layer_conv_out(const hn_exec *ex, const hn_model *m, const hn_head_conv *c, const hn_pass_buffers *s) {
    const hn_convolution conv = convolution_of(m, c, 1, s);
    ex->ops->convolve(ex, s->rows->n, &conv, s->branch, true, s->x);
}
