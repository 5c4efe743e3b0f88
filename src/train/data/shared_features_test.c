/* SPDX-License-Identifier: Apache-2.0 */
/* shared_features_test.c - a folder of features that several trainings read: one that reads some of its states alone has the bits that it
 * would have taken by itself; a state that it lacks, another model and other texts are said; one process at a time writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "engine/engine.h"
#include "fixture.h"
#include "train/data/shared_features.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

static hunch_model *model;
enum { N_TEXTS = 3, MOST = 70 };
static int32_t ids[N_TEXTS][MOST];
static hn_train_text text[N_TEXTS];
static hn_train_texts texts = {.item = text, .n = N_TEXTS};
static const int all[] = {1, 3, 4, HN_FEATURE_POST_NORM}, some[] = {3, HN_FEATURE_POST_NORM}, other[] = {2, HN_FEATURE_POST_NORM};

static int setup(void **state) {
    (void)state;
    static const int length[N_TEXTS] = {1, MOST, 17};
    for (int i = 0; i < N_TEXTS; i++) {
        for (int k = 0; k < length[i]; k++) ids[i][k] = k ? (i * 131 + k * 37) % 500 + 3 : 1;
        text[i] = (hn_train_text){ids[i], length[i], i};
        texts.tokens += (uint64_t)length[i];
    }
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    (void)mkdir(test_path("shared"), 0700);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static hunch_status share(hn_features_read *f, const char *folder, const hn_train_texts *t, uint64_t identity, const int *states,
                          int n, const volatile int *stop, hunch_error *why) {
    *f = (hn_features_read){0};
    return hn_features_share(f, &model->target, identity, t, states, n, folder, NULL, NULL, stop, why);
}

/* The same states, of which b was stored by itself. */
static void same_states(const hn_features_read *a, const hn_features_read *b, uint32_t n) {
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->tokens, b->tokens);
    assert_memory_equal(&a->header, &b->header, sizeof a->header);
    assert_int_equal(a->header.n_states, n);
    for (size_t t = 0; t < a->n; t++) {
        assert_int_equal(a->text[t].n, b->text[t].n);
        assert_int_equal(a->text[t].own, b->text[t].own);
        for (int row = 0; row < a->text[t].n; row++)
            for (uint32_t k = 0; k < n; k++)
                assert_memory_equal(hn_features_state(a, &a->text[t], row, k), hn_features_state(b, &b->text[t], row, k),
                                    a->header.width * sizeof(uint16_t));
    }
}

static void test_some_states(void **state) {
    (void)state;
    hn_features_read f, alone;
    must(share(&f, test_path("shared"), &texts, 7, all, 4, NULL, err));
    hn_features_close(&f);
    bytes before = test_file_read(test_path("shared/features-0000.bin"));
    must(share(&f, test_path("shared"), &texts, 7, some, 2, NULL, err));
    (void)mkdir(test_path("alone"), 0700);
    must(hn_features_make(&model->target, 7, &texts, some, 2, test_path("alone"), NULL, NULL, NULL, err));
    must(hn_features_open(&alone, test_path("alone"), err));
    same_states(&f, &alone, 2);
    hn_features_close(&f);
    hn_features_close(&alone);
    bytes after = test_file_read(test_path("shared/features-0000.bin"));
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.at, after.at, after.size);
    bytes_free(&before);
    bytes_free(&after);
}

/* What was broken off is gone on with by whoever reads next, with the states that were begun. */
static void test_broken_off(void **state) {
    (void)state;
    hn_features_read f;
    bytes whole = test_file_read(test_path("shared/features-0000.bin"));
    (void)mkdir(test_path("broken"), 0700);
    test_file_write(test_path("broken/features-0000.bin"), whole.at, whole.size / 2);
    must(share(&f, test_path("broken"), &texts, 7, some, 2, NULL, err));
    hn_features_close(&f);
    bytes now = test_file_read(test_path("broken/features-0000.bin"));
    assert_int_equal(now.size, whole.size);
    assert_memory_equal(now.at, whole.at, whole.size);
    test_file_write(test_path("broken/features-0000.bin"), whole.at, 30); /* not even a header: it begins again */
    must(share(&f, test_path("broken"), &texts, 7, other, 2, NULL, err));
    assert_int_equal(f.header.boundary[0], 2);
    hn_features_close(&f);
    bytes_free(&whole);
    bytes_free(&now);
}

static void refused(hunch_status st, const hunch_error *why, const char *says) {
    assert_int_equal(st, HUNCH_REFUSED);
    if (!strstr(why->message, says) || !strstr(why->message, "shared")) fail_msg("%s", why->message);
}

static void test_refused(void **state) {
    (void)state;
    hunch_error why;
    hn_features_read f;
    hn_train_texts fewer = texts;
    fewer.n--;
    refused(share(&f, test_path("shared"), &texts, 7, other, 2, NULL, &why), &why,
            "features of the states of layers 1, 3, 4, the last one: expected 2, too");
    hn_features_close(&f);
    refused(share(&f, test_path("shared"), &texts, 8, some, 2, NULL, &why), &why, "features of another model");
    hn_features_close(&f);
    refused(share(&f, test_path("shared"), &fewer, 7, some, 2, NULL, &why), &why, "features of other texts");
    hn_features_close(&f);
    assert_int_equal(share(&f, test_path("nowhere"), &texts, 7, some, 2, NULL, &why), HUNCH_FAILED);
    if (!strstr(why.message, "nowhere") || !strstr(why.message, "expected a folder")) fail_msg("%s", why.message);
    hn_features_close(&f);
}

static int held;
static volatile int released;

static void *release(void *unused) {
    (void)unused;
    usleep(250000);
    released = 1;
    (void)close(held);
    return NULL;
}

/* Where something is missing it waits while another writes, and Ctrl-C ends that; what is whole is read at once. */
static void test_waits(void **state) {
    (void)state;
    static const volatile int stop = 1;
    hunch_error why;
    hn_features_read f;
    pthread_t thread;
    bytes whole = test_file_read(test_path("shared/features-0000.bin"));
    (void)mkdir(test_path("held"), 0700);
    test_file_write(test_path("held/features-0000.bin"), whole.at, whole.size - 1);
    held = open(test_path("held"), O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_int_equal(share(&f, test_path("held"), &texts, 7, some, 2, &stop, &why), HUNCH_CANCELLED);
    if (!strstr(why.message, "another process takes features")) fail_msg("%s", why.message);
    test_file_write(test_path("held/features-0000.bin"), whole.at, whole.size);
    must(share(&f, test_path("held"), &texts, 7, some, 2, &stop, err));
    hn_features_close(&f);
    test_file_write(test_path("held/features-0000.bin"), whole.at, whole.size / 2);
    assert_int_equal(pthread_create(&thread, NULL, release, NULL), 0);
    must(share(&f, test_path("held"), &texts, 7, some, 2, NULL, err));
    assert_int_equal(released, 1);
    hn_features_close(&f);
    held = open(test_path("held"), O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0); /* nobody holds it any more */
    (void)close(held);
    (void)pthread_join(thread, NULL);
    bytes_free(&whole);
}

/* Memory that is missing and a disk that does not read end with a message, or are got over; the folder stays as it is. */
static void test_faults(void **state) {
    (void)state;
    static const enum hn_fault_kind kinds[] = {HN_FAULT_ALLOC, HN_FAULT_READ};
    bytes before = test_file_read(test_path("shared/features-0000.bin"));
    for (int k = 0; k < 2; k++) {
        int failures = 0;
        for (int64_t at = 0, calls = 1; at < calls; at++) {
            hunch_error why = {.message = ""};
            hn_features_read f;
            hn_fault_arm(kinds[k], at, true);
            const hunch_status st = share(&f, test_path("shared"), &texts, 7, some, 2, NULL, &why);
            calls = (int64_t)hn_fault_count(kinds[k]);
            hn_fault_arm(kinds[k], -1, false);
            if (st && !*why.message) fail_msg("call %d failed without a word", (int)at);
            failures += st != HUNCH_OK;
            hn_features_close(&f);
        }
        print_message("%d calls that failed\n", failures);
        assert_true(k > 0 || failures >= 3);
    }
    bytes after = test_file_read(test_path("shared/features-0000.bin"));
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.at, after.at, after.size);
    bytes_free(&before);
    bytes_free(&after);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_some_states), cmocka_unit_test(test_broken_off),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_waits)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
