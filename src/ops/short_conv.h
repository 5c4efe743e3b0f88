/* SPDX-License-Identifier: Apache-2.0 */
/* short_conv.h - gated short convolutions (LFM2) without their products: inputs and outputs of the operation.
 *
 *   m = B (x) x,  u = bias + sum over taps of w[tap] m[row - taps + 1 + tap], tap ascending, each step an fma,  y = C (x) u
 *
 * with zeros before the text. A row keeps its m at its slot; the rows before it are those of its path, of which the pass stored some. There
 * is no state: what a text keeps is the window of its last rows, and a row's bits depend on these alone (C2). */
#ifndef HN_SHORT_CONV_H
#define HN_SHORT_CONV_H
#include "ops/walk.h"

typedef struct hn_short_conv {
    int taps;    /* up to HN_MOST_TAPS */
    hn_buf w;    /* f32 [taps][width], the oldest row's first */
    hn_buf bias; /* f32 [width]; mem NULL: none */
} hn_short_conv;

/* x: B | C | x, each as wide as x.cols / 3, of which C becomes y. */
void hn_cpu_short_conv(const hn_exec *ex, const hn_rows *rows, const hn_short_conv *c, const hn_input_pages *kept, hn_matrix x);
#endif
