/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking_test.c - thinking and answer apart, whole and byte by byte: both only grow. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "server/serve_thinking.h"

static hunch_model *model; /* without a template: its marks are <think> and </think> */

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
             {"a <think> b </think> c", false, " b ", "a  c"},
             {"<thin", false, "", "<thin"},
             {"<think></think>", false, "", ""},
             {"<think>a</think>b</think>c", false, "a", "b</think>c"},
             {"a < b </ c </think>\n\nd\n\n", true, "a < b </ c ", "d\n\n"}};
enum { CASES = sizeof cases / sizeof *cases };

static void check_part(const serve_bytes *part, const char *want, bool whole) {
    assert_true(whole ? part->n == strlen(want) : part->n <= strlen(want));
    if (part->n) assert_memory_equal(part->at, want, part->n);
}

static void test_parts(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++)
        for (size_t step = 1; step < 40; step *= 3) { /* what was sent is never taken back */
            const size_t n = strlen(cases[i].text);
            serve_parts p = {.split.thinking = cases[i].thinks};
            for (size_t k = 0; k <= n; k += step) {
                assert_true(serve_parts_grow(&p, model, cases[i].text, k, false, false));
                check_part(&p.thinking, cases[i].thinking, false);
                check_part(&p.answer, cases[i].answer, false);
            }
            assert_true(serve_parts_grow(&p, model, cases[i].text, n, true, false));
            check_part(&p.thinking, cases[i].thinking, true);
            check_part(&p.answer, cases[i].answer, true);
            assert_true(p.thinking_end <= n && (p.thinking_end > 0 || !p.thinking.n));
            serve_parts_free(&p);
        }
}

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
