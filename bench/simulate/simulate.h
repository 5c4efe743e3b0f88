/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h - a server in simulated time: recorded answers and drafts (hunch compare --record), recorded times of passes (hunch bench
 * --csv), and policies that choose what is drafted and verified. simulate.c has options and the loop, sim_record.c what was recorded,
 * sim_round.c a round, policy_NAME.c one policy each. */
#ifndef BENCH_SIMULATE_H
#define BENCH_SIMULATE_H
#include <stdbool.h>
#include <stdint.h>

#include "draft/tree.h"
#include "plan/controller.h"

enum { SIM_DRAFTERS = 8, SIM_TEXTS = 256, SIM_POINTS = 16, SIM_DEPTH = 16 };

/* ---- what was recorded ---- */

typedef struct sim_draft {
    int16_t depth, parent; /* parent: an index, -1 the root */
    int32_t token;
    float estimate;
    bool right;
} sim_draft;

/* Of one drafter at one position of an answer. */
typedef struct sim_position {
    sim_draft *draft; /* parents first */
    int n, levels;
    double seconds;   /* of all its levels, for one text */
} sim_position;

typedef struct sim_answer {
    char *name;
    int prompt, n;     /* rows of the prompt; tokens of the answer, of which the last one has no record */
    int32_t *token;    /* [n] */
    sim_position *at[SIM_DRAFTERS]; /* [n] */
} sim_answer;

/* Seconds of a pass by rows, at two contexts. */
typedef struct sim_curve {
    int n[2], rows[2][SIM_POINTS], context[2];
    double seconds[2][SIM_POINTS], prompt_row; /* of a row of a prompt */
    double first, further; /* of a position that the first row of a text reads, and one of its further rows; by the two contexts */
} sim_curve;

typedef struct sim_data {
    sim_answer *answer;
    int n_answers, n_drafters;
    char *drafter[SIM_DRAFTERS];
    hn_draft_cost kind[SIM_DRAFTERS];
    int most_levels[SIM_DRAFTERS];
    sim_curve curve;
} sim_data;

void sim_record_read(sim_data *d, const char *path); /* drafters that need passes of their own are decided on by levels */
void sim_curve_read(sim_curve *c, const char *path);
/* Of so many decoding rows of so many texts, with a mean context, and rows of prompts. */
double sim_pass(const sim_curve *c, double rows, double texts, double prompt, double context);

/* ---- texts and rounds ---- */

typedef struct sim_text {
    const sim_answer *answer; /* NULL: the place is free */
    int read, at;             /* rows of its prompt; the answer's token that is the newest */
    double due, first, newest;
    hn_tree tree;
    int16_t row_of[SIM_DRAFTERS][HN_TREE_ROWS]; /* of the recorded drafts of this round; -1: not in the tree */
    int accepted;
} sim_text;

/* One round, as a policy sees it. */
typedef struct sim_round {
    const sim_data *data;
    sim_text *text[SIM_TEXTS]; /* those that decode; the place of each is its number in the policy */
    int place[SIM_TEXTS], n;
    int prompt_rows;           /* that are expected in the pass */
    int most_rows;             /* of all trees, roots included */
    double drafting;           /* seconds so far */
    bool by_history;           /* the rule takes drawn drafts: their values must not decide */
} sim_round;

/* Adds a level (from 0) of a drafter to all trees, as far as they have room; returns the number of drafts, and adds the seconds. */
int sim_propose(sim_round *r, int drafter, int level);
int sim_depth_limit(const sim_text *t);

/* ---- policies ---- */

typedef struct sim_settings {
    int depth, drafter, parallel; /* depth: of those that have a fixed one */
    double capacity;              /* rows of a pass: of tetris */
} sim_settings;

typedef struct sim_policy {
    const char *name, *about;
    bool any_rule; /* lossless under ratio and block, too */
    void *(*open)(const sim_data *d, const sim_settings *s);
    void (*close)(void *state);
    void (*begin)(void *state, int place); /* a new text; NULL */
    void (*draft)(void *state, sim_round *r);
    void (*passed)(void *state, const sim_round *r, int rows, double seconds); /* text.accepted is known; NULL */
} sim_policy;

extern const sim_policy sim_plain, sim_fixed, sim_decode_only, sim_goodput, sim_tetris, sim_auto;

_Noreturn void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *sim_alloc(size_t n);
#endif
