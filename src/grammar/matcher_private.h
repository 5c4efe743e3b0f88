/* SPDX-License-Identifier: Apache-2.0 */
/* matcher_private.h - a matcher's parts: matcher.c steps, matcher_mask.c finds masks. Both under its lock. */
#ifndef HN_MATCHER_PRIVATE_H
#define HN_MATCHER_PRIVATE_H
#include <pthread.h>

#include "grammar/automaton.h"
#include "grammar/vocab_trie.h"

enum { HN_MASK_BYTES = 24 << 20 /* of masks that are kept */, HN_MASKS_LEAST = 16, HN_RESTS = 16 };

typedef struct hn_kept_mask {
    int32_t state; /* of the automaton; -1: none */
    int count;
    bool used; /* since the hand of the clock passed it */
    uint64_t *bits;
} hn_kept_mask;

struct hn_matcher {
    pthread_mutex_t lock;
    hn_grammar *grammar;
    const hn_vocab_trie *vocab;
    uint8_t *is_control;  /* [names of the grammar] */
    int32_t *control_of;  /* [names] their ids, -1: text */
    hn_automaton *states;
    int32_t *walk; /* [longest token + 1] the states on a walk's path */
    hn_kept_mask *masks;
    size_t n_masks, hand;
    int32_t *mask_of; /* [states of the automaton] which mask, and one; 0: none */
    size_t cap_mask_of;
    hn_vocab_rest rests[HN_RESTS];
    size_t n_rests;
};

/* The bits of an automaton's state, until the next call; *count: how many. NULL: HN_MATCH_FULL. */
const uint64_t *hn_matcher_bits(hn_matcher *m, int32_t state, int *count);
#endif
