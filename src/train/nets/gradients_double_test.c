/* SPDX-License-Identifier: Apache-2.0 */
/* gradients_double_test.c - every backward against finite differences, in double: for each operation, and for a whole
 * EAGLE-3 head over three unrolled steps. The differences are of fourth order, so that 1e-6 is far above their error.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "train/nets/eagle3_net.h"
#include "train/nets/eagle_net.h"
#include "train/math/gradients_for_tests.h"
#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"
#include "train/nets/mtp_net.h"

/* ---- operations -------------------------------------------------------------------------------------------------- */

enum { SLOTS = 8 };
/* An operation's matrices: x and other inputs; its output y and dy. */
typedef struct operation {
    hn_mat x, w, y, dy;
    hn_real *bias, *inverse, inverse2[SLOTS];
    int ids[SLOTS];
} operation;

static operation operation_of(int rows, int in, int out, int weight_rows) {
    static uint64_t seed = 11;
    return (operation){wide_matrix(rows, in, 2, &seed),
                       wide_matrix(weight_rows, in, 1, &seed),
                       wide_matrix(rows, out, 3, &seed),
                       wide_matrix(rows, out, 1, &seed),
                       numbers((size_t)(in + out), &seed),
                       numbers((size_t)rows, &seed),
                       {0},
                       {3, 1, 3, 0, 2, 1, 3, 4}};
}

static void operation_free(operation *o) {
    hn_free(o->x.p);
    hn_free(o->w.p);
    hn_free(o->y.p);
    hn_free(o->dy.p);
    hn_free(o->bias);
    hn_free(o->inverse);
}

static double linear_value(void *of) {
    const operation *o = of;
    hn_linear(&workers, o->x, o->w, o->bias, o->y);
    return along(o->y, o->dy);
}

static void test_linear(void **state) {
    (void)state;
    operation o = operation_of(5, 7, 6, 6);
    hn_mat dx = copy_of(o.x), dw = copy_of(o.w);
    const hn_mat dx_before = copy_of(dx), dw_before = copy_of(dw);
    hn_real db[6] = {0};
    hn_linear_back(&workers, o.dy, o.x, o.w, dx, true, dw, db);
    less(dx, dx_before);
    less(dw, dw_before);
    check_mat("x", linear_value, &o, o.x, dx);
    check_mat("w", linear_value, &o, o.w, dw);
    check_gradient("bias", linear_value, &o, o.bias, db, 6);
    hn_free(dx.p);
    hn_free(dw.p);
    hn_free(dx_before.p);
    hn_free(dw_before.p);
    operation_free(&o);
}

static double norm_value(void *of) {
    const operation *o = of;
    hn_rms_norm(&workers, o->x, o->bias, 1e-2, o->y, o->inverse);
    return along(o->y, o->dy);
}

static void test_rms_norm(void **state) {
    (void)state;
    for (int add = 0; add < 2; add++) {
        operation o = operation_of(20, 37, 37, 1);
        hn_mat dx = copy_of(o.x), before = copy_of(o.x);
        hn_real dgain[37] = {0};
        norm_value(&o);
        hn_rms_norm_back(&workers, o.dy, o.x, o.bias, o.inverse, dx, add, dgain);
        if (add) less(dx, before);
        check_mat("x", norm_value, &o, o.x, dx);
        check_gradient("gain", norm_value, &o, o.bias, dgain, 37);
        hn_free(dx.p);
        hn_free(before.p);
        operation_free(&o);
    }
}

/* Two inputs, each normed, side by side: the input of an EAGLE-3 layer. w is the second input. */
static double joined_value(void *of) {
    operation *o = of;
    const int n = o->x.cols;
    hn_rms_norm(&workers, o->x, o->bias, 1e-2, hn_mat_cols(o->y, 0, n), o->inverse);
    hn_rms_norm(&workers, o->w, o->bias + n, 1e-2, hn_mat_cols(o->y, n, n), o->inverse2);
    return along(o->y, o->dy);
}

static void test_joined_norms(void **state) {
    (void)state;
    operation o = operation_of(4, 6, 12, 4);
    hn_mat dx = zeros(o.x), dw = zeros(o.w);
    hn_real dgain[12] = {0};
    joined_value(&o);
    hn_rms_norm_back(&workers, hn_mat_cols(o.dy, 0, 6), o.x, o.bias, o.inverse, dx, false, dgain);
    hn_rms_norm_back(&workers, hn_mat_cols(o.dy, 6, 6), o.w, o.bias + 6, o.inverse2, dw, false, dgain + 6);
    check_mat("left", joined_value, &o, o.x, dx);
    check_mat("right", joined_value, &o, o.w, dw);
    check_gradient("gains", joined_value, &o, o.bias, dgain, 12);
    hn_free(dx.p);
    hn_free(dw.p);
    operation_free(&o);
}

static double embed_value(void *of) {
    const operation *o = of;
    hn_embed(&workers, o->w, o->ids, o->y);
    return along(o->y, o->dy);
}

static void test_embedding(void **state) {
    (void)state;
    operation o = operation_of(SLOTS, 70, 70, 5);
    hn_mat dw = zeros(o.w);
    hn_embed_back(&workers, o.dy, o.ids, dw);
    check_mat("table", embed_value, &o, o.w, dw);
    hn_free(dw.p);
    operation_free(&o);
}

static double rotate_value(void *of) {
    const operation *o = of;
    hn_mat turned = copy_of(o->x);
    hn_rotate(&workers, turned, 6, 100, o->ids, 2);
    const double value = along(turned, o->dy);
    hn_free(turned.p);
    return value;
}

static void test_rotation(void **state) {
    (void)state;
    operation o = operation_of(SLOTS, 12, 12, 1);
    hn_mat dx = copy_of(o.dy);
    hn_rotate_back(&workers, dx, 6, 100, o.ids, 2);
    check_mat("x", rotate_value, &o, o.x, dx);
    hn_free(dx.p);
    operation_free(&o);
}

static double swiglu_value(void *of) {
    const operation *o = of;
    hn_swiglu(&workers, o->x, o->w, o->y);
    return along(o->y, o->dy);
}

static void test_swiglu(void **state) {
    (void)state;
    operation o = operation_of(4, 9, 9, 4);
    hn_mat dgate = copy_of(o.x), dup = copy_of(o.w);
    hn_swiglu_back(&workers, o.dy, dgate, dup, dgate, dup); /* in place */
    check_mat("gate", swiglu_value, &o, o.x, dgate);
    check_mat("up", swiglu_value, &o, o.w, dup);
    hn_free(dgate.p);
    hn_free(dup.p);
    operation_free(&o);
}

static double sum_value(void *of) {
    const operation *o = of;
    hn_sum(&workers, o->x, o->w, o->y);
    return along(o->y, o->dy);
}

static void test_sum(void **state) {
    (void)state;
    operation o = operation_of(3, 5, 5, 3);
    check_mat("a", sum_value, &o, o.x, o.dy);
    check_mat("b", sum_value, &o, o.w, o.dy);
    operation_free(&o);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

enum { LOSS_HARD, LOSS_SOFT, LOSS_KL, LOSS_SMOOTH };
typedef struct loss_case {
    int kind;
    hn_mat x, target, dx;
    hn_real weight[6], losses[6];
    int ids[6];
} loss_case;

static double loss_value(void *of) {
    loss_case *o = of;
    switch (o->kind) {
    case LOSS_HARD: return hn_loss_hard(&workers, o->x, o->ids, o->weight, o->dx, o->losses);
    case LOSS_SMOOTH: return hn_loss_smooth_l1(&workers, o->x, o->target, o->weight, o->dx, o->losses);
    default: return hn_loss_soft(&workers, o->x, o->target, NULL, o->kind == LOSS_KL, o->weight, o->dx, o->losses);
    }
}

static void test_losses(void **state) {
    (void)state;
    for (int kind = LOSS_HARD; kind <= LOSS_SMOOTH; kind++) {
        uint64_t seed = 5;
        loss_case o = {kind, wide_matrix(6, 13, 1, &seed), wide_matrix(6, 13, 2, &seed), {0}, {1, .5, 0, 2, .25, 1},
                       {0},  {3, 12, 0, 7, 7, 1}};
        for (size_t i = 0; i < 6 * o.x.ld; i++) o.x.p[i] *= 3;
        const hn_mat logits = copy_of(o.target);
        if (kind != LOSS_SMOOTH) hn_target_dist(&workers, logits, NULL, o.target, NULL, NULL);
        o.dx = copy_of(o.x);
        loss_value(&o);
        const hn_mat dx = copy_of(o.dx);
        for (int r = 0; r < 6; r++) {
            if (r == 2)
                for (int c = 0; c < 13; c++) assert_true(hn_mat_row(dx, r)[c] == 0);
            else
                check_gradient("x", loss_value, &o, hn_mat_row(o.x, r), hn_mat_row(dx, r), 13);
        }
        hn_free(o.x.p);
        hn_free(o.target.p);
        hn_free(o.dx.p);
        hn_free(dx.p);
        hn_free(logits.p);
    }
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

typedef struct attention_case {
    hn_attention a;
    hn_mat y, dy;
    hn_real *log_sums;
} attention_case;

static double attention_value(void *of) {
    const attention_case *o = of;
    hn_attend(&workers, &o->a, o->y, o->log_sums);
    return along(o->y, o->dy);
}

/* Every sixth row: of each text, and of both blocks of the long one. */
static hn_mat some_rows(hn_mat m) {
    m.rows = (m.rows + 5) / 6;
    m.ld *= 6;
    return m;
}

/* Texts below and above a block of queries; heads that share keys; 0 to 2 own steps. */
static void check_attention(int step) {
    static const int start[] = {0, 5, 7, 75};
    uint64_t seed = 9;
    attention_case o = {.a = {.heads = 4, .kv_heads = 2, .head_dim = 2, .texts = 3, .start = start, .step = step}};
    hn_attention_gradients d = {.q = wide_matrix(75, 8, 0, &seed)};
    o.a.q = wide_matrix(75, 8, 1, &seed);
    o.y = wide_matrix(75, 8, 2, &seed);
    o.dy = wide_matrix(75, 8, 3, &seed);
    o.log_sums = numbers(75 * 4, &seed);
    for (int j = 0; j <= step; j++) {
        o.a.k[j] = wide_matrix(75, 4, 1, &seed);
        o.a.v[j] = wide_matrix(75, 4, 2, &seed);
        d.k[j] = zeros(o.a.k[j]);
        d.v[j] = zeros(o.a.v[j]);
    }
    attention_value(&o);
    hn_attend_back(&workers, &o.a, o.y, o.log_sums, o.dy, &d);
    check_mat("q", attention_value, &o, some_rows(o.a.q), some_rows(d.q));
    for (int j = 0; j <= step; j++) {
        check_mat("k", attention_value, &o, some_rows(o.a.k[j]), some_rows(d.k[j]));
        check_mat("v", attention_value, &o, some_rows(o.a.v[j]), some_rows(d.v[j]));
    }
    for (int j = 0; j <= step; j++) {
        hn_free(o.a.k[j].p);
        hn_free(o.a.v[j].p);
        hn_free(d.k[j].p);
        hn_free(d.v[j].p);
    }
    hn_free(o.a.q.p);
    hn_free(o.y.p);
    hn_free(o.dy.p);
    hn_free(o.log_sums);
    hn_free(d.q.p);
}

static void test_attention(void **state) {
    (void)state;
    check_attention(1);
    check_attention(2);
}

/* ---- a head ------------------------------------------------------------------------------------------------------ */

typedef struct head_case {
    hn_eagle3_net *net;
    hn_net_batch batch;
    hn_real *w;
    int steps;
} head_case;

static double head_value(void *of) {
    head_case *o = of;
    double losses[HN_MOST_STEPS];
    return hn_eagle3_net_loss(o->net, o->w, &o->batch, NULL, losses);
}

static void check_head(bool norm_before_residual, int steps, int clusters) {
    static const int start[] = {0, 5, 6, 15}, token[15] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9};
    static const hn_real weight[15] = {0, 1, 1, 1, .5, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1};
    static const int order[9] = {4, 0, 7, 2, 8, 1, 6, 3, 5};
    const hn_eagle3_shape s = {{{8, 4, 2, 6, 10, 1e-3, 50}}, 12, 9, norm_before_residual, {clusters, 2, order}};
    const size_t n = hn_eagle3_count(&s);
    uint64_t seed = clusters ? 30 + 3 * (uint64_t)steps : 21; /* with which no other cluster is chosen while a number is varied */
    hunch_error err;
    const hn_mat table = wide_matrix(10, 8, 0, &seed), dist = wide_matrix(15, 9, 1, &seed);
    head_case o = {
        .batch = {.texts = 3, .start = start, .token = token, .state = wide_matrix(15, 12, 1, &seed), .dist = dist,
                  .weight = weight}, .w = numbers(n, &seed), .steps = steps};
    const hn_mat logits = copy_of(dist);
    hn_target_dist(&workers, logits, NULL, dist, NULL, NULL);
    assert_int_equal(hn_eagle3_net_open(&o.net, &workers, &s, steps, 0.8, table, 20, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double losses[HN_MOST_STEPS], sum = 0, share = 1;
    const double value = hn_eagle3_net_loss(o.net, o.w, &o.batch, g, losses);
    for (int k = 0; k < steps; k++, share *= 0.8) sum += share * losses[k];
    assert_true(fabs(sum - value) < 1e-12 && fabs(value - head_value(&o)) < 1e-12);
    for (int part = 0; part < (clusters ? HN_EAGLE3_ALL_PARTS : HN_EAGLE3_PARTS); part++) {
        const hn_mat x = hn_eagle3_part_of(&s, (hn_eagle3_part)part, o.w);
        check_gradient(hn_eagle3_part_name((hn_eagle3_part)part), head_value, &o, x.p,
                       hn_eagle3_part_of(&s, (hn_eagle3_part)part, g).p, (size_t)x.rows * (size_t)x.cols);
    }
    hn_eagle3_net_close(o.net);
    hn_free(g);
    hn_free(o.w);
    hn_free(o.batch.state.p);
    hn_free(dist.p);
    hn_free(logits.p);
    hn_free(table.p);
}

static void test_eagle3(void **state) {
    (void)state;
    check_head(false, 1, 0);
    check_head(false, 3, 0);
    check_head(true, 3, 0);
    check_head(false, 3, 3); /* two of three clusters of three tokens */
    check_head(true, 1, 9);  /* two of nine of one */
}

typedef struct eagle_case {
    hn_eagle_net *net;
    hn_net_batch batch;
    hn_real *w;
} eagle_case;

static double eagle_value(void *of) {
    eagle_case *o = of;
    double loss;
    return hn_eagle_net_loss(o->net, o->w, &o->batch, NULL, &loss);
}

/* One step: with more the gradient is not the loss's slope, since it stops at a step's input from the one before. */
static void test_eagle(void **state) {
    (void)state;
    static const int start[] = {0, 5, 6, 15}, token[15] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9};
    static const hn_real weight[15] = {0, 1, 1, 1, .5, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1};
    const hn_eagle_shape s = {{{8, 4, 2, 6, 10, 1e-3, 50}}, true};
    const size_t n = hn_eagle_count(&s);
    uint64_t seed = 22;
    hunch_error err;
    const hn_eagle_frozen frozen = {wide_matrix(10, 8, 0, &seed), wide_matrix(9, 8, 0, &seed)};
    const hn_mat state_of = wide_matrix(15, 8, 1, &seed), next = wide_matrix(15, 8, 0, &seed);
    const hn_mat dist = wide_matrix(15, 9, 1, &seed), logits = copy_of(dist);
    eagle_case o = {.batch = {.texts = 3, .start = start, .token = token, .state = state_of, .next = next, .dist = dist,
                              .weight = weight}, .w = numbers(n, &seed)};
    hn_target_dist(&workers, logits, NULL, dist, NULL, NULL);
    assert_int_equal(hn_eagle_net_open(&o.net, &workers, &s, 1, 1, 0.1, &frozen, 15, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double loss;
    assert_true(fabs(hn_eagle_net_loss(o.net, o.w, &o.batch, g, &loss) - eagle_value(&o)) < 1e-12);
    for (int part = 0; part < HN_EAGLE_PARTS; part++) {
        const hn_mat x = hn_eagle_part_of(&s, (hn_eagle_part)part, o.w);
        check_gradient(hn_eagle_part_name((hn_eagle_part)part), eagle_value, &o, x.p,
                       hn_eagle_part_of(&s, (hn_eagle_part)part, g).p, (size_t)x.rows * (size_t)x.cols);
    }
    hn_eagle_net_close(o.net);
    const hn_mat all[] = {frozen.table, frozen.head, state_of, next, dist, logits};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i].p);
    hn_free(g);
    hn_free(o.w);
}

typedef struct mtp_case {
    hn_mtp_net *net;
    hn_net_batch batch;
    hn_real *w;
} mtp_case;

static double mtp_value(void *of) {
    mtp_case *o = of;
    double losses[HN_MOST_STEPS];
    return hn_mtp_net_loss(o->net, o->w, &o->batch, NULL, losses);
}

/* Through the whole chain, and both norms of heads; with several modules, each with its own. */
static void check_mtp(int steps, int modules) {
    static const int start[] = {0, 5, 6, 15}, token[15] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9};
    static const hn_real weight[15] = {0, 1, 1, 1, .5, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1};
    const hn_mtp_shape s = {{{8, 4, 2, 6, 10, 1e-3, 50}}, modules};
    const size_t n = hn_mtp_count(&s);
    uint64_t seed = 23;
    hunch_error err;
    const hn_mat table = wide_matrix(10, 8, 0, &seed), head = wide_matrix(9, 8, 0, &seed);
    const hn_mat state_of = wide_matrix(15, 8, 1, &seed), dist = wide_matrix(15, 9, 1, &seed), logits = copy_of(dist);
    mtp_case o = {.batch = {.texts = 3, .start = start, .token = token, .state = state_of, .dist = dist,
                            .weight = weight}, .w = numbers(n, &seed)};
    hn_target_dist(&workers, logits, NULL, dist, NULL, NULL);
    assert_int_equal(hn_mtp_net_open(&o.net, &workers, &s, steps, 0.6, table, head, 20, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double losses[HN_MOST_STEPS], sum = 0, share = 1, shares = 0;
    const double value = hn_mtp_net_loss(o.net, o.w, &o.batch, g, losses);
    for (int k = 0; k < steps; k++, share *= 0.6) {
        sum += share * losses[k];
        shares += share;
    }
    assert_true(fabs(sum / shares - value) < 1e-12 && fabs(value - mtp_value(&o)) < 1e-12);
    for (int part = 0; part < modules * HN_MTP_PARTS; part++) {
        const hn_mat x = hn_mtp_part_of(&s, part, o.w);
        char name[80];
        hn_mtp_part_name(part, name);
        check_gradient(name, mtp_value, &o, x.p, hn_mtp_part_of(&s, part, g).p, (size_t)x.rows * (size_t)x.cols);
    }
    hn_mtp_net_close(o.net);
    const hn_mat all[] = {table, head, state_of, dist, logits};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i].p);
    hn_free(g);
    hn_free(o.w);
}

static void test_mtp(void **state) {
    (void)state;
    check_mtp(1, 1);
    check_mtp(3, 1);
    check_mtp(3, 3);
}

/* Module 1 sees no key of module 0: with the same weights in both it is not the chain, whose second step sees those of the first. */
static void test_mtp_alone(void **state) {
    (void)state;
    static const int start[] = {0, 9}, token[9] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    static const hn_real weight[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    hn_mtp_shape s = {{{8, 4, 2, 6, 10, 1e-3, 50}}, 1};
    const size_t n = hn_mtp_count(&s);
    uint64_t seed = 29;
    hunch_error err;
    const hn_mat table = wide_matrix(10, 8, 0, &seed), head = wide_matrix(9, 8, 0, &seed), state_of = wide_matrix(9, 8, 1, &seed);
    const hn_mat dist = wide_matrix(9, 9, 1, &seed), logits = copy_of(dist);
    const hn_net_batch batch = {.texts = 1, .start = start, .token = token, .state = state_of, .dist = dist, .weight = weight};
    hn_real *w = hn_zalloc(2 * n, sizeof *w), *one = numbers(n, &seed);
    double losses[2][2];
    memcpy(w, one, n * sizeof *w);
    memcpy(w + n, one, n * sizeof *w);
    hn_target_dist(&workers, logits, NULL, dist, NULL, NULL);
    for (s.modules = 1; s.modules <= 2; s.modules++) {
        hn_mtp_net *net;
        assert_int_equal(hn_mtp_net_open(&net, &workers, &s, 2, 1, table, head, 9, &err), HUNCH_OK);
        hn_mtp_net_loss(net, w, &batch, NULL, losses[s.modules - 1]);
        hn_mtp_net_close(net);
    }
    assert_true(losses[0][0] == losses[1][0] && fabs(losses[0][1] - losses[1][1]) > 1e-6);
    const hn_mat all[] = {table, head, state_of, dist, logits};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i].p);
    hn_free(one);
    hn_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),    cmocka_unit_test(test_rms_norm), cmocka_unit_test(test_joined_norms),
        cmocka_unit_test(test_embedding), cmocka_unit_test(test_rotation), cmocka_unit_test(test_swiglu),
        cmocka_unit_test(test_sum),       cmocka_unit_test(test_losses),   cmocka_unit_test(test_attention),
        cmocka_unit_test(test_eagle3),    cmocka_unit_test(test_eagle),
        cmocka_unit_test(test_mtp),       cmocka_unit_test(test_mtp_alone),
    };
    return cmocka_run_group_tests(tests, open_workers, close_workers);
}
