/* SPDX-License-Identifier: Apache-2.0 */
/* automaton.h - runs a grammar's program over bytes and control tokens: every way in which the text so far can be read at once.
 *
 * A way is a thread: an instruction that waits for a byte, and the stack of calls that it is in. Stacks are shared: a node is one call,
 * with all places that it may return to, and equal nodes are one node; so ambiguity adds places to nodes, and does not multiply stacks
 * (this is Earley's algorithm with positions forgotten). A state is a set of threads, and a small number; its transitions are found when
 * they are first asked for and kept. A call that ends a rule takes its caller's place, so that recursion at an end needs no stack.
 *
 * A loop counts in its node. Of what is far from its bounds, farther than the longest token, the count does not matter: hn_automaton_near
 * forgets it, so that the states of a long string have one mask.
 */
#ifndef HN_AUTOMATON_H
#define HN_AUTOMATON_H
#include "grammar/grammar_private.h"

enum { HN_STATE_NONE = -1, /* no thread goes on */
       HN_STATE_FULL = -2, /* no memory, or a bound */
       HN_STATE_UNKNOWN = -3 };
enum { HN_COUNT_ANY = -1,    /* a loop that may end or go on, */
       HN_COUNT_MORE = -2 }; /* or must go on, for longer than a token */

typedef struct hn_thread {
    int32_t pc, node;
} hn_thread;

typedef struct hn_stack_node {
    int32_t proc, count;
    uint32_t first, n; /* edges: the instruction that it returns to, and the node that this is in */
    int32_t near;
    uint32_t hash, shape; /* shape: a hash of all but the counts, here and below */
    bool counted; /* it has a count, or one is below it */
    bool accept; /* it is in the root's place: when it ends, the text may end */
} hn_stack_node;

typedef struct hn_state {
    uint32_t first, n; /* threads */
    int32_t near;
    bool final;
    bool json, other; /* some threads are in JSON, some are not */
} hn_state;

typedef struct hn_closure hn_closure;

typedef struct hn_automaton {
    const hn_grammar *g;
    const uint8_t *is_control; /* [names] */
    hn_grammar_facts facts;
    int32_t horizon; /* bytes of the longest token */
    uint8_t class_of[256], byte_of[256];
    int n_classes;
    bool has_loops, full;
    hn_stack_node *nodes;
    size_t n_nodes, cap_nodes;
    hn_thread *edges; /* of nodes */
    size_t n_edges, cap_edges;
    hn_state *states;
    size_t n_states, cap_states;
    hn_thread *threads; /* of states */
    size_t n_threads, cap_threads;
    int32_t *rows; /* [state][class] the next state */
    size_t cap_rows;
    int32_t *node_index, *state_index; /* hash tables, of numbers and one */
    size_t cap_node_index, cap_state_index;
    hn_closure *work;
    int32_t start;
} hn_automaton;

/* is_control [names of g], any_control: whether the vocabulary has the name as a control token, and any that ends nothing; must live as
 * long as g. max_bytes: of memory. */
hunch_status hn_automaton_open(hn_automaton **out, const hn_grammar *g, const uint8_t *is_control, bool any_control, int horizon,
                               hunch_error *err);
void hn_automaton_close(hn_automaton **a);
size_t hn_automaton_bytes(const hn_automaton *a);

int32_t hn_automaton_find_byte(hn_automaton *a, int32_t state, unsigned byte_class);
/* By one byte. */
static inline int32_t hn_automaton_byte(hn_automaton *a, int32_t state, unsigned char byte) {
    const unsigned c = a->class_of[byte];
    const int32_t to = a->rows[(size_t)state * (size_t)a->n_classes + c];
    return to != HN_STATE_UNKNOWN ? to : hn_automaton_find_byte(a, state, c);
}
/* By a control token: the number of its name, -1: it has none in the grammar. */
int32_t hn_automaton_control(hn_automaton *a, int32_t state, int32_t name);
/* How often a loop's body must run: a body that may be empty need not run. */
static inline int32_t hn_automaton_least(const hn_automaton *a, int32_t proc) {
    const hn_proc *p = &a->g->procs[proc];
    return a->facts.nullable[p->start] ? 0 : p->min;
}
/* The state that allows the same tokens, as far as counters matter. */
int32_t hn_automaton_near(hn_automaton *a, int32_t state);
/* Its threads that are not in JSON. */
int32_t hn_automaton_without_json(hn_automaton *a, int32_t state);
#endif
