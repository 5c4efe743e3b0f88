/* SPDX-License-Identifier: Apache-2.0 */
/* golden_train_mtp_test.c - a module of multi-token prediction, trained in a chain, against PyTorch: gradients of a batch, and
 * the losses of ten steps; the same bits for any number of workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/train_golden.h"
#include "train/math/adamw.h"
#include "train/nets/mtp_net.h"

enum { BATCHES = 2 };

typedef struct training {
    hn_mtp_shape shape;
    int steps;
    hn_mtp_net *net;
    hn_net_batch batch[BATCHES];
    int token[BATCHES][MOST_IDS], start[BATCHES][MOST_IDS];
    hn_mat table, head, mask[BATCHES];
    size_t n;
    hn_real *w, *g, *mean, *square;
} training;

static int open_mtp(void **state) {
    (void)state;
    must(hn_source_open_safetensors(&file, data_path("train/mtp.safetensors"), err));
    return 0;
}

static int close_mtp(void **state) {
    (void)state;
    hn_source_close(&file);
    return 0;
}

static hn_mat whole(const char *name) {
    const golden_tensor g = get_golden(file, name);
    const hn_mat m = hn_mat_of(hn_alloc(g.n * sizeof *g.data), (int)(g.n / g.cols), (int)g.cols);
    assert_non_null(m.p);
    memcpy(m.p, g.data, g.n * sizeof *g.data);
    return m;
}

static void open_batch(training *t, int i) {
    char name[20];
    snprintf(name, sizeof name, "batch%d", i);
    const int texts = ids(name, "start", t->start[i]) - 1;
    assert_int_equal(t->start[i][texts], ids(name, "token", t->token[i]));
    t->mask[i] = mat(name, "mask");
    t->batch[i] = (hn_net_batch){.texts = texts, .start = t->start[i], .token = t->token[i], .state = mat(name, "state"),
                             .dist = mat(name, "law"), .weight = t->mask[i].p};
}

static void open_training(training *t) {
    const golden_tensor s = get_golden(file, "shape");
    const int hidden = (int)s.data[0], heads = (int)s.data[1], kv = (int)s.data[2], dim = (int)s.data[3];
    *t = (training){.shape = {{{hidden, heads, kv, dim, (int)s.data[4], 1e-5, 10000}}, 1}, .steps = (int)s.data[5]};
    t->table = whole("table");
    t->head = whole("head");
    t->n = hn_mtp_count(&t->shape);
    t->w = hn_zalloc(t->n, sizeof *t->w);
    t->g = hn_zalloc(t->n, sizeof *t->g);
    t->mean = hn_zalloc(t->n, sizeof *t->mean);
    t->square = hn_zalloc(t->n, sizeof *t->square);
    for (int i = 0; i < HN_MTP_PARTS; i++) {
        const hn_mat part = hn_mtp_part_of(&t->shape, i, t->w);
        char name[80];
        hn_mtp_part_name(i, name);
        const golden_tensor w = get("w", name);
        assert_int_equal(w.n, part.rows * part.cols);
        memcpy(part.p, w.data, w.n * sizeof *w.data);
    }
    for (int i = 0; i < BATCHES; i++) open_batch(t, i);
    must(hn_mtp_net_open(&t->net, &workers, &t->shape, t->steps, 0.6, t->table, t->head, MOST_ROWS, err));
}

static void close_training(training *t) {
    hn_mtp_net_close(t->net);
    for (int i = 0; i < BATCHES; i++) FREE(t->batch[i].state, t->batch[i].dist, t->mask[i]);
    FREE(t->table, t->head);
    hn_free(t->w);
    hn_free(t->g);
    hn_free(t->mean);
    hn_free(t->square);
}

/* Ten steps as make_train_goldens.py takes them. */
static void train(training *t, double *losses) {
    hn_adamw o = {0.9, 0.95, 1e-8, 0.01, t->mean, t->square, 0};
    for (int i = 0; i < 10; i++) {
        memset(t->g, 0, t->n * sizeof *t->g);
        hn_mtp_net_loss(t->net, t->w, &t->batch[i % BATCHES], t->g, losses + i * t->steps);
        hn_adamw_step(&workers, &o, t->w, t->g, t->n, hn_clip_factor(hn_gradient_norm(&workers, t->g, t->n), 2), 0.01);
    }
}

static void check_training(void) {
    training t;
    double losses[10 * HN_MOST_STEPS], first[HN_MOST_STEPS], same[HN_MOST_STEPS];
    open_training(&t);
    const golden_tensor want = get("chain", "losses");
    hn_mtp_net_loss(t.net, t.w, &t.batch[0], t.g, first);
    hn_mtp_net_loss(t.net, t.w, &t.batch[0], NULL, same);
    assert_memory_equal(first, same, sizeof(double) * (size_t)t.steps);
    for (int i = 0; i < HN_MTP_PARTS; i++) {
        const hn_mat part = hn_mtp_part_of(&t.shape, i, t.g);
        char name[80], gradient[90];
        hn_mtp_part_name(i, name);
        snprintf(gradient, sizeof gradient, "d.%s", name);
        check("chain", gradient, part.p, 1e-4); /* attention is sharp here: rounding is seen */
    }
    train(&t, losses);
    assert_int_equal(want.n, 10 * t.steps);
    for (size_t i = 0; i < want.n; i++) {
        const double is = losses[i], expected = (double)want.data[i];
        if (!(fabs(is - expected) <= 1e-4)) fail_msg("loss %zu is %g, not %g", i, is, expected);
    }
    close_training(&t);
}

static void test_ten_losses(void **state) {
    (void)state;
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        open_workers(isa, 2, HN_PRODUCTS_F32);
        check_training();
        close_workers();
    }
}

static void test_bits_do_not_depend_on_workers(void **state) {
    (void)state;
    double losses[3][10 * HN_MOST_STEPS];
    hn_real *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        training t;
        open_workers(hn_isa_best(), threads, HN_PRODUCTS_F32);
        open_training(&t);
        train(&t, losses[threads - 1]);
        if (!first) memcpy(first = hn_zalloc(t.n, sizeof *first), t.w, t.n * sizeof *first);
        assert_memory_equal(first, t.w, t.n * sizeof *first);
        assert_memory_equal(losses[0], losses[threads - 1], sizeof(double) * 10 * (size_t)t.steps);
        close_training(&t);
        close_workers();
    }
    hn_free(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_losses),
        cmocka_unit_test(test_bits_do_not_depend_on_workers),
    };
    return cmocka_run_group_tests(tests, open_mtp, close_mtp);
}
