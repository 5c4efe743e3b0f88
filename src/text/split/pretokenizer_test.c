/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer_test.c - words against those of Hugging Face's tokenizers; the scanners against PCRE2; hostile patterns. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "base/random.h"
#include "text/split/pretokenizer.h"
#include "text/tokenizer/vectors_for_tests.h"

enum { MAX_WORDS = 2000 };

typedef struct words {
    const char *text;
    size_t at; /* where the next word must begin */
    size_t ends[MAX_WORDS], n;
} words;

static hunch_status keep_word(void *user, const char *word, size_t len, hunch_error *err) {
    words *w = user;
    (void)err;
    assert_ptr_equal(word, w->text + w->at);
    assert_true(len > 0 && w->n < MAX_WORDS);
    w->at += len;
    w->ends[w->n++] = w->at;
    return HUNCH_OK;
}

static void split(const hn_pretok *p, const char *text, size_t len, words *out) {
    hn_pretok_work *w;
    hunch_error e = {0};
    *out = (words){.text = text};
    assert_int_equal(hn_pretok_work_open(&w, &e), HUNCH_OK);
    if (hn_pretok_split(p, w, text, len, true, keep_word, out, &e) != HUNCH_OK) fail_msg("%s", e.message);
    assert_int_equal(out->at, len); /* no text is lost or doubled */
    hn_pretok_work_close(&w);
}

static hn_pretok *open_kind(const char *name) {
    const hn_pretok_kind *kind;
    hn_pretok *p;
    hunch_error e = {0};
    if (hn_pretok_find(&kind, name, strlen(name), &e) != HUNCH_OK) fail_msg("%s", e.message);
    if (hn_pretok_open_kind(&p, kind, &e) != HUNCH_OK) fail_msg("%s: %s", name, e.message);
    return p;
}

/* Isolated splits. */
static hunch_status open_patterns(hn_pretok **p, const char *const *patterns, size_t n, hunch_error *e) {
    hn_pretok_step steps[4] = {{0}};
    for (size_t i = 0; i < n; i++) steps[i].pattern = patterns[i];
    return hn_pretok_open(p, steps, n, e);
}

static const char *const vector_kinds[] = {
    "gpt-2",    "smollm", "llama-bpe",  "qwen2",      "qwen35",     "deepseek-v3", "deepseek-coder", "gpt-4o",
    "tiny_aya", "tekken", "seed-coder", "bailingmoe", "exaone-moe", "minicpm5",    "jais-2",         "kimi-k2"};
enum { KINDS = sizeof vector_kinds / sizeof *vector_kinds };

static void check_row(const json_t *row, void *user) {
    hn_pretok **opened = user;
    size_t len;
    const char *text = row_text(row, "text", &len);
    words got;
    for (size_t k = 0; k < KINDS; k++) {
        const json_t *want = json_object_get(row, vector_kinds[k]);
        split(opened[k], text, len, &got);
        if (got.n != json_array_size(want))
            fail_msg("%s: \"%s\": %zu words, expected %zu", vector_kinds[k], text, got.n, json_array_size(want));
        for (size_t i = 0, end = 0; i < got.n; i++) {
            end += json_string_length(json_array_get(want, i));
            if (got.ends[i] != end) fail_msg("%s: \"%s\": word %zu differs", vector_kinds[k], text, i);
        }
    }
}

static void test_vectors(void **state) {
    (void)state;
    hn_pretok *opened[KINDS];
    for (size_t k = 0; k < KINDS; k++) opened[k] = open_kind(vector_kinds[k]);
    assert_in_range(each_row("tokenizers/pretokenizer.vectors.jsonl", check_row, opened), 50, 1000);
    for (size_t k = 0; k < KINDS; k++) hn_pretok_close(&opened[k]);
}

static size_t random_text(char *out, uint64_t *seed) {
    static const char *const parts[] = {"a", "Z", " ", "  ", "\n",       "\t", "'", "'s",       "'re", "9", "07",
                                        ".", "_", "é", "語", "\xC2\xA0", "٣",  "½", "\xCC\x81", "!",   "\r"};
    size_t n = 0;
    for (size_t k = hn_splitmix(seed) % 40; k > 0; k--) {
        const char *part = parts[hn_splitmix(seed) % (sizeof parts / sizeof *parts)];
        memcpy(out + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

/* The scanners against PCRE2 alone: a group of no effect keeps a pattern from its scanner. */
static void test_scanners_equal_pcre(void **state) {
    (void)state;
    char plain[300];
    snprintf(plain, sizeof plain, "(?:%s)", hn_pretok_gpt2);
    const char *const fast[] = {"\\p{N}", hn_pretok_gpt2}, *const slow[] = {"(?:\\p{N})", plain};
    hn_pretok *a, *b;
    uint64_t seed = 7;
    assert_int_equal(open_patterns(&a, fast, 2, NULL), HUNCH_OK);
    assert_int_equal(open_patterns(&b, slow, 2, NULL), HUNCH_OK);
    for (int i = 0; i < 5000; i++) {
        char text[400];
        words x, y;
        size_t len = random_text(text, &seed);
        split(a, text, len, &x);
        split(b, text, len, &y);
        if (x.n != y.n || memcmp(x.ends, y.ends, x.n * sizeof *x.ends))
            fail_msg("\"%.*s\" is cut differently", (int)len, text);
    }
    hn_pretok_close(&a);
    hn_pretok_close(&b);
}

static void test_every_kind_opens(void **state) {
    (void)state;
    static const char *const names[] = {"default",    "gpt-2",    "smollm",      "llama-bpe",      "dbrx",
                                        "jais-2",     "qwen2",    "qwen35",      "seed-coder",     "bailingmoe",
                                        "exaone-moe", "minicpm5", "deepseek-v3", "deepseek-coder", "deepseek-llm",
                                        "falcon",     "gpt-4o",   "minimax-m2",  "kimi-k2",        "tekken",
                                        "tiny_aya",   "bloom",    "viking",      "chameleon",      "jina-v2-code",
                                        "youtu",      "laguna",   "spark2_5",    "afmoe",          "gemma4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        words got;
        hn_pretok *p = open_kind(names[i]);
        split(p, "It's 1234 x\n  語é!", strlen("It's 1234 x\n  語é!"), &got);
        assert_in_range(got.n, strcmp(names[i], "gemma4") ? 3 : 1, 20);
        hn_pretok_close(&p);
    }
}

/* Digits are in threes from their end. */
static void test_digits_of_afmoe(void **state) {
    (void)state;
    static const size_t want[] = {1, 4, 7, 8, 10, 12, 15, 21};
    words got;
    hn_pretok *p = open_kind("afmoe");
    split(p, "1234567 12 .345語語", strlen("1234567 12 .345語語"), &got);
    assert_int_equal(got.n, 8);
    for (size_t i = 0; i < 8; i++) assert_int_equal(got.ends[i], want[i]);
    hn_pretok_close(&p);
}

static hunch_status join_word(void *user, const char *word, size_t len, hunch_error *err) {
    char *out = user;
    (void)err;
    strncat(out, word, len);
    strcat(out, "|");
    return HUNCH_OK;
}

static hunch_status join(const hn_pretok_step *steps, size_t n, const char *text, bool first, char *out,
                         hunch_error *e) {
    hn_pretok *p;
    hn_pretok_work *w;
    *out = '\0';
    assert_int_equal(hn_pretok_open(&p, steps, n, e), HUNCH_OK);
    assert_int_equal(hn_pretok_work_open(&w, e), HUNCH_OK);
    hunch_status s = hn_pretok_split(p, w, text, strlen(text), first, join_word, out, e);
    hn_pretok_work_close(&w);
    hn_pretok_close(&p);
    return s;
}

static void check_steps(const hn_pretok_step *steps, size_t n, const char *text, bool first, const char *want) {
    char got[200];
    hunch_error e = {0};
    if (join(steps, n, text, first, got, &e) != HUNCH_OK) fail_msg("%s", e.message);
    assert_string_equal(got, want);
}

/* The kinds of splits; see also tokenizer_pipelines_test.c. */
static void test_steps(void **state) {
    (void)state;
    static const char *const wanted[] = {"a|b|cc|b|b|d|", "a|cc|d|", "ab|ccb|b|d|", "a|bcc|b|bd|", "a|b|cc|bb|d|"};
    for (int k = 0; k < 5; k++)
        check_steps(&(hn_pretok_step){.pattern = "b", .split = (hn_split)k}, 1, "abccbbd", true, wanted[k]);
    check_steps(&(hn_pretok_step){.pattern = "b", .split = HN_SPLIT_REMOVED, .invert = true}, 1, "abccbbd", true,
                "b|b|b|");
    const hn_pretok_step space[] = {{.pattern = ","}, {.kind = HN_PRETOK_SPACE}};
    check_steps(space, 2, "a, b", true, " a| ,| b|");
    hn_pretok_step meta[] = {{.pattern = "\\."}, {.kind = HN_PRETOK_METASPACE, .prefix = HN_SPACE_PREFIX_FIRST}};
    check_steps(meta, 2, "a.b  c", true, "▁a|.|b|▁|▁c|");
    check_steps(meta, 2, "a.b", false, "a|.|b|");
    meta[1].prefix = HN_SPACE_PREFIX_EACH;
    meta[1].whole = true;
    check_steps(meta, 2, "▁a.b c", true, "▁a|▁.|▁b▁c|");
    const hn_pretok_step letters[] = {{.kind = HN_PRETOK_LETTERS}, {.pattern = "\\p{N}"}}; /* as letters ½ is Â and ½ */
    check_steps(letters, 2, "a½1", true, "a\xC2|\xBD|1|");
    hunch_error e = {0};
    char got[200];
    meta[0] = letters[0];
    assert_int_equal(join(meta, 2, "a", true, got, &e), HUNCH_REFUSED);
    assert_non_null(strstr(e.message, "after its ByteLevel step"));
    hn_pretok_step many[HN_PRETOK_MAX_STEPS + 1] = {{.kind = HN_PRETOK_SPACE}};
    hn_pretok *p;
    assert_int_equal(hn_pretok_open(&p, many, HN_PRETOK_MAX_STEPS + 1, &e), HUNCH_REFUSED);
    assert_null(p);
}

static void test_unknown_kind(void **state) {
    (void)state;
    const hn_pretok_kind *kind;
    hunch_error e = {0};
    assert_int_equal(hn_pretok_find(&kind, "smollm-2", 8, &e), HUNCH_REFUSED);
    assert_non_null(strstr(e.message, "\"smollm-2\""));
    assert_non_null(strstr(e.message, "smollm, llama-bpe")); /* the list */
    assert_non_null(strstr(e.message, "falcon"));
}

static hunch_status refuse_word(void *user, const char *word, size_t len, hunch_error *err) {
    (void)user;
    (void)word;
    (void)len;
    return hn_fail(err, HUNCH_CANCELLED, "enough");
}

static void test_hostile_patterns(void **state) {
    (void)state;
    hunch_error e = {0};
    hn_pretok *p;
    hn_pretok_work *w;
    static const char *const broken[] = {"a(b", "[z-a]", "\\p{Nonsense}", "\\C", "(?<=a+)b"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_int_equal(open_patterns(&p, &broken[i], 1, &e), HUNCH_REFUSED);
        assert_null(p);
    }
    /* Patterns that backtrack without end, match empty, or match elsewhere: an error or no word, never a hang or a crash. */
    static const char *const odd[] = {"(a+)+$b|(?:a|aa)+$c", "x*", "(?=a\\K)", "(?<=\\Ka)b"};
    char text[60];
    memset(text, 'a', sizeof text);
    assert_int_equal(hn_pretok_work_open(&w, &e), HUNCH_OK);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        words got = {.text = text};
        if (open_patterns(&p, &odd[i], 1, &e) != HUNCH_OK) continue;
        if (hn_pretok_split(p, w, text, sizeof text, true, keep_word, &got, &e) == HUNCH_OK)
            assert_int_equal(got.at, sizeof text);
        hn_pretok_close(&p);
    }
    p = open_kind("gpt-2");
    assert_int_equal(hn_pretok_split(p, w, "a b", 3, true, refuse_word, NULL, &e), HUNCH_CANCELLED);
    hn_pretok_close(&p);
    hn_pretok_work_close(&w);
}

static void test_no_memory(void **state) {
    (void)state;
    int failed = 0;
    for (int64_t after = 0; after < 60; after++) {
        hn_pretok *p = NULL;
        hn_pretok_work *w = NULL;
        words got = {.text = "é a"};
        hunch_error e = {0};
        const char *pattern = hn_pretok_gpt2;
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        hunch_status s = open_patterns(&p, &pattern, 1, &e);
        if (s == HUNCH_OK) s = hn_pretok_work_open(&w, &e);
        if (s == HUNCH_OK) s = hn_pretok_split(p, w, got.text, 4, true, keep_word, &got, &e);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(s == HUNCH_OK || s == HUNCH_NO_MEMORY);
        failed += s != HUNCH_OK;
        hn_pretok_work_close(&w);
        hn_pretok_close(&p);
    }
    assert_in_range(failed, 3, 59);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),          cmocka_unit_test(test_scanners_equal_pcre),
        cmocka_unit_test(test_every_kind_opens), cmocka_unit_test(test_digits_of_afmoe), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_unknown_kind),     cmocka_unit_test(test_hostile_patterns),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
