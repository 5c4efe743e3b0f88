/* SPDX-License-Identifier: Apache-2.0 */
/* texts_test.c - rows in all their forms, rows that are left out, texts of a real model that are the same for any
 * number of interruptions, and invalid files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/engine.h"
#include "fixture.h"
#include "format/bytes_for_tests.h"
#include "train/data/make_texts.h"
#include "train/data/texts.h"

static const char *written(const char *name, const char *text) {
    const char *path = test_path(name);
    test_file_write(path, text, strlen(text));
    return path;
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

static const char *content(const hn_train_rows *r, size_t row, size_t message) {
    return json_string_value(json_object_get(json_array_get(r->item[row].messages, message), "content"));
}

static void test_forms(void **state) {
    (void)state;
    hn_train_rows r = {0};
    must(hn_train_rows_read(
        &r,
        written("rows.jsonl",
                "{\"prompt\": \"one\"}\n\n{\"question\": \"two\"}\n{\"instruction\": \"three\", \"input\": \"four\"}\n"
                "{\"text\": \"five\"}\n"
                "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": \"a\"}, "
                "{\"role\": \"assistant\", \"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}, "
                "{\"role\": \"assistant\", \"content\": \"d\"}]}\n"
                "{\"prompt\": \"ONE!\"}\n"),
        err));
    must(hn_train_rows_read(
        &r,
        written(
            "rows.json",
            "[{\"conversations\": [{\"from\": \"human\", \"value\": \"x\"}, {\"from\": \"gpt\", \"value\": \"y\"}]}]"),
        err));
    must(hn_train_rows_read(&r, written("book.txt", "A paragraph.\n\nAnother.\n"), err));
    assert_int_equal(r.n, 7);
    assert_int_equal(r.doubles, 1); /* differs in case and punctuation */
    assert_string_equal(content(&r, 0, 0), "one");
    assert_string_equal(content(&r, 1, 0), "two");
    assert_string_equal(content(&r, 2, 0), "three\n\nfour");
    assert_string_equal(r.item[3].text, "five");
    assert_int_equal(json_array_size(r.item[4].messages), 4); /* the last answer is not needed */
    assert_string_equal(content(&r, 4, 3), "c");
    assert_string_equal(content(&r, 5, 0), "x");
    assert_string_equal(r.item[6].text, "A paragraph.\n\nAnother.\n");
    hn_train_rows_fini(&r);
}

static void test_left_out(void **state) {
    (void)state;
    hn_train_rows r = {0};
    must(hn_train_rows_leave_out(
        &r,
        written(
            "bench.jsonl",
            "{\"id\": 7, \"turns\": [\"How many apples does Alice have after she has given two of nine to Bob?\"]}\n"),
        err));
    must(hn_train_rows_read(
        &r,
        written("near.jsonl",
                "{\"prompt\": \"how many apples does alice have after she has given two of nine to carol\"}\n"
                "{\"prompt\": \"How many pears does Alice have after she has sold three of nine to Bob?\"}\n"),
        err));
    assert_int_equal(r.n, 1);
    assert_int_equal(r.near, 1);
    hn_train_rows_fini(&r);
}

static void test_bad_rows(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {{"{\"answer\": 1}\n", "row 1: expected an object with messages"},
                 {"{\"prompt\": \"good\"}\n{\"prompt\": 7}\n", "row 2: expected an object"},
                 {"{\"prompt\": \n", "line 1 is not JSON"},
                 {"[{\"prompt\": \"a\"}, 3]", "row 2: expected an object"},
                 {"[{\"prompt\": \"a\"}", "bad.jsonl: line 1"},
                 {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}", "row 1: expected"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_train_rows r = {0};
        hunch_error why = {0};
        assert_int_equal(hn_train_rows_read(&r, written("bad.jsonl", cases[i].text), &why), HUNCH_REFUSED);
        if (!strstr(why.message, cases[i].says)) fail_msg("%s: %s", cases[i].text, why.message);
        hn_train_rows_fini(&r);
    }
    hn_train_rows r = {0};
    hunch_error why = {0};
    assert_int_not_equal(hn_train_rows_read(&r, test_path("nowhere"), &why), HUNCH_OK);
    test_file_write(test_path("zero.txt"), "a\0b", 3);
    assert_int_equal(hn_train_rows_read(&r, test_path("zero.txt"), &why), HUNCH_REFUSED);
    hn_train_rows_fini(&r);
}

/* ---- texts ------------------------------------------------------------------------------------------------------------- */

static const double temperatures[] = {0, 1};
static volatile int stop;

static void stop_at(void *user, size_t done, size_t of, uint64_t tokens, double seconds) {
    (void)of;
    (void)tokens;
    (void)seconds;
    if (done >= *(const size_t *)user) stop = 1;
}

static hunch_model *stories(void) {
    return open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
}

static void rows_some(hn_train_rows *r) {
    must(hn_train_rows_read(
        r,
        written("some.jsonl", "{\"prompt\": \"Once upon a time\"}\n{\"text\": \"Tim had a dog. The dog was big.\"}\n"
                              "{\"prompt\": \"Lily and Ben\"}\n{\"prompt\": \"The sun\"}\n"
                              "{\"messages\": [{\"role\": \"user\", \"content\": \"One day\"}, {\"role\": \"user\", "
                              "\"content\": \"and\"}]}\n"),
        err));
}

/* The bytes of the file do not depend on interruptions, nor on data after the last complete job. */
static void test_resume(void **state) {
    (void)state;
    hunch_model *m = stories();
    hn_train_rows r = {0};
    hn_train_make how = {
        .temperature = temperatures, .n_temperatures = 2, .max_tokens = 20, .context = 64, .parallel = 3, .seed = 5};
    rows_some(&r);
    must(hn_train_texts_make(m, &r, &how, test_path("whole.jsonl"), err));
    bytes whole = test_file_read(test_path("whole.jsonl"));
    hn_train_texts t = {0};
    must(hn_train_texts_read(&t, test_path("whole.jsonl"), 512, err));
    assert_int_equal(t.n, 2 * 4 + 1); /* the text once, one turn of the conversation: the model has no template */
    assert_int_equal(t.item[1].own, 1);
    assert_true(t.item[0].own > 1 && t.item[0].n > t.item[0].own);
    hn_train_texts_fini(&t);
    for (size_t at = 1; at < 10; at++) {
        hunch_error why;
        char broken[64];
        size_t ended = at;
        how.progress = stop_at;
        how.user = &ended;
        stop = 0;
        how.stop = &stop;
        (void)unlink(test_path("part.jsonl"));
        assert_int_equal(hn_train_texts_make(m, &r, &how, test_path("part.jsonl"), &why),
                         at < 10 ? HUNCH_CANCELLED : HUNCH_OK);
        FILE *f = fopen(test_path("part.jsonl"), "a");
        snprintf(broken, sizeof broken, "{\"id\": \"x\", \"own\": 1, \"ids\": [1, 2]}\n{\"id\": ");
        fwrite(broken, 1, at % 2 ? strlen(broken) : strlen(broken) - 7, f);
        fclose(f);
        how.progress = NULL;
        how.stop = NULL;
        how.parallel = 1 + (int)at % 4;
        must(hn_train_texts_make(m, &r, &how, test_path("part.jsonl"), err));
        bytes part = test_file_read(test_path("part.jsonl"));
        assert_int_equal(part.size, whole.size);
        assert_memory_equal(part.at, whole.at, whole.size);
        bytes_free(&part);
    }
    bytes_free(&whole);
    hn_train_rows_fini(&r);
    hunch_model_close(&m);
}

/* With the model itself as speaker the answers and their ends are the model's. */
static void test_speaker(void **state) {
    (void)state;
    hunch_model *m = stories(), *same = stories();
    hn_train_rows r = {0};
    hn_train_make how = {
        .temperature = temperatures, .n_temperatures = 2, .max_tokens = 60, .context = 128, .parallel = 3, .seed = 5};
    rows_some(&r);
    must(hn_train_texts_make(m, &r, &how, test_path("its.jsonl"), err));
    how.speaker = same;
    must(hn_train_texts_make(m, &r, &how, test_path("speaker.jsonl"), err));
    bytes its = test_file_read(test_path("its.jsonl")), spoken = test_file_read(test_path("speaker.jsonl"));
    assert_int_equal(its.size, spoken.size);
    assert_memory_equal(its.at, spoken.at, its.size);
    bytes_free(&its);
    bytes_free(&spoken);
    hn_train_rows_fini(&r);
    hunch_model_close(&same);
    hunch_model_close(&m);
}

/* A speaker without a tokenizer and with random weights: its answers end at the model's end tokens. */
static void test_speaker_without_tokenizer(void **state) {
    (void)state;
    static const double hot[] = {3, 5, 7, 9};
    hunch_model *m = stories(),
                *random = open_model(data_path("goldens/qwen3-dense"), "best", 1, HUNCH_PRECISION_NATIVE);
    hn_train_rows r = {0};
    hn_train_make how = {.temperature = hot, .n_temperatures = 4, .max_tokens = 110, .context = 128, .parallel = 3, .seed = 5};
    hn_train_texts t = {0};
    int ended = 0;
    assert_null(random->tokenizer);
    rows_some(&r);
    how.speaker = random;
    must(hn_train_texts_make(m, &r, &how, test_path("random.jsonl"), err));
    must(hn_train_texts_read(&t, test_path("random.jsonl"), 512, err));
    for (size_t i = 0; i < t.n; i++) {
        for (int k = t.item[i].own; k + 1 < t.item[i].n; k++)
            assert_false(hn_tokenizer_is_end(m->tokenizer, t.item[i].ids[k]));
        ended += t.item[i].own > 1 && hn_tokenizer_is_end(m->tokenizer, t.item[i].ids[t.item[i].n - 1]);
    }
    assert_true(ended > 0);
    hn_train_texts_fini(&t);
    hn_train_rows_fini(&r);
    hunch_model_close(&random);
    hunch_model_close(&m);
}

static void test_own_prompts(void **state) {
    (void)state;
    hunch_model *m = stories();
    hn_train_rows r = {0}, again = {0};
    const hn_train_make how = {
        .temperature = temperatures, .n_temperatures = 2, .max_tokens = 20, .context = 256, .parallel = 3, .seed = 5};
    must(hn_train_rows_of_model(m, &r, 6, &how, err));
    must(hn_train_rows_of_model(m, &again, 6, &how, err));
    assert_true(r.n >= 4 && r.n <= 6 && again.n == r.n);
    for (size_t i = 0; i < r.n; i++) assert_string_equal(content(&r, i, 0), content(&again, i, 0));
    hn_train_rows_fini(&r);
    hn_train_rows_fini(&again);
    hunch_model_close(&m);
}

static void test_bad_texts(void **state) {
    (void)state;
    static const char *const bad[] = {"{\"id\": \"a\", \"own\": 1, \"ids\": []}\n",
                                      "{\"id\": \"a\", \"own\": 3, \"ids\": [1, 2]}\n",
                                      "{\"id\": \"a\", \"own\": 0, \"ids\": [512]}\n",
                                      "{\"id\": \"a\", \"own\": 0, \"ids\": [-1]}\n",
                                      "{\"own\": 0, \"ids\": [1.5]}\n",
                                      "no JSON\n",
                                      "\n",
                                      "{\"ids\": [1]}\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hn_train_texts t = {0};
        hunch_error why = {0};
        assert_int_equal(hn_train_texts_read(&t, written("bad.jsonl", bad[i]), 512, &why), HUNCH_REFUSED);
        if (!strstr(why.message, "line 1: expected")) fail_msg("%s", why.message);
        hn_train_texts_fini(&t);
    }
    hunch_error why = {0};
    hn_train_texts t = {0};
    assert_int_equal(hn_train_texts_read(&t, test_path("nowhere"), 512, &why), HUNCH_FAILED);
}

static void test_full_disk(void **state) {
    (void)state;
    hunch_model *m = stories();
    hn_train_rows r = {0};
    hunch_error why = {0};
    struct rlimit before, little;
    const hn_train_make how = {
        .temperature = temperatures, .n_temperatures = 2, .max_tokens = 20, .context = 64, .parallel = 3};
    rows_some(&r);
    (void)getrlimit(RLIMIT_FSIZE, &before);
    little = (struct rlimit){300, before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &little);
    const hunch_status st = hn_train_texts_make(m, &r, &how, test_path("full.jsonl"), &why);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(st, HUNCH_FAILED);
    if (!strstr(why.message, "full.jsonl: cannot be written")) fail_msg("%s", why.message);
    must(hn_train_texts_make(m, &r, &how, test_path("full.jsonl"), err)); /* and continues when there is space */
    must(hn_train_texts_make(m, &r, &how, test_path("again.jsonl"), err));
    bytes one = test_file_read(test_path("full.jsonl")), two = test_file_read(test_path("again.jsonl"));
    assert_int_equal(one.size, two.size);
    assert_memory_equal(one.at, two.at, one.size);
    bytes_free(&one);
    bytes_free(&two);
    assert_int_equal(hn_train_texts_make(m, &r, &how, "/dev/null", &why), HUNCH_FAILED);
    if (!strstr(why.message, "/dev/null: expected a file")) fail_msg("%s", why.message);
    hn_train_rows_fini(&r);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),       cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_bad_rows),    cmocka_unit_test(test_resume),
        cmocka_unit_test(test_speaker),     cmocka_unit_test(test_speaker_without_tokenizer),
        cmocka_unit_test(test_own_prompts), cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_full_disk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
