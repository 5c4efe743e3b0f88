/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - fast hashes of bytes, 8 at a time, and of tokens; not resistant to deliberate collisions. */
#ifndef HN_HASH_H
#define HN_HASH_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The hash of what has hash h and of a word after it. */
static inline uint64_t hn_hash_word(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

static inline uint64_t hn_hash_tokens(uint64_t h, const int32_t *token, int n) {
    for (int i = 0; i < n; i++) h = hn_hash_word(h, (uint32_t)token[i]);
    return h;
}

/* To hash bytes in pieces, pass the hash of one piece as the seed of the next. */
static inline uint64_t hn_bytes_hash(const void *bytes, size_t len, uint64_t seed) {
    const unsigned char *p = bytes;
    uint64_t h = seed ^ len * 0x9E3779B97F4A7C15u, word;
    for (; len >= 8; p += 8, len -= 8) {
        memcpy(&word, p, 8);
        h = (h ^ word) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, p, len);
    h = (h ^ word) * 0xD6E8FEB86659FD93u;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
    return h ^ h >> 32;
}
#endif
