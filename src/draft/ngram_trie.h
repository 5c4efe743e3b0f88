/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_trie.h - how often which token followed one token or two in a corpus: the n-gram model of order 3 that DART's trees ask
 * (2601.19278), in a file that is mapped and never read whole. `hunch train trie` writes it (train/trie_build.h).
 *
 * Little endian:
 *
 *   header    64 bytes, hn_trie_header
 *   singles   {u32 count, u32 first}          [vocabulary + 1]   of each token: how often, where its pairs begin; ends with the end
 *   pairs     {u32 token, u32 count, u32 first}   [pairs + 1]    behind a token, rising; where its triples begin
 *   triples   {u32 token, u32 count}              [triples]      behind a pair, rising
 *
 * Counts stay at UINT32_MAX. The header is checked when it is opened, with the sizes; what lies behind it is never believed: a
 * range outside its part is empty, a probability is at most 1. */
#ifndef HN_NGRAM_TRIE_H
#define HN_NGRAM_TRIE_H
#include "base/file.h"
#include "text/tokenizer.h"

enum { HN_TRIE_ORDER = 3, HN_TRIE_CONTEXT = HN_TRIE_ORDER - 1, HN_TRIE_VERSION = 1 };
#define HN_TRIE_MAGIC "HUNCHTRI"

typedef struct hn_trie_header {
    char magic[8];
    uint32_t version, order;
    uint64_t tokenizer; /* hn_trie_tokenizer of whose tokens they are */
    uint64_t vocab, pairs, triples;
    uint64_t tokens;    /* of the corpus */
    uint64_t check;     /* hn_trie_check of what stands before it */
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

/* A number for the tokens of a tokenizer, the same from a GGUF and from a folder. */
uint64_t hn_trie_tokenizer(const hn_tokenizer *t);
uint64_t hn_trie_check(const hn_trie_header *h);

/* tokenizer: of the texts that it will be asked about. HUNCH_REFUSED: none of these files, damaged, of other tokens. HUNCH_FAILED. */
hunch_status hn_trie_open(hn_trie *t, const char *path, const hn_tokenizer *tokenizer, hunch_error *err);
void hn_trie_close(hn_trie *t); /* zeroed is fine */
/* p[i]: how often token[i] followed, of how often there was what it follows: the longest end of context[n_context], of one token or
 * two, that it ever followed; else 0. Before the first question of a round hn_map_check says whether the file is still itself. */
void hn_trie_ask(const hn_trie *t, const int32_t *context, int n_context, const int32_t *token, int n, float *p);
#endif
