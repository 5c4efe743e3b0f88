/* SPDX-License-Identifier: Apache-2.0 */
/* tool_compare.h - results of `hunch compare`, measured by cmd_compare.c, summarised by tool_verdict.c and shown by
 * tool_report.c. */
#ifndef HN_TOOL_COMPARE_H
#define HN_TOOL_COMPARE_H

#include "cli/tool_grammar.h"
#include "cli/tool_variants.h"
#include "cli/tool_prompts.h"

enum { TOOL_SLICE = 16 }; /* tokens */

/* A method against plain on one prompt, over all repetitions. Unknown figures are NAN. */
typedef struct tool_prompt_stats {
    int repeats;
    tool_pairs slices;
    double plain_s, drafted_s, tokens; /* of the tokens that both decoded */
    double decoded;                    /* tokens that the method's rounds emitted */
    uint64_t rounds, drafted, accepted, depth_drafted;
    bool identical;
    size_t difference;       /* position of the first token that differs, in the first answer that does */
    double ratio, low, high; /* updated by tool_prompt_stats_add */
} tool_prompt_stats;

void tool_prompt_stats_add(tool_prompt_stats *d, const tool_answer *plain, const tool_answer *drafted);
void tool_prompt_stats_fini(tool_prompt_stats *d);
double tool_prompt_stats_tau(const tool_prompt_stats *d);
/* Whether the interval is known and within +-width. An interval of few slices counts as unknown. */
bool tool_prompt_stats_within(const tool_prompt_stats *d, double width);

/* A method against plain, over all prompts or those of a group. */
typedef struct tool_verdict {
    const char *draft;
    const tool_prompt_stats *stats; /* [prompts] */
    double ratio, ratio_total, low, high, tau, acceptance, tok_s, plain_tok_s;
    uint64_t rounds, drafted, accepted, depth_drafted;
    bool identical;
    size_t prompts;
    size_t first_different; /* prompt, if not identical */
} tool_verdict;

typedef struct tool_comparison {
    tool_options o;
    tool_prompts prompts;
    tool_grammar grammar;     /* of the flags */
    hunch_model *model;
    hunch_model_info info;
    tool_variant *variants;     /* [n_variants]; the first is plain */
    int n_variants;
    int repeats;              /* at most, of each prompt */
    bool cold;                /* stores are emptied before each prompt and repetition */
    tool_answer *answers;     /* [n_variants][prompts.n]: the first of each */
    tool_prompt_stats *stats; /* [n_variants][prompts.n]; those of variant 0 are not used */
    size_t n_done;            /* prompts that were answered */
    uint64_t seed;
} tool_comparison;

static inline const tool_answer *tool_answer_of(const tool_comparison *c, int variant, size_t prompt) {
    return &c->answers[(size_t)variant * c->prompts.n + prompt];
}

static inline tool_prompt_stats *tool_prompt_stats_of(const tool_comparison *c, int variant, size_t prompt) {
    return &c->stats[(size_t)variant * c->prompts.n + prompt];
}

/* Summarises variant `variant` against variant 0. group NULL: over all prompts; else over those of that group, except for the speeds. */
tool_verdict tool_verdict_of(const tool_comparison *c, int variant, const char *group);
/* Whether it is the first prompt of its group. */
bool tool_group_is_new(const tool_comparison *c, size_t prompt);

int tool_report_json(const tool_comparison *c, const tool_verdict *verdicts);
int tool_report_table(const tool_comparison *c, const tool_verdict *verdicts);
/* One prompt's answers side by side, plain first. */
void tool_report_show(const tool_comparison *c, size_t prompt);

#endif
