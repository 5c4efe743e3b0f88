/* SPDX-License-Identifier: Apache-2.0 */
/* learn_test.c - training a head from a real model's features: the same bits for any number of threads and
 * interruptions; in the engine it drafts what it has memorised; damaged files and those of other heads are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "train/learn/every_kind_for_tests.h"
#include "train/learn/learn_kind.h"
#include "train/data/make_texts.h"
#include "train/learn/measure.h"
#include "train/data/online.h"
#include "learner.h" /* last: it calls a type "bytes" */

/* Some of the model's own stories. */
static int setup(void **state) {
    (void)state;
    static const double temperature[] = {0, 1};
    const hn_train_make how = {
        .temperature = temperature, .n_temperatures = 2, .max_tokens = 60, .context = 128, .parallel = 8, .seed = 5};
    hn_train_rows rows = {0};
    model = open_model(data_path(STORIES), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    static const char *const begin[] = {"Once upon a time", "Lily and Ben", "The sun",    "Tim had a dog",
                                        "One day",          "Mom said",     "A big bird", "In the park"};
    for (int i = 0; i < 8; i++) must(hn_train_rows_add_prompt(&rows, begin[i], err));
    must(hn_train_texts_make(model, &rows, &how, test_path("texts.jsonl"), err));
    open_features();
    hn_train_rows_fini(&rows);
    return 0;
}

static hn_learn_options options(const hn_learn_kind *kind) {
    hn_learn_options o = hn_learn_usual(kind, &model->target.arch, features.tokens);
    o.steps = 8;
    o.rows = 256;
    o.vocab = 300;
    o.held_out = 4;
    o.products = HN_PRODUCTS_F32;
    return o;
}

static hn_learner *open_learner(hunch_model *m, const hn_learn_options *o) {
    return open_learner_of(m, &features, o);
}

static double steps(hn_learner *l, int n) {
    double losses[HN_MOST_STEPS] = {0};
    int tokens = 0;
    for (int i = 0; i < n; i++) must(hn_learner_step(l, losses, &tokens, err));
    assert_true(tokens > 0 && tokens <= 256);
    return losses[0];
}

static void same_head(const char *a, const char *b) {
    char path[2][700];
    snprintf(path[0], sizeof path[0], "%s/model.safetensors", a);
    snprintf(path[1], sizeof path[1], "%s/model.safetensors", b);
    same_files(path[0], path[1]);
}

static int planned(const hn_learn_kind *kind) {
    int n = -1;
    must(hn_learner_planned(test_path("checkpoint"), kind, model, &n, err));
    return n;
}

static void same_bits_of(const hn_learn_options o) {
    const hn_learn_kind *kind = o.kind;
    hn_learner *l = open_learner(model, &o);
    const bool once = light() && (!in_full(kind) || o.clusters);
    const double first = steps(l, 1), last = steps(l, once ? 1 : 7);
    assert_true(isfinite(first) && (once || last < first));
    must(hn_learner_save_head(l, test_path("whole"), err));
    hn_learner_close(&l);
    if (once) return; /* the rest runs the same code again, and compares */
    for (int threads = EVERY_CASE ? 1 : 3; threads <= 3; threads += 2) {
        hunch_model *m = open_model(data_path(STORIES), "best", threads, HUNCH_PRECISION_NATIVE);
        l = open_learner(m, &o);
        steps(l, 8);
        must(hn_learner_save_head(l, test_path("other"), err));
        same_head(test_path("whole"), test_path("other"));
        hn_learner_close(&l);
        hunch_model_close(&m);
    }
    for (int ended = EVERY_CASE ? 1 : 4; ended < 8; ended += 3) {
        l = open_learner(model, &o);
        steps(l, ended);
        must(hn_learner_save(l, test_path("checkpoint"), err));
        steps(l, 1); /* lost by the interruption */
        hn_learner_close(&l);
        assert_int_equal(planned(kind), 8);
        l = open_learner(model, &o);
        must(hn_learner_load(l, test_path("checkpoint"), err));
        assert_int_equal(hn_learner_step_number(l), ended);
        steps(l, 8 - ended);
        must(hn_learner_save_head(l, test_path("other"), err));
        same_head(test_path("whole"), test_path("other"));
        hn_learner_close(&l);
    }
}

/* Features computed for each batch give the same head as stored ones, bit for bit, also with texts that are cut to
 * pieces; a checkpoint of either continues with either. */
static void test_online(void **state) {
    (void)state;
    hn_learn_options o = options(&hn_learn_eagle3);
    hn_features_read online;
    double judged[2][HN_MOST_STEPS];
    o.longest = 24; /* pieces of one text are in one batch, and in several */
    must(hn_features_online(&online, &model->target, 7, &texts, states, 4, err));
    assert_int_equal(online.tokens, features.tokens);
    assert_memory_equal(&online.header, &features.header, sizeof online.header);
    const hn_features_read *const sources[] = {&features, &online};
    for (int i = 0; i < 2; i++) {
        hn_learner *l = open_learner_of(model, sources[i], &o);
        steps(l, 8);
        must(hn_learner_held_out_losses(l, judged[i], err));
        must(hn_learner_save_head(l, test_path(i ? "other" : "whole"), err));
        hn_learner_close(&l);
    }
    same_head(test_path("whole"), test_path("other"));
    assert_memory_equal(judged[0], judged[1], (size_t)o.unroll * sizeof **judged);
    for (int i = 0; i < 2; i++) {
        hn_learner *l = open_learner_of(model, sources[i], &o);
        steps(l, 3);
        must(hn_learner_save(l, test_path("checkpoint"), err));
        hn_learner_close(&l);
        l = open_learner_of(model, sources[!i], &o);
        must(hn_learner_load(l, test_path("checkpoint"), err));
        steps(l, 5);
        must(hn_learner_save_head(l, test_path("other"), err));
        same_head(test_path("whole"), test_path("other"));
        hn_learner_close(&l);
    }
    hn_features_close(&online);
}

/* Texts longer than a piece: of every kind a piece of the most rows is learned from, the token before it included. */
static void test_pieces(void **state) {
    (void)state;
    for (int i = 0; hn_learn_kind_at(i); i += test_every(1, 3)) {
        hn_learn_options o = options(hn_learn_kind_at(i));
        o.longest = 24;
        hn_learner *l = open_learner(model, &o);
        assert_true(isfinite(steps(l, 2)));
        hn_learner_close(&l);
    }
}

/* Missing memory gives a message; with enough memory the same source then gives the right result. */
static void test_online_without_memory(void **state) {
    (void)state;
    const hn_features_wanted some[] = {{1, 20}, {0, 9}, {1, 30}};
    hn_features_read online;
    hunch_error why;
    int failures = 0;
    int64_t calls = 0;
    for (int64_t at = -1; at < calls; at++) { /* the first time they are counted */
        hn_fault_arm(HN_FAULT_ALLOC, at < 0 ? INT64_MAX : at, false);
        hunch_status st = hn_features_online(&online, &model->target, 7, &texts, states, 4, &why);
        if (!st) st = hn_features_need(&online, some, 3, &why);
        if (at < 0) calls = (int64_t)hn_fault_count(HN_FAULT_ALLOC);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(st == HUNCH_OK || (at >= 0 && st == HUNCH_NO_MEMORY));
        failures += st != HUNCH_OK;
        hn_features_close(&online);
    }
    must(hn_features_online(&online, &model->target, 7, &texts, states, 4, err));
    must(hn_features_need(&online, some, 3, err));
    assert_true(failures >= 5);
    const size_t row = (size_t)online.header.n_states * online.header.width * sizeof(uint16_t);
    assert_memory_equal(online.text[1].states, features.text[1].states, 30 * row);
    assert_memory_equal(online.text[0].states, features.text[0].states, 9 * row);
    must(hn_features_need(&online, some + 1, 1, err));
    assert_null(online.text[1].states);
    hn_features_close(&online);
}

static void test_same_bits(void **state) {
    (void)state;
    for (int i = 0; hn_learn_kind_at(i); i++) same_bits_of(options(hn_learn_kind_at(i)));
}

/* The choice of clusters is the same, too. */
static void test_same_bits_of_clusters(void **state) {
    (void)state;
    hn_learn_options o = options(&hn_learn_eagle3);
    o.clusters = 20;
    same_bits_of(o);
}

/* Trains on the first batch repeatedly: the engine then accepts the memorised drafts. An untrained head's drafts are
 * not accepted. least: acceptance of the first draft, and of the third. */
static void memorised_as(const hn_learn_kind *kind, int layers, bool cell, int clusters, int vocab, double rate,
                         const double least[2]) {
    hn_learn_options o = options(kind);
    hn_train_acceptance before, behind;
    char spec[700];
    size_t n;
    if (light() && (kind != &hn_learn_eagle3 || clusters)) return;
    hn_features_read measured = features; /* the first 8 texts are those of temperature 0 */
    measured.n = 8;
    measured.tokens = 0;
    for (int i = 0; i < 8; i++) measured.tokens += (uint64_t)features.text[i].n;
    o.steps = brief(kind) ? 20 : EVERY_CASE ? 300 : 120;
    o.rows = 2048;
    o.rate = rate;
    o.held_out = 0;
    o.vocab = vocab;
    if (layers) o.layers = layers;
    if (!EVERY_CASE && o.unroll > 4) o.unroll = 4; /* three are measured */
    o.cell = cell;
    o.clusters = clusters;
    hn_learner *l = open_learner_of(model, &measured, &o);
    (void)hn_learner_held_out(l, &n);
    assert_int_equal(n, 0);
    snprintf(spec, sizeof spec, "%s:%s,depth=3%s", kind->name, test_path("heart"), kind->whole_model ? "" : ",weights=f32");
    must(hn_learner_save_head(l, test_path("heart"), err));
    must(hn_train_measure(model, spec, texts.item, 8, 50, &before, err));
    double losses[HN_MOST_STEPS];
    int tokens;
    for (int i = 0; i < o.steps; i++) must(hn_learner_step(l, losses, &tokens, err));
    must(hn_learner_save_head(l, test_path("heart"), err));
    must(hn_train_measure(model, spec, texts.item, 8, 50, &behind, err));
    print_message("%s: accepted %.2f %.2f %.2f before, %.2f %.2f %.2f behind\n", kind->name, before.position[0],
                  before.position[1], before.position[2], behind.position[0], behind.position[1], behind.position[2]);
    assert_true(before.position[0] < 0.5);
    assert_true(behind.position[0] > before.position[0]);
    const double part = EVERY_CASE ? 1 : 0.85; /* after half of the steps */
    if (!brief(kind)) assert_true(behind.position[0] > part * least[0] && behind.position[2] > part * least[1]);
    hn_learner_close(&l);
}

static void memorised(const hn_learn_kind *kind, int vocab, double rate, const double least[2]) {
    memorised_as(kind, 0, false, 0, vocab, rate, least);
}

static void first_losses(const hn_learn_kind *kind, double *losses) {
    const hn_learn_options o = options(kind);
    hn_learner *l = open_learner(model, &o);
    must(hn_learner_held_out_losses(l, losses, err));
    hn_learner_close(&l);
}

/* A head without initial information gives similar probabilities to all tokens, and is not confident of wrong ones. A
 * head that starts with parts of the target drafts its tokens: Meta's heads through its last layer, Medusa's from that
 * layer's output. */
static void test_first_loss(void **state) {
    (void)state;
    const hn_learn_options o = options(&hn_learn_dflash);
    double dflash[HN_MOST_STEPS], mlp[HN_MOST_STEPS], medusa[HN_MOST_STEPS], meta[HN_MOST_STEPS];
    first_losses(&hn_learn_dflash, dflash);
    first_losses(&hn_learn_mlp, mlp);
    first_losses(&hn_learn_medusa, medusa);
    first_losses(&hn_learn_meta_mtp, meta);
    for (int k = 0; k < o.unroll; k++)
        if (!(dflash[k] < log(o.vocab) + 1)) fail_msg("dflash: draft %d begins with a loss of %g", k, dflash[k]);
    for (int k = 0; k < 3; k++) {
        if (!(mlp[k] < log(o.vocab) + 0.5)) fail_msg("mlp: draft %d begins with a loss of %g", k, mlp[k]);
        if (!(fabs(meta[k] - medusa[k]) < 0.03 * medusa[k])) fail_msg("draft %d: losses of %g and %g", k, meta[k], medusa[k]);
    }
}

static void test_memorised(void **state) {
    (void)state;
    static const double eagle3[] = {0.9, 0.7}, clusters[] = {0.85, 0.6}, eagle[] = {0.8, 0.55}, mtp[] = {0.8, 0.55}, masks[] = {0.8, 0.55};
    static const double medusa[] = {0.85, 0.7}, hydra[] = {0.85, 0.85}, mlp[] = {0.8, 0.7}, meta[] = {0.8, 0.7}, falcon[] = {0.7, 0.5};
    memorised(&hn_learn_eagle3, 512, 4e-3, eagle3);
    memorised_as(&hn_learn_eagle3, 0, false, 20, 400, 4e-3, clusters); /* logits of 40 of 400 tokens */
    memorised(&hn_learn_eagle, 300, 8e-3, eagle); /* learns the distribution of some tokens; it drafts all */
    memorised(&hn_learn_mtp, 300, 4e-3, mtp);     /* the same */
    memorised_as(&hn_learn_mtp, 3, false, 0, 300, 4e-3, mtp); /* several modules */
    memorised(&hn_learn_peagle, 512, 4e-3, masks);
    memorised(&hn_learn_dart, 512, 4e-3, masks);
    memorised(&hn_learn_dflash, 512, 4e-3, masks);
    memorised(&hn_learn_dspark, 400, 4e-3, masks); /* with a reduced vocabulary */
    memorised(&hn_learn_domino, 400, 4e-3, masks); /* the same */
    memorised(&hn_learn_medusa, 400, 8e-3, medusa); /* with a reduced vocabulary, as is the next */
    memorised(&hn_learn_hydra, 400, 8e-3, hydra);
    memorised(&hn_learn_mlp, 400, 8e-3, mlp);
    memorised_as(&hn_learn_mlp, 0, true, 0, 400, 8e-3, mlp);
    memorised(&hn_learn_meta_mtp, 300, 4e-3, meta); /* learns the distribution of some tokens */
    memorised(&hn_learn_falcon, 300, 8e-3, falcon);
    memorised(&hn_learn_student, 512, 2e-3, masks);
}

/* All of the target's layers unchanged: its distribution by the trainer's network is the target's, and it drafts the target's tokens. */
static void test_student_of_all_layers(void **state) {
    (void)state;
    hn_learn_options o = options(&hn_learn_student);
    hn_train_acceptance a;
    double losses[HN_MOST_STEPS];
    char spec[700];
    o.layers = model->target.arch.layers;
    hn_learner *l = open_learner(model, &o);
    must(hn_learner_held_out_losses(l, losses, err));
    must(hn_learner_save_head(l, test_path("student"), err));
    hn_learner_close(&l);
    if (!(losses[0] < 0.002)) fail_msg("as it begins the target is %g from itself", losses[0]);
    snprintf(spec, sizeof spec, "model:%s,depth=3,precision=f32", test_path("student"));
    must(hn_train_measure(model, spec, texts.item, 8, 50, &a, err));
    print_message("all layers: accepted %.2f %.2f %.2f\n", a.position[0], a.position[1], a.position[2]);
    assert_true(a.position[2] > 0.9); /* all but the ends of texts, as far as its matrices in bf16 are the target's in f32 */
}

static void refused(hunch_status st, const hunch_error *why, const char *says) {
    assert_int_equal(st, HUNCH_REFUSED);
    if (!strstr(why->message, says)) fail_msg("%s", why->message);
}

static void test_others(void **state) {
    (void)state;
    hn_learn_options o = options(&hn_learn_eagle3);
    hunch_error why;
    int steps_planned = -1;
    hn_learner *l = open_learner(model, &o);
    must(hn_learner_save(l, test_path("checkpoint"), err));
    hn_learner_close(&l);
    o.vocab = 301;
    l = open_learner(model, &o);
    refused(hn_learner_load(l, test_path("checkpoint"), &why), &why,
            "is of a training with --vocab 300, this one has --vocab 301: expected --vocab 300, or another -o");
    test_file_write(test_path("short"), "HUNCHCK3", 8);
    refused(hn_learner_load(l, test_path("short"), &why), &why, "no checkpoint");
    must(hn_learner_planned(test_path("short"), o.kind, model, &steps_planned, err));
    assert_int_equal(steps_planned, 0);
    must(hn_learner_planned(test_path("nowhere"), o.kind, model, &steps_planned, err));
    assert_int_equal(steps_planned, 0);
    assert_int_equal(hn_learner_load(l, test_path("nowhere"), &why), HUNCH_FAILED);
    hn_learner_close(&l);
    bytes b = test_file_read(test_path("checkpoint"));
    test_file_write(test_path("cut"), b.at, b.size - 100);
    o.vocab = 300;
    l = open_learner(model, &o);
    refused(hn_learner_load(l, test_path("cut"), &why), &why, "a damaged checkpoint");
    bytes_free(&b);
    hn_learner_close(&l);
}

/* A run continues only with the same kind and level: both checks report it. */
static void refuses(hunch_model *m, const hn_learn_kind *kind, const char *says) {
    const hn_learn_options o = options(kind);
    hunch_error why;
    int n;
    refused(hn_learner_planned(test_path("checkpoint"), kind, m, &n, &why), &why, says);
    hn_learner *l = open_learner(m, &o);
    refused(hn_learner_load(l, test_path("checkpoint"), &why), &why, says);
    hn_learner_close(&l);
}

static void test_other_kind_or_level(void **state) {
    (void)state;
    char says[200];
    hunch_model *plain = open_model(data_path(STORIES), "ref", test_threads(), HUNCH_PRECISION_NATIVE);
    const hn_isa level = model->target.isa;
    for (int i = 0; hn_learn_kind_at(i); i++) {
        const hn_learn_kind *kind = hn_learn_kind_at(i), *other = hn_learn_kind_at(hn_learn_kind_at(i + 1) ? i + 1 : 0);
        const hn_learn_options o = options(kind);
        hn_learner *l = open_learner(model, &o);
        must(hn_learner_save(l, test_path("checkpoint"), err));
        hn_learner_close(&l);
        snprintf(says, sizeof says, "a checkpoint of a head of kind %s: expected one of %s", kind->name, other->name);
        refuses(model, other, says);
        snprintf(says, sizeof says, "a checkpoint of instruction level %s: expected one of %s", hn_isa_name(level),
                 hn_isa_name(plain->target.isa));
        if (level != plain->target.isa) refuses(plain, kind, says);
    }
    hunch_model_close(&plain);
}

/* For every kind: opening without memory or with read errors, and saving without memory or disk space, give a message,
 * and leave neither an incomplete head nor an incomplete checkpoint. */
static void fails_at(const hn_learn_options *o, enum hn_fault_kind what, int64_t at, int *failures, int64_t *calls) {
    hunch_error why = {.message = ""};
    hn_learner *l = NULL;
    hn_fault_arm(what, at < 0 ? INT64_MAX : at, false);
    hunch_status st = hn_learner_open(&l, model, data_path(STORIES), &features, o, &why);
    if (!st) st = hn_learner_save_head(l, test_path("fault"), &why);
    if (!st) st = hn_learner_save(l, test_path("fault.checkpoint"), &why);
    if (at < 0) *calls = (int64_t)hn_fault_count(what);
    hn_fault_arm(what, -1, false);
    hn_learner_close(&l);
    if (at < 0 && st) fail_msg("%s: %s", o->kind->name, why.message);
    if (st && !*why.message) fail_msg("%s: call %d failed without a word", o->kind->name, (int)at);
    *failures += st != HUNCH_OK;
}

static void test_faults(void **state) {
    (void)state;
    static const enum hn_fault_kind all[] = {HN_FAULT_ALLOC, HN_FAULT_READ, HN_FAULT_WRITE};
    for (int i = 0; hn_learn_kind_at(i); i++) {
        const hn_learn_options o = options(hn_learn_kind_at(i));
        for (size_t f = 0; f < sizeof all / sizeof *all; f++) {
            int failures = 0;
            int64_t calls = 0;
            fails_at(&o, all[f], -1, &failures, &calls);
            const int64_t most = light() ? 6 : 24, step = calls > most ? calls / most : 1; /* some of many writes */
            for (int64_t at = 0; at < calls; at += step) fails_at(&o, all[f], at, &failures, &calls);
            const int least = (int)(calls > most ? most : calls) / 2;
            if (failures < least) fail_msg("%s: %d failures of %d calls", o.kind->name, failures, (int)calls);
        }
        hn_learner *l = open_learner(model, &o);
        must(hn_learner_load(l, test_path("fault.checkpoint"), err)); /* the earlier one is still complete */
        hn_learner_close(&l);
    }
}

/* The first of two stages has losses also at tokens of the prompts; held-out losses do not. */
static void test_two_stages(void **state) {
    (void)state;
    hn_learn_kind once = hn_learn_mlp;
    once.two_stages = false;
    const hn_learn_kind *const both[] = {&hn_learn_mlp, &once};
    double judged[2][HN_MOST_STEPS], losses[2][HN_MOST_STEPS];
    for (int i = 0; i < 2; i++) {
        const hn_learn_options o = options(both[i]);
        int tokens;
        hn_learner *l = open_learner(model, &o);
        must(hn_learner_held_out_losses(l, judged[i], err));
        must(hn_learner_step(l, losses[i], &tokens, err));
        hn_learner_close(&l);
    }
    assert_memory_equal(judged[0], judged[1], 3 * sizeof(double));
    assert_true(losses[0][0] != losses[1][0]);
}

/* A learning rate at which weights diverge gives a message, and leaves finite weights. */
static void test_runs_away(void **state) {
    (void)state;
    hn_learn_options o = options(&hn_learn_eagle3);
    hunch_error why;
    hunch_status st = HUNCH_OK;
    double losses[HN_MOST_STEPS];
    int tokens;
    o.rate = 1e30;
    o.clip = 1e30;
    o.steps = 60;
    hn_learner *l = open_learner(model, &o);
    for (int i = 0; !st && i < 50; i++) st = hn_learner_step(l, losses, &tokens, &why);
    assert_int_equal(st, HUNCH_FAILED);
    if (!strstr(why.message, "the loss is")) fail_msg("%s", why.message);
    hn_learner_close(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_same_bits_of_clusters),
                                       cmocka_unit_test(test_first_loss),
                                       cmocka_unit_test(test_online),
                                       cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_online_without_memory),
                                       cmocka_unit_test(test_memorised),
                                       cmocka_unit_test(test_student_of_all_layers),
                                       cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_other_kind_or_level),
                                       cmocka_unit_test(test_runs_away),
                                       cmocka_unit_test(test_two_stages)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
