/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking_test.c - thinking and answer apart, whole and byte by byte: both only grow. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "server/serve_thinking.h"

static const struct {
    const char *text;
    bool thinks;
    const char *thinking, *answer;
} cases[] = {{"plain", false, "", "plain"},
             {"", false, "", ""},
             {"", true, "", ""},
             {"\n<think>\nso\n</think>\n\nyes", false, "so\n", "yes"},
             {"so</think>yes", true, "so", "yes"},
             {"so", true, "so", ""},
             {"so </thin", true, "so </thin", ""},
             {"a <think> b </think> c", false, "", "a <think> b </think> c"},
             {"<thin", false, "", "<thin"},
             {"<think></think>", false, "", ""},
             {"<think>a</think>b</think>c", false, "a", "b</think>c"},
             {"a < b </ c </think>\n\nd\n\n", true, "a < b </ c ", "d\n\n"}};
enum { CASES = sizeof cases / sizeof *cases };

static void check_part(const char *text, size_t at, size_t n, const char *want) {
    assert_int_equal(n, strlen(want));
    assert_memory_equal(text + at, want, n);
}

static void test_parts(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const char *text = cases[i].text;
        const size_t n = strlen(text);
        size_t thinking = 0, answer = 0;
        for (size_t k = 0; k <= n; k++) { /* what was sent is never taken back */
            const serve_parts p = serve_parts_of(text, k, cases[i].thinks, false);
            assert_true(p.n_thinking >= thinking && p.n_answer >= answer);
            assert_memory_equal(text + p.thinking, cases[i].thinking, p.n_thinking);
            assert_memory_equal(text + p.answer, cases[i].answer, p.n_answer);
            thinking = p.n_thinking;
            answer = p.n_answer;
        }
        const serve_parts p = serve_parts_of(text, n, cases[i].thinks, true);
        check_part(text, p.thinking, p.n_thinking, cases[i].thinking);
        check_part(text, p.answer, p.n_answer, cases[i].answer);
    }
}

static void test_prompts(void **state) {
    (void)state;
    assert_true(serve_opens_thinking("x<think>\n", 9));
    assert_true(serve_opens_thinking("<think>", 7));
    assert_false(serve_opens_thinking("<think>\n\n</think>\n\n", 19));
    assert_false(serve_opens_thinking("", 0));
    assert_false(serve_opens_thinking("think>", 6));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_prompts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
