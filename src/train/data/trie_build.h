/* SPDX-License-Identifier: Apache-2.0 */
/* trie_build.h - counts runs of one, two and three tokens of texts of any size in bounded memory, and writes them as a trie
 * (draft/shape/ngram_trie.h).
 *
 * Each token with the two after it is one number. Numbers are collected, sorted, counted and written to runs, which are
 * merged at the end: in their order pairs and triples have the order of the file. */
#ifndef HN_TRIE_BUILD_H
#define HN_TRIE_BUILD_H
#include "base/status.h"

typedef struct hn_trie_build hn_trie_build;

/* For tokens below `vocab`, at most 2^21 - 2, of that tokenizer (hn_trie_tokenizer). room: numbers in memory, 16 bytes
 * each. Runs are in an unnamed file in the folder of `path` (base/scratch.h). HUNCH_REFUSED, HUNCH_NO_MEMORY; *b is
 * NULL then. */
hunch_status hn_trie_build_open(hn_trie_build **b, const char *path, int vocab, uint64_t tokenizer, size_t room, hunch_error *err);
/* Appends tokens to the current text; ends: the next ones start another text. Is a hn_text_take (draft/text_tokens.h). */
hunch_status hn_trie_build_add(void *b, const int32_t *ids, size_t n, bool ends, hunch_error *err);
/* Adds counts of another trie: n tokens (1 to 3), below vocab, occurred `times` times, and if there are fewer than 3,
 * without another token after them. */
hunch_status hn_trie_build_count(hn_trie_build *b, const int32_t *ids, int n, uint64_t times, hunch_error *err);
/* Writes the file, completely or not at all. HUNCH_REFUSED: no text had any token; more than 2^32 - 2 pairs or triples. */
hunch_status hn_trie_build_finish(hn_trie_build *b, hunch_error *err);
uint64_t hn_trie_build_tokens(const hn_trie_build *b); /* so far */
void hn_trie_build_close(hn_trie_build **b);           /* NULL is fine */
#endif
