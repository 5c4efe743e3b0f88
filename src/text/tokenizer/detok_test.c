/* SPDX-License-Identifier: Apache-2.0 */
/* detok_test.c - text from ids step by step: the text is always valid, and at the end equals that of one pass. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/utf8.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/vectors_for_tests.h"

typedef struct text {
    hn_detok d;
    char *s;
    size_t len, cap;
} text;

static hn_tokenizer *open_model(const char *name) {
    hn_source *src;
    hn_tokenizer *t;
    assert_int_equal(hn_source_open(&src, text_path(name), NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_open(&t, src, NULL), HUNCH_OK);
    hn_source_close(&src);
    return t;
}

static void push(text *x, const hn_tokenizer *t, int32_t id) {
    size_t before = x->len;
    assert_int_equal(hn_detok_push(&x->d, t, id, &x->s, &x->len, &x->cap, NULL), HUNCH_OK);
    assert_true(x->len >= before && x->len < x->cap && x->s[x->len] == '\0');
    assert_int_equal(hn_utf8_check(x->s, x->len), x->len);
}

static void end(text *x, const char *want) {
    assert_int_equal(hn_detok_end(&x->d, &x->s, &x->len, &x->cap, NULL), HUNCH_OK);
    assert_string_equal(x->s, want);
    hn_free(x->s);
    memset(x, 0, sizeof *x);
}

enum { BYTE = 3 }; /* in stories260K the token of byte b is BYTE + b */

static void push_bytes(text *x, const hn_tokenizer *t, const char *bytes) {
    for (; *bytes; bytes++) push(x, t, BYTE + (unsigned char)*bytes);
}

#define BAD "\xEF\xBF\xBD"

static void test_bytes(void **state) {
    (void)state;
    hn_tokenizer *t = open_model("models/stories260K/stories260K.f16.gguf");
    static const char *const cases[][2] = {
        {"h\xC3\xA9!", "h\xC3\xA9!"},
        {"\xF0\x9F\xA6\x99", "\xF0\x9F\xA6\x99"},
        {"\xF0\x9F\xA6", BAD}, /* cut off: one for the incomplete sequence */
        {"\xF0\x9F\xA6x", BAD "x"},
        {"a\xFF\xFE"
         "b",
         "a" BAD BAD "b"},
        {"\x80\x80", BAD BAD},
        {"\xC3\xC3\xA9", BAD "\xC3\xA9"},
        {"\xED\xA0\x80", BAD BAD BAD}, /* a surrogate: no byte of it can begin anything */
        {"\xE2\x96\xE2\x96\x81", BAD "\xE2\x96\x81"},
        {"\xF4\x90\x80\x80", BAD BAD BAD BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text x = {0};
        hn_detok_init(&x.d);
        push_bytes(&x, t, cases[i][0]);
        end(&x, cases[i][1]);
    }
    hn_tokenizer_close(&t);
}

static void test_nothing_is_split(void **state) {
    (void)state;
    hn_tokenizer *t = open_model("models/stories260K/stories260K.f16.gguf");
    text x = {0};
    hn_detok_init(&x.d);
    push_bytes(&x, t, "\xF0\x9F\xA6");
    assert_int_equal(x.len, 0); /* pending */
    push(&x, t, 1);             /* a special token has no text and does not affect pending bytes */
    push(&x, t, 100000);        /* nor does one outside the vocabulary: models may have more rows than tokens */
    assert_int_equal(x.len, 0);
    push_bytes(&x, t, "\x99");
    assert_int_equal(x.len, 4);
    end(&x, "\xF0\x9F\xA6\x99");
    hn_tokenizer_close(&t);
}

static void test_leading_space(void **state) {
    (void)state;
    hn_tokenizer *t = open_model("models/stories260K/stories260K.f16.gguf"),
                 *u = open_model("tokenizers/smollm2-vocab.gguf");
    text x = {0};
    hn_detok_init(&x.d);
    push(&x, t, 1);
    push(&x, t, 259); /* " t" */
    push(&x, t, 259);
    end(&x, "t t");
    hn_detok_init(&x.d);
    push(&x, u, 260);
    const char *first = hn_tokenizer_piece(u, 260, NULL); /* byte-level BPE adds none, so none is dropped */
    assert_int_equal(first[0], ' ');
    end(&x, first);
    hn_tokenizer_close(&t);
    hn_tokenizer_close(&u);
}

/* Any ids: the text is always valid, and the same as the pieces joined. */
static void test_random_ids(void **state) {
    (void)state;
    hn_tokenizer *t = open_model("tokenizers/smollm2-vocab.gguf");
    uint64_t seed = 5;
    for (int round = 0; round < 300; round++) {
        text x = {0};
        char joined[20000];
        size_t n = 0, len;
        hn_detok_init(&x.d);
        for (size_t k = hn_splitmix(&seed) % 60; k > 0; k--) {
            int32_t id = (int32_t)(hn_splitmix(&seed) % (hn_splitmix(&seed) % 2 ? 300 : 49152));
            push(&x, t, id);
            const char *piece = hn_tokenizer_piece(t, id, &len);
            if (hn_tokenizer_is_special(t, id)) continue;
            memcpy(joined + n, piece, len);
            n += len;
        }
        /* Equal to the joined pieces if these are valid, else it starts with their valid prefix. */
        size_t valid = hn_utf8_check(joined, n);
        assert_int_equal(hn_detok_end(&x.d, &x.s, &x.len, &x.cap, NULL), HUNCH_OK);
        assert_true(x.len >= valid && memcmp(x.s, joined, valid) == 0);
        if (valid == n) assert_int_equal(x.len, n);
        assert_int_equal(hn_utf8_check(x.s, x.len), x.len);
        hn_free(x.s);
    }
    hn_tokenizer_close(&t);
}

static void test_no_memory(void **state) {
    (void)state;
    hn_tokenizer *t = open_model("models/stories260K/stories260K.f16.gguf");
    text x = {0};
    hunch_error e = {0};
    hn_detok_init(&x.d);
    hn_fault_arm(HN_FAULT_ALLOC, 0, true);
    assert_int_equal(hn_detok_push(&x.d, t, BYTE + 'a', &x.s, &x.len, &x.cap, &e), HUNCH_NO_MEMORY);
    assert_int_equal(hn_detok_end(&x.d, &x.s, &x.len, &x.cap, &e), HUNCH_NO_MEMORY);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    push(&x, t, BYTE + 'a');
    end(&x, "a");
    hn_tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),         cmocka_unit_test(test_nothing_is_split),
        cmocka_unit_test(test_leading_space), cmocka_unit_test(test_random_ids),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
