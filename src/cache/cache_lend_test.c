/* SPDX-License-Identifier: Apache-2.0 */
/* cache_lend_test.c - a model whose groups are like the target's gets spans of its rows: they are the target's, rows behind them are its
 * own, and neither writes to the other's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/cache_private.h"
#include "cache/rows_for_tests.h"

enum { CONTEXT = 2000, SEQS = 2, TARGET = 0, READER = 1, GROUPS = 2, WINDOW = 300 };

/* Full groups of other pages than those of a window. */
static hn_cache *open_like(int window, int page_rows, bool like) {
    hn_cache *c = NULL;
    hunch_error err;
    hn_cache_group g[2 * GROUPS] = {{.layers = 2, .kv_heads = 1, .head_dim = 16, .type = HN_BF16, .page_rows = page_rows},
                                    {.layers = 5, .kv_heads = 1, .head_dim = 16, .type = HN_F16, .window = window, .v_dim = 8}};
    for (int i = 0; i < GROUPS; i++) {
        g[i].name = "rows";
        g[GROUPS + i] = g[i];
        g[GROUPS + i].model_id = READER;
        g[GROUPS + i].like = like ? 1 + i : 0;
    }
    assert_int_equal(hn_cache_open(&c, backend, g, 2 * GROUPS, SEQS, CONTEXT, 0, &err), HUNCH_OK);
    for (int i = 0; like && i < GROUPS; i++) assert_int_equal(hn_cache_kv(c, GROUPS + i, 0).page_rows, hn_cache_kv(c, i, 0).page_rows);
    hn_cache_seq_begin(c, 0);
    return c;
}

static int layers_of(int group) {
    return group % GROUPS ? 5 : 2;
}

/* A pass of a model, whose rows are all kept. Marks are those of a group of the target: its pages may be in both tables. */
static void write_rows(hn_cache *c, int model, int n, uint32_t mark) {
    hunch_error err;
    const int first = hn_cache_committed(c, 0, model);
    assert_int_equal(hn_cache_reserve(c, 0, model, n, &err), HUNCH_OK);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < n; i++) group_row(c, 0, model * GROUPS + g, layers_of(g), first + i, mark + (uint32_t)i, true);
    hn_cache_commit(c, 0, model, NULL, n);
    assert_true(hn_cache_valid(c));
}

/* Numbers of a model's keys that are not those of a row with this mark that the model `as` wrote; a released row has none. */
static int differing(hn_cache *c, int model, int as, int slot, uint32_t mark) {
    int wrong = 0;
    for (int g = 0; g < GROUPS; g++) {
        const int group = model * GROUPS + g, page_rows = hn_cache_kv(c, group, 0).page_rows;
        int pages;
        if (hn_cache_pages(c, 0, group, &pages)[slot / page_rows] == HN_NO_PAGE) continue;
        hn_kv kv = hn_cache_kv(c, group, 0);
        hn_kv_row row;
        unsigned char *page = row_of(c, 0, group, &kv, false, slot, 0, &row);
        const uint16_t base = (uint16_t)((mark * 2654435761u >> 16) ^ (unsigned)((as * GROUPS + g) * 512));
        for (int d = 0; d < kv.head_dim; d++) wrong += mark_element(page + hn_kv_element(&kv, &row, d), 2, (uint16_t)(base ^ d), false);
    }
    return wrong;
}

static void test_spans(void **state) {
    (void)state;
    static const int lengths[] = {1700, 1536, 1537, 1791};
    for (int pages = 16; pages <= 256; pages *= 4)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            static const int32_t span[] = {0, 2, 4, 5, 6};
            const int rows = lengths[k], n = rows > 6 * HN_KEY_SPAN ? 5 : 4, last = rows - span[n - 1] * HN_KEY_SPAN;
            hn_cache *c = open_like(0, pages, true);
            for (int at = 0; at < rows; at += 50) write_rows(c, TARGET, rows - at < 50 ? rows - at : 50, (uint32_t)at);
            const int free_pages = hn_cache_free_pages(c);
            assert_true(hn_cache_lend(c, 0, READER, span, n));
            assert_int_equal(hn_cache_free_pages(c), free_pages);
            assert_int_equal(hn_cache_committed(c, 0, READER), (n - 1) * HN_KEY_SPAN + last);
            for (int i = 0; i < hn_cache_committed(c, 0, READER); i++) {
                const int from = span[i / HN_KEY_SPAN] * HN_KEY_SPAN + i % HN_KEY_SPAN;
                assert_int_equal(differing(c, READER, TARGET, i, (uint32_t)from), 0);
            }
            const int own = hn_cache_committed(c, 0, READER);
            for (int i = 0; i < 3; i++) write_rows(c, READER, 20, 100000 + 20 * (uint32_t)i); /* behind them, over ends of pages */
            write_rows(c, TARGET, 40, (uint32_t)rows);
            for (int i = 0; i < 60; i++) assert_int_equal(differing(c, READER, READER, own + i, 100000 + (uint32_t)i), 0);
            for (int i = 0; i < rows + 40; i++) assert_int_equal(differing(c, TARGET, TARGET, i, (uint32_t)i), 0);
            for (int i = 0; i < own; i++) {
                const int from = span[i / HN_KEY_SPAN] * HN_KEY_SPAN + i % HN_KEY_SPAN;
                assert_int_equal(differing(c, READER, TARGET, i, (uint32_t)from), 0);
            }
            assert_true(hn_cache_lend(c, 0, READER, NULL, 0));
            assert_int_equal(hn_cache_committed(c, 0, READER), 0);
            assert_true(hn_cache_valid(c));
            hn_cache_seq_end(c, 0);
            assert_int_equal(hn_cache_free_pages(c), hn_cache_all_pages(c));
            hn_cache_close(&c);
        }
}

/* The rows that the next one sees must be there, whatever else is lent. */
static void test_windows(void **state) {
    (void)state;
    static const int32_t whole[] = {0, 4, 5}, torn[] = {0, 5};
    hn_cache *c = open_like(WINDOW, 64, true);
    for (int at = 0; at < 1500; at += 50) write_rows(c, TARGET, 50, (uint32_t)at);
    assert_false(hn_cache_lend(c, 0, READER, torn, 2)); /* 220 rows of span 5 */
    assert_int_equal(hn_cache_committed(c, 0, READER), 0);
    assert_true(hn_cache_valid(c));
    assert_true(hn_cache_lend(c, 0, READER, whole, 3));
    assert_int_equal(hn_cache_committed(c, 0, READER), 2 * HN_KEY_SPAN + 220);
    assert_true(hn_cache_valid(c));
    write_rows(c, READER, 30, 7);
    for (int i = HN_KEY_SPAN + 200; i < 2 * HN_KEY_SPAN + 220; i++)
        assert_int_equal(differing(c, READER, TARGET, i, (uint32_t)(i + 3 * HN_KEY_SPAN)), 0);
    hn_cache_seq_end(c, 0);
    assert_int_equal(hn_cache_free_pages(c), hn_cache_all_pages(c));
    hn_cache_close(&c);
}

/* Such groups have pages of their own for the rows of a pass alone, however long texts are. */
static void test_plan(void **state) {
    (void)state;
    hn_cache *c[2] = {open_like(0, 16, false), open_like(0, 16, true)};
    assert_true(hn_cache_bytes(c[1]) < hn_cache_bytes(c[0]) * 3 / 5);
    for (int i = 0; i < 2; i++) hn_cache_close(&c[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spans), cmocka_unit_test(test_windows), cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, rows_setup, rows_teardown);
}
