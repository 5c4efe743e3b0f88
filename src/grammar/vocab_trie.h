/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_trie.h - the vocabulary as a trie of the bytes that tokens have in a text, its nodes in depth-first order, so that a walk is a
 * loop over an array; control and end tokens are lists beside it. Opened and closed by matcher.h.
 *
 * Tokens know which kinds of characters they have. A state in which all characters of some kinds lead to one and the same state, as
 * inside a string, allows all tokens of these kinds together, and only the others are walked.
 */
#ifndef HN_VOCAB_TRIE_H
#define HN_VOCAB_TRIE_H
#include "grammar/matcher.h"

typedef struct hn_trie_node {
    uint32_t skip;    /* the next node that is not below this one */
    uint32_t token;   /* the first of its tokens, in tokens */
    uint16_t depth;   /* bytes before this one */
    uint16_t n_tokens;
    uint8_t byte;
} hn_trie_node;

/* Kinds of characters: small and capital letters, digits, the space, each other character of punctuation, ... */
enum { HN_KIND_LOWER, HN_KIND_UPPER, HN_KIND_DIGIT, HN_KIND_SPACE, HN_KIND_MARKS, HN_KIND_TAB = HN_KIND_MARKS + 32, HN_KIND_LINE,
       HN_KIND_RETURN, HN_KIND_CONTROL, HN_KIND_DELETE, HN_KIND_WIDE /* above ASCII */, HN_KINDS, HN_KIND_BROKEN = 63 /* not UTF-8 */ };
#define HN_KIND(k) ((uint64_t)1 << (k))
/* Characters that are themselves in JSON strings: all but control characters, the quote and the backslash. */
#define HN_KINDS_IN_STRING                                                                                         \
    ((HN_KIND(HN_KINDS) - 1) & ~(HN_KIND(HN_KIND_MARKS + 1) | HN_KIND(HN_KIND_MARKS + 23) | HN_KIND(HN_KIND_TAB) | \
                                 HN_KIND(HN_KIND_LINE) | HN_KIND(HN_KIND_RETURN) | HN_KIND(HN_KIND_CONTROL)))

struct hn_vocab_trie {
    const hn_tokenizer *tokenizer;
    int vocab, max_bytes;
    hn_trie_node *nodes;
    uint64_t *below;  /* [nodes] kinds of all tokens at a node and below it, */
    uint16_t *widest; /* and the most characters that one has */
    size_t n_nodes, cap_nodes;
    int32_t *tokens; /* in the order of the nodes */
    size_t n_tokens;
    uint64_t *kinds; /* [tokens], */
    uint16_t *chars; /* and their characters */
    int32_t *ends, *controls; /* controls: that end nothing */
    size_t n_ends, n_controls;
    uint64_t *in_string;        /* the mask of tokens of HN_KINDS_IN_STRING; */
    hn_trie_node *beside;       /* the nodes that have others at or below them, as a trie of their own */
    size_t n_beside;
    int32_t *quoted; /* tokens with quotes, the first n_quoted_twice with more than one; behind them those with commas or brackets alone */
    size_t n_quoted, n_quoted_twice, n_marked;
};

/* The kind of an ASCII character. */
int hn_kind_of(unsigned char c);
/* Its id, -1: no control token (that ends nothing) has the name. */
int32_t hn_vocab_control(const hn_vocab_trie *v, const char *name);

/* Whether all tokens at a node and below it are of these kinds, with at most `chars` characters. */
static inline bool hn_vocab_covered(const hn_vocab_trie *v, size_t node, uint64_t kinds, int chars) {
    return (v->below[node] & ~kinds) == 0 && v->widest[node] <= chars;
}
#endif
