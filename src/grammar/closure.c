/* SPDX-License-Identifier: Apache-2.0 */
/* closure.c - follows threads to the instructions that wait for a byte.
 *
 * Calls that begin here are "fresh": all callers of one procedure are one fresh node, whose places to return to are known only when
 * everything was followed. A fresh call that ends at once is not followed, as its caller goes on without it where it may be empty
 * (hn_proc_is_nullable). Calls cannot be in a circle (grammar_facts.c refuses left recursion), so that the nodes can be put into the
 * tables from the innermost on.
 */
#include "grammar/closure.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { INHERITS = -1 /* an edge to all that the node returns to */ };

typedef struct fresh {
    int32_t proc, count;
    int32_t edges; /* the last of a list; -1: none */
    int32_t node;  /* in the tables; -1: not yet */
} fresh;

typedef struct fresh_edge {
    hn_thread to;
    int32_t next;
} fresh_edge;

typedef struct seen {
    uint64_t key;
    uint32_t stamp;
    int32_t value;
} seen;

struct hn_closure {
    hn_thread *todo, *out, *edges_of; /* threads to follow, threads that wait, a node's edges */
    size_t n_todo, cap_todo, n_out, cap_out, cap_edges_of, n_edges_of;
    fresh *fresh;
    size_t n_fresh, cap_fresh;
    fresh_edge *edges;
    size_t n_edges, cap_edges;
    int32_t *path; /* of fresh nodes that are put into the tables */
    size_t cap_path;
    seen *table;
    size_t n_seen, cap_table;
    uint32_t stamp;
    bool final;
};

bool hn_closure_open(hn_closure **out) {
    *out = hn_zalloc(1, sizeof **out);
    return *out != NULL;
}

void hn_closure_close(hn_closure **out) {
    hn_closure *c = *out;
    if (!c) return;
    hn_free(c->todo);
    hn_free(c->out);
    hn_free(c->edges_of);
    hn_free(c->fresh);
    hn_free(c->edges);
    hn_free(c->path);
    hn_free(c->table);
    hn_free(c);
    *out = NULL;
}

void hn_closure_begin(hn_closure *c) {
    c->n_todo = c->n_out = c->n_fresh = c->n_edges = c->n_seen = 0;
    c->final = false;
    if (++c->stamp == 0) { /* all stamps were used */
        for (size_t i = 0; i < c->cap_table; i++) c->table[i].stamp = 0;
        c->stamp = 1;
    }
}

/* ---- what was seen: threads, and calls by procedure and count ---- */

static bool table_grow(hn_closure *c) {
    const size_t wide = c->cap_table ? 2 * c->cap_table : 256;
    seen *table = hn_zalloc(wide, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < c->cap_table; i++) {
        if (c->table[i].stamp != c->stamp) continue;
        size_t at = hn_hash_word(0, c->table[i].key) & (wide - 1);
        while (table[at].stamp) at = (at + 1) & (wide - 1);
        table[at] = c->table[i];
    }
    hn_free(c->table);
    c->table = table;
    c->cap_table = wide;
    return true;
}

/* The entry of a key, added with value -1 if it is new. NULL: no memory, or too many. */
static seen *find(hn_closure *c, uint64_t key) {
    if (c->n_seen >= HN_CLOSURE_MOST) return NULL;
    if (2 * (c->n_seen + 1) > c->cap_table && !table_grow(c)) return NULL;
    size_t at = hn_hash_word(0, key) & (c->cap_table - 1);
    while (c->table[at].stamp == c->stamp && c->table[at].key != key) at = (at + 1) & (c->cap_table - 1);
    if (c->table[at].stamp != c->stamp) {
        c->table[at] = (seen){key, c->stamp, -1};
        c->n_seen++;
    }
    return &c->table[at];
}

/* Instructions are below 2^31: the highest bit tells calls from threads. */
static uint64_t thread_key(int32_t pc, int32_t node) {
    return (uint64_t)(uint32_t)pc << 32 | (uint32_t)node;
}

static uint64_t call_key(int32_t proc, int32_t count) {
    return (uint64_t)1 << 63 | (uint64_t)(uint32_t)proc << 32 | (uint32_t)count;
}

bool hn_closure_push(hn_closure *c, int32_t pc, int32_t node) {
    seen *s = find(c, thread_key(pc, node));
    if (!s) return false;
    if (s->value >= 0) return true;
    s->value = 0;
    if (!hn_grow((void **)&c->todo, &c->cap_todo, c->n_todo + 1, sizeof *c->todo)) return false;
    c->todo[c->n_todo++] = (hn_thread){pc, node};
    return true;
}

/* ---- calls and returns ---- */

/* A call of proc, entered with an edge. */
static bool enter(const hn_automaton *a, hn_closure *c, int32_t proc, int32_t count, hn_thread edge) {
    seen *s = find(c, call_key(proc, count));
    if (!s || !hn_grow((void **)&c->edges, &c->cap_edges, c->n_edges + 1, sizeof *c->edges)) return false;
    const bool isnew = s->value < 0;
    if (isnew) {
        if (!hn_grow((void **)&c->fresh, &c->cap_fresh, c->n_fresh + 1, sizeof *c->fresh)) return false;
        c->fresh[c->n_fresh] = (fresh){proc, count, -1, -1};
        s->value = (int32_t)c->n_fresh++;
    }
    const int32_t f = s->value;
    c->edges[c->n_edges] = (fresh_edge){edge, c->fresh[f].edges};
    c->fresh[f].edges = (int32_t)c->n_edges++;
    return !isnew || hn_closure_push(c, a->g->procs[proc].start, ~f);
}

static int32_t proc_of(const hn_automaton *a, const hn_closure *c, int32_t node) {
    return node < 0 ? c->fresh[~node].proc : a->nodes[node].proc;
}

static bool call(const hn_automaton *a, hn_closure *c, const hn_instr *i, int32_t node) {
    const hn_grammar *g = a->g;
    if (!a->facts.live[i->y]) return true;
    if (hn_proc_is_nullable(g, &a->facts, i->x) && !hn_closure_push(c, i->y, node)) return false;
    if (!a->facts.live[g->procs[i->x].start]) return true;
    /* The last thing of a rule returns to where the rule returns to; the body of a loop must come back to count. */
    const bool last = g->code[i->y].op == HN_OP_END && !g->procs[proc_of(a, c, node)].loop;
    return enter(a, c, i->x, 0, (hn_thread){last ? INHERITS : i->y, node});
}

static bool again(const hn_automaton *a, hn_closure *c, int32_t node, bool *ends) {
    const hn_stack_node *x = &a->nodes[node];
    const hn_proc *p = &a->g->procs[x->proc];
    int32_t done = x->count;
    if (done >= 0) {
        done++;
        *ends = done >= hn_automaton_least(a, x->proc);
        if (p->max >= 0 && done >= p->max) return true;
        if (p->max < 0 && *ends) done = HN_COUNT_ANY;
    } else {
        *ends = done == HN_COUNT_ANY;
    }
    return enter(a, c, x->proc, done, (hn_thread){INHERITS, node});
}

static bool end(const hn_automaton *a, hn_closure *c, int32_t node) {
    bool ends = true;
    if (node < 0) return true;
    if (a->g->procs[a->nodes[node].proc].loop && !again(a, c, node, &ends)) return false;
    const hn_stack_node *x = &a->nodes[node];
    if (!ends) return true;
    c->final |= x->accept;
    for (uint32_t k = 0; k < x->n; k++)
        if (!hn_closure_push(c, a->edges[x->first + k].pc, a->edges[x->first + k].node)) return false;
    return true;
}

static bool follow(const hn_automaton *a, hn_closure *c, hn_thread t) {
    const hn_instr *i = &a->g->code[t.pc];
    if (!a->facts.live[t.pc]) return true;
    switch ((hn_op)i->op) {
    case HN_OP_DEAD: return true;
    case HN_OP_SET:
    case HN_OP_TOKEN:
    case HN_OP_CONTROLS:
        if (!hn_grow((void **)&c->out, &c->cap_out, c->n_out + 1, sizeof *c->out)) return false;
        c->out[c->n_out++] = t;
        return true;
    case HN_OP_IF:
    case HN_OP_JUMP: return hn_closure_push(c, i->y, t.node); /* live: what it asks for holds */
    case HN_OP_SPLIT:
        for (int32_t k = i->y; k-- > 0;)
            if (!hn_closure_push(c, a->g->targets[i->x + k], t.node)) return false;
        return true;
    case HN_OP_CALL: return call(a, c, i, t.node);
    case HN_OP_END: return end(a, c, t.node);
    }
    return false;
}

/* ---- fresh nodes into the tables ---- */

static bool put_edge(hn_closure *c, hn_thread e) {
    if (!hn_grow((void **)&c->edges_of, &c->cap_edges_of, c->n_edges_of + 1, sizeof *c->edges_of)) return false;
    c->edges_of[c->n_edges_of++] = e;
    return true;
}

/* All nodes that its edges lead to are in the tables. */
static int32_t put_fresh(hn_automaton *a, hn_closure *c, int32_t f) {
    bool accept = false;
    c->n_edges_of = 0;
    for (int32_t e = c->fresh[f].edges; e >= 0; e = c->edges[e].next) {
        hn_thread to = c->edges[e].to;
        if (to.node < 0) to.node = c->fresh[~to.node].node;
        if (to.pc != INHERITS) {
            if (!put_edge(c, to)) return HN_STATE_FULL;
            continue;
        }
        accept |= a->nodes[to.node].accept;
        for (uint32_t k = 0; k < a->nodes[to.node].n; k++)
            if (!put_edge(c, a->edges[a->nodes[to.node].first + k])) return HN_STATE_FULL;
    }
    c->n_edges_of = hn_threads_prune(a, c->edges_of, c->n_edges_of);
    return hn_automaton_put_node(a, c->fresh[f].proc, c->fresh[f].count, accept, c->edges_of, c->n_edges_of);
}

/* The first fresh node that f's edges lead to and that is not in the tables yet; -1: none. */
static int32_t missing(const hn_closure *c, int32_t f) {
    for (int32_t e = c->fresh[f].edges; e >= 0; e = c->edges[e].next) {
        const int32_t node = c->edges[e].to.node;
        if (node < 0 && c->fresh[~node].node < 0) return ~node;
    }
    return -1;
}

static int32_t settle(hn_automaton *a, hn_closure *c, int32_t f) {
    size_t n = 0;
    if (!hn_grow((void **)&c->path, &c->cap_path, c->n_fresh, sizeof *c->path)) return HN_STATE_FULL;
    c->path[n++] = f;
    while (n) {
        const int32_t at = c->path[n - 1], inner = c->fresh[at].node >= 0 ? -1 : missing(c, at);
        if (inner >= 0) {
            c->path[n++] = inner;
            continue;
        }
        if (c->fresh[at].node < 0) c->fresh[at].node = put_fresh(a, c, at);
        if (c->fresh[at].node < 0) return HN_STATE_FULL;
        n--;
    }
    return c->fresh[f].node;
}

int32_t hn_closure_finish(hn_automaton *a, hn_closure *c) {
    bool ok = true;
    while (ok && c->n_todo) ok = follow(a, c, c->todo[--c->n_todo]);
    for (size_t i = 0; ok && i < c->n_out; i++) {
        if (c->out[i].node < 0) c->out[i].node = settle(a, c, ~c->out[i].node);
        ok = c->out[i].node >= 0;
    }
    if (!ok) {
        a->full = true;
        return HN_STATE_FULL;
    }
    c->n_out = hn_threads_prune(a, c->out, c->n_out);
    return hn_automaton_put_state(a, c->final, c->out, c->n_out);
}

bool hn_closure_is_over(const hn_closure *c) {
    return c->n_seen >= HN_CLOSURE_MOST;
}
