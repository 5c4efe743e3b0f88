/* SPDX-License-Identifier: Apache-2.0 */
/* dart_trie.h - reads the n-gram tries that DART's release writes and publishes (2601.19278) into one of ours (trie_build.h),
 * which gives the same look-ups at two thirds of the size or less, and is mapped, not read.
 *
 *   little endian:  u64 order, u64 nodes, and for each node, the root first, parents before their children:
 *                   i32 token, u64 parent, i32 count, u64 children, and for each child i32 token, u64 node
 *
 * A node's count is the number of occurrences of its path; the part that its children do not have are ends of texts. */
#ifndef HN_DART_TRIE_H
#define HN_DART_TRIE_H
#include "train/data/trie_build.h"

/* Whether the file at path begins like such a trie and unlike a text. */
bool hn_dart_trie_is(const char *path);
/* Adds its counts, of tokens below `vocab`; the file does not name the tokenizer. Needs 16 bytes of memory per node
 * while reading. HUNCH_REFUSED: another order than 3, damaged, tokens that the model does not have. HUNCH_FAILED,
 * HUNCH_NO_MEMORY. stop: HUNCH_CANCELLED once it is set. */
hunch_status hn_dart_trie_add(hn_trie_build *b, const char *path, int vocab, const volatile int *stop,
                              hunch_error *err);
#endif
