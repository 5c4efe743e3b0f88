/* SPDX-License-Identifier: Apache-2.0 */
/* simulation_for_tests.h - simulated texts and drafters for the tests of the controller, in simulated time. Include it after
 * fixture.h. */
#ifndef HN_SIMULATION_FOR_TESTS_H
#define HN_SIMULATION_FOR_TESTS_H
#include <math.h>
#include <string.h>

#include "base/helper_for_tests.h"
#include "plan/controller.h"
#include "plan/machine_for_tests.h"


#ifndef SIMULATED_TEXTS
#define SIMULATED_TEXTS 4
#endif
enum { SEQS = SIMULATED_TEXTS, DEPTH = 12, DRAFTERS = 3, CHUNK = 128 };

/* A drafter that proposes chains of `depth`; the token of each depth is right with probability a if those before were. */
typedef struct simulated {
    double a[SEQS][DEPTH + 1]; /* by depth from 1 */
    int depth;
    float estimate;
    int width; /* candidates a row, one of which is right with rate a; 0 is 1 */
    hn_draft_cost kind;
    bool shorter; /* HN_COST_PER_ROUND: it drafts as many levels as the controller asks for, each of which costs `step` too */
    double step;  /* per level: passes of one row that a level costs a sequence */
    double round; /* per round: passes of one row that its round costs, for all sequences */
    int every;    /* the cost `round` in every N-th round only, else none; 0 is 1 */
    double first; /* added to the cost of the very first call */
    double read;  /* per level: passes for each row of text that it has to read first */
    bool drawn;   /* under by_history its candidates are drawn; one that is decided on by levels always draws */
    bool knows;   /* a token is one of two kinds, of rates a / 2 and (a + 1) / 2, and its estimate is that rate */
    bool silent;  /* takes its time and proposes nothing */
    bool stays;   /* its candidates do, and the controller is told */
} simulated;

typedef struct world {
    machine m;
    hn_controller *c;
    simulated d[DRAFTERS];
    int n_drafters, n_seqs, position[SEQS], context;
    hn_tree tree[SEQS];
    hn_plan_seq plan[SEQS];
    bool alive[SEQS][DRAFTERS]; /* the chain so far is right */
    int tip[SEQS][DRAFTERS];
    bool by_history;
    int unread[DRAFTERS];                 /* rows of text that a drafter with `read` has to read first */
    int called[DRAFTERS], calls[DRAFTERS]; /* rounds in which it was called, since rounds_run began; calls in total */
    double tokens, seconds; /* seconds without noise, at one speed; with a single drafter tokens are the expectation */
    double drafted, levels;
    double arrive, waiting; /* rows of prompts that come for each token, and that are not read yet */
    int chunk;              /* so many of them are read at once, or as many as there are from one on: 0 */
    int prompt;             /* in this round's pass */
} world;

HELPER simulated even(double a, int depth) {
    simulated s = {.depth = depth, .estimate = 0.7f};
    for (int i = 0; i < SEQS; i++)
        for (int d = 1; d <= DEPTH; d++) s.a[i][d] = a;
    return s;
}

HELPER world *world_open(enum machine_kind kind, double noise, int n_seqs, const simulated *d, int n_drafters) {
    static world w;
    hn_draft_cost kinds[DRAFTERS] = {HN_COST_PER_ROUND};
    w = (world){.m = machine_make(kind, noise, 42), .n_drafters = n_drafters, .n_seqs = n_seqs, .context = 100, .chunk = CHUNK};
    for (int i = 0; i < n_drafters; i++) {
        w.d[i] = d[i];
        kinds[i] = d[i].kind;
    }
    must(hn_controller_open(&w.c, kinds, n_drafters, n_seqs, err));
    if (machine_experts(&w.m) > 0)
        hn_cost_set_experts(hn_controller_cost(w.c), machine_experts(&w.m), MACHINE_USED, machine_part(&w.m) * 0.8);
    for (int i = 0; i < 9; i++) { /* passes that are measured at the start */
        const int rows = i % 3 == 0 ? 1 : i % 3 == 1 ? 4 : 8;
        machine_run(&w.m, hn_controller_cost(w.c), rows, 0);
    }
    for (int i = 0; i < n_drafters; i++)
        if (d[i].stays) hn_controller_stays(w.c, i);
    for (int i = 0; i < n_drafters; i++)
        if (d[i].shorter) hn_controller_saves(w.c, i);
    for (int i = 0; i < n_seqs; i++) hn_controller_begin(w.c, i);
    return &w;
}

HELPER void world_close(world *w) {
    hn_controller_close(&w->c);
    assert_null(w->c);
}

HELPER int32_t truth(const world *w, int seq, int ahead) {
    return (int32_t)((w->position[seq] + ahead) * SEQS + seq);
}

/* Share of the k-th of several candidates in the rate: 4 : 3 : 2 : 1 of four. */
HELPER double share(int k, int width) {
    return 2.0 * (width - k) / (width * (width + 1));
}

HELPER int place_draw(world *w, int width) {
    double u = machine_uniform(&w->m);
    int k = 0;
    while (k < width - 1 && (u -= share(k, width)) >= 0) k++;
    return k;
}

/* Adds one more level to one drafter's chain; of several candidates the first is continued. */
HELPER bool propose(world *w, int i, int d, int level) {
    const simulated *s = &w->d[d];
    if (level >= s->depth || w->tip[i][d] < 0) return false;
    double a = s->a[i][level + 1];
    float estimate = s->estimate;
    if (s->silent) return false;
    if (s->knows) {
        a = machine_uniform(&w->m) < 0.5 ? a / 2 : (1 + a) / 2;
        estimate = (float)a;
    }
    w->alive[i][d] = w->alive[i][d] && machine_uniform(&w->m) < a;
    const int width = s->width > 1 ? s->width : 1, from = w->tip[i][d];
    const int place = width > 1 && w->alive[i][d] ? place_draw(w, width) : 0;
    static const float one[1] = {1};
    static const hn_proposal_dist dist = {1, NULL, one};
    for (int k = 0; k < width; k++) {
        const int32_t token =
            w->alive[i][d] && k == place ? truth(w, i, level + 1) : -1 - d - DRAFTERS * (level + DEPTH * k);
        const float guess = width > 1 ? estimate * (float)share(k, width) : estimate;
        const int row = w->by_history && (s->drawn || s->kind == HN_COST_PER_LEVEL)
                            ? hn_tree_add_drawn(&w->tree[i], from, token, d, guess, &dist, false)
                            : hn_tree_add(&w->tree[i], from, token, d, guess);
        if (row >= 0) w->tree[i].candidate[w->tree[i].n_candidates - 1].stays = s->stays;
        if (k == 0) w->tip[i][d] = row;
    }
    w->alive[i][d] = w->alive[i][d] && place == 0;
    return w->tip[i][d] >= 0;
}

/* Begins a round. */
HELPER void trees_reset(world *w) {
    for (int i = 0; i < w->n_seqs; i++) {
        hn_tree_reset(&w->tree[i], truth(w, i, 0), HN_TREE_ROWS);
        w->plan[i] = (hn_plan_seq){i, w->context, &w->tree[i], DEPTH, machine_reads(&w->m, w->context), 0};
        for (int d = 0; d < w->n_drafters; d++) {
            w->alive[i][d] = true;
            w->tip[i][d] = 0;
        }
    }
    int behind[DRAFTERS];
    const int chunk = w->chunk > 0 ? w->chunk : (int)w->waiting;
    w->prompt = w->waiting >= chunk ? chunk : 0;
    for (int d = 0; d < w->n_drafters; d++) behind[d] = w->unread[d] > DEPTH * w->n_seqs ? w->unread[d] : 0;
    hn_controller_start(w->c, w->plan, w->n_seqs, &(hn_plan_round){.rows = HN_TREE_ROWS, .behind = behind,
                                                                   .beside = {.prompt = w->prompt}});
}

HELPER double one_row(const world *w) {
    return machine_relative(&w->m, 1, w->context);
}

/* Records that a call took the time of this many passes of one row. */
HELPER void took(world *w, int d, int level, int added, double passes) {
    hn_controller_took(w->c, d, w->n_seqs, level, added, passes * machine_pass(&w->m, 1, w->context));
    w->seconds += passes * one_row(w);
}

HELPER void call_at_once(world *w, int d) {
    const simulated *s = &w->d[d];
    int added = 0;
    for (int i = 0; i < w->n_seqs; i++) {
        const int most = hn_controller_levels(w->c, i, d, s->depth);
        for (int level = 0; level < most && propose(w, i, d, level); level++) added++;
    }
    w->levels += s->shorter ? added : 0;
    const bool now = w->calls[d] % (s->every > 1 ? s->every : 1) == 0;
    took(w, d, 0, added, (now ? s->round : 0) + (s->shorter ? added * s->step : 0) + (w->calls[d] == 0 ? s->first : 0));
}

HELPER void call_by_levels(world *w, int d) {
    double read = w->unread[d] > DEPTH * w->n_seqs ? w->unread[d] * w->d[d].read : 0;
    for (int level = 0; hn_controller_go_on(w->c, w->plan, w->n_seqs, d, level, w->by_history); level++) {
        int added = 0;
        for (int i = 0; i < w->n_seqs; i++) added += propose(w, i, d, level);
        if (added == 0) return;
        took(w, d, level, added, w->n_seqs * w->d[d].step + read);
        read = 0;
        w->unread[d] = 0;
        w->levels++;
    }
}

HELPER void call_all(world *w) {
    int d;
    trees_reset(w);
    while ((d = hn_controller_choose(w->c, w->plan, w->n_seqs, w->by_history)) >= 0) {
        if (w->d[d].kind == HN_COST_PER_LEVEL)
            call_by_levels(w, d);
        else
            call_at_once(w, d);
        w->called[d]++;
        w->calls[d]++;
    }
}

HELPER int walk(const world *w, int i, int16_t *path) {
    int n = 0;
    for (int row = 0; (row = hn_tree_child(&w->tree[i], row, truth(w, i, n + 1))) >= 0;) path[n++] = (int16_t)row;
    return n;
}

HELPER double expected(const simulated *d, int seq, int depth) {
    double e = 1, p = 1;
    for (int i = 1; i <= depth; i++) e += p *= d->a[seq][i];
    return e;
}

/* The pass of a round, with its rows of prompts. */
HELPER void run_beside(world *w, int rows) {
    hn_cost *c = hn_controller_cost(w->c);
    hn_cost_work work = machine_work(rows, machine_reads(&w->m, w->context));
    work.prompt = w->prompt;
    if (w->prompt > 0)
        hn_cost_pass(c, &work, machine_pass(&w->m, rows + w->prompt, w->context));
    else
        machine_run(&w->m, c, rows, w->context);
}

HELPER void verify(world *w) {
    const double before = w->tokens;
    int rows = 0;
    for (int i = 0; i < w->n_seqs; i++) {
        int16_t path[HN_TREE_ROWS];
        const int n = walk(w, i, path);
        assert_true(hn_tree_valid(&w->tree[i]));
        rows += w->tree[i].n_rows;
        w->drafted += w->tree[i].n_rows - 1;
        const bool even_chain = w->n_drafters == 1 && !w->d[0].knows && w->d[0].width <= 1;
        w->tokens += even_chain ? expected(&w->d[0], i, hn_tree_depth(&w->tree[i])) : n + 1;
        hn_round_drafts r;
        hn_round_drafts_make(&r, &w->tree[i], path, n, false);
        hn_controller_observe(w->c, i, &r);
        w->position[i] += n + 1;
        for (int d = 0; d < w->n_drafters; d++) w->unread[d] += w->d[d].read > 0 ? n + 1 : 0;
    }
    w->waiting += w->arrive * (w->tokens - before) - w->prompt;
    w->seconds += machine_relative(&w->m, rows + w->prompt, w->context);
    run_beside(w, rows);
}

HELPER void round_run(world *w) {
    call_all(w);
    hn_controller_prune(w->c, w->plan, w->n_seqs, w->by_history);
    verify(w);
}

/* Tokens a second over n rounds. */
HELPER double rounds_run(world *w, int n) {
    w->tokens = w->seconds = w->drafted = w->levels = 0;
    memset(w->called, 0, sizeof w->called);
    for (int i = 0; i < n; i++) round_run(w);
    return w->tokens / w->seconds;
}

/* The best fixed depth of one drafter alone for one sequence. */
HELPER double best_fixed(const world *w, const simulated *d, int *depth) {
    double best = 0;
    for (int k = 0; k <= d->depth; k++) {
        const double v = expected(d, 0, k) / (machine_relative(&w->m, k + 1, w->context) +
                                              (k * d->step + (k > 0 ? d->round : 0)) * one_row(w));
        if (v <= best) continue;
        best = v;
        *depth = k;
    }
    return best;
}

HELPER double plain(const world *w) {
    return w->n_seqs / machine_relative(&w->m, w->n_seqs, w->context);
}

HELPER void must_reach(double got, double least, const char *what, int kind, double a) {
    if (!(got >= least))
        fail_msg("%s: machine %d, a %g: %g tokens a second, expected at least %g", what, kind, a, got, least);
}

HELPER void set_rate(world *w, int drafter, double a) {
    for (int i = 0; i < SEQS; i++)
        for (int d = 1; d <= DEPTH; d++) w->d[drafter].a[i][d] = a;
}
#endif
