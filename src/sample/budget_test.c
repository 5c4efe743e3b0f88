/* SPDX-License-Identifier: Apache-2.0 */
/* budget_test.c - where an answer is in its thinking, by its bytes: marks in several tokens and in one, begun and not ended, in channels;
 * and which token must come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fixture.h"
#include "format/source.h"
#include "sample/budget.h"

typedef struct vocabulary {
    hn_source *source;
    hn_tokenizer *tokenizer;
} vocabulary;

static vocabulary opened(const char *path) {
    vocabulary v;
    must(hn_source_open(&v.source, data_path(path), err));
    must(hn_tokenizer_open(&v.tokenizer, v.source, err));
    return v;
}

static void closed(vocabulary *v) {
    hn_tokenizer_close(&v->tokenizer);
    hn_source_close(&v->source);
}

static int encode(const vocabulary *v, const char *text, int32_t **ids) {
    size_t n;
    must(hn_tokenizer_encode(v->tokenizer, text, strlen(text), HUNCH_TEXT_PARSE_SPECIAL, ids, &n, err));
    return (int)n;
}

/* After a text, which is encoded piece by piece (a line break cuts): whether it thinks, and for how many tokens it did. */
static hn_spent after(const vocabulary *v, const hn_budget *b, const char *text) {
    hn_spent s = hn_budget_start(b);
    char piece[200];
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        int32_t *ids;
        n = strcspn(text, "\n");
        snprintf(piece, sizeof piece, "%.*s", (int)n, text);
        const int count = encode(v, piece, &ids);
        for (int i = 0; i < count; i++) s = hn_budget_next(b, s, ids[i]);
        hn_free(ids);
    }
    return s;
}

static int tokens(const vocabulary *v, const char *text) {
    int32_t *ids;
    const int n = encode(v, text, &ids);
    hn_free(ids);
    return n;
}

static void test_marks(void **state) {
    (void)state;
    vocabulary v = opened("models/stories260K/stories260K.f32.gguf");
    int32_t *end;
    const int n_end = encode(&v, "</think>", &end);
    assert_true(n_end > 2);
    hn_budget b = {.tokenizer = v.tokenizer, .mark = {"<think>", "</think>"}, .end = end, .n_end = n_end, .most = 5};
    const struct { const char *text; bool begins, thinking; int used; } cases[] = {
        {"a girl", false, false, 0},
        {"<think>", false, true, 0},
        {"<<think>", false, true, 0},
        {"<thinking>", false, false, 0},
        {"<think>\na girl", false, true, tokens(&v, "a girl")},
        {"a girl", true, true, tokens(&v, "a girl")},
        {"a girl\n</think>\na dog", true, false, -1},
        {"a girl</think\ning", true, true, -1},
        {"a </</think>", true, false, -1},
        {"a</think>b<think>c", true, true, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b.begins = cases[i].begins;
        const hn_spent s = after(&v, &b, cases[i].text);
        if (s.thinking != cases[i].thinking || (cases[i].used >= 0 && s.used != cases[i].used))
            fail_msg("\"%s\": thinks %d, %d tokens", cases[i].text, s.thinking, s.used);
    }
    hn_free(end);
    closed(&v);
}

/* The budget's last token, then the mark token after token, then any; a mark that the text has begun is gone on with. */
static void test_forced(void **state) {
    (void)state;
    vocabulary v = opened("models/stories260K/stories260K.f32.gguf");
    int32_t *end, *text;
    const int n_end = encode(&v, "</think>", &end), n = encode(&v, "once upon a time there was a girl", &text);
    assert_true(n > 6);
    for (int begun = 0; begun < n_end; begun++) {
        const hn_budget b = {.tokenizer = v.tokenizer, .mark = {"<think>", "</think>"}, .end = end, .n_end = n_end, .most = 4 + begun,
                             .begins = true};
        hn_spent s = hn_budget_start(&b);
        for (int i = 0; i < 4 + begun; i++) {
            assert_int_equal(hn_budget_forced(&b, s), -1);
            s = hn_budget_next(&b, s, i < 4 ? text[i] : end[i - 4]);
        }
        assert_int_equal(s.used, 4 + begun);
        for (int i = begun; i < n_end; i++) {
            assert_int_equal(hn_budget_forced(&b, s), end[i]);
            s = hn_budget_next(&b, s, end[i]);
        }
        assert_false(s.thinking);
        for (int i = 0; i < n; i++) {
            s = hn_budget_next(&b, s, text[i]);
            assert_int_equal(hn_budget_forced(&b, s), -1);
        }
        /* thinking that begins again has spent its budget */
        hn_budget outside = b;
        outside.begins = false;
        hn_spent again = after(&v, &outside, "<think>");
        again.used = s.used;
        assert_int_equal(hn_budget_forced(&b, again), end[0]);
        /* another token than the forced one, which a grammar may have asked for: the mark begins anew */
        s = hn_budget_start(&b);
        for (int i = 0; i < 4 + begun; i++) s = hn_budget_next(&b, s, text[i]);
        s = hn_budget_next(&b, hn_budget_next(&b, s, end[0]), text[0]);
        assert_int_equal(hn_budget_forced(&b, s), end[0]);
    }
    hn_free(end);
    hn_free(text);
    closed(&v);
}

/* Every header ends thinking; that of another analysis goes on with it. */
static void test_channels(void **state) {
    (void)state;
    vocabulary v = opened("models/harmony");
    int32_t *end;
    const int n_end = encode(&v, "<|end|>", &end);
    assert_int_equal(n_end, 1);
    const hn_budget b = {.tokenizer = v.tokenizer, .mark = {"<|channel|>analysis<|message|>", "<|end|>"}, .end = end, .n_end = n_end,
                         .most = 3, .channels = true};
    const int hm = tokens(&v, "Need weather");
    const struct { const char *text; bool thinking; int used; } cases[] = {
        {"<|channel|>analysis<|message|>", true, 0},
        {"<|channel|>analysis<|message|>\nNeed weather", true, hm},
        {"<|channel|>analysis<|message|>\nNeed weather\n<|end|>", false, hm},
        {"<|channel|>analysis<|message|>\nNeed weather\n<|end|><|start|>assistant<|channel|>final<|message|>\nNeed weather", false, hm},
        {"<|channel|>analysis<|message|>\nNeed weather\n<|end|><|start|>assistant<|channel|>analysis<|message|>\nNeed weather", true,
         2 * hm},
        {"<|channel|>analysis<|message|>\nNeed weather\n<|channel|>final<|message|>\nNeed weather", false, hm},
        {"<|channel|>final<|message|>\nNeed weather", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hn_spent s = after(&v, &b, cases[i].text);
        if (s.thinking != cases[i].thinking || s.used != cases[i].used)
            fail_msg("\"%s\": thinks %d, %d tokens", cases[i].text, s.thinking, s.used);
        assert_int_equal(hn_budget_forced(&b, s), s.thinking && s.used >= 3 ? end[0] : -1);
    }
    hn_free(end);
    closed(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks), cmocka_unit_test(test_forced), cmocka_unit_test(test_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
