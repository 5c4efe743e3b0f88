/* SPDX-License-Identifier: Apache-2.0 */
/* automaton.c - the tables of an automaton: nodes of stacks, states and their transitions, each kept once. Threads are followed in
 * closure.c. */
#include "grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/number_index.h"
#include "grammar/closure.h"

enum { MAX_BYTES = 96 << 20, /* of all tables of one automaton */
       MAX_THREADS = 1 << 12, /* of a state, and edges of a node: so many, and one for each instruction */
       FIRST_INDEX = 1024 };

/* ---- classes of bytes that no set tells apart ---- */

static void classes_find(hn_automaton *a) {
    uint64_t sign[256] = {0};
    const hn_grammar *g = a->g;
    for (size_t i = 0; i < g->n_sets; i++) {
        const uint64_t h = hn_hash_word(hn_hash_word(0, i + 1), 0x243F6A8885A308D3u);
        for (unsigned b = 0; b < 256; b++)
            if (hn_byte_set_has(&g->sets[i], b)) sign[b] += h;
    }
    for (unsigned b = 0; b < 256; b++) {
        int c = 0;
        while (c < a->n_classes && sign[a->byte_of[c]] != sign[b]) c++;
        a->class_of[b] = (uint8_t)c;
        if (c == a->n_classes) a->byte_of[a->n_classes++] = (uint8_t)b;
    }
}

/* ---- tables ---- */

size_t hn_automaton_bytes(const hn_automaton *a) {
    return a->cap_nodes * sizeof *a->nodes + a->cap_edges * sizeof *a->edges + a->cap_states * sizeof *a->states +
           a->cap_threads * sizeof *a->threads + (a->cap_rows + a->cap_node_index + a->cap_state_index) * sizeof(int32_t);
}

static int32_t fill(hn_automaton *a) {
    a->full = true;
    return HN_STATE_FULL;
}

static int compare_threads(const void *x, const void *y) {
    const hn_thread *a = x, *b = y;
    return a->pc != b->pc ? (a->pc < b->pc ? -1 : 1) : a->node != b->node ? (a->node < b->node ? -1 : 1) : 0;
}

/* Sorted, each once. */
static size_t threads_sort(hn_thread *t, size_t n) {
    size_t kept = 0;
    if (n > 1) qsort(t, n, sizeof *t, compare_threads);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || compare_threads(&t[kept - 1], &t[i]) != 0) t[kept++] = t[i];
    return kept;
}

static uint32_t hash_node(int32_t proc, int32_t count, bool accept, const hn_thread *edges, size_t n) {
    const uint64_t h = hn_hash_word(hn_hash_word(accept, (uint32_t)proc), (uint32_t)count);
    return (uint32_t)(n ? hn_bytes_hash(edges, n * sizeof *edges, h) : h);
}

static uint64_t hash_of_node(const void *automaton, size_t i) {
    const hn_automaton *a = automaton;
    return a->nodes[i].hash;
}

/* A node whose counter, and those below it, are only as exact as one token can tell. */
static int32_t node_near(hn_automaton *a, int32_t i) {
    const hn_stack_node x = a->nodes[i];
    const hn_proc *p = &a->g->procs[x.proc];
    int32_t count = x.count;
    if (p->loop && count >= 0) {
        const bool far = p->max < 0 || p->max - count > a->horizon;
        const int32_t least = hn_automaton_least(a, x.proc);
        if (far && count + 1 >= least) count = HN_COUNT_ANY;
        if (far && count >= 0 && least - count > a->horizon) count = HN_COUNT_MORE;
    }
    bool same = count == x.count;
    for (uint32_t k = 0; k < x.n && same; k++) same = a->nodes[a->edges[x.first + k].node].near == a->edges[x.first + k].node;
    if (same) return i;
    hn_thread *edges = hn_alloc(x.n * sizeof *edges);
    if (!edges) return fill(a);
    for (uint32_t k = 0; k < x.n; k++) {
        const hn_thread e = a->edges[x.first + k];
        edges[k] = (hn_thread){e.pc, a->nodes[e.node].near};
    }
    const int32_t near = hn_automaton_put_node(a, x.proc, count, x.accept, edges, x.n);
    hn_free(edges);
    return near;
}

static void shape_find(const hn_automaton *a, hn_stack_node *x) {
    uint64_t sum = hn_hash_word(x->accept, (uint32_t)x->proc);
    x->counted = a->g->procs[x->proc].loop;
    for (uint32_t k = 0; k < x->n; k++) { /* in any order: edges are sorted by their nodes' numbers */
        const hn_thread e = a->edges[x->first + k];
        sum += hn_hash_word(a->nodes[e.node].shape, (uint32_t)e.pc);
        x->counted |= a->nodes[e.node].counted;
    }
    x->shape = (uint32_t)hn_hash_word(sum, x->n);
}

int32_t hn_automaton_put_node(hn_automaton *a, int32_t proc, int32_t count, bool accept, hn_thread *edges, size_t n) {
    n = threads_sort(edges, n);
    if (2 * (a->n_nodes + 1) > a->cap_node_index &&
        !hn_number_index_grow(&a->node_index, &a->cap_node_index, FIRST_INDEX, 0, a->n_nodes, hash_of_node, a))
        return fill(a);
    const uint32_t hash = hash_node(proc, count, accept, edges, n);
    size_t at = hash & (a->cap_node_index - 1);
    for (; a->node_index[at]; at = (at + 1) & (a->cap_node_index - 1)) {
        const hn_stack_node *x = &a->nodes[a->node_index[at] - 1];
        if (x->proc == proc && x->count == count && x->accept == accept && x->n == n &&
            (n == 0 || memcmp(a->edges + x->first, edges, n * sizeof *edges) == 0))
            return a->node_index[at] - 1;
    }
    if (n > MAX_THREADS + a->g->n_code || hn_automaton_bytes(a) > MAX_BYTES ||
        !hn_grow((void **)&a->nodes, &a->cap_nodes, a->n_nodes + 1, sizeof *a->nodes) ||
        !hn_grow((void **)&a->edges, &a->cap_edges, a->n_edges + n, sizeof *a->edges))
        return fill(a);
    if (n) memcpy(a->edges + a->n_edges, edges, n * sizeof *edges);
    const int32_t i = (int32_t)a->n_nodes++;
    hn_stack_node x = {.proc = proc, .count = count, .n = (uint32_t)n, .near = i, .hash = hash, .accept = accept};
    x.first = (uint32_t)a->n_edges;
    shape_find(a, &x);
    a->nodes[i] = x;
    a->n_edges += n;
    a->node_index[at] = i + 1;
    if (a->has_loops) {
        const int32_t near = node_near(a, i);
        if (near < 0) return near;
        a->nodes[i].near = near;
    }
    return i;
}

static uint64_t hash_state(bool final, const hn_thread *threads, size_t n) {
    return n ? hn_bytes_hash(threads, n * sizeof *threads, final) : final;
}

static uint64_t hash_of_state(const void *automaton, size_t i) {
    const hn_automaton *a = automaton;
    const hn_state *x = &a->states[i];
    return hash_state(x->final, a->threads + x->first, x->n);
}

static bool rows_grow(hn_automaton *a) {
    const size_t k = (size_t)a->n_classes, need = (a->n_states + 1) * k;
    if (!hn_grow((void **)&a->rows, &a->cap_rows, need, sizeof *a->rows)) return false;
    for (size_t c = 0; c < k; c++) a->rows[a->n_states * k + c] = HN_STATE_UNKNOWN;
    return true;
}

int32_t hn_automaton_put_state(hn_automaton *a, bool final, hn_thread *threads, size_t n) {
    n = threads_sort(threads, n);
    if (n == 0 && !final) return HN_STATE_NONE;
    if (2 * (a->n_states + 1) > a->cap_state_index &&
        !hn_number_index_grow(&a->state_index, &a->cap_state_index, FIRST_INDEX, 0, a->n_states, hash_of_state, a))
        return fill(a);
    size_t at = hash_state(final, threads, n) & (a->cap_state_index - 1);
    for (; a->state_index[at]; at = (at + 1) & (a->cap_state_index - 1)) {
        const hn_state *x = &a->states[a->state_index[at] - 1];
        if (x->final == final && x->n == n && (n == 0 || memcmp(a->threads + x->first, threads, n * sizeof *threads) == 0))
            return a->state_index[at] - 1;
    }
    if (n > MAX_THREADS + a->g->n_code || hn_automaton_bytes(a) > MAX_BYTES || !rows_grow(a) ||
        !hn_grow((void **)&a->states, &a->cap_states, a->n_states + 1, sizeof *a->states) ||
        !hn_grow((void **)&a->threads, &a->cap_threads, a->n_threads + n, sizeof *a->threads))
        return fill(a);
    hn_state s = {.first = (uint32_t)a->n_threads, .n = (uint32_t)n, .near = a->has_loops ? HN_STATE_UNKNOWN : (int32_t)a->n_states,
                  .final = final};
    for (size_t k = 0; k < n; k++) *(a->g->code[threads[k].pc].json ? &s.json : &s.other) = true;
    if (n) memcpy(a->threads + a->n_threads, threads, n * sizeof *threads);
    a->n_threads += n;
    a->states[a->n_states] = s;
    a->state_index[at] = (int32_t)a->n_states + 1;
    return (int32_t)a->n_states++;
}

/* ---- transitions ---- */

int32_t hn_automaton_find_byte(hn_automaton *a, int32_t state, unsigned byte_class) {
    const hn_state s = a->states[state];
    const unsigned byte = a->byte_of[byte_class];
    bool ok = true;
    if (a->full) return HN_STATE_FULL;
    hn_closure_begin(a->work);
    for (uint32_t i = 0; i < s.n && ok; i++) {
        const hn_thread t = a->threads[s.first + i];
        const hn_instr *c = &a->g->code[t.pc];
        if (c->op == HN_OP_SET && hn_byte_set_has(&a->g->sets[c->x], byte)) ok = hn_closure_push(a->work, c->y, t.node);
    }
    const int32_t to = ok ? hn_closure_finish(a, a->work) : fill(a);
    if (to != HN_STATE_FULL) a->rows[(size_t)state * (size_t)a->n_classes + byte_class] = to;
    return to;
}

int32_t hn_automaton_control(hn_automaton *a, int32_t state, int32_t name) {
    const hn_state s = a->states[state];
    bool ok = true;
    if (a->full) return HN_STATE_FULL;
    hn_closure_begin(a->work);
    for (uint32_t i = 0; i < s.n && ok; i++) {
        const hn_thread t = a->threads[s.first + i];
        const hn_instr *c = &a->g->code[t.pc];
        const bool fits = c->op == HN_OP_TOKEN ? c->x == name : c->op == HN_OP_CONTROLS && c->x != name;
        if (fits) ok = hn_closure_push(a->work, c->y, t.node);
    }
    return ok ? hn_closure_finish(a, a->work) : fill(a);
}

/* A state of some threads of another, changed by `of`; -1: left out. */
static int32_t state_of(hn_automaton *a, int32_t state, bool near) {
    const hn_state s = a->states[state];
    hn_thread *threads = hn_alloc(s.n * sizeof *threads);
    if (!threads) return fill(a);
    size_t n = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        hn_thread t = a->threads[s.first + i];
        if (near) t.node = a->nodes[t.node].near;
        if (near || !a->g->code[t.pc].json) threads[n++] = t;
    }
    const int32_t to = hn_automaton_put_state(a, s.final, threads, n);
    hn_free(threads);
    return to;
}

int32_t hn_automaton_near(hn_automaton *a, int32_t state) {
    if (a->states[state].near != HN_STATE_UNKNOWN) return a->states[state].near;
    const int32_t near = state_of(a, state, true);
    if (near >= 0) a->states[state].near = a->states[near].near = near;
    return near;
}

int32_t hn_automaton_without_json(hn_automaton *a, int32_t state) {
    return a->states[state].other ? state_of(a, state, false) : HN_STATE_NONE;
}

/* ---- open and close ---- */

static bool start(hn_automaton *a) {
    if (!hn_grow((void **)&a->edges, &a->cap_edges, 1, sizeof *a->edges) || /* there, also if there will be none */
        !hn_grow((void **)&a->threads, &a->cap_threads, 1, sizeof *a->threads))
        return false;
    const int32_t root = hn_automaton_put_node(a, 0, 0, true, NULL, 0);
    if (root < 0) return false;
    hn_closure_begin(a->work);
    if (!hn_closure_push(a->work, a->g->procs[0].start, root)) return false;
    a->start = hn_closure_finish(a, a->work);
    return a->start != HN_STATE_FULL;
}

hunch_status hn_automaton_open(hn_automaton **out, const hn_grammar *g, const uint8_t *is_control, bool any_control, int horizon,
                               hunch_error *err) {
    hn_automaton *a = hn_zalloc(1, sizeof *a);
    *out = NULL;
    if (!a) return hn_fail_memory(err, "a grammar's states", sizeof *a);
    a->g = g;
    a->is_control = is_control;
    a->horizon = horizon;
    for (size_t i = 0; i < g->n_procs; i++) a->has_loops |= g->procs[i].loop;
    classes_find(a);
    hunch_status s = hn_grammar_facts_find(&a->facts, g, is_control, any_control, err);
    if (!s && (!hn_closure_open(&a->work) || !start(a)))
        s = a->work && hn_closure_is_over(a->work) ? hn_fail(err, HUNCH_USAGE, "the grammar begins in more than %d ways", HN_CLOSURE_MOST)
                                                   : hn_fail_memory(err, "a grammar's states", hn_automaton_bytes(a));
    if (!s && a->start < 0) s = hn_fail(err, HUNCH_USAGE, "no text of this vocabulary matches the grammar");
    if (s)
        hn_automaton_close(&a);
    else
        *out = a;
    return s;
}

void hn_automaton_close(hn_automaton **out) {
    hn_automaton *a = *out;
    if (!a) return;
    hn_grammar_facts_fini(&a->facts);
    hn_closure_close(&a->work);
    hn_free(a->nodes);
    hn_free(a->edges);
    hn_free(a->states);
    hn_free(a->threads);
    hn_free(a->rows);
    hn_free(a->node_index);
    hn_free(a->state_index);
    hn_free(a);
    *out = NULL;
}
