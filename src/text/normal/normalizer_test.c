/* SPDX-License-Identifier: Apache-2.0 */
/* normalizer_test.c - steps by hand-made cases, Unicode's forms against utf8proc's own over random texts, invalid maps.
 * Against the `tokenizers` package: tokenizer_pipelines_test.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/fault.h"
#include "base/random.h"
#include "base/utf8.h"
#include "text/base64.h"
#include "text/normal/normalizer.h"

static void check(const hn_normal_step *steps, size_t n, const char *text, const char *want, bool lost_start) {
    hn_normalizer *z;
    hn_normal_work *w;
    hn_normal_text out;
    hunch_error e = {0};
    if (hn_normalizer_open(&z, steps, n, &e) != HUNCH_OK) fail_msg("%s", e.message);
    assert_int_equal(hn_normal_work_open(&w, &e), HUNCH_OK);
    if (hn_normalize(z, w, text, strlen(text), &out, &e) != HUNCH_OK) fail_msg("%s", e.message);
    if (out.len != strlen(want) || (out.len && memcmp(out.bytes, want, out.len)))
        fail_msg("step %d: \"%s\" gives \"%.*s\", expected \"%s\"", steps[0].kind, text, (int)out.len, out.bytes, want);
    if (out.lost_start != lost_start) fail_msg("step %d: \"%s\": start", steps[0].kind, text);
    hn_normal_work_close(&w);
    hn_normalizer_close(&z);
}

static void test_steps(void **state) {
    (void)state;
#define ONE(text, want, lost, ...) check(&(hn_normal_step){__VA_ARGS__}, 1, text, want, lost)
    ONE("e\xCC\x81\xE2\x84\xAB", "é\xC3\x85", false, .kind = HN_NORMAL_NFC);
    ONE("é", "e\xCC\x81", false, .kind = HN_NORMAL_NFD);
    ONE("ﬁ①", "fi1", false, .kind = HN_NORMAL_NFKC);
    ONE("ÀİΣ", "ài\xCC\x87σ", false, .kind = HN_NORMAL_LOWERCASE);
    ONE(" \xE3\x80\x80x y\n", "x y\n", true, .kind = HN_NORMAL_STRIP, .left = true);
    ONE("x \xC2\x85", "x", false, .kind = HN_NORMAL_STRIP, .left = true, .right = true);
    ONE(" \n", "", true, .kind = HN_NORMAL_STRIP, .left = true, .right = true);
    ONE("\xCC\x81"
        "e\xCC\x81x",
        "ex", true, .kind = HN_NORMAL_STRIP_ACCENTS);
    ONE("\x01"
        "a\tb\xE2\x80\x8B",
        "a b ", true, .kind = HN_NORMAL_NMT);
    ONE("aXbXX", "a--b----", false, .kind = HN_NORMAL_REPLACE, .string = "X", .content = "--");
    ONE("XXa", "a", true, .kind = HN_NORMAL_REPLACE, .string = "X", .content = "");
    ONE("a", "a", false, .kind = HN_NORMAL_REPLACE, .string = "", .content = "x");
    ONE("a  b   ", "a b ", false, .kind = HN_NORMAL_REPLACE, .pattern = " {2,}", .content = " ");
    ONE("  a", "a", true, .kind = HN_NORMAL_REPLACE, .pattern = "^ +", .content = "");
    ONE("a", "> a", false, .kind = HN_NORMAL_PREPEND, .content = "> ");
    ONE("", "", false, .kind = HN_NORMAL_PREPEND, .content = "> ");
    ONE("  a   b ", " a b", false, .kind = HN_NORMAL_SPACES);
    ONE("   ", "", false, .kind = HN_NORMAL_SPACES);
#undef ONE
    const hn_normal_step several[] = {{.kind = HN_NORMAL_NFD},
                                      {.kind = HN_NORMAL_STRIP_ACCENTS},
                                      {.kind = HN_NORMAL_LOWERCASE},
                                      {.kind = HN_NORMAL_REPLACE, .string = " ", .content = "_"}};
    check(several, 4, "É È", "e_e", false);
    check(several, 0, "as it is", "as it is", false);
}

static size_t random_text(char *out, uint64_t *seed) {
    static const uint32_t bases[] = {'a',    0xC0,   0x300,  0x340,  0x5B0,  0x958,   0x1100,  0x1161, 0x11A8, 0xAC00,
                                     0x1E00, 0x2120, 0x3040, 0xF900, 0xFB00, 0x1D15E, 0x2F800, 0x320,  0x590,  0x0F71};
    size_t n = 0;
    for (size_t k = hn_splitmix(seed) % 24; k > 0; k--) {
        uint32_t cp = bases[hn_splitmix(seed) % 20] + (uint32_t)(hn_splitmix(seed) % 24);
        n += (size_t)hn_utf8_encode(cp, out + n);
    }
    out[n] = '\0';
    return n;
}

static void test_forms(void **state) {
    (void)state;
    uint64_t seed = 8;
    static const hn_normal_kind kinds[] = {HN_NORMAL_NFC, HN_NORMAL_NFD, HN_NORMAL_NFKC, HN_NORMAL_NFKD};
    for (int i = 0; i < 8000; i++) {
        char text[200];
        random_text(text, &seed);
        const utf8proc_uint8_t *u = (const utf8proc_uint8_t *)text;
        int k = i % 4;
        char *want = (char *)(k == 0   ? utf8proc_NFC(u)
                              : k == 1 ? utf8proc_NFD(u)
                              : k == 2 ? utf8proc_NFKC(u)
                                       : utf8proc_NFKD(u));
        check(&(hn_normal_step){.kind = kinds[k]}, 1, text, want, false);
        free(want);
    }
}

/* Half a million marks that sorting must move: in quadratic time it would take a day. */
static void test_many_marks(void **state) {
    (void)state;
    enum { MARKS = 1 << 19 };
    hn_normalizer *z;
    hn_normal_work *w;
    hn_normal_text out;
    char *text = malloc(2 * MARKS);
    for (size_t i = 0; i < MARKS; i++) memcpy(text + 2 * i, i % 2 ? "\xCC\xA3" : "\xCC\x82", 2); /* above, below */
    assert_int_equal(hn_normalizer_open(&z, &(hn_normal_step){.kind = HN_NORMAL_NFC}, 1, NULL), HUNCH_OK);
    assert_int_equal(hn_normal_work_open(&w, NULL), HUNCH_OK);
    assert_int_equal(hn_normalize(z, w, text, 2 * MARKS, &out, NULL), HUNCH_OK);
    assert_int_equal(out.len, 2 * MARKS);
    assert_memory_equal(out.bytes, "\xCC\xA3\xCC\xA3", 4);
    assert_memory_equal(out.bytes + MARKS - 2, "\xCC\xA3\xCC\x82", 4);
    hn_normal_work_close(&w);
    hn_normalizer_close(&z);
    free(text);
}

/* Random bytes as a trie: every lookup stays in bounds. */
static void test_hostile_charsmap(void **state) {
    (void)state;
    uint64_t seed = 4;
    hunch_error e = {0};
    hn_charsmap m;
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {{"", 0},
               {"\4\0\0", 3},
               {"\5\0\0\0aaaaa", 9},
               {"\10\0\0\0aaaa", 8},
               {"\0\0\0\0", 4},
               {"\xFC\xFF\xFF\xFF"
                "aaaa",
                8}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hn_charsmap_init(&m, bad[i].bytes, bad[i].n, &e), HUNCH_REFUSED);
        assert_null(m.units);
    }
    for (int round = 0; round < 3000; round++) {
        char bytes[4 + 256 + 20], text[40];
        size_t used;
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(hn_splitmix(&seed) & (round % 2 ? 0x1F : 0xFF));
        memcpy(bytes, "\0\1\0\0", 4);
        assert_int_equal(hn_charsmap_init(&m, bytes, sizeof bytes, NULL), HUNCH_OK);
        for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(1 + hn_splitmix(&seed) % 30);
        const char *to = hn_charsmap_find(&m, text, sizeof text, round % 3, &used);
        if (to) assert_true(used >= 1 && used <= sizeof text && strlen(to) <= m.n_texts);
        hn_charsmap_fini(&m);
    }
}

static void test_limits(void **state) {
    (void)state;
    hn_normal_step steps[HN_NORMAL_MAX_STEPS + 1] = {{0}};
    char content[HN_NORMAL_MAX_CONTENT + 2] = "";
    hn_normalizer *z;
    hunch_error e = {0};
    assert_int_equal(hn_normalizer_open(&z, steps, HN_NORMAL_MAX_STEPS + 1, &e), HUNCH_REFUSED);
    memset(content, 'x', sizeof content - 1);
    steps[0] = (hn_normal_step){.kind = HN_NORMAL_PREPEND, .content = content};
    assert_int_equal(hn_normalizer_open(&z, steps, 1, &e), HUNCH_REFUSED);
    steps[0] = (hn_normal_step){.kind = HN_NORMAL_REPLACE, .pattern = "(", .content = ""};
    assert_int_equal(hn_normalizer_open(&z, steps, 1, &e), HUNCH_REFUSED);
    assert_null(z);
    /* 64 times 64 times …: refused, not computed. */
    for (int i = 0; i < 8; i++)
        steps[i] = (hn_normal_step){.kind = HN_NORMAL_REPLACE, .string = "x", .content = content + 1};
    hn_normal_work *w;
    hn_normal_text out;
    assert_int_equal(hn_normalizer_open(&z, steps, 8, &e), HUNCH_OK);
    assert_int_equal(hn_normal_work_open(&w, &e), HUNCH_OK);
    assert_int_equal(hn_normalize(z, w, "xxx", 3, &out, &e), HUNCH_USAGE);
    assert_non_null(strstr(e.message, "makes more than 4144 bytes"));
    hn_normal_work_close(&w);
    hn_normalizer_close(&z);
}

static void test_base64(void **state) {
    (void)state;
    static const struct {
        const char *text, *bytes;
    } good[] = {
        {"", ""}, {"YQ==", "a"}, {"YWI=", "ab"}, {"YWJj", "abc"}, {"+/+/", "\xFB\xFF\xBF"}, {"YWJjZA==", "abcd"}};
    static const char *const bad[] = {"Y", "YQ=", "Y===", "YQ==YQ==", "Y Q=", "YW-j", "YWJ\xC3"};
    char out[16];
    size_t n;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(hn_base64_decode(good[i].text, strlen(good[i].text), out, &n));
        assert_int_equal(n, strlen(good[i].bytes));
        assert_memory_equal(out, good[i].bytes, n);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hn_base64_decode(bad[i], strlen(bad[i]), out, &n));
}

static void test_no_memory(void **state) {
    (void)state;
    const hn_normal_step steps[] = {{.kind = HN_NORMAL_NFKC},
                                    {.kind = HN_NORMAL_REPLACE, .string = "a", .content = "b"},
                                    {.kind = HN_NORMAL_REPLACE, .pattern = "b+", .content = "c"},
                                    {.kind = HN_NORMAL_CHARSMAP, .charsmap = "\4\0\0\0aaaa", .n_charsmap = 8}};
    int failed = 0;
    for (int64_t after = 0; after < 80; after++) {
        hn_normalizer *z = NULL;
        hn_normal_work *w = NULL;
        hn_normal_text out;
        hunch_error e = {0};
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        hunch_status s = hn_normalizer_open(&z, steps, 4, &e);
        if (s == HUNCH_OK) s = hn_normal_work_open(&w, &e);
        if (s == HUNCH_OK)
            s = hn_normalize(z, w,
                             "eé\xCC\x81"
                             "aab",
                             9, &out, &e);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(s == HUNCH_OK || (s == HUNCH_NO_MEMORY && e.status == s));
        failed += s != HUNCH_OK;
        hn_normal_work_close(&w);
        hn_normalizer_close(&z);
    }
    assert_in_range(failed, 12, 79);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),      cmocka_unit_test(test_forms),
        cmocka_unit_test(test_many_marks), cmocka_unit_test(test_hostile_charsmap),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_base64),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
