/* SPDX-License-Identifier: Apache-2.0 */
/* regex_machine.h - regular expressions as machines over characters, for products (regex_all.c) and opposites (regex_without.c). */
#ifndef HN_REGEX_MACHINE_H
#define HN_REGEX_MACHINE_H
#include "grammar/regex.h"

enum { HN_MACHINE_STATES = 100000, HN_MACHINE_EDGES = 400000 };

typedef struct hn_machine_edge {
    int32_t from, to;
    int32_t set; /* -1: by no character */
} hn_machine_edge;

/* From state 0 to state 1. */
typedef struct hn_machine {
    hn_builder *b;
    int32_t n;
    hn_machine_edge *edges;
    size_t n_edges, cap_edges;
    hn_ranges *sets;
    size_t n_sets, cap_sets;
    int32_t *first; /* [n + 1] of each state's edges, when they are sorted */
} hn_machine;

void hn_machine_fini(hn_machine *m);
/* False: a failure, which the builder keeps. */
bool hn_machine_link(hn_machine *m, int32_t from, int32_t to, int32_t set);
bool hn_machine_put_set(hn_machine *m, hn_ranges *set); /* takes the set */
bool hn_machine_sort(hn_machine *m);                    /* its edges by the state that they leave */
bool hn_machine_too_large(hn_machine *m);               /* false */
/* It becomes the machine of all texts that it does not allow; sorted before and after. (regex_without.c) */
bool hn_machine_opposite(hn_machine *m);
#endif
