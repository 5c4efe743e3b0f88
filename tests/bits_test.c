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
#include "goldens.h"
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

/* Some of the families; `make test-long` takes all. */
static void test_families(void **state) {
    static char families[MOST_GOLDENS][GOLDEN_NAME];
    (void)state;
    for (int f = 0, n = golden_models(golden_any, families); f < n; f += test_every(5, 15))
        check_levels(families[f], HUNCH_PRECISION_NATIVE, HUNCH_KV_BF16, HN_BF16, true);
    check_levels("goldens/granitemoehybrid-dense", HUNCH_PRECISION_NATIVE, HUNCH_KV_BF16, HN_BF16, true); /* states on a grid */
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
