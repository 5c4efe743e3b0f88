/* SPDX-License-Identifier: Apache-2.0 */
/* answer_parts_test.c - thinking between the marks of a template: Gemma 4's. Channels: tests/harmony_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "fixture.h"

/* The kinds of the parts of an answer that arrives in pieces of `step` bytes, a letter each, and their bytes between bars. */
static void split(const hunch_model *m, const char *text, bool thinks, size_t step, char out[400]) {
    hunch_split s = {.thinking = thinks};
    hunch_part part;
    int last = -1;
    out[0] = 0;
    for (size_t len = step, there = 0; there < strlen(text); len += step) {
        there = len < strlen(text) ? len : strlen(text);
        while (hunch_split_next(m, &s, text, there, there == strlen(text), &part)) {
            if ((int)part.kind != last) snprintf(out + strlen(out), 4, "|%c", "tTmc"[part.kind]);
            last = (int)part.kind;
            strncat(out, text + part.from, part.len);
        }
    }
}

static void test_gemma4(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    size_t len = 0;
    char *text = NULL, pieces[400];
    const char *const said = "<|channel>thought\nAdd them.\n<channel|>It is < 4.";
    must(hn_file_read(HUNCH_TEST_TEMPLATES "/google-gemma-4-31B-it.jinja", 1 << 20, &text, &len, err));
    must(hn_think_marks(m, text, len, err));
    for (size_t step = 1; step < 60; step++) {
        split(m, said, false, step, pieces);
        assert_string_equal(pieces, "|m<|channel>thought|T\nAdd them.\n|m<channel|>|tIt is < 4.");
        split(m, "Add.<channel|>4", true, step, pieces);
        assert_string_equal(pieces, "|TAdd.|m<channel|>|t4");
    }
    static const char open[] = "<|turn>model\n<|channel>thought\n", closed[] = "<|turn>model\n<|channel>thought\n<channel|>";
    assert_true(hunch_prompt_thinks(m, open, sizeof open - 1));
    assert_false(hunch_prompt_thinks(m, closed, sizeof closed - 1));
    hn_free(text);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gemma4)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
