/* SPDX-License-Identifier: Apache-2.0 */
/* keyed_hash.h - SipHash-2-4 (Aumasson, Bernstein 2012): for tables of what strangers send. Who does not know the key cannot choose texts
 * that meet in one bucket. Fast hashes of trusted data: hash.h. */
#ifndef HN_KEYED_HASH_H
#define HN_KEYED_HASH_H
#include <stddef.h>
#include <stdint.h>

/* A key that nobody can guess, from the system's random numbers; without these from the clock and an address. */
void hn_hash_key(uint64_t key[2]);
uint64_t hn_keyed_hash(const uint64_t key[2], const void *bytes, size_t len);

#endif
