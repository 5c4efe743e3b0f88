/* SPDX-License-Identifier: Apache-2.0 */
/* split_test.c - a model in parts gives the same tokens and logits as the whole file, and `inspect` shows it as a
 * whole. Reading and refusing parts: gguf_split_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "format/split_for_tests.h"

enum { PROMPT = 20, TOKENS = 12 };

static void generate(const char *path, answer *out) {
    hunch_model *m = open_model(path, NULL, 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_F16, 64, 128);
    hunch_token prompt[PROMPT];
    hunch_request r;
    hunch_request_defaults(&r, m);
    for (int i = 0; i < PROMPT; i++) prompt[i] = (i * 37 + 11) % 512;
    r.prompt = prompt;
    r.n_prompt = PROMPT;
    r.max_tokens = TOKENS;
    r.ignore_eos = true;
    run_requests(e, &r, 1, true, out);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void test_same_answers(void **state) {
    (void)state;
    const char *whole = data_path("models/stories260K/stories260K.f16.gguf");
    answer a = {0}, b = {0};
    generate(whole, &a);
    generate(split_file(whole, "stories", 3, false), &b);
    assert_int_equal(a.n, TOKENS);
    assert_same(&a, &b, "the model in three parts");
    answer_free(&a);
    answer_free(&b);
}

static void test_inspect(void **state) {
    (void)state;
    const char *path = split_file(data_path("models/stories260K/stories260K.f16.gguf"), "shown", 3, true);
    char *text = NULL;
    size_t i;
    json_t *t;
    must(hunch_inspect(path, &text, err));
    json_t *d = json_loads(text, 0, NULL);
    assert_non_null(d);
    assert_int_equal(json_integer_value(json_object_get(d, "files")), 3);
    assert_null(json_object_get(d, "refused"));
    assert_int_equal(json_array_size(json_object_get(d, "tensors")), 47);
    json_array_foreach (json_object_get(d, "tensors"), i, t) assert_true(json_is_true(json_object_get(t, "used")));
    json_decref(d);
    hunch_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_answers), cmocka_unit_test(test_inspect)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
