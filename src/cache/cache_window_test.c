/* SPDX-License-Identifier: Apache-2.0 */
/* cache_window_test.c - window groups: the pages that they keep, exact to the row; their memory; rewinds past them with and
 * without the index. Random walks: cache_walk_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "cache/cache_private.h"
#include "cache/rows_for_tests.h"

enum { LONG = 3000, PAGE = 32 };

/* A full group and one with a window; pages of 32 rows both. */
static hn_cache *open_pair(int window, int back, int seqs, int rows, int pool_rows) {
    const hn_cache_group g[2] = {
        {.name = "full", .layers = 2, .kv_heads = 1, .head_dim = 16, .type = HN_BF16, .page_rows = PAGE},
        {.name = "window",
         .layers = 2,
         .kv_heads = 1,
         .head_dim = 16,
         .type = HN_BF16,
         .window = window,
         .back = back}};
    hn_cache *c = NULL;
    hunch_error err;
    assert_int_equal(hn_cache_open(&c, backend, g, 2, seqs, rows, pool_rows, &err), HUNCH_OK);
    assert_int_equal(hn_cache_kv(c, 1, 0).page_rows, PAGE);
    return c;
}

/* A single group with a window. */
static hn_cache *open_window(int window, int seqs, int rows, int pool_rows) {
    const hn_cache_group g = {.name = "window",
                              .layers = 2,
                              .kv_heads = 1,
                              .head_dim = 16,
                              .type = HN_BF16,
                              .page_rows = PAGE,
                              .window = window};
    hn_cache *c = NULL;
    hunch_error err;
    assert_int_equal(hn_cache_open(&c, backend, &g, 1, seqs, rows, pool_rows, &err), HUNCH_OK);
    return c;
}

static uint32_t mark_of(int row) {
    return (uint32_t)row * 2654435761u + 99;
}

static int32_t text[LONG];

static int setup(void **state) {
    for (int i = 0; i < LONG; i++) text[i] = i * 7 % 1000;
    return rows_setup(state);
}

/* Number of pages that a group's table keeps; *first: the first of them. */
static int held(const hn_cache *c, int seq, int group, int *first) {
    int n, none = 0;
    const int32_t *page = hn_cache_pages(c, seq, group, &n);
    while (none < n && page[none] == HN_NO_PAGE) none++;
    for (int i = none; i < n; i++) assert_int_not_equal(page[i], HN_NO_PAGE);
    *first = none;
    return n - none;
}

/* A pass of n tentative rows of model 0; checks the rows that they see: the window before them. */
static void pass(hn_cache *c, int seq, int groups, int window, int n, int keep) {
    hunch_error err;
    const int at = hn_cache_committed(c, seq, 0), low = window && at - window + 1 > 0 ? at - window + 1 : 0;
    int first;
    assert_int_equal(hn_cache_reserve(c, seq, 0, n, &err), HUNCH_OK);
    held(c, seq, groups - 1, &first);
    assert_int_equal(first, low / PAGE);
    for (int g = 0; g < groups; g++) {
        for (int i = g == groups - 1 ? low : 0; i < at; i++)
            assert_int_equal(group_row(c, seq, g, 2, i, mark_of(i), false), 0);
        for (int i = 0; i < n; i++) group_row(c, seq, g, 2, at + i, mark_of(at + i), true);
    }
    hn_cache_commit(c, seq, 0, NULL, keep);
    assert_true(hn_cache_valid(c));
}

/* Every window, at every offset in its pages: the rows that a row sees are there, the page before is not. */
static void test_keeps_its_window_to_the_row(void **state) {
    (void)state;
    static const int windows[] = {1, 2, 16, 31, 32, 33, 64, 65, 100, 250, 400};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        for (int alone = 0; alone < 2; alone++) {
            hn_cache *c = alone ? open_window(windows[i], 1, 300, 0) : open_pair(windows[i], 0, 1, 300, 0);
            const int all = hn_cache_free_pages(c);
            hn_cache_seq_begin(c, 0);
            for (int k = 0; hn_cache_committed(c, 0, 0) < 300 - 3; k++) {
                const int n = k % 7 ? 1 + k % 3 : 64, left = 300 - hn_cache_committed(c, 0, 0);
                pass(c, 0, 2 - alone, windows[i], n, k % 7 ? n : left < 40 ? left : 40);
            }
            hn_cache_seq_end(c, 0);
            assert_int_equal(hn_cache_free_pages(c), all);
            hn_cache_close(&c);
        }
}

/* A window of 100 rows over a text of thousands: no more pages than planned, and the plan is smaller than the text. */
static void test_memory_is_bounded(void **state) {
    (void)state;
    enum { WINDOW = 100, MOST = (WINDOW - 1 + HN_MAX_ROWS + PAGE - 2) / PAGE + 1 };
    hn_cache *c = open_window(WINDOW, 2, LONG, 0), *wide = open_window(0, 2, LONG, 0);
    const int all = hn_cache_free_pages(c);
    assert_int_equal(all, 2 * MOST + 1);
    assert_int_equal(hn_cache_bytes(c), (size_t)all * hn_cache_kv(c, 0, 0).page_bytes);
    assert_true(hn_cache_bytes(wide) > 10 * hn_cache_bytes(c));
    hn_cache_close(&wide);
    int most = 0, first;
    for (int s = 0; s < 2; s++) hn_cache_seq_begin(c, s);
    for (int k = 0; hn_cache_committed(c, 0, 0) < LONG; k++)
        for (int s = 0; s < 2; s++) {
            const int left = LONG - hn_cache_committed(c, s, 0), n = k % 5 ? 1 + k % 20 : 64;
            hunch_error err;
            assert_int_equal(hn_cache_reserve(c, s, 0, 64, &err), HUNCH_OK);
            const int now = held(c, s, 0, &first);
            most = now > most ? now : most;
            hn_cache_commit(c, s, 0, NULL, n < left ? n : left);
        }
    assert_int_equal(most, MOST);
    assert_true(hn_cache_free_pages(c) >= 1);
    hn_cache_close(&c);
}

/* Full groups are planned as without it; a text needs as many pages as planned for its length. */
static void test_plan_of_groups(void **state) {
    (void)state;
    hn_cache *c = open_pair(100, 20, 3, 1000, 1000);
    assert_int_equal(hn_cache_pages_for(c, 1000), (1000 + 64 + 31) / 32 + (99 + 20 + 64 + 30) / 32 + 1);
    assert_int_equal(hn_cache_pages_for(c, 10), 3 + 3);
    assert_int_equal(hn_cache_step(c), PAGE);
    hn_cache_seq_begin(c, 0);
    for (int s = 1; s < 3; s++) hn_cache_seq_begin(c, s);
    for (hunch_error err; hn_cache_committed(c, 0, 0) < 1000;) { /* one alone always fits */
        const int left = 1000 - hn_cache_committed(c, 0, 0);
        assert_int_equal(hn_cache_reserve(c, 0, 0, 64, &err), HUNCH_OK);
        hn_cache_commit(c, 0, 0, NULL, left < 64 ? left : 64);
    }
    int first;
    assert_true(held(c, 0, 0, &first) + held(c, 0, 1, &first) <= hn_cache_pages_for(c, 1000));
    assert_true(hn_cache_valid(c));
    hn_cache_close(&c);
}

/* ---- rewinding ------------------------------------------------------------------------------------------------- */

static void commit_rows(hn_cache *c, int seq, int groups, int window, int rows, bool publish) {
    for (int at; (at = hn_cache_committed(c, seq, 0)) < rows;) {
        pass(c, seq, groups, window, rows - at < 64 ? rows - at : 64, rows - at < 50 ? rows - at : 50);
        if (publish) hn_cache_publish(c, seq, text, (int[]){hn_cache_committed(c, seq, 0)});
    }
}

/* A group with `back` rows can be rewound by these; without an index a rewind past them restarts from 0. */
static void test_rewind(void **state) {
    (void)state;
    enum { WINDOW = 70, ROWS = 600, BACK = 40 };
    for (int back = 1; back < 300; back++) {
        hn_cache *c = open_pair(WINDOW, BACK, 1, ROWS, 0);
        hunch_error err;
        int first;
        hn_cache_seq_begin(c, 0);
        for (int at; (at = hn_cache_committed(c, 0, 0)) < ROWS;) {
            const int n = ROWS - at < 64 ? ROWS - at : 64;
            assert_int_equal(hn_cache_reserve(c, 0, 0, n, &err), HUNCH_OK);
            for (int g = 0; g < 2; g++)
                for (int i = 0; i < n; i++) group_row(c, 0, g, 2, at + i, mark_of(at + i), true);
            hn_cache_commit(c, 0, 0, NULL, n);
        }
        assert_int_equal(hn_cache_reserve(c, 0, 0, 1, &err), HUNCH_OK);
        held(c, 0, 1, &first);
        const int lowest = first * PAGE + WINDOW - 1, wanted = ROWS - back; /* the least rows whose window is there */
        assert_true(lowest <= ROWS - BACK && lowest > ROWS - BACK - PAGE);
        const int rows = hn_cache_rewind(c, 0, 0, wanted);
        assert_int_equal(rows, wanted >= lowest ? wanted : 0);
        assert_int_equal(hn_cache_committed(c, 0, 0), rows);
        assert_true(hn_cache_valid(c));
        for (int g = 0; g < 2; g++)
            for (int i = g && rows >= WINDOW ? rows - WINDOW + 1 : 0; i < rows; i++)
                assert_int_equal(group_row(c, 0, g, 2, i, mark_of(i), false), 0);
        assert_int_equal(hn_cache_reserve(c, 0, 0, 64, &err), HUNCH_OK);
        hn_cache_close(&c);
    }
}

/* Published rows are restored, up to the last page's end before. */
static void test_rewind_through_the_index(void **state) {
    (void)state;
    enum { WINDOW = 70, ROWS = 600 };
    for (int alone = 0; alone < 2; alone++)
        for (int wanted = 0; wanted < 520; wanted += 13) {
            hn_cache *c = alone ? open_window(WINDOW, 1, ROWS, 4 * ROWS) : open_pair(WINDOW, 0, 1, ROWS, 4 * ROWS);
            hn_cache_seq_begin(c, 0);
            commit_rows(c, 0, 2 - alone, WINDOW, ROWS, true);
            const int rows = hn_cache_rewind(c, 0, 0, wanted);
            assert_int_equal(rows, wanted / PAGE * PAGE);
            assert_true(hn_cache_valid(c));
            commit_rows(c, 0, 2 - alone, WINDOW, ROWS, true); /* checks what each row sees */
            hn_cache_close(&c);
        }
}

/* ---- the index -------------------------------------------------------------------------------------------------- */

/* A text can be continued from its end, and from any branch, while the pages are there. */
static void test_restore_needs_the_window_only(void **state) {
    (void)state;
    enum { WINDOW = 70, ROWS = 600 };
    for (int alone = 0; alone < 2; alone++) {
        hn_cache *c = alone ? open_window(WINDOW, 2, ROWS, 4 * ROWS) : open_pair(WINDOW, 0, 2, ROWS, 4 * ROWS);
        const int all = hn_cache_free_pages(c), window = 1 - alone;
        int first;
        hn_cache_seq_begin(c, 0);
        commit_rows(c, 0, 2 - alone, WINDOW, ROWS, true);
        for (int n = 0; n <= ROWS; n += 25) {
            hn_cache_seq_begin(c, 1);
            const int rows = hn_cache_restore(c, 1, text, n), low = rows - WINDOW + 1;
            assert_int_equal(rows, n / PAGE * PAGE);
            assert_int_equal(held(c, 1, window, &first), rows / PAGE - (low > 0 ? low / PAGE : 0));
            assert_int_equal(first, low > 0 ? low / PAGE : 0);
            commit_rows(c, 1, 2 - alone, WINDOW, rows + 20 < ROWS ? rows + 20 : ROWS, n % 2);
            hn_cache_seq_end(c, 1);
        }
        hn_cache_seq_end(c, 0);
        assert_int_equal(hn_cache_free_pages(c), all);
        hn_cache_close(&c);
    }
}

/* Pages that were released before their text was published are not in the index; the last ones are. */
static void test_published_late(void **state) {
    (void)state;
    enum { WINDOW = 70, ROWS = 600 };
    for (int alone = 0; alone < 2; alone++) {
        hn_cache *c = alone ? open_window(WINDOW, 2, ROWS, 4 * ROWS) : open_pair(WINDOW, 0, 2, ROWS, 4 * ROWS);
        hn_cache_seq_begin(c, 0);
        commit_rows(c, 0, 2 - alone, WINDOW, ROWS, false);
        hn_cache_publish(c, 0, text, (int[]){ROWS});
        assert_true(hn_cache_valid(c));
        for (int end = 0; end < 2; end++) { /* the table has rows from 480 on: rows 576 see those from 507 */
            for (int n = ROWS; n > 500; n -= 50) {
                hn_cache_seq_begin(c, 1);
                assert_int_equal(hn_cache_restore(c, 1, text, n), n / PAGE * PAGE == 576 ? 576 : 0);
                hn_cache_seq_end(c, 1);
            }
            if (!end) hn_cache_seq_end(c, 0);
        }
        hn_cache_close(&c);
    }
}

/* Number of nodes [from, to) of a text in the index; *pages: those with their page of the group. */
static int blocks_of(const hn_cache *c, const int32_t *t, int from, int to, int group, int *pages) {
    int n = 0;
    *pages = 0;
    for (const hn_prefix_node *b = NULL; n < to && (b = hn_prefix_child(&c->prefix, 0, b, t + n * PAGE)); n++)
        *pages += n >= from && b->page[c->first_slot[group]] != HN_NO_PAGE;
    return n > from ? n - from : 0;
}

static int blocks_there(const hn_cache *c, int group, int *pages) {
    return blocks_of(c, text, 0, LONG / PAGE, group, pages);
}

/* Under pressure a running text first loses the pages that its window has passed, the oldest first; it continues. */
static void test_running_text_loses_what_it_passed(void **state) {
    (void)state;
    enum { WINDOW = 70, ROWS = 1000 };
    for (int alone = 0; alone < 2; alone++) {
        hn_cache *c = alone ? open_window(WINDOW, 1, ROWS, 0) : open_pair(WINDOW, 0, 1, ROWS, 0);
        int pages, first;
        hn_cache_seq_begin(c, 0);
        commit_rows(c, 0, 2 - alone, WINDOW, ROWS, true);
        assert_int_equal(blocks_there(c, 1 - alone, &pages), ROWS / PAGE);
        assert_true(pages >= held(c, 0, 1 - alone, &first) - 1 && pages < 10);
        assert_int_equal(c->n_idle, pages - (ROWS / PAGE - first));
        assert_int_equal(hn_cache_rewind(c, 0, 0, 300), 0);
        commit_rows(c, 0, 2 - alone, WINDOW, ROWS, true);
        hn_cache_seq_end(c, 0);
        assert_true(hn_cache_valid(c));
        hn_cache_close(&c);
    }
}

/* Least recently used first: pages that a running text had passed before another text ended are evicted before that text, and
 * that before pages passed since. */
static void test_oldest_goes_first(void **state) {
    (void)state;
    enum { WINDOW = 70, ROWS = 1000, BEFORE = 320, OTHER = 96 };
    int32_t other[OTHER];
    for (int i = 0; i < OTHER; i++) other[i] = 5000 + i;
    for (int alone = 0; alone < 2; alone++) {
        const int window = 1 - alone;
        hn_cache *c = alone ? open_window(WINDOW, 2, ROWS, 0) : open_pair(WINDOW, 0, 2, ROWS, 0);
        int first, seen = 0, pages;
        for (int s = 0; s < 2; s++) hn_cache_seq_begin(c, s);
        commit_rows(c, 0, 2 - alone, WINDOW, BEFORE, true);
        held(c, 0, window, &first);
        for (int i = 0; i < OTHER; i += 32) pass(c, 1, 2 - alone, WINDOW, 32, 32);
        hn_cache_publish(c, 1, other, (int[]){OTHER});
        hn_cache_seq_end(c, 1);
        for (int left = ROWS - BEFORE; left > 0; left -= 20) {
            int old, since;
            blocks_of(c, text, 0, first, window, &old);
            blocks_of(c, other, 0, OTHER / PAGE, window, &pages);
            if (old) assert_int_equal(pages, OTHER / PAGE);
            int now;
            held(c, 0, window, &now);
            blocks_of(c, text, first, now, window, &since);
            if (pages) assert_int_equal(since, now - first);
            seen |= old ? 1 : pages ? 2 : since < now - first ? 4 : 0;
            pass(c, 0, 2 - alone, WINDOW, 20, left < 20 ? left : 20);
            hn_cache_publish(c, 0, text, (int[]){hn_cache_committed(c, 0, 0)});
        }
        if (alone) assert_int_equal(seen, 7); /* all three happened; beside a full group there is room for the last */
        assert_true(seen & 1);
        hn_cache_close(&c);
    }
}

/* Empty nodes are removed: when another text has taken all pages nothing of the first is left. */
static void test_nothing_is_left_behind(void **state) {
    (void)state;
    enum { WINDOW = 70, ROWS = 1000 };
    int32_t other[ROWS];
    for (int i = 0; i < ROWS; i++) other[i] = 5000 + i;
    for (int alone = 0; alone < 2; alone++) {
        hn_cache *c = alone ? open_window(WINDOW, 1, ROWS, 0) : open_pair(WINDOW, 0, 1, ROWS, 0);
        int pages;
        for (int k = 0; k < 3; k++) {
            hn_cache_seq_begin(c, 0);
            commit_rows(c, 0, 2 - alone, WINDOW, 900, true);
            hn_cache_seq_end(c, 0);
            assert_true(blocks_there(c, 0, &pages) > 0);
            hn_cache_seq_begin(c, 0);
            for (int at; (at = hn_cache_committed(c, 0, 0)) < ROWS;) {
                pass(c, 0, 2 - alone, WINDOW, 50, 50);
                hn_cache_publish(c, 0, other, (int[]){at + 50});
            }
            assert_int_equal(blocks_there(c, 0, &pages), 0);
            hn_cache_seq_end(c, 0);
            assert_true(hn_cache_valid(c));
        }
        hn_cache_index_clear(c);
        assert_int_equal(c->prefix.n_blocks, 0);
        assert_int_equal(c->n_idle, 0);
        assert_int_equal(c->n_free, c->n_pages);
        hn_cache_close(&c);
    }
}

/* A sequence that shares nothing and publishes only empty nodes leaves none when it ends. */
static void test_empty_blocks(void **state) {
    (void)state;
    hn_cache *c = open_window(16, 1, 600, 600);
    int pages;
    hn_cache_seq_begin(c, 0);
    commit_rows(c, 0, 1, 16, 600 - 600 % PAGE + 20, false); /* the last full page is out of the window */
    hunch_error err;
    assert_int_equal(hn_cache_reserve(c, 0, 0, 1, &err), HUNCH_OK);
    hn_cache_publish(c, 0, text, (int[]){hn_cache_committed(c, 0, 0)});
    assert_int_equal(blocks_there(c, 0, &pages), 600 / PAGE);
    assert_int_equal(pages, 0);
    assert_true(hn_cache_valid(c));
    hn_cache_seq_end(c, 0);
    assert_int_equal(c->prefix.n_blocks, 0);
    hn_cache_close(&c);
}

/* The current node of a running text stays when its page, passed long ago, is evicted for another text. */
static void test_running_text_keeps_its_place(void **state) {
    (void)state;
    enum { WINDOW = 16, ROWS = 600 };
    hn_cache *c = open_window(WINDOW, 2, ROWS, 0);
    int32_t other[ROWS];
    int pages;
    hunch_error err;
    for (int i = 0; i < ROWS; i++) other[i] = 5000 + i;
    for (int s = 0; s < 2; s++) hn_cache_seq_begin(c, s);
    commit_rows(c, 0, 1, WINDOW, PAGE + 20, true);
    assert_int_equal(hn_cache_reserve(c, 0, 0, 1, &err), HUNCH_OK); /* releases the first page */
    assert_int_equal(c->n_idle, 1);
    for (int at; (at = hn_cache_committed(c, 1, 0)) < ROWS;) {
        pass(c, 1, 1, WINDOW, 50, 50);
        hn_cache_publish(c, 1, other, (int[]){at + 50});
    }
    assert_int_equal(blocks_there(c, 0, &pages), 1);
    assert_int_equal(pages, 0);
    commit_rows(c, 0, 1, WINDOW, 200, true);
    hn_cache_seq_end(c, 1);
    hn_cache_seq_begin(c, 1);
    assert_int_equal(hn_cache_restore(c, 1, text, 200), 192);
    commit_rows(c, 1, 1, WINDOW, ROWS, true);
    hn_cache_close(&c);
}

/* Without memory a node is omitted; later ones are valid, and found when there is memory again. */
static void test_publish_without_memory(void **state) {
    (void)state;
    enum { WINDOW = 70, ROWS = 300 };
    for (int alone = 0; alone < 2; alone++)
        for (int at = 0; at < 9; at++) {
            hn_cache *c = alone ? open_window(WINDOW, 2, ROWS, 4 * ROWS) : open_pair(WINDOW, 0, 2, ROWS, 4 * ROWS);
            hn_cache_seq_begin(c, 0);
            commit_rows(c, 0, 2 - alone, WINDOW, 10 + at * PAGE, false);
            hn_fault_arm(HN_FAULT_ALLOC, 0, true);
            hn_cache_publish(c, 0, text, (int[]){10 + at * PAGE});
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            assert_int_equal(c->prefix.n_blocks, 0);
            commit_rows(c, 0, 2 - alone, WINDOW, ROWS, true);
            hn_cache_seq_begin(c, 1);
            assert_int_equal(hn_cache_restore(c, 1, text, ROWS), ROWS / PAGE * PAGE);
            commit_rows(c, 1, 2 - alone, WINDOW, ROWS, true);
            hn_cache_close(&c);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keeps_its_window_to_the_row),
                                       cmocka_unit_test(test_memory_is_bounded),
                                       cmocka_unit_test(test_plan_of_groups),
                                       cmocka_unit_test(test_rewind),
                                       cmocka_unit_test(test_rewind_through_the_index),
                                       cmocka_unit_test(test_restore_needs_the_window_only),
                                       cmocka_unit_test(test_published_late),
                                       cmocka_unit_test(test_running_text_loses_what_it_passed),
                                       cmocka_unit_test(test_oldest_goes_first),
                                       cmocka_unit_test(test_nothing_is_left_behind),
                                       cmocka_unit_test(test_empty_blocks),
                                       cmocka_unit_test(test_running_text_keeps_its_place),
                                       cmocka_unit_test(test_publish_without_memory)};
    return cmocka_run_group_tests(tests, setup, rows_teardown);
}
