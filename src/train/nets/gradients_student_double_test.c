/* SPDX-License-Identifier: Apache-2.0 */
/* gradients_student_double_test.c - distillation of a draft model against finite differences, in double: each
 * divergence, and whole models with each of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/math/gradients_for_tests.h"
#include "train/math/loss/loss.h"
#include "train/nets/student_net.h"

static const char *const names[] = {"forward", "reverse", "jsd", "tvd"};
enum { DIVERGENCES = sizeof names / sizeof *names };

/* ---- divergences --------------------------------------------------------------------------------------------------- */

typedef struct divergence_case {
    hn_divergence kind;
    hn_mat x, dist, dx;
    hn_real weight[4], losses[4];
} divergence_case;

static double divergence_value(void *of) {
    divergence_case *o = of;
    return hn_loss_divergence(&workers, o->kind, o->x, o->dist, NULL, o->weight, o->dx, o->losses);
}

static void test_divergences(void **state) {
    (void)state;
    for (int i = 0; i < DIVERGENCES; i++) {
        uint64_t seed = 5;
        divergence_case o = {
            .x = wide_matrix(4, 13, 1, &seed), .dist = wide_matrix(4, 13, 2, &seed), .weight = {1, .5, 0, 2}};
        assert_true(hn_divergence_named(names[i], &o.kind));
        const hn_mat logits = copy_of(o.dist);
        hn_target_dist(&workers, logits, NULL, o.dist, NULL, NULL);
        o.dx = copy_of(o.x);
        divergence_value(&o);
        const hn_mat dx = copy_of(o.dx);
        for (int r = 0; r < 4; r++) {
            if (r == 2)
                for (int c = 0; c < 13; c++) assert_true(hn_mat_row(dx, r)[c] == 0);
            else
                check_gradient(names[i], divergence_value, &o, hn_mat_row(o.x, r), hn_mat_row(dx, r), 13);
        }
        for (int r = 0; r < 4; r++) /* a distribution and itself */
            for (int c = 0; c < 13; c++) hn_mat_row(o.x, r)[c] = hn_mat_row(logits, r)[c];
        assert_true(fabs(divergence_value(&o)) < 1e-12);
        const hn_mat all[] = {o.x, o.dist, o.dx, dx, logits};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) hn_free(all[k].p);
    }
    hn_divergence d;
    assert_false(hn_divergence_named("backward", &d));
}

/* For p = (1/2, 1/2) and q = (3/4, 1/4). */
static void test_values(void **state) {
    (void)state;
    const double m0 = 0.625, m1 = 0.375;
    const double want[DIVERGENCES] = {
        0.5 * log(0.5 / 0.75) + 0.5 * log(0.5 / 0.25), 0.75 * log(0.75 / 0.5) + 0.25 * log(0.25 / 0.5),
        (0.5 * log(0.5 / m0) + 0.5 * log(0.5 / m1) + 0.75 * log(0.75 / m0) + 0.25 * log(0.25 / m1)) / 2, 0.25};
    for (int i = 0; i < DIVERGENCES; i++) {
        hn_real x[2] = {(hn_real)log(3), 0}, p[2] = {0.5, 0.5}, weight[1] = {1}, loss[1];
        const double is = hn_loss_divergence(&workers, (hn_divergence)i, hn_mat_of(x, 1, 2), hn_mat_of(p, 1, 2), NULL,
                                             weight, hn_mat_of(x, 1, 2), loss);
        assert_true(fabs(is - want[i]) < 1e-12);
    }
}

/* ---- models -------------------------------------------------------------------------------------------------------- */

typedef struct model_case {
    hn_student_net *net;
    hn_net_batch batch;
    hn_real *w;
} model_case;

static double model_value(void *of) {
    model_case *o = of;
    return hn_student_net_loss(o->net, o->w, &o->batch, NULL);
}

static void check_model(hn_divergence d, bool head_norms) {
    static const int start[] = {0, 5, 6, 15}, before[] = {2, 7, 0},
                     token[15] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9};
    static const hn_real weight[15] = {0, 1, 1, 1, .5, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1};
    const hn_student_shape s = {.hidden = 8,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 2,
                                .ffn = 6,
                                .layers = 2,
                                .vocab = 10,
                                .eps = 1e-3,
                                .theta = 50,
                                .head_norms = head_norms};
    const size_t n = hn_student_count(&s);
    uint64_t seed = 27;
    hunch_error err;
    const hn_mat table = wide_matrix(10, 8, 0, &seed), head = wide_matrix(9, 8, 0, &seed);
    const hn_mat dist = wide_matrix(15, 9, 1, &seed), logits = copy_of(dist);
    model_case o = {.batch = {.texts = 3, .start = start, .before = before, .token = token, .dist = dist,
                              .weight = weight}, .w = numbers(n, &seed)};
    hn_target_dist(&workers, logits, NULL, dist, NULL, NULL);
    assert_int_equal(hn_student_net_open(&o.net, &workers, &s, d, table, head, 15, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    assert_true(fabs(hn_student_net_loss(o.net, o.w, &o.batch, g) - model_value(&o)) < 1e-12);
    for (int part = 0; part < hn_student_parts(&s); part++) {
        char name[80];
        const hn_mat x = hn_student_part_of(&s, part, o.w);
        hn_student_part_name(&s, part, name);
        if (x.rows > 0)
            check_gradient(name, model_value, &o, x.p, hn_student_part_of(&s, part, g).p,
                           (size_t)x.rows * (size_t)x.cols);
    }
    hn_student_net_close(o.net);
    const hn_mat all[] = {table, head, dist, logits};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i].p);
    hn_free(g);
    hn_free(o.w);
}

static void test_models(void **state) {
    (void)state;
    check_model(HN_KL_FORWARD, false);
    check_model(HN_KL_REVERSE, true);
    check_model(HN_JSD, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_divergences), cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, open_workers, close_workers);
}
