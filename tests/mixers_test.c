/* SPDX-License-Identifier: Apache-2.0 */
/* mixers_test.c - what a list of mixers means: results are added in place or before a norm, each by its factor; a layer without halves is
 * no layer. Models are compared with the same ones said in another way, bit for bit; any division of the work: hybrid_grid_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/pack.h"
#include "toy_mixers.h"

enum { TOKENS = 20 };

/* Adds nothing. */
static void nothing_run(const hn_exec *ex, const hn_mixing *x) {
    int first, last;
    hn_share(ex, hn_cpu_number(x->s->rows->n), &first, &last);
    for (int i = first; i < last && !x->add; i++) memset(hn_host_row(x->to, i), 0, sizeof(float) * (size_t)x->to.cols);
    hn_cpu_barrier(ex);
}
static const hn_mixer_kind nothing = {.name = "nothing", .run = nothing_run};

static void nothing_behind(const hn_model *m HN_UNUSED, hn_layer_desc *l, int i HN_UNUSED) { l->mixer[1].kind = &nothing; }
static void nothing_before(const hn_model *m HN_UNUSED, hn_layer_desc *l, int i HN_UNUSED) {
    l->mixer[1] = l->mixer[0];
    l->mixer[0] = (hn_mixer_desc){.kind = &nothing};
}
static void without_last(const hn_model *m, hn_layer_desc *l, int i) {
    if (i < m->arch.layers - 1) return;
    l->mixer[0].kind = NULL;
    l->ffn = HN_FFN_NONE;
}
static void halved(const hn_model *m HN_UNUSED, hn_layer_desc *l, int i HN_UNUSED) { l->mixer[0].times = l->ffn_times = 0.5f; }

static answer answer_of(hunch_model *m) {
    const hunch_token prompt[] = {5, 90, 17, 44, 3, 61, 29, 8, 77, 12};
    hunch_request r;
    answer a = {0};
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_BF16, 16, 64);
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = TOKENS;
    r.ignore_eos = true;
    run_requests(e, &r, 1, true, &a);
    hunch_engine_close(&e);
    return a;
}

static hunch_model *opened(const char *path) {
    return open_model(data_path(path), "best", test_threads(), HUNCH_PRECISION_NATIVE);
}

typedef void change_fn(const hn_model *m, hn_layer_desc *l, int i);
static answer changed(const char *path, change_fn *change) {
    hunch_model *m = opened(path);
    if (change) toy_change(&m->target, change);
    answer a = answer_of(m);
    hunch_model_close(&m);
    return a;
}

static void same(answer *a, answer *b, const char *what) {
    assert_same(a, b, what);
    answer_free(a);
    answer_free(b);
}

/* Of attention, with norms behind it, of latent attention and a delta net. */
static void test_beside_nothing(void **state) {
    (void)state;
    static const char *const models[] = {"goldens/llama-gqa", "goldens/gemma3_text-local", "goldens/deepseek_v3-yarn"};
    change_fn *const places[] = {nothing_behind, nothing_before};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int k = 0; k < 2; k++) {
            const bool first = k == 1 && strstr(models[i], "deepseek"); /* latent attention and delta nets are a layer's first mixers */
            answer plain = changed(models[i], NULL), other = changed(models[i], first ? nothing_behind : places[k]);
            same(&plain, &other, models[i]);
        }
    answer plain = changed("goldens/qwen3_5-dense", NULL), other = changed("goldens/qwen3_5-dense", nothing_behind);
    same(&plain, &other, "a delta net");
}

static void test_no_halves(void **state) {
    (void)state;
    hunch_model *m = opened("goldens/qwen3-dense");
    m->target.run.n--;
    answer fewer = answer_of(m), empty = changed("goldens/qwen3-dense", without_last), all = changed("goldens/qwen3-dense", NULL);
    m->target.run.n++;
    hunch_model_close(&m);
    assert_int_not_equal(memcmp(all.logits, empty.logits, sizeof(float) * (size_t)all.vocab), 0);
    same(&fewer, &empty, "without the last layer");
    answer_free(&all);
}

/* Branches of their own factors are those of a model with that factor. */
static void test_factors(void **state) {
    (void)state;
    static const char *const models[] = {"goldens/llama-gqa", "goldens/granite-mults"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        hunch_model *m = opened(models[i]);
        m->target.arch.residual_scale *= 0.5f;
        answer whole = answer_of(m), each = changed(models[i], halved), plain = changed(models[i], NULL);
        hunch_model_close(&m);
        assert_int_not_equal(memcmp(plain.logits, each.logits, sizeof(float) * (size_t)plain.vocab), 0);
        same(&whole, &each, models[i]);
        answer_free(&plain);
    }
}

/* down(relu2(up norm x)) as a mixer, in plain C: of layers whose feed-forward part is none. */
static const float *row_of(const hn_weight *w, int row, float *to) {
    const hn_buf strip = hn_at(w->place.at, w->place.step * (size_t)(row / HN_STRIP));
    hn_strip_row(w->dtype, w->in, hn_host(strip), row % HN_STRIP, 0, w->in, to);
    return to;
}
static void plain_run(const hn_exec *ex, const hn_mixing *x) {
    const hn_layer *l = &x->m->layer[x->layer];
    float row[512], mid[512];
    assert_true(l->up.in <= 512 && l->up.out <= 512);
    for (int i = 0; ex->rank == 0 && i < hn_cpu_number(x->s->rows->n); i++) {
        const float *in = toy_input(x, i);
        for (int k = 0; k < l->up.out; k++) {
            const float *w = row_of(&l->up, k, row);
            double sum = 0;
            for (int j = 0; j < l->up.in; j++) sum += (double)w[j] * (double)in[j];
            mid[k] = sum > 0 ? (float)(sum * sum) : 0;
        }
        for (int k = 0; k < l->down.out; k++) {
            const float *w = row_of(&l->down, k, row);
            double sum = 0;
            for (int j = 0; j < l->down.in; j++) sum += (double)w[j] * (double)mid[j];
            hn_host_row(x->to, i)[k] += (float)sum;
        }
    }
    hn_cpu_barrier(ex);
}
static const hn_mixer_kind plain = {.name = "a feed-forward part", .run = plain_run};

static void plain_part(const hn_model *m HN_UNUSED, hn_layer_desc *l, int i) {
    if (i % 2 == 0) return;
    l->mixer[0].kind = NULL;
    l->ffn = HN_FFN_PLAIN;
    l->plain_unit = HN_RELU2;
}
static void plain_mixer(const hn_model *m, hn_layer_desc *l, int i) {
    if (i % 2 == 0) return;
    l->mixer[0] = (hn_mixer_desc){.kind = &plain};
    l->ffn = HN_FFN_NONE;
    m->layer[i].attn_norm = m->layer[i].ffn_norm;
}

/* A part without gates is down(relu2(up norm x)). */
static void test_plain(void **state) {
    (void)state;
    change_fn *const ways[] = {plain_part, plain_mixer, NULL};
    answer a[3];
    for (int i = 0; i < 3; i++) {
        hunch_model *m = open_model(data_path("goldens/qwen3-dense"), "best", 1, HUNCH_PRECISION_F32);
        if (ways[i]) toy_change(&m->target, ways[i]);
        a[i] = answer_of(m);
        hunch_model_close(&m);
    }
    double apart = 0, other = 0;
    for (int i = 0; i < a[0].vocab; i++) { /* of the first row */
        apart = fmax(apart, fabs((double)a[0].logits[i] - (double)a[1].logits[i]));
        other = fmax(other, fabs((double)a[0].logits[i] - (double)a[2].logits[i]));
    }
    assert_true(apart < 1e-4 && other > 1e-2);
    for (int i = 0; i < 3; i++) answer_free(&a[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside_nothing), cmocka_unit_test(test_no_halves),
                                       cmocka_unit_test(test_factors), cmocka_unit_test(test_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
