/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c - what the controller's decisions of a round take, by texts: microseconds, and parts of the pass of one row each.
 *
 *   build-test/decide [ROUNDS]      default: 300 rounds for each number of texts
 *
 * Three drafters propose: a lookup whose chains of eight tokens cost nothing, a head that is asked level by level (four candidates a row),
 * and a chain of four that costs a call. Half of the tokens are right. Passes take what bench/results has for SmolLM2-135M on two cores.
 * The time of the proposals is not counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "plan/controller.h"
#include "quantile.h"

enum { MOST = 256, LOOKUP = 0, HEAD = 1, CHAIN = 2, DRAFTERS = 3, HEAD_DEPTH = 4, WIDTH = 4 };

static hn_tree tree[MOST];
static hn_plan_seq plan[MOST];
static uint64_t seed = 48;

/* Of the processor: what others do meanwhile does not count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(hunch_status st, const hunch_error *err) {
    if (!st) return;
    fprintf(stderr, "decide: %s\n", err->message);
    exit(1);
}

/* Milliseconds of a pass, smollm2-135m-q4_1.pass.csv at context 256; beyond 64 rows with the slope of the last ones. */
static double pass_s(int rows) {
    static const int at[] = {1, 2, 4, 8, 16, 32, 64};
    static const double ms[] = {3.62, 3.64, 3.91, 5.43, 9.98, 18.98, 38.21};
    int i = 0;
    while (i < 5 && at[i + 1] < rows) i++;
    return 1e-3 * (ms[i] + (rows - at[i]) * (ms[i + 1] - ms[i]) / (at[i + 1] - at[i]));
}

static double random_unit(void) {
    return (double)(hn_splitmix(&seed) >> 11) * 0x1p-53;
}

/* Token 1 is right, others are not. */
static int add(int i, int from, int drafter, int place) {
    const float estimate = (float)(0.2 + 0.6 * random_unit());
    const int32_t token = place == 0 && random_unit() < 0.5 ? 1 : 2 + drafter * WIDTH + place;
    return hn_tree_add(&tree[i], from, token, drafter, estimate / (float)(1 + place));
}

static int chain(int i, int drafter, int depth) {
    int row = 0, n = 0;
    while (n < depth && (row = add(i, row, drafter, 0)) >= 0) n++;
    return n;
}

/* The next level of the head's tree: after the likeliest row of the newest one. */
static int level_add(int i, int level) {
    const hn_tree *t = &tree[i];
    int from = level == 0 ? 0 : -1, n = 0;
    for (int k = 0; from < 0 && k < t->n_candidates; k++)
        if (t->candidate[k].drafter == HEAD && t->depth[t->candidate[k].child] == level) from = t->candidate[k].child;
    for (int w = 0; from >= 0 && w < WIDTH; w++) n += add(i, from, HEAD, w) >= 0;
    return n;
}

/* One round; returns the seconds of its decisions. */
static double round_run(hn_controller *c, int texts) {
    const int behind[DRAFTERS] = {0};
    const int rows_most = texts <= HN_TREE_ROWS / 2 ? HN_TREE_ROWS : texts + HN_TREE_ROWS;
    double proposing = 0, start;
    int d, rows = 0;
    for (int i = 0; i < texts; i++) {
        hn_tree_reset(&tree[i], 1, HN_TREE_ROWS);
        plan[i] = (hn_plan_seq){i, 256, &tree[i], 8, .05, 0};
    }
    const double begun = now();
    hn_controller_start(c, plan, texts, &(hn_plan_round){.rows = rows_most, .behind = behind});
    while ((d = hn_controller_choose(c, plan, texts, false)) >= 0) {
        int added = 1;
        for (int level = 0; d == HEAD && added > 0 && hn_controller_go_on(c, plan, texts, d, level, false); level++) {
            start = now();
            added = 0;
            for (int i = 0; i < texts && level < HEAD_DEPTH; i++) added += level_add(i, level);
            proposing += now() - start;
            hn_controller_took(c, d, texts, level, added, 2e-4 + 2e-5 * texts);
        }
        if (d == HEAD) continue;
        start = now();
        for (int i = 0; i < texts; i++) added += chain(i, d, d == LOOKUP ? 8 : 4);
        proposing += now() - start;
        hn_controller_took(c, d, texts, 0, added, d == LOOKUP ? 1e-6 * texts : 5e-4);
    }
    hn_controller_prune(c, plan, texts, false);
    for (int i = 0; i < texts; i++) {
        int16_t path[HN_TREE_ROWS];
        int n = 0;
        for (int row = 0; (row = hn_tree_child(&tree[i], row, 1)) >= 0;) path[n++] = (int16_t)row;
        rows += tree[i].n_rows;
        hn_round_drafts r;
        hn_round_drafts_make(&r, &tree[i], path, n, false);
        hn_controller_observe(c, i, &r);
    }
    hn_cost_pass(hn_controller_cost(c), &(hn_cost_work){.rows = rows, .reads = .05 * texts, .again = .05 * (rows - texts)}, pass_s(rows));
    return now() - begun - proposing;
}

int main(int argc, char **argv) {
    static const int texts[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
    static const hn_draft_cost kinds[DRAFTERS] = {HN_COST_PER_ROUND, HN_COST_PER_LEVEL, HN_COST_PER_ROUND};
    const int rounds = argc > 1 ? atoi(argv[1]) : 300;
    double *us = malloc((size_t)(rounds > 0 ? rounds : 1) * sizeof *us);
    if (!us || rounds < 1) return 1;
    printf("texts  us a round  99 %% of them  of a plain pass\n");
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        hn_controller *c;
        hunch_error err;
        check(hn_controller_open(&c, kinds, DRAFTERS, texts[k], &err), &err);
        for (int i = 0; i < texts[k]; i++) hn_controller_begin(c, i);
        for (int i = 0; i < 100; i++) (void)round_run(c, texts[k]); /* learns costs and rates */
        for (int i = 0; i < rounds; i++) us[i] = 1e6 * round_run(c, texts[k]);
        const double middle = median(us, (size_t)rounds);
        printf("%5d  %10.1f  %12.1f  %13.2f %%\n", texts[k], middle, quantile(us, (size_t)rounds, .99), 1e-4 * middle / pass_s(texts[k]));
        hn_controller_close(&c);
    }
    free(us);
    return 0;
}
