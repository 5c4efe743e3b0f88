/* SPDX-License-Identifier: Apache-2.0 */
/* cache_share_test.c - pages in more than one place: restore, eviction, copies after a rewind. Random walks:
 * cache_walk_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/mem.h"
#include "cache/cache_private.h"
#include "cache/shared_rows_for_tests.h"

static hunch_status append(hn_cache *c, int seq, int model_id, const int32_t *text, int rows) {
    uint32_t mark[TEXT];
    hunch_error err;
    make_marks(text, rows, mark);
    for (int at; (at = hn_cache_committed(c, seq, model_id)) < rows;) {
        const int n = rows - at < HN_MAX_ROWS ? rows - at : HN_MAX_ROWS;
        const hunch_status st = hn_cache_reserve(c, seq, model_id, n, &err);
        if (st) return st;
        write_rows(c, seq, model_id, at, n, mark + at);
        hn_cache_commit(c, seq, model_id, NULL, n);
    }
    return HUNCH_OK;
}

/* A new sequence gets r0, r1 and r2 rows of the first three models, and they are published. */
static void begin_with(hn_cache *c, int seq, const int32_t *text, int r0, int r1, int r2) {
    const int rows[MODELS] = {r0, r1, r2, 0};
    hn_cache_seq_begin(c, seq);
    for (int o = 0; o < MODELS; o++) assert_int_equal(append(c, seq, o, text, rows[o]), HUNCH_OK);
    hn_cache_publish(c, seq, text, rows);
    assert_true(hn_cache_valid(c));
}

/* Checks what restore gives a new sequence for this text: the rows of the first three models and their content. */
static void expect_restore(hn_cache *c, int seq, const int32_t *text, int n, int r0, int r1, int r2) {
    uint32_t mark[TEXT];
    make_marks(text, n, mark);
    hn_cache_seq_begin(c, seq);
    assert_int_equal(hn_cache_restore(c, seq, text, n), r0);
    assert_true(hn_cache_valid(c));
    assert_int_equal(hn_cache_committed(c, seq, 0), r0);
    assert_int_equal(hn_cache_committed(c, seq, 1), r1);
    assert_int_equal(hn_cache_committed(c, seq, 2), r2);
    assert_int_equal(hn_cache_committed(c, seq, 3), 0);
    for (int o = 0; o < MODELS; o++) check_rows(c, seq, o, mark);
}

static void make_text(int32_t *text, uint64_t seed) {
    for (int i = 0; i < TEXT; i++) text[i] = (int32_t)(hn_splitmix(&seed) % 1000);
}

/* Takes pages of a model, a few rows at a time, until only `left` are free or there are no more. */
static void take_pages(hn_cache *c, int seq, int model_id, int left) {
    hunch_error err;
    while (hn_cache_free_pages(c) > left && hn_cache_reserve(c, seq, model_id, 16, &err) == HUNCH_OK) {
        hn_cache_commit(c, seq, model_id, NULL, 16);
        assert_true(hn_cache_valid(c));
    }
}

/* A new sequence takes all pages that it can get. */
static void exhaust(hn_cache *c, int seq) {
    hn_cache_seq_begin(c, seq);
    for (int model_id = 2; model_id >= 0; model_id--) take_pages(c, seq, model_id, 0);
}

/* ---- restore --------------------------------------------------------------------------------------------------- */

static void test_longest_prefix(void **state) {
    (void)state;
    hn_cache *c = open_shared(2, 0);
    const int all = hn_cache_free_pages(c);
    int32_t text[TEXT], other[TEXT];
    make_text(text, 1);
    expect_restore(c, 1, text, 300, 0, 0, 0); /* nothing there */
    hn_cache_seq_end(c, 1);
    begin_with(c, 0, text, 300, 300, 300);
    hn_cache_seq_end(c, 0);
    assert_int_equal(hn_cache_free_pages(c), all);
    static const struct {
        int n, rows[3];
    } cases[] = {{300, {256, 256, 256}}, {319, {256, 256, 256}}, {255, {192, 128, 192}},
                 {192, {192, 128, 192}}, {128, {128, 128, 128}}, {127, {64, 0, 64}},
                 {63, {0, 0, 0}},        {20, {0, 0, 0}},        {0, {0, 0, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int *r = cases[i].rows;
        expect_restore(c, 1, text, cases[i].n, r[0], r[1], r[2]);
        hn_cache_seq_end(c, 1);
        assert_int_equal(hn_cache_free_pages(c), all);
    }
    for (int wrong = 0; wrong < 300; wrong += 23) { /* one other token */
        memcpy(other, text, sizeof text);
        other[wrong] ^= 1;
        const int r = wrong > 256 ? 256 : wrong / 64 * 64;
        expect_restore(c, 1, other, 300, r, r / 128 * 128, r);
        hn_cache_seq_end(c, 1);
    }
    hn_cache_index_clear(c);
    expect_restore(c, 1, text, 300, 0, 0, 0);
    hn_cache_close(&c);
}

/* Each model is restored as far as it was published, and never beyond the target. */
static void test_models_restore_apart(void **state) {
    (void)state;
    static const struct {
        int put[3], got[3];
    } cases[] = {{{256, 0, 100}, {256, 0, 96}},      {{256, 130, 16}, {256, 128, 0}},
                 {{96, 96, 96}, {64, 0, 64}},        {{70, 256, 256}, {64, 0, 64}},
                 {{63, 128, 128}, {0, 0, 0}},        {{128, 256, 63}, {128, 128, 32}},
                 {{320, 255, 320}, {320, 128, 320}}, {{384, 384, 384}, {320, 256, 320}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_cache *c = open_shared(2, 0);
        const int *p = cases[i].put, *g = cases[i].got;
        int32_t text[TEXT];
        make_text(text, i);
        begin_with(c, 0, text, p[0], p[1], p[2]);
        expect_restore(c, 1, text, TEXT, g[0], g[1], g[2]); /* more tokens than a table has rows */
        hn_cache_close(&c);
    }
}

/* Owner 2 reads the target's features: the target is restored to one row less than it. */
static void test_owner_binds(void **state) {
    (void)state;
    static const struct {
        const shape *of;
        int put[3], got[3];
    } cases[] = {{&FULL, {256, 256, 256}, {255, 256, 256}},    {&FULL, {256, 0, 100}, {63, 0, 64}},
                 {&FULL, {256, 256, 16}, {0, 0, 0}},           {&FULL, {100, 256, 256}, {63, 0, 64}},
                 {&WINDOWS, {256, 256, 256}, {255, 256, 256}},
                 {&WINDOWS, {256, 256, 100}, {0, 0, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shape bound = *cases[i].of;
        for (int g = 0; g < bound.n; g++) {
            bound.group[g].recompute = bound.group[g].model_id == 2;
            if (bound.group[g].recompute && bound.rows[g] > B) bound.rows[g] = B; /* no longer than the target's pages */
        }
        of = &bound;
        hn_cache *c = open_shared(2, 0);
        const int *p = cases[i].put, *g = cases[i].got;
        int32_t text[TEXT];
        make_text(text, i);
        begin_with(c, 0, text, p[0], p[1], p[2]);
        expect_restore(c, 1, text, TEXT, g[0], g[1], g[2]);
        hn_cache_close(&c);
        of = &FULL;
    }
}

/* A drafter that lags is published later; rows that do not have the text are not. */
static void test_publish_in_steps(void **state) {
    (void)state;
    hn_cache *c = open_shared(2, 0);
    int32_t text[TEXT];
    int valid[MODELS] = {0};
    make_text(text, 5);
    hn_cache_seq_begin(c, 0);
    for (int rows = 1; rows <= ROWS; rows += 13) {
        valid[0] = rows;
        valid[1] = rows / 2;
        valid[2] = rows > 40 ? rows - 40 : 0;
        for (int o = 0; o < 3; o++) assert_int_equal(append(c, 0, o, text, rows), HUNCH_OK);
        for (int again = 0; again < 2; again++) hn_cache_publish(c, 0, text, valid);
        expect_restore(c, 1, text, TEXT, rows / 64 * 64, valid[1] / 128 * 128,
                       valid[2] / 32 * 32 < rows / 64 * 64 ? valid[2] / 32 * 32 : rows / 64 * 64);
        hn_cache_seq_end(c, 1);
    }
    hn_cache_close(&c);
}

/* Two sequences with the same text: afterwards both use one set of pages. */
static void test_equal_texts_become_one(void **state) {
    (void)state;
    hn_cache *c = open_shared(3, 0);
    const int all = hn_cache_free_pages(c);
    int32_t text[TEXT];
    make_text(text, 9);
    begin_with(c, 0, text, 256, 256, 256);
    const int one = all - hn_cache_free_pages(c);
    begin_with(c, 1, text, 256, 256, 256);
    begin_with(c, 2, text, 256, 256, 256);
    assert_int_equal(all - hn_cache_free_pages(c), one);
    hn_cache_seq_end(c, 0);
    assert_int_equal(all - hn_cache_free_pages(c), one);
    hn_cache_seq_end(c, 1);
    hn_cache_seq_end(c, 2);
    assert_int_equal(hn_cache_free_pages(c), all);
    expect_restore(c, 0, text, 256, 256, 256, 256);
    hn_cache_close(&c);
}

/* ---- writing after shared pages -------------------------------------------------------------------------------- */

static void test_copy_on_write(void **state) {
    (void)state;
    int32_t text[TEXT], other[TEXT];
    make_text(text, 2);
    for (int rows = 1; rows <= 256; rows += 15) {
        hn_cache *c = open_shared(3, 0);
        uint32_t marks[TEXT];
        make_text(other, 3);
        memcpy(other, text, (size_t)rows * sizeof *text);
        begin_with(c, 0, text, 256, 256, 256);
        expect_restore(c, 1, text, 256, 256, 256, 256);
        for (int o = 0; o < 3; o++) hn_cache_rewind(c, 1, o, rows);
        assert_true(hn_cache_valid(c));
        for (int o = 0; o < 3; o++) {
            assert_int_equal(append(c, 1, o, other, 300), HUNCH_OK);
            assert_true(hn_cache_valid(c));
        }
        make_marks(other, 300, marks);
        for (int o = 0; o < 3; o++) check_rows(c, 1, o, marks);
        make_marks(text, 256, marks);
        for (int o = 0; o < 3; o++) check_rows(c, 0, o, marks);
        hn_cache_publish(c, 1, other, (int[MODELS]){300, 300, 300, 0});
        expect_restore(c, 2, text, 256, 256, 256, 256);
        hn_cache_seq_end(c, 2);
        expect_restore(c, 2, other, 300, 256, 256, 256);
        hn_cache_close(&c);
    }
}

/* A sequence must not write its own published page either; rewinding to a page's end copies none. */
static void test_own_pages_are_shared_too(void **state) {
    (void)state;
    hn_cache *c = open_shared(2, 0);
    int32_t text[TEXT], other[TEXT];
    hunch_error err;
    int pages;
    make_text(text, 2);
    make_text(other, 4);
    memcpy(other, text, 100 * sizeof *text);
    begin_with(c, 0, text, 256, 256, 256);
    const int32_t before = hn_cache_pages(c, 0, 0, &pages)[3];
    hn_cache_rewind(c, 0, 0, 100);
    assert_int_equal(hn_cache_reserve(c, 0, 0, 0, &err), HUNCH_OK); /* nothing will be written */
    assert_int_equal(hn_cache_pages(c, 0, 0, &pages)[3], before);
    assert_int_equal(append(c, 0, 0, other, 128), HUNCH_OK);
    assert_int_not_equal(hn_cache_pages(c, 0, 0, &pages)[3], before);
    hn_cache_rewind(c, 0, 0, 64);
    assert_int_equal(append(c, 0, 0, text, 256), HUNCH_OK);
    expect_restore(c, 1, text, 256, 256, 256, 256);
    hn_cache_close(&c);
}

/* A context that is full and published, rewound and written again must fit alone, whatever the index holds. */
static void check_full_context_copies(void) {
    hn_cache *c = open_shared(1, 1);
    int32_t text[TEXT];
    uint32_t mark[TEXT];
    hunch_error err;
    make_text(text, 6);
    hn_cache_seq_begin(c, 0);
    for (int back = 1; back < ROWS; back += 37) {
        for (int o = 0; o < 3; o++) {
            assert_int_equal(append(c, 0, o, text, ROWS), HUNCH_OK);
            assert_int_equal(hn_cache_reserve(c, 0, o, HN_MAX_ROWS, &err), HUNCH_OK);
        }
        hn_cache_publish(c, 0, text, (int[MODELS]){ROWS, ROWS, ROWS, 0});
        text[ROWS - back]++;
        for (int o = 0; o < 3; o++) { /* the others' tables are full */
            hn_cache_rewind(c, 0, o, ROWS - back);
            assert_int_equal(hn_cache_reserve(c, 0, o, HN_MAX_ROWS, &err), HUNCH_OK);
            assert_int_equal(append(c, 0, o, text, ROWS), HUNCH_OK);
            assert_int_equal(hn_cache_reserve(c, 0, o, HN_MAX_ROWS, &err), HUNCH_OK);
            assert_true(hn_cache_valid(c));
        }
        make_marks(text, ROWS, mark);
        for (int o = 0; o < 3; o++) check_rows(c, 0, o, mark);
    }
    hn_cache_close(&c);
}

static void test_full_context_copies(void **state) {
    (void)state;
    const shape *const shapes[] = {&MIXED, &WINDOWS, &FULL};
    for (int i = 0; i < 3; i++) {
        of = shapes[i];
        check_full_context_copies();
    }
}

/* No page for the copy: refused, and the shared page is unchanged. */
static void test_no_page_for_the_copy(void **state) {
    (void)state;
    hn_cache *c = open_shared(4, 1);
    int32_t text[TEXT];
    uint32_t mark[TEXT];
    hunch_error err;
    make_text(text, 6);
    make_marks(text, TEXT, mark);
    begin_with(c, 0, text, 256, 256, 256);
    expect_restore(c, 1, text, 256, 256, 256, 256);
    exhaust(c, 2);
    exhaust(c, 3);
    for (int o = 0; o < 3; o++) {
        hn_cache_rewind(c, 1, o, 250);
        assert_int_equal(hn_cache_free_pages(c), 0);
        assert_int_equal(hn_cache_reserve(c, 1, o, 1, &err), HUNCH_NO_MEMORY);
        assert_true(hn_cache_valid(c));
        assert_int_equal(hn_cache_committed(c, 1, o), 250);
        check_rows(c, 0, o, mark);
        check_rows(c, 1, o, mark);
    }
    hn_cache_seq_end(c, 3);
    for (int o = 0; o < 3; o++) assert_int_equal(hn_cache_reserve(c, 1, o, 1, &err), HUNCH_OK);
    hn_cache_close(&c);
}

/* ---- eviction -------------------------------------------------------------------------------------------------- */

/* Nodes of a text that are in the index. Does not count as a use. */
static int blocks_there(const hn_cache *c, const int32_t *text) {
    int n = 0;
    for (const hn_prefix_node *b = NULL; (b = hn_prefix_child(&c->prefix, 0, b, text + n * c->prefix.node_rows)); n++) {
    }
    return n;
}

/* One more page of sequence 2, or of 3 where the table of 2 is full. */
static hunch_status take_page(hn_cache *c) {
    hunch_error err;
    hunch_status st = hn_cache_reserve(c, 2, 0, 16, &err);
    if (!st) hn_cache_commit(c, 2, 0, NULL, 16);
    if (!st) return st;
    st = hn_cache_reserve(c, 3, 0, 16, &err);
    if (!st) hn_cache_commit(c, 3, 0, NULL, 16);
    return st;
}

/* Three texts; the first was in use longest, the last is running: under pressure the second is evicted first, then the first,
 * each from its end; the running one stays. */
static void test_eviction_order(void **state) {
    (void)state;
    const hn_cache_group one = {.name = "target", .layers = 4, .kv_heads = 2, .head_dim = 16, .type = HN_BF16, .page_rows = 16};
    hn_cache *c = NULL;
    hunch_error err;
    int32_t text[3][TEXT];
    assert_int_equal(hn_cache_open(&c, backend, &one, 1, 4, ROWS, ROWS, &err), HUNCH_OK);
    const int all = hn_cache_free_pages(c);
    for (int i = 0; i < 3; i++) {
        make_text(text[i], 20 + (uint64_t)i);
        hn_cache_seq_begin(c, i);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(hn_cache_reserve(c, i, 0, 16, &err), HUNCH_OK);
            hn_cache_commit(c, i, 0, NULL, 16);
        }
        hn_cache_publish(c, i, text[i], (int[]){64});
    }
    for (int i = 1; i < 4; i++) hn_cache_seq_end(c, i % 3);
    for (int s = 1; s < 4; s++) hn_cache_seq_begin(c, s);
    assert_int_equal(hn_cache_restore(c, 1, text[2], 64), 64);
    assert_int_equal(hn_cache_free_pages(c), all - 4);
    for (int left = all - 4; left > 0; left--) {
        const int there = left < 8 ? left : 8;
        assert_int_equal(hn_cache_free_pages(c), left);
        assert_int_equal(blocks_there(c, text[1]), there > 4 ? there - 4 : 0);
        assert_int_equal(blocks_there(c, text[0]), there > 4 ? 4 : there);
        assert_int_equal(blocks_there(c, text[2]), 4);
        assert_int_equal(take_page(c), HUNCH_OK);
        assert_true(hn_cache_valid(c));
    }
    assert_int_equal(take_page(c), HUNCH_NO_MEMORY);
    assert_int_equal(blocks_there(c, text[2]), 4);
    hn_cache_close(&c);
}

/* A drafter's idle pages are evicted although a sequence uses their nodes; a drafter that was not rewound with the target
 * keeps its own. */
static void test_idle_pages_of_drafters(void **state) {
    (void)state;
    int32_t text[TEXT];
    uint32_t mark[TEXT];
    make_text(text, 8);
    make_marks(text, TEXT, mark);
    for (int rewound = 0; rewound < 3; rewound++) {
        hn_cache *c = open_shared(4, 1);
        begin_with(c, 0, text, 256, 256, 256);
        expect_restore(c, 1, text, 256, 256, 256, 256);
        hn_cache_seq_end(c, 0);
        hn_cache_rewind(c, 1, rewound, 0);
        exhaust(c, 2);
        exhaust(c, 3);
        assert_int_equal(hn_cache_free_pages(c), 0);
        for (int o = 0; o < 3; o++) {
            assert_int_equal(hn_cache_committed(c, 1, o), o == rewound ? 0 : 256);
            check_rows(c, 1, o, mark);
        }
        expect_restore(c, 0, text, 256, rewound == 0 ? 0 : 256, rewound < 2 ? 0 : 256, rewound == 1 ? 256 : 0);
        hn_cache_seq_end(c, 2);
        hn_cache_publish(c, 1, text, (int[MODELS]){256, 256, 256, 0});
        assert_true(hn_cache_valid(c));
        hn_cache_close(&c);
    }
}

/* The groups of a drafter lose pages one by one; the restored rows end where all of them have a page's end. */
static void test_groups_end_together(void **state) {
    (void)state;
    enum { IDLE = 8 + 16 }; /* pages of model 2 */
    int32_t text[TEXT];
    make_text(text, 8);
    for (int gone = 0; gone <= 4; gone++) {
        hn_cache *c = open_shared(4, 1);
        begin_with(c, 0, text, 256, 256, 256);
        expect_restore(c, 1, text, 256, 256, 256, 256);
        hn_cache_seq_end(c, 0);
        hn_cache_rewind(c, 1, 2, 0);
        hn_cache_seq_begin(c, 2);
        hn_cache_seq_begin(c, 3);
        take_pages(c, 2, 2, IDLE + 1);
        for (int s = 2; s < 4; s++) take_pages(c, s, 0, IDLE + 1); /* two pages a step at most */
        for (int s = 2; s < 4; s++) take_pages(c, s, 1, IDLE - gone);
        assert_int_equal(hn_cache_free_pages(c), IDLE - gone);
        /* in order: the last 16 rows of one group, the 16 before, the last 32 of the other, 16 of the first again */
        expect_restore(c, 0, text, 256, 256, 256, gone == 0 ? 256 : gone < 4 ? 224 : 192);
        hn_cache_close(&c);
    }
}

/* The index is cleared while two sequences share pages: both continue, one writes to a copy, and what they publish afterwards
 * is valid: a sequence that does not follow a path keeps no part of it. */
static void test_forget_while_shared(void **state) {
    (void)state;
    for (int follow = 0; follow < 2; follow++) {
        hn_cache *c = open_shared(5, 1);
        const int all = hn_cache_free_pages(c), rows[MODELS] = {200, 200, 200, 0}, others[MODELS] = {200, 150, 150, 0};
        int32_t text[TEXT], other[TEXT];
        uint32_t mark[TEXT], other_mark[TEXT];
        make_text(text, 8);
        make_text(other, 9);
        memcpy(other, text, 150 * sizeof *text);
        make_marks(text, TEXT, mark);
        make_marks(other, TEXT, other_mark);
        begin_with(c, 0, text, 200, 200, 200);
        expect_restore(c, 1, text, 200, 192, 128, 192);
        hn_cache_index_clear(c);
        assert_true(hn_cache_valid(c));
        hn_cache_rewind(c, 1, 0, 150);
        assert_int_equal(append(c, 1, 0, other, 200), HUNCH_OK);
        check_rows(c, 0, 0, mark);
        begin_with(c, 2, text, 64, 64, 64); /* creates the first nodes again */
        hn_cache_publish(c, 0, text, rows);
        if (follow) hn_cache_publish(c, 1, other, others);
        assert_true(hn_cache_valid(c));
        hn_cache_seq_end(c, 2);
        hn_cache_seq_end(c, 0);
        exhaust(c, 3);
        exhaust(c, 4);
        assert_int_equal(hn_cache_free_pages(c), 0);
        for (int o = 0; o < 3; o++) check_rows(c, 1, o, o ? mark : other_mark);
        hn_cache_seq_end(c, 3);
        hn_cache_seq_end(c, 4);
        hn_cache_publish(c, 1, other, others);
        hn_cache_seq_end(c, 1);
        assert_true(hn_cache_valid(c));
        assert_int_equal(hn_cache_free_pages(c), all);
        expect_restore(c, 0, other, 320, 192, 128, 128);
        hn_cache_close(&c);
    }
}

/* Without memory nodes are omitted; later they are tried again. */
static void test_publish_without_memory(void **state) {
    (void)state;
    int32_t text[TEXT];
    make_text(text, 8);
    for (int fail_at = 0; fail_at < 8; fail_at++) {
        hn_cache *c = open_shared(2, 0);
        hn_cache_seq_begin(c, 0);
        for (int o = 0; o < 3; o++) assert_int_equal(append(c, 0, o, text, 256), HUNCH_OK);
        hn_fault_arm(HN_FAULT_ALLOC, fail_at, true);
        hn_cache_publish(c, 0, text, (int[MODELS]){256, 256, 256, 0});
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(hn_cache_valid(c));
        const int rows = fail_at * B / 64 * 64;
        expect_restore(c, 1, text, 256, rows, rows / 128 * 128, rows);
        hn_cache_seq_end(c, 1);
        hn_cache_publish(c, 0, text, (int[MODELS]){256, 256, 256, 0});
        expect_restore(c, 1, text, 256, 256, 256, 256);
        hn_cache_close(&c);
    }
}

/* ---- what stays ------------------------------------------------------------------------------------------------ */

/* A cache of the tests has pages of a few KB: units of two and a half of them are given back, so that many pages are in two. */
static hn_cache *open_small_units(int seqs) {
    hn_cache *c = open_shared(seqs, 0);
    hn_free(c->unit);
    c->unit_bytes = hn_cache_page_bytes(c) * 5 / 2;
    c->n_units = (int)((hn_cache_bytes(c) + c->unit_bytes - 1) / c->unit_bytes);
    c->margin = 0;
    c->unit = hn_zalloc((size_t)c->n_units, sizeof *c->unit);
    return c;
}

/* What the system would have of the pool: a unit from its first use until it is given back as a whole, whatever is between pages. */
static struct {
    void (*release)(hn_backend *b, hn_buf at, size_t bytes);
    const hn_cache *cache;
    bool *has;
} told;

static void release_tell(hn_backend *b, hn_buf at, size_t bytes) {
    const size_t unit = told.cache->unit_bytes, end = hn_cache_bytes(told.cache);
    assert_true(at.off % unit == 0 && (bytes == unit || at.off + bytes == end));
    assert_int_equal(told.cache->unit[at.off / unit].in_use, 0);
    told.has[at.off / unit] = false;
    told.release(b, at, bytes);
}

static size_t told_bytes(void) {
    const hn_cache *c = told.cache;
    size_t sum = 0;
    for (int i = 0; i < c->n_units; i++) {
        const size_t from = c->unit_bytes * (size_t)i;
        told.has[i] |= c->unit[i].in_use > 0;
        if (told.has[i]) sum += hn_least_size(c->unit_bytes, hn_cache_bytes(c) - from);
    }
    return sum;
}

/* Texts end one after the other: no more pages than are wanted stay in the index, those of the newest, and the memory of the others goes
 * back, so that the cache does not grow with the number of texts. */
static void test_kept_pages(void **state) {
    (void)state;
    enum { KEPT = 80, TEXTS = 40, LONG = 300 };
    for (int keep = 0; keep < 3; keep++) {
        hn_cache *c = open_small_units(3);
        int32_t text[TEXT];
        int of_text = 0;
        told.release = c->backend->release;
        told.cache = c;
        told.has = hn_zalloc((size_t)c->n_units, sizeof *told.has);
        c->backend->release = release_tell;
        if (keep < 2) hn_cache_keep(c, keep ? KEPT * hn_cache_page_bytes(c) : 0);
        assert_int_equal(hn_cache_touched(c), 0);
        for (int i = 0; i < TEXTS; i++) {
            const int seq = i % 3, before = c->n_free + c->n_idle;
            make_text(text, (uint64_t)i);
            begin_with(c, seq, text, LONG, LONG, LONG);
            of_text = hn_most(of_text, before - c->n_free - c->n_idle);
            assert_int_equal(told_bytes(), hn_cache_touched(c));
            const size_t in_use = hn_cache_page_bytes(c) * (size_t)(c->n_pages - c->n_free);
            if (keep == 0) assert_int_equal(c->n_warm, (in_use + c->unit_bytes - 1) / c->unit_bytes); /* they are together */
            hn_cache_seq_end(c, seq);
            assert_int_equal(told_bytes(), hn_cache_touched(c));
            assert_true(hn_cache_valid(c));
            if (keep == 2) continue;
            assert_true(c->n_idle <= (keep ? KEPT : 0));
            if (hn_cache_touched(c) > (size_t)(2 * (c->n_idle + of_text)) * hn_cache_page_bytes(c))
                fail_msg("text %d of %d pages: %zu bytes in use with %d idle pages of %zu", i, of_text, hn_cache_touched(c), c->n_idle,
                         hn_cache_page_bytes(c));
            if (keep == 0) assert_int_equal(hn_cache_touched(c), 0);
            if (hn_cache_touched(c) > KEPT * hn_cache_page_bytes(c) && c->n_idle > KEPT / 2)
                fail_msg("text %d: %zu bytes of %d pages that may be kept", i, hn_cache_touched(c), KEPT);
        }
        hn_cache_seq_begin(c, 0);
        const int rows = hn_cache_restore(c, 0, text, LONG);
        assert_true(keep ? rows > 0 : rows == 0);
        uint32_t mark[TEXT];
        make_marks(text, LONG, mark);
        for (int o = 0; o < 3; o++) check_rows(c, 0, o, mark);
        hn_cache_seq_end(c, 0);
        if (keep == 2) assert_true(c->n_idle > KEPT);
        c->backend->release = told.release;
        hn_free(told.has);
        hn_cache_close(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_longest_prefix),
                                       cmocka_unit_test(test_models_restore_apart),
                                       cmocka_unit_test(test_owner_binds),
                                       cmocka_unit_test(test_publish_in_steps),
                                       cmocka_unit_test(test_equal_texts_become_one),
                                       cmocka_unit_test(test_copy_on_write),
                                       cmocka_unit_test(test_own_pages_are_shared_too),
                                       cmocka_unit_test(test_full_context_copies),
                                       cmocka_unit_test(test_eviction_order),
                                       cmocka_unit_test(test_idle_pages_of_drafters),
                                       cmocka_unit_test(test_groups_end_together),
                                       cmocka_unit_test(test_forget_while_shared),
                                       cmocka_unit_test(test_publish_without_memory),
                                       cmocka_unit_test(test_no_page_for_the_copy),
                                       cmocka_unit_test(test_kept_pages)};
    return cmocka_run_group_tests(tests, rows_setup, rows_teardown);
}
