/* SPDX-License-Identifier: Apache-2.0 */
/* matcher.h - a grammar over a vocabulary: which tokens may come next. States are small numbers, so a draft's path is replayed, not
 * undone, and copies of a state cost nothing. Masks are found by a walk of the vocabulary's trie and kept by state. Any thread.
 */
#ifndef HN_MATCHER_H
#define HN_MATCHER_H
#include "grammar/grammar.h"

/* The vocabulary as a trie of bytes; control tokens are symbols of their own. Read-only, one a model. */
typedef struct hn_vocab_trie hn_vocab_trie;
hunch_status hn_vocab_trie_open(hn_vocab_trie **out, const hn_tokenizer *t, int vocab, hunch_error *err);
void hn_vocab_trie_close(hn_vocab_trie **v);

typedef struct hn_matcher hn_matcher;
enum { HN_MATCH_ENDED = INT32_MAX, /* the state after an end token */
       HN_MATCH_NO = -1,     /* not allowed */
       HN_MATCH_FULL = -2 }; /* no memory, or the matcher holds as many states as it may (hn_matcher_is_full): the text cannot go on */

/* Takes the grammar, also on failure; the trie must live longer. */
hunch_status hn_matcher_open(hn_matcher **out, hn_grammar **g, const hn_vocab_trie *v, hunch_error *err);
const hn_grammar *hn_matcher_grammar(const hn_matcher *m);
void hn_matcher_close(hn_matcher **m);
/* Its states outgrew their bound: open another one for new texts. */
bool hn_matcher_is_full(hn_matcher *m);

/* Finds the masks that take long, as far as they are few: for the thread that opens it, so that those that write texts do not wait. */
void hn_matcher_prepare(hn_matcher *m);

int32_t hn_matcher_start(hn_matcher *m);
/* The state after one more token. End tokens (hn_tokenizer_is_end) are allowed at final states alone, and lead to HN_MATCH_ENDED,
 * after which nothing is allowed. */
int32_t hn_matcher_next(hn_matcher *m, int32_t state, int32_t token);
int32_t hn_matcher_bytes(hn_matcher *m, int32_t state, const char *bytes, size_t len);
/* The memory that it has by now: it grows with the texts that it is asked about. */
size_t hn_matcher_memory(hn_matcher *m);
bool hn_matcher_is_final(hn_matcher *m, int32_t state); /* the text may end here */
/* Bit id % 64 of mask[id / 64] for every id that is allowed, [(vocab + 63) / 64], ids without bytes are not. Returns how many are; vocab:
 * all are, and the mask is not written. Negative: HN_MATCH_FULL. */
int hn_matcher_mask(hn_matcher *m, int32_t state, uint64_t *mask);
/* The bytes that every continuation begins with, at most cap of them. Returns their number; 0 where the text may end. */
size_t hn_matcher_forced(hn_matcher *m, int32_t state, char *bytes, size_t cap);
#endif
