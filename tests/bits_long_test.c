/* SPDX-License-Identifier: Apache-2.0 */
/* bits_long_test.c - contract C2 on real models and on random weights in real shapes: bits_test.c with every available weight
 * type, width and vocabulary. bits.h does the work.
 *
 * A missing file is skipped with a message; without any file, the test counts as skipped. HUNCH_BITS_MODELS: more files,
 * separated by colons, such as tools/random_model.py writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bits.h"
#include "smollm2.h"

enum { MOST = 32 };
static char path[MOST][600];
static int n_paths;

static void find_models(void) {
    char names[4000] = "", *rest = names;
    const char *more = getenv("HUNCH_BITS_MODELS"), *smollm2 = smollm2_path();
    if (smollm2) snprintf(path[n_paths++], sizeof path[0], "%s", smollm2);
    if (cached_model("HUNCH_GEMMA3", "gemma-3-270m-Q4_K_M.gguf", "scripts/fetch-model.sh gemma3", path[n_paths])) n_paths++;
    snprintf(names, sizeof names, "%s", more ? more : "");
    for (char *one; (one = strsep(&rest, ":"));)
        if (*one && n_paths < MOST) snprintf(path[n_paths++], sizeof path[0], "%s", one);
}

static void test_models(void **state) {
    (void)state;
    const char *isa[HN_ISA_COUNT];
    const int n = levels(isa);
    for (int i = 0; i < n_paths; i++)
        for (int l = 0; l < n; l++) {
            print_message("%s at %s\n", path[i], isa[l]);
            /* ref is slow, and the same code at any length */
            bits_check(path[i], isa[l], HUNCH_PRECISION_NATIVE, HUNCH_KV_BF16, HN_BF16, l == 0 ? 3 : BITS_ROWS);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
    find_models();
    return n_paths > 0 ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
