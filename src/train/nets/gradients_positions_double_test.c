/* SPDX-License-Identifier: Apache-2.0 */
/* gradients_positions_double_test.c - heads that draft the positions 1 to K from one state, and their parts: every
 * backward against finite differences, in double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "train/math/layers/activations.h"
#include "train/math/gradients_for_tests.h"
#include "train/math/loss/loss.h"
#include "train/nets/medusa_net.h"
#include "train/nets/meta_net.h"
#include "train/nets/mlp_net.h"

/* ---- activations --------------------------------------------------------------------------------------------------------- */

typedef struct activation {
    hn_mat z, x, y, dy;
    hn_real *bias;
} activation;

static double silu_value(void *of) {
    const activation *o = of;
    hn_silu_add(&workers, o->z, o->x, o->y);
    return along(o->y, o->dy);
}

static double gelu_value(void *of) {
    const activation *o = of;
    hn_gelu(&workers, o->z, o->bias, o->y);
    return along(o->y, o->dy);
}

static void test_activations(void **state) {
    (void)state;
    uint64_t seed = 3;
    activation o = {wide_matrix(4, 133, 2, &seed), wide_matrix(4, 133, 1, &seed), wide_matrix(4, 133, 0, &seed),
                    wide_matrix(4, 133, 3, &seed), numbers(133, &seed)};
    for (size_t i = 0; i < 4 * o.z.ld; i++) o.z.p[i] *= 3;
    hn_mat dz = copy_of(o.z);
    hn_silu_back(&workers, o.dy, dz, dz); /* in place */
    check_mat("z", silu_value, &o, o.z, dz);
    check_mat("x", silu_value, &o, o.x, o.dy);
    hn_gelu_back(&workers, o.dy, o.z, o.bias, dz);
    check_mat("z", gelu_value, &o, o.z, dz);
    hn_real db[133] = {0};
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 133; c++) db[c] += hn_mat_row(dz, r)[c];
    check_gradient("bias", gelu_value, &o, o.bias, db, 133);
    const hn_mat all[] = {o.z, o.x, o.y, o.dy, dz};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i].p);
    hn_free(o.bias);
}

/* ---- heads --------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 15, HIDDEN = 6, VOCAB = 9, TOKENS = 10, POSITIONS = 3 };
static const double decay = 0.7;

/* Texts of 5, 1 and 9 rows: the second has no row with a token two places later. */
typedef struct data {
    hn_net_batch batch;
    hn_mat table, dist;
} data;

static data data_of(uint64_t *seed) {
    static const int start[] = {0, 5, 6, 15}, token[ROWS] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9};
    static const hn_real weight[ROWS] = {0, 1, 1, 1, .5, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1};
    data d = {.table = wide_matrix(TOKENS, HIDDEN, 0, seed), .dist = wide_matrix(ROWS, VOCAB, 1, seed)};
    const hn_mat logits = copy_of(d.dist);
    hn_target_dist(&workers, logits, NULL, d.dist, NULL, NULL);
    hn_free(logits.p);
    d.batch = (hn_net_batch){.texts = 3, .start = start, .token = token, .dist = d.dist, .weight = weight};
    d.batch.state = wide_matrix(ROWS, HIDDEN, 1, seed);
    return d;
}

static void data_free(data *d) {
    hn_free(d->table.p);
    hn_free(d->dist.p);
    hn_free(d->batch.state.p);
}

/* The whole loss is the sum of the positions' losses times their decay, with and without gradient. */
static void check_whole(double value, double again, const double *losses) {
    double sum = 0, share = 1;
    for (int k = 0; k < POSITIONS; k++, share *= decay) sum += share * losses[k];
    assert_true(fabs(sum - value) < 1e-12 && fabs(value - again) < 1e-12);
}

typedef struct medusa_case {
    hn_medusa_net *net;
    data d;
    hn_real *w;
} medusa_case;

static double blocks_value(void *of) {
    medusa_case *o = of;
    double losses[POSITIONS];
    return hn_medusa_net_loss(o->net, o->w, &o->d.batch, NULL, losses);
}

static void check_blocks(bool grounded, bool output_bias, int resblocks) {
    const hn_medusa_shape s = {HIDDEN, POSITIONS, resblocks, VOCAB, grounded, output_bias};
    const size_t n = hn_medusa_count(&s);
    uint64_t seed = 31;
    hunch_error err;
    medusa_case o = {.d = data_of(&seed), .w = numbers(n, &seed)};
    assert_int_equal(hn_medusa_net_open(&o.net, &workers, &s, decay, o.d.table, 20, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double losses[POSITIONS];
    check_whole(hn_medusa_net_loss(o.net, o.w, &o.d.batch, g, losses), blocks_value(&o), losses);
    for (int part = 0; part < hn_medusa_parts(&s); part++) {
        const hn_mat x = hn_medusa_part_of(&s, part, o.w);
        char name[40];
        snprintf(name, sizeof name, "part %d of kind %d", part, (int)hn_medusa_place_of(&s, part).kind);
        check_gradient(name, blocks_value, &o, x.p, hn_medusa_part_of(&s, part, g).p, (size_t)x.rows * (size_t)x.cols);
    }
    hn_medusa_net_close(o.net);
    data_free(&o.d);
    hn_free(g);
    hn_free(o.w);
}

static void test_medusa(void **state) {
    (void)state;
    check_blocks(false, false, 1);
    check_blocks(false, true, 2);
}

static void test_hydra(void **state) {
    (void)state;
    check_blocks(true, true, 1);
    check_blocks(true, false, 2);
}

typedef struct mlp_case {
    hn_mlp_net *net;
    data d;
    hn_real *w;
} mlp_case;

static double mlp_value(void *of) {
    mlp_case *o = of;
    double losses[POSITIONS];
    return hn_mlp_net_loss(o->net, o->w, &o->d.batch, NULL, losses);
}

/* Through the states of all positions; a token that is not in the batch has no gradient. */
static void check_mlp(bool cell) {
    const hn_mlp_shape s = {HIDDEN, 5, POSITIONS, TOKENS, VOCAB, cell};
    const size_t n = hn_mlp_count(&s);
    uint64_t seed = cell ? 40 : 33;
    hunch_error err;
    mlp_case o = {.d = data_of(&seed), .w = numbers(n, &seed)};
    assert_int_equal(hn_mlp_net_open(&o.net, &workers, &s, decay, 20, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double losses[POSITIONS];
    check_whole(hn_mlp_net_loss(o.net, o.w, &o.d.batch, g, losses), mlp_value(&o), losses);
    for (int part = 0; part < HN_MLP_PARTS; part++) {
        const hn_mat x = hn_mlp_part_of(&s, (hn_mlp_part)part, o.w);
        if (x.rows == 0) continue;
        check_gradient(hn_mlp_part_name(&s, (hn_mlp_part)part), mlp_value, &o, x.p, hn_mlp_part_of(&s, (hn_mlp_part)part, g).p,
                       (size_t)x.rows * (size_t)x.cols);
    }
    hn_mlp_net_close(o.net);
    data_free(&o.d);
    hn_free(g);
    hn_free(o.w);
}

static void test_mlp(void **state) {
    (void)state;
    check_mlp(false);
    check_mlp(true);
}

typedef struct meta_case {
    hn_meta_net *net;
    data d;
    hn_mat head;
    hn_real *w;
} meta_case;

static double meta_value(void *of) {
    meta_case *o = of;
    double losses[POSITIONS];
    return hn_meta_net_loss(o->net, o->w, &o->d.batch, NULL, losses);
}

/* Through the keys and values of rows that have no loss themselves. The state is the last columns of a row's input. */
static void test_meta(void **state) {
    (void)state;
    const hn_meta_shape s = {{{HIDDEN, 3, 1, 2, 5, 1e-5, 100}}, POSITIONS};
    const size_t n = hn_meta_count(&s);
    uint64_t seed = 37;
    hunch_error err;
    meta_case o = {.d = data_of(&seed), .head = wide_matrix(VOCAB, HIDDEN, 0, &seed), .w = numbers(n, &seed)};
    assert_int_equal(hn_meta_net_open(&o.net, &workers, &s, decay, o.head, 20, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double losses[POSITIONS];
    check_whole(hn_meta_net_loss(o.net, o.w, &o.d.batch, g, losses), meta_value(&o), losses);
    for (int part = 0; part < hn_meta_parts(&s); part++) {
        const hn_mat x = hn_meta_part_of(&s, part, o.w);
        char name[80];
        hn_meta_part_name(&s, part, name);
        check_gradient(name, meta_value, &o, x.p, hn_meta_part_of(&s, part, g).p, (size_t)x.rows * (size_t)x.cols);
    }
    hn_meta_net_close(o.net);
    data_free(&o.d);
    hn_free(o.head.p);
    hn_free(g);
    hn_free(o.w);
}

/* A text that ends before a position has no loss there, and a batch of such texts has no loss and no gradient. */
static void test_short_texts(void **state) {
    (void)state;
    static const int start[] = {0, 1, 2}, token[] = {3, 4};
    static const hn_real weight[] = {1, 1};
    const hn_medusa_shape s = {HIDDEN, POSITIONS, 1, VOCAB, true, true};
    const size_t n = hn_medusa_count(&s);
    uint64_t seed = 31;
    hunch_error err;
    medusa_case o = {.d = data_of(&seed), .w = numbers(n, &seed)};
    o.d.batch.texts = 2;
    o.d.batch.start = start;
    o.d.batch.token = token;
    o.d.batch.weight = weight;
    assert_int_equal(hn_medusa_net_open(&o.net, &workers, &s, decay, o.d.table, 20, &err), HUNCH_OK);
    hn_real *g = hn_zalloc(n, sizeof *g);
    double losses[POSITIONS] = {9, 9, 9};
    hn_medusa_net_loss(o.net, o.w, &o.d.batch, g, losses);
    assert_true(losses[0] > 0 && losses[1] == 0 && losses[2] == 0);
    for (int part = 0; part < hn_medusa_parts(&s); part++) {
        const hn_mat x = hn_medusa_part_of(&s, part, g);
        double sum = 0;
        for (size_t i = 0; i < (size_t)x.rows * (size_t)x.cols; i++) sum += fabs(x.p[i]);
        assert_true((sum > 0) == (hn_medusa_place_of(&s, part).position == 0));
    }
    hn_medusa_net_close(o.net);
    data_free(&o.d);
    hn_free(g);
    hn_free(o.w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_medusa),
        cmocka_unit_test(test_hydra),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_meta),
        cmocka_unit_test(test_short_texts),
    };
    return cmocka_run_group_tests(tests, open_workers, close_workers);
}
