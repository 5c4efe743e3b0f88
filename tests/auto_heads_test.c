/* SPDX-License-Identifier: Apache-2.0 */
/* auto_heads_test.c - `auto` opens what lies beside the model as a head, the first by name that fits; what does not fit is noted; and a
 * head of which nothing is ever right is noted, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "fixture.h"
#include "random_head.h"

static void link_to(const char *data, const char *name) {
    (void)unlink(test_path(name));
    assert_int_equal(symlink(data_path(data), test_path(name)), 0);
}

static int setup(void **state) {
    (void)state;
    assert_int_equal(mkdir(test_path("folder"), 0700), 0);
    assert_int_equal(mkdir(test_path("folder/heads"), 0700), 0);
    return 0;
}

static void check(const char *model, const char *head, const char *note) {
    hunch_model *m = open_model(test_path(model), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "auto", 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    assert_int_equal(hunch_engine_drafters(e), head ? 3 : 2);
    if (head) assert_string_equal(hunch_engine_drafter_name(e, 2), test_path(head));
    if (note) {
        assert_non_null(hunch_engine_note(e, 0));
        if (!strstr(hunch_engine_note(e, 0), note)) fail_msg("%s", hunch_engine_note(e, 0));
        assert_null(hunch_engine_note(e, 1));
    } else {
        assert_null(hunch_engine_note(e, 0));
    }
    assert_null(hunch_engine_note(e, -1));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* A whole model is a drafter as well. */
static void test_beside(void **state) {
    (void)state;
    link_to("models/stories260K/stories260K.f32.gguf", "m.gguf");
    check("m.gguf", NULL, NULL);
    test_file_write(test_path("m.head.gguf"), "no head", 7);
    check("m.gguf", NULL, "the draft head beside the model is not used: drafter");
    (void)unlink(test_path("m.head.gguf"));
    link_to("models/stories260K/stories260K.f32.gguf", "m.head.gguf");
    check("m.gguf", "m.head.gguf", NULL);
    check("m.head.gguf", NULL, NULL); /* a head has none */
    (void)unlink(test_path("m.head.gguf"));
    must(hunch_convert_for(data_path("heads/stories-eagle"), NULL, test_path("m.head.gguf"), NULL, NULL, err));
    check("m.gguf", "m.head.gguf", NULL);
}

static void test_folder(void **state) {
    (void)state;
    static const char *const files[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        char from[100], to[100];
        snprintf(from, sizeof from, "goldens-heads/targets/llama-a/%s", files[i]);
        snprintf(to, sizeof to, "folder/%s", files[i]);
        link_to(from, to);
    }
    check("folder", NULL, NULL);
    test_file_write(test_path("folder/heads/b.gguf"), "no head", 7);
    test_file_write(test_path("folder/heads/a.txt"), "no head", 7);
    check("folder", NULL, "folder/heads/b.gguf");
    link_to("models/stories260K/stories260K.f32.gguf", "folder/head.gguf"); /* of another vocabulary */
    hunch_model *m = open_model(test_path("folder"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "auto", 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    assert_int_equal(hunch_engine_drafters(e), 2);
    assert_non_null(strstr(hunch_engine_note(e, 0), "folder/head.gguf"));
    assert_non_null(strstr(hunch_engine_note(e, 1), "folder/heads/b.gguf"));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void test_useless(void **state) {
    (void)state;
    char spec[700];
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    snprintf(spec, sizeof spec, "eagle:%s,depth=1", head_write_form(&STORIES_EAGLE, test_path("useless")));
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 256);
    hunch_token prompt[] = {1, 403, 407, 261, 378};
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = 5;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    for (int i = 0; i < 3; i++) {
        answer a = {0};
        r.max_tokens = i ? 150 : 40;
        run_requests(e, &r, 1, false, &a);
        if (i == 0) assert_null(hunch_engine_note(e, 0)); /* not 64 yet */
        answer_free(&a);
    }
    assert_non_null(hunch_engine_note(e, 0));
    assert_non_null(strstr(hunch_engine_note(e, 0), "none of the first 64 drafts of eagle:"));
    assert_null(hunch_engine_note(e, 1));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside), cmocka_unit_test(test_folder),
                                       cmocka_unit_test(test_useless)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
