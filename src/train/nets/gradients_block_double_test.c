/* SPDX-License-Identifier: Apache-2.0 */
/* gradients_block_double_test.c - heads that draft blocks against finite differences, in double: the attention of blocks, and whole heads
 * of P-EAGLE, DART, DFlash, Domino's stage after it; and the choice of blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/nets/block_net.h"
#include "train/math/gradients_for_tests.h"
#include "train/math/loss/loss.h"

/* ---- attention --------------------------------------------------------------------------------------------------- */

typedef struct attention_case {
    hn_block_attention a;
    hn_mat y, dy;
    hn_real *log_sums;
} attention_case;

static double attention_value(void *of) {
    const attention_case *o = of;
    hn_block_attend(&workers, &o->a, o->y, o->log_sums);
    return along(o->y, o->dy);
}

/* A text without a block, one with one, and one with more than are computed together. */
static void check_attention(bool ahead) {
    enum { BLOCKS = 16, ROWS = 1 + 15 * 5, TEXTS = 75 };
    static const int start[] = {0, 5, 7, TEXTS}, of[] = {0, 0, 1, BLOCKS};
    hn_text_block block[BLOCKS] = {{0, 1, 2}};
    uint64_t seed = 9;
    for (int i = 1; i < BLOCKS; i++) block[i] = (hn_text_block){1 + 5 * (i - 1), 5, 4 * i};
    attention_case o = {
        .a = {.heads = 4, .kv_heads = 2, .head_dim = 2, .texts = 3, .start = start, .of = of, .block = block}};
    o.a.ahead = ahead;
    o.a.q = wide_matrix(ROWS, 8, 1, &seed);
    o.a.own_k = wide_matrix(ROWS, 4, 1, &seed);
    o.a.own_v = wide_matrix(ROWS, 4, 2, &seed);
    o.a.k = wide_matrix(TEXTS, 4, 1, &seed);
    o.a.v = wide_matrix(TEXTS, 4, 0, &seed);
    o.y = wide_matrix(ROWS, 8, 2, &seed);
    o.dy = wide_matrix(ROWS, 8, 3, &seed);
    o.log_sums = numbers(ROWS * 4, &seed);
    const hn_block_gradients d = {copy_of(o.a.q), zeros(o.a.own_k), zeros(o.a.own_v), zeros(o.a.k), zeros(o.a.v)};
    attention_value(&o);
    hn_block_attend_back(&workers, &o.a, o.y, o.log_sums, o.dy, &d);
    check_mat("q", attention_value, &o, o.a.q, d.q);
    check_mat("own k", attention_value, &o, o.a.own_k, d.own_k);
    check_mat("own v", attention_value, &o, o.a.own_v, d.own_v);
    for (int r = 7; r < 67; r += 7) { /* visible rows */
        check_mat("k", attention_value, &o, hn_mat_part(o.a.k, r, 1), hn_mat_part(d.k, r, 1));
        check_mat("v", attention_value, &o, hn_mat_part(o.a.v, r, 1), hn_mat_part(d.v, r, 1));
    }
    for (int c = 0; c < 4; c++)
        assert_true(d.k.p[c] == 0 && hn_mat_row(d.v, TEXTS - 1)[c] == 0); /* and hidden ones */
    const hn_mat all[] = {o.a.q, o.a.own_k, o.a.own_v, o.a.k, o.a.v, o.y, o.dy, d.q, d.own_k, d.own_v, d.k, d.v};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i].p);
    hn_free(o.log_sums);
}

static void test_attention(void **state) {
    (void)state;
    check_attention(false);
    check_attention(true);
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

typedef struct head_case {
    hn_block_net *net;
    hn_net_batch batch;
    hn_real *w;
} head_case;

static double head_value(void *of) {
    head_case *o = of;
    double losses[HN_MOST_STEPS];
    return hn_block_net_loss(o->net, o->w, &o->batch, NULL, losses);
}

static void check_head(hn_block_kind kind, int layers, bool borrowed, int markov_rank, hn_prefix_shape prefix) {
    static const int start[] = {0, 5, 6, 15}, token[15] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9};
    static const hn_real weight[15] = {0, 1, 1, 1, .5, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1};
    const hn_block_shape s = {.kind = kind,
                              .hidden = 8,
                              .taps = 12,
                              .heads = 4,
                              .kv_heads = 2,
                              .head_dim = 2,
                              .ffn = 6,
                              .layers = layers,
                              .vocab = 9,
                              .borrowed = borrowed,
                              .drafts = 4,
                              .mask_token = 9,
                              .markov_rank = markov_rank,
                              .prefix = prefix,
                              .tokens = 10,
                              .eps = 1e-3,
                              .theta = 50,
                              .decay = 0.7,
                              .keep = 0.7,
                              .least = 0.2};
    const size_t n = hn_block_count(&s);
    uint64_t seed = 25;
    hunch_error err;
    const hn_mat table = wide_matrix(10, 8, 0, &seed), head = wide_matrix(9, 8, 0, &seed),
                 taps = wide_matrix(15, 12, 1, &seed);
    const hn_mat dist = wide_matrix(15, 9, 1, &seed), logits = copy_of(dist);
    head_case o = {.batch = {.texts = 3, .start = start, .token = token, .state = taps, .dist = dist, .weight = weight, .seed = 3,
                             .base_share = 0.3}, .w = numbers(n, &seed)};
    hn_target_dist(&workers, logits, NULL, dist, NULL, NULL);
    assert_int_equal(hn_block_net_open(&o.net, &workers, &s, table, head, 15, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double losses[HN_MOST_STEPS];
    assert_true(fabs(hn_block_net_loss(o.net, o.w, &o.batch, g, losses) - head_value(&o)) < 1e-12);
    for (int part = 0; part < hn_block_parts(&s); part++) {
        char name[80];
        const hn_mat x = hn_block_part_of(&s, part, o.w);
        hn_block_part_name(&s, part, name);
        if (x.rows > 0 && !(prefix.state && part >= HN_BLOCK_LAYERS)) /* layers are the same without a stage after them */
            check_gradient(name, head_value, &o, x.p, hn_block_part_of(&s, part, g).p, (size_t)x.rows * (size_t)x.cols);
    }
    o.batch.base_share = 1; /* of the block's own logits alone: none of the stage after it */
    memset(g, 0, n * sizeof *g);
    assert_true(hn_block_net_loss(o.net, o.w, &o.batch, g, losses) > 0);
    const hn_mat bias = hn_block_part_of(&s, HN_BLOCK_BIAS_OUT, g), fc = hn_block_part_of(&s, HN_BLOCK_FC, g);
    for (int i = 0; i < bias.rows * bias.cols; i++) assert_true(bias.p[i] == 0);
    assert_true(fc.p[0] != 0);
    hn_block_net_close(o.net);
    const hn_mat all[] = {table, head, taps, dist, logits};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i].p);
    hn_free(g);
    hn_free(o.w);
}

static void test_peagle(void **state) {
    (void)state;
    check_head(HN_BLOCK_PEAGLE, 1, false, 0, (hn_prefix_shape){0});
    check_head(HN_BLOCK_PEAGLE, 2, false, 0, (hn_prefix_shape){0});
}

static void test_dart(void **state) {
    (void)state;
    check_head(HN_BLOCK_DART, 1, false, 0, (hn_prefix_shape){0});
}

static void test_dflash(void **state) {
    (void)state;
    check_head(HN_BLOCK_DFLASH, 1, false, 0, (hn_prefix_shape){0});
    check_head(HN_BLOCK_DFLASH, 2, true, 0, (hn_prefix_shape){0});
    check_head(HN_BLOCK_DFLASH, 1, false, 3, (hn_prefix_shape){0}); /* DSpark */
}

/* Through the GRU: drafts with a bias from the first place and from the second, rows of their own position and of the one before. */
static void test_domino(void **state) {
    (void)state;
    check_head(HN_BLOCK_DFLASH, 1, false, 0, (hn_prefix_shape){3, 2, 0, false});
    check_head(HN_BLOCK_DFLASH, 1, true, 0, (hn_prefix_shape){2, 3, 1, true});
}

/* ---- choice of blocks ------------------------------------------------------------------------------------------------ */

enum { PLANNED = 200 };
typedef struct planned {
    hn_block_plan plan;
    hn_text_block of[PLANNED];
    int root[PLANNED], first[PLANNED + 1], chosen[PLANNED], depth[PLANNED];
} planned;

static void plan(planned *p, int drafts, int block, uint64_t seed) {
    static const int start[] = {0, 120, 121, PLANNED};
    static hn_real weight[PLANNED];
    for (int i = 0; i < PLANNED; i++) weight[i] = i >= 40; /* a prompt */
    *p = (planned){.plan = {.most_rows = PLANNED, .drafts = drafts, .block = block, .keep = 0.7, .least = 0.2}};
    p->plan.of = p->of;
    p->plan.root = p->root;
    p->plan.first = p->first;
    p->plan.chosen = p->chosen;
    p->plan.depth = p->depth;
    hn_block_plan_choose(&p->plan, 3, start, weight, seed);
    assert_true(p->plan.rows <= hn_block_plan_most(&p->plan));
    for (int text = 0, row = 0; text < 3; text++)
        for (int i = p->first[text]; i < p->first[text + 1]; i++) {
            assert_true(p->root[i] >= start[text] && p->root[i] < start[text + 1]);
            assert_true(p->root[i] + drafts > 40); /* its last draft has a label */
            assert_int_equal(p->of[i].sees, p->root[i] - start[text] + 1);
            assert_int_equal(p->of[i].first, row);
            row += p->of[i].rows;
            assert_true(block || p->root[i] + p->of[i].rows < start[text + 1]);
        }
}

/* P-EAGLE's shares: of n rows 0.7^d n have d masks or more, at least 0.2 n. */
static void test_chains(void **state) {
    (void)state;
    planned a, b;
    int deeper[9] = {0};
    plan(&a, 9, 0, 1);
    for (int i = 0; i < a.plan.blocks; i++)
        for (int d = 1; d <= a.of[i].rows; d++) deeper[d]++;
    static const int want[9] = {0, 115, 80, 56, 39, 33, 33, 33, 33}; /* of 165; at ends of texts chains end */
    for (int d = 1; d < 9; d++) assert_in_range(deeper[d], want[d] - 6, want[d]);
    plan(&b, 9, 0, 1);
    assert_memory_equal(a.root, b.root, sizeof a.root);
    plan(&b, 9, 0, 2);
    assert_memory_not_equal(a.root, b.root, sizeof a.root);
}

static void test_anchors(void **state) {
    (void)state;
    planned a;
    plan(&a, 7, 8, 1);
    assert_int_equal(a.plan.blocks, (2 * PLANNED + 8) / 8);
    for (int i = 0; i < a.plan.blocks; i++) assert_int_equal(a.of[i].rows, 8);
    plan(&a, 2, 3, 1);
    assert_int_equal(a.plan.blocks, (2 * PLANNED + 3) / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention), cmocka_unit_test(test_peagle), cmocka_unit_test(test_dart),
        cmocka_unit_test(test_dflash),    cmocka_unit_test(test_domino), cmocka_unit_test(test_chains), cmocka_unit_test(test_anchors),
    };
    return cmocka_run_group_tests(tests, open_workers, close_workers);
}
