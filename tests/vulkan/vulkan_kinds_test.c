/* SPDX-License-Identifier: Apache-2.0 */
/* vulkan_kinds_test.c - every family of tests/data/goldens and every kind of head of tests/data/goldens-heads on a device: it runs, and
 * then a drafted greedy text is the plain one, or is refused by the name of what it needs. Nothing ends otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "fixture.h"

enum { MOST = 128, TEXT = 24 };

static int by_text(const void *a, const void *b) {
    return strcmp(a, b);
}

/* The folders below one. */
static int list(const char *folder, char name[MOST][64]) {
    DIR *d = opendir(data_path(folder));
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && !strchr(e->d_name, '.') && strcmp(e->d_name, "targets") != 0) {
            assert_true(n < MOST);
            snprintf(name[n++], sizeof *name, "%.63s", e->d_name);
        }
    closedir(d);
    qsort(name, (size_t)n, sizeof *name, by_text);
    return n;
}

static int runs, refusals;

/* NULL: the device says what it lacks. */
static hunch_model *open_here(const char *path) {
    hunch_model_options o;
    hunch_model *m = NULL;
    hunch_error err = {0};
    hunch_model_options_defaults(&o);
    o.device = "vulkan:0";
    o.precision = HUNCH_PRECISION_F32;
    const hunch_status st = hunch_model_open(&m, path, &o, &err);
    if (!st) return m;
    if (st != HUNCH_REFUSED || !strstr(err.message, "--device cpu")) fail_msg("%s: %s", path, err.message);
    refusals++;
    return NULL;
}

/* Returns whether it runs. */
static bool text_of(hunch_model *m, const char *draft, answer *a) {
    static const hunch_token prompt[] = {1, 40, 41, 42, 40, 41, 42, 40, 41};
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_error err = {0};
    hunch_request r;
    hunch_engine_options_defaults(&o);
    o.drafts = draft ? &draft : NULL;
    o.n_drafts = draft != NULL;
    o.context = 128;
    const hunch_status st = hunch_engine_open(&e, m, &o, &err);
    if (st == HUNCH_REFUSED && strstr(err.message, "--device cpu")) {
        print_message("%s\n", err.message);
        return false;
    }
    if (st) fail_msg("%s: %s", draft, err.message);
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = TEXT;
    r.sampling = (hunch_sampling){.top_p = 1};
    run_requests(e, &r, 1, false, a);
    hunch_engine_close(&e);
    return true;
}

static void test_families(void **state) {
    static char name[MOST][64];
    const int n = list("goldens", name);
    (void)state;
    runs = refusals = 0;
    for (int i = 0; i < n; i++) {
        char path[100];
        if ((light() && i % 4) || strstr(name[i], "assistant")) continue;
        snprintf(path, sizeof path, "goldens/%s", name[i]);
        hunch_model *m = open_here(data_path(path));
        if (!m) continue;
        answer plain = {0}, drafted = {0};
        assert_true(text_of(m, NULL, &plain) && text_of(m, "ngram", &drafted));
        if (plain.n != drafted.n || memcmp(plain.token, drafted.token, plain.n * sizeof *plain.token))
            fail_msg("%s drafted differs", path);
        answer_free(&plain), answer_free(&drafted);
        hunch_model_close(&m);
        runs++;
    }
    assert_true(runs > 2 && refusals > 2);
}

static const char *text_at(const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    assert_non_null(s);
    return s;
}

static void test_heads(void **state) {
    static char name[MOST][64];
    const int n = list("goldens-heads", name);
    char target[600] = "", path[700], spec[800];
    hunch_model *m = NULL;
    answer plain = {0};
    (void)state;
    runs = refusals = 0;
    for (int i = 0; i < n; i++) {
        if (light() && i % 6) continue;
        snprintf(path, sizeof path, "goldens-heads/%s/golden.json", name[i]);
        json_t *golden = json_load_file(data_path(path), 0, NULL);
        if (!golden) continue; /* of trainings */
        snprintf(path, sizeof path, "%s/goldens-heads/%s/%s", HUNCH_TEST_DATA, name[i], text_at(golden, "target"));
        if (strcmp(path, target) != 0) {
            hunch_model_close(&m);
            answer_free(&plain);
            plain = (answer){0};
            snprintf(target, sizeof target, "%.599s", path);
            m = open_here(target);
            if (m) assert_true(text_of(m, NULL, &plain));
        }
        snprintf(spec, sizeof spec, "%s:%s/goldens-heads/%s/%s", text_at(golden, "kind"), HUNCH_TEST_DATA, name[i],
                 text_at(golden, "head"));
        json_decref(golden);
        if (!m) continue;
        answer drafted = {0};
        if (!text_of(m, spec, &drafted)) {
            refusals++;
            continue;
        }
        runs++;
        if (plain.n != drafted.n || memcmp(plain.token, drafted.token, plain.n * sizeof *plain.token))
            fail_msg("%s differs", spec);
        if (drafted.drafted == 0) fail_msg("%s drafts nothing", spec);
        answer_free(&drafted);
    }
    hunch_model_close(&m);
    answer_free(&plain);
    print_message("%d kinds of heads draft, %d are refused\n", runs, refusals);
    assert_true(runs > 2 && refusals >= 1);
}

int main(void) {
    hunch_device list_of[HUNCH_DEVICES];
    hunch_error err = {0};
    int n = 0;
    if (hunch_devices(list_of, &n, &err) || n == 0) {
        printf("skipped: %s\n", n == 0 && !err.message[0] ? "no device" : err.message);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_families), cmocka_unit_test(test_heads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
