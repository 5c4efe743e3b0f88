/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_facts.c - what follows from a program: from where its end can be reached, and by no text at all. Both are least fixed points,
 * found from the ends backwards in time linear in the program. */
#include <string.h>

#include "base/mem.h"
#include "grammar/grammar_private.h"

/* Who waits for what: instruction i waits for instructions, the end of a call also for the start of its procedure. */
typedef struct waits {
    const hn_grammar *g;
    const uint8_t *is_control; /* NULL: any name may be a control token or not */
    bool any_control, text;    /* text: characters and tokens may be passed */
    bool trusts;               /* a call of a rule needs not that the rule has an end, */
    int32_t only;              /* or, if not 0, of the procedure of this number less one */
    int32_t *from;             /* [n_code + 1] into who: those that wait for instruction i */
    int32_t *who;
    uint8_t *need; /* [n_code] how many of those it waits for are missing */
    int32_t *todo;
    size_t n_todo;
} waits;

/* What instruction i needs: *n of `on`, all or (a split) any. False: it can never be passed. */
static bool needs_of(const waits *w, int32_t i, const int32_t **on, int32_t *n, int32_t pair[2]) {
    const hn_instr *c = &w->g->code[i];
    *on = pair;
    *n = 1;
    pair[0] = c->y;
    switch ((hn_op)c->op) {
    case HN_OP_DEAD: return false;
    case HN_OP_SET: {
        const uint64_t *bits = w->g->sets[c->x].bits;
        return w->text && (bits[0] | bits[1] | bits[2] | bits[3]);
    }
    case HN_OP_TOKEN: return w->text && (!w->is_control || w->is_control[c->x]);
    case HN_OP_CONTROLS: return w->text && w->any_control;
    case HN_OP_IF: return !w->is_control || (c->x >= 0 ? w->is_control[c->x] : !w->is_control[~c->x]);
    case HN_OP_SPLIT:
        *on = w->g->targets + c->x;
        *n = c->y;
        return true;
    case HN_OP_JUMP: return true;
    case HN_OP_CALL: {
        const hn_proc *p = &w->g->procs[c->x];
        if (p->loop && p->min == 0) return true; /* it need not run */
        if (w->only ? c->x == w->only - 1 : w->trusts && p->rule >= 0) return true;
        pair[1] = p->start;
        *n = 2;
        return true;
    }
    case HN_OP_END: *n = 0; return true;
    }
    return false;
}

static bool waits_init(waits *w, const hn_grammar *g) {
    int32_t pair[2];
    const int32_t *on;
    int32_t n;
    const size_t size = g->n_code;
    w->from = hn_zalloc(size + 2, sizeof *w->from);
    w->need = hn_zalloc(size, 1);
    w->todo = hn_alloc(size * sizeof *w->todo);
    if (!w->from || !w->need || !w->todo) return false;
    for (size_t i = 0; i < size; i++) {
        if (!needs_of(w, (int32_t)i, &on, &n, pair)) n = 0;
        for (int32_t k = 0; k < n; k++) w->from[on[k] + 2]++;
    }
    for (size_t i = 2; i < size + 2; i++) w->from[i] += w->from[i - 1];
    w->who = hn_alloc((size_t)w->from[size + 1] * sizeof *w->who);
    if (!w->who) return false;
    for (size_t i = 0; i < size; i++) {
        const bool can = needs_of(w, (int32_t)i, &on, &n, pair), split = g->code[i].op == HN_OP_SPLIT;
        if (!can) n = 0;
        w->need[i] = (uint8_t)(split ? 1 : n);
        for (int32_t k = 0; k < n; k++) w->who[w->from[on[k] + 1]++] = (int32_t)i;
    }
    return true;
}

static void waits_run(waits *w, uint8_t *found) {
    memset(found, 0, w->g->n_code);
    for (size_t i = 0; i < w->g->n_code; i++)
        if (w->g->code[i].op == HN_OP_END) found[i] = 1, w->todo[w->n_todo++] = (int32_t)i;
    while (w->n_todo) {
        const int32_t i = w->todo[--w->n_todo];
        for (int32_t k = w->from[i]; k < w->from[i + 1]; k++) {
            const int32_t j = w->who[k];
            if (found[j] || --w->need[j] > 0) continue;
            found[j] = 1;
            w->todo[w->n_todo++] = j;
        }
    }
}

static bool fixed_point(waits *w, const hn_grammar *g, uint8_t *found) {
    const bool ok = waits_init(w, g);
    if (ok) waits_run(w, found);
    hn_free(w->from);
    hn_free(w->who);
    hn_free(w->need);
    hn_free(w->todo);
    return ok;
}

void hn_grammar_facts_fini(hn_grammar_facts *f) {
    hn_free(f->live);
    hn_free(f->nullable);
    *f = (hn_grammar_facts){0};
}

hunch_status hn_grammar_facts_find(hn_grammar_facts *f, const hn_grammar *g, const uint8_t *is_control, bool any_control,
                                   hunch_error *err) {
    f->live = hn_alloc(g->n_code);
    f->nullable = hn_alloc(g->n_code);
    bool ok = f->live && f->nullable;
    if (ok) ok = fixed_point(&(waits){.g = g, .is_control = is_control, .any_control = any_control, .text = true}, g, f->live);
    if (ok) ok = fixed_point(&(waits){.g = g, .is_control = is_control, .any_control = any_control, .text = false}, g, f->nullable);
    if (ok) return HUNCH_OK;
    hn_grammar_facts_fini(f);
    return hn_fail_memory(err, "a grammar", g->n_code * (2 + 3 * sizeof(int32_t)));
}

/* ---- why no text matches ---- */

/* A rule that has no end though all rules that it calls had one, and such that the whole had one if it had; else the first that has none
 * though the others had; of recursion that never ends the first without an end. */
int32_t hn_grammar_dead_rule(const hn_grammar *g, const hn_grammar_facts *f) {
    enum { MOST_WORK = 20000000, MOST_TRIED = 32 };
    uint8_t *own = hn_alloc(g->n_code), *with = hn_alloc(g->n_code);
    int32_t first = -1, any = -1, found = -1;
    bool ok = own && with && fixed_point(&(waits){.g = g, .any_control = true, .text = true, .trusts = true}, g, own);
    size_t left = 1 + MOST_WORK / g->n_code;
    if (left > MOST_TRIED) left = MOST_TRIED;
    for (size_t i = 0; ok && i < g->n_procs && found < 0; i++) {
        const hn_proc *p = &g->procs[i];
        if (p->rule < 0 || f->live[p->start]) continue;
        if (any < 0) any = p->rule;
        if (own[p->start]) continue;
        if (first < 0) first = p->rule;
        if (left-- == 0) break;
        ok = fixed_point(&(waits){.g = g, .any_control = true, .text = true, .only = (int32_t)i + 1}, g, with);
        if (ok && (with[g->procs[0].start] || i == 0)) found = p->rule;
    }
    hn_free(own);
    hn_free(with);
    return found >= 0 ? found : first >= 0 ? first : any;
}

/* ---- left recursion ---- */

/* Strongly connected parts of the instructions that are reached without a text (Tarjan, without recursion of C). A call inside such a part
 * enters its procedure again and again. */
typedef struct search {
    const hn_grammar *g;
    const hn_grammar_facts *f;
    int32_t *order, *low, *next, *stack, *path, *part; /* [n_code]; order 0: not seen */
    size_t n_stack, n_path;
    int32_t seen, parts;
} search;

/* The k-th instruction that is reached from i; -1: there are no more. */
static int32_t reached(const search *s, int32_t i, int32_t k) {
    const hn_instr *c = &s->g->code[i];
    switch ((hn_op)c->op) {
    case HN_OP_IF:
    case HN_OP_JUMP: return k == 0 ? c->y : -1;
    case HN_OP_SPLIT: return k < c->y ? s->g->targets[c->x + k] : -1;
    case HN_OP_CALL: return k == 0 ? s->g->procs[c->x].start : k == 1 && hn_proc_is_nullable(s->g, s->f, c->x) ? c->y : -1;
    default: return -1;
    }
}

static void enter(search *s, int32_t i) {
    s->order[i] = s->low[i] = ++s->seen;
    s->next[i] = 0;
    s->path[s->n_path++] = i;
    s->stack[s->n_stack++] = i;
}

static void leave(search *s, int32_t i) {
    s->n_path--;
    if (s->n_path && s->low[i] < s->low[s->path[s->n_path - 1]]) s->low[s->path[s->n_path - 1]] = s->low[i];
    if (s->low[i] != s->order[i]) return;
    s->parts++;
    int32_t j;
    do {
        j = s->stack[--s->n_stack];
        s->part[j] = s->parts;
    } while (j != i);
}

static void search_from(search *s, int32_t root) {
    if (s->order[root]) return;
    enter(s, root);
    while (s->n_path) {
        const int32_t i = s->path[s->n_path - 1], j = reached(s, i, s->next[i]++);
        if (j < 0)
            leave(s, i);
        else if (!s->order[j])
            enter(s, j);
        else if (!s->part[j] && s->order[j] < s->low[i])
            s->low[i] = s->order[j];
    }
}

static hunch_status report(const search *s, const hn_rule_def *rules, hunch_error *err) {
    for (size_t i = 0; i < s->g->n_code; i++) {
        if (s->g->code[i].op != HN_OP_CALL) continue;
        const hn_proc *p = &s->g->procs[s->g->code[i].x];
        if (s->part[i] != s->part[p->start]) continue;
        if (p->rule < 0) continue; /* another call of the circle has a name */
        return hn_fail(err, HUNCH_USAGE, "rule %s begins with itself: left recursion, expected the recursion behind some text",
                       rules[p->rule].name);
    }
    return HUNCH_OK;
}

hunch_status hn_grammar_check_left(const hn_grammar *g, const hn_grammar_facts *f, const hn_rule_def *rules, hunch_error *err) {
    const size_t n = g->n_code;
    int32_t *all = hn_zalloc(6 * n, sizeof *all);
    if (!all) return hn_fail_memory(err, "a grammar", 6 * n * sizeof *all);
    search s = {.g = g, .f = f, .order = all, .low = all + n, .next = all + 2 * n};
    s.stack = all + 3 * n;
    s.path = all + 4 * n;
    s.part = all + 5 * n;
    for (size_t i = 0; i < n; i++) search_from(&s, (int32_t)i);
    const hunch_status st = report(&s, rules, err);
    hn_free(all);
    return st;
}
