/* SPDX-License-Identifier: Apache-2.0 */
/* keyed_hash.c - see keyed_hash.h. */
#include "base/keyed_hash.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/random.h"

void hn_hash_key(uint64_t key[2]) {
    const size_t bytes = 2 * sizeof *key;
    if (getrandom(key, bytes, GRND_NONBLOCK) == (ssize_t)bytes) return;
    uint64_t seed = (uint64_t)(hn_now() * 1e9) ^ (uint64_t)(uintptr_t)key;
    key[0] = hn_splitmix(&seed);
    key[1] = hn_splitmix(&seed);
}

static inline uint64_t rotate(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], int n) {
    while (n-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void add_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

uint64_t hn_keyed_hash(const uint64_t key[2], const void *bytes, size_t len) {
    const unsigned char *p = bytes;
    /* "somepseudorandomlygeneratedbytes" */
    uint64_t v[4] = {key[0] ^ 0x736F6D6570736575u, key[1] ^ 0x646F72616E646F6Du, key[0] ^ 0x6C7967656E657261u,
                     key[1] ^ 0x7465646279746573u};
    uint64_t word;
    size_t left = len;
    for (; left >= 8; p += 8, left -= 8) {
        memcpy(&word, p, 8);
        add_word(v, word);
    }
    word = (uint64_t)len << 56;
    for (size_t i = 0; i < left; i++) word |= (uint64_t)p[i] << 8 * i;
    add_word(v, word);
    v[2] ^= 0xFF;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
