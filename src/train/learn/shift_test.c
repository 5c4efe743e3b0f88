/* SPDX-License-Identifier: Apache-2.0 */
/* shift_test.c - alignment of rows and labels: artificial features, whose last state encodes one token with certainty,
 * and whose tap encodes a token chosen by the test. A row of a head has the states up to place i and the token after
 * it, and drafts the token two places later. In random texts none of its inputs encodes that: with labels, tokens or
 * taps off by one place it would learn to copy. If a tap encodes it, it must learn it; and if texts are periodic, all
 * unrolled steps must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "fixture.h"
#include "train/learn/every_kind_for_tests.h"
#include "train/learn/learn_kind.h"
#include "train/data/target_rows.h"

#define STORIES "models/stories260K/stories260K.f32.gguf"
enum { VOCAB = 512, WORDS = 8, TEXTS = 72, LENGTH = 40, HIDDEN = 64, STATES = 2, UNROLL = 3 };

static hunch_model *model;
static hn_target_rows target;
static int32_t word[WORDS];            /* tokens that a state can encode */
static float encoded[WORDS][HIDDEN];      /* the states that encode them */
static int32_t ids[TEXTS][LENGTH + 4]; /* with the tokens after the text */
static uint16_t stored[TEXTS][LENGTH][STATES][HIDDEN];
static hn_feature_text text[TEXTS];

/* Whether the token is by far the likeliest one for a state that is a multiple of its own row of the output. */
static bool encodes_itself(int32_t id, float *state) {
    double best = -INFINITY, own = 0;
    for (int k = 0; k < HIDDEN; k++) state[k] = 12 * target.output[id * HIDDEN + k];
    for (int t = 0; t < VOCAB; t++) {
        double sum = 0;
        for (int k = 0; k < HIDDEN; k++) sum += (double)state[k] * (double)target.output[t * HIDDEN + k];
        if (t == id) own = sum;
        if (t != id && sum > best) best = sum;
    }
    return own > best + 12;
}

static int setup(void **state) {
    (void)state;
    int32_t every[VOCAB];
    int n = 0;
    for (int i = 0; i < VOCAB; i++) every[i] = i;
    model = open_model(data_path(STORIES), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    must(hn_target_rows_read(&target, data_path(STORIES), &model->target.arch, every, VOCAB, err));
    assert_int_equal(target.hidden, HIDDEN);
    for (int32_t id = 300; id < VOCAB && n < WORDS; id++)
        if (encodes_itself(id, encoded[n])) word[n++] = id;
    assert_int_equal(n, WORDS);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hn_target_rows_free(&target);
    hunch_model_close(&model);
    return 0;
}

/* period 0: random words; else each text repeats that many. The tap of place i encodes the word `ahead` places later;
 * the last state the next one, as in a model. */
static void make_features(int period, int ahead) {
    uint64_t x = 11;
    int of[LENGTH + 4];
    for (int t = 0; t < TEXTS; t++) {
        for (int i = 0; i < LENGTH + 4; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            of[i] = period ? (i + t) % period : (int)((x >> 40) % WORDS);
            ids[t][i] = word[of[i]];
        }
        for (int i = 0; i < LENGTH; i++) {
            hn_quantise(HN_BF16, encoded[of[i + ahead]], HIDDEN, stored[t][i][0]);
            hn_quantise(HN_BF16, encoded[of[i + 1]], HIDDEN, stored[t][i][1]);
        }
        text[t] = (hn_feature_text){ids[t], stored[t][0][0], LENGTH, 0};
    }
}

static const struct variant {
    const hn_learn_kind *kind;
    const char *says;
    int layers; /* 0: the usual ones */
    bool cell;
} variants[] = {{&hn_learn_eagle3, "", 0, false}, {&hn_learn_eagle, "", 0, false}, {&hn_learn_falcon, "", 0, false},
                {&hn_learn_mtp, "", 0, false}, {&hn_learn_mtp, " of three modules", 3, false}, {&hn_learn_peagle, "", 0, false},
                {&hn_learn_dart, "", 0, false}, {&hn_learn_dflash, "", 0, false}, {&hn_learn_dspark, "", 0, false},
                {&hn_learn_domino, "", 0, false}, {&hn_learn_medusa, "", 0, false}, {&hn_learn_hydra, "", 0, false},
                {&hn_learn_mlp, "", 0, false},
                {&hn_learn_mlp, " with a cell", 0, true}, {&hn_learn_meta_mtp, "", 0, false}, {&hn_learn_student, "", 0, false}};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* The losses of the unrolled steps on held-out texts. */
static void learn(const struct variant *v, int period, int ahead, double *losses) {
    const hn_learn_kind *kind = v->kind;
    hn_features_read f = {.header = {.magic = "HUNCHFT",
                                     .n_states = STATES,
                                     .width = HIDDEN,
                                     .boundary = {4, HN_FEATURE_POST_NORM},
                                     .level = "any"},
                          .text = text,
                          .n = TEXTS,
                          .tokens = TEXTS * LENGTH};
    hn_learner *l;
    int tokens;
    make_features(period, ahead);
    hn_learn_options o = hn_learn_usual(kind, &model->target.arch, f.tokens);
    o.steps = brief(kind) ? 4 : 150;
    o.rows = 512;
    o.rate = 4e-3;
    o.vocab = VOCAB;
    o.unroll = kind == &hn_learn_falcon ? 4 : UNROLL; /* two passes of two */
    if (v->layers) o.layers = v->layers;
    o.cell = v->cell;
    o.state_share = 0;
    o.held_out = 12;
    o.products = HN_PRODUCTS_F32;
    must(hn_learner_open(&l, model, data_path(STORIES), &f, &o, err));
    for (int i = 0; i < o.steps; i++) must(hn_learner_step(l, losses, &tokens, err));
    must(hn_learner_held_out_losses(l, losses, err));
    hn_learner_close(&l);
    print_message("%s%s: period %d, a tap of %d on: %.3f %.3f %.3f\n", kind->name, v->says, period, ahead, losses[0], losses[1], losses[2]);
}

/* The head reads the text up to the token before the one it drafts: in random texts that has no information. */
static void test_nothing_to_copy(void **state) {
    (void)state;
    double losses[HN_MOST_STEPS];
    for (const struct variant *v = variants; v < variants + VARIANTS; v++) {
        learn(v, 0, 1, losses);
        for (int k = 0; k < UNROLL; k++)
            if (!(losses[k] > log(WORDS) - 0.02))
                fail_msg("%s%s: step %d has a loss of %g: it sees its answer", v->kind->name, v->says, k, losses[k]);
    }
}

/* The tap of its own row encodes the label of step 0; no input has that of step 1. */
static void test_tap_of_own_row(void **state) {
    (void)state;
    double losses[HN_MOST_STEPS];
    for (const struct variant *v = variants; v < variants + VARIANTS; v++) {
        if (!v->kind->reads_layers) continue;
        learn(v, 0, 2, losses);
        if (!brief(v->kind) && !(losses[0] < 0.1 && losses[1] > log(WORDS) - 0.02 && losses[2] > log(WORDS) - 0.02))
            fail_msg("%s%s: losses of %g %g %g", v->kind->name, v->says, losses[0], losses[1], losses[2]);
    }
    if (light()) skip();
}

static void test_period(void **state) {
    (void)state;
    double losses[HN_MOST_STEPS];
    for (const struct variant *v = variants; v < variants + VARIANTS; v++) {
        learn(v, 5, 1, losses);
        for (int k = 0; !brief(v->kind) && k < UNROLL; k++)
            if (!(losses[k] < 0.1)) fail_msg("%s%s: step %d has a loss of %g", v->kind->name, v->says, k, losses[k]);
    }
    if (light()) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_to_copy), cmocka_unit_test(test_tap_of_own_row),
                                       cmocka_unit_test(test_period)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
