/* SPDX-License-Identifier: Apache-2.0 */
/* plan_test.c - hunch_plan on a small model: what it counts of methods whose acceptance is known, and what it recommends. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "fixture.h"

enum { TOKENS = 41 };

static hunch_model *model;

static const char *const right[] = {"forced,accept=1,depth=4"}, *const wrong[] = {"forced,accept=0,depth=4"},
                         *const unknown[] = {"nothing"};
static const hunch_method methods[] = {{"right", right, 1}, {"wrong", wrong, 1}};

static json_t *plan_of(const hunch_plan_options *o) {
    char *text = NULL;
    must(hunch_plan(model, o, &text, err));
    json_t *plan = json_loads(text, 0, NULL);
    hunch_free(text);
    assert_non_null(plan);
    return plan;
}

static hunch_request request_of(const hunch_token *prompt, size_t n) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt;
    r.n_prompt = n;
    r.max_tokens = TOKENS;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    return r;
}

static double real(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key) {
    return json_string_value(json_object_get(o, key));
}

static json_t *method(const json_t *plan, size_t i) {
    return json_array_get(json_object_get(plan, "methods"), i);
}

/* A prompt's first token belongs to no round: the rest is eight rounds of five. */
static void test_counts(void **state) {
    static const hunch_token prompt[] = {1, 403, 407, 261};
    const hunch_request r[] = {request_of(prompt, 4), request_of(prompt, 3)};
    const int batch[] = {1, 3};
    hunch_plan_options o;
    (void)state;
    hunch_plan_options_defaults(&o);
    o.methods = methods;
    o.n_methods = 2;
    o.requests = r;
    o.n_requests = 2;
    o.batch = batch;
    o.n_batch = 2;
    json_t *plan = plan_of(&o);
    const json_t *good = method(plan, 0), *bad = method(plan, 1), *rates = json_object_get(good, "acceptance");
    assert_true(fabs(real(good, "tokens_a_round") - 5) < 1e-9);
    assert_int_equal(json_array_size(rates), 4);
    for (size_t i = 0; i < 4; i++) assert_true(json_number_value(json_array_get(rates, i)) == 1);
    assert_true(real(bad, "tokens_a_round") == 1);
    assert_true(json_is_true(json_object_get(good, "measured")) && json_is_null(json_object_get(good, "typical")));
    const json_t *ours = json_object_get(good, "leviathan"), *theirs = json_object_get(bad, "leviathan");
    assert_true(real(ours, "a") == 1 && real(theirs, "a") == 0 && real(ours, "depth") == 4);
    assert_true(fabs(real(ours, "r") - 1) < 1e-9 && real(theirs, "r") == 0);
    assert_true(real(ours, "best_depth") > 4 && real(theirs, "best_depth") == 0);
    const double gain = real(good, "predicted_tok_s") / real(json_object_get(plan, "plain"), "predicted_tok_s");
    assert_true(fabs(5 / (1 + 4 * real(ours, "whole_c")) - gain) < 1e-4 * gain);
    assert_int_equal(json_array_size(json_object_get(good, "table")), 2 * 4); /* 1, 2, 3 and as it runs */
    assert_true(real(bad, "predicted_tok_s") < real(json_object_get(plan, "plain"), "predicted_tok_s"));
    assert_true(real(good, "predicted_tok_s") > real(bad, "predicted_tok_s"));
    assert_int_equal(json_array_size(json_object_get(json_object_get(plan, "plain"), "batches")), 2);
    assert_int_equal(json_array_size(json_object_get(plan, "batches")), 2);
    /* Beside other work five rows can take as long as five passes of one; what is worth it has to be faster by more than 3 %. */
    assert_string_equal(text(plan, "recommend"), gain > 1.03 ? "--draft right" : "--draft none");
    json_decref(plan);
}

static void test_without_prompts(void **state) {
    hunch_plan_options o;
    (void)state;
    hunch_plan_options_defaults(&o);
    json_t *plan = plan_of(&o);
    assert_int_equal(json_array_size(json_object_get(plan, "methods")), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(strstr(text(method(plan, i), "typical"), "Spec-Bench"));
        assert_true(json_is_false(json_object_get(method(plan, i), "measured")));
    }
    assert_true(json_is_false(json_object_get(plan, "predicted")));
    assert_true(json_array_size(json_object_get(plan, "curve")) == 12);
    json_decref(plan);
}

static void test_refused(void **state) {
    static const int none[] = {0};
    static const hunch_method of_none[] = {{"nothing", unknown, 1}};
    hunch_plan_options o;
    hunch_error err = {0};
    char *out;
    (void)state;
    hunch_plan_options_defaults(&o);
    o.batch = none;
    o.n_batch = 1;
    assert_int_equal(hunch_plan(model, &o, &out, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "a batch of 0"));
    hunch_plan_options_defaults(&o);
    o.methods = of_none;
    o.n_methods = 1;
    assert_int_equal(hunch_plan(model, &o, &out, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "nothing"));
    assert_int_equal(hunch_plan(NULL, NULL, &out, &err), HUNCH_USAGE);
    assert_int_equal(hunch_plan(model, NULL, NULL, &err), HUNCH_USAGE);
}

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), NULL, 1, HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_without_prompts), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
