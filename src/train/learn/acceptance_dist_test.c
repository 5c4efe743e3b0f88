/* SPDX-License-Identifier: Apache-2.0 */
/* acceptance_dist_test.c - the trainer's prediction for a head agrees with the engine: if drafts are drawn from q and
 * verified by the ratio rule, a draft is accepted with probability sum min(p, q). The engine generates texts at
 * temperature 1 and counts; the trainer computes the sum from the features of the same texts, with its own network and
 * its own product with the output matrix. The difference of count and expectation is then a sum of independent numbers
 * of mean 0 and known variance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "format/source.h"
#include "heads.h"
#include "train/nets/eagle3_net.h"
#include "train/data/features.h"
#include "train/learn/learn_kind.h"
#include "train/data/make_texts.h"
#include "train/math/product/product.h"
#include "train/data/target_rows.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

#define STORIES "models/stories260K/stories260K.f32.gguf"
enum { VOCAB = 512, KEPT = 300, CONTEXT = 128, MOST_TEXTS = 240, MOST_ROUNDS = 40000, STATES = 4 };
static const int states[STATES] = {1, 3, 4, HN_FEATURE_POST_NORM};

static hunch_model *model;
static int n_texts;

/* The engine's results: texts, and for each round with a draft its position and whether the draft was accepted. */
static struct {
    hn_train_text text[MOST_TEXTS];
    hn_train_texts all;
    int round_text[MOST_ROUNDS], root[MOST_ROUNDS];
    bool accepted[MOST_ROUNDS];
    int rounds;
} generated;

/* The trainer's data. */
static hn_features_read features;
static struct {
    hn_eagle3_shape shape;
    hn_workers workers;
    hn_eagle3_net *net;
    hn_target_rows target; /* all rows of its output */
    hn_real *weights;
    int64_t ids[KEPT]; /* the target's token of each output */
} head;

/* ---- a briefly trained head ----------------------------------------------------------------------------------- */

static void train_head(void) {
    static const double temperature[] = {0.7, 1};
    static const char *const begin[] = {"Once upon a time", "Lily and Ben", "The sun", "Tim had a dog",
                                        "One day",          "Mom said",     "A bird",  "In the park"};
    const hn_train_make how = {.temperature = temperature,
                               .n_temperatures = 2,
                               .max_tokens = 80,
                               .context = CONTEXT,
                               .parallel = 8,
                               .seed = 5};
    hn_train_rows rows = {0};
    hn_train_texts texts = {0};
    hn_features_read f;
    hn_learner *l;
    double losses[HN_MOST_STEPS];
    int tokens;
    for (int i = 0; i < 8; i++) must(hn_train_rows_add_prompt(&rows, begin[i], err));
    must(hn_train_texts_make(model, &rows, &how, test_path("texts.jsonl"), err));
    must(hn_train_texts_read(&texts, test_path("texts.jsonl"), VOCAB, err));
    (void)mkdir(test_path("learned"), 0700);
    must(hn_features_make(&model->target, 7, &texts, states, STATES, test_path("learned"), NULL, NULL, NULL, err));
    must(hn_features_open(&f, test_path("learned"), err));
    hn_learn_options o = hn_learn_usual(&hn_learn_eagle3, &model->target.arch, f.tokens);
    o.steps = light() ? 10 : 200;
    o.rows = 512;
    o.rate = 4e-3;
    o.vocab = KEPT;
    o.held_out = 0;
    o.products = HN_PRODUCTS_F32;
    must(hn_learner_open(&l, model, data_path(STORIES), &f, &o, err));
    for (int i = 0; i < o.steps; i++) must(hn_learner_step(l, losses, &tokens, err));
    must(hn_learner_save_head(l, test_path("head"), err));
    hn_learner_close(&l);
    hn_features_close(&f);
    hn_train_texts_fini(&texts);
    hn_train_rows_fini(&rows);
}

/* The weights as the file has them, for the trainer's own network. */
static void read_head(void) {
    const hn_arch *a = &model->target.arch;
    const hn_layer_desc *layer = &a->layer[0];
    hn_source *file;
    int32_t every[VOCAB];
    char path[700];
    for (int i = 0; i < VOCAB; i++) every[i] = i;
    snprintf(path, sizeof path, "%s/model.safetensors", test_path("head"));
    must(hn_source_open_safetensors(&file, path, err));
    head.shape = (hn_eagle3_shape){.sizes = {a->hidden, layer->heads, layer->kv_heads, layer->head_dim, layer->ffn_width,
                                             (double)a->norm_eps, 10000},
                                   .taps = (STATES - 1) * a->hidden,
                                   .vocab = KEPT};
    head.weights = hn_zalloc(hn_eagle3_count(&head.shape), sizeof *head.weights);
    for (int i = 0; i < HN_EAGLE3_PARTS; i++) {
        const hn_mat part = hn_eagle3_part_of(&head.shape, (hn_eagle3_part)i, head.weights);
        char name[100];
        const char *usual = hn_eagle3_part_name((hn_eagle3_part)i);
        snprintf(name, sizeof name, "%s", usual);
        if (!strncmp(usual, "midlayer.", 9)) snprintf(name, sizeof name, "layers.0.%s", usual + 9);
        const hn_tensor *t = hn_source_find(file, name);
        if (!t) fail_msg("no tensor %s", name);
        assert_int_equal(t->bytes, 2 * (size_t)part.rows * (size_t)part.cols);
        hn_dequantise(HN_BF16, t->data, (size_t)part.rows * (size_t)part.cols, part.p);
    }
    must(hn_source_read_integers(file, hn_source_find(file, "d2t"), KEPT, 0, VOCAB - 1, head.ids, err));
    for (int i = 0; i < KEPT; i++) head.ids[i] += i;
    hn_source_close(&file);
    must(hn_target_rows_read(&head.target, data_path(STORIES), a, every, VOCAB, err));
    must(hn_workers_open(&head.workers, model->target.pool, model->target.isa, HN_PRODUCTS_F32,
                      hn_attention_scratch(CONTEXT), err));
    must(hn_eagle3_net_open(&head.net, &head.workers, &head.shape, 1, 1,
                            hn_mat_of(head.target.embedding, VOCAB, a->hidden), CONTEXT, err));
}

/* ---- the engine counts -------------------------------------------------------------------------------------------------- */

static void generate_texts(void) {
    hunch_engine_options o;
    char spec[800];
    hunch_engine_options_defaults(&o);
    o.context = CONTEXT;
    o.verify = HUNCH_VERIFY_RATIO;
    snprintf(spec, sizeof spec, "eagle3:%s,depth=1,weights=f32", test_path("head"));
    hunch_engine *e = open_engine_with(model, spec, o);
    heads_listener *l = heads_listen(e, 0, HEADS_RIGHT);
    for (int i = 0; i < n_texts; i++) {
        const hunch_token prompt[] = {1, 403, 407, 261, 378 + i % 7};
        hunch_request r;
        hunch_session *s = NULL;
        const int before = l->n;
        hunch_request_defaults(&r, model);
        r.prompt = prompt;
        r.n_prompt = 5;
        r.max_tokens = CONTEXT - 8;
        r.ignore_eos = true;
        r.sampling = (hunch_sampling){.temperature = 1, .top_p = 1, .seed = (uint64_t)i * 7919 + 1};
        must(hunch_session_open(&s, e, &r, err));
        must(hunch_engine_run(e, err));
        generated.text[i] = (hn_train_text){malloc(s->text.n * sizeof(int32_t)), (int)s->text.n, 5};
        memcpy(generated.text[i].ids, s->text.token, s->text.n * sizeof(int32_t));
        hunch_session_close(&s);
        for (int k = before; k < l->n; k++) {
            if (l->round[k].n_drafted == 0) continue;
            assert_true(l->round[k].n_drafted == 1 && l->round[k].accepted >= 0 && generated.rounds < MOST_ROUNDS);
            generated.round_text[generated.rounds] = i;
            generated.root[generated.rounds] = l->round[k].n - 1;
            generated.accepted[generated.rounds++] = l->round[k].accepted > 0;
        }
    }
    heads_listen_end(l);
    hunch_engine_close(&e);
    generated.all = (hn_train_texts){.item = generated.text, .n = (size_t)n_texts};
}

static int setup(void **state) {
    (void)state;
    n_texts = light() ? 4 : MOST_TEXTS;
    model = open_model(data_path(STORIES), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    train_head();
    read_head();
    generate_texts();
    (void)mkdir(test_path("said"), 0700);
    must(hn_features_make(&model->target, 7, &generated.all, states, STATES, test_path("said"), NULL, NULL, NULL, err));
    must(hn_features_open(&features, test_path("said"), err));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < n_texts; i++) free(generated.text[i].ids);
    hn_features_close(&features);
    hn_eagle3_net_close(head.net);
    hn_workers_close(&head.workers);
    hn_target_rows_free(&head.target);
    hn_free(head.weights);
    hunch_model_close(&model);
    return 0;
}

/* ---- the trainer expects ------------------------------------------------------------------------------------------------ */

typedef enum mistake { NONE, TAPS_BEFORE, TAPS_SHIFTED, TOKEN_BEFORE, STATE_BEFORE, COLDER, IDS_SHIFTED } mistake;

/* The place of state k of row i in its record. */
static const uint16_t *state_of(const hn_feature_text *t, int i, int k) {
    return t->states + (size_t)(i * STATES + k) * features.header.width;
}

/* Logits of q after each of n - 1 rows: from taps up to row i and the token after it. */
static void draft_logits(const hn_feature_text *t, mistake m, hn_mat logits) {
    static float taps[CONTEXT * 1024], dist[CONTEXT * KEPT];
    static hn_real weight[CONTEXT];
    const int width = (int)features.header.width, start[] = {0, logits.rows};
    int token[CONTEXT];
    assert_true(head.shape.taps <= 1024 && t->n <= CONTEXT);
    for (int i = 0; i < logits.rows; i++) {
        const int row = m == TAPS_BEFORE && i ? i - 1 : i;
        token[i] = t->ids[m == TOKEN_BEFORE ? i : i + 1];
        for (int k = 0; k < STATES - 1; k++) {
            const int layer = m == TAPS_SHIFTED ? k + 1 : k;
            hn_dequantise(HN_BF16, state_of(t, row, layer), (size_t)width, taps + (i * (STATES - 1) + k) * width);
        }
    }
    const hn_net_batch b = {.texts = 1,
                            .start = start,
                            .token = token,
                            .weight = weight,
                            .state = hn_mat_of(taps, logits.rows, head.shape.taps),
                            .dist = hn_mat_of(dist, logits.rows, KEPT)};
    hn_eagle3_net_drafts(head.net, head.weights, &b, logits);
}

/* The target's logits over its whole vocabulary after each of rows 1 .. n - 1. */
static void target_logits(const hn_feature_text *t, mistake m, hn_mat logits) {
    static float last[CONTEXT * 256];
    const int width = (int)features.header.width;
    assert_true(width <= 256);
    for (int i = 0; i < logits.rows; i++)
        hn_dequantise(HN_BF16, state_of(t, m == STATE_BEFORE ? i : i + 1, STATES - 1), (size_t)width, last + i * width);
    hn_product(&head.workers, HN_ABT, hn_mat_of(last, logits.rows, width), hn_mat_of(head.target.output, VOCAB, width),
               logits, false);
}

static void softmax(const hn_real *logits, int n, double temperature, double *p) {
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) most = fmax(most, (double)logits[i]);
    for (int i = 0; i < n; i++) sum += p[i] = exp(((double)logits[i] - most) / temperature);
    for (int i = 0; i < n; i++) p[i] /= sum;
}

/* Sum min(p, q) of each row. */
static void expect(const hn_feature_text *t, mistake m, double *alpha) {
    static hn_real q_logits[CONTEXT * KEPT], p_logits[CONTEXT * VOCAB];
    const hn_mat ql = hn_mat_of(q_logits, t->n - 1, KEPT), pl = hn_mat_of(p_logits, t->n - 1, VOCAB);
    draft_logits(t, m, ql);
    target_logits(t, m, pl);
    for (int i = 0; i < t->n - 1; i++) {
        double p[VOCAB], q[KEPT];
        softmax(hn_mat_row(pl, i), VOCAB, m == COLDER ? 0.8 : 1, p);
        softmax(hn_mat_row(ql, i), KEPT, 1, q);
        alpha[i] = 0;
        for (int j = 0; j < KEPT; j++) alpha[i] += fmin(p[m == IDS_SHIFTED ? j : head.ids[j]], q[j]);
    }
}

/* The difference of count and expectation, in standard errors. */
static double off(mistake m) {
    static double alpha[MOST_TEXTS][CONTEXT];
    double sum = 0, variance = 0, counted = 0;
    for (int i = 0; i < n_texts; i++) expect(&features.text[i], m, alpha[i]);
    for (int k = 0; k < generated.rounds; k++) {
        const double a = alpha[generated.round_text[k]][generated.root[k] - 1];
        assert_true(a > 0 && a < 1 + 1e-9);
        counted += generated.accepted[k];
        sum += a;
        variance += a * (1 - a);
    }
    const double z = (counted - sum) / sqrt(variance);
    print_message("mistake %d: %d rounds, accepted %.4f, expected %.4f: %.2f standard errors\n", (int)m, generated.rounds,
                  counted / generated.rounds, sum / generated.rounds, z);
    return fabs(z);
}

static void test_accepted_as_expected(void **state) {
    (void)state;
    assert_true(generated.rounds > 20 * n_texts);
    assert_true(off(NONE) < 3);
}

/* Each likely mistake would be detected. */
static void test_mistakes_are_seen(void **state) {
    (void)state;
    if (light()) skip();
    for (int m = TAPS_BEFORE; m <= IDS_SHIFTED; m++)
        if (!(off((mistake)m) > 5)) fail_msg("mistake %d passes", m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accepted_as_expected),
                                       cmocka_unit_test(test_mistakes_are_seen)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
