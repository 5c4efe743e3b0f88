/* SPDX-License-Identifier: Apache-2.0 */
/* block_rows_test.c - rows of a block attend to later rows of it in layers that look ahead: a block has the same logits alone, among
 * other texts' rows and if its rows are not adjacent (contract C2), for every instruction level and type of cache; rows attend to all of
 * the block, and if a window is counted back from the block's first row, to as many rows before that row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"

enum { SEQS = 2, ROWS = 400, BLOCK = 7, TEXT = 250, WIDEST = 512 };
static int vocab;

typedef struct rig {
    hn_cache *cache;
    hn_runner *runner;
} rig;

/* The same text is committed in both sequences. */
static rig rig_open(const hn_model *m, hn_dtype type, int page_rows) {
    hn_cache_group group[HN_MODEL_GROUPS];
    hn_row row[HN_MAX_ROWS];
    rig r;
    const int n = hn_kv_groups(m->run, type, group, NULL);
    for (int g = 0; g < n; g++) group[g].page_rows = page_rows;
    must(hn_cache_open(&r.cache, m->backend, group, n, SEQS, ROWS, 0, err));
    must(hn_runner_open(&r.runner, m, r.cache, 0, ROWS, NULL, err));
    for (int s = 0; s < SEQS; s++) {
        uint64_t seed = 11;
        hn_cache_seq_begin(r.cache, s);
        for (int at = 0, k; at < TEXT; at += k) {
            k = TEXT - at < HN_MAX_ROWS ? TEXT - at : HN_MAX_ROWS;
            for (int i = 0; i < k; i++)
                row[i] = (hn_row){.token = (int32_t)(hn_splitmix(&seed) % (uint64_t)vocab), .parent = (int16_t)(i - 1)};
            must(hn_pass_run(r.runner, row, k, &s, 1, err));
            hn_cache_commit(r.cache, s, 0, NULL, k);
        }
    }
    return r;
}

static void rig_close(rig *r) {
    hn_runner_close(&r->runner);
    hn_cache_close(&r->cache);
}

typedef struct block {
    int32_t token[BLOCK];
    bool before; /* windows count from the first row */
} block;

static block some_block(int32_t last) {
    block b = {{5, 9, 9, 9, 9, 9, 9}, false};
    b.token[BLOCK - 1] = last;
    return b;
}

static int add_node(hn_row *row, int at, int seq, const block *b) {
    for (int i = 0; i < BLOCK; i++)
        row[at + i] = (hn_row){.token = b->token[i], .seq = (int16_t)seq, .parent = (int16_t)(i ? at + i - 1 : -1),
                               .logits = HN_LOGITS_ALL, .n_lookahead = (int16_t)(BLOCK - 1 - i), .before = (int16_t)(b->before ? i : 0)};
    return at + BLOCK;
}

/* After `aside` rows of its text that it does not follow, and another text's rows. out: [BLOCK][WIDEST] */
static void run(rig *r, const block *b, bool beside, int aside, float *out) {
    static const int both[] = {1, 0}, one[] = {0};
    hn_row row[HN_MAX_ROWS];
    const block other = some_block(3);
    int n = beside ? add_node(row, 0, 0, &other) : 0;
    const int seq = n > 0;
    for (int i = 0; i < aside; i++, n++) row[n] = (hn_row){.token = 40 + i, .seq = (int16_t)seq, .parent = (int16_t)(i ? n - 1 : -1)};
    const int first = n;
    n = add_node(row, n, seq, b);
    must(hn_pass_run(r->runner, row, n, beside ? both : one, 1 + seq, err));
    for (int i = 0; i < BLOCK; i++) memcpy(out + i * WIDEST, hn_pass_logits(r->runner, first + i), (size_t)vocab * sizeof *out);
}

static bool same(const float *a, const float *b, int row) {
    return !memcmp(a + row * WIDEST, b + row * WIDEST, (size_t)vocab * sizeof *a);
}

static void set_ahead(hn_model *m, bool ahead) {
    for (int i = 0; i < m->arch.layers; i++) m->arch.layer[i].ahead = ahead;
}

static float want[BLOCK * WIDEST], got[BLOCK * WIDEST], plain[BLOCK * WIDEST];

static void check_neighbours(hn_model *m, hn_dtype type, const char *isa) {
    rig r = rig_open(m, type, 64), small = rig_open(m, type, 16);
    const block b = some_block(9), other = some_block(8);
    set_ahead(m, false);
    run(&r, &b, false, 0, plain);
    run(&r, &other, false, 0, got);
    for (int i = 0; i + 1 < BLOCK; i++) assert_true(same(got, plain, i)); /* no other row attends to the row that differs */
    set_ahead(m, true);
    run(&r, &b, false, 0, want);
    run(&r, &other, false, 0, got);
    for (int i = 0; i < BLOCK; i++) assert_true(!same(want, got, i) && !(i + 1 < BLOCK && same(want, plain, i)));
    for (int way = 0; way < 4; way++) {
        run(way & 2 ? &small : &r, &b, way & 1, way * 5, got);
        for (int i = 0; i < BLOCK; i++)
            if (!same(want, got, i)) fail_msg("%s, %s: row %d of a block differs, way %d", isa, hn_dtype_name(type), i, way);
    }
    rig_close(&r);
    rig_close(&small);
}

static void test_neighbours(void **state) {
    static const hn_dtype types[] = {HN_BF16, HN_F16, HN_F32, HN_Q8_0};
    const char *isa[HN_ISA_COUNT];
    (void)state;
    for (int n = levels(isa), i = light() ? n - 1 : 0; i < n; i++) {
        hunch_model *m = open_model(data_path("goldens-heads/targets/qwen3-a"), isa[i], test_threads(), HUNCH_PRECISION_NATIVE);
        vocab = m->target.arch.vocab;
        assert_true(vocab <= WIDEST);
        for (int type = 0; type < 4; type++) check_neighbours(&m->target, types[type], isa[i]);
        hunch_model_close(&m);
    }
}

/* In the last layer, after which no row reads another: a row whose window is counted from its block's first row attends to the same rows
 * as one with a window that is longer by its index. */
static void test_windows_of_blocks(void **state) {
    enum { WINDOW = 20 };
    (void)state;
    hunch_model *model = open_model(data_path("goldens-heads/targets/qwen3-a"), "best", test_threads(), HUNCH_PRECISION_F32);
    hn_model *m = &model->target;
    vocab = m->arch.vocab;
    rig r = rig_open(m, HN_F32, 64);
    block b = some_block(9);
    for (int ahead = 0; ahead < 2; ahead++) {
        set_ahead(m, ahead);
        m->arch.layer[m->arch.layers - 1].window = WINDOW;
        b.before = true;
        run(&r, &b, false, 0, want);
        b.before = false;
        for (int i = 0; i < BLOCK; i++) {
            m->arch.layer[m->arch.layers - 1].window = WINDOW + i;
            run(&r, &b, false, 0, got);
            for (int k = 0; k < BLOCK; k++) assert_int_equal(same(want, got, k), k == i);
        }
        m->arch.layer[m->arch.layers - 1].window = 0;
    }
    rig_close(&r);
    hunch_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_neighbours), cmocka_unit_test(test_windows_of_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
