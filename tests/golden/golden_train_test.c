/* SPDX-License-Identifier: Apache-2.0 */
/* golden_train_test.c - the trainer against PyTorch: outputs and gradients of every operation, AdamW, clipping, learning rates, and
 * the losses of ten steps of training of an EAGLE-3 head; the same bits for any number of workers, and from batches in parts.
 * The goldens are of tools/make_train_goldens.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/golden.h"
#include "train/adamw.h"
#include "train/attention_back.h"
#include "train/eagle3_net.h"
#include "train/layers_back.h"
#include "train/loss.h"
#include "train/numbers_for_tests.h"

static hn_source *file;
static hn_pool *pool;
static hn_team team;

enum { MOST_ROWS = 128, MOST_IDS = 128 };

static void open_team(hn_isa isa, int threads, hn_products products) {
    pool = pool_of(threads);
    must(hn_team_open(&team, pool, isa, products, hn_attention_scratch(MOST_ROWS), err));
}

static void close_team(void) {
    hn_team_close(&team);
    hn_pool_free(pool);
}

static int open_operations(void **state) {
    (void)state;
    must(hn_source_open_safetensors(&file, data_path("train/operations.safetensors"), err));
    open_team(hn_isa_best(), 2, HN_PRODUCTS_F32);
    return 0;
}

static int open_eagle3(void **state) {
    (void)state;
    must(hn_source_open_safetensors(&file, data_path("train/eagle3.safetensors"), err));
    return 0;
}

static int close_operations(void **state) {
    (void)state;
    close_team();
    hn_source_close(&file);
    return 0;
}

static int close_eagle3(void **state) {
    (void)state;
    hn_source_close(&file);
    return 0;
}

/* ---- tensors ---------------------------------------------------------------------------------------------------------------- */

static golden_tensor get(const char *what, const char *name) {
    char full[100];
    snprintf(full, sizeof full, "%s.%s", what, name);
    return get_golden(file, full);
}

/* A copy, freed by the caller. */
static hn_mat mat(const char *what, const char *name) {
    const golden_tensor g = get(what, name);
    const hn_mat m = hn_mat_of(hn_alloc(g.n * sizeof *g.data), (int)(g.n / g.cols), (int)g.cols);
    assert_non_null(m.p);
    memcpy(m.p, g.data, g.n * sizeof *g.data);
    return m;
}

static hn_mat zeros_like(hn_mat m) {
    return hn_mat_of(hn_zalloc((size_t)m.rows * (size_t)m.cols, sizeof *m.p), m.rows, m.cols);
}

static int ids(const char *what, const char *name, int *to) {
    const golden_tensor g = get(what, name);
    assert_true(g.n <= MOST_IDS);
    for (size_t i = 0; i < g.n; i++) to[i] = (int)g.data[i];
    return (int)g.n;
}

/* All of it, to `error` of what the golden's numbers are like. */
static void check(const char *what, const char *name, const hn_real *is, double error) {
    const golden_tensor want = get(what, name);
    double square = 0;
    for (size_t i = 0; i < want.n; i++) square += (double)want.data[i] * (double)want.data[i];
    const double d = largest_difference(is, want.data, want.n), middle = sqrt(square / (double)want.n);
    if (!(d <= error * fmax(middle, 1e-3))) fail_msg("%s.%s is off by %g of %g", what, name, d, middle);
}

static const double NEAR = 3e-6;

static void free_all(size_t n, const hn_mat *m) {
    for (size_t i = 0; i < n; i++) hn_free(m[i].p);
}
#define FREE(...) free_all(sizeof((hn_mat[]){__VA_ARGS__}) / sizeof(hn_mat), (hn_mat[]){__VA_ARGS__})

/* ---- operations ----------------------------------------------------------------------------------------------------------------- */

static void test_linear(void **state) {
    (void)state;
    const hn_mat x = mat("linear", "x"), w = mat("linear", "w"), bias = mat("linear", "bias"), dy = mat("linear", "dy");
    const hn_mat y = zeros_like(dy), dx = zeros_like(x), dw = zeros_like(w), dbias = zeros_like(bias);
    hn_linear(&team, x, w, bias.p, y);
    check("linear", "y", y.p, NEAR);
    hn_linear_back(&team, dy, x, w, dx, false, dw, dbias.p);
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
    hn_rms_norm(&team, x, gain.p, 1e-2f, y, inverse);
    check("norm", "y", y.p, NEAR);
    hn_rms_norm_back(&team, dy, x, gain.p, inverse, dy, false, dgain.p); /* in place */
    check("norm", "dx", dy.p, NEAR);
    check("norm", "dgain", dgain.p, NEAR);
    FREE(x, gain, dy, y, dgain);
}

static void test_joined(void **state) {
    (void)state;
    const hn_mat x[2] = {mat("joined", "a"), mat("joined", "b")}, gain[2] = {mat("joined", "gain_a"), mat("joined", "gain_b")};
    const hn_mat dy = mat("joined", "dy"), y = zeros_like(dy);
    static const char *const dx_name[] = {"da", "db"}, *const dgain_name[] = {"dgain_a", "dgain_b"};
    for (int i = 0; i < 2; i++) {
        const hn_mat dx = zeros_like(x[i]), dgain = zeros_like(gain[i]);
        hn_real inverse[8];
        hn_rms_norm(&team, x[i], gain[i].p, 1e-2f, hn_mat_cols(y, 5 * i, 5), inverse);
        hn_rms_norm_back(&team, hn_mat_cols(dy, 5 * i, 5), x[i], gain[i].p, inverse, dx, false, dgain.p);
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
    const hn_mat table = mat("embed", "table"), drows = mat("embed", "dy"), rows = zeros_like(drows), dtable = zeros_like(table);
    ids("embed", "ids", id);
    hn_embed(&team, table, id, rows);
    hn_embed_back(&team, drows, id, dtable);
    check("embed", "y", rows.p, 0);
    check("embed", "dtable", dtable.p, NEAR);
    const hn_mat x = mat("rotate", "x"), dx = mat("rotate", "dy");
    ids("rotate", "position", id);
    hn_rotate(&team, x, 8, 500, id, 2);
    hn_rotate_back(&team, dx, 8, 500, id, 2);
    check("rotate", "y", x.p, 1e-4); /* torch computes angles in float */
    check("rotate", "dx", dx.p, 1e-4);
    const hn_mat gate = mat("swiglu", "gate"), up = mat("swiglu", "up"), dy = mat("swiglu", "dy"), y = zeros_like(dy);
    hn_swiglu(&team, gate, up, y);
    hn_swiglu_back(&team, dy, gate, up, gate, up);
    check("swiglu", "y", y.p, NEAR);
    check("swiglu", "dgate", gate.p, NEAR);
    check("swiglu", "dup", up.p, NEAR);
    FREE(table, drows, rows, dtable, x, dx, gate, up, dy, y);
}

static void test_attention(void **state) {
    (void)state;
    static const int start[] = {0, 5, 6, 75};
    hn_attention a = {.heads = 4, .kv_heads = 2, .head_dim = 4, .texts = 3, .start = start, .step = 2, .q = mat("attention", "q")};
    const hn_mat dy = mat("attention", "dy"), y = zeros_like(dy), dq = zeros_like(a.q);
    hn_attention_gradients d = {.q = dq};
    hn_real log_sums[75 * 4];
    char name[8];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "k%d", i);
        d.k[i] = zeros_like(a.k[i] = mat("attention", name));
        name[0] = 'v';
        d.v[i] = zeros_like(a.v[i] = mat("attention", name));
    }
    hn_attend(&team, &a, y, log_sums);
    hn_attend_back(&team, &a, y, log_sums, dy, &d);
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

static void check_loss(double sum, const char *what, const char *name, const hn_real *losses, const hn_real *weight, hn_mat dx) {
    char gradient[40];
    const golden_tensor want = get(what, name);
    double expected = 0;
    for (size_t r = 0; r < want.n; r++) {
        expected += (double)weight[r] * (double)want.data[r];
        if (weight[r] > 0) assert_true(fabs((double)(losses[r] - want.data[r])) <= 1e-6 * fmax(1, (double)want.data[r]));
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
        const hn_mat x = mat(of[i], "x"), law = zeros_like(x), dx = zeros_like(x), in_place = copy_of(x);
        hn_real inside[8], covered[8];
        ids(of[i], "ids", id);
        hn_law_kept(&team, target, i ? kept : NULL, law, inside, covered);
        if (i) check("law", "inside", inside, 0);
        if (i) check("law", "covered", covered, NEAR);
        if (i) check("law", "reduced", law.p, NEAR);
        assert_true(i ? law.cols == n_kept : inside[0] == 1 && inside[2] == 1 && covered[2] == 1);
        check_loss(hn_loss_hard(&team, x, id, weight.p, dx, losses), of[i], "hard", losses, weight.p, dx);
        check_loss(hn_loss_soft(&team, x, law, true, weight.p, dx, losses), of[i], "kl", losses, weight.p, dx);
        check_loss(hn_loss_soft(&team, in_place, law, false, weight.p, in_place, losses), of[i], "soft", losses, weight.p, in_place);
        FREE(x, law, dx, in_place);
    }
    const hn_mat x = mat("smooth", "x"), y = mat("smooth", "target"), dx = zeros_like(x);
    hn_loss_smooth_l1(&team, x, y, weight.p, dx, losses);
    check("smooth", "dx", dx.p, NEAR);
    losses[1] = get("smooth", "loss").data[1]; /* which has no weight */
    check("smooth", "loss", losses, NEAR);
    FREE(weight, target, x, y, dx);
}

/* ---- the optimiser ---------------------------------------------------------------------------------------------------------------- */

static void test_adamw(void **state) {
    (void)state;
    const golden_tensor g = get("adamw", "g"), seen = get("adamw", "seen");
    const hn_mat w = mat("adamw", "w"), mean = zeros_like(w), square = zeros_like(w);
    hn_adamw o = {0.9, 0.95, 1e-8, 0.1, mean.p, square.p, 0};
    for (int i = 0; i < 12; i++) {
        hn_adamw_step(&team, &o, w.p, g.data + 37 * i, 37, 1, 0.02);
        assert_true(largest_difference(w.p, seen.data + 37 * i, 37) <= 5e-7);
    }
    FREE(w, mean, square);
}

/* Across more numbers than one turn of the team has: as if each stood alone; and the factor is the gradient's. */
static void test_adamw_in_pieces(void **state) {
    (void)state;
    const size_t n = (size_t)8192 * 512 + 8192 + 5;
    uint64_t seed = 3;
    hn_real *w = numbers(n, &seed), *g = numbers(n, &seed), *mean = hn_zalloc(n, sizeof *mean), *square = hn_zalloc(n, sizeof *square);
    hn_adamw o = {0.9, 0.999, 1e-8, 0.01, mean, square, 0};
    static const size_t places[] = {0, 8191, 8192, (size_t)8192 * 512 - 1, (size_t)8192 * 512, (size_t)8192 * 513 + 4};
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)g[i] * (double)g[i];
    assert_true(fabs(hn_norm(&team, g, n) / sqrt(sum) - 1) < 1e-12);
    hn_real alone[6], half[6], means[6] = {0}, squares[6] = {0};
    for (int i = 0; i < 6; i++) alone[i] = w[places[i]], half[i] = g[places[i]] / 2;
    hn_adamw one = {0.9, 0.999, 1e-8, 0.01, means, squares, 0};
    hn_adamw_step(&team, &one, alone, half, 6, 1, 0.1);
    hn_adamw_step(&team, &o, w, g, n, 0.5, 0.1);
    for (int i = 0; i < 6; i++) assert_true(alone[i] == w[places[i]] && means[i] == mean[places[i]]);
    g[n - 2] = NAN;
    assert_true(isnan(hn_norm(&team, g, n)));
    hn_free(w);
    hn_free(g);
    hn_free(mean);
    hn_free(square);
}

static void test_clip_and_rates(void **state) {
    (void)state;
    const golden_tensor g = get("adamw", "g");
    static const struct { const char *name; double most; } clips[] = {{"clipped", 0.5}, {"kept", 100}};
    const double norm = hn_norm(&team, g.data, 37);
    assert_true(fabs(norm - (double)get("clip", "norm").data[0]) < 1e-5);
    for (int i = 0; i < 2; i++) {
        const golden_tensor want = get("clip", clips[i].name);
        const hn_real factor = (hn_real)hn_clip_factor(norm, clips[i].most);
        for (size_t j = 0; j < 37; j++) assert_true(fabs((double)(g.data[j] * factor - want.data[j])) < 1e-7);
    }
    for (int step = 0; step < 26; step++) {
        assert_true(fabs(hn_learning_rate(step, 5, 25, 0.003, 0.0001) - (double)get("rate", "warm").data[step]) < 1e-9);
        assert_true(fabs(hn_learning_rate(step, 0, 25, 0.003, 0.0001) - (double)get("rate", "cold").data[step]) < 1e-9);
    }
    assert_true(hn_learning_rate(1000, 5, 25, 0.003, 0.0001) == 0.0001);
}

/* ---- EAGLE-3 ------------------------------------------------------------------------------------------------------------------------ */

enum { BATCHES = 2 };

typedef struct training {
    hn_eagle3_shape shape;
    int steps;
    hn_eagle3_net *net;
    hn_eagle3_batch batch[BATCHES];
    int token[BATCHES][MOST_IDS], start[BATCHES][MOST_IDS];
    hn_mat table, taps[BATCHES], law[BATCHES], mask[BATCHES];
    size_t n;
    hn_real *w, *g, *mean, *square;
} training;

static void open_batch(training *t, int i, const int *kept) {
    char name[10];
    snprintf(name, sizeof name, "batch%d", i);
    const int texts = ids(name, "start", t->start[i]) - 1, rows = ids(name, "token", t->token[i]);
    assert_int_equal(t->start[i][texts], rows);
    const hn_mat target = mat(name, "target");
    t->taps[i] = mat(name, "taps");
    t->mask[i] = mat(name, "mask");
    t->law[i] = hn_mat_of(hn_zalloc((size_t)rows * (size_t)t->shape.vocab, sizeof(hn_real)), rows, t->shape.vocab);
    hn_law_kept(&team, target, kept, t->law[i], NULL, NULL);
    t->batch[i] = (hn_eagle3_batch){texts, t->start[i], t->token[i], t->taps[i], t->law[i], t->mask[i].p};
    FREE(target);
}

/* With the weights of the goldens. */
static void open_training(training *t, bool norm_before_residual) {
    int s[MOST_IDS], kept[MOST_IDS];
    const golden_tensor shape = get_golden(file, "shape"), all_kept = get_golden(file, "kept");
    for (size_t i = 0; i < shape.n; i++) s[i] = (int)shape.data[i];
    for (size_t i = 0; i < all_kept.n; i++) kept[i] = (int)all_kept.data[i];
    *t = (training){.shape = {s[0], s[1], s[2], s[3], s[4], s[5], s[6], 1e-5, 10000, norm_before_residual}, .steps = s[8]};
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
    must(hn_eagle3_net_open(&t->net, &team, &t->shape, t->steps, 0.8, t->table, MOST_ROWS, err));
}

static void close_training(training *t) {
    hn_eagle3_net_close(t->net);
    for (int i = 0; i < BATCHES; i++) FREE(t->taps[i], t->law[i], t->mask[i]);
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
        norms[i] = hn_norm(&team, t->g, t->n);
        hn_adamw_step(&team, &o, t->w, t->g, t->n, hn_clip_factor(norms[i], 2), hn_learning_rate(i, 3, 12, 0.01, 0.001));
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
        if (!(fabs(losses[i] - (double)want.data[i]) <= 1e-4)) fail_msg("%s: loss %zu is %g, not %g", name, i, losses[i], (double)want.data[i]);
    for (int i = 0; i < 10; i++) assert_true(fabs(norms[i] - (double)want_norms.data[i]) <= 1e-3);
    close_training(&t);
}

static void test_ten_losses(void **state) {
    (void)state;
    for (hn_isa isa = HN_ISA_REF; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        open_team(isa, 2, HN_PRODUCTS_F32);
        check_training(false);
        check_training(true);
        close_team();
    }
}

/* Products of bf16 take another way, to much the same place. */
static void test_bf16_learns_as_well(void **state) {
    (void)state;
    if (!hn_isa_has(HN_ISA_AVX512BF16)) skip();
    for (hn_isa isa = HN_ISA_AVX512BF16; isa != HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        if (!hn_isa_includes(isa, HN_ISA_AVX512BF16)) continue;
        training t;
        double losses[10 * HN_MOST_STEPS], norms[10];
        open_team(isa, 2, HN_PRODUCTS_BF16);
        open_training(&t, false);
        train(&t, losses, norms);
        const golden_tensor want = get("plain", "losses");
        for (size_t i = 0; i < want.n; i++) assert_true(fabs(losses[i] - (double)want.data[i]) <= 0.1);
        close_training(&t);
        close_team();
    }
}

static void test_bits_do_not_depend_on_workers(void **state) {
    (void)state;
    training one, t;
    double losses[2][10 * HN_MOST_STEPS], norms[2][10];
    for (int products = HN_PRODUCTS_F32; products <= HN_PRODUCTS_BF16; products++) {
        if (products == HN_PRODUCTS_BF16 && !hn_isa_includes(hn_isa_best(), HN_ISA_AVX512BF16)) continue;
        open_team(hn_isa_best(), 1, (hn_products)products);
        open_training(&one, true);
        train(&one, losses[0], norms[0]);
        hn_eagle3_net_close(one.net);
        one.net = NULL;
        close_team();
        for (int threads = 2; threads <= 3; threads++) {
            open_team(hn_isa_best(), threads, (hn_products)products);
            open_training(&t, true);
            train(&t, losses[1], norms[1]);
            assert_memory_equal(one.w, t.w, t.n * sizeof *t.w);
            assert_memory_equal(one.square, t.square, t.n * sizeof *t.w);
            assert_memory_equal(losses[0], losses[1], sizeof(double) * 10 * (size_t)t.steps);
            assert_memory_equal(norms[0], norms[1], sizeof norms[0]);
            close_training(&t);
            close_team();
        }
        close_training(&one);
    }
}

/* Gradients are added to: two batches, one behind the other, are their sum. And without a gradient the losses are the same. */
static void test_batches_add_up(void **state) {
    (void)state;
    training t;
    double losses[HN_MOST_STEPS], same[HN_MOST_STEPS];
    open_team(hn_isa_best(), 2, HN_PRODUCTS_F32);
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
    close_team();
}

/* At step k row i reads the token k places on and is held against the law there; where its text has ended there is no loss, and
 * nothing of the next text is looked at. */
static void test_rows_without_a_future_have_no_loss(void **state) {
    (void)state;
    training t;
    double losses[HN_MOST_STEPS];
    open_team(hn_isa_best(), 2, HN_PRODUCTS_F32);
    open_training(&t, false);
    static const int start[] = {0, 1, 3};
    hn_eagle3_batch b = t.batch[0];
    hn_real weight[3] = {1, 1, 1};
    b.texts = 2;
    b.start = start;
    b.weight = weight;
    hn_eagle3_net_loss(t.net, t.w, &b, t.g, losses);
    assert_true(losses[0] > 0 && losses[1] > 0 && losses[2] == 0);
    const double before = losses[1];
    t.law[0].p[0] += 1; /* read by step 0 alone: row 1 of a text has no step behind row 0 of another */
    hn_eagle3_net_loss(t.net, t.w, &b, NULL, losses);
    assert_true(losses[1] == before);
    t.token[0][2] = (t.token[0][2] + 1) % 64; /* what row 1 reads at step 1 */
    hn_eagle3_net_loss(t.net, t.w, &b, NULL, losses);
    assert_true(losses[1] != before);
    close_training(&t);
    close_team();
}

int main(void) {
    const struct CMUnitTest operations[] = {
        cmocka_unit_test(test_linear), cmocka_unit_test(test_norm),          cmocka_unit_test(test_joined),
        cmocka_unit_test(test_embed_rotate_swiglu), cmocka_unit_test(test_attention), cmocka_unit_test(test_losses),
        cmocka_unit_test(test_adamw),  cmocka_unit_test(test_adamw_in_pieces), cmocka_unit_test(test_clip_and_rates),
    };
    const struct CMUnitTest heads[] = {
        cmocka_unit_test(test_ten_losses),
        cmocka_unit_test(test_bf16_learns_as_well),
        cmocka_unit_test(test_bits_do_not_depend_on_workers),
        cmocka_unit_test(test_batches_add_up),
        cmocka_unit_test(test_rows_without_a_future_have_no_loss),
    };
    const int failed = cmocka_run_group_tests(operations, open_operations, close_operations);
    return failed + cmocka_run_group_tests(heads, open_eagle3, close_eagle3);
}
