/* SPDX-License-Identifier: Apache-2.0 */
/* regex_all.c - several regular expressions, and a bound on the number of characters, as one: products of machines over characters. Where
 * one expression's own lengths are within the bounds nothing is multiplied, and a repeated class takes them as its counts. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "grammar/regex_machine.h"

void hn_machine_fini(hn_machine *m) {
    for (size_t i = 0; i < m->n_sets; i++) hn_ranges_fini(&m->sets[i]);
    hn_free(m->sets);
    hn_free(m->edges);
    hn_free(m->first);
    *m = (hn_machine){.b = m->b};
}

bool hn_machine_too_large(hn_machine *m) {
    hn_builder_fail(m->b, HUNCH_USAGE, "a regular expression together with other patterns or bounds of length needs more than %d states",
                    HN_MACHINE_STATES);
    return false;
}

bool hn_machine_link(hn_machine *m, int32_t from, int32_t to, int32_t set) {
    if (m->n_edges >= HN_MACHINE_EDGES || m->n > HN_MACHINE_STATES) return hn_machine_too_large(m);
    if (!hn_grow((void **)&m->edges, &m->cap_edges, m->n_edges + 1, sizeof *m->edges)) return hn_builder_no_memory(m->b) >= 0;
    m->edges[m->n_edges++] = (hn_machine_edge){from, to, set};
    return true;
}

/* Takes the set. */
bool hn_machine_put_set(hn_machine *m, hn_ranges *set) {
    if (!hn_grow((void **)&m->sets, &m->cap_sets, m->n_sets + 1, sizeof *m->sets)) {
        hn_ranges_fini(set);
        return hn_builder_no_memory(m->b) >= 0;
    }
    m->sets[m->n_sets++] = *set;
    return true;
}

/* The characters of both. */
static bool intersect(const hn_ranges *x, const hn_ranges *y, hn_ranges *out) {
    for (size_t i = 0, j = 0; i < x->n && j < y->n; x->at[i].last < y->at[j].last ? i++ : j++) {
        const uint32_t first = x->at[i].first > y->at[j].first ? x->at[i].first : y->at[j].first;
        const uint32_t last = x->at[i].last < y->at[j].last ? x->at[i].last : y->at[j].last;
        if (!hn_ranges_add(out, first, last)) return false;
    }
    return true;
}

/* Sorts the edges by the state that they leave. */
bool hn_machine_sort(hn_machine *m) {
    hn_machine_edge *sorted = hn_alloc(m->n_edges * sizeof *sorted);
    m->first = hn_zalloc((size_t)m->n + 2, sizeof *m->first);
    if (!sorted || !m->first) {
        hn_free(sorted);
        return hn_builder_no_memory(m->b) >= 0;
    }
    for (size_t i = 0; i < m->n_edges; i++) m->first[m->edges[i].from + 2]++;
    for (int32_t i = 2; i < m->n + 2; i++) m->first[i] += m->first[i - 1];
    for (size_t i = 0; i < m->n_edges; i++) sorted[m->first[m->edges[i].from + 1]++] = m->edges[i];
    hn_free(m->edges);
    m->edges = sorted;
    m->cap_edges = m->n_edges;
    return true;
}

/* ---- of a tree ---- */

static bool build(hn_machine *m, const hn_regex *r, int32_t i, int32_t from, int32_t to);

static bool build_repeat(hn_machine *m, const hn_regex *r, const hn_regex_node *e, int32_t from, int32_t to) {
    const int32_t copies = e->max < 0 ? e->min : e->max;
    for (int32_t k = 0; k < copies; k++) {
        const int32_t next = m->n++;
        if (k >= e->min && !hn_machine_link(m, from, to, -1)) return false;
        if (!build(m, r, e->a, from, next)) return false;
        from = next;
    }
    if (e->max < 0) {
        const int32_t again = m->n++;
        if (!hn_machine_link(m, from, again, -1) || !build(m, r, e->a, again, again)) return false;
        from = again;
    }
    return hn_machine_link(m, from, to, -1);
}

static bool build(hn_machine *m, const hn_regex *r, int32_t i, int32_t from, int32_t to) {
    const hn_regex_node *e = &r->nodes[i];
    if (m->n > HN_MACHINE_STATES) return hn_machine_too_large(m);
    switch ((hn_regex_kind)e->kind) {
    case HN_RE_CLASS: return hn_machine_link(m, from, to, e->a);
    case HN_RE_ALT:
        for (int32_t k = 0; k < e->b; k++)
            if (!build(m, r, r->parts[e->a + k], from, to)) return false;
        return true;
    case HN_RE_SEQ:
        for (int32_t k = 0; k < e->b; k++) {
            const int32_t next = k == e->b - 1 ? to : m->n++;
            if (!build(m, r, r->parts[e->a + k], from, next)) return false;
            from = next;
        }
        return true;
    case HN_RE_REPEAT: return build_repeat(m, r, e, from, to);
    default: return hn_machine_link(m, from, to, -1);
    }
}

static bool machine_of(hn_machine *m, const hn_regex *r) {
    for (size_t i = 0; i < r->n_sets; i++) {
        hn_ranges copy = {0};
        for (size_t k = 0; k < r->sets[i].n; k++)
            if (!hn_ranges_add(&copy, r->sets[i].at[k].first, r->sets[i].at[k].last)) return hn_builder_no_memory(m->b) >= 0;
        if (!hn_machine_put_set(m, &copy)) return false;
    }
    m->n = 2;
    return build(m, r, r->root, 0, 1) && hn_machine_sort(m) && (!r->without || hn_machine_opposite(m));
}

/* ---- products ---- */

/* Pairs of states (or of a state and a length) that were reached, numbered from 2 on; 0 is the first, 1 the end. */
typedef struct pairs {
    uint64_t *key; /* [cap] a hash table: the pair and one */
    int32_t *number;
    size_t n, cap;
    uint64_t *todo; /* in the order of their numbers */
    size_t cap_todo;
} pairs;

static bool pairs_grow(pairs *p) {
    const size_t cap = p->cap ? 2 * p->cap : 256;
    uint64_t *key = hn_zalloc(cap, sizeof *key);
    int32_t *number = hn_alloc(cap * sizeof *number);
    if (!key || !number) return hn_free(key), hn_free(number), false;
    for (size_t i = 0; i < p->cap; i++) {
        if (!p->key[i]) continue;
        size_t at = hn_hash_word(0, p->key[i]) & (cap - 1);
        while (key[at]) at = (at + 1) & (cap - 1);
        key[at] = p->key[i];
        number[at] = p->number[i];
    }
    hn_free(p->key);
    hn_free(p->number);
    p->key = key;
    p->number = number;
    p->cap = cap;
    return true;
}

/* Its number in m; -1: failed. */
static int32_t pair_number(hn_machine *m, pairs *p, int32_t x, int32_t y) {
    const uint64_t key = ((uint64_t)(uint32_t)x << 32 | (uint32_t)y) + 1;
    if (2 * (p->n + 1) > p->cap && !pairs_grow(p)) return hn_builder_no_memory(m->b);
    size_t at = hn_hash_word(0, key) & (p->cap - 1);
    while (p->key[at] && p->key[at] != key) at = (at + 1) & (p->cap - 1);
    if (p->key[at]) return p->number[at];
    if (m->n > HN_MACHINE_STATES) return hn_machine_too_large(m), -1;
    if (!hn_grow((void **)&p->todo, &p->cap_todo, p->n + 1, sizeof *p->todo)) return hn_builder_no_memory(m->b);
    p->key[at] = key;
    p->number[at] = p->n == 0 ? 0 : m->n++;
    p->todo[p->n++] = key - 1;
    return p->number[at];
}

static void pairs_fini(pairs *p) {
    hn_free(p->key);
    hn_free(p->number);
    hn_free(p->todo);
}

static bool pair_edges(hn_machine *m, pairs *p, const hn_machine *x, const hn_machine *y, int32_t at, int32_t i, int32_t j) {
    if (i == 1 && j == 1 && !hn_machine_link(m, at, 1, -1)) return false;
    for (int32_t e = x->first[i]; e < x->first[i + 1]; e++) {
        if (x->edges[e].set < 0) {
            const int32_t to = pair_number(m, p, x->edges[e].to, j);
            if (to < 0 || !hn_machine_link(m, at, to, -1)) return false;
            continue;
        }
        for (int32_t f = y->first[j]; f < y->first[j + 1]; f++) {
            hn_ranges both = {0};
            if (y->edges[f].set < 0) continue;
            if (!intersect(&x->sets[x->edges[e].set], &y->sets[y->edges[f].set], &both)) return hn_builder_no_memory(m->b) >= 0;
            if (both.n == 0) continue;
            if (!hn_machine_put_set(m, &both)) return false;
            const int32_t to = pair_number(m, p, x->edges[e].to, y->edges[f].to);
            if (to < 0 || !hn_machine_link(m, at, to, (int32_t)m->n_sets - 1)) return false;
        }
    }
    for (int32_t f = y->first[j]; f < y->first[j + 1]; f++) {
        if (y->edges[f].set >= 0) continue;
        const int32_t to = pair_number(m, p, i, y->edges[f].to);
        if (to < 0 || !hn_machine_link(m, at, to, -1)) return false;
    }
    return true;
}

/* x becomes what both allow. */
static bool machine_and(hn_machine *x, const hn_machine *y) {
    hn_machine m = {.b = x->b, .n = 2};
    pairs p = {0};
    bool ok = pair_number(&m, &p, 0, 0) >= 0;
    for (size_t k = 0; ok && k < p.n; k++) {
        const int32_t i = (int32_t)(p.todo[k] >> 32), j = (int32_t)(uint32_t)p.todo[k];
        ok = pair_edges(&m, &p, x, y, pair_number(&m, &p, i, j), i, j);
    }
    pairs_fini(&p);
    ok = ok && hn_machine_sort(&m);
    hn_machine_fini(x);
    *x = m;
    return ok;
}

/* x becomes its texts of min to max characters (max -1: no limit). */
static bool machine_count(hn_machine *x, int32_t min, int32_t max) {
    hn_machine m = {.b = x->b, .n = 2, .sets = x->sets, .n_sets = x->n_sets, .cap_sets = x->cap_sets};
    pairs p = {0};
    bool ok = pair_number(&m, &p, 0, 0) >= 0;
    for (size_t k = 0; ok && k < p.n; k++) {
        const int32_t i = (int32_t)(p.todo[k] >> 32), length = (int32_t)(uint32_t)p.todo[k], at = pair_number(&m, &p, i, length);
        if (i == 1 && length >= min) ok = hn_machine_link(&m, at, 1, -1);
        for (int32_t e = x->first[i]; ok && e < x->first[i + 1]; e++) {
            const bool counts = x->edges[e].set >= 0 && (max >= 0 || length < min);
            if (counts && length == max) continue;
            const int32_t to = pair_number(&m, &p, x->edges[e].to, length + counts);
            ok = to >= 0 && hn_machine_link(&m, at, to, x->edges[e].set);
        }
    }
    pairs_fini(&p);
    x->sets = NULL;
    x->n_sets = 0;
    hn_machine_fini(x);
    *x = m;
    return ok;
}

/* A graph ends in its last node. */
static int32_t last_is_end(const hn_machine *m, int32_t state) {
    return state == 1 ? m->n - 1 : state == m->n - 1 ? 1 : state;
}

static hn_expr machine_expr(const hn_machine *m, hn_regex_class *class_of) {
    hn_graph_edge *edges = hn_alloc(m->n_edges * sizeof *edges);
    hn_expr *of_set = hn_alloc(m->n_sets * sizeof *of_set), e = -1;
    const hn_expr empty = hn_expr_empty(m->b);
    if (!edges || !of_set) hn_builder_no_memory(m->b);
    for (size_t i = 0; i < m->n_sets && !m->b->failed; i++) of_set[i] = class_of(m->b, &m->sets[i]);
    for (size_t i = 0; i < m->n_edges && !m->b->failed; i++) {
        const hn_machine_edge x = m->edges[i];
        edges[i] = (hn_graph_edge){last_is_end(m, x.from), last_is_end(m, x.to), x.set < 0 ? empty : of_set[x.set]};
    }
    if (!m->b->failed) e = hn_expr_graph(m->b, m->n, edges, m->n_edges);
    hn_free(edges);
    hn_free(of_set);
    return e;
}

/* ---- lengths ---- */

enum { NO_LIMIT = INT32_MAX };

static int64_t bounded(int64_t n) {
    return n > NO_LIMIT ? NO_LIMIT : n;
}

/* The least and most characters of a tree's texts; most NO_LIMIT or more: any number. */
static void lengths(const hn_regex *r, int32_t i, int64_t *least, int64_t *most) {
    const hn_regex_node *e = &r->nodes[i];
    int64_t low, high;
    *least = *most = e->kind == HN_RE_CLASS;
    if (e->kind == HN_RE_REPEAT) {
        lengths(r, e->a, &low, &high);
        *least = bounded(low * e->min);
        *most = e->max < 0 ? (high ? NO_LIMIT : 0) : bounded(high * e->max);
    }
    for (int32_t k = 0; (e->kind == HN_RE_SEQ || e->kind == HN_RE_ALT) && k < e->b; k++) {
        lengths(r, r->parts[e->a + k], &low, &high);
        if (e->kind == HN_RE_SEQ) {
            *least = bounded(*least + low);
            *most = bounded(*most + high);
        } else {
            *least = k == 0 || low < *least ? low : *least;
            *most = high > *most ? high : *most;
        }
    }
}

hn_expr hn_regex_all(hn_builder *b, const hn_regex *r, int n, int64_t min, int64_t max, hn_regex_class *class_of) {
    int64_t least, most;
    const hn_regex_node *root = &r->nodes[r->root];
    if (b->failed) return -1;
    lengths(r, r->root, &least, &most);
    const bool alone = n == 1 && !r->without;
    const bool fits = least >= min && (max < 0 || (most <= max && most < NO_LIMIT));
    if (alone && fits) return hn_regex_expr(r, class_of);
    if (min > HN_GRAMMAR_MAX_REPEAT || max > HN_GRAMMAR_MAX_REPEAT)
        return hn_builder_fail(b, HUNCH_USAGE, "%s: a bound of length above 2^30", r->where);
    if (alone && root->kind == HN_RE_REPEAT && r->nodes[root->a].kind == HN_RE_CLASS) {
        const int64_t from = root->min > min ? root->min : min, to = root->max < 0 || (max >= 0 && max < root->max) ? max : root->max;
        if (to >= 0 && to < from) return hn_expr_nothing(b);
        return hn_expr_repeat(b, class_of(b, &r->sets[r->nodes[root->a].a]), (int)from, (int)to);
    }
    hn_machine m = {.b = b}, other = {.b = b};
    bool ok = machine_of(&m, &r[0]);
    for (int i = 1; ok && i < n; i++) {
        ok = machine_of(&other, &r[i]) && machine_and(&m, &other);
        hn_machine_fini(&other);
    }
    if (ok && (min > 0 || max >= 0)) ok = machine_count(&m, (int32_t)min, (int32_t)max);
    const hn_expr e = ok ? machine_expr(&m, class_of) : -1;
    hn_machine_fini(&m);
    return e;
}
