/* SPDX-License-Identifier: Apache-2.0 */
/* golden_train_blocks_test.c - training of P-EAGLE, DART and DFlash heads compared with PyTorch, with all possible blocks: gradients of a
 * batch, and the losses of ten steps at every level; the same bits for any number of workers, also with chosen blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/train_golden.h"
#include "train/math/adamw.h"
#include "train/nets/block_net.h"
#include "train/math/loss/loss.h"

enum { BATCHES = 2 };

static const struct kind {
    const char *name;
    hn_block_kind kind;
    int layers;
    double decay;
} kinds[] = {{"peagle", HN_BLOCK_PEAGLE, 2, 1}, {"dart", HN_BLOCK_DART, 1, 0.6}, {"dflash", HN_BLOCK_DFLASH, 2, 0.75}};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct training {
    hn_block_shape shape;
    hn_block_net *net;
    hn_net_batch batch[BATCHES];
    int token[BATCHES][MOST_IDS], start[BATCHES][MOST_IDS];
    hn_mat table, taps[BATCHES], dist[BATCHES], mask[BATCHES];
    size_t n;
    hn_real *w, *g, *mean, *square;
} training;

static int open_blocks(void **state) {
    (void)state;
    must(hn_source_open_safetensors(&file, data_path("train/blocks.safetensors"), err));
    return 0;
}

static int close_blocks(void **state) {
    (void)state;
    hn_source_close(&file);
    return 0;
}

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
    t->batch[i] = (hn_net_batch){.texts = texts,
                                   .start = t->start[i],
                                   .token = t->token[i],
                                   .state = t->taps[i],
                                   .dist = t->dist[i],
                                   .weight = t->mask[i].p,
                                   .seed = 7};
    FREE(target);
}

static hn_block_shape shape_of(const struct kind *k, int *tokens) {
    const golden_tensor s = get_golden(file, "shape");
    *tokens = (int)s.data[7];
    return (hn_block_shape){.kind = k->kind,
                            .hidden = (int)s.data[0],
                            .taps = (int)s.data[1],
                            .heads = (int)s.data[2],
                            .kv_heads = (int)s.data[3],
                            .head_dim = (int)s.data[4],
                            .ffn = (int)s.data[5],
                            .layers = k->layers,
                            .vocab = (int)s.data[6],
                            .drafts = (int)s.data[8],
                            .mask_token = *tokens - 1,
                            .eps = 1e-5,
                            .theta = 10000,
                            .decay = k->decay,
                            .keep = 1};
}

/* With the weights of the goldens. rows: of texts in the net's buffers; MOST_ROWS: all blocks fit. */
static void open_training(training *t, const struct kind *k, double keep, int rows) {
    int kept[MOST_IDS], tokens;
    const golden_tensor all_kept = get_golden(file, "kept"), table = get_golden(file, "table");
    for (size_t i = 0; i < all_kept.n; i++) kept[i] = (int)all_kept.data[i];
    *t = (training){.shape = shape_of(k, &tokens)};
    t->shape.keep = keep;
    t->table = hn_mat_of(hn_alloc(table.n * sizeof(hn_real)), tokens, t->shape.hidden);
    memcpy(t->table.p, table.data, table.n * sizeof(hn_real));
    t->n = hn_block_count(&t->shape);
    t->w = hn_zalloc(t->n, sizeof *t->w);
    t->g = hn_zalloc(t->n, sizeof *t->g);
    t->mean = hn_zalloc(t->n, sizeof *t->mean);
    t->square = hn_zalloc(t->n, sizeof *t->square);
    for (int i = 0; i < hn_block_parts(&t->shape); i++) {
        char name[80], weight[90];
        const hn_mat part = hn_block_part_of(&t->shape, i, t->w);
        if (part.rows == 0) continue;
        hn_block_part_name(&t->shape, i, name);
        snprintf(weight, sizeof weight, "w.%s", name);
        const golden_tensor w = get(k->name, weight);
        assert_int_equal(w.n, part.rows * part.cols);
        memcpy(part.p, w.data, w.n * sizeof *w.data);
    }
    for (int i = 0; i < BATCHES; i++) open_batch(t, i, kept);
    must(hn_block_net_open(&t->net, &workers, &t->shape, t->table, (hn_mat){0}, rows, err));
}

static void close_training(training *t) {
    hn_block_net_close(t->net);
    for (int i = 0; i < BATCHES; i++) FREE(t->taps[i], t->dist[i], t->mask[i]);
    FREE(t->table);
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
        hn_block_net_loss(t->net, t->w, &t->batch[i % BATCHES], t->g, losses + i * t->shape.drafts);
        hn_adamw_step(&workers, &o, t->w, t->g, t->n, hn_clip_factor(hn_gradient_norm(&workers, t->g, t->n), 2), 0.01);
    }
}

static void check_training(const struct kind *k) {
    training t;
    double losses[10 * HN_MOST_STEPS];
    open_training(&t, k, 1, MOST_ROWS);
    const golden_tensor want = get(k->name, "losses");
    hn_block_net_loss(t.net, t.w, &t.batch[0], t.g, losses);
    for (int i = 0; i < hn_block_parts(&t.shape); i++) {
        char name[80], gradient[90];
        const hn_mat part = hn_block_part_of(&t.shape, i, t.g);
        hn_block_part_name(&t.shape, i, name);
        snprintf(gradient, sizeof gradient, "d.%s", name);
        if (part.rows > 0) check(k->name, gradient, part.p, 1e-4);
    }
    train(&t, losses);
    assert_int_equal(want.n, 10 * t.shape.drafts);
    for (size_t i = 0; i < want.n; i++) {
        const double is = losses[i], expected = (double)want.data[i];
        if (!(fabs(is - expected) <= 2e-4)) fail_msg("%s: loss %zu is %g, not %g", k->name, i, is, expected);
    }
    close_training(&t);
}

static void test_ten_losses(void **state) {
    (void)state;
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        open_workers(isa, 2, HN_PRODUCTS_F32);
        for (int k = 0; k < KINDS; k++) check_training(&kinds[k]);
        close_workers();
    }
}

static void test_bits_do_not_depend_on_workers(void **state) {
    (void)state;
    double losses[3][10 * HN_MOST_STEPS];
    for (int k = 0; k < KINDS; k++) {
        hn_real *first = NULL;
        for (int threads = 1; threads <= 3; threads++) {
            training t;
            open_workers(hn_isa_best(), threads, HN_PRODUCTS_F32);
            open_training(&t, &kinds[k], 0.7, 26);
            train(&t, losses[threads - 1]);
            if (!first) memcpy(first = hn_zalloc(t.n, sizeof *first), t.w, t.n * sizeof *first);
            assert_memory_equal(first, t.w, t.n * sizeof *first);
            assert_memory_equal(losses[0], losses[threads - 1], sizeof(double) * 10 * (size_t)t.shape.drafts);
            close_training(&t);
            close_workers();
        }
        hn_free(first);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_losses),
        cmocka_unit_test(test_bits_do_not_depend_on_workers),
    };
    return cmocka_run_group_tests(tests, open_blocks, close_blocks);
}
