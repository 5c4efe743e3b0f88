/* SPDX-License-Identifier: Apache-2.0 */
/* adamw.c - one pass over the weights per step, in pieces. */
#include "train/math/adamw.h"

#include <assert.h>
#include <tgmath.h>

enum { PIECE = 8192, PIECES = 512 }; /* numbers in a piece of work; pieces at a time */

static const double PI = 3.14159265358979323846;

typedef struct adamw_work {
    hn_real *w, *mean, *square;
    const hn_real *g;
    double *sums; /* of hn_gradient_norm, one for each piece */
    size_t first, n;
    hn_real factor, keep, beta2, new1, new2, step_size, root, eps; /* new: 1 - beta, rounded once */
} adamw_work;

static size_t end_of(const adamw_work *a, int piece) {
    const size_t end = a->first + (size_t)(piece + 1) * PIECE;
    return end < a->n ? end : a->n;
}

/* Calls fn for all pieces, in ranges that hn_claim can count. */
static void all_pieces(hn_workers *t, adamw_work *a, void (*fn)(void *arg, int rank, int first, int end),
                       void (*after)(adamw_work *a, int pieces)) {
    for (a->first = 0; a->first < a->n; a->first += (size_t)PIECE * PIECES) {
        const size_t left = (a->n - a->first + PIECE - 1) / PIECE;
        const int pieces = left < PIECES ? (int)left : PIECES;
        hn_workers_split(t, pieces, 1, fn, a);
        if (after) after(a, pieces);
    }
}

static void step_pieces(void *arg, int rank, int first, int end) {
    (void)rank;
    const adamw_work a = *(const adamw_work *)arg;
    for (size_t i = a.first + (size_t)first * PIECE; i < end_of(&a, end - 1); i++) {
        const hn_real g = a.g[i] * a.factor;
        const hn_real mean = a.mean[i] = a.mean[i] + (g - a.mean[i]) * a.new1;
        const hn_real square = a.square[i] = a.square[i] * a.beta2 + g * g * a.new2;
        a.w[i] = a.w[i] * a.keep - a.step_size * mean / (sqrt(square) / a.root + a.eps);
    }
}

void hn_adamw_step(hn_workers *t, hn_adamw *o, hn_real *w, const hn_real *g, size_t n, double factor, double rate) {
    o->steps++;
    adamw_work a = {.w = w, .mean = o->mean, .square = o->square, .g = g, .n = n, .factor = (hn_real)factor};
    a.keep = (hn_real)(1 - rate * o->decay);
    a.beta2 = (hn_real)o->beta2;
    a.new1 = (hn_real)(1 - o->beta1);
    a.new2 = (hn_real)(1 - o->beta2);
    a.step_size = (hn_real)(rate / (1 - pow(o->beta1, (double)o->steps)));
    a.root = (hn_real)sqrt(1 - pow(o->beta2, (double)o->steps));
    a.eps = (hn_real)o->eps;
    all_pieces(t, &a, step_pieces, NULL);
}

static void norm_pieces(void *arg, int rank, int first, int end) {
    (void)rank;
    const adamw_work *a = arg;
    for (int piece = first; piece < end; piece++) {
        double sum = 0;
        for (size_t i = a->first + (size_t)piece * PIECE; i < end_of(a, piece); i++)
            sum += (double)a->g[i] * (double)a->g[i];
        a->sums[piece] = sum;
    }
}

static void norm_add(adamw_work *a, int pieces) {
    for (int i = 0; i < pieces; i++) a->sums[PIECES] += a->sums[i];
}

double hn_gradient_norm(hn_workers *t, const hn_real *g, size_t n) {
    double sums[PIECES + 1] = {0}; /* and, last, the running sum */
    adamw_work a = {.g = g, .n = n, .sums = sums};
    all_pieces(t, &a, norm_pieces, norm_add);
    return sqrt(sums[PIECES]);
}

double hn_clip_factor(double norm, double most) {
    const double factor = most / (norm + 1e-6);
    return factor > 1 ? 1 : factor;
}

double hn_learning_rate(long step, long warm_up, long steps, double peak, double least) {
    assert(step >= 0 && warm_up >= 0 && steps > warm_up);
    if (step < warm_up) return peak * (double)(step + 1) / (double)warm_up;
    if (step >= steps) return least;
    const double way = (double)(step - warm_up) / (double)(steps - warm_up);
    return least + (peak - least) * (1 + cos(PI * way)) / 2;
}
