/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - counter-based random streams without hidden state (Philox 4x32-10, Salmon et al. 2011). Contract C3.
 *
 * Every number is a function of its key. Plain sampling and `match` are keyed by (seed, token position, purpose, token
 * id); proposals, acceptances and residuals by (seed, position of the round's root, purpose, drafter, number of the
 * candidate, token id). Proposal noise and verification noise never share a purpose.
 */
#ifndef HN_RANDOM_H
#define HN_RANDOM_H
#include <stdint.h>

enum hn_purpose {
    HN_PURPOSE_TARGET = 1,   /* the target's own draw at a token position */
    HN_PURPOSE_PROPOSAL = 2, /* a drafter's independent draw */
    HN_PURPOSE_ACCEPT = 3,     /* acceptance */
    HN_PURPOSE_RESIDUAL = 4,
    HN_PURPOSE_FORCED = 5,   /* the forced drafter's choice of right or wrong */
    HN_PURPOSE_XTC = 6       /* part of the target's distribution: whether XTC acts at a token position */
};

typedef struct hn_random_key {
    uint64_t seed;
    uint64_t position; /* of the token, or of the round's root */
    uint32_t purpose;  /* enum hn_purpose */
    uint32_t drafter;  /* 0 where the key has none */
    uint32_t number;   /* of the candidate, 0 where the key has none */
    uint32_t token;    /* token id, 0 where the key has none */
} hn_random_key;

/* The bare block function: 4 words of counter, 2 of key. */
void hn_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Position < 2^40, purpose < 2^8, drafter < 2^8, number < 2^16: packed without overlap, so distinct keys give
 * distinct counters. */
uint64_t hn_random_u64(const hn_random_key *key);
double hn_random_uniform(const hn_random_key *key); /* in (0, 1): never 0, never 1; 2^52 values */

/* A small sequential generator for tests and tools (SplitMix64). */
static inline uint64_t hn_splitmix(uint64_t *s) {
    uint64_t z = (*s += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
#endif
