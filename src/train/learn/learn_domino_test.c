/* SPDX-License-Identifier: Apache-2.0 */
/* learn_domino_test.c - a briefly trained head of Domino is read back by its drafter, and drafts what the trainer's own network says
 * after the same tokens: the losses of the drafted tokens, and of all tokens alike, are those of the engine's distributions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "train/data/make_texts.h"
#include "train/data/states.h"
#include "train/learn/learn_kind.h"
#include "train/learn/learn_private.h"
#include "learner.h" /* last: it calls a type "bytes" */

enum { VOCAB = 512, UNROLL = 4, MOST = 128, STATES = 4, HIDDEN = 64 };

static int setup(void **state) {
    (void)state;
    static const double temperature[] = {1};
    static const char *const begin[] = {"Once upon a time", "Lily and Ben", "The sun", "Tim had a dog"};
    const hn_train_make how = {.temperature = temperature, .n_temperatures = 1, .max_tokens = 40, .context = 128, .parallel = 4, .seed = 5};
    hn_train_rows rows = {0};
    model = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_F32);
    for (int i = 0; i < 4; i++) must(hn_train_rows_add_prompt(&rows, begin[i], err));
    must(hn_train_texts_make(model, &rows, &how, test_path("texts.jsonl"), err));
    open_features();
    hn_train_rows_fini(&rows);
    return 0;
}

/* A learner whose weights are as the folder has them. */
static hn_learner *train(int vocab, int plain, bool shifted) {
    double losses[HN_MOST_STEPS];
    int tokens;
    hn_learn_options o = hn_learn_usual(&hn_learn_domino, &model->target.arch, features.tokens);
    o.steps = 25;
    o.rows = 128;
    o.unroll = UNROLL;
    o.vocab = vocab;
    o.layers = 1;
    o.plain = plain;
    o.shift_label = shifted;
    o.rate = 1e-2;
    o.held_out = 0;
    o.products = HN_PRODUCTS_F32;
    hn_learner *l = open_learner_of(model, &features, &o);
    for (int i = 0; i < o.steps; i++) must(hn_learner_step(l, losses, &tokens, err));
    for (size_t i = 0; i < l->count; i++) {
        uint16_t rounded;
        hn_quantise(HN_BF16, l->w + i, 1, &rounded);
        hn_dequantise(HN_BF16, &rounded, 1, l->w + i);
    }
    must(hn_learner_save_head(l, test_path("head"), err));
    return l;
}

typedef struct drafted {
    int32_t ids[MOST];             /* the text, the root, and the drafts */
    int n;                         /* of the text */
    float logits[UNROLL][VOCAB];   /* of each draft */
} drafted;

static void take_logits(void *user, int level, const float *logits, int vocab) {
    drafted *d = user;
    assert_int_equal(vocab, VOCAB);
    memcpy(d->logits[level], logits, sizeof d->logits[level]);
}

static void draft(drafted *d, hunch_engine *e, const hn_train_text *text, int n) {
    hunch_draft_result r;
    d->n = n;
    memcpy(d->ids, text->ids, (size_t)n * sizeof *d->ids);
    must(hunch_draft(e, text->ids, (size_t)n, UNROLL, -1, NULL, take_logits, d, &r, err));
    assert_int_equal(r.n, UNROLL);
    d->ids[n] = r.root;
    for (int k = 0; k < UNROLL; k++) d->ids[n + 1 + k] = r.node[k].token;
    hunch_free(r.node);
}

/* The trainer's loss of draft k by labels of one distribution: rows of the text, with a loss only of the token after draft k - 1. */
static double loss_of(hn_learner *l, const drafted *d, int k, float *dist) {
    static uint16_t stored[MOST][STATES][HIDDEN];
    static float taken[MOST][STATES - 1][HIDDEN], weight[MOST];
    static int row[MOST];
    const int rows = d->n + k, start[] = {0, rows}, before[] = {d->ids[0]};
    double losses[HN_MOST_STEPS];
    hn_states *s;
    must(hn_states_open(&s, &model->target, states, STATES, rows, err));
    must(hn_states_compute(s, &(hn_states_text){d->ids, rows, stored[0][0]}, 1, err));
    hn_states_close(&s);
    for (int i = 0; i < rows; i++) {
        weight[i] = i == rows - 1;
        row[i] = 0;
        hn_dequantise(HN_BF16, stored[i][0], (size_t)(STATES - 1) * HIDDEN, taken[i][0]);
    }
    const hn_net_batch b = {.texts = 1, .start = start, .token = d->ids + 1, .before = before, .weight = weight, .dist_row = row,
                            .state = hn_mat_of(taken[0][0], rows, (STATES - 1) * HIDDEN),
                            .dist = hn_mat_of(dist, 1, l->o.vocab), .done = 1};
    (void)l->o.kind->loss(l->head, l->w, &b, NULL, losses);
    return losses[k];
}

/* log of the sum of e^logit, and the sum of the logits of the drafted tokens. */
static double log_sum(const hn_learner *l, const float *logits, double *all) {
    double sum = 0;
    *all = 0;
    for (int i = 0; i < l->o.vocab; i++) {
        sum += exp((double)logits[l->tokens.ids[i]]);
        *all += (double)logits[l->tokens.ids[i]];
    }
    return log(sum);
}

static void compare(hn_learner *l, const drafted *d, const char *what) {
    for (int k = 0; k < UNROLL; k++) {
        float one[VOCAB] = {0}, alike[VOCAB];
        const int32_t token = d->ids[d->n + 1 + k];
        double all;
        const double sum = log_sum(l, d->logits[k], &all), mean = sum - all / l->o.vocab;
        for (int i = 0; i < l->o.vocab; i++) alike[i] = 1.0f / (float)l->o.vocab;
        one[l->tokens.output[token]] = 1;
        const double of_token = loss_of(l, d, k, one), of_all = loss_of(l, d, k, alike), drafts = sum - (double)d->logits[k][token];
        if (!(fabs(of_token - drafts) < 0.01 && fabs(of_all - mean) < 0.01)) /* states of the trainer are bf16 */
            fail_msg("%s: draft %d after %d tokens: losses %g %g, the engine's %g %g", what, k, d->n, of_token, of_all, drafts, mean);
    }
}

static void check(int vocab, int plain, bool shifted, const char *what) {
    char spec[700];
    drafted d;
    hn_learner *l = train(vocab, plain, shifted);
    snprintf(spec, sizeof spec, "domino:%s,weights=f32,pool=%d", test_path("head"), VOCAB);
    hunch_engine *e = open_engine(model, spec, 1, 64, HUNCH_KV_DEFAULT, 16, MOST);
    for (int n = 9; n <= 30; n += 7) {
        draft(&d, e, &texts.item[n % 2], n);
        compare(l, &d, what);
    }
    hunch_engine_close(&e);
    hn_learner_close(&l);
}

static void test_drafts_are_the_network_s(void **state) {
    (void)state;
    check(300, 1, false, "some tokens");
    check(VOCAB, 0, true, "all tokens, shifted");
    check(300, 2, true, "two plain drafts, shifted");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drafts_are_the_network_s)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
