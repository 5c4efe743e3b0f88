/* SPDX-License-Identifier: Apache-2.0 */
/* trie_build.h - counts runs of one, two and three tokens of texts of any size in bounded memory, and writes them as a trie
 * (draft/ngram_trie.h).
 *
 * Each token with the two behind it is one number. Numbers are gathered, sorted, counted and put aside in runs, which are merged at
 * the end: in their order pairs and triples come as the file has them. */
#ifndef HN_TRIE_BUILD_H
#define HN_TRIE_BUILD_H
#include "base/status.h"

typedef struct hn_trie_build hn_trie_build;

/* Of tokens below `vocab`, at most 2^21 - 2, of that tokenizer (hn_trie_tokenizer). room: numbers in memory, 16 bytes each. What is put
 * aside lies beside `path` without a name (base/scratch.h). HUNCH_REFUSED, HUNCH_NO_MEMORY; *b is NULL then. */
hunch_status hn_trie_build_open(hn_trie_build **b, const char *path, int vocab, uint64_t tokenizer, size_t room, hunch_error *err);
/* Tokens behind those before them; ends: the next ones begin another text. Is a hn_text_take (draft/text_tokens.h). */
hunch_status hn_trie_build_add(void *b, const int32_t *ids, size_t n, bool ends, hunch_error *err);
/* Counts that were made elsewhere: n tokens (1 to 3), below vocab, stood behind each other so often, and where they are fewer than 3 no other
 * token behind them. */
hunch_status hn_trie_build_count(hn_trie_build *b, const int32_t *ids, int n, uint64_t times, hunch_error *err);
/* Writes the file, whole or not at all. HUNCH_REFUSED: no text had any token; more than 2^32 - 2 pairs or triples. */
hunch_status hn_trie_build_finish(hn_trie_build *b, hunch_error *err);
uint64_t hn_trie_build_tokens(const hn_trie_build *b); /* so far */
void hn_trie_build_close(hn_trie_build **b);           /* NULL is fine */
#endif
