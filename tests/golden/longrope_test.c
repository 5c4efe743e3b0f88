/* SPDX-License-Identifier: Apache-2.0 */
/* longrope_test.c - a model with longrope has two rotations, and the engine's context selects one: beyond the original
 * length that for long texts, for every row of every text (contract C2), also of short ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fixture.h"
#include "model/folder_for_tests.h"

enum { ORIGINAL = 4096, TOKENS = 70, VOCAB = 256 };

static void keep_row(void *user, size_t position, const float *logits, int vocab) {
    assert_int_equal(vocab, VOCAB);
    memcpy((float *)user + position * VOCAB, logits, VOCAB * sizeof(float));
}

/* Logits of a text under a context; 0: the usual one. */
static float *logits_of(const char *folder, int context) {
    hunch_token text[TOKENS];
    hunch_model *m = open_model(folder, "best", 1, HUNCH_PRECISION_F32);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, context);
    float *out = calloc(TOKENS * VOCAB, sizeof *out);
    assert_int_equal(e->context, context ? context : ORIGINAL);
    for (int i = 0; i < TOKENS; i++) text[i] = (hunch_token)(i * 37 % VOCAB);
    must(hunch_evaluate(e, text, TOKENS, keep_row, out, err));
    hunch_engine_close(&e);
    hunch_model_close(&m);
    return out;
}

/* The folder's config with the factors of long texts also for short ones. */
static void write_long_only(const char *folder) {
    char path[600];
    folder_link_weights(folder);
    snprintf(path, sizeof path, "%s/goldens/%s/config.json", HUNCH_TEST_DATA, folder);
    json_t *config = json_load_file(path, 0, NULL), *scaling = json_object_get(config, "rope_scaling");
    assert_int_equal(json_object_set(scaling, "short_factor", json_object_get(scaling, "long_factor")), 0);
    folder_write_config(config);
    json_decref(config);
}

static void test_context_chooses(void **state) {
    (void)state;
    const char *folder = data_path("goldens/phi3-longrope");
    float *usual = logits_of(folder, 0), *shorter = logits_of(folder, 200), *longer = logits_of(folder, ORIGINAL + 1);
    const size_t size = TOKENS * VOCAB * sizeof *usual;
    write_long_only("phi3-longrope");
    float *always = logits_of(test_path("changed"), 200);
    assert_memory_equal(usual, shorter, size);
    assert_memory_equal(longer, always, size);
    assert_memory_equal(longer, usual, VOCAB * sizeof *usual); /* position 0 is not rotated */
    assert_true(memcmp(longer, usual, size) != 0);
    free(usual);
    free(shorter);
    free(longer);
    free(always);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_context_chooses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
