/* SPDX-License-Identifier: Apache-2.0 */
/* matcher_private.h - a matcher's parts: matcher.c steps, matcher_mask.c finds masks. Both under its lock. */
#ifndef HN_MATCHER_PRIVATE_H
#define HN_MATCHER_PRIVATE_H
#include <pthread.h>

#include "grammar/automaton.h"
#include "grammar/keys_seen.h"
#include "grammar/vocab_trie.h"

enum { HN_MASK_BYTES = 24 << 20 /* of masks that are kept */, HN_MASKS_LEAST = 16 };

typedef struct hn_kept_mask {
    int32_t state; /* of the automaton; -1: none */
    int count;
    bool used; /* since the hand of the clock passed it */
    uint64_t *bits;
} hn_kept_mask;

/* A state of the matcher: the automaton's, and inside of JSON the keys of its open objects. */
typedef struct hn_joint {
    int32_t state, keys;
} hn_joint;

typedef struct hn_state_loop {
    uint64_t kinds;  /* that stay in the state, */
    uint64_t closed; /* and hn_kinds_closed, if it was looked for */
    uint32_t visits, closure; /* closure: the newest one that has the state */
    bool looked;
} hn_state_loop;

struct hn_matcher {
    pthread_mutex_t lock;
    hn_joint *joints; /* by the matcher's states; a grammar without JSON has none, and its states are the automaton's */
    int32_t *joint_index;
    size_t n_joints, cap_joints, cap_joint_index;
    hn_keys_seen keys;
    bool joints_full;
    int32_t start;
    hn_grammar *grammar;
    const hn_vocab_trie *vocab;
    uint8_t *is_control;  /* [names of the grammar] */
    int32_t *control_of;  /* [names] their ids, -1: text */
    hn_automaton *states;
    int32_t *walk;  /* [longest token + 1] the states on a walk's path, */
    uint64_t *stay; /* and the kinds of characters that stay in each */
    hn_state_loop *loops; /* by the automaton's states */
    size_t cap_loops;
    uint32_t closures; /* that were looked for */
    hn_kept_mask *masks;
    size_t n_masks, n_bits, hand; /* n_bits: masks that have bits */
    int32_t *mask_of; /* [states of the automaton] which mask, and one; 0: none */
    size_t cap_mask_of;
};

/* The bits of an automaton's state, until the next call; *count: how many. NULL: HN_MATCH_FULL. */
const uint64_t *hn_matcher_bits(hn_matcher *m, int32_t state, int *count);

/* ---- steps by kinds of characters (matcher_kinds.c) ---- */
/* The kinds whose characters all lead to *to, which is where small letters lead; 0: not even these do. */
uint64_t hn_kinds_to(hn_automaton *a, int32_t state, int32_t *to);
uint64_t hn_kinds_dead(hn_automaton *a, int32_t state); /* all of whose characters lead nowhere */
/* Kinds, small letters among them, of which every text may follow a state; 0: none are found. */
uint64_t hn_kinds_closed(hn_matcher *m, int32_t state);
hn_state_loop *hn_state_loop_of(hn_matcher *m, int32_t state); /* NULL: no memory */

/* ---- joint states (matcher_joint.c) ---- */
hn_joint hn_joint_of(const hn_matcher *m, int32_t number);
int32_t hn_joint_number(hn_matcher *m, hn_joint j);
/* After one more byte; state HN_STATE_NONE or HN_STATE_FULL: none. */
hn_joint hn_joint_byte(hn_matcher *m, hn_joint j, unsigned char byte);
/* Takes the tokens out of a mask that would end a key twice. False: full. */
bool hn_joint_filter(hn_matcher *m, hn_joint j, uint64_t *mask, int *count);
#endif
