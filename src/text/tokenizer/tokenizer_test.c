/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_test.c - ids against reference tokenizers, round trips over random texts, special tokens, and invalid files.
 *
 * SmolLM2's vectors come from Hugging Face's tokenizers (tools/make_tokenizer_vectors.py), those of the two tiny models
 * from llama2.c (tests/data/README.md).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/utf8.h"
#include "format/bytes_for_tests.h"
#include "format/gguf_writer.h"
#include "text/tokenizer/tokenizer_for_tests.h"
#include "text/tokenizer/vectors_for_tests.h"

static hn_tokenizer *open_at(const char *path) {
    hn_source *src;
    hn_tokenizer *t;
    hunch_error e = {0};
    if (hn_source_open(&src, path, &e) != HUNCH_OK) fail_msg("%s: %s", path, e.message);
    if (hn_tokenizer_open(&t, src, &e) != HUNCH_OK) fail_msg("%s: %s", path, e.message);
    hn_source_close(&src); /* the tokenizer does not refer to it */
    return t;
}

static hn_tokenizer *smollm2(void) {
    return open_at(text_path("tokenizers/smollm2-vocab.gguf"));
}

/* ---- vectors ---- */

static void check_ids(const hn_tokenizer *t, const char *text, size_t len, int flags, const json_t *want) {
    int32_t *ids;
    size_t n;
    hunch_error e = {0};
    if (hn_tokenizer_encode(t, text, len, flags, &ids, &n, &e) != HUNCH_OK) fail_msg("\"%s\": %s", text, e.message);
    if (n != json_array_size(want)) fail_msg("\"%s\": %zu ids, expected %zu", text, n, json_array_size(want));
    for (size_t i = 0; i < n; i++) {
        int id = (int)json_integer_value(json_array_get(want, i));
        if (ids[i] != id) fail_msg("\"%s\": id %zu is %d, expected %d", text, i, ids[i], id);
    }
    hn_free(ids);
}

static void check_smollm2_row(const json_t *row, void *user) {
    size_t len;
    const char *text = row_text(row, "text", &len);
    const json_t *special = json_object_get(row, "special"), *plain = json_object_get(row, "ids");
    check_ids(user, text, len, 0, plain);
    check_ids(user, text, len, HUNCH_TEXT_ADD_SPECIAL, plain); /* SmolLM2 adds none */
    check_ids(user, text, len, HUNCH_TEXT_PARSE_SPECIAL, special ? special : plain);
}

static void test_smollm2(void **state) {
    (void)state;
    hn_tokenizer *t = smollm2();
    assert_in_range(each_row("tokenizers/smollm2.vectors.jsonl", check_smollm2_row, t), 200, 10000);
    hn_tokenizer_close(&t);
    assert_null(t);
}

static char *decode(const hn_tokenizer *t, const int32_t *ids, size_t n, bool goes_on) {
    hn_detok d;
    char *text = NULL;
    size_t len = 0, cap = 0;
    hn_detok_init(&d);
    d.started = goes_on;
    for (size_t i = 0; i < n; i++) assert_int_equal(hn_detok_push(&d, t, ids[i], &text, &len, &cap, NULL), HUNCH_OK);
    assert_int_equal(hn_detok_end(&d, &text, &len, &cap, NULL), HUNCH_OK);
    assert_int_equal(strlen(text), len);
    return text;
}

static void check_golden_row(const json_t *row, void *user) {
    size_t len;
    const char *text = row_text(row, "prompt", &len), *want = row_text(row, "greedy_text", NULL);
    const json_t *greedy = json_object_get(row, "greedy_ids");
    check_ids(user, text, len, HUNCH_TEXT_ADD_SPECIAL, json_object_get(row, "prompt_ids"));
    int32_t ids[600];
    size_t n = json_array_size(greedy);
    assert_in_range(n, 1, 600);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)json_integer_value(json_array_get(greedy, i));
    /* After a prompt a first space belongs to the text; at the start of a text it is the one that encoding added. */
    char *continued = decode(user, ids, n, true), *alone = decode(user, ids, n, false);
    assert_string_equal(continued, want);
    assert_string_equal(alone, want[0] == ' ' ? want + 1 : want);
    hn_free(continued);
    hn_free(alone);
}

static void test_tiny_models(void **state) {
    (void)state;
    static const char *const files[][2] = {
        {"models/stories260K/stories260K.f16.gguf", "models/stories260K/golden.jsonl"},
        {"models/stories260K/hf", "models/stories260K/golden.jsonl"},
        {"models/babyllama105/babyllama105.q8_0.gguf", "models/babyllama105/golden.jsonl"},
        {"models/babyllama105/hf", "models/babyllama105/golden.jsonl"},
    };
    for (int i = 0; i < 4; i++) {
        hn_tokenizer *t = open_at(text_path(files[i][0]));
        assert_int_equal(each_row(files[i][1], check_golden_row, t), 8);
        assert_int_equal(hn_tokenizer_bos(t), 1);
        assert_int_equal(hn_tokenizer_eos(t), 2);
        assert_true(hn_tokenizer_adds_bos(t) && hn_tokenizer_is_end(t, 2) && !hn_tokenizer_is_end(t, 1));
        hn_tokenizer_close(&t);
    }
}

/* The GGUF file (scores) and the folder (merges) of one model are one tokenizer. */
static void test_scores_equal_merges(void **state) {
    (void)state;
    hn_tokenizer *a = open_at(text_path("models/stories260K/stories260K.f32.gguf")),
                 *b = open_at(text_path("models/stories260K/hf"));
    uint64_t seed = 3;
    assert_int_equal(hn_tokenizer_vocab(a), hn_tokenizer_vocab(b));
    for (int i = 0; i < 3000; i++) {
        char text[200];
        int32_t *x, *y;
        size_t len = hn_splitmix(&seed) % sizeof text, n, m;
        for (size_t k = 0; k < len; k++) text[k] = "  aehilnorst.,\n\"TO"[hn_splitmix(&seed) % 18];
        assert_int_equal(hn_tokenizer_encode(a, text, len, 0, &x, &n, NULL), HUNCH_OK);
        assert_int_equal(hn_tokenizer_encode(b, text, len, 0, &y, &m, NULL), HUNCH_OK);
        if (n != m || memcmp(x, y, n * sizeof *x)) fail_msg("\"%.*s\" differs", (int)len, text);
        hn_free(x);
        hn_free(y);
    }
    hn_tokenizer_close(&a);
    hn_tokenizer_close(&b);
}

/* ---- round trips ---- */

/* Characters that every vocabulary here can spell: SmolLM2 lacks tokens for some bytes of rare ones. */
static size_t random_text(char *out, size_t most, uint64_t *seed) {
    size_t n = 0, want = hn_splitmix(seed) % most;
    while (n < want) {
        uint64_t kind = hn_splitmix(seed) % 8, r = hn_splitmix(seed);
        uint32_t cp = kind < 3    ? 'a' + (uint32_t)(r % 26)
                      : kind < 5  ? (uint32_t) " \n\t0'A.-"[r % 8]
                      : kind == 5 ? 0x20 + (uint32_t)(r % 0x3000)
                      : kind == 6 ? 0x1F300 + (uint32_t)(r % 0x300)
                                  : 0x20 + (uint32_t)(r % 0x3F000);
        if (cp == 0x2581) cp = ' '; /* SentencePiece's space: decoded as a space */
        n += (size_t)hn_utf8_encode(cp, out + n);
    }
    return n;
}

static void test_round_trip(void **state) {
    (void)state;
    const char *const files[] = {"tokenizers/smollm2-vocab.gguf", "models/stories260K/stories260K.f16.gguf",
                                 "models/stories260K/hf"};
    uint64_t seed = 11;
    for (int f = 0; f < 3; f++) {
        hn_tokenizer *t = open_at(text_path(files[f]));
        for (int i = 0; i < 1500; i++) {
            char text[6100]; /* long enough, at times, for the cache of words */
            int32_t *ids;
            size_t n, len = random_text(text, i % 50 ? 80 : 6000, &seed);
            assert_int_equal(hn_tokenizer_encode(t, text, len, i % 2 ? HUNCH_TEXT_ADD_SPECIAL : 0, &ids, &n, NULL),
                             HUNCH_OK);
            for (size_t k = 0; k < n; k++) assert_in_range(ids[k], 0, hn_tokenizer_vocab(t) - 1);
            char *back = decode(t, ids, n, false);
            text[len] = '\0';
            if (strcmp(back, text) != 0) fail_msg("%s: \"%s\" came back as \"%s\"", files[f], text, back);
            hn_free(back);
            hn_free(ids);
        }
        hn_tokenizer_close(&t);
    }
}

/* A word of a long text, where the cache is used, has the same ids as alone. */
static void test_cache_changes_nothing(void **state) {
    (void)state;
    hn_tokenizer *t = smollm2();
    static const char line[] = "The council's 12 members, it's said, re-read unfathomable réglementations.\n";
    char text[sizeof line * 60];
    size_t len = 0, one, all;
    int32_t *a, *b;
    for (int i = 0; i < 60; i++, len += sizeof line - 1) memcpy(text + len, line, sizeof line);
    assert_int_equal(hn_tokenizer_encode(t, line, sizeof line - 1, 0, &a, &one, NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_encode(t, text, len, 0, &b, &all, NULL), HUNCH_OK);
    assert_int_equal(all, 60 * one);
    for (size_t i = 0; i < all; i++) assert_int_equal(b[i], a[i % one]);
    hn_free(a);
    hn_free(b);
    hn_tokenizer_close(&t);
}

/* Quadratic merging would take hours. */
static void test_a_megabyte_without_space(void **state) {
    (void)state;
    const char *const files[] = {"tokenizers/smollm2-vocab.gguf", "models/stories260K/stories260K.f16.gguf"};
    size_t len = 1 << 20, n;
    char *text = malloc(len);
    memset(text, 'a', len);
    for (int f = 0; f < 2; f++) {
        hn_tokenizer *t = open_at(text_path(files[f]));
        int32_t *ids;
        assert_int_equal(hn_tokenizer_encode(t, text, len, 0, &ids, &n, NULL), HUNCH_OK);
        char *back = decode(t, ids, n, false);
        assert_int_equal(strlen(back), len);
        assert_memory_equal(back, text, len);
        hn_free(back);
        hn_free(ids);
        hn_tokenizer_close(&t);
    }
    free(text);
}

/* ---- special tokens ---- */

/* What is enough for the whole text gives it; with less there is a number above that, and no more than there are. */
static void check_most(const hn_tokenizer *t, const char *text, size_t len, size_t most, const int32_t *all, size_t n_all, bool pieces) {
    const hunch_piece whole = {len, true};
    int32_t *ids;
    size_t n;
    hunch_error e = {0};
    if (hn_tokenizer_encode_at_most(t, text, len, pieces ? &whole : NULL, pieces, HUNCH_TEXT_RENDERED, most, &ids, &n, &e))
        fail_msg("%.40s: %s", text, e.message);
    if (most >= n_all) {
        assert_int_equal(n, n_all);
        assert_memory_equal(ids, all, n * sizeof *ids);
    } else if (ids || n <= most || n > n_all) {
        fail_msg("%.40s: %zu of %zu ids, at most %zu were wanted", text, n, n_all, most);
    }
    hn_free(ids);
}

static void test_at_most(void **state) {
    (void)state;
    enum { LONG = 60000 };
    static const char *const parts[] = {" ", "a", "word and ", "\xC3\xA9\xF0\x9F\x98\x80", "\x01\x7f", "<s>", "\n\n  \t"};
    static const char *const files[] = {"tokenizers/smollm2-vocab.gguf", "models/stories260K/stories260K.f16.gguf",
                                        "models/babyllama105/hf"};
    char *text = hn_alloc(LONG);
    for (int f = 0; f < 3; f++) {
        hn_tokenizer *t = open_at(text_path(files[f]));
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            const size_t one = strlen(parts[p]), len = LONG / one * one;
            int32_t *all;
            size_t n_all;
            for (size_t i = 0; i < len; i += one) memcpy(text + i, parts[p], one);
            assert_int_equal(hn_tokenizer_encode(t, text, len, HUNCH_TEXT_RENDERED, &all, &n_all, NULL), HUNCH_OK);
            const size_t most[] = {0, 1, 100, n_all / 2, n_all ? n_all - 1 : 0, n_all, n_all + 1, SIZE_MAX};
            for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
                check_most(t, text, len, most[i], all, n_all, false);
                check_most(t, text, len, most[i], all, n_all, true);
            }
            hn_free(all);
        }
        hn_tokenizer_close(&t);
    }
    hn_free(text);
}

static void test_special_tokens(void **state) {
    (void)state;
    hn_tokenizer *t = smollm2();
    size_t len, n;
    int32_t *ids;
    assert_int_equal(hn_tokenizer_vocab(t), 49152);
    assert_int_equal(hn_tokenizer_bos(t), 1);
    assert_int_equal(hn_tokenizer_eos(t), 2);
    assert_false(hn_tokenizer_adds_bos(t));
    assert_true(hn_tokenizer_is_special(t, 1) && hn_tokenizer_is_special(t, 2) && !hn_tokenizer_is_special(t, 100));
    assert_true(hn_tokenizer_is_end(t, 2) && hn_tokenizer_is_end(t, 0) && !hn_tokenizer_is_end(t, 1) &&
                !hn_tokenizer_is_end(t, 100));
    assert_string_equal(hn_tokenizer_piece(t, 1, &len), "<|im_start|>");
    assert_int_equal(len, 12);
    static const int32_t outside[] = {-1, 49152, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        assert_null(hn_tokenizer_piece(t, outside[i], &len));
        assert_false(hn_tokenizer_is_end(t, outside[i]) || hn_tokenizer_is_special(t, outside[i]));
    }
    assert_int_equal(hn_tokenizer_encode(t, "<|im_start|>", 12, HUNCH_TEXT_PARSE_SPECIAL, &ids, &n, NULL), HUNCH_OK);
    assert_true(n == 1 && ids[0] == 1);
    hn_free(ids);
    assert_int_equal(hn_tokenizer_encode(t, "<|im_start|>", 12, 0, &ids, &n, NULL), HUNCH_OK);
    assert_true(n > 1);
    hn_free(ids);
    hn_tokenizer_close(&t);
}

static void test_pieces(void **state) {
    (void)state;
    hn_tokenizer *t = open_at(text_path("models/stories260K/stories260K.f16.gguf"));
    size_t len;
    assert_string_equal(hn_tokenizer_piece(t, 3 + '\n', &len), "\n"); /* <0x0A> */
    assert_int_equal(len, 1);
    assert_memory_equal(hn_tokenizer_piece(t, 3, &len), "", 1); /* <0x00> */
    assert_int_equal(len, 1);
    assert_string_equal(hn_tokenizer_piece(t, 259, NULL), " t"); /* the first merge, with its mark of a space */
    assert_string_equal(hn_tokenizer_piece(t, 1, NULL), "<s>");
    assert_true(hn_tokenizer_is_special(t, 0) && hn_tokenizer_is_special(t, 1));
    hn_tokenizer_close(&t);
}

static void test_unknown_characters(void **state) {
    (void)state;
    hn_tokenizer *t = open_at(text_path("models/babyllama105/babyllama105.q8_0.gguf")); /* characters, no bytes */
    int32_t *ids;
    size_t n;
    assert_int_equal(hn_tokenizer_encode(t, "a語語🦙b", strlen("a語語🦙b"), 0, &ids, &n, NULL), HUNCH_OK);
    assert_int_equal(n, 4); /* space, a, one unknown for the three, b */
    assert_int_equal(ids[2], 0);
    hn_free(ids);
    hn_tokenizer_close(&t);
}

static void test_invalid_text(void **state) {
    (void)state;
    hn_tokenizer *t = smollm2();
    static const char *const texts[] = {"ok \xFF", "\xC3", "a\xED\xA0\x80", "\xC0\x80"};
    static const char *const places[] = {"byte 3", "byte 0", "byte 1", "byte 0"};
    for (int i = 0; i < 4; i++) {
        hunch_error e = {0};
        int32_t *ids = NULL;
        size_t n = 9;
        assert_int_equal(hn_tokenizer_encode(t, texts[i], strlen(texts[i]), 0, &ids, &n, &e), HUNCH_USAGE);
        assert_non_null(strstr(e.message, places[i]));
        assert_null(ids);
    }
    hn_tokenizer_close(&t);
}

/* ---- invalid files ---- */

typedef struct fake { /* a GGUF file of a few tokens; NULL and 0 leave a key out */
    const char *model, *pre;
    const char *tokens[8], *merges[8];
    int32_t types[8];
    size_t n_types;
    float scores[8];
    size_t n_scores;
    int eos; /* -1: none */
} fake;

static hunch_status put_list(hn_gguf_writer *w, const char *key, const char *const *list) {
    size_t len[8], n = 0;
    for (; n < 8 && list[n]; n++) len[n] = strlen(list[n]);
    return n ? hn_gguf_put_strings(w, key, list, len, n, NULL) : HUNCH_OK;
}

static hunch_status open_fake(const fake *f, hn_tokenizer **t, hunch_error *e) {
    hn_gguf_writer *w;
    hn_source *src;
    const char *path = test_path("fake.gguf");
    bool bad = hn_gguf_writer_open(&w, path, NULL);
    bad |= hn_gguf_put_str(w, "general.architecture", "llama", 5, NULL);
    if (f->model) bad |= hn_gguf_put_str(w, "tokenizer.ggml.model", f->model, strlen(f->model), NULL);
    if (f->pre) bad |= hn_gguf_put_str(w, "tokenizer.ggml.pre", f->pre, strlen(f->pre), NULL);
    bad |= put_list(w, "tokenizer.ggml.tokens", f->tokens);
    bad |= put_list(w, "tokenizer.ggml.merges", f->merges);
    if (f->n_types) bad |= hn_gguf_put_i32s(w, "tokenizer.ggml.token_type", f->types, f->n_types, NULL);
    if (f->n_scores) bad |= hn_gguf_put_f32s(w, "tokenizer.ggml.scores", f->scores, f->n_scores, NULL);
    if (f->eos >= 0) bad |= hn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)f->eos, NULL);
    bad |= hn_gguf_writer_finish(&w, NULL);
    bad |= hn_source_open(&src, path, NULL);
    assert_false(bad);
    hunch_status s = hn_tokenizer_open(t, src, e);
    hn_source_close(&src);
    return s;
}

static void test_hostile_gguf(void **state) {
    (void)state;
    const struct {
        fake f;
        const char *says;
    } cases[] = {
        {{.model = "gpt2", .pre = "smollm", .tokens = {"a", "b", "ab"}, .merges = {"a b", "a c"}, .eos = -1},
         "merges[1]"},
        {{.model = "gpt2", .pre = "smollm", .tokens = {"a", "b"}, .merges = {"a b"}, .eos = -1}, "what they make"},
        {{.model = "gpt2", .pre = "smollm", .tokens = {"a", "b"}, .merges = {"ab"}, .eos = -1}, "space between"},
        {{.model = "gpt2", .pre = "smollm", .tokens = {"a", "b"}, .eos = -1}, "merges is missing"},
        {{.model = "gpt2", .pre = "nonesuch", .tokens = {"a"}, .merges = {"a a"}, .eos = -1}, "nonesuch"},
        {{.model = "gpt2",
          .pre = "smollm",
          .tokens = {"a", "aa"},
          .merges = {"a a"},
          .types = {1},
          .n_types = 1,
          .eos = -1},
         "token_type"},
        {{.model = "gpt2",
          .pre = "smollm",
          .tokens = {"a", "aa"},
          .merges = {"a a"},
          .types = {1, 7},
          .n_types = 2,
          .eos = -1},
         "token_type[1]"},
        {{.model = "gpt2",
          .pre = "smollm",
          .tokens = {"a", "aa"},
          .merges = {"a a"},
          .types = {1, 6},
          .n_types = 2,
          .eos = -1},
         "<0x00>"},
        {{.model = "gpt2", .pre = "smollm", .tokens = {"a", "aa"}, .merges = {"a a"}, .eos = 2}, "eos_token_id is 2"},
        {{.model = "gpt2", .pre = "smollm", .eos = -1}, "tokens is missing"},
        {{.model = "llama", .tokens = {"a", "b"}, .eos = -1}, "scores is missing"},
        {{.model = "llama", .tokens = {"a", "b"}, .scores = {1}, .n_scores = 1, .eos = -1},
         "scores: 1 entries, expected 2"},
        {{.model = "llama", .tokens = {"a", "b"}, .scores = {0, __builtin_nanf("")}, .n_scores = 2, .eos = -1},
         "scores[1]"},
        {{.model = "bert", .tokens = {"a"}, .eos = -1}, "\"bert\" are not supported, expected gpt2, llama"},
        {{.model = "t5", .tokens = {"a"}, .eos = -1}, "scores is missing"},
        {{.model = "gemma4", .tokens = {"a"}, .eos = -1}, "merges is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hunch_error e = {0};
        hn_tokenizer *t;
        hunch_status s = open_fake(&cases[i].f, &t, &e);
        if (s != HUNCH_REFUSED || t || !strstr(e.message, cases[i].says))
            fail_msg("case %zu: %d, \"%s\", expected \"%s\"", i, s, e.message, cases[i].says);
    }
}

static void test_no_tokenizer(void **state) {
    (void)state;
    hn_tokenizer *t = (hn_tokenizer *)"";
    assert_int_equal(open_fake(&(fake){.eos = -1}, &t, NULL), HUNCH_OK);
    assert_null(t);
    assert_int_equal(open_fake(&(fake){.model = "none", .eos = -1}, &t, NULL), HUNCH_OK);
    assert_null(t);
    hn_source *src;
    assert_int_equal(hn_source_open(&src, text_path("goldens/llama-gqa"), NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_open(&t, src, NULL), HUNCH_OK);
    assert_null(t);
    hn_source_close(&src);
}

static void encode_small(const fake *f, const char *text, int flags, const char *want) {
    hn_tokenizer *t;
    hunch_error e = {0};
    int32_t *ids;
    size_t n;
    char got[200] = "";
    if (open_fake(f, &t, &e) != HUNCH_OK) fail_msg("%s", e.message);
    if (hn_tokenizer_encode(t, text, strlen(text), flags, &ids, &n, &e) != HUNCH_OK) fail_msg("%s", e.message);
    for (size_t i = 0; i < n; i++) snprintf(got + strlen(got), sizeof got - strlen(got), "%d ", ids[i]);
    assert_string_equal(got, want);
    hn_free(ids);
    hn_tokenizer_close(&t);
}

/* User tokens are always matched, control tokens on request, the longest first; a tokenizer without space prefix. */
static void test_named_tokens(void **state) {
    (void)state;
    fake f = {.model = "gpt2",
              .pre = "gpt-2",
              .tokens = {"<", "a", ">", "<a>", "<a", "aa"},
              .merges = {"a a"},
              .types = {1, 1, 1, 4, 3, 1},
              .n_types = 6,
              .eos = -1};
    encode_small(&f, "<a>aa", 0, "3 5 ");
    encode_small(&f, "<aa", 0, "0 5 ");
    encode_small(&f, "<aa", HUNCH_TEXT_PARSE_SPECIAL, "4 1 ");
    encode_small(&f, "a<a><a", HUNCH_TEXT_PARSE_SPECIAL, "1 3 4 ");
    encode_small(&f, "", HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL, "");
}

/* SentencePiece: equal scores merge from the left; a character that is not a token may still be part of one. */
static void test_scores(void **state) {
    (void)state;
    fake f = {.model = "llama",
              .tokens = {"<unk>", "<s>", "</s>", "\xE2\x96\x81", "a", "aa", "bc"},
              .types = {2, 3, 3, 1, 1, 1, 1},
              .n_types = 7,
              .scores = {0, 0, 0, -1, -2, -3, -4},
              .n_scores = 7,
              .eos = -1};
    encode_small(&f, "aaa", 0, "3 5 4 ");
    encode_small(&f, "abca", 0, "3 4 6 4 ");
    encode_small(&f, "ab", HUNCH_TEXT_ADD_SPECIAL, "1 3 4 0 ");
}

/* Merges over text with U+2581 for spaces; runs of line ends are words, and one token if there is one. */
static void test_gemma4(void **state) {
    (void)state;
    fake f = {.model = "gemma4",
              .tokens = {"a", "\xE2\x96\x81",
                         "\xE2\x96\x81"
                         "a",
                         "\n", "\n\n", "b", "<e>"},
              .merges = {"\xE2\x96\x81 a"},
              .types = {1, 1, 1, 1, 1, 1, 3},
              .n_types = 7,
              .eos = 6};
    encode_small(&f, "a a\n\nb  a", 0, "0 2 4 5 1 2 ");
    encode_small(&f, "\n\n\na<e>", HUNCH_TEXT_PARSE_SPECIAL, "3 3 3 0 6 ");
    encode_small(&f, "a", HUNCH_TEXT_ADD_SPECIAL, "0 ");
}

/* A character without a token, byte fallback or unknown token. */
static void test_unspeakable(void **state) {
    (void)state;
    fake f = {.model = "llama", .tokens = {"\xE2\x96\x81", "b"}, .scores = {0, 0}, .n_scores = 2, .eos = -1};
    hn_tokenizer *t;
    hunch_error e = {0};
    int32_t *ids;
    size_t n;
    assert_int_equal(open_fake(&f, &t, &e), HUNCH_OK);
    assert_int_equal(hn_tokenizer_encode(t, "bc", 2, 0, &ids, &n, &e), HUNCH_USAGE);
    assert_non_null(strstr(e.message, "no token for \"c\""));
    hn_tokenizer_close(&t);
    fake g = {.model = "gpt2", .pre = "gpt-2", .tokens = {"a", "b", "ab"}, .merges = {"a b"}, .eos = -1};
    encode_small(&g, "abcab", 0, "2 2 "); /* byte-level: dropped, as in other tokenizers */
}

/* ---- tokenizer.json ---- */

static hunch_status open_folder(const char *tokenizer, const char *config, const char *generation, hn_tokenizer **t,
                                hunch_error *e) {
    return open_folder_of(tokenizer, strlen(tokenizer), config, generation, t, e);
}

#define BYTE_LEVEL "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}"
#define BPE(vocab, merges) "\"model\": {\"type\": \"BPE\", \"vocab\": " vocab ", \"merges\": " merges "}"

/* The folder's special_tokens_map.json and config.json; NULL: none, and the usual one. */
static void write_others(const char *map, const char *config) {
    char path[600];
    mkdir(test_path("hf"), 0700);
    snprintf(path, sizeof path, "%s/special_tokens_map.json", test_path("hf"));
    if (map)
        test_file_write(path, map, strlen(map));
    else
        remove(path);
    if (!config) return;
    snprintf(path, sizeof path, "%s/config.json", test_path("hf"));
    test_file_write(path, config, strlen(config));
}

#define MARKED                                                                                                         \
    "{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"▁\"}, "               \
    BPE("{\"a\": 0, \"<of▁text>\": 1, \"▁\": 2, \"<e>\": 3, \"▁a\": 4}", "[\"▁ a\"]") "}"
#define LETTERED "{" BYTE_LEVEL "," BPE("{\"a\": 0, \"Ġof\": 1, \"Ġ\": 2, \"<e>\": 3, \"Ġa\": 4}", "[\"Ġ a\"]") "}"

/* Ends of a folder: names as the vocabulary spells them, in either file; ids in every file, one or a list, under both names. */
static void test_hf_ends(void **state) {
    (void)state;
    static const struct {
        const char *tokenizer, *settings, *map, *generation, *config;
        int eos;
        unsigned ends; /* bits 1 << id */
    } cases[] = {
        {MARKED, "{\"eos_token\": \"<of▁text>\"}", NULL, "{}", NULL, 1, 1 << 1},
        {MARKED, "{\"eos_token\": {\"content\": \"<of▁text>\"}}", NULL, "{}", NULL, 1, 1 << 1},
        {MARKED, "{\"eos_token\": \"▁a\"}", NULL, "{}", NULL, 4, 1 << 4},
        {LETTERED, "{\"eos_token\": \"Ġof\"}", NULL, "{}", NULL, 1, 1 << 1},
        {LETTERED, "{\"eos_token\": \" of\"}", NULL, "{}", NULL, 1, 1 << 1}, /* as its text */
        {LETTERED, "{}", "{\"eos_token\": \"Ġof\"}", "{}", NULL, 1, 1 << 1},
        {LETTERED, "{}", "{\"eos_token\": {\"content\": \"<e>\", \"lstrip\": false}}", "{}", NULL, 3, 1 << 3},
        {LETTERED, "{\"eos_token\": null}", "{\"eos_token\": \"<e>\"}", "{}", NULL, 3, 1 << 3},
        {LETTERED, "{\"eos_token\": \"Ġof\"}", "{\"eos_token\": \"<e>\"}", "{}", NULL, 3, 1 << 3},
        {LETTERED, "{\"eos_token\": \"Ġof\", \"added_tokens_decoder\": {}}", "{\"eos_token\": \"<e>\"}", "{}", NULL, 1, 1 << 1},
        {LETTERED, "{}", NULL, "{\"eos_token_ids\": [3, 1, 3]}", NULL, 3, 1 << 3 | 1 << 1},
        {LETTERED, "{\"eos_token_id\": [4]}", NULL, "{\"eos_token_id\": 3}", "{\"eos_token_ids\": [1]}", 3, 1 << 3 | 1 << 1 | 1 << 4},
        {LETTERED, "{}", NULL, "{}", "{\"text_config\": {\"eos_token_id\": 4}, \"eos_token_id\": [1, 99]}", 4, 1 << 4 | 1 << 1},
        {LETTERED, "{\"eos_token\": \"none\"}", NULL, "{\"eos_token_id\": null}", NULL, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_tokenizer *t;
        hn_source *src = NULL;
        hunch_error e = {0};
        tokenizer_folder(cases[i].tokenizer, strlen(cases[i].tokenizer), cases[i].settings, cases[i].generation);
        write_others(cases[i].map, cases[i].config);
        if (hn_source_open(&src, test_path("hf"), &e) || hn_tokenizer_open(&t, src, &e)) fail_msg("case %zu: %s", i, e.message);
        unsigned ends = 0;
        for (int id = 0; id < hn_tokenizer_vocab(t); id++) ends |= (unsigned)hn_tokenizer_is_end(t, id) << id;
        if (hn_tokenizer_eos(t) != cases[i].eos || ends != cases[i].ends)
            fail_msg("case %zu: %d and ends %#x, expected %d and %#x", i, hn_tokenizer_eos(t), ends, cases[i].eos, cases[i].ends);
        hn_tokenizer_close(&t);
        hn_source_close(&src);
    }
    hn_tokenizer *t;
    hunch_error e = {0};
    int32_t *ids;
    size_t n;
    write_others(NULL, NULL);
    assert_int_equal(open_folder(MARKED, "{\"eos_token\": \"<of▁text>\"}", "{}", &t, &e), HUNCH_OK);
    assert_int_equal(hn_tokenizer_encode(t, "a<of▁text>a", strlen("a<of▁text>a"), HUNCH_TEXT_PARSE_SPECIAL, &ids, &n, &e), HUNCH_OK);
    assert_true(n == 3 && ids[1] == 1 && hn_tokenizer_is_special(t, 1)); /* as templates write it */
    assert_string_equal(hn_tokenizer_piece(t, 1, &n), "<of▁text>");
    hn_free(ids);
    hn_tokenizer_close(&t);
    write_others("{\"eos_token\": 7}", NULL);
    assert_int_equal(open_folder(LETTERED, "{}", "{}", &t, &e), HUNCH_REFUSED);
    assert_non_null(strstr(e.message, "special_tokens_map.json: eos_token: expected a token's text"));
    write_others(NULL, NULL);
    assert_int_equal(open_folder(LETTERED, "{}", "{\"eos_token_ids\": [\"x\"]}", &t, &e), HUNCH_REFUSED);
    assert_non_null(strstr(e.message, "generation_config.json: eos_token_ids: expected a token id"));
}

static void test_hf_byte_level(void **state) {
    (void)state;
    hn_tokenizer *t;
    hunch_error e = {0};
    const char *text =
        "{\"added_tokens\": [{\"id\": 5, \"content\": \"<e>\", \"special\": true, \"lstrip\": true, \"rstrip\": true}, "
        "{\"id\": 6, \"content\": \"<u>\"}]," BYTE_LEVEL
        "," BPE("{\"a\": 0, \"b\": 1, \"\u0120\": 2, \"ab\": 3, \"\u0120ab\": 4}",
                "[[\"a\", \"b\"], \"\u0120 ab\"]") ","
                                                   "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
                                                   "[{\"SpecialToken\": {\"id\": \"<e>\"}}, {\"Sequence\": {\"id\": "
                                                   "\"A\"}}]}}";
    if (open_folder(text, "{\"bos_token\": {\"content\": \"<e>\"}}", "{\"eos_token_id\": [5, 6, 99]}", &t, &e) !=
        HUNCH_OK)
        fail_msg("%s", e.message);
    assert_int_equal(hn_tokenizer_vocab(t), 7);
    assert_int_equal(hn_tokenizer_bos(t), 5);
    assert_int_equal(hn_tokenizer_eos(t), 5);
    assert_true(hn_tokenizer_adds_bos(t) && hn_tokenizer_is_end(t, 5) && hn_tokenizer_is_end(t, 6) &&
                !hn_tokenizer_is_end(t, 4));
    assert_true(hn_tokenizer_is_special(t, 5) && !hn_tokenizer_is_special(t, 6));
    static const int32_t want[] = {5, 3, 4, 5, 3, 6};
    int32_t *ids;
    size_t n;
    assert_int_equal(
        hn_tokenizer_encode(t, "ab ab <e>  ab<u>", 16, HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL, &ids, &n, &e),
        HUNCH_OK);
    assert_int_equal(n, 6);
    assert_memory_equal(ids, want, sizeof want);
    hn_free(ids);
    hn_tokenizer_close(&t);
}

static void check_encoded(const hn_tokenizer *t, const char *text, const int32_t *want, size_t n_want) {
    int32_t *ids;
    size_t n;
    hunch_error e = {0};
    if (hn_tokenizer_encode(t, text, strlen(text), HUNCH_TEXT_PARSE_SPECIAL, &ids, &n, &e) != HUNCH_OK)
        fail_msg("%s: %s", text, e.message);
    assert_int_equal(n, n_want);
    assert_memory_equal(ids, want, n * sizeof *ids);
    hn_free(ids);
}

/* As in the `tokenizers` package: an added token that the vocabulary lacks is only matched by its name (b must stand alone
 * here, and is unknown elsewhere); and names that are marked as normalized are matched last, in the text between the other
 * names, even without a normalizer (so <y> stands alone beside the x_ that is matched first). */
static void test_added_tokens(void **state) {
    (void)state;
    hn_tokenizer *t;
    hunch_error e = {0};
    const char *text =
        "{\"added_tokens\": [{\"id\": 3, \"content\": \"b\", \"single_word\": true, \"normalized\": false}, "
        "{\"id\": 4, \"content\": \"<y>\", \"single_word\": true, \"normalized\": true}, "
        "{\"id\": 5, \"content\": \"x_\", \"normalized\": false}], "
        "\"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"vocab\": {\"a\": 0, \"x\": 1, \"?\": 2}, "
        "\"merges\": []}}";
    if (open_folder(text, "{}", "{}", &t, &e) != HUNCH_OK) fail_msg("%s", e.message);
    check_encoded(t, "ab", (int32_t[]){0, 2}, 2);
    check_encoded(t, "a b", (int32_t[]){0, 2, 3}, 3);
    check_encoded(t, "<y>x_", (int32_t[]){4, 5}, 2);
    check_encoded(t, "<y>x", (int32_t[]){2, 2, 2, 1}, 4);
    hn_tokenizer_close(&t);
}

static void test_hostile_json(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "model of type \"\""},
        {"{\"normalizer\": {\"type\": \"BertNormalizer\"}, " BYTE_LEVEL "}", "\"BertNormalizer\" is not supported"},
        {"{\"normalizer\": [], " BYTE_LEVEL "}", "normalizer: expected an object"},
        {"{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [7]}, " BYTE_LEVEL "}", "normalizer \"\""},
        {"{\"normalizer\": {\"type\": \"Precompiled\"}, " BYTE_LEVEL "}", "precompiled_charsmap: expected a string"},
        {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAA\"}, " BYTE_LEVEL "}",
         "not base64"},
        {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"/////wAA\"}, " BYTE_LEVEL
         "," BPE("{\"a\": 0}", "[]") "}",
         "charsmap of 6 bytes"},
        {"{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {}}, " BYTE_LEVEL "}", "neither {\"Regex\""},
        {"{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"[a&&b]\"}}, " BYTE_LEVEL "}", "(&&)"},
        {"{\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}}", "BertPreTokenizer"},
        {"{\"pre_tokenizer\": {\"type\": \"UnicodeScripts\"}}", "UnicodeScripts"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": \"Dropped\"}}",
         "Dropped"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"a(\"}, \"behavior\": \"Removed\"}, " BPE(
             "{\"a\": 0}", "[]") "}",
         "missing closing parenthesis"},
        {"{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\"}}", "replacement \"_\""},
        {"{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\u2581\", \"prepend_scheme\": \"last\"}}",
         "\"last\""},
        {"{\"decoder\": {\"type\": \"WordPiece\"}," BYTE_LEVEL "," BPE("{\"a\": 0}", "[]") "}", "WordPiece"},
        {"{\"decoder\": {\"type\": \"Strip\", \"content\": \"x\", \"start\": 1}," BYTE_LEVEL
         "," BPE("{\"a\": 0}", "[]") "}",
         "Strip"},
        {"{\"post_processor\": {\"type\": \"Bart\"}," BYTE_LEVEL "," BPE("{\"a\": 0}", "[]") "}", "Bart"},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
         "\"<x>\"}}]}," BYTE_LEVEL "," BPE("{\"a\": 0}", "[]") "}",
         "<x>"},
        {"{\"post_processor\": {\"type\": \"BertProcessing\", \"cls\": [\"a\", 1]}," BYTE_LEVEL
         "," BPE("{\"a\": 0}", "[]") "}",
         "cls"},
        {"{" BYTE_LEVEL "}", "model"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"WordPiece\"}}",
         "\"WordPiece\" is not supported, expected BPE or Unigram"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"Unigram\"}}", "model.vocab is missing, expected an array"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0], [\"b\", \"c\"]]}}",
         "model.vocab[1]"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"Unigram\", \"unk_id\": 1, \"vocab\": [[\"a\", 0]]}}", "unk_id is 1"},
        {"{" BYTE_LEVEL "," BPE("{\"a\": 2097152}", "[]") "}", "0 to 2097151"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"BPE\", \"dropout\": 0.1}}", "dropout"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"BPE\", \"end_of_word_suffix\": \"@\"}}", "end_of_word_suffix"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"BPE\", \"vocab\": []}}", "model.vocab"},
        {"{" BYTE_LEVEL "," BPE("{\"a\": -1}", "[]") "}", "model.vocab"},
        {"{" BYTE_LEVEL "," BPE("{\"a\": 4294967296}", "[]") "}", "model.vocab"},
        {"{" BYTE_LEVEL "," BPE("{\"a\": 0, \"b\": 0}", "[]") "}", "two tokens"},
        {"{" BYTE_LEVEL "," BPE("{\"\": 0, \"aaaaaaaaaaaaaaaaaaaaaaa\": 0}", "[]") "}", "two tokens"},
        {"{" BYTE_LEVEL "," BPE("{}", "[]") "}", "vocabulary of 0"},
        {"{" BYTE_LEVEL "," BPE("{\"a\": 0}", "{}") "}", "model.merges"},
        {"{" BYTE_LEVEL "," BPE("{\"a\": 0}", "[[\"a\"]]") "}", "model.merges[0]"},
        {"{" BYTE_LEVEL "," BPE("{\"a\": 0}", "[\"a b\"]") "}", "model.merges[0]"},
        {"{" BYTE_LEVEL ", \"added_tokens\": -1," BPE("{\"a\": 0}", "[]") "}",
         "tokenizer.json: added_tokens: expected an array"},
        {"{" BYTE_LEVEL ", \"added_tokens\": true," BPE("{\"a\": 0}", "[]") "}",
         "tokenizer.json: added_tokens: expected an array"},
        {"{" BYTE_LEVEL
         ", \"added_tokens\": [{\"id\": 1, \"content\": \"b\", \"special\": 1}]," BPE("{\"a\": 0}", "[]") "}",
         "added_tokens[0].special: expected true or false"},
        {"{" BYTE_LEVEL ", \"normalizer\": []," BPE("{\"a\": 0}", "[]") "}", "normalizer: expected an object"},
        {"{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": 7}, " BYTE_LEVEL "," BPE("{\"a\": 0}", "[]") "}",
         "normalizers: expected an array"},
        {"{" BYTE_LEVEL ", \"decoder\": 3," BPE("{\"a\": 0}", "[]") "}", "decoder: expected an object"},
        {"{" BYTE_LEVEL ", \"decoder\": {\"type\": \"Sequence\", \"decoders\": {}}," BPE("{\"a\": 0}", "[]") "}",
         "decoder.decoders: expected an array"},
        {"{" BYTE_LEVEL ", \"post_processor\": \"x\"," BPE("{\"a\": 0}", "[]") "}",
         "post_processor: expected an object"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"BPE\", \"byte_fallback\": \"yes\", \"vocab\": {}, \"merges\": []}}",
         "model.byte_fallback: expected true or false"},
        {"{" BYTE_LEVEL ", \"model\": {\"type\": \"BPE\", \"unk_token\": 0, \"vocab\": {}, \"merges\": []}}",
         "model.unk_token: expected a string"},
        {"{" BYTE_LEVEL ", \"added_tokens\": [{\"id\": 1}]," BPE("{\"a\": 0}", "[]") "}", "added_tokens[0]"},
        {"{" BYTE_LEVEL ", \"added_tokens\": [{\"id\": 0, \"content\": \"b\"}]," BPE("{\"a\": 0}", "[]") "}",
         "two tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_tokenizer *t;
        hunch_error e = {0};
        hunch_status s = open_folder(cases[i][0], "{}", "{}", &t, &e);
        if (s != HUNCH_REFUSED || t || !strstr(e.message, cases[i][1]))
            fail_msg("case %zu: %d, \"%s\", expected \"%s\"", i, s, e.message, cases[i][1]);
    }
    hn_tokenizer *t;
    hunch_error e = {0};
    assert_int_equal(
        open_folder("{" BYTE_LEVEL "," BPE("{\"a\": 0}", "[]") "}", "{}", "{\"eos_token_id\": \"x\"}", &t, &e),
        HUNCH_REFUSED);
    assert_non_null(strstr(e.message, "eos_token_id"));
    assert_int_equal(
        open_folder("{" BYTE_LEVEL "," BPE("{\"a\": 0}", "[]") "}", "{\"add_bos_token\": \"true\"}", "{}", &t, &e),
        HUNCH_REFUSED);
    assert_non_null(strstr(e.message, "tokenizer_config.json: add_bos_token: expected true or false"));
}

/* ---- memory ---- */

static void test_no_memory(void **state) {
    (void)state;
    const char *const files[] = {"models/babyllama105/babyllama105.q8_0.gguf", "models/stories260K/hf"};
    for (int f = 0; f < 2; f++) {
        hn_source *src;
        int failed = 0;
        hunch_status s = HUNCH_NO_MEMORY;
        assert_int_equal(hn_source_open(&src, text_path(files[f]), NULL), HUNCH_OK);
        for (int64_t after = 0; s != HUNCH_OK; after++) {
            hn_tokenizer *t = NULL;
            int32_t *ids = NULL;
            size_t n;
            hunch_error e = {0};
            hn_fault_arm(HN_FAULT_ALLOC, after, false);
            s = hn_tokenizer_open(&t, src, &e);
            if (s == HUNCH_OK)
                s = hn_tokenizer_encode(t, "A small text, once upon a time there was no memory at all.", 58, 0, &ids,
                                        &n, &e);
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            assert_true(s == HUNCH_OK || s == HUNCH_NO_MEMORY);
            assert_true(s == HUNCH_OK || (ids == NULL && e.status == s));
            failed += s != HUNCH_OK;
            hn_free(ids);
            hn_tokenizer_close(&t);
        }
        assert_in_range(failed, 10, 500);
        hn_source_close(&src);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smollm2),
        cmocka_unit_test(test_tiny_models),
        cmocka_unit_test(test_scores_equal_merges),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_cache_changes_nothing),
        cmocka_unit_test(test_a_megabyte_without_space),
        cmocka_unit_test(test_at_most),
        cmocka_unit_test(test_special_tokens),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_unknown_characters),
        cmocka_unit_test(test_invalid_text),
        cmocka_unit_test(test_hostile_gguf),
        cmocka_unit_test(test_no_tokenizer),
        cmocka_unit_test(test_named_tokens),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_gemma4),
        cmocka_unit_test(test_unspeakable),
        cmocka_unit_test(test_hf_ends),
        cmocka_unit_test(test_hf_byte_level),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_hostile_json),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
