/* SPDX-License-Identifier: Apache-2.0 */
/* product.c - a product in panels, strips, slices and tiles; contract: product.h.
 *
 *           n                 for panels: parts of M, N and of the sum that fit the room (MOST, or MOST_ALONE and one
 * slice)
 *      B  k ▤▤▤▤                pack strips of A, strips of B                  | the workers claims strips,
 *         |                     for blocks of tiles                           | then blocks
 *   A   m ▥▥▥ -> C                for slices of the sum, ascending: a block of C stays in the cache meanwhile
 *                                   tiles: strip of A x strip of B, added to C */
#include "train/math/product/product.h"

#include <assert.h>

#include "base/least.h"
#include "train/math/product/product_kernels.h"

enum { MOST = 2048, MOST_ALONE = 256, BLOCK = 8 }; /* outputs, and with MOST terms; strips per block */

const hn_product_kernel *hn_product_kernel_of(hn_isa isa, hn_products products) {
    static const hn_product_kernel *const all[] = {
#if defined(__x86_64__) && !defined(HN_TRAIN_DOUBLE)
        &hn_product_amx,
        &hn_product_avx512bf16,
        &hn_product_avx512,
        &hn_product_avx2,
#endif
        &hn_product_ref
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->products == products && hn_isa_includes(isa, all[i]->isa)) return all[i];
    return NULL;
}

static int strips(int outputs, int width) {
    return (outputs + width - 1) / width;
}

/* Bytes of a strip with `terms` terms, rounded up to whole slices. */
static size_t strip_bytes(const hn_product_kernel *k, int width, int terms) {
    return (size_t)width * (size_t)strips(terms, k->depth) * (size_t)k->depth * k->bytes;
}

static hn_product_room room_of(const hn_product_kernel *k, int most, int terms) {
    return (hn_product_room){(size_t)strips(most, k->rows) * strip_bytes(k, k->rows, terms),
                             (size_t)strips(most, k->cols) * strip_bytes(k, k->cols, terms)};
}

hn_product_room hn_product_room_of(const hn_product_kernel *k) {
    return room_of(k, MOST, MOST);
}

hn_product_room hn_product_room_alone(const hn_product_kernel *k) {
    return room_of(k, MOST_ALONE, k->depth);
}

/* A product, and its current panel. */
typedef struct job {
    const hn_product_kernel *kernel;
    char *packed_a, *packed_b;
    hn_operand a, b;
    hn_mat c;
    int terms, most, most_terms;
    bool add;
    hn_pool *pool;           /* NULL: one worker */
    int m0, m, n0, n, k0, k; /* c[m0, m0 + m)[n0, n0 + n), terms [k0, k0 + k) */
    size_t strip_a, strip_b; /* bytes per strip */
    int block_a, block_b;    /* strips per block */
} job;

static int strips_a(const job *j) {
    return strips(j->m, j->kernel->rows);
}

static int strips_b(const job *j) {
    return strips(j->n, j->kernel->cols);
}

/* Strip s: those of A, then those of B. */
static void pack(const job *j, int s) {
    const hn_product_kernel *k = j->kernel;
    const bool of_a = s < strips_a(j);
    const int at = of_a ? s : s - strips_a(j), width = of_a ? k->rows : k->cols;
    char *to = of_a ? j->packed_a + (size_t)at * j->strip_a : j->packed_b + (size_t)at * j->strip_b;
    for (int done = 0; done < j->k; done += k->depth, to += strip_bytes(k, width, k->depth))
        k->pack(of_a ? j->a : j->b, (of_a ? j->m0 : j->n0) + at * width, width, j->k0 + done,
                hn_least(k->depth, j->k - done), of_a ? k->group_a : k->group_b, to);
}

/* The tiles of strip a with strips [b0, b1), of the slice that starts `done` terms into the panel. In the order of rows
 * of C: tiles below one another have each row in another page. */
static void multiply_strip(const job *j, int a, int b0, int b1, int done) {
    const hn_product_kernel *k = j->kernel;
    const char *x = j->packed_a + (size_t)a * j->strip_a + (size_t)(done * k->rows) * k->bytes;
    const int row = a * k->rows, n = hn_least(k->depth, j->k - done);
    hn_tile_out out = {.ld = j->c.ld, .rows = hn_least(k->rows, j->m - row), .add = j->add || j->k0 + done > 0};
    for (int b = b0; b < b1; b++) {
        const int col = b * k->cols;
        out.c = hn_mat_row(j->c, j->m0 + row) + j->n0 + col;
        out.cols = hn_least(k->cols, j->n - col);
        k->tile(n, x, j->packed_b + (size_t)b * j->strip_b + (size_t)(done * k->cols) * k->bytes, out);
    }
}

static void multiply(const job *j, int block) {
    const int across = strips(strips_b(j), j->block_b);
    const int a0 = block / across * j->block_a, b0 = block % across * j->block_b;
    const int a1 = hn_least(a0 + j->block_a, strips_a(j)), b1 = hn_least(b0 + j->block_b, strips_b(j));
    for (int done = 0; done < j->k; done += j->kernel->depth)
        for (int a = a0; a < a1; a++) multiply_strip(j, a, b0, b1, done);
}

static int blocks(const job *j) {
    return strips(strips_a(j), j->block_a) * strips(strips_b(j), j->block_b);
}

/* One panel, computed by all workers. */
static void panel(const job *j, int rank) {
    const int to_pack = strips_a(j) + strips_b(j), to_multiply = blocks(j);
    if (!j->pool) {
        for (int i = 0; i < to_pack; i++) pack(j, i);
        for (int i = 0; i < to_multiply; i++) multiply(j, i);
        return;
    }
    hn_claim c = hn_claim_begin(j->pool, rank, to_pack);
    for (int i; (i = hn_claim_next(&c)) >= 0;) pack(j, i);
    hn_barrier(j->pool, rank);
    c = hn_claim_begin(j->pool, rank, to_multiply);
    for (int i; (i = hn_claim_next(&c)) >= 0;) multiply(j, i);
    hn_barrier(j->pool, rank);
}

/* Larger blocks keep strips in the cache, but there must be several for every worker. */
static void choose_blocks(job *j, int ranks) {
    j->strip_a = strip_bytes(j->kernel, j->kernel->rows, j->k);
    j->strip_b = strip_bytes(j->kernel, j->kernel->cols, j->k);
    for (j->block_a = j->block_b = BLOCK; j->block_b > 1 && blocks(j) < 4 * ranks; j->block_a = j->block_b) {
        j->block_b /= 2;
        if (blocks(j) >= 4 * ranks) break;
    }
}

static void product_run(void *arg, int rank, int ranks) {
    job j = *(const job *)arg; /* each worker has its own copy */
    for (j.m0 = 0; j.m0 < j.c.rows; j.m0 += j.most) {
        j.m = hn_least(j.most, j.c.rows - j.m0);
        for (j.n0 = 0; j.n0 < j.c.cols; j.n0 += j.most) {
            j.n = hn_least(j.most, j.c.cols - j.n0);
            for (j.k0 = 0; j.k0 < j.terms; j.k0 += j.most_terms) {
                j.k = hn_least(j.most_terms, j.terms - j.k0);
                choose_blocks(&j, ranks);
                panel(&j, rank);
            }
        }
    }
}

static job job_of(const hn_product_kernel *k, hn_form form, hn_mat a, hn_mat b, hn_mat c, bool add) {
    const int terms = form == HN_ATB ? a.rows : a.cols;
    assert(c.rows == (form == HN_ATB ? a.cols : a.rows) && c.cols == (form == HN_ABT ? b.rows : b.cols));
    assert(terms == (form == HN_ABT ? b.cols : b.rows) && terms > 0);
    return (job){.kernel = k,
                 .a = form == HN_ATB ? (hn_operand){a.p, 1, a.ld, c.rows} : (hn_operand){a.p, a.ld, 1, c.rows},
                 .b = form == HN_ABT ? (hn_operand){b.p, b.ld, 1, c.cols} : (hn_operand){b.p, 1, b.ld, c.cols},
                 .c = c,
                 .terms = terms,
                 .add = add};
}

void hn_product(hn_workers *t, hn_form form, hn_mat a, hn_mat b, hn_mat c, bool add) {
    job j = job_of(t->kernel, form, a, b, c, add);
    j.packed_a = t->packed_a;
    j.packed_b = t->packed_b;
    j.pool = t->pool;
    j.most = j.most_terms = MOST;
    hn_pool_run(t->pool, product_run, &j);
}

void hn_product_alone(hn_workers *t, int rank, hn_form form, hn_mat a, hn_mat b, hn_mat c, bool add) {
    job j = job_of(t->exact, form, a, b, c, add);
    j.packed_a = t->alone[rank];
    j.packed_b = j.packed_a + hn_product_room_alone(t->exact).a;
    j.most = MOST_ALONE;
    j.most_terms = t->exact->depth;
    product_run(&j, rank, 1);
}
