/* SPDX-License-Identifier: Apache-2.0 */
/* cache_test.c - page accounting and what commit keeps: random trees of rows against a plain array of the truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "cache/cache.h"

enum { LAYERS = 2, KV_HEADS = 2, DIM = 4, ROWS = 200, SEQS = 3 };

static hn_pool *pool;
static hn_ops ops;

static int setup(void **state) {
    (void)state;
    hunch_error err;
    assert_int_equal(hn_pool_create(&pool, 2, &err), HUNCH_OK);
    hn_ops_cpu(&ops, pool, HN_ISA_REF, false);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hn_pool_free(pool);
    return 0;
}

static hn_cache *open_cache(int page_rows, hn_dtype type) {
    const hn_cache_group g[2] = {{"wide", LAYERS, KV_HEADS, DIM, type, page_rows, 0},
                                 {"narrow", 1, 1, DIM, type, 0, 0}};
    hn_cache *c = NULL;
    hunch_error err;
    assert_int_equal(hn_cache_open(&c, &ops, g, 2, SEQS, ROWS, &err), HUNCH_OK);
    return c;
}

/* Byte address of element (slot, head, dim) of K or V; the formula of hn_kv's comment. */
static char *element(const hn_cache *c, int seq, int group, int layer, bool value, int slot, int head, int dim) {
    const hn_kv kv = hn_cache_kv(c, group, layer);
    const size_t e = (size_t)hn_dtype_block_bytes(kv.type);
    int pages;
    const int32_t *table = hn_cache_pages(c, seq, group, &pages);
    assert_true(slot / kv.page_rows < pages);
    const size_t page = (size_t)table[slot / kv.page_rows] * kv.page_bytes, row = (size_t)(slot % kv.page_rows),
                 at = value ? kv.v_off +
                                  (((size_t)head * (size_t)kv.page_rows + row) * (size_t)kv.head_dim + (size_t)dim) * e
                            : kv.k_off +
                                  (((size_t)head * (size_t)kv.head_dim + (size_t)dim) * (size_t)kv.page_rows + row) * e;
    return (char *)(uintptr_t)ops.view(&ops, hn_at(kv.pool, page + at));
}

/* Visits every element of a row: writes a value made from mark, or checks it. */
static void row(const hn_cache *c, int seq, int slot, uint32_t mark, bool write) {
    static const int layers[2] = {LAYERS, 1}, heads[2] = {KV_HEADS, 1};
    for (int g = 0; g < 2; g++)
        for (int l = 0; l < layers[g]; l++)
            for (int v = 0; v < 2; v++)
                for (int h = 0; h < heads[g]; h++)
                    for (int d = 0; d < DIM; d++) {
                        const uint16_t want =
                            (uint16_t)(mark * 2654435761u >> 16 ^ (unsigned)(g * 64 + l * 32 + v * 16 + h * 8 + d));
                        char *p = element(c, seq, g, l, v, slot, h, d);
                        if (write)
                            memcpy(p, &want, 2);
                        else
                            assert_memory_equal(p, &want, 2);
                    }
}

/* Random rounds on several sequences: rows are written tentatively, an ascending subset is committed, now and then the
 * sequence is rewound or ends. The truth is the list of marks. */
static void check_rounds(int page_rows, hn_dtype type) {
    hn_cache *c = open_cache(page_rows, type);
    const int all_pages = hn_cache_free_pages(c);
    uint32_t truth[SEQS][ROWS], mark = 1;
    int n[SEQS] = {0};
    uint64_t rng = 7;
    hunch_error err;
    for (int s = 0; s < SEQS; s++) hn_cache_seq_begin(c, s);
    for (int round = 0; round < 400; round++) {
        const int s = (int)(hn_splitmix(&rng) % SEQS), rows = 1 + (int)(hn_splitmix(&rng) % HN_MAX_ROWS);
        uint32_t drafted[HN_MAX_ROWS];
        int16_t keep[HN_MAX_ROWS];
        int k = 0;
        assert_int_equal(hn_cache_reserve(c, s, rows, &err), HUNCH_OK);
        for (int i = 0; i < rows; i++) row(c, s, n[s] + i, drafted[i] = mark++, true);
        for (int i = 0; i < rows && n[s] + k < ROWS; i++)
            if (hn_splitmix(&rng) % 3 == 0) keep[k++] = (int16_t)i;
        hn_cache_commit(c, s, keep, k);
        for (int i = 0; i < k; i++) truth[s][n[s]++] = drafted[keep[i]];
        assert_int_equal(hn_cache_committed(c, s), n[s]);
        for (int i = 0; i < n[s]; i++) row(c, s, i, truth[s][i], false);
        if (hn_splitmix(&rng) % 8 == 0 || n[s] == ROWS) {
            n[s] = (int)(hn_splitmix(&rng) % (uint64_t)(n[s] + 1));
            if (n[s] < 20) {
                hn_cache_seq_end(c, s);
                hn_cache_seq_begin(c, s);
                n[s] = 0;
            } else
                hn_cache_rewind(c, s, n[s]);
        }
        assert_true(hn_cache_valid(c));
    }
    for (int s = 0; s < SEQS; s++) hn_cache_seq_end(c, s);
    assert_int_equal(hn_cache_free_pages(c), all_pages);
    hn_cache_close(&c);
}

static void test_commit_keeps_paths(void **state) {
    (void)state;
    check_rounds(16, HN_BF16);
    check_rounds(64, HN_BF16);
    check_rounds(32, HN_F32);
}

static void test_chain_commit_moves_nothing(void **state) {
    (void)state;
    hn_cache *c = open_cache(16, HN_BF16);
    hunch_error err;
    hn_cache_seq_begin(c, 0);
    assert_int_equal(hn_cache_reserve(c, 0, 40, &err), HUNCH_OK);
    for (int i = 0; i < 40; i++) row(c, 0, i, (uint32_t)i, true);
    hn_cache_commit(c, 0, NULL, 33);
    for (int i = 0; i < 40; i++) row(c, 0, i, (uint32_t)i, false);
    assert_int_equal(hn_cache_committed(c, 0), 33);
    hn_cache_close(&c);
}

static void test_limits(void **state) {
    (void)state;
    hn_cache *c = NULL;
    hunch_error err;
    const hn_cache_group bad = {"odd", LAYERS, KV_HEADS, DIM, HN_BF16, 48, 0};
    assert_int_equal(hn_cache_open(&c, &ops, &bad, 1, 1, ROWS, &err), HUNCH_USAGE);
    assert_null(c);
    c = open_cache(16, HN_BF16);
    hn_cache_seq_begin(c, 1);
    for (int i = 0; i < ROWS; i += 50) { /* all the planned rows fit, and a pass behind them */
        assert_int_equal(hn_cache_reserve(c, 1, 50, &err), HUNCH_OK);
        hn_cache_commit(c, 1, NULL, 50);
    }
    assert_int_equal(hn_cache_reserve(c, 1, HN_MAX_ROWS, &err), HUNCH_OK);
    hn_cache_commit(c, 1, NULL, HN_MAX_ROWS);
    assert_int_equal(hn_cache_reserve(c, 1, HN_MAX_ROWS, &err), HUNCH_NO_MEMORY);
    assert_true(hn_cache_valid(c));
    hn_cache_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_commit_keeps_paths),
                                       cmocka_unit_test(test_chain_commit_moves_nothing),
                                       cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
