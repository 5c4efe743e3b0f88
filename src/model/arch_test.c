/* SPDX-License-Identifier: Apache-2.0 */
/* arch_test.c - what the dense families read from a folder's config.json, and what they refuse: the golden folders with a
 * few words changed. What the descriptions compute is held against goldens in tests/golden. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "model/arch.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

/* The golden folder with `find` replaced in its config.json. */
static hunch_status read_changed(const char *folder, const char *find, const char *replace, hn_arch *a, hunch_error *err) {
    char from[600], to[600], text[8000];
    char *config;
    size_t size;
    hn_source *s = NULL;
    snprintf(from, sizeof from, "%s/goldens/%s/config.json", HUNCH_TEST_DATA, folder);
    assert_int_equal(hn_file_read(from, 1 << 20, &config, &size, NULL), HUNCH_OK);
    const char *at = strstr(config, find);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config), config, replace, at + strlen(find));
    hn_free(config);
    (void)mkdir(test_path("changed"), 0700);
    snprintf(to, sizeof to, "%s/config.json", test_path("changed"));
    test_file_write(to, text, strlen(text));
    snprintf(from, sizeof from, "%s/goldens/%s/model.safetensors", HUNCH_TEST_DATA, folder);
    snprintf(to, sizeof to, "%s/model.safetensors", test_path("changed"));
    (void)unlink(to);
    assert_int_equal(symlink(from, to), 0);
    if (hn_source_open(&s, test_path("changed"), err) != HUNCH_OK) fail_msg("%s", err->message);
    const hunch_status st = hn_arch_read(a, s, err);
    hn_source_close(&s);
    return st;
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *folder, *find, *replace, *word;
    } cases[] = {
        {"qwen2-bias", "\"use_sliding_window\": false", "\"use_sliding_window\": true", "use_sliding_window"},
        {"qwen3-dense", "\"attention_bias\": false", "\"attention_bias\": true", "attention_bias"},
        {"qwen3-dense", "\"silu\"", "\"gelu\"", "silu"},
        {"gemma3_text-local", "\"gelu_pytorch_tanh\"", "\"gelu\"", "gelu_pytorch_tanh"},
        {"gemma3_text-local", "\"head_dim\": 32", "\"head_dim\": 32, \"use_bidirectional_attention\": true",
         "use_bidirectional_attention"},
        {"gemma3_text-local", "\"sliding_window\": 16", "\"sliding_window\": null", "sliding_window"},
        {"gemma3_text-local", "\"sliding_window_pattern\": 6", "\"layer_types\": [\"full_attention\"]", "layer_types"},
        {"phi3-fused", "\"rope_theta\": 10000.0", "\"rope_scaling\": {\"type\": \"longrope\"}", "longrope"},
        {"phi3-fused", "\"rope_theta\": 10000.0", "\"partial_rotary_factor\": 1.5", "partial_rotary_factor"},
        {"mistral-sliding", "\"sliding_window\": 16", "\"sliding_window\": 0", "sliding_window"},
        {"smollm3-nope", "\"no_rope_layers\": [", "\"no_rope_layers\": [1,", "no_rope_layers"},
        {"granite-mults", "\"residual_multiplier\": 0.6", "\"residual_multiplier\": -0.6", "residual_multiplier"},
        {"llama-gqa", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "evenly"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        const hunch_status st = read_changed(cases[i].folder, cases[i].find, cases[i].replace, &a, &err);
        if (st != HUNCH_REFUSED || !strstr(err.message, cases[i].word))
            fail_msg("%s with %s: status %d, '%s'", cases[i].folder, cases[i].replace, st, err.message);
        assert_null(a.layer); /* nothing is left behind */
    }
}

static hn_arch read_as(const char *folder, const char *find, const char *replace) {
    hn_arch a;
    hunch_error err = {0};
    if (read_changed(folder, find, replace, &a, &err) != HUNCH_OK) fail_msg("%s", err.message);
    return a;
}

/* Other ways of saying things. */
static void test_spellings(void **state) {
    (void)state;
    hn_arch a = read_as("gemma3_text-local", "\"rope_theta\": 1000000.0,", ""), /* its usual base */
        b = read_as("gemma3_text-local", "\"rope_theta\": 1000000.0,",
                    "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 8.0, \"rope_theta\": "
                    "1000000.0}, \"sliding_attention\": {\"rope_theta\": 500.0}},");
    for (int i = 0; i < a.rope_dims / 2; i++) {
        assert_true(fabs(a.rope_freq[i] - b.rope_freq[i]) <= 1e-12 * a.rope_freq[i]);
        assert_true(fabs(a.rope_local[i] - pow(10000, -2.0 * i / a.rope_dims)) < 1e-12);
        assert_true(fabs(b.rope_local[i] - pow(500, -2.0 * i / a.rope_dims)) < 1e-12);
    }
    assert_true(fabs(a.rope_freq[0] - 1.0 / 8) < 1e-12);
    for (int i = 0; i < a.layers; i++) assert_int_equal(a.layer[i].window, i == 5 ? 0 : 16);
    hn_arch_fini(&a);
    hn_arch_fini(&b);
    a = read_as("gemma3_text-local", "\"sliding_window_pattern\": 6",
                "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", "
                "\"sliding_attention\", \"full_attention\"]");
    for (int i = 0; i < a.layers; i++) assert_int_equal(a.layer[i].local, i != 0 && i != 5);
    hn_arch_fini(&a);
    a = read_as("mistral-sliding", "\"sliding_window\": 16", "\"sliding_window\": null");
    assert_int_equal(a.layer[0].window, 0);
    hn_arch_fini(&a);
    a = read_as("phi3-fused", "\"rope_theta\": 10000.0", "\"partial_rotary_factor\": 0.5");
    assert_int_equal(a.rope_dims, a.layer[0].head_dim / 2);
    hn_arch_fini(&a);
    a = read_as("smollm3-nope", "\"no_rope_layers\"", "\"other\"");
    for (int i = 0; i < a.layers; i++) assert_int_equal(a.layer[i].no_rope, i == 3);
    hn_arch_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_spellings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
