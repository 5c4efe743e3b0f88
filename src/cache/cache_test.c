/* SPDX-License-Identifier: Apache-2.0 */
/* cache_test.c - page accounting and the rows that commit keeps: random trees of rows against a plain array; independent
 * models; the planned sizes; failing allocations. Shared pages: cache_share_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/run_mode_for_tests.h"
#include "cache/rows_for_tests.h"

enum { KV_HEADS = 2, DIM = 4, SCALED_DIM = 64, ROWS = 200, SEQS = 3, MODELS = 2, GROUPS = 3 };
static const int layers[GROUPS] = {2, 1, 4}, model_of[GROUPS] = {0, 0, 1};

static hunch_status try_open(hn_cache **c, int page_rows, hn_dtype type, int seqs, int rows, int pool_rows,
                             hunch_error *err) {
    const int dim = type == HN_Q8_0 ? SCALED_DIM : DIM;
    const hn_cache_group g[GROUPS] = {
        {.name = "wide", .layers = 2, .kv_heads = KV_HEADS, .head_dim = dim, .type = type, .page_rows = page_rows},
        {.name = "narrow", .layers = 1, .kv_heads = 1, .head_dim = dim, .type = type},
        {.name = "draft", .layers = 4, .kv_heads = KV_HEADS, .head_dim = dim, .type = type, .model_id = 1}};
    return hn_cache_open(c, backend, g, GROUPS, seqs, rows, pool_rows, err);
}

static hn_cache *open_cache(int page_rows, hn_dtype type) {
    hn_cache *c = NULL;
    hunch_error err;
    assert_int_equal(try_open(&c, page_rows, type, SEQS, ROWS, 0, &err), HUNCH_OK);
    return c;
}

static void row(const hn_cache *c, int seq, int model_id, int slot, uint32_t mark, bool write) {
    for (int g = 0; g < GROUPS; g++)
        if (model_of[g] == model_id) assert_int_equal(group_row(c, seq, g, layers[g], slot, mark, write), 0);
}

typedef struct truth {
    uint32_t mark[SEQS][MODELS][ROWS];
    int n[SEQS][MODELS];
} truth;

/* Rows are written tentatively, an ascending subset is committed. */
static void one_round(hn_cache *c, truth *t, int s, int o, uint64_t *rng, uint32_t *mark) {
    const int rows = 1 + (int)(hn_splitmix(rng) % HN_MAX_ROWS);
    uint32_t drafted[HN_MAX_ROWS];
    int16_t keep[HN_MAX_ROWS];
    int k = 0, *n = &t->n[s][o];
    hunch_error err;
    assert_int_equal(hn_cache_reserve(c, s, o, rows, &err), HUNCH_OK);
    for (int i = 0; i < rows; i++) row(c, s, o, *n + i, drafted[i] = (*mark)++, true);
    for (int i = 0; i < rows && *n + k < ROWS; i++)
        if (hn_splitmix(rng) % 3 == 0) keep[k++] = (int16_t)i;
    hn_cache_commit(c, s, o, keep, k);
    for (int i = 0; i < k; i++) t->mark[s][o][(*n)++] = drafted[keep[i]];
}

static void check_rows(const hn_cache *c, const truth *t, int s) {
    for (int o = 0; o < MODELS; o++) {
        assert_int_equal(hn_cache_committed(c, s, o), t->n[s][o]);
        for (int i = 0; i < t->n[s][o]; i++) row(c, s, o, i, t->mark[s][o][i], false);
    }
}

/* Random rounds of several sequences and models; now and then one is rewound, or a sequence ends. */
static void check_rounds(int page_rows, hn_dtype type) {
    hn_cache *c = open_cache(page_rows, type);
    const int all_pages = hn_cache_free_pages(c);
    truth t = {0};
    uint32_t mark = 1;
    uint64_t rng = 7;
    for (int s = 0; s < SEQS; s++) hn_cache_seq_begin(c, s);
    for (int round = 0; round < 400; round++) {
        const int s = (int)(hn_splitmix(&rng) % SEQS), o = (int)(hn_splitmix(&rng) % MODELS);
        one_round(c, &t, s, o, &rng, &mark);
        check_rows(c, &t, s);
        if (hn_splitmix(&rng) % 8 == 0 || t.n[s][o] == ROWS) {
            t.n[s][o] = (int)(hn_splitmix(&rng) % (uint64_t)(t.n[s][o] + 1));
            if (t.n[s][o] < 20) {
                hn_cache_seq_end(c, s);
                hn_cache_seq_begin(c, s);
                t.n[s][0] = t.n[s][1] = 0;
            } else
                hn_cache_rewind(c, s, o, t.n[s][o]);
            check_rows(c, &t, s);
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
    check_rounds(32, HN_Q8_0);
}

static void test_chain_commit_moves_nothing(void **state) {
    (void)state;
    hn_cache *c = open_cache(16, HN_BF16);
    hunch_error err;
    hn_cache_seq_begin(c, 0);
    for (int o = 0; o < MODELS; o++) {
        assert_int_equal(hn_cache_reserve(c, 0, o, 40, &err), HUNCH_OK);
        for (int i = 0; i < 40; i++) row(c, 0, o, i, (uint32_t)(100 * o + i), true);
        hn_cache_commit(c, 0, o, NULL, 33 - o);
    }
    for (int o = 0; o < MODELS; o++)
        for (int i = 0; i < 40; i++) row(c, 0, o, i, (uint32_t)(100 * o + i), false);
    assert_int_equal(hn_cache_committed(c, 0, 0), 33);
    assert_int_equal(hn_cache_committed(c, 0, 1), 32);
    hn_cache_close(&c);
}

/* Pages have equal sizes; a group's page has the largest power of two of rows that fits, at least as many as the ops need. */
static void test_geometry(void **state) {
    (void)state;
    static const struct {
        int draft_layers, page_rows, rows[3];
        size_t page_bytes;
    } cases[] = {{1, 32, {32, 128, 64}, 16384},
                 {2, 32, {32, 128, 32}, 16384},
                 {3, 32, {32, 128, 16}, 16384},
                 {8, 32, {32, 256, 16}, 32768}, /* wider than the target: the page grows */
                 {1, 16, {16, 64, 32}, 8192}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hn_cache_group g[3] = {
            {.name = "wide", .layers = 2, .kv_heads = 2, .head_dim = 32, .type = HN_BF16, .page_rows = cases[i].page_rows},
            {.name = "narrow", .layers = 1, .kv_heads = 1, .head_dim = 32, .type = HN_BF16},
            {.name = "draft", .layers = cases[i].draft_layers, .kv_heads = 2, .head_dim = 32, .type = HN_F16, .model_id = 3}};
        hn_cache *c = NULL;
        hunch_error err;
        assert_int_equal(hn_cache_open(&c, backend, g, 3, 1, ROWS, 0, &err), HUNCH_OK);
        for (int k = 0; k < 3; k++) {
            const hn_kv last = hn_cache_kv(c, k, g[k].layers - 1);
            assert_int_equal(last.page_rows, cases[i].rows[k]);
            assert_int_equal(last.page_bytes, cases[i].page_bytes);
            assert_true(2 * last.v_off - last.k_off <= last.page_bytes);
            assert_int_equal(hn_cache_model_id(c, k), g[k].model_id);
        }
        hn_cache_close(&c);
    }
}

/* Commits chains until the sequence has `rows` rows of the model; returns the rows that the pool allowed. */
static int fill(hn_cache *c, int seq, int model_id, int rows) {
    hunch_error err;
    for (int n; (n = rows - hn_cache_committed(c, seq, model_id)) > 0;) {
        if (n > HN_MAX_ROWS) n = HN_MAX_ROWS;
        const int before = hn_cache_free_pages(c);
        if (hn_cache_reserve(c, seq, model_id, n, &err)) {
            assert_int_equal(hn_cache_free_pages(c), before);
            break;
        }
        hn_cache_commit(c, seq, model_id, NULL, n);
    }
    assert_true(hn_cache_valid(c));
    return hn_cache_committed(c, seq, model_id);
}

static void test_limits(void **state) {
    (void)state;
    hn_cache *c = NULL;
    hunch_error err;
    assert_int_equal(try_open(&c, 48, HN_BF16, 1, ROWS, 0, &err), HUNCH_USAGE);
    assert_null(c);
    static const struct {
        hn_dtype type;
        int dim;
    } uneven[] = {{HN_Q8_0, 48}, {HN_BF16, 7}}; /* scales need multiples of 32, pairs of 2 */
    for (int i = 0; i < 2; i++) {
        const hn_cache_group g = {.name = "uneven",
                                  .layers = 1,
                                  .kv_heads = 1,
                                  .head_dim = uneven[i].dim,
                                  .type = uneven[i].type,
                                  .page_rows = 16};
        assert_int_equal(hn_cache_open(&c, backend, &g, 1, 1, ROWS, 0, &err), HUNCH_REFUSED);
        assert_non_null(strstr(err.message, hn_dtype_name(uneven[i].type)));
        assert_null(c);
    }
    c = open_cache(16, HN_BF16);
    for (int s = 0; s < SEQS; s++) { /* all the planned rows fit, and a pass after them */
        hn_cache_seq_begin(c, s);
        for (int o = 0; o < MODELS; o++) assert_int_equal(fill(c, s, o, ROWS + HN_MAX_ROWS), ROWS + HN_MAX_ROWS);
    }
    assert_int_equal(hn_cache_reserve(c, 1, 0, HN_MAX_ROWS, &err), HUNCH_USAGE); /* more than the plan: no lack of pages */
    assert_true(hn_cache_valid(c));
    hn_cache_close(&c);
}

/* A pool for fewer rows than all sequences may have: one alone always gets all its rows, together they get the pool's. */
static void test_pool_rows(void **state) {
    (void)state;
    const int pools[] = {1, ROWS, ROWS + 90, 2 * ROWS};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        hn_cache *c = NULL;
        hunch_error err;
        assert_int_equal(try_open(&c, 16, HN_BF16, SEQS, ROWS, pools[i], &err), HUNCH_OK);
        const int all = hn_cache_free_pages(c);
        for (int s = 0; s < SEQS; s++) {
            hn_cache_seq_begin(c, s);
            for (int o = 0; o < MODELS; o++) assert_int_equal(fill(c, s, o, ROWS), ROWS);
            for (int o = 0; o < MODELS; o++) assert_int_equal(hn_cache_reserve(c, s, o, HN_MAX_ROWS, &err), HUNCH_OK);
            hn_cache_seq_end(c, s);
        }
        assert_int_equal(hn_cache_free_pages(c), all);
        int left = pools[i] > ROWS ? pools[i] : ROWS; /* now all at once, in unequal shares */
        for (int s = 0; s < SEQS; s++) {
            const int mine = s == SEQS - 1 ? left : left / 2;
            hn_cache_seq_begin(c, s);
            for (int o = 0; o < MODELS; o++) {
                assert_int_equal(fill(c, s, o, mine), mine);
                assert_int_equal(hn_cache_reserve(c, s, o, HN_MAX_ROWS, &err), HUNCH_OK);
            }
            left -= mine;
        }
        hn_cache_close(&c);
        assert_int_equal(try_open(&c, 16, HN_BF16, 16, ROWS, pools[i], &err), HUNCH_OK); /* too many rows: refused */
        int got = 0;
        for (int s = 0; s < 16; s++) {
            hn_cache_seq_begin(c, s);
            got += fill(c, s, 0, ROWS);
        }
        assert_true(got < 16 * ROWS && got >= pools[i]);
        hn_cache_close(&c);
    }
}

/* Opens a cache of two sequences of 64 MiB each in a process of its own with this memory limit; returns its pages in MiB, 0:
 * failed. Skipped if a limit is not enforced (under qemu). */
static int opened_within(rlim_t mib) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit r = {mib << 20, mib << 20};
        const hn_cache_group g = {.name = "wide",
                                  .layers = 2,
                                  .kv_heads = 4,
                                  .head_dim = 1024,
                                  .type = HN_BF16,
                                  .page_rows = 64}; /* rows of 32 KiB */
        hn_cache *c = NULL;
        hunch_error err;
        if (setrlimit(RLIMIT_DATA, &r) != 0 || getrlimit(RLIMIT_DATA, &r) != 0 || r.rlim_cur != mib << 20) _exit(255);
        const hunch_status st = hn_cache_open(&c, backend, &g, 1, 2, 2048, 0, &err);
        _exit(st == HUNCH_OK ? (int)(hn_cache_bytes(c) >> 20) : st == HUNCH_NO_MEMORY ? 0 : 254);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 255) skip();
    return WEXITSTATUS(status);
}

/* Without pool_rows, the pages of one sequence are omitted if memory is short. */
static void test_short_memory(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* terabytes of addresses */
    assert_in_range(opened_within(200), 128, 144);
    assert_in_range(opened_within(100), 64, 80);
    assert_int_equal(opened_within(50), 0);
}

static void test_memory_faults(void **state) {
    (void)state;
    hn_cache *c = NULL;
    hunch_error err;
    hn_fault_arm(HN_FAULT_ALLOC, INT64_MAX, false);
    assert_int_equal(try_open(&c, 16, HN_BF16, SEQS, ROWS, 0, &err), HUNCH_OK);
    const int64_t n = (int64_t)hn_fault_count(HN_FAULT_ALLOC);
    hn_cache_close(&c);
    assert_true(n > GROUPS * SEQS);
    for (int64_t i = 0; i < n; i++) {
        hn_fault_arm(HN_FAULT_ALLOC, i, false);
        assert_int_equal(try_open(&c, 16, HN_BF16, SEQS, ROWS, 0, &err), HUNCH_NO_MEMORY);
        assert_null(c);
    }
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commit_keeps_paths), cmocka_unit_test(test_chain_commit_moves_nothing),
        cmocka_unit_test(test_geometry),           cmocka_unit_test(test_limits),
        cmocka_unit_test(test_pool_rows),          cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_memory_faults)};
    return cmocka_run_group_tests(tests, rows_setup, rows_teardown);
}
