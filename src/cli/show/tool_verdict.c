/* SPDX-License-Identifier: Apache-2.0 */
/* tool_verdict.c - summarises the results of `hunch compare`: a method against plain, prompt by prompt and in all. */
#include <math.h>
#include <string.h>

#include "cli/show/tool_compare.h"

static size_t first_difference(const tool_answer *a, const tool_answer *b) {
    size_t i = 0;
    while (i < a->n && i < b->n && a->tokens[i] == b->tokens[i])
        i++;
    return i;
}

void tool_prompt_stats_add(tool_prompt_stats *d, const tool_answer *plain, const tool_answer *drafted) {
    size_t difference = first_difference(plain, drafted);
    bool identical = plain->n == drafted->n && difference == plain->n;
    double plain_s, drafted_s;
    if (d->repeats == 0)
        d->identical = true;
    if (d->identical && !identical) {
        d->identical = false;
        d->difference = difference;
    }
    d->repeats++;
    d->tokens += tool_traces_pair(&plain->trace, &drafted->trace, TOOL_SLICE, &d->slices, &plain_s, &drafted_s);
    d->plain_s += plain_s;
    d->drafted_s += drafted_s;
    d->decoded += drafted->rounds ? (double)drafted->n - 1 : 0;
    d->rounds += drafted->rounds;
    d->drafted += drafted->drafted;
    d->accepted += drafted->accepted;
    d->depth_drafted += drafted->depth_drafted;
    d->ratio = d->drafted_s > 0 ? d->plain_s / d->drafted_s : NAN;
    tool_pairs_interval(&d->slices, &d->low, &d->high);
}

void tool_prompt_stats_fini(tool_prompt_stats *d) {
    tool_pairs_fini(&d->slices);
}

double tool_prompt_stats_tau(const tool_prompt_stats *d) {
    return d->rounds ? d->decoded / (double)d->rounds : NAN;
}

bool tool_prompt_stats_within(const tool_prompt_stats *d, double width) {
    enum { ENOUGH = 8 }; /* the bootstrap of one slice has no width */
    return d->slices.n >= ENOUGH && (d->high - d->low) / 2 <= width;
}

static double variant_speed(const tool_variant *l) {
    return l->timed_s > 0 ? l->timed_tokens / l->timed_s : NAN;
}

tool_verdict tool_verdict_of(const tool_comparison *c, int variant, const char *group) {
    tool_verdict v = {.draft = c->variants[variant].method.text,
                      .identical = true,
                      .stats = tool_prompt_stats_of(c, variant, 0),
                      .tok_s = variant_speed(&c->variants[variant]),
                      .plain_tok_s = variant_speed(&c->variants[0])};
    double *ratios = tool_alloc(c->n_done, sizeof *ratios), plain_s = 0, drafted_s = 0, decoded = 0;
    tool_pairs all = {0};
    size_t n = 0;
    for (size_t i = 0; i < c->n_done; i++) {
        const tool_prompt_stats *d = &v.stats[i];
        if (group && strcmp(c->prompts.items[i].group, group) != 0)
            continue;
        v.prompts++;
        for (size_t k = 0; k < d->slices.n; k++)
            tool_pairs_add(&all, d->slices.plain[k], d->slices.drafted[k]);
        if (isfinite(d->ratio))
            ratios[n++] = d->ratio;
        if (!d->identical && v.identical) {
            v.identical = false;
            v.first_different = i;
        }
        plain_s += d->plain_s / d->repeats; /* prompts have equal weight, however often they were repeated */
        drafted_s += d->drafted_s / d->repeats;
        decoded += d->decoded;
        v.rounds += d->rounds;
        v.drafted += d->drafted;
        v.accepted += d->accepted;
        v.depth_drafted += d->depth_drafted;
    }
    v.ratio = tool_median(ratios, n);
    v.ratio_total = drafted_s > 0 ? plain_s / drafted_s : NAN;
    v.tau = v.rounds ? decoded / (double)v.rounds : NAN;
    v.acceptance = v.drafted ? (double)v.accepted / (double)v.drafted : NAN;
    tool_pairs_interval(&all, &v.low, &v.high);
    tool_pairs_fini(&all);
    hn_free(ratios);
    return v;
}

bool tool_group_is_new(const tool_comparison *c, size_t prompt) {
    for (size_t i = 0; i < prompt; i++)
        if (strcmp(c->prompts.items[i].group, c->prompts.items[prompt].group) == 0)
            return false;
    return true;
}
