/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_pipelines_test.c - a small tokenizer.json for each supported normalizer, pre-tokenizer, model, decoder and kind of
 * added token, against the `tokenizers` package (tools/make_pipeline_vectors.py).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "text/tokenizer/tokenizer_for_tests.h"
#include "text/tokenizer/vectors_for_tests.h"

enum { MOST_SHOWN = 5 }; /* failures of one pipeline that are printed */

static void print_ids(const char *what, const json_t *want, const int32_t *got, size_t n) {
    char line[2000];
    size_t used = (size_t)snprintf(line, sizeof line, "%s", what), i;
    json_t *id;
    json_array_foreach(want, i, id) {
        if (used < sizeof line - 20) used += (size_t)sprintf(line + used, " %d", (int)json_integer_value(id));
    }
    for (i = 0; i < n && used < sizeof line - 20; i++) used += (size_t)sprintf(line + used, " %d", got[i]);
    print_error("%s\n", line);
}

static bool same(const json_t *want, const int32_t *got, size_t n) {
    if (json_array_size(want) != n) return false;
    for (size_t i = 0; i < n; i++) {
        if (json_integer_value(json_array_get(want, i)) != got[i]) return false;
    }
    return true;
}

static bool check_ids(const hn_tokenizer *t, const char *name, const json_t *row, const char *key, int flags) {
    size_t len, n;
    const char *text = row_text(row, "text", &len);
    const json_t *want = json_object_get(row, key);
    int32_t *ids;
    hunch_error e = {0};
    if (hn_tokenizer_encode(t, text, len, flags, &ids, &n, &e) != HUNCH_OK) {
        print_error("%s: \"%s\": %s\n", name, text, e.message);
        return false;
    }
    bool ok = same(want, ids, n);
    if (!ok) {
        print_error("%s: \"%s\": %s differ\n", name, text, key);
        print_ids("  expected", want, NULL, 0);
        print_ids("  got     ", NULL, ids, n);
    }
    hn_free(ids);
    return ok;
}

static bool check_decoded(const hn_tokenizer *t, const char *name, const json_t *row) {
    int32_t ids[2000];
    size_t n = 0, i, len;
    json_t *id;
    const char *want = row_text(row, "decoded", &len);
    if (!want) return true;
    json_array_foreach(json_object_get(row, "ids"), i, id) ids[n++] = (int32_t)json_integer_value(id);
    char *text = decode_ids(t, ids, n);
    bool ok = (text ? strcmp(text, want) : (int)len) == 0;
    if (!ok)
        print_error("%s: \"%s\" decodes to \"%s\", expected \"%s\"\n", name, row_text(row, "text", NULL), text, want);
    hn_free(text);
    return ok;
}

static bool check_row(const hn_tokenizer *t, const char *name, const json_t *row) {
    bool ok = check_ids(t, name, row, "ids", HUNCH_TEXT_PARSE_SPECIAL);
    const char *around = json_object_get(row, "around") ? "around" : "ids";
    ok &= check_ids(t, name, row, around, HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL);
    return ok & check_decoded(t, name, row);
}

static size_t check_pipeline(const json_t *j) {
    const char *name = row_text(j, "name", NULL);
    const json_t *rows = json_object_get(j, "rows");
    char *text = json_dumps(json_object_get(j, "tokenizer"), JSON_COMPACT);
    hn_tokenizer *t;
    hunch_error e = {0};
    size_t failed = 0, i;
    json_t *row;
    if (open_json(text, &t, &e) != HUNCH_OK) {
        print_error("%s: %s\n", name, e.message);
        failed = 1;
    }
    free(text);
    json_array_foreach(rows, i, row) {
        if (t && failed < MOST_SHOWN) failed += !check_row(t, name, row);
    }
    assert_in_range(i, 60, 200);
    hn_tokenizer_close(&t);
    return failed;
}

static void test_pipelines(void **state) {
    (void)state;
    char *line = NULL;
    size_t cap = 0, n = 0, failed = 0;
    FILE *f = fopen(HUNCH_TEST_TOKENIZERS "/pipelines.jsonl", "r");
    assert_non_null(f);
    for (; getline(&line, &cap, f) > 0; n++) {
        json_error_t e;
        json_t *j = json_loads(line, JSON_ALLOW_NUL, &e);
        if (!j) fail_msg("line %zu: %s", n + 1, e.text);
        failed += check_pipeline(j) != 0;
        json_decref(j);
    }
    free(line);
    fclose(f);
    assert_in_range(n, 50, 200);
    if (failed) fail_msg("%zu of %zu pipelines differ", failed, n);
}

/* SentencePiece's own models, in GGUF files, against SentencePiece. */
static size_t check_sentencepiece(const char *name) {
    char path[600];
    char *line = NULL;
    size_t cap = 0, n = 0, failed = 0;
    hn_source *src;
    hn_tokenizer *t;
    hunch_error e = {0};
    snprintf(path, sizeof path, "%s/%s.gguf", HUNCH_TEST_TOKENIZERS, name);
    if (hn_source_open(&src, path, &e) != HUNCH_OK || hn_tokenizer_open(&t, src, &e) != HUNCH_OK)
        fail_msg("%s", e.message);
    hn_source_close(&src);
    snprintf(path, sizeof path, "%s/%s.jsonl", HUNCH_TEST_TOKENIZERS, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (; getline(&line, &cap, f) > 0; n++) {
        json_t *row = json_loads(line, 0, NULL);
        assert_non_null(row);
        if (failed < MOST_SHOWN) failed += !check_ids(t, name, row, "ids", 0) || !check_decoded(t, name, row);
        json_decref(row);
    }
    assert_in_range(n, 100, 200);
    free(line);
    fclose(f);
    hn_tokenizer_close(&t);
    return failed;
}

static void test_sentencepiece(void **state) {
    (void)state;
    assert_int_equal(check_sentencepiece("llama") + check_sentencepiece("t5") + check_sentencepiece("t5-bytes"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pipelines), cmocka_unit_test(test_sentencepiece)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
