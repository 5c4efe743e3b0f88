/* SPDX-License-Identifier: Apache-2.0 */
/* golden_train_kinds_test.c - heads that draft some positions from one state, in training, by their kinds' tables,
 * against PyTorch: gradients of a batch, and the losses of ten steps; the same bits for any number of workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/train_golden.h"
#include "train/math/adamw.h"
#include "train/learn/learn_kind.h"

enum { BATCHES = 2 };

typedef struct training {
    const hn_learn_kind *kind;
    hn_arch target;
    hn_layer_desc layer;
    hn_target_rows rows;
    hn_learn_options o;
    void *head;
    hn_net_batch batch[BATCHES];
    int token[BATCHES][MOST_IDS], start[BATCHES][MOST_IDS];
    hn_mat table, mask[BATCHES];
    size_t n;
    hn_real *w, *g, *mean, *square;
} training;

static void open_batch(training *t, int i) {
    char name[20];
    snprintf(name, sizeof name, "batch%d", i);
    const int texts = ids(name, "start", t->start[i]) - 1;
    assert_int_equal(t->start[i][texts], ids(name, "token", t->token[i]));
    t->mask[i] = mat(name, "mask");
    t->batch[i] = (hn_net_batch){.texts = texts,
                                   .start = t->start[i],
                                   .token = t->token[i],
                                   .state = mat(name, "state"),
                                   .dist = mat(name, "law"),
                                   .weight = t->mask[i].p};
}

static hn_mat whole(const char *name) {
    const golden_tensor g = get_golden(file, name);
    const hn_mat m = hn_mat_of(hn_alloc(g.n * sizeof *g.data), (int)(g.n / g.cols), (int)g.cols);
    assert_non_null(m.p);
    memcpy(m.p, g.data, g.n * sizeof *g.data);
    return m;
}

/* Its weights by the names of its tensors. */
static void read_weights(training *t) {
    for (int i = 0; i < t->kind->parts(t->head); i++) {
        char name[HN_LEARN_PART_NAME];
        const hn_mat part = t->kind->part(t->head, i, t->w);
        t->kind->part_name(t->head, i, name);
        if (part.rows == 0) continue;
        const golden_tensor w = get("w", name);
        assert_int_equal(w.n, part.rows * part.cols);
        memcpy(part.p, w.data, w.n * sizeof *w.data);
    }
}

static void open_training(training *t, const hn_learn_kind *kind) {
    char path[100];
    snprintf(path, sizeof path, "train/%s.safetensors", kind->name);
    must(hn_source_open_safetensors(&file, data_path(path), err));
    const golden_tensor s = get_golden(file, "shape"); /* hidden, positions, vocabulary */
    *t = (training){.kind = kind, .table = whole("table")};
    t->target.hidden = (int)s.data[0];
    t->target.vocab = t->table.rows;
    t->target.layer = &t->layer;
    t->target.layers = 1;
    t->rows = (hn_target_rows){.embedding = t->table.p};
    t->o = (hn_learn_options){.kind = kind, .unroll = (int)s.data[1], .vocab = (int)s.data[2], .decay = 0.8, .rows = MOST_ROWS};
    const hn_learn_setting setting = {.target = &t->target, .rows = &t->rows, .o = &t->o, .workers = &workers};
    must(kind->open(&t->head, &setting, err));
    t->n = kind->count(t->head);
    t->w = hn_zalloc(t->n, sizeof *t->w);
    t->g = hn_zalloc(t->n, sizeof *t->g);
    t->mean = hn_zalloc(t->n, sizeof *t->mean);
    t->square = hn_zalloc(t->n, sizeof *t->square);
    read_weights(t);
    for (int i = 0; i < BATCHES; i++) open_batch(t, i);
}

static void close_training(training *t) {
    t->kind->close(t->head);
    for (int i = 0; i < BATCHES; i++) FREE(t->batch[i].state, t->batch[i].dist, t->mask[i]);
    FREE(t->table);
    hn_free(t->w);
    hn_free(t->g);
    hn_free(t->mean);
    hn_free(t->square);
    hn_source_close(&file);
}

/* Ten steps as make_train_goldens.py takes them. */
static void train(training *t, double *losses) {
    hn_adamw o = {0.9, 0.95, 1e-8, 0.01, t->mean, t->square, 0};
    for (int i = 0; i < 10; i++) {
        memset(t->g, 0, t->n * sizeof *t->g);
        t->kind->loss(t->head, t->w, &t->batch[i % BATCHES], t->g, losses + i * t->o.unroll);
        hn_adamw_step(&workers, &o, t->w, t->g, t->n, hn_clip_factor(hn_gradient_norm(&workers, t->g, t->n), 2), 0.01);
    }
}

static void check_training(const hn_learn_kind *kind) {
    training t;
    double losses[10 * HN_MOST_STEPS], first[HN_MOST_STEPS], same[HN_MOST_STEPS];
    open_training(&t, kind);
    const golden_tensor want = get_golden(file, "losses");
    kind->loss(t.head, t.w, &t.batch[0], t.g, first);
    kind->loss(t.head, t.w, &t.batch[0], NULL, same);
    assert_memory_equal(first, same, sizeof(double) * (size_t)t.o.unroll);
    for (int i = 0; i < kind->parts(t.head); i++) {
        const hn_mat part = kind->part(t.head, i, t.g);
        char name[HN_LEARN_PART_NAME];
        kind->part_name(t.head, i, name);
        if (part.rows > 0) check("d", name, part.p, 2e-5);
    }
    train(&t, losses);
    assert_int_equal(want.n, 10 * t.o.unroll);
    for (size_t i = 0; i < want.n; i++) {
        const double is = losses[i], expected = (double)want.data[i];
        if (!(fabs(is - expected) <= 1e-4)) fail_msg("%s: loss %zu is %g, not %g", kind->name, i, is, expected);
    }
    close_training(&t);
}

static void check_levels(const char *kind) {
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        open_workers(isa, 2, HN_PRODUCTS_F32);
        check_training(hn_learn_kind_named(kind));
        close_workers();
    }
}

static void test_medusa(void **state) {
    (void)state;
    check_levels("medusa");
}

static void test_hydra(void **state) {
    (void)state;
    check_levels("hydra");
}

static void test_mlp(void **state) {
    (void)state;
    check_levels("mlp");
}

static void test_bits_do_not_depend_on_workers(void **state) {
    (void)state;
    static const char *const kinds[] = {"medusa", "hydra", "mlp"};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        double losses[3][10 * HN_MOST_STEPS];
        hn_real *first = NULL;
        for (int threads = 1; threads <= 3; threads++) {
            training t;
            open_workers(hn_isa_best(), threads, HN_PRODUCTS_F32);
            open_training(&t, hn_learn_kind_named(kinds[kind]));
            train(&t, losses[threads - 1]);
            if (!first) memcpy(first = hn_zalloc(t.n, sizeof *first), t.w, t.n * sizeof *first);
            assert_memory_equal(first, t.w, t.n * sizeof *first);
            assert_memory_equal(losses[0], losses[threads - 1], sizeof(double) * 10 * (size_t)t.o.unroll);
            close_training(&t);
            close_workers();
        }
        hn_free(first);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_medusa),
        cmocka_unit_test(test_hydra),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_bits_do_not_depend_on_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
