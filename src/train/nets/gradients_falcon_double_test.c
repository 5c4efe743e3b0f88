/* SPDX-License-Identifier: Apache-2.0 */
/* gradients_falcon_double_test.c - Falcon's head and its LSTM: every backward against finite differences, in double; visibility of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/nets/falcon_net.h"
#include "train/math/gradients_for_tests.h"
#include "train/math/loss/loss.h"
#include "train/math/layers/lstm.h"

/* ---- the LSTM's layer ---------------------------------------------------------------------------------------------------- */

typedef struct lstm_case {
    hn_mat gates, h, dh;
} lstm_case;

static double lstm_value(void *of) {
    const lstm_case *o = of;
    hn_lstm_output(&workers, o->gates, o->h);
    return along(o->h, o->dh);
}

/* The numbers of torch.nn.LSTM(1, 1) with gates 0.5, 9, -1.25, 0.75 and no state: sigmoid(.75) tanh(sigmoid(.5) tanh(-1.25)) */
static void test_lstm(void **state) {
    (void)state;
    uint64_t seed = 5;
    hn_real four[4] = {0.5, 9, -1.25, 0.75}, one = 0;
    lstm_case o = {wide_matrix(4, 20, 2, &seed), wide_matrix(4, 5, 1, &seed), wide_matrix(4, 5, 0, &seed)};
    const hn_mat d = zeros(o.gates);
    hn_lstm_output(&workers, hn_mat_of(four, 1, 4), hn_mat_of(&one, 1, 1));
    assert_true(fabs(one + 0.32863263338) < 1e-9);
    hn_lstm_output_back(&workers, o.dh, o.gates, d);
    for (int r = 0; r < 4; r++)
        for (int gate = 0; gate < 4; gate++) {
            hn_real *x = hn_mat_row(o.gates, r) + 5 * gate, *g = hn_mat_row(d, r) + 5 * gate;
            if (gate != 1) check_gradient("gates", lstm_value, &o, x, g, 5);
            for (int c = 0; gate == 1 && c < 5; c++) assert_true(g[c] == 0);
        }
    hn_free(o.gates.p);
    hn_free(o.h.p);
    hn_free(o.dh.p);
    hn_free(d.p);
}

/* ---- the head ------------------------------------------------------------------------------------------------------------ */

enum { ROWS = 23, HIDDEN = 4, VOCAB = 7, TOKENS = 10 };

/* Texts of 9, 2 and 12 rows: the second is too short for a block. */
static const int start[] = {0, 9, 11, 23};
static const int token[ROWS] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6};

typedef struct falcon_case {
    hn_falcon_net *net;
    hn_falcon_shape shape;
    hn_net_batch batch;
    hn_mat table, head;
    hn_real weight[ROWS], *w;
} falcon_case;

static void open_case(falcon_case *o, int together, int passes) {
    uint64_t seed = 41;
    hunch_error err;
    o->shape = (hn_falcon_shape){{{HIDDEN, 2, 1, 2, 5, 1e-5, 100}}, together, passes, 0.8, 0.3};
    o->table = wide_matrix(TOKENS, HIDDEN, 0, &seed);
    o->head = wide_matrix(VOCAB, HIDDEN, 0, &seed);
    o->w = numbers(hn_falcon_count(&o->shape), &seed);
    const hn_mat logits = wide_matrix(ROWS, VOCAB, 1, &seed), dist = copy_of(logits);
    hn_target_dist(&workers, logits, NULL, dist, NULL, NULL);
    hn_free(logits.p);
    for (int i = 0; i < ROWS; i++) o->weight[i] = i % 5 == 3 ? 0 : 1 + i % 3;
    o->batch = (hn_net_batch){.texts = 3, .start = start, .token = token, .dist = dist, .weight = o->weight, .seed = 9};
    o->batch.state = wide_matrix(ROWS, HIDDEN, 1, &seed);
    o->batch.next = wide_matrix(ROWS, HIDDEN, 2, &seed);
    assert_int_equal(hn_falcon_net_open(&o->net, &workers, &o->shape, o->table, o->head, ROWS, &err), HUNCH_OK);
}

static void close_case(falcon_case *o) {
    hn_falcon_net_close(o->net);
    void *const all[] = {o->table.p, o->head.p, o->w, o->batch.state.p, o->batch.next.p, o->batch.dist.p};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i]);
}

static double value(void *of) {
    falcon_case *o = of;
    double losses[2 * HN_MOST_BLOCK];
    return hn_falcon_net_loss(o->net, o->w, &o->batch, NULL, losses);
}

/* The guesses of the first pass are constants in the second. */
static void check_whole(int together, int passes) {
    falcon_case o;
    open_case(&o, together, passes);
    const size_t n = hn_falcon_count(&o.shape);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double losses[2 * HN_MOST_BLOCK];
    const double whole = hn_falcon_net_loss(o.net, o.w, &o.batch, g, losses);
    o.batch.same_guesses = true;
    assert_true(fabs(whole - value(&o)) < 1e-12 && whole > 0);
    for (int part = 0; part < HN_FALCON_PARTS; part++) {
        const hn_mat x = hn_falcon_part_of(&o.shape, (hn_falcon_part)part, o.w), d = hn_falcon_part_of(&o.shape, (hn_falcon_part)part, g);
        for (int gate = 0; part <= HN_FALCON_STATE_BIAS_2 && gate < 4; gate++) { /* the forget gate has no gradient */
            const size_t each = (size_t)x.rows * (size_t)x.cols / 4, at = each * (size_t)gate;
            if (gate != 1) check_gradient(hn_falcon_part_name((hn_falcon_part)part), value, &o, x.p + at, d.p + at, each);
        }
        if (part > HN_FALCON_STATE_BIAS_2)
            check_gradient(hn_falcon_part_name((hn_falcon_part)part), value, &o, x.p, d.p, (size_t)x.rows * (size_t)x.cols);
    }
    hn_free(g);
    close_case(&o);
}

static void test_head(void **state) {
    (void)state;
    check_whole(1, 1);
    check_whole(2, 2);
    check_whole(3, 2);
}

static void losses_of(falcon_case *o, double *losses) {
    hn_falcon_net_loss(o->net, o->w, &o->batch, NULL, losses);
}

/* The losses of one place: none of its drafts sees rows from there on, some see the row two places before it. */
static void test_nothing_ahead(void **state) {
    (void)state;
    falcon_case o;
    double before[2 * HN_MOST_BLOCK], behind[2 * HN_MOST_BLOCK];
    for (uint64_t seed = 1; seed < 5; seed++) {
        open_case(&o, 2, 2);
        o.batch.seed = seed;
        for (int i = 0; i < ROWS; i++) o.weight[i] = i == 7; /* the state at place 8 of the first text */
        losses_of(&o, before);
        for (int i = 8; i < ROWS; i++) hn_mat_row(o.batch.state, i)[0] += 1;
        losses_of(&o, behind);
        assert_memory_equal(before, behind, 4 * sizeof *before);
        assert_true(before[0] + before[1] + before[2] + before[3] > 0);
        hn_mat_row(o.batch.state, 4)[0] += 1;
        losses_of(&o, behind);
        assert_true(memcmp(before, behind, 4 * sizeof *before) != 0);
        close_case(&o);
    }
}

/* The first pass does not change with a second one, which has losses of its own. */
static void test_second_pass(void **state) {
    (void)state;
    falcon_case one, two;
    double of_one[2 * HN_MOST_BLOCK], of_two[2 * HN_MOST_BLOCK];
    open_case(&one, 2, 1);
    open_case(&two, 2, 2);
    losses_of(&one, of_one);
    losses_of(&two, of_two);
    assert_true(of_two[0] == of_one[0] && of_two[1] == of_one[1] && of_two[2] > 0 && of_two[3] > 0);
    close_case(&one);
    close_case(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lstm), cmocka_unit_test(test_head), cmocka_unit_test(test_nothing_ahead),
                                       cmocka_unit_test(test_second_pass)};
    return cmocka_run_group_tests(tests, open_workers, close_workers);
}
