/* SPDX-License-Identifier: Apache-2.0 */
/* prune.c - threads that differ in the counts of their loops only. A body that can be read in several ways, as of (a|aa){0,1000} or
 * (a{0,9}){0,9}, would be counted in all of them; but of loops that may end the one that ran least can do all that the others can. */
#include <stdlib.h>
#include <string.h>

#include "grammar/closure.h"

enum { MAX_BELOW = 16 /* nodes that are compared below a thread's */, MAX_PLACES = 4, MAX_COMPARED = 64 };

/* Whether a loop that is at count x can do all that it could at count y. */
static bool count_covers(const hn_automaton *a, int32_t proc, int32_t x, int32_t y) {
    if (x == y || x == HN_COUNT_ANY) return true;
    if (x < 0 || y < 0) return false;
    return x < y ? x + 1 >= hn_automaton_least(a, proc) : a->g->procs[proc].max < 0;
}

static bool covers(const hn_automaton *a, int32_t x, int32_t y, int below) {
    const hn_stack_node *m = &a->nodes[x], *n = &a->nodes[y];
    if (x == y) return true;
    if (m->proc != n->proc || m->accept != n->accept || m->n != n->n || m->shape != n->shape || below == 0) return false;
    if (a->g->procs[m->proc].loop && !count_covers(a, m->proc, m->count, n->count)) return false;
    const hn_thread *to_m = a->edges + m->first, *to_n = a->edges + n->first;
    if (m->n == 0 || memcmp(to_m, to_n, m->n * sizeof *to_m) == 0) return true;
    for (uint32_t j = 0; j < n->n && m->n <= MAX_PLACES; j++) {
        uint32_t i = 0;
        while (i < m->n && (to_m[i].pc != to_n[j].pc || !covers(a, to_m[i].node, to_n[j].node, below - 1))) i++;
        if (i == m->n) return false;
    }
    return m->n <= MAX_PLACES;
}

static int compare(const void *x, const void *y, void *automaton) {
    const hn_automaton *a = automaton;
    const hn_thread *s = x, *t = y;
    const hn_stack_node *m = &a->nodes[s->node], *n = &a->nodes[t->node];
    if (s->pc != t->pc) return s->pc < t->pc ? -1 : 1;
    if (m->shape != n->shape) return m->shape < n->shape ? -1 : 1;
    return s->node < t->node ? -1 : s->node > t->node;
}

static bool same_group(const hn_automaton *a, hn_thread s, hn_thread t) {
    return s.pc == t.pc && a->nodes[s.node].shape == a->nodes[t.node].shape;
}

/* Whether there are two threads to compare: two nodes with counts. */
static bool may_prune(const hn_automaton *a, const hn_thread *t, size_t n) {
    int32_t counted = -1;
    for (size_t i = 0; i < n; i++) {
        if (!a->nodes[t[i].node].counted || t[i].node == counted) continue;
        if (counted >= 0) return true;
        counted = t[i].node;
    }
    return false;
}

size_t hn_threads_prune(const hn_automaton *a, hn_thread *t, size_t n) {
    size_t kept = 0, group = 0;
    if (!a->has_loops || n < 2 || !may_prune(a, t, n)) return n;
    qsort_r(t, n, sizeof *t, compare, (void *)(uintptr_t)a);
    for (size_t i = 0; i < n; i++) {
        const hn_thread x = t[i];
        if (kept == group || !same_group(a, t[group], x)) group = kept;
        size_t from = kept - group > MAX_COMPARED ? kept - MAX_COMPARED : group, k = from, to = from;
        while (k < kept && !covers(a, t[k].node, x.node, MAX_BELOW)) k++;
        if (k < kept) continue;
        for (k = from; k < kept; k++)
            if (!covers(a, x.node, t[k].node, MAX_BELOW)) t[to++] = t[k];
        t[to++] = x;
        kept = to;
    }
    return kept;
}
