/* SPDX-License-Identifier: Apache-2.0 */
/* cache_states_test.c - states of texts in the prefix index: a running text keeps its newest from eviction, one that waits too, limits
 * take the oldest. Rows and states have no content here; with a model: tests/delta_state_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "cache/cache_private.h"
#include "cache/rows_for_tests.h"

enum { BLOCK = 16, CONTEXT = 320, SEQS = 6, SPARE = 2, FIRST_HOG = 3, TAPS = 4 };

static bool in_parts; /* the state is in two groups of different units, as many pages in all */

static hn_cache *open_states(int kept) {
    hn_cache *c = NULL;
    hunch_error err;
    hn_cache_group g[4] = {{.name = "attention", .layers = 1, .kv_heads = 1, .head_dim = 64, .type = HN_BF16, .page_rows = BLOCK},
                           {.name = "state", .kind = HN_CACHE_STATE, .layers = 1, .units = 3, .unit_bytes = 4096, .kept = kept},
                           {.name = "inputs", .kind = HN_CACHE_ROWS, .layers = 1, .units = 1, .unit_bytes = 2048, .window = TAPS,
                            .back = HN_MAX_ROWS}};
    if (in_parts) {
        g[1].units = 2;
        g[3] = g[2];
        g[2] = (hn_cache_group){.name = "other", .kind = HN_CACHE_STATE, .layers = 2, .units = 2, .unit_bytes = 1000, .kept = kept};
    }
    assert_int_equal(hn_cache_open(&c, backend, g, in_parts ? 4 : 3, SEQS, CONTEXT, CONTEXT, &err), HUNCH_OK);
    assert_int_equal(hn_pages_of(c, 1, 1) + (in_parts ? hn_pages_of(c, 2, 1) : 0), 3);
    return c;
}

static void make_text(int32_t *text, uint64_t seed) {
    for (int i = 0; i < CONTEXT; i++) text[i] = (int32_t)(hn_splitmix(&seed) % 1000);
}

/* Passes of a node each, which leave its last row to the next. */
static void read_text(hn_cache *c, int seq, const int32_t *text, int rows) {
    hunch_error err;
    for (int at; (at = hn_cache_committed(c, seq, 0)) < rows;) {
        const int n = BLOCK - at % BLOCK < rows - at ? BLOCK - at % BLOCK : rows - at, valid[HN_MAX_MODELS] = {at + n};
        assert_int_equal(hn_cache_reserve(c, seq, 0, n, &err), HUNCH_OK);
        hn_cache_absorb(c, seq, 0, at + n - 1);
        hn_cache_commit(c, seq, 0, NULL, n);
        hn_cache_publish(c, seq, text, valid);
        assert_true(hn_cache_valid(c));
        if (in_parts) assert_int_equal(hn_cache_states_kept(c, 1), hn_cache_states_kept(c, 2));
    }
}

/* Other texts take all pages but these, and return them. */
static void take_pages(hn_cache *c, int left) {
    hunch_error err;
    for (int seq = FIRST_HOG; seq < SEQS; seq++) {
        hn_cache_seq_begin(c, seq);
        while (hn_cache_free_pages(c) > left && hn_cache_committed(c, seq, 0) < CONTEXT && !hn_cache_reserve(c, seq, 0, 1, &err))
            hn_cache_commit(c, seq, 0, NULL, 1);
    }
    assert_in_range(hn_cache_free_pages(c), 0, left + 2);
    for (int seq = FIRST_HOG; seq < SEQS; seq++) hn_cache_seq_end(c, seq);
    assert_true(hn_cache_valid(c));
}

/* Where this text may continue. */
static int resumes_at(hn_cache *c, const int32_t *text) {
    hn_cache_seq_begin(c, SPARE);
    const int rows = hn_cache_restore(c, SPARE, text, CONTEXT);
    assert_true(hn_cache_valid(c));
    hn_cache_seq_end(c, SPARE);
    return rows;
}

static void begin(hn_cache *c, int seq, const int32_t *text, int rows) {
    hn_cache_seq_begin(c, seq);
    read_text(c, seq, text, rows);
}

/* Pages that others take are not those of a running text's newest state, unless it gives them up. */
static void test_held(void **state) {
    (void)state;
    for (int up = 0; up < 2; up++) {
        hn_cache *c = open_states(8);
        int32_t text[CONTEXT];
        make_text(text, 1);
        begin(c, 0, text, 90); /* not the end of a node */
        if (up) hn_cache_release_states(c, 0);
        take_pages(c, 0);
        hn_cache_seq_end(c, 0);
        assert_int_equal(resumes_at(c, text), up ? 0 : 80);
        hn_cache_close(&c);
    }
}

/* A text that waits is evicted after what was idle while it waited, its inputs too. */
static void test_waiting(void **state) {
    (void)state;
    hn_cache *c = open_states(8);
    int32_t text[CONTEXT], other[CONTEXT], branch[CONTEXT];
    make_text(text, 1);
    make_text(other, 2);
    make_text(branch, 3);
    memcpy(branch, text, 64 * sizeof *text);
    begin(c, 0, text, 64);
    hn_cache_seq_end(c, 0);
    hn_cache_seq_begin(c, 0);
    assert_int_equal(hn_cache_restore(c, 0, branch, CONTEXT), 64);
    read_text(c, 0, branch, 128);
    hn_cache_seq_end(c, 0);
    begin(c, 1, other, 10);
    for (int rows = 16; rows <= 256; rows += 16) {
        hn_cache_touch(c, 0, text, CONTEXT);
        read_text(c, 1, other, rows);
    }
    hn_cache_touch(c, 0, text, CONTEXT);
    take_pages(c, 4 + 3 + 8 + 2); /* its rows, its state, the inputs of its last node; some of the branch */
    assert_int_equal(resumes_at(c, text), 64);
    hn_cache_close(&c);
}

/* At the limit a text replaces its own older state, not another's newest. */
static void test_own_first(void **state) {
    (void)state;
    hn_cache *c = open_states(2);
    int32_t text[CONTEXT], other[CONTEXT];
    make_text(text, 1);
    make_text(other, 2);
    begin(c, 0, text, 64);
    begin(c, 1, other, 256);
    assert_int_equal(hn_cache_states_kept(c, 1), 2);
    assert_int_equal(resumes_at(c, other), 256);
    assert_int_equal(resumes_at(c, text), 64);
    hn_cache_seq_end(c, 0); /* it waits */
    read_text(c, 1, other, 272);
    hn_cache_touch(c, 0, text, CONTEXT);
    read_text(c, 1, other, 288);
    assert_int_equal(resumes_at(c, text), 64);
    hn_cache_close(&c);
}

/* If all states are held, the one that has been held longest is replaced. */
static void test_all_held(void **state) {
    (void)state;
    hn_cache *c = open_states(1);
    int32_t text[CONTEXT], other[CONTEXT];
    make_text(text, 1);
    make_text(other, 2);
    begin(c, 0, text, 70);
    begin(c, 1, other, 40);
    assert_int_equal(resumes_at(c, text), 0);
    assert_int_equal(resumes_at(c, other), 32);
    read_text(c, 0, text, 80);
    assert_int_equal(resumes_at(c, text), 80);
    assert_int_equal(resumes_at(c, other), 0);
    hn_cache_close(&c);
}

/* The older states of a text are fewer, but not those that a text which branched from it holds. */
static void test_branches(void **state) {
    (void)state;
    hn_cache *c = open_states(8);
    int32_t text[CONTEXT], other[CONTEXT];
    make_text(text, 1);
    make_text(other, 2);
    memcpy(other, text, 48 * sizeof *text);
    begin(c, 0, other, 50);
    hn_cache_seq_begin(c, 1);
    assert_int_equal(hn_cache_restore(c, 1, text, CONTEXT), 48);
    read_text(c, 1, text, 256);
    take_pages(c, 0);
    hn_cache_seq_end(c, 0);
    assert_int_equal(resumes_at(c, other), 48);
    hn_cache_close(&c);
}

static int parts_setup(void **state) {
    in_parts = true;
    return rows_setup(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_held), cmocka_unit_test(test_waiting), cmocka_unit_test(test_own_first),
                                       cmocka_unit_test(test_all_held), cmocka_unit_test(test_branches)};
    const int failed = cmocka_run_group_tests_name("one group", tests, rows_setup, rows_teardown);
    return failed + cmocka_run_group_tests_name("a state in parts", tests, parts_setup, rows_teardown);
}
