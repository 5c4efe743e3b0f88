/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011).
 *
 * Owns the packing of a key into counter and key words. The callers in src/draft/ and src/verify/ choose the purpose
 * (contract C3).
 */
#include "base/random.h"


enum { ROUNDS = 10 };

void hn_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k0 = key[0], k1 = key[1];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t p = (uint64_t)a * 0xD2511F53u, q = (uint64_t)c * 0xCD9E8D57u;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u; /* Weyl steps: golden ratio, sqrt(3) - 1 */
        k1 += 0xBB67AE85u;
    }
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

/* position 40 bits | purpose 8 | drafter 8 | number 16 | token 32; 24 bits stay zero. */
uint64_t hn_random_u64(const hn_random_key *key) {
    const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    const uint32_t counter[4] = {
        (uint32_t)key->position,
        (uint32_t)(key->position >> 32 & 0xFF) | (key->purpose & 0xFF) << 8 | (key->drafter & 0xFF) << 16,
        key->number & 0xFFFF,
        key->token,
    };
    uint32_t out[4];
    hn_philox(counter, seed, out);
    return (uint64_t)out[1] << 32 | out[0];
}

double hn_random_uniform(const hn_random_key *key) {
    /* Middle of one of 2^52 cells: odd multiples of 2^-53 are exact, and neither 0 nor 1 is among them. */
    return (double)((hn_random_u64(key) >> 12) * 2 + 1) * 0x1p-53;
}
