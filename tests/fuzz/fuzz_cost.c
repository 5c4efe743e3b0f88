/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cost.c - a file of the cache folder with a cost curve: accepted ones give plausible times. */
#include <math.h>

#include "fuzz.h"
#include "plan/cost.h"

static void read_curve(const uint8_t *data, size_t size, bool experts) {
    hn_cost c;
    bool found;
    hunch_error err = {0};
    hn_cost_init(&c);
    if (experts) hn_cost_set_experts(&c, 128, 8, 0.5);
    FUZZ_MUST(hn_cost_load(&c, fuzz_file(0, (fuzz_bytes){data, size}), "key", &found, &err) == HUNCH_OK);
    FUZZ_MUST(found == (c.speed > 0));
    if (!found) return;
    for (int context = 1; context < 1 << 20; context *= 7) {
        double seconds[HN_COST_ROWS + 1], hoped[HN_COST_ROWS + 1];
        const hn_cost_round r = {.texts = 3, .reads = context * 1e-4, .beside = {.prompt = 20}};
        FUZZ_MUST(hn_cost_curve(&c, &r, seconds, hoped, 1));
        for (int rows = 1; rows <= HN_COST_ROWS; rows++)
            FUZZ_MUST(isfinite(seconds[rows]) && seconds[rows] > 0 && isfinite(hoped[rows]) && hoped[rows] > 0);
        hn_cost_pass(&c, &(hn_cost_work){3, 100, context * 1e-4, 0.1, 11}, 0.01);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_curve(data, size, false);
    read_curve(data, size, true);
    return 0;
}
