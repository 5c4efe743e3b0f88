/* SPDX-License-Identifier: Apache-2.0 */
/* golden_train_eagle3_test.c - an EAGLE-3 head in training against PyTorch: gradients of a batch, and the losses of ten
 * steps at every level; the same bits for any number of workers; sums of batches; rows at the ends of texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/train_golden.h"
#include "train/math/adamw.h"
#include "train/nets/eagle3_net.h"
#include "train/math/loss/loss.h"

static int open_eagle3(void **state) {
    (void)state;
    must(hn_source_open_safetensors(&file, data_path("train/eagle3.safetensors"), err));
    return 0;
}

static int close_eagle3(void **state) {
    (void)state;
    hn_source_close(&file);
    return 0;
}

enum { BATCHES = 2 };

typedef struct training {
    hn_eagle3_shape shape;
    int steps;
    hn_eagle3_net *net;
    hn_net_batch batch[BATCHES];
    int token[BATCHES][MOST_IDS], start[BATCHES][MOST_IDS];
    hn_mat table, taps[BATCHES], dist[BATCHES], mask[BATCHES];
    size_t n;
    hn_real *w, *g, *mean, *square;
} training;

static void open_batch(training *t, int i, const int *kept) {
    char name[20];
    snprintf(name, sizeof name, "batch%d", i);
    const int texts = ids(name, "start", t->start[i]) - 1, rows = ids(name, "token", t->token[i]);
    assert_int_equal(t->start[i][texts], rows);
    const hn_mat target = mat(name, "target");
    t->taps[i] = mat(name, "taps");
    t->mask[i] = mat(name, "mask");
    t->dist[i] = hn_mat_of(hn_zalloc((size_t)rows * (size_t)t->shape.vocab, sizeof(hn_real)), rows, t->shape.vocab);
    hn_target_dist(&workers, target, kept, t->dist[i], NULL, NULL);
    t->batch[i] = (hn_net_batch){.texts = texts, .start = t->start[i], .token = t->token[i], .state = t->taps[i], .dist = t->dist[i],
                             .weight = t->mask[i].p};
    FREE(target);
}

/* With the weights of the goldens. */
static void open_training(training *t, bool norm_before_residual) {
    int s[MOST_IDS], kept[MOST_IDS];
    const golden_tensor shape = get_golden(file, "shape"), all_kept = get_golden(file, "kept");
    for (size_t i = 0; i < shape.n; i++) s[i] = (int)shape.data[i];
    for (size_t i = 0; i < all_kept.n; i++) kept[i] = (int)all_kept.data[i];
    *t = (training){.shape = {{{s[0], s[2], s[3], s[4], s[5], 1e-5, 10000}}, s[1], s[6], norm_before_residual},
                    .steps = s[8]};
    const golden_tensor table = get_golden(file, "table");
    t->table = hn_mat_of(hn_alloc(table.n * sizeof(hn_real)), s[7], s[0]);
    memcpy(t->table.p, table.data, table.n * sizeof(hn_real));
    t->n = hn_eagle3_count(&t->shape);
    t->w = hn_zalloc(t->n, sizeof *t->w);
    t->g = hn_zalloc(t->n, sizeof *t->g);
    t->mean = hn_zalloc(t->n, sizeof *t->mean);
    t->square = hn_zalloc(t->n, sizeof *t->square);
    for (int i = 0; i < HN_EAGLE3_PARTS; i++) {
        const golden_tensor w = get("w", hn_eagle3_part_name((hn_eagle3_part)i));
        const hn_mat part = hn_eagle3_part_of(&t->shape, (hn_eagle3_part)i, t->w);
        assert_int_equal(w.n, part.rows * part.cols);
        memcpy(part.p, w.data, w.n * sizeof *w.data);
    }
    for (int i = 0; i < BATCHES; i++) open_batch(t, i, kept);
    must(hn_eagle3_net_open(&t->net, &workers, &t->shape, t->steps, 0.8, t->table, MOST_ROWS, err));
}

static void close_training(training *t) {
    hn_eagle3_net_close(t->net);
    for (int i = 0; i < BATCHES; i++) FREE(t->taps[i], t->dist[i], t->mask[i]);
    hn_free(t->table.p);
    hn_free(t->w);
    hn_free(t->g);
    hn_free(t->mean);
    hn_free(t->square);
}

/* Ten steps as make_train_goldens.py takes them; losses [10][steps], norms [10]. */
static void train(training *t, double *losses, double *norms) {
    hn_adamw o = {0.9, 0.95, 1e-8, 0.01, t->mean, t->square, 0};
    for (int i = 0; i < 10; i++) {
        memset(t->g, 0, t->n * sizeof *t->g);
        hn_eagle3_net_loss(t->net, t->w, &t->batch[i % BATCHES], t->g, losses + i * t->steps);
        norms[i] = hn_gradient_norm(&workers, t->g, t->n);
        hn_adamw_step(&workers, &o, t->w, t->g, t->n, hn_clip_factor(norms[i], 2),
                      hn_learning_rate(i, 3, 12, 0.01, 0.001));
    }
}

static void check_training(bool norm_before_residual) {
    const char *name = norm_before_residual ? "normed" : "plain";
    training t;
    double losses[10 * HN_MOST_STEPS], norms[10], first[HN_MOST_STEPS];
    open_training(&t, norm_before_residual);
    const golden_tensor want = get(name, "losses"), want_norms = get(name, "norms");
    hn_eagle3_net_loss(t.net, t.w, &t.batch[0], t.g, first);
    for (int i = 0; i < HN_EAGLE3_PARTS; i++) {
        char part[80];
        snprintf(part, sizeof part, "d.%s", hn_eagle3_part_name((hn_eagle3_part)i));
        check(name, part, hn_eagle3_part_of(&t.shape, (hn_eagle3_part)i, t.g).p, 2e-5);
    }
    train(&t, losses, norms);
    assert_int_equal(want.n, 10 * t.steps);
    for (size_t i = 0; i < want.n; i++)
        if (!(fabs(losses[i] - (double)want.data[i]) <= 1e-4))
            fail_msg("%s: loss %zu is %g, not %g", name, i, losses[i], (double)want.data[i]);
    for (int i = 0; i < 10; i++) assert_true(fabs(norms[i] - (double)want_norms.data[i]) <= 1e-3);
    close_training(&t);
}

static void test_ten_losses(void **state) {
    (void)state;
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        open_workers(isa, 2, HN_PRODUCTS_F32);
        check_training(false);
        check_training(true);
        close_workers();
    }
}

/* Products of bf16 give slightly different weights. */
static void test_bf16_learns_as_well(void **state) {
    (void)state;
    if (!hn_isa_has(HN_ISA_AVX512BF16)) skip();
    for (hn_isa isa = HN_ISA_AVX512BF16; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        if (!hn_isa_includes(isa, HN_ISA_AVX512BF16)) continue;
        training t;
        double losses[10 * HN_MOST_STEPS], norms[10];
        open_workers(isa, 2, HN_PRODUCTS_BF16);
        open_training(&t, false);
        train(&t, losses, norms);
        const golden_tensor want = get("plain", "losses");
        for (size_t i = 0; i < want.n; i++) assert_true(fabs(losses[i] - (double)want.data[i]) <= 0.1);
        close_training(&t);
        close_workers();
    }
}

static void test_bits_do_not_depend_on_workers(void **state) {
    (void)state;
    training one, t;
    double losses[2][10 * HN_MOST_STEPS], norms[2][10];
    for (int products = HN_PRODUCTS_F32; products <= HN_PRODUCTS_BF16; products++) {
        if (products == HN_PRODUCTS_BF16 && !hn_isa_includes(hn_isa_best(), HN_ISA_AVX512BF16)) continue;
        open_workers(hn_isa_best(), 1, (hn_products)products);
        open_training(&one, true);
        train(&one, losses[0], norms[0]);
        hn_eagle3_net_close(one.net);
        one.net = NULL;
        close_workers();
        for (int threads = 2; threads <= 3; threads++) {
            open_workers(hn_isa_best(), threads, (hn_products)products);
            open_training(&t, true);
            train(&t, losses[1], norms[1]);
            assert_memory_equal(one.w, t.w, t.n * sizeof *t.w);
            assert_memory_equal(one.square, t.square, t.n * sizeof *t.w);
            assert_memory_equal(losses[0], losses[1], sizeof(double) * 10 * (size_t)t.steps);
            assert_memory_equal(norms[0], norms[1], sizeof norms[0]);
            close_training(&t);
            close_workers();
        }
        close_training(&one);
    }
}

/* Gradients accumulate: two batches one after the other give their sum. Without a gradient the losses are the same. */
static void test_batches_add_up(void **state) {
    (void)state;
    training t;
    double losses[HN_MOST_STEPS], same[HN_MOST_STEPS];
    open_workers(hn_isa_best(), 2, HN_PRODUCTS_F32);
    open_training(&t, false);
    hn_real *second = hn_zalloc(t.n, sizeof *second);
    hn_eagle3_net_loss(t.net, t.w, &t.batch[1], second, losses);
    hn_eagle3_net_loss(t.net, t.w, &t.batch[1], NULL, same);
    assert_memory_equal(losses, same, sizeof(double) * (size_t)t.steps);
    hn_eagle3_net_loss(t.net, t.w, &t.batch[0], t.g, losses);
    for (size_t i = 0; i < t.n; i++) second[i] += t.g[i];
    hn_eagle3_net_loss(t.net, t.w, &t.batch[1], t.g, losses);
    assert_true(largest_difference(second, t.g, t.n) < 1e-6);
    hn_free(second);
    close_training(&t);
    close_workers();
}

/* At step k row i reads the token k places later, and its label is the distribution there; after the end of its text there is no
 * loss, and nothing of the next text is read. */
static void test_rows_without_a_future_have_no_loss(void **state) {
    (void)state;
    training t;
    double losses[HN_MOST_STEPS];
    open_workers(hn_isa_best(), 2, HN_PRODUCTS_F32);
    open_training(&t, false);
    static const int start[] = {0, 1, 3};
    hn_net_batch b = t.batch[0];
    hn_real weight[3] = {1, 1, 1};
    b.texts = 2;
    b.start = start;
    b.weight = weight;
    hn_eagle3_net_loss(t.net, t.w, &b, t.g, losses);
    assert_true(losses[0] > 0 && losses[1] > 0 && losses[2] == 0);
    const double before = losses[1];
    t.dist[0].p[0] += 1; /* read only by step 0: row 1 of a text has no step after row 0 of another */
    hn_eagle3_net_loss(t.net, t.w, &b, NULL, losses);
    assert_true(losses[1] == before);
    t.token[0][2] = (t.token[0][2] + 1) % 64; /* read by row 1 at step 1 */
    hn_eagle3_net_loss(t.net, t.w, &b, NULL, losses);
    assert_true(losses[1] != before);
    close_training(&t);
    close_workers();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_losses),
        cmocka_unit_test(test_bf16_learns_as_well),
        cmocka_unit_test(test_bits_do_not_depend_on_workers),
        cmocka_unit_test(test_batches_add_up),
        cmocka_unit_test(test_rows_without_a_future_have_no_loss),
    };
    return cmocka_run_group_tests(tests, open_eagle3, close_eagle3);
}
