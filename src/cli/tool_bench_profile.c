/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench_profile.c - see tool_bench.h: time by kind of operation, medians of many passes. */
#include "cli/tool_bench.h"

static int profile_measure(bench *b, bench_profile *p, int times) {
    enum { MOST = 31 };
    double pass_s[MOST], seconds[HUNCH_PHASES][MOST], waited[HUNCH_PHASES][MOST];
    hunch_error err = {0};
    for (int i = 0; i < times; i++) {
        if (hunch_measure_profile(b->engine, p->rows, p->context, p->phase, &pass_s[i], &err) != HUNCH_OK)
            return tool_failed(&err);
        for (int k = 0; k < HUNCH_PHASES; k++) {
            seconds[k][i] = p->phase[k].seconds;
            waited[k][i] = p->phase[k].waited;
        }
        if (tool_interrupted)
            return HUNCH_CANCELLED;
    }
    p->pass_s = tool_median(pass_s, (size_t)times);
    for (int k = 0; k < HUNCH_PHASES; k++) {
        p->phase[k].seconds = tool_median(seconds[k], (size_t)times);
        p->phase[k].waited = tool_median(waited[k], (size_t)times);
    }
    return 0;
}

int bench_profiles_measure(bench *b) {
    tool_progress bar;
    tool_progress_begin(&bar, "measuring operations", NULL);
    b->profiles = tool_alloc((size_t)b->n_passes, sizeof *b->profiles);
    int code = 0;
    for (int i = 0; i < b->n_passes && !code; i++) {
        bench_profile *p = &b->profiles[b->n_profiles++];
        *p = (bench_profile){.rows = b->passes[i].rows, .context = b->passes[i].context};
        code = profile_measure(b, p, b->o.quick ? 7 : 31);
        tool_progress_at(&bar, i + 1, b->n_passes);
    }
    tool_progress_end(&bar);
    return code;
}
