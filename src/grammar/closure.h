/* SPDX-License-Identifier: Apache-2.0 */
/* closure.h - threads that wait for a byte, from threads at any instruction: follows branches, calls and returns (closure.c), for
 * automaton.c alone. */
#ifndef HN_CLOSURE_H
#define HN_CLOSURE_H
#include "grammar/automaton.h"

/* Of threads: at an instruction; node below 0: ~number of a call that began in this closure. */
bool hn_closure_open(hn_closure **out);
void hn_closure_close(hn_closure **c);
void hn_closure_begin(hn_closure *c);
bool hn_closure_push(hn_closure *c, int32_t pc, int32_t node);
enum { HN_CLOSURE_MOST = 1 << 18 /* threads that one closure follows */ };
bool hn_closure_is_over(const hn_closure *c); /* it failed for there were more */
/* *state: of all that was pushed. HN_STATE_NONE if no thread is left and the text may not end. */
int32_t hn_closure_finish(hn_automaton *a, hn_closure *c);

/* Leaves out threads that can do nothing but what another one can, as their loops have run more often. Returns how many stay. (prune.c) */
size_t hn_threads_prune(const hn_automaton *a, hn_thread *t, size_t n);

/* ---- what automaton.c keeps (node and state tables) ---- */
int32_t hn_automaton_put_node(hn_automaton *a, int32_t proc, int32_t count, bool accept, hn_thread *edges, size_t n);
int32_t hn_automaton_put_state(hn_automaton *a, bool final, hn_thread *threads, size_t n);
#endif
