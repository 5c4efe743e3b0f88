/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_vectors_test.c - whole vocabularies of real models against ids computed by other programs.
 *
 * The vocabularies and the vectors are in tests/data/tokenizers/vocabularies.tar.xz, which the build extracts. Vectors
 * whose vocabulary is missing are counted and named. Their sources: tests/data/tokenizers/README.md.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>

#include "base/mem.h"
#include "real_model.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/vectors_for_tests.h"

static const char *at(const char *name) {
    static char path[4][600];
    static int next;
    char *p = path[next++ & 3];
    bool whole = name[0] == '/';
    snprintf(p, sizeof path[0], "%s%s%s", whole ? "" : HUNCH_TEST_TOKENIZERS, whole ? "" : "/", name);
    return p;
}

static hn_tokenizer *open_named(const char *name) {
    hn_source *src;
    hn_tokenizer *t;
    hunch_error e = {0};
    if (hn_source_open(&src, at(name), &e) != HUNCH_OK) fail_msg("%s: %s", name, e.message);
    if (hn_tokenizer_open(&t, src, &e) != HUNCH_OK) fail_msg("%s: %s", name, e.message);
    hn_source_close(&src);
    assert_non_null(t);
    return t;
}

static char *read_all(const char *name) {
    FILE *f = fopen(at(name), "rb");
    char *text = NULL;
    size_t cap = 0;
    if (!f) fail_msg("%s cannot be opened", at(name));
    if (getdelim(&text, &cap, '\0', f) < 0) fail_msg("%s is empty", at(name));
    fclose(f);
    return text;
}

typedef struct ids {
    int32_t *at;
    size_t n;
} ids;

static ids encode(const hn_tokenizer *t, const char *text, size_t len, int flags) {
    ids out;
    hunch_error e = {0};
    if (hn_tokenizer_encode(t, text, len, flags, &out.at, &out.n, &e) != HUNCH_OK)
        fail_msg("\"%s\": %s", text, e.message);
    return out;
}

/* special: control tokens decode to their names. */
static char *decode(const hn_tokenizer *t, ids list, bool special) {
    hn_detok d;
    char *text = NULL;
    size_t len = 0, cap = 0;
    hn_detok_init(&d);
    for (size_t i = 0; i < list.n; i++) {
        assert_int_equal(hn_detok_push(&d, t, list.at[i], &text, &len, &cap, NULL), HUNCH_OK);
        if (!special || !hn_tokenizer_is_special(t, list.at[i])) continue;
        size_t n;
        const char *piece = hn_tokenizer_piece(t, list.at[i], &n);
        assert_true(hn_grow((void **)&text, &cap, len + n + 1, 1));
        memcpy(text + len, piece, n + 1);
        len += n;
    }
    assert_int_equal(hn_detok_end(&d, &text, &len, &cap, NULL), HUNCH_OK);
    return text;
}

/* ---- vectors/ggml-vocab-NAME.gguf.inp and .out: texts between marker lines, a line of ids for each ---- */

static const char MARKER[] = "\n__ggml_vocab_test__\n";

static void check_text(const char *name, const hn_tokenizer *t, const char *text, size_t len, const char *want) {
    ids got = encode(t, text, len, 0);
    for (size_t i = 0; i < got.n; i++) {
        char *end;
        long id = strtol(want, &end, 10);
        if (end == want || id != got.at[i])
            fail_msg("%s: \"%.*s\": id %zu is %d, expected \"%.*s\"", name, (int)len, text, i, got.at[i],
                     (int)strcspn(want, "\n"), want);
        want = end;
    }
    if (want[strspn(want, " ")] != '\n') fail_msg("%s: \"%.*s\": ids are missing", name, (int)len, text);
    hn_free(got.at);
}

static size_t check_ggml(const char *vectors, const char *vocabulary) {
    char file[200];
    hn_tokenizer *t = open_named(vocabulary);
    snprintf(file, sizeof file, "vectors/ggml-vocab-%s.gguf.inp", vectors);
    char *texts = read_all(file), *text = texts;
    snprintf(file, sizeof file, "vectors/ggml-vocab-%s.gguf.out", vectors);
    char *lines = read_all(file), *line = lines;
    size_t n = 0;
    for (char *next; *line; text = next + (*next ? sizeof MARKER - 1 : 0), n++) {
        next = strstr(text, MARKER);
        if (!next) next = text + strlen(text); /* the last one of some files */
        check_text(vectors, t, text, (size_t)(next - text), line);
        line = strchr(line, '\n') + 1;
    }
    assert_int_equal(*text, '\0'); /* every text had its line */
    free(texts);
    free(lines);
    hn_tokenizer_close(&t);
    return n;
}

static void test_ggml(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"gpt-2", "gguf/ggml-vocab-gpt-2.gguf"},
        {"llama-spm", "gguf/ggml-vocab-llama-spm.gguf"},
        {"phi-3", "gguf/ggml-vocab-phi-3.gguf"},
        {"deepseek-coder", "gguf/ggml-vocab-deepseek-coder.gguf"},
        {"falcon", "gguf/ggml-vocab-falcon.gguf"},
        {"starcoder", "gguf/ggml-vocab-starcoder.gguf"},
        {"llama-bpe", "hf/llama3"},
        {"qwen2", "hf/qwen3"}, /* one vocabulary */
    };
    size_t n = sizeof pairs / sizeof *pairs, skipped = 0;
    for (size_t i = 0; i < (light() ? 5 : n); i++) assert_int_equal(check_ggml(pairs[i][0], pairs[i][1]), 46);
    DIR *folder = opendir(at("vectors"));
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        const char *name = e->d_name + strlen("ggml-vocab-"), *end = strstr(e->d_name, ".gguf.inp");
        if (!end) continue;
        size_t len = (size_t)(end - name), i = 0;
        while (i < n && (strlen(pairs[i][0]) != len || strncmp(pairs[i][0], name, len))) i++;
        if (i < n) continue;
        print_message("skipped, the vocabulary is not here: %.*s\n", (int)len, name);
        skipped++;
    }
    closedir(folder);
    print_message("%zu vocabularies of 46 texts, %zu skipped\n", n, skipped);
    assert_int_equal(skipped, 7);
}

/* Gemma 4's vocabulary is Gemma 3's, whose model the long tests download. */
static void test_gemma(void **state) {
    (void)state;
    char path[600];
    if (!cached_model("HUNCH_GEMMA3", "gemma-3-270m-Q4_K_M.gguf", "scripts/fetch-model.sh gemma3", path)) skip();
    assert_int_equal(check_ggml("gemma-4", path), 46);
}

/* ---- vectors/NAME.vectors.jsonl: text, ids, and the decoded text if it differs ---- */

static void check_row(const json_t *row, const hn_tokenizer *t, const char *name) {
    size_t len;
    const char *text = row_text(row, "text", &len);
    const json_t *want = json_object_get(row, "ids");
    const char *back = row_text(row, json_object_get(row, "decoded") ? "decoded" : "text", NULL);
    ids got = encode(t, text, len, HUNCH_TEXT_PARSE_SPECIAL);
    for (size_t i = 0; i < got.n && i < json_array_size(want); i++) {
        int id = (int)json_integer_value(json_array_get(want, i));
        if (got.at[i] != id) fail_msg("%s: \"%s\": id %zu is %d, expected %d", name, text, i, got.at[i], id);
    }
    if (got.n != json_array_size(want))
        fail_msg("%s: \"%s\": %zu ids, expected %zu", name, text, got.n, json_array_size(want));
    char *decoded = decode(t, got, true);
    if (strcmp(decoded, back)) fail_msg("%s: \"%s\" decodes to \"%s\", expected \"%s\"", name, text, decoded, back);
    hn_free(decoded);
    hn_free(got.at);
}

static void check_jsonl(const char *name) {
    char file[100];
    snprintf(file, sizeof file, "hf/%s", name);
    hn_tokenizer *t = open_named(file);
    snprintf(file, sizeof file, "vectors/%s.vectors.jsonl", name);
    FILE *f = fopen(at(file), "r");
    char *line = NULL;
    size_t cap = 0, n = 0;
    assert_non_null(f);
    for (; getline(&line, &cap, f) > 0; n++) {
        json_error_t e;
        json_t *row = json_loads(line, JSON_ALLOW_NUL, &e);
        if (!row) fail_msg("%s, line %zu: %s", file, n + 1, e.text);
        check_row(row, t, name);
        json_decref(row);
    }
    free(line);
    fclose(f);
    hn_tokenizer_close(&t);
    assert_int_equal(n, 272);
}

/* README: "Token ids and chat prompts are those of the model's own tokenizer and template." */
static void test_jsonl(void **state) {
    (void)state;
    check_jsonl("qwen3");
    if (light()) return;
    check_jsonl("llama3");
    check_jsonl("deepseek_v3");
}

/* ---- vectors/swift-transformers.tokenizer_tests.json: {model: [{input, encoded, decoded_without_special}]} ---- */

/* What transformers does to a decoded text if a tokenizer sets clean_up_tokenization_spaces; hunch does not. */
static void clean_up(char *text) {
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},     {" !", "!"},   {" ,", ","},
                                           {" ' ", "'"},    {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t n = strlen(pairs[i][0]), m = strlen(pairs[i][1]);
        for (char *p = text; (p = strstr(p, pairs[i][0])); p += m) {
            memcpy(p, pairs[i][1], m);
            memmove(p + m, p + n, strlen(p + n) + 1);
        }
    }
}

typedef struct swift_model {
    const char *name, *vocabulary;
    bool cleans_up;
    size_t front; /* ids that the model's own files add before a text, and the files here do not */
} swift_model;

static void check_swift_case(const json_t *j, const hn_tokenizer *t, const swift_model *m) {
    size_t len, i;
    json_t *id;
    const char *text = row_text(j, "input", &len), *back = row_text(j, "decoded_without_special", NULL);
    const json_t *want = json_object_get(json_object_get(j, "encoded"), "input_ids");
    ids got = encode(t, text, len, HUNCH_TEXT_ADD_SPECIAL | HUNCH_TEXT_PARSE_SPECIAL);
    if (got.n + m->front != json_array_size(want)) fail_msg("%s: \"%s\": %zu ids", m->name, text, got.n);
    json_array_foreach(want, i, id) {
        if (i >= m->front && json_integer_value(id) != got.at[i - m->front])
            fail_msg("%s: \"%s\": id %zu is %d", m->name, text, i, got.at[i - m->front]);
    }
    char *decoded = decode(t, got, false);
    if (m->cleans_up) clean_up(decoded);
    if (strcmp(decoded, back)) fail_msg("%s: \"%s\" decodes to \"%s\", expected \"%s\"", m->name, text, decoded, back);
    hn_free(decoded);
    hn_free(got.at);
}

static void test_swift(void **state) {
    (void)state;
    static const swift_model models[] = {
        {"distilgpt2", "gguf/ggml-vocab-gpt-2.gguf", true, 0},
        {"coreml-projects/Llama-2-7b-chat-coreml", "gguf/ggml-vocab-llama-spm.gguf", false, 0},
        {"tiiuae/falcon-7b", "gguf/ggml-vocab-falcon.gguf", true, 0},
        {"pcuenq/Llama-3.2-1B-Instruct-tokenizer", "hf/llama3", true, 1}, /* Llama 3's vocabulary */
    };
    json_t *doc = json_load_file(at("vectors/swift-transformers.tokenizer_tests.json"), 0, NULL), *cases, *one;
    const char *name;
    size_t skipped = 0, i;
    assert_non_null(doc);
    json_object_foreach(doc, name, cases) {
        size_t m = 0;
        while (m < 4 && strcmp(models[m].name, name)) m++;
        if (m == 4) {
            print_message("skipped, the vocabulary is not here: %s\n", name);
            skipped++;
            continue;
        }
        if (light() && m == 3) continue;
        hn_tokenizer *t = open_named(models[m].vocabulary);
        json_array_foreach(cases, i, one) check_swift_case(one, t, &models[m]);
        assert_in_range(i, 18, 19);
        hn_tokenizer_close(&t);
    }
    json_decref(doc);
    assert_int_equal(skipped, 7);
}

/* Llama 3's ranks as its authors publish them, in order: FNV-1a over the length (two bytes) and the bytes of each. */
static void test_ranks(void **state) {
    (void)state;
    if (light()) skip();
    hn_tokenizer *t = open_named("hf/llama3");
    uint64_t hash = 0xCBF29CE484222325u;
    for (int32_t id = 0; id < 128000; id++) {
        size_t len;
        const char *piece = hn_tokenizer_piece(t, id, &len);
        unsigned char head[2] = {(unsigned char)len, (unsigned char)(len >> 8)};
        for (size_t i = 0; i < 2 + len; i++) {
            hash ^= i < 2 ? head[i] : (unsigned char)piece[i - 2];
            hash *= 0x100000001B3u;
        }
    }
    assert_true(hash == 0xBD16D66A22E9381Au);
    hn_tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ggml),  cmocka_unit_test(test_gemma), cmocka_unit_test(test_jsonl),
        cmocka_unit_test(test_swift), cmocka_unit_test(test_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
