/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_trie.h - counts of the tokens that followed one token or two in a corpus: the n-gram model of order 3 that DART's trees use
 * (2601.19278), in a file that is mapped and never read as a whole. `hunch train trie` writes it (train/data/trie_build.h).
 *
 * Little endian:
 *
 *   header    64 bytes, hn_trie_header
 *   singles   {u32 count, u32 first}          [vocabulary + 1]   of each token: its count, index of its first pair; the last: the end
 *   pairs     {u32 token, u32 count, u32 first}   [pairs + 1]    after a token, ascending; index of its first triple
 *   triples   {u32 token, u32 count}              [triples]      after a pair, ascending
 *
 * Counts saturate at UINT32_MAX. The header and the sizes are checked when it is opened; the parts after it are never trusted: a
 * range outside its part is empty, a probability is at most 1. */
#ifndef HN_NGRAM_TRIE_H
#define HN_NGRAM_TRIE_H
#include "base/file.h"
#include "text/tokenizer/tokenizer.h"

enum { HN_TRIE_ORDER = 3, HN_TRIE_CONTEXT = HN_TRIE_ORDER - 1, HN_TRIE_VERSION = 1 };
#define HN_TRIE_MAGIC "HUNCHTRI"

typedef struct hn_trie_header {
    char magic[8];
    uint32_t version, order;
    uint64_t tokenizer; /* hn_trie_tokenizer of the tokenizer that made the tokens */
    uint64_t vocab, pairs, triples;
    uint64_t tokens;    /* of the corpus */
    uint64_t check;     /* hn_trie_check of the fields before it */
} hn_trie_header;
_Static_assert(sizeof(hn_trie_header) == 64, "as the file has it");
typedef struct hn_trie_single {
    uint32_t count, first;
} hn_trie_single;
typedef struct hn_trie_pair {
    uint32_t token, count, first;
} hn_trie_pair;
typedef struct hn_trie_triple {
    uint32_t token, count;
} hn_trie_triple;

typedef struct hn_trie {
    hn_map map;
    hn_trie_header head;
    const hn_trie_single *single;
    const hn_trie_pair *pair;
    const hn_trie_triple *triple;
} hn_trie;

/* A hash of the tokens of a tokenizer, the same from a GGUF and from a folder. */
uint64_t hn_trie_tokenizer(const hn_tokenizer *t);
uint64_t hn_trie_check(const hn_trie_header *h);

/* tokenizer: of the texts that it will be queried for. HUNCH_REFUSED: not such a file, damaged, of other tokens. HUNCH_FAILED. */
hunch_status hn_trie_open(hn_trie *t, const char *path, const hn_tokenizer *tokenizer, hunch_error *err);
void hn_trie_close(hn_trie *t); /* zeroed is fine */
/* p[i]: the share of token[i] among the tokens that followed a context: the longest end of context[n_context], of one token or
 * two, that token[i] ever followed; else 0. Before the first query of a round hn_map_check checks that the file was not changed. */
void hn_trie_query(const hn_trie *t, const int32_t *context, int n_context, const int32_t *token, int n, float *p);
#endif
