/* SPDX-License-Identifier: Apache-2.0 */
/* tool_compare.h - what `hunch compare` measured (cmd_compare.c) and how it is shown (tool_report.c). */
#ifndef HN_TOOL_COMPARE_H
#define HN_TOOL_COMPARE_H

#include "tool_prompts.h"
#include "tool_twins.h"

/* A method against plain, on one prompt. Figures that cannot be had are NAN. */
typedef struct tool_duel {
    double plain_s, drafted_s, tokens; /* of the tokens that both decoded */
    double ratio, low, high, tau;
    bool identical;
    size_t difference; /* position of the first token that differs */
} tool_duel;

typedef struct tool_verdict {
    const char *draft;
    tool_duel *duels; /* [prompts] */
    double ratio, ratio_total, low, high, tau, acceptance, tok_s, plain_tok_s;
    uint64_t rounds, drafted, accepted, depth_drafted;
    bool identical;
    size_t first_different; /* prompt, if not identical */
} tool_verdict;

typedef struct tool_comparison {
    tool_options o;
    tool_prompts prompts;
    hunch_model *model;
    hunch_model_info info;
    tool_lane *lanes;     /* [n_lanes]; the first is plain */
    int n_lanes;
    tool_answer *answers; /* [n_lanes][prompts.n] */
    size_t n_done;        /* prompts that were answered */
    uint64_t seed;
} tool_comparison;

static inline const tool_answer *tool_answer_of(const tool_comparison *c, int lane, size_t prompt) {
    return &c->answers[(size_t)lane * c->prompts.n + prompt];
}

/* Judges the lane `lane` against lane 0. */
void tool_verdict_init(tool_verdict *v, const tool_comparison *c, int lane);
void tool_verdict_fini(tool_verdict *v);

int tool_report_json(const tool_comparison *c, const tool_verdict *verdicts);
int tool_report_table(const tool_comparison *c, const tool_verdict *verdicts);
/* One prompt's answers side by side, plain first. */
void tool_report_show(const tool_comparison *c, size_t prompt);

#endif
