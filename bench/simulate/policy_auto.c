/* SPDX-License-Identifier: Apache-2.0 */
/* policy_auto.c - hunch's own controller, the code that the engine calls. */
#include <stdlib.h>

#include "simulate.h"

typedef struct own {
    hn_controller *c;
    double reads; /* of a committed row, in the unit of hn_cost_work */
    hn_plan_seq plan[SIM_TEXTS];
} own;

static void *open(const sim_data *d, const sim_settings *s) {
    own *o = sim_alloc(sizeof *o);
    hunch_error err;
    const sim_curve *c = &d->curve;
    const int last = c->n[0] - 1;
    if (hn_controller_open(&o->c, d->kind, d->n_drafters, s->parallel, &err)) sim_fail("%s", err.message);
    for (int k = 0; k < d->n_drafters; k++)
        if (d->most_levels[k] > 0) hn_controller_limit(o->c, k, d->most_levels[k]);
    const double row = (c->seconds[0][last] - c->seconds[0][last - 1]) / (c->rows[0][last] - c->rows[0][last - 1]);
    if (c->prompt_row > 0 && c->prompt_row < row) hn_cost_set_output(hn_controller_cost(o->c), 1 - c->prompt_row / row);
    for (int i = 0; i < 6; i++) { /* passes that the engine measures at the start */
        const int rows = (const int[]){1, 8, 4}[i % 3];
        hn_cost_pass(hn_controller_cost(o->c), &(hn_cost_work){.rows = rows}, sim_pass(c, rows, 1, 0, 0));
    }
    o->reads = c->first / c->seconds[0][0];
    return o;
}

static void close(void *state) {
    own *o = state;
    hn_controller_close(&o->c);
    free(o);
}

static void begin(void *state, int place) {
    own *o = state;
    hn_controller_begin(o->c, place);
}

static void levels(own *o, sim_round *r, int d) {
    int added = 1;
    for (int level = 0; added > 0 && level < SIM_DEPTH; level++) {
        if (!hn_controller_go_on(o->c, o->plan, r->n, d, level, r->by_history)) return;
        const double before = r->drafting;
        added = sim_propose(r, d, level);
        hn_controller_took(o->c, d, r->n, level, added, r->drafting - before);
    }
}

static void at_once(own *o, sim_round *r, int d) {
    const double before = r->drafting;
    int added = 1, all = 0;
    for (int level = 0; added > 0 && level < SIM_DEPTH; level++) all += added = sim_propose(r, d, level);
    hn_controller_took(o->c, d, r->n, 0, all, r->drafting - before);
}

static void draft(void *state, sim_round *r) {
    own *o = state;
    const int behind[SIM_DRAFTERS] = {0};
    const hn_cost_work beside = {.prompt = r->prompt_rows};
    int d;
    for (int i = 0; i < r->n; i++) {
        const sim_text *t = r->text[i];
        const int context = t->answer->prompt + t->at;
        o->plan[i] = (hn_plan_seq){r->place[i], context, &r->text[i]->tree, sim_depth_limit(t), o->reads * context, 0};
    }
    hn_controller_start(o->c, o->plan, r->n, &(hn_plan_round){r->most_rows, behind, beside});
    while ((d = hn_controller_choose(o->c, o->plan, r->n, r->by_history)) >= 0)
        (r->data->kind[d] == HN_COST_PER_LEVEL ? levels : at_once)(o, r, d);
    hn_controller_prune(o->c, o->plan, r->n, r->by_history);
}

static void passed(void *state, const sim_round *r, int rows, double seconds) {
    own *o = state;
    hn_cost_work w = {.rows = rows, .prompt = r->prompt_rows};
    for (int i = 0; i < r->n; i++) {
        sim_text *t = r->text[i];
        int16_t path[HN_TREE_ROWS];
        int n = 0;
        for (int row = 0; n < t->accepted; n++) path[n] = (int16_t)(row = hn_tree_child(&t->tree, row, t->answer->token[t->at + n + 1]));
        hn_round_drafts drafts;
        hn_round_drafts_make(&drafts, &t->tree, path, n, false);
        hn_controller_observe(o->c, r->place[i], &drafts);
        w.reads += o->plan[i].reads;
        w.again += o->plan[i].reads * (t->tree.n_rows - 1);
    }
    if (rows + r->prompt_rows > 0) hn_cost_pass(hn_controller_cost(o->c), &w, seconds);
}

const sim_policy sim_auto = {"auto", "hunch's controller", true, open, close, begin, draft, passed};
