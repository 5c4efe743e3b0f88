/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - a pool's workers with room to compute in. */
#include "train/math/workers.h"

#include "base/mem.h"
#include "train/math/product/product_kernels.h"

hunch_status hn_workers_open(hn_workers *t, hn_pool *pool, hn_isa isa, hn_products products, size_t scratch_count,
                          hunch_error *err) {
    *t = (hn_workers){.pool = pool, .ranks = hn_pool_threads(pool), .scratch_count = scratch_count};
    t->exact = hn_product_kernel_of(isa, HN_PRODUCTS_F32);
    t->kernel = hn_product_kernel_of(isa, products);
    if (!t->kernel)
        return hn_fail(err, HUNCH_REFUSED, "the level %s has no products of bf16: avx512bf16 and amx have",
                       hn_isa_name(isa));
    const hn_product_room room = hn_product_room_of(t->kernel), alone = hn_product_room_alone(t->exact);
    const size_t need = alone.a + alone.b, ranks = (size_t)t->ranks;
    t->bytes_a = room.a;
    t->bytes_b = room.b;
    t->packed_a = hn_pages_alloc(room.a);
    t->packed_b = hn_pages_alloc(room.b);
    t->alone = hn_zalloc(ranks, sizeof *t->alone);
    t->scratch = hn_zalloc(ranks, sizeof *t->scratch);
    bool ok = t->packed_a && t->packed_b && t->alone && t->scratch;
    for (size_t i = 0; ok && i < ranks; i++) {
        t->alone[i] = hn_alloc(need);
        t->scratch[i] = hn_zalloc(scratch_count, sizeof(hn_real));
        ok = t->alone[i] && t->scratch[i];
    }
    if (ok) return HUNCH_OK;
    hn_workers_close(t);
    return hn_fail_memory(err, "the trainer's workers",
                          room.a + room.b + ranks * (need + scratch_count * sizeof(hn_real)));
}

void hn_workers_close(hn_workers *t) {
    for (int i = 0; i < t->ranks; i++) {
        if (t->alone) hn_free(t->alone[i]);
        if (t->scratch) hn_free(t->scratch[i]);
    }
    hn_pages_free(t->packed_a, t->bytes_a);
    hn_pages_free(t->packed_b, t->bytes_b);
    hn_free(t->alone);
    hn_free(t->scratch);
    *t = (hn_workers){0};
}

typedef struct split {
    hn_pool *pool;
    int count, grain;
    void (*fn)(void *arg, int rank, int first, int end);
    void *arg;
} split;

static void split_run(void *arg, int rank, int ranks) {
    (void)ranks;
    const split *s = arg;
    hn_claim c = hn_claim_begin(s->pool, rank, (s->count + s->grain - 1) / s->grain);
    for (int i; (i = hn_claim_next(&c)) >= 0;) {
        const int first = i * s->grain, end = first + s->grain;
        s->fn(s->arg, rank, first, end < s->count ? end : s->count);
    }
}

void hn_workers_split(hn_workers *t, int count, int grain, void (*fn)(void *arg, int rank, int first, int end), void *arg) {
    split s = {t->pool, count, grain, fn, arg};
    hn_pool_run(t->pool, split_run, &s);
}
