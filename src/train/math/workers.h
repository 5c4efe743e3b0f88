/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - the workers of a pool, the kernel of products that they use, and the scratch memory of each.
 *
 * Operations of the trainer are called by one thread and split their work over the workers. Results have the same bits for
 * any number of workers: work is split between outputs, never inside a sum. */
#ifndef HN_WORKERS_H
#define HN_WORKERS_H
#include "base/cpu.h"
#include "base/threads.h"
#include "train/math/real.h"

struct hn_product_kernel;

typedef enum hn_products { HN_PRODUCTS_F32, HN_PRODUCTS_BF16 } hn_products;

typedef struct hn_workers {
    hn_pool *pool; /* not owned */
    int ranks;
    const struct hn_product_kernel *kernel; /* of hn_product */
    const struct hn_product_kernel *exact;  /* of hn_product_alone: unrounded */
    void *packed_a, *packed_b;              /* operands of hn_product, shared by all */
    size_t bytes_a, bytes_b;                /* their sizes */
    void **alone;                           /* [ranks] of hn_product_alone */
    hn_real **scratch; /* [ranks][scratch_count], for one piece of an operation's work */
    size_t scratch_count;
} hn_workers;

/* Products in f32, or of pairs of bf16 added in f32, with the best kernels of a level that the machine has.
 * scratch_count: scratch numbers of each worker, 0 is fine (hn_attention_scratch). HUNCH_REFUSED: the level has no bf16
 * products. */
hunch_status hn_workers_open(hn_workers *t, hn_pool *pool, hn_isa isa, hn_products products, size_t scratch_count,
                          hunch_error *err);
void hn_workers_close(hn_workers *t); /* zeroed or failed is fine */

/* Calls fn(arg, rank, first, end) for pieces of [0, count), `grain` items each except the last, on all workers; returns
 * when all are done. The assignment of pieces to workers is not fixed. */
void hn_workers_split(hn_workers *t, int count, int grain, void (*fn)(void *arg, int rank, int first, int end), void *arg);
#endif
