/* SPDX-License-Identifier: Apache-2.0 */
/* rows_for_tests.h - writes and checks rows of a cache through their addresses: every element of a row gets a value derived
 * from one mark. Include after cmocka. */
#ifndef HN_ROWS_FOR_TESTS_H
#define HN_ROWS_FOR_TESTS_H
#include <string.h>

#include "base/helper_for_tests.h"
#include "base/random.h"
#include "cache/cache.h"
#include "ops/kv.h"


static hn_pool *pool;
static hn_backend *backend;

HELPER int rows_setup(void **state) {
    (void)state;
    hunch_error err;
    assert_int_equal(hn_pool_create(&pool, 2, &err), HUNCH_OK);
    assert_int_equal(hn_cpu_backend_open(&backend, pool, HN_ISA_REF, false, &err), HUNCH_OK);
    return 0;
}

HELPER int rows_teardown(void **state) {
    (void)state;
    backend->close(backend);
    hn_pool_free(pool);
    return 0;
}

/* The address of K or V of one head in a slot. */
HELPER unsigned char *row_of(const hn_cache *c, int seq, int group, const hn_kv *kv, bool value, int slot, int head,
                             hn_kv_row *row) {
    int pages;
    hn_cache_flush((hn_cache *)(uintptr_t)c); /* rows are where they will be for the next pass */
    const int32_t *table = hn_cache_pages(c, seq, group, &pages);
    assert_true(slot / kv->page_rows < pages && table[slot / kv->page_rows] != HN_NO_PAGE);
    *row = (value ? hn_kv_value_row : hn_kv_key_row)(kv, head, slot % kv->page_rows);
    const size_t page = (size_t)table[slot / kv->page_rows] * kv->page_bytes;
    return (unsigned char *)(uintptr_t)backend->read(backend, (hn_ticket){0}, hn_at(kv->pool, page), kv->page_bytes);
}

/* Writes two bytes of an element (one if it has no more), or returns whether they differ. */
HELPER int mark_element(unsigned char *p, size_t size, uint16_t mark, bool write) {
    const size_t bytes = size < sizeof mark ? size : sizeof mark;
    if (write) memcpy(p, &mark, bytes);
    return memcmp(p, &mark, bytes) != 0;
}

/* Writes the numbers of a row that is none of keys, or counts those that differ. */
HELPER int plain_row(const hn_cache *c, int seq, int group, int layers, int slot, uint32_t mark, bool write) {
    int wrong = 0, pages;
    hn_cache_flush((hn_cache *)(uintptr_t)c);
    const int32_t *table = hn_cache_pages(c, seq, group, &pages);
    const hn_plain_rows rows = hn_cache_rows(c, group);
    assert_true(slot / rows.page_rows < pages && table[slot / rows.page_rows] != HN_NO_PAGE);
    const size_t at = (size_t)table[slot / rows.page_rows] * rows.page_bytes + rows.row_bytes * (size_t)(slot % rows.page_rows);
    unsigned char *row = (unsigned char *)(uintptr_t)backend->read(backend, (hn_ticket){0}, hn_at(rows.pool, at), rows.row_bytes);
    for (int l = 0; l < layers; l++) {
        const hn_plain_units u = hn_cache_units(c, group, l);
        for (size_t i = 0; i + sizeof(float) <= rows.row_bytes / (size_t)layers; i += sizeof(float))
            wrong += mark_element(row + u.off + i, sizeof(float),
                                  (uint16_t)(mark * 2654435761u >> 16 ^ (unsigned)l * 1024 ^ (unsigned)i), write);
    }
    return wrong;
}

/* Writes the row's elements of one group, or counts those that differ. */
HELPER int group_row(const hn_cache *c, int seq, int group, int layers, int slot, uint32_t mark, bool write) {
    int wrong = 0;
    if (hn_cache_kind_of(c, group) == HN_CACHE_ROWS) return plain_row(c, seq, group, layers, slot, mark, write);
    for (int l = 0; l < layers; l++) {
        const hn_kv kv = hn_cache_kv(c, group, l);
        for (int v = 0; v < (kv.v_in_k ? 1 : 2); v++)
            for (int h = 0; h < kv.kv_heads; h++) {
                hn_kv_row row;
                unsigned char *page = row_of(c, seq, group, &kv, v, slot, h, &row);
                const uint16_t base =
                    (uint16_t)((mark * 2654435761u >> 16) ^ (unsigned)(group * 512 + l * 64 + v * 32 + h * 16));
                for (int d = 0; d < (v ? kv.v_dim : kv.head_dim); d++)
                    wrong += mark_element(page + hn_kv_element(&kv, &row, d), hn_kv_element_bytes(kv.type),
                                          (uint16_t)(base ^ d), write);
                for (int i = 0; i < row.scales; i++)
                    wrong += mark_element(page + row.scale_at + row.scale_step * (size_t)i, sizeof(float),
                                          (uint16_t)(base + 7 * i), write);
            }
    }
    return wrong;
}
#endif
