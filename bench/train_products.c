/* SPDX-License-Identifier: Apache-2.0 */
/* train_products.c - how fast the trainer's products are, of every level that the machine has, beside the level's inner
 * loop alone (operands in the nearest cache) and the bare instruction (operands in registers). GMAC/s of all workers
 * together, the best of several turns; with more than one thread on a machine where nothing else runs.
 *
 *     cmake --build build --target train_products && build/train_products [THREADS [ROWS [IN [OUT]]]]
 *
 * The three forms are what a layer of IN x OUT costs with ROWS rows: y = x Wᵀ, dx = dy W, dW += dyᵀ x. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/random.h"
#include "ops/machine.h"
#include "train/math/product/product.h"
#include "train/math/product/product_kernels.h"

/* With one thread seconds that the processor worked, so that what else runs does not count. */
static double now(const hn_pool *pool) {
    struct timespec t;
    clock_gettime(hn_pool_threads(pool) == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { TURNS = 7, TILES = 20000, DOTS = 1000000 };

static hn_mat matrix(int rows, int cols) {
    static uint64_t seed = 1;
    const hn_mat m = hn_mat_of(hn_pages_alloc((size_t)rows * (size_t)cols * sizeof(hn_real)), rows, cols);
    if (!m.p) {
        fprintf(stderr, "train_products: no memory for %d x %d numbers\n", rows, cols);
        exit(1);
    }
    for (size_t i = 0; i < (size_t)rows * (size_t)cols; i++)
        m.p[i] = (float)(hn_splitmix(&seed) >> 40) * 0x1p-24f - 0.5f;
    return m;
}

static double best_of(hn_workers *t, hn_form form, hn_mat a, hn_mat b, hn_mat c, double macs) {
    double best = 0;
    for (int i = 0; i < TURNS; i++) {
        const double start = now(t->pool);
        hn_product(t, form, a, b, c, form == HN_ATB);
        const double speed = macs * 1e-9 / (now(t->pool) - start);
        best = speed > best ? speed : best;
    }
    return best;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

typedef struct alone {
    const hn_product_kernel *kernel;
    hn_dots_fn *dots; /* NULL: the tile */
} alone;

/* Numbers of either type around 2^-7. Zeros would be faster: AMX lets the clock fall by a third when it has numbers to multiply. */
static void fill(uint16_t *to, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = (uint16_t)(0x3C00 + i * 7919 % 1024);
}

static void run_alone(void *arg, int rank, int ranks) {
    (void)rank;
    (void)ranks;
    const alone *a = arg;
    if (a->dots) {
        a->dots(DOTS);
        return;
    }
    const hn_product_kernel *k = a->kernel;
    const size_t n = (size_t)k->depth * k->bytes;
    void *x = hn_zalloc((size_t)k->rows, n), *y = hn_zalloc((size_t)k->cols, n);
    hn_real *c = hn_zalloc((size_t)k->rows * (size_t)k->cols, sizeof *c);
    if (x && y) fill(x, (size_t)k->rows * n / 2), fill(y, (size_t)k->cols * n / 2);
    for (int i = 0; x && y && c && i < TILES; i++)
        k->tile(k->depth, x, y, (hn_tile_out){c, (size_t)k->cols, k->rows, k->cols, false});
    hn_free(x);
    hn_free(y);
    hn_free(c);
}

static double best_alone(hn_pool *pool, alone a, double macs) {
    double best = 0;
    for (int i = 0; i < TURNS; i++) {
        const double start = now(pool);
        hn_pool_run(pool, run_alone, &a);
        const double speed = macs * hn_pool_threads(pool) * 1e-9 / (now(pool) - start);
        best = speed > best ? speed : best;
    }
    return best;
}

static hn_dots_fn *dots_of(const hn_product_kernel *k) {
#if defined(__x86_64__)
    if (k->isa == HN_ISA_AMX) return hn_dots_bf16_amx;
    if (k->isa == HN_ISA_AVX512BF16) return hn_dots_bf16_avx512bf16;
#endif
    (void)k;
    return NULL;
}

static void measure(hn_pool *pool, hn_isa isa, hn_products products, hn_mat x, hn_mat w, hn_mat y) {
    hn_workers t;
    hunch_error err;
    if (hn_workers_open(&t, pool, isa, products, 0, &err) != HUNCH_OK) return;
    const hn_product_kernel *k = t.kernel;
    if (k->isa == isa) {
        const double macs = (double)x.rows * x.cols * w.rows, tile = (double)k->rows * k->cols * k->depth * TILES;
        const double forward = best_of(&t, HN_ABT, x, w, y, macs), input = best_of(&t, HN_AB, y, w, x, macs);
        printf("%-10s %-5s %9.1f %9.1f %9.1f %9.1f", hn_isa_name(isa), products ? "bf16" : "f32", forward, input,
               best_of(&t, HN_ATB, y, x, w, macs), best_alone(pool, (alone){k, NULL}, tile));
        hn_dots_fn *dots = dots_of(k);
        if (dots) printf(" %9.1f", best_alone(pool, (alone){k, dots}, dots(DOTS)));
        printf("\n");
    }
    hn_workers_close(&t);
}

int main(int argc, char **argv) {
    int sizes[4] = {hn_cores(), 2048, 576, 1536};
    for (int i = 1; i < argc && i < 5; i++) sizes[i - 1] = atoi(argv[i]);
    hn_pool *pool = NULL;
    hunch_error err;
    if (sizes[1] < 1 || sizes[2] < 1 || sizes[3] < 1 || hn_pool_create(&pool, sizes[0], &err) != HUNCH_OK) {
        fprintf(stderr, "usage: train_products [THREADS [ROWS [IN [OUT]]]]\n");
        return 2;
    }
    const hn_mat x = matrix(sizes[1], sizes[2]), w = matrix(sizes[3], sizes[2]), y = matrix(sizes[1], sizes[3]);
    printf("%d threads, %d rows, %d -> %d, GMAC/s\n", sizes[0], sizes[1], sizes[2], sizes[3]);
    printf("%-10s %-5s %9s %9s %9s %9s %9s\n", "level", "", "x Wt", "dy W", "dyt x", "tile", "dots");
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        measure(pool, isa, HN_PRODUCTS_F32, x, w, y);
        measure(pool, isa, HN_PRODUCTS_BF16, x, w, y);
    }
    hn_pool_free(pool);
    return 0;
}
