/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_gguf_test.c - GGUF vocabularies as different converters write them: tokens that end an answer by their texts, scores that are
 * none, bytes of the wrong type. The expected ends are those of llama.cpp's source, the ids those of Hugging Face's merges, by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "format/bytes_for_tests.h"
#include "format/gguf_writer.h"
#include "text/tokenizer/tokenizer_for_tests.h"

#define MARK "\xE2\x96\x81"
#define KEY "tokenizer.ggml."
enum { MOST = 320 };

typedef struct vocabulary {
    const char *model, *pre, *arch; /* NULL: "llama" */
    const char *text[MOST], *merges[12];
    int32_t type[MOST];
    float score[MOST];
    size_t n;
    bool untyped, unscored;
    int bos, eos, fill[3], rows; /* 0: no such key, or no embedding */
    float more_ends[4];
    size_t n_more_ends;
} vocabulary;

static void add(vocabulary *v, const char *text, int type, double score) {
    assert_true(v->n < MOST);
    v->text[v->n] = text;
    v->type[v->n] = type;
    v->score[v->n++] = (float)score;
}

/* <unk>, <s>, a, b, then the rest. */
static vocabulary started(const char *model) {
    vocabulary v = {.model = model, .pre = strcmp(model, "gpt2") == 0 ? "gpt-2" : NULL};
    add(&v, "<unk>", 2, 0);
    add(&v, "<s>", 3, 0);
    add(&v, "a", 1, -1);
    add(&v, "b", 1, -2);
    return v;
}

static void put_texts(hn_gguf_writer *w, const char *key, const char *const *text, size_t n) {
    size_t len[MOST];
    for (size_t i = 0; i < n; i++) len[i] = strlen(text[i]);
    assert_int_equal(hn_gguf_put_strings(w, key, text, len, n, NULL), HUNCH_OK);
}

static void put_text(hn_gguf_writer *w, const char *key, const char *text) {
    if (text) assert_int_equal(hn_gguf_put_str(w, key, text, strlen(text), NULL), HUNCH_OK);
}

static void put_id(hn_gguf_writer *w, const char *key, int id) {
    if (id > 0) assert_int_equal(hn_gguf_put_u32(w, key, (uint32_t)id, NULL), HUNCH_OK);
}

static void write_vocabulary(const vocabulary *v, const char *path) {
    hn_gguf_writer *w;
    size_t merges = 0;
    while (merges < 12 && v->merges[merges]) merges++;
    assert_int_equal(hn_gguf_writer_open(&w, path, NULL), HUNCH_OK);
    put_text(w, "general.architecture", v->arch ? v->arch : "llama");
    put_text(w, KEY "model", v->model);
    put_text(w, KEY "pre", v->pre);
    put_texts(w, KEY "tokens", v->text, v->n);
    if (merges || strcmp(v->model, "gpt2") == 0) put_texts(w, KEY "merges", v->merges, merges);
    if (!v->untyped) assert_int_equal(hn_gguf_put_i32s(w, KEY "token_type", v->type, v->n, NULL), HUNCH_OK);
    if (!v->unscored) assert_int_equal(hn_gguf_put_f32s(w, KEY "scores", v->score, v->n, NULL), HUNCH_OK);
    put_id(w, KEY "bos_token_id", v->bos);
    put_id(w, KEY "eos_token_id", v->eos);
    put_id(w, KEY "fim_pad_token_id", v->fill[0]);
    put_id(w, KEY "fim_rep_token_id", v->fill[1]);
    put_id(w, KEY "fim_sep_token_id", v->fill[2]);
    if (v->n_more_ends)
        assert_int_equal(hn_gguf_put_f32s(w, KEY "eos_token_ids", v->more_ends, v->n_more_ends, NULL), HUNCH_OK);
    const float zeros[MOST] = {0};
    const uint64_t dims[] = {1, (uint64_t)v->rows};
    if (v->rows) {
        assert_int_equal(hn_gguf_declare(w, "token_embd.weight", HN_F32, 2, dims, NULL), HUNCH_OK);
        assert_int_equal(hn_gguf_data(w, zeros, (size_t)v->rows * sizeof *zeros, NULL), HUNCH_OK);
    }
    assert_int_equal(hn_gguf_writer_finish(&w, NULL), HUNCH_OK);
}

static hunch_status open_vocabulary(const vocabulary *v, hn_tokenizer **t, hunch_error *e) {
    hn_source *src;
    const char *path = test_path("vocabulary.gguf");
    write_vocabulary(v, path);
    assert_int_equal(hn_source_open(&src, path, NULL), HUNCH_OK);
    const hunch_status s = hn_tokenizer_open(t, src, e);
    hn_source_close(&src);
    return s;
}

static hn_tokenizer *opened(const vocabulary *v) {
    hn_tokenizer *t;
    hunch_error e = {0};
    if (open_vocabulary(v, &t, &e)) fail_msg("%s", e.message);
    return t;
}

static void refused(const vocabulary *v, const char *says) {
    hn_tokenizer *t = NULL;
    hunch_error e = {0};
    if (open_vocabulary(v, &t, &e) != HUNCH_REFUSED || t || !strstr(e.message, says))
        fail_msg("'%s', expected '%s'", e.message, says);
}

static void check_ids(const vocabulary *v, const char *text, int flags, const char *want) {
    hn_tokenizer *t = opened(v);
    hunch_error e = {0};
    int32_t *ids;
    size_t n;
    char got[300] = "";
    if (hn_tokenizer_encode(t, text, strlen(text), flags, &ids, &n, &e)) fail_msg("\"%s\": %s", text, e.message);
    for (size_t i = 0; i < n; i++) snprintf(got + strlen(got), sizeof got - strlen(got), "%d ", ids[i]);
    if (strcmp(got, want) != 0) fail_msg("\"%s\": %s, expected %s", text, got, want);
    hn_free(ids);
    hn_tokenizer_close(&t);
}

/* ---- ends ---- */

static const char *const ends[] = {"<|eot_id|>",
                                   "<|im_end|>",
                                   "<|return|>",
                                   "<|flush|>",
                                   "<end_of_turn>",
                                   "<|endoftext|>",
                                   "<|eom_id|>",
                                   "<EOT>",
                                   "_<EOT>",
                                   "[EOT]",
                                   "[EOS]",
                                   "<|end_of_text|>",
                                   "<eos>",
                                   "<end_of_utterance>",
                                   "<turn|>",
                                   "[e~[",
                                   "<｜end▁of▁sentence｜>"};

/* Whatever its type such a token ends an answer, is not shown, and no plain text becomes it. */
static void test_ends_by_text(void **state) {
    (void)state;
    static const int types[] = {1, 2, 3, 4, 5};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        for (int model = 0; model < 2; model++) {
            vocabulary v = started(model ? "gpt2" : "llama");
            const int first = (int)v.n;
            for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) add(&v, ends[i], types[k], 0);
            add(&v, "<|end|>", types[k], 0);
            add(&v, "</s>", types[k], 0);
            add(&v, "<|start|>", types[k], 0);
            add(&v, "[EOT]", types[k], 0); /* a second one */
            hn_tokenizer *t = opened(&v);
            for (int id = 3; id < first; id++) assert_false(hn_tokenizer_is_end(t, id));
            for (int id = first; id < (int)v.n; id++) {
                const bool other = !strcmp(v.text[id], "<|start|>");
                if (hn_tokenizer_is_end(t, id) == other) fail_msg("%s of type %d", v.text[id], types[k]);
                if (!other) assert_true(hn_tokenizer_is_special(t, id));
            }
            hn_tokenizer_close(&t);
        }
    }
}

static void test_ends_in_texts(void **state) {
    (void)state;
    vocabulary v = started("llama");
    add(&v, MARK, 1, -3);
    add(&v, "<", 1, -4);
    add(&v, "<a", 1, -5);
    add(&v, "<eos>", 1, -6);
    for (const char *c = "eos>/"; *c; c++) {
        static const char *const letters[] = {"e", "o", "s", ">", "/"};
        add(&v, letters[strchr("eos>/", *c) - "eos>/"], 1, -7);
    }
    check_ids(&v, "<eos>a", 0, "4 5 8 9 10 11 2 ");
    check_ids(&v, "<eos>a", HUNCH_TEXT_PARSE_SPECIAL, "7 4 2 ");
    v.untyped = true;
    v.eos = 7;
    check_ids(&v, "<eos>a", HUNCH_TEXT_PARSE_SPECIAL, "7 4 2 ");
}

static void check_end(const vocabulary *v, int id, bool want) {
    hn_tokenizer *t = opened(v);
    if (hn_tokenizer_is_end(t, id) != want) fail_msg("%s %s", v->text[id], want ? "ends nothing" : "ends an answer");
    hn_tokenizer_close(&t);
}

/* Ends of messages beside ends of turns, and markup. */
static void test_spared(void **state) {
    (void)state;
    static const struct {
        const char *with[2], *text;
        bool ends;
    } cases[] = {{{"<|return|>", "<|call|>"}, "<|end|>", false},     {{"<|return|>", "<|calls|>"}, "<|end|>", false},
                 {{"<|flush|>", "<|call|>"}, "<|end|>", false},      {{"<|flush|>", "<|calls|>"}, "<|end|>", false},
                 {{"<|return|>", "<|flush|>"}, "<|end|>", true},     {{"<|call|>", "<|calls|>"}, "<|end|>", true},
                 {{"<|return|>", "<|call|>"}, "</s>", true},         {{"<|tool_response>", "<eos>"}, "</s>", false},
                 {{"<|tool_response>", "<|call|>"}, "<|end|>", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int named = 0; named < 2; named++) {
            vocabulary v = started("llama");
            add(&v, cases[i].with[0], 3, 0);
            add(&v, cases[i].text, 3, 0);
            add(&v, cases[i].with[1], 1, 0);
            v.eos = named ? 5 : 0; /* also if an id names it */
            check_end(&v, 4, true);
            check_end(&v, 5, cases[i].ends);
            check_end(&v, 6, true);
        }
    }
}

/* The padding, repository and file tokens of fill-in-the-middle: the one that a key names, else the first one of a known text. */
static void test_fill_ends(void **state) {
    (void)state;
    static const char *const texts[] = {"<|fim_pad|>", "<fim-pad>",    "<fim_pad>",     "<PAD>",
                                        "[PAD]",       "<|fim_repo|>", "<|repo_name|>", "<fim-repo>",
                                        "<REPO>",      "<reponame>",   "<|file_sep|>"};
    static const char *const others[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<PRE>", "<pad>"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        vocabulary v = started("llama");
        add(&v, texts[i], 4, 0);
        add(&v, texts[i], 1, 0);
        add(&v, "x", 1, 0);
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) add(&v, others[k], 4, 0);
        check_end(&v, 4, true);
        check_end(&v, 5, false);
        for (int id = 6; id < (int)v.n; id++) check_end(&v, id, false);
        v.fill[i < 5 ? 0 : i < 10 ? 1 : 2] = 6;
        check_end(&v, 4, false);
        check_end(&v, 6, true);
    }
}

/* Ollama's list, each id of which ends an answer. */
static void test_list_of_ends(void **state) {
    (void)state;
    vocabulary v = started("llama");
    add(&v, "x", 4, 0);
    v.n_more_ends = 3;
    v.more_ends[0] = 4;
    v.more_ends[1] = -1;
    v.more_ends[2] = 3;
    check_end(&v, 4, true);
    check_end(&v, 3, true);
    check_end(&v, 1, false);
    v.more_ends[1] = 5;
    refused(&v, "eos_token_ids[1] is 5, expected the id of one of 5 tokens");
    v.more_ends[1] = 1.5f;
    refused(&v, "eos_token_ids[1] is 1.5");
    v.more_ends[1] = __builtin_nanf("");
    refused(&v, "eos_token_ids[1] is nan");
}

/* A folder's files name its ends: only the usual ones of its special tokens end an answer beside these. */
static void test_folder(void **state) {
    (void)state;
    static const char json[] = "{\"added_tokens\": [{\"id\": 2, \"content\": \"</s>\", \"special\": true}, {\"id\": 3, "
                               "\"content\": \"<|im_end|>\", "
                               "\"special\": true}, {\"id\": 4, \"content\": \"<|eot_id|>\"}],"
                               "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []}}";
    hn_tokenizer *t;
    hunch_error e = {0};
    if (open_json(json, &t, &e)) fail_msg("%s", e.message);
    assert_true(!hn_tokenizer_is_end(t, 2) && hn_tokenizer_is_end(t, 3) && !hn_tokenizer_is_end(t, 4));
    hn_tokenizer_close(&t);
}

/* ---- scores and merges ---- */

/* By merges "abab" is ab ab; by scores as ids, baa and longer first, it would be a ba b. */
static vocabulary by_merges(void) {
    vocabulary v = started("llama");
    static const char *const merges[] = {"a b", "b a", "ab ab", MARK " ab"};
    add(&v, MARK, 1, -3);      /* 4 */
    add(&v, "ab", 1, -4);      /* 5 */
    add(&v, "ba", 1, -5);      /* 6 */
    add(&v, "abab", 1, -6);    /* 7 */
    add(&v, MARK "ab", 1, -7); /* 8 */
    memcpy(v.merges, merges, sizeof merges);
    return v;
}

static void test_scores_that_are_none(void **state) {
    (void)state;
    enum { IDS, ZEROS, EQUAL, RISING, NO_NUMBER, ENDLESS, SOME_ABOVE, KINDS };
    static const char *const says[KINDS] = {"above 0",     "all equal", "all equal", "rise with the ids",
                                            "scores[6] is not a number", "above 0",   "above 0"};
    for (int k = 0; k < KINDS; k++) {
        vocabulary v = by_merges();
        for (size_t i = 0; i < v.n; i++) {
            const float of_kind[KINDS] = {[IDS] = (float)i,
                                          [EQUAL] = -1000,
                                          [RISING] = (float)i - 100,
                                          [NO_NUMBER] = i == 6 ? __builtin_nanf("") : -1,
                                          [ENDLESS] = i == 6 ? __builtin_inff() : -1,
                                          [SOME_ABOVE] = i == 7 ? 1 : -(float)i};
            v.score[i] = of_kind[k];
        }
        check_ids(&v, "abab b", 0, "4 7 4 3 ");
        check_ids(&v, "bab", 0, "4 3 5 ");
        v.merges[0] = NULL;
        refused(&v, says[k]);
    }
    vocabulary v = by_merges();
    v.unscored = true;
    check_ids(&v, "abab b", 0, "4 7 4 3 ");
    v.merges[0] = NULL;
    refused(&v, KEY "scores is missing");
}

/* What may be scores is read as such, merges or not: by these "ab" is made before "▁ab" can be, and there is no order of merges. */
static void test_scores_that_are_some(void **state) {
    (void)state;
    vocabulary v = by_merges();
    v.score[8] = -1;
    v.score[6] = -2; /* not in order, as those of added tokens */
    check_ids(&v, "bab", 0, "4 6 3 ");
    v.merges[0] = NULL;
    check_ids(&v, "bab", 0, "4 6 3 ");
    v = by_merges();
    v.model = "t5";
    for (size_t i = 0; i < v.n; i++) v.score[i] = (float)i;
    refused(&v, KEY "scores has scores above 0, as no SentencePiece model has them");
}

/* Gemma 4's vocabulary under Ollama's name for it: no space in front, ends of lines as words. */
static void test_gemma4_called_llama(void **state) {
    (void)state;
    vocabulary v = by_merges();
    add(&v, "\n", 1, -8);
    add(&v, "\n\n", 1, -9);
    v.pre = "gemma4";
    check_ids(&v, "ab ab\n\nbab", 0, "5 8 10 3 5 ");
    v.pre = "default";
    v.arch = "gemma4";
    check_ids(&v, "ab ab\n\nbab", 0, "5 8 10 3 5 ");
    v.arch = NULL;
    check_ids(&v, "ab ab", 0, "8 8 ");
    v.pre = "gemma4";
    v.bos = 1; /* which a llama has in front unless it says otherwise */
    check_ids(&v, "ab", HUNCH_TEXT_ADD_SPECIAL, "1 5 ");
    v.bos = 0;
    v.merges[0] = NULL; /* then it is what its model says */
    check_ids(&v, "ab", 0, "8 ");
}

/* No vocabulary of Gemma's puts a space in front, which Ollama's files do not say; and a token without a row is dropped. */
static void test_gemma3(void **state) {
    (void)state;
    vocabulary v = by_merges();
    v.merges[0] = NULL;
    check_ids(&v, "ab ab", 0, "8 8 ");
    v.arch = "gemma3";
    check_ids(&v, "ab ab", 0, "5 8 ");
    add(&v, "<image>", 4, 0);
    v.rows = (int)v.n - 1;
    hn_tokenizer *t = opened(&v);
    assert_int_equal(hn_tokenizer_vocab(t), v.rows);
    hn_tokenizer_close(&t);
    v.eos = v.rows;
    refused(&v, "eos_token_id is 9, but the vocabulary has 9 tokens");
    v.arch = "llama";
    t = opened(&v);
    assert_int_equal(hn_tokenizer_vocab(t), v.n); /* refused by the model, with both numbers */
    hn_tokenizer_close(&t);
}

/* Ollama's GPT-OSS calls its pre-tokenizer "default": its own splits words where their case changes. */
static void test_gptoss(void **state) {
    (void)state;
    vocabulary v = started("gpt2");
    add(&v, "B", 1, 0);
    add(&v, "aB", 1, 0);
    v.merges[0] = "a B";
    check_ids(&v, "aB", 0, "5 ");
    v.pre = "gpt-4o";
    check_ids(&v, "aB", 0, "2 4 ");
    v.arch = "gptoss";
    v.pre = "default";
    check_ids(&v, "aB", 0, "2 4 ");
    v.pre = NULL;
    check_ids(&v, "aB", 0, "2 4 ");
}

/* All 256 names of bytes are bytes, also if a converter took them for plain tokens. */
static void test_bytes_of_another_type(void **state) {
    (void)state;
    static char names[256][8];
    static const int types[] = {1, 4, 5, 6};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        vocabulary v = by_merges();
        const int first = (int)v.n;
        char want[40];
        for (int i = 0; i < 256; i++) {
            snprintf(names[i], sizeof names[i], "<0x%02X>", i);
            add(&v, names[i], types[k], -100 - i);
        }
        for (int merged = 0; merged < 2; merged++) {
            if (merged) v.score[5] = 1;
            snprintf(want, sizeof want, "4 %d %d 5 ", first + 0xC3, first + 0xA9);
            check_ids(&v,
                      "\xC3\xA9"
                      "ab",
                      0, want);
            hn_tokenizer *t = opened(&v);
            const int32_t ids[] = {first + 0xC3, first + 0xA9, 5};
            char *text = decode_ids(t, ids, 3);
            assert_string_equal(text, "\xC3\xA9"
                                      "ab");
            hn_free(text);
            hn_tokenizer_close(&t);
        }
        v.n--; /* one is missing: they are what they are */
        if (types[k] == 1)
            refused(&(vocabulary){.model = "gpt2", .pre = "gpt-2", .text = {MARK "a", "a"}, .type = {1, 1}, .n = 2},
                    "spaces in tokenizer.ggml.tokens are U+2581");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends_by_text),
                                       cmocka_unit_test(test_ends_in_texts),
                                       cmocka_unit_test(test_spared),
                                       cmocka_unit_test(test_fill_ends),
                                       cmocka_unit_test(test_list_of_ends),
                                       cmocka_unit_test(test_folder),
                                       cmocka_unit_test(test_scores_that_are_none),
                                       cmocka_unit_test(test_scores_that_are_some),
                                       cmocka_unit_test(test_gemma4_called_llama),
                                       cmocka_unit_test(test_gemma3),
                                       cmocka_unit_test(test_gptoss),
                                       cmocka_unit_test(test_bytes_of_another_type)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
