/* SPDX-License-Identifier: Apache-2.0 */
/* learner.h - what a head learns from in tests: stories260K, texts of a file, and their features. */
#ifndef HN_LEARNER_H
#define HN_LEARNER_H
#include <sys/stat.h>

#include "fixture.h"
#include "train/learn/learn.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

#define STORIES "models/stories260K/stories260K.f32.gguf"
static hunch_model *model;
static hn_train_texts texts;
static hn_features_read features;
static const int states[] = {1, 3, 4, HN_FEATURE_POST_NORM};

/* Of `model`, which is open, and of test_path("texts.jsonl"). */
static void open_features(void) {
    must(hn_train_texts_read(&texts, test_path("texts.jsonl"), 512, err));
    (void)mkdir(test_path("features"), 0700);
    must(hn_features_make(&model->target, 7, &texts, states, 4, test_path("features"), NULL, NULL, NULL, err));
    must(hn_features_open(&features, test_path("features"), err));
}

static inline hn_learner *open_learner_of(hunch_model *m, const hn_features_read *f, const hn_learn_options *o) {
    hn_learner *l;
    must(hn_learner_open(&l, m, data_path(STORIES), f, o, err));
    return l;
}

static inline void same_files(const char *a, const char *b) {
    bytes x = test_file_read(a), y = test_file_read(b);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.at, y.at, x.size);
    bytes_free(&x);
    bytes_free(&y);
}

static int teardown(void **state) {
    (void)state;
    hn_features_close(&features);
    hn_train_texts_fini(&texts);
    hunch_model_close(&model);
    return 0;
}
#endif
