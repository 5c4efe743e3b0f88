/* SPDX-License-Identifier: Apache-2.0 */
/* regex_without.c - the texts that a machine does not allow: it is made one in which a text has one way, by sets of states, and the ends
 * change places with the others. And words as an expression, whose opposite is mostly what is asked for. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/number_index.h"
#include "base/utf8.h"
#include "grammar/regex_machine.h"

enum { MAX_STEPS = 4000000 };

/* A set of states: at[from .. from + n) of the pool, ascending. */
typedef struct group {
    size_t from, n;
    int32_t number; /* in the new machine */
} group;

typedef struct groups {
    const hn_machine *old;
    hn_machine *to;
    int32_t *pool;
    size_t n_pool, cap_pool;
    group *all;
    size_t n, cap;
    int32_t *index; /* a hash table of groups, their numbers and one */
    size_t cap_index;
    int32_t *stack;   /* [states] */
    uint32_t *marked; /* [states] the mark of the group that is made */
    uint32_t mark;
    size_t work;
} groups;

static bool no_memory(groups *g) {
    return hn_builder_no_memory(g->to->b) >= 0;
}

static bool too_long(groups *g) {
    return hn_builder_fail(g->to->b, HUNCH_USAGE, "the opposite of a regular expression takes more than %d steps", MAX_STEPS) >= 0;
}

static uint64_t hash_states(const int32_t *at, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = hn_hash_word(h, (uint32_t)at[i]);
    return h;
}

static uint64_t hash_of_group(const void *of, size_t i) {
    const groups *g = of;
    return hash_states(g->pool + g->all[i].from, g->all[i].n);
}

static int compare(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The group of the states that were put behind the pool's end, with those that they lead to by no character; -1: failed. */
static int32_t group_of(groups *g, size_t n) {
    size_t n_stack = 0, from = g->n_pool, count = 0;
    g->mark++;
    for (size_t i = 0; i < n; i++) {
        const int32_t s = g->pool[from + i];
        if (g->marked[s] == g->mark) continue;
        g->marked[s] = g->mark;
        g->stack[n_stack++] = s;
    }
    while (n_stack) {
        const int32_t s = g->stack[--n_stack];
        if (!hn_grow((void **)&g->pool, &g->cap_pool, from + count + 1, sizeof *g->pool)) return no_memory(g), -1;
        g->pool[from + count++] = s;
        for (int32_t e = g->old->first[s]; e < g->old->first[s + 1]; e++) {
            const int32_t to = g->old->edges[e].to;
            if (g->old->edges[e].set >= 0 || g->marked[to] == g->mark) continue;
            g->marked[to] = g->mark;
            g->stack[n_stack++] = to;
        }
    }
    if ((g->work += count + 1) > MAX_STEPS) return too_long(g), -1;
    qsort(g->pool + from, count, sizeof *g->pool, compare);
    if (2 * (g->n + 1) > g->cap_index && !hn_number_index_grow(&g->index, &g->cap_index, 64, 0, g->n, hash_of_group, g))
        return no_memory(g), -1;
    size_t at = hash_states(g->pool + from, count) & (g->cap_index - 1);
    for (; g->index[at]; at = (at + 1) & (g->cap_index - 1)) {
        const group *x = &g->all[g->index[at] - 1];
        if (x->n == count && memcmp(g->pool + x->from, g->pool + from, count * sizeof *g->pool) == 0) return g->index[at] - 1;
    }
    if (!hn_grow((void **)&g->all, &g->cap, g->n + 1, sizeof *g->all)) return no_memory(g), -1;
    g->all[g->n] = (group){from, count, g->n ? g->to->n++ : 0};
    g->n_pool = from + count;
    g->index[at] = (int32_t)++g->n;
    return (int32_t)g->n - 1;
}

/* Where a group's sets begin and end: between two of these all characters lead to the same states. */
static bool cuts_find(groups *g, group x, hn_ranges *cuts) {
    bool ok = hn_ranges_add(cuts, 0, 0);
    for (size_t i = 0; ok && i < x.n; i++) {
        const int32_t s = g->pool[x.from + i];
        for (int32_t e = g->old->first[s]; ok && e < g->old->first[s + 1]; e++) {
            const hn_ranges *set = g->old->edges[e].set >= 0 ? &g->old->sets[g->old->edges[e].set] : NULL;
            for (size_t k = 0; ok && set && k < set->n; k++) {
                ok = hn_ranges_add(cuts, set->at[k].first, set->at[k].first);
                if (ok && set->at[k].last < HN_LAST_CODE_POINT) ok = hn_ranges_add(cuts, set->at[k].last + 1, set->at[k].last + 1);
            }
        }
    }
    return ok || no_memory(g);
}

static int compare_cuts(const void *a, const void *b) {
    const hn_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static bool set_has(const hn_ranges *set, uint32_t cp) {
    size_t low = 0, high = set->n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (set->at[mid].last < cp) low = mid + 1;
        else high = mid;
    }
    return low < set->n && set->at[low].first <= cp;
}

/* The group that a character leads to. */
static int32_t step(groups *g, group x, uint32_t cp) {
    size_t n = 0;
    for (size_t i = 0; i < x.n; i++) {
        const int32_t s = g->pool[x.from + i];
        for (int32_t e = g->old->first[s]; e < g->old->first[s + 1]; e++) {
            const hn_machine_edge *edge = &g->old->edges[e];
            if (edge->set < 0) continue;
            if (++g->work > MAX_STEPS) return too_long(g), -1;
            if (!set_has(&g->old->sets[edge->set], cp)) continue;
            if (!hn_grow((void **)&g->pool, &g->cap_pool, g->n_pool + n + 1, sizeof *g->pool)) return no_memory(g), -1;
            g->pool[g->n_pool + n++] = edge->to;
        }
    }
    return group_of(g, n);
}

/* The characters of all edges to one group are one set; the group's edges are those from `own` on. */
static bool put_edge(groups *g, size_t own, int32_t from, int32_t to, uint32_t first, uint32_t last) {
    hn_machine *m = g->to;
    for (size_t e = own; e < m->n_edges; e++)
        if (m->edges[e].to == to) return hn_ranges_add(&m->sets[m->edges[e].set], first, last) || no_memory(g);
    hn_ranges set = {0};
    if (!hn_ranges_add(&set, first, last)) return no_memory(g);
    return hn_machine_put_set(m, &set) && hn_machine_link(m, from, to, (int32_t)m->n_sets - 1);
}

static bool group_edges(groups *g, size_t i) {
    hn_ranges cuts = {0};
    const group x = g->all[i];
    const size_t own = g->to->n_edges;
    bool ok = cuts_find(g, x, &cuts), ends = false;
    if (ok) qsort(cuts.at, cuts.n, sizeof *cuts.at, compare_cuts);
    int32_t before = -1;
    uint32_t first = 0;
    for (size_t k = 0; ok && k < cuts.n; k++) {
        const uint32_t cp = cuts.at[k].first;
        if (k && cp == cuts.at[k - 1].first) continue;
        const int32_t to = step(g, x, cp);
        ok = to >= 0;
        if (!ok || to == before) continue;
        if (before >= 0) ok = put_edge(g, own, x.number, g->all[before].number, first, cp - 1);
        before = to;
        first = cp;
    }
    if (ok) ok = put_edge(g, own, x.number, g->all[before].number, first, HN_LAST_CODE_POINT);
    hn_ranges_fini(&cuts);
    for (size_t k = 0; k < x.n; k++) ends |= g->pool[x.from + k] == 1;
    return ok && (ends || hn_machine_link(g->to, x.number, 1, -1));
}

bool hn_machine_opposite(hn_machine *m) {
    hn_machine to = {.b = m->b, .n = 2};
    groups g = {.old = m, .to = &to};
    g.stack = hn_alloc((size_t)m->n * sizeof *g.stack);
    g.marked = hn_zalloc((size_t)m->n, sizeof *g.marked);
    bool ok = (g.stack && g.marked && hn_grow((void **)&g.pool, &g.cap_pool, 1, sizeof *g.pool)) || no_memory(&g);
    if (ok) g.pool[0] = 0;
    ok = ok && group_of(&g, 1) >= 0;
    for (size_t i = 0; ok && i < g.n; i++) ok = group_edges(&g, i);
    hn_free(g.pool);
    hn_free(g.all);
    hn_free(g.index);
    hn_free(g.stack);
    hn_free(g.marked);
    hn_machine_fini(m);
    *m = to;
    return ok && hn_machine_sort(m);
}

/* ---- words ---- */

static int32_t word_of(hn_regex *r, hn_word word) {
    int32_t *part = hn_alloc(word.len * sizeof *part);
    size_t n = 0;
    bool ok = part || hn_builder_no_memory(r->b) >= 0;
    for (size_t at = 0; ok && at < word.len;) {
        uint32_t cp;
        hn_ranges set = {0};
        const int step = hn_utf8_decode(word.bytes + at, word.len - at, &cp);
        at += step > 0 ? (size_t)step : 1;
        ok = hn_ranges_add(&set, cp, cp) || hn_builder_no_memory(r->b) >= 0;
        ok = ok && (part[n++] = hn_regex_set(r, &set)) >= 0;
    }
    const int32_t e = ok ? hn_regex_list(r, HN_RE_SEQ, part, n) : -1;
    hn_free(part);
    return e;
}

bool hn_regex_words(hn_regex *r, hn_builder *b, const hn_word *word, size_t n, bool without) {
    *r = (hn_regex){.b = b, .where = "", .any = -1, .root = -1, .without = without};
    if (b->failed) return false;
    int32_t *part = hn_alloc(n * sizeof *part);
    bool ok = part || hn_builder_no_memory(b) >= 0;
    for (size_t i = 0; ok && i < n; i++) ok = (part[i] = word_of(r, word[i])) >= 0;
    if (ok) r->root = hn_regex_list(r, HN_RE_ALT, part, n);
    hn_free(part);
    return r->root >= 0;
}
