/* SPDX-License-Identifier: Apache-2.0 */
/* golden_train_ops_test.c - the trainer's operations against PyTorch: outputs and gradients of every operation, losses,
 * AdamW, clipping and learning rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/train_golden.h"
#include "train/math/adamw.h"
#include "train/math/layers/layers_back.h"
#include "train/math/loss/loss.h"

static int open_operations(void **state) {
    (void)state;
    must(hn_source_open_safetensors(&file, data_path("train/operations.safetensors"), err));
    open_workers(hn_isa_best(), 2, HN_PRODUCTS_F32);
    return 0;
}

static int close_operations(void **state) {
    (void)state;
    close_workers();
    hn_source_close(&file);
    return 0;
}

static const double NEAR = 3e-6;

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void test_linear(void **state) {
    (void)state;
    const hn_mat x = mat("linear", "x"), w = mat("linear", "w"), bias = mat("linear", "bias"), dy = mat("linear", "dy");
    const hn_mat y = zeros_like(dy), dx = zeros_like(x), dw = zeros_like(w), dbias = zeros_like(bias);
    hn_linear(&workers, x, w, bias.p, y);
    check("linear", "y", y.p, NEAR);
    hn_linear_back(&workers, dy, x, w, dx, false, dw, dbias.p);
    check("linear", "dx", dx.p, NEAR);
    check("linear", "dw", dw.p, NEAR);
    check("linear", "dbias", dbias.p, NEAR);
    FREE(x, w, bias, dy, y, dx, dw, dbias);
}

static void test_norm(void **state) {
    (void)state;
    const hn_mat x = mat("norm", "x"), gain = mat("norm", "gain"), dy = mat("norm", "dy");
    const hn_mat y = zeros_like(dy), dgain = zeros_like(gain);
    hn_real inverse[8];
    hn_rms_norm(&workers, x, gain.p, 1e-2f, y, inverse);
    check("norm", "y", y.p, NEAR);
    hn_rms_norm_back(&workers, dy, x, gain.p, inverse, dy, false, dgain.p); /* in place */
    check("norm", "dx", dy.p, NEAR);
    check("norm", "dgain", dgain.p, NEAR);
    FREE(x, gain, dy, y, dgain);
}

static void test_joined(void **state) {
    (void)state;
    const hn_mat x[2] = {mat("joined", "a"), mat("joined", "b")},
                 gain[2] = {mat("joined", "gain_a"), mat("joined", "gain_b")};
    const hn_mat dy = mat("joined", "dy"), y = zeros_like(dy);
    static const char *const dx_name[] = {"da", "db"}, *const dgain_name[] = {"dgain_a", "dgain_b"};
    for (int i = 0; i < 2; i++) {
        const hn_mat dx = zeros_like(x[i]), dgain = zeros_like(gain[i]);
        hn_real inverse[8];
        hn_rms_norm(&workers, x[i], gain[i].p, 1e-2f, hn_mat_cols(y, 5 * i, 5), inverse);
        hn_rms_norm_back(&workers, hn_mat_cols(dy, 5 * i, 5), x[i], gain[i].p, inverse, dx, false, dgain.p);
        check("joined", dx_name[i], dx.p, NEAR);
        check("joined", dgain_name[i], dgain.p, NEAR);
        FREE(dx, dgain);
    }
    check("joined", "y", y.p, NEAR);
    FREE(x[0], x[1], gain[0], gain[1], dy, y);
}

static void test_embed_rotate_swiglu(void **state) {
    (void)state;
    int id[MOST_IDS];
    const hn_mat table = mat("embed", "table"), drows = mat("embed", "dy"), rows = zeros_like(drows),
                 dtable = zeros_like(table);
    ids("embed", "ids", id);
    hn_embed(&workers, table, id, rows);
    hn_embed_back(&workers, drows, id, dtable);
    check("embed", "y", rows.p, 0);
    check("embed", "dtable", dtable.p, NEAR);
    const hn_mat x = mat("rotate", "x"), dx = mat("rotate", "dy");
    ids("rotate", "position", id);
    hn_rotate(&workers, x, 8, 500, id, 2);
    hn_rotate_back(&workers, dx, 8, 500, id, 2);
    check("rotate", "y", x.p, 1e-4); /* torch computes angles in float */
    check("rotate", "dx", dx.p, 1e-4);
    const hn_mat gate = mat("swiglu", "gate"), up = mat("swiglu", "up"), dy = mat("swiglu", "dy"), y = zeros_like(dy);
    hn_swiglu(&workers, gate, up, y);
    hn_swiglu_back(&workers, dy, gate, up, gate, up);
    check("swiglu", "y", y.p, NEAR);
    check("swiglu", "dgate", gate.p, NEAR);
    check("swiglu", "dup", up.p, NEAR);
    FREE(table, drows, rows, dtable, x, dx, gate, up, dy, y);
}

static void test_attention(void **state) {
    (void)state;
    static const int start[] = {0, 5, 6, 75};
    hn_attention a = {
        .heads = 4, .kv_heads = 2, .head_dim = 4, .texts = 3, .start = start, .step = 2, .q = mat("attention", "q")};
    const hn_mat dy = mat("attention", "dy"), y = zeros_like(dy), dq = zeros_like(a.q);
    hn_attention_gradients d = {.q = dq};
    hn_real log_sums[75 * 4];
    char name[20];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "k%d", i);
        d.k[i] = zeros_like(a.k[i] = mat("attention", name));
        name[0] = 'v';
        d.v[i] = zeros_like(a.v[i] = mat("attention", name));
    }
    hn_attend(&workers, &a, y, log_sums);
    hn_attend_back(&workers, &a, y, log_sums, dy, &d);
    check("attention", "y", y.p, NEAR);
    check("attention", "dq", dq.p, NEAR);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "dk%d", i);
        check("attention", name, d.k[i].p, NEAR);
        name[1] = 'v';
        check("attention", name, d.v[i].p, NEAR);
        FREE(a.k[i], a.v[i], d.k[i], d.v[i]);
    }
    FREE(a.q, dy, y, dq);
}

static void check_loss(double sum, const char *what, const char *name, const hn_real *losses, const hn_real *weight,
                       hn_mat dx) {
    char gradient[40];
    const golden_tensor want = get(what, name);
    double expected = 0;
    for (size_t r = 0; r < want.n; r++) {
        expected += (double)weight[r] * (double)want.data[r];
        if (weight[r] > 0)
            assert_true(fabs((double)(losses[r] - want.data[r])) <= 1e-6 * fmax(1, (double)want.data[r]));
    }
    assert_true(fabs(sum - expected) <= 1e-5);
    snprintf(gradient, sizeof gradient, "%s.dx", name);
    check(what, gradient, dx.p, NEAR);
}

static void test_losses(void **state) {
    (void)state;
    static const char *const of[] = {"loss.whole", "loss.reduced"};
    const hn_mat weight = mat("loss", "weight"), target = mat("law", "logits");
    int id[MOST_IDS], kept[MOST_IDS];
    hn_real losses[8];
    const int n_kept = ids("law", "kept", kept);
    for (int i = 0; i < 2; i++) {
        const hn_mat x = mat(of[i], "x"), dist = zeros_like(x), dx = zeros_like(x), in_place = copy_of(x);
        hn_real inside[8], covered[8];
        ids(of[i], "ids", id);
        hn_target_dist(&workers, target, i ? kept : NULL, dist, inside, covered);
        if (i) check("law", "inside", inside, 0);
        if (i) check("law", "covered", covered, NEAR);
        if (i) check("law", "reduced", dist.p, NEAR);
        assert_true(i ? dist.cols == n_kept : inside[0] == 1 && inside[2] == 1 && covered[2] == 1);
        check_loss(hn_loss_hard(&workers, x, id, weight.p, dx, losses), of[i], "hard", losses, weight.p, dx);
        check_loss(hn_loss_soft(&workers, x, dist, NULL, true, weight.p, dx, losses), of[i], "kl", losses, weight.p, dx);
        check_loss(hn_loss_soft(&workers, in_place, dist, NULL, false, weight.p, in_place, losses), of[i], "soft", losses,
                   weight.p, in_place);
        FREE(x, dist, dx, in_place);
    }
    const hn_mat x = mat("smooth", "x"), y = mat("smooth", "target"), dx = zeros_like(x);
    hn_loss_smooth_l1(&workers, x, y, weight.p, dx, losses);
    check("smooth", "dx", dx.p, NEAR);
    losses[1] = get("smooth", "loss").data[1]; /* which has no weight */
    check("smooth", "loss", losses, NEAR);
    FREE(weight, target, x, y, dx);
}

/* The values of a row of weight 0 have no effect, even NaN, nor has its token. */
static void test_masked_rows_are_not_looked_at(void **state) {
    (void)state;
    const hn_mat weight = mat("loss", "weight"), x = mat("loss.whole", "x"), dist = zeros_like(x), dx = zeros_like(x);
    const hn_mat target = mat("law", "logits");
    const int id[] = {1, -1, 29, 3};
    hn_real losses[4];
    hn_target_dist(&workers, target, NULL, dist, NULL, NULL);
    assert_true(weight.p[1] == 0);
    for (int c = 0; c < x.cols; c++) hn_mat_row(x, 1)[c] = hn_mat_row(dist, 1)[c] = hn_mat_row(dx, 1)[c] = NAN;
    check_loss(hn_loss_hard(&workers, x, id, weight.p, dx, losses), "loss.whole", "hard", losses, weight.p, dx);
    check_loss(hn_loss_soft(&workers, x, dist, NULL, false, weight.p, dx, losses), "loss.whole", "soft", losses, weight.p, dx);
    const double smooth = hn_loss_smooth_l1(&workers, x, dist, weight.p, dx, losses);
    assert_true(smooth == smooth);
    for (int c = 0; c < x.cols; c++) assert_true(hn_mat_row(dx, 1)[c] == 0);
    FREE(weight, x, dist, dx, target);
}

/* ---- the optimiser ----------------------------------------------------------------------------------------------- */

static void test_adamw(void **state) {
    (void)state;
    const golden_tensor g = get("adamw", "g"), seen = get("adamw", "seen");
    const hn_mat w = mat("adamw", "w"), mean = zeros_like(w), square = zeros_like(w);
    hn_adamw o = {0.9, 0.95, 1e-8, 0.1, mean.p, square.p, 0};
    for (int i = 0; i < 12; i++) {
        hn_adamw_step(&workers, &o, w.p, g.data + 37 * i, 37, 1, 0.02);
        assert_true(largest_difference(w.p, seen.data + 37 * i, 37) <= 5e-7);
    }
    FREE(w, mean, square);
}

/* With more numbers than the workers handles at once, each is updated as if alone; the factor applies to the gradient. */
static void test_adamw_in_pieces(void **state) {
    (void)state;
    const size_t n = (size_t)8192 * 512 + 8192 + 5;
    uint64_t seed = 3;
    hn_real *w = numbers(n, &seed), *g = numbers(n, &seed), *mean = hn_zalloc(n, sizeof *mean),
            *square = hn_zalloc(n, sizeof *square);
    hn_adamw o = {0.9, 0.999, 1e-8, 0.01, mean, square, 0};
    static const size_t places[] = {0, 8191, 8192, (size_t)8192 * 512 - 1, (size_t)8192 * 512, (size_t)8192 * 513 + 4};
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)g[i] * (double)g[i];
    assert_true(fabs(hn_gradient_norm(&workers, g, n) / sqrt(sum) - 1) < 1e-12);
    hn_real alone[6], half[6], means[6] = {0}, squares[6] = {0};
    for (int i = 0; i < 6; i++) alone[i] = w[places[i]], half[i] = g[places[i]] / 2;
    hn_adamw one = {0.9, 0.999, 1e-8, 0.01, means, squares, 0};
    hn_adamw_step(&workers, &one, alone, half, 6, 1, 0.1);
    hn_adamw_step(&workers, &o, w, g, n, 0.5, 0.1);
    for (int i = 0; i < 6; i++) assert_true(alone[i] == w[places[i]] && means[i] == mean[places[i]]);
    g[n - 2] = NAN;
    assert_true(isnan(hn_gradient_norm(&workers, g, n)));
    hn_free(w);
    hn_free(g);
    hn_free(mean);
    hn_free(square);
}

static void test_clip_and_rates(void **state) {
    (void)state;
    const golden_tensor g = get("adamw", "g");
    static const struct {
        const char *name;
        double most;
    } clips[] = {{"clipped", 0.5}, {"kept", 100}};
    const golden_tensor tiny = get("clip", "tiny");
    const double norm = hn_gradient_norm(&workers, g.data, 37);
    assert_true(fabs(norm - (double)get("clip", "norm").data[0]) < 1e-5);
    for (int i = 0; i < 2; i++) {
        const golden_tensor want = get("clip", clips[i].name);
        const hn_real factor = (hn_real)hn_clip_factor(norm, clips[i].most);
        for (size_t j = 0; j < 37; j++) assert_true(fabs((double)(g.data[j] * factor - want.data[j])) < 1e-7);
    }
    const double factor = hn_clip_factor(norm * 1e-6, 1e-6); /* where torch's addend to the norm is visible */
    for (size_t j = 0; j < 37; j++) assert_true(fabs((double)g.data[j] * 1e-6 * factor - (double)tiny.data[j]) < 1e-11);
    for (int step = 0; step < 26; step++) {
        assert_true(fabs(hn_learning_rate(step, 5, 25, 0.003, 0.0001) - (double)get("rate", "warm").data[step]) < 1e-9);
        assert_true(fabs(hn_learning_rate(step, 0, 25, 0.003, 0.0001) - (double)get("rate", "cold").data[step]) < 1e-9);
    }
    assert_true(hn_learning_rate(1000, 5, 25, 0.003, 0.0001) == 0.0001);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),         cmocka_unit_test(test_norm),
        cmocka_unit_test(test_joined),         cmocka_unit_test(test_embed_rotate_swiglu),
        cmocka_unit_test(test_attention),      cmocka_unit_test(test_losses),
        cmocka_unit_test(test_masked_rows_are_not_looked_at),
        cmocka_unit_test(test_adamw),          cmocka_unit_test(test_adamw_in_pieces),
        cmocka_unit_test(test_clip_and_rates),
    };
    return cmocka_run_group_tests(tests, open_operations, close_operations);
}
