/* SPDX-License-Identifier: Apache-2.0 */
/* bits_test.c - contract C2 on the tiny models: the logits of 300 tokens are the same bytes for any chunk, threads,
 * tiles of the level, other sequences of a pass and tree around the text. Each level separately; bits.h does the work.
 * bits_long_test.c has the real models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bits.h"
#include "command.h"

/* brief: only the best level, if the family differs, not the products. */
static void check_levels(const char *name, hunch_precision precision, hunch_kv kv, hn_dtype stored, bool brief) {
    const char *isa[HN_ISA_COUNT];
    const int n = levels(isa);
    for (int l = brief || light() ? n - 1 : 0; l < n; l++)
        bits_check(data_path(name), isa[l], precision, kv, stored, light() ? 80 : BITS_ROWS);
}

/* README: "A row's logits do not depend on the other rows of a pass, on threads, chunks or pages." */
static void test_stories(void **state) {
    (void)state;
    check_levels("models/stories260K/stories260K.f32.gguf", HUNCH_PRECISION_NATIVE, HUNCH_KV_BF16, HN_BF16, false);
    check_levels("models/stories260K/stories260K.f16.gguf", HUNCH_PRECISION_F32, HUNCH_KV_F32, HN_F32, true);
}

static void test_babyllama(void **state) {
    (void)state;
    check_levels("models/babyllama105/babyllama105.q8_0.gguf", HUNCH_PRECISION_NATIVE, HUNCH_KV_BF16, HN_BF16, false);
    check_levels("models/babyllama105/babyllama105.q8_0.gguf", HUNCH_PRECISION_NATIVE, HUNCH_KV_F16, HN_F16, true);
    check_levels("models/babyllama105/babyllama105.q8_0.gguf", HUNCH_PRECISION_F32, HUNCH_KV_F32, HN_F32, true);
}

/* Biases, norms of heads, windows, layers without rotation, two rotations, scales, caps, fused matrices, FP8, sinks, MXFP4. */
static void test_families(void **state) {
    static const char *const families[] = {"gemma3_text-local", "granite-bias",    "granite-mults", "llama-bias",
                                           "llama-gqa",         "mistral-sliding", "phi3-fused",    "phi3-longrope",
                                           "qwen2-bias",        "qwen2-window",    "qwen3-dense",   "qwen3-fp8",
                                           "qwen3-yarn",        "smollm3-nope",    "smollm3-window",
                                           "gemma3_text-cap",   "qwen3_5-dense",
                                           "qwen3_next-moe",    "qwen3_5_moe-fused", "gpt_oss-bf16",  "gpt_oss-mxfp4",
                                           "gemma4-e",          "gemma4-keqv",      "gemma4_text-moe"};
    (void)state;
    for (size_t f = 0; f < sizeof families / sizeof *families; f += (size_t)test_every(3, 9)) {
        char name[100];
        snprintf(name, sizeof name, "goldens/%s", families[f]);
        check_levels(name, HUNCH_PRECISION_NATIVE, HUNCH_KV_BF16, HN_BF16, true);
    }
}

/* The file that the command writes. */
static char *logits_file(const char *tokens, const char *isa, const char *chunk, const char *threads, size_t *len) {
    result r = command("logits", "-m", STORIES, "--tokens", tokens, "-o", path_of("logits.npy"), "--isa", isa, "--chunk",
                       chunk, "--threads", threads);
    if (r.code) fail_msg("hunch logits: %s", r.err);
    result_free(&r);
    return file_read(path_of("logits.npy"), len);
}

static void test_command(void **state) {
    (void)state;
    static const char *const chunks[] = {"1", "3", "8", "64", "300"};
    const char *isa[HN_ISA_COUNT], *tokens;
    uint64_t rng = 7;
    json_t *ids = json_array();
    for (int i = 0; i < BITS_ROWS; i++) json_array_append_new(ids, json_integer((json_int_t)(hn_splitmix(&rng) % 512)));
    tokens = json_write("ids.json", ids);
    json_decref(ids);
    for (int l = 0, n = levels(isa); l < n; l++) {
        size_t size = 0, len;
        char *want = logits_file(tokens, isa[l], "64", "1", &size);
        assert_true(size > BITS_ROWS * 512 * sizeof(float));
        for (int c = l == 0; c < 5; c += l == 0 ? 3 : 1) /* ref is slow */
            for (int threads = 1; threads <= 2; threads++) {
                char *got = logits_file(tokens, isa[l], chunks[c], threads == 1 ? "1" : "2", &len);
                if (len != size || memcmp(want, got, size))
                    fail_msg("hunch logits at %s: --chunk %s --threads %d differs", isa[l], chunks[c], threads);
                free(got);
            }
        free(want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_command), cmocka_unit_test(test_stories),
                                       cmocka_unit_test(test_babyllama), cmocka_unit_test(test_families)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
