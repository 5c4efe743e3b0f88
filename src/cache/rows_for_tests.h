/* SPDX-License-Identifier: Apache-2.0 */
/* rows_for_tests.h - rows of a cache written and checked through their addresses: every element of a row gets a value
 * made from one mark. Include after cmocka. */
#ifndef HN_ROWS_FOR_TESTS_H
#define HN_ROWS_FOR_TESTS_H
#include <string.h>

#include "base/random.h"
#include "cache/cache.h"

#define HELPER __attribute__((unused)) static

static hn_pool *pool;
static hn_ops ops;

HELPER int rows_setup(void **state) {
    (void)state;
    hunch_error err;
    assert_int_equal(hn_pool_create(&pool, 2, &err), HUNCH_OK);
    hn_ops_cpu(&ops, pool, HN_ISA_REF, false);
    return 0;
}

HELPER int rows_teardown(void **state) {
    (void)state;
    hn_pool_free(pool);
    return 0;
}

/* Byte address of element (slot, head, dim) of K or V; the formula of hn_kv's comment. */
HELPER char *element(const hn_cache *c, int seq, int group, const hn_kv *kv, bool value, int slot, int head, int dim) {
    const size_t e = (size_t)hn_dtype_block_bytes(kv->type);
    int pages;
    const int32_t *table = hn_cache_pages(c, seq, group, &pages);
    assert_true(slot / kv->page_rows < pages && table[slot / kv->page_rows] != HN_NO_PAGE);
    const size_t page = (size_t)table[slot / kv->page_rows] * kv->page_bytes, row = (size_t)(slot % kv->page_rows),
                 at = value
                          ? kv->v_off +
                                (((size_t)head * (size_t)kv->page_rows + row) * (size_t)kv->head_dim + (size_t)dim) * e
                          : kv->k_off +
                                (((size_t)head * (size_t)kv->head_dim + (size_t)dim) * (size_t)kv->page_rows + row) * e;
    return (char *)(uintptr_t)ops.view(&ops, hn_at(kv->pool, page + at));
}

/* Writes the row's elements of one group, or counts those that differ. */
HELPER int group_row(const hn_cache *c, int seq, int group, int layers, int slot, uint32_t mark, bool write) {
    int wrong = 0;
    for (int l = 0; l < layers; l++) {
        const hn_kv kv = hn_cache_kv(c, group, l);
        for (int v = 0; v < 2; v++)
            for (int h = 0; h < kv.kv_heads; h++)
                for (int d = 0; d < kv.head_dim; d++) {
                    const uint16_t want =
                        (uint16_t)((mark * 2654435761u >> 16) ^ (unsigned)(group * 512 + l * 64 + v * 32 + h * 16 + d));
                    char *p = element(c, seq, group, &kv, v, slot, h, d);
                    if (write)
                        memcpy(p, &want, 2);
                    else
                        wrong += memcmp(p, &want, 2) != 0;
                }
    }
    return wrong;
}
#endif
