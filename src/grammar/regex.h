/* SPDX-License-Identifier: Apache-2.0 */
/* regex.h - regular expressions as trees, for grammar_regex.c and the patterns, formats and lengths of JSON strings.
 *
 * ECMAScript's without assertions but ^ and $ (regex_parse.c). A tree is made of what a text must be from its first character to its last
 * (regex_anchors.c): then it becomes an expression, or several become one that all allow (regex_all.c).
 */
#ifndef HN_REGEX_H
#define HN_REGEX_H
#include "grammar/grammar_ranges.h"

typedef enum hn_regex_kind {
    HN_RE_EMPTY,
    HN_RE_CLASS,  /* a: set */
    HN_RE_SEQ,    /* a: first of its parts, b: their number */
    HN_RE_ALT,
    HN_RE_REPEAT, /* a: body; min, max */
    HN_RE_START,  /* ^ */
    HN_RE_END     /* $ */
} hn_regex_kind;

typedef struct hn_regex_node {
    uint8_t kind;
    bool anchors; /* ^ or $ is in it */
    int32_t a, b, min, max;
} hn_regex_node;

typedef struct hn_regex {
    hn_builder *b; /* which keeps failures */
    const char *where; /* before messages */
    hn_regex_node *nodes;
    size_t n_nodes, cap_nodes;
    int32_t *parts;
    size_t n_parts, cap_parts;
    hn_ranges *sets;
    size_t n_sets, cap_sets;
    int32_t any; /* the class of all characters; -1: not there yet */
    int32_t root;
    bool without; /* the texts that it does not match are meant: readers may read it as widely as any of them does */
} hn_regex;

/* False: a failure, which the builder keeps. search: the text needs only contain it. Finish it in any case. */
bool hn_regex_open(hn_regex *r, hn_builder *b, const char *where, const char *text, size_t len, bool search);
bool hn_regex_open_without(hn_regex *r, hn_builder *b, const char *text, size_t len); /* for hn_regex_all: what does not contain it */
bool hn_regex_words(hn_regex *r, hn_builder *b, const hn_word *word, size_t n, bool without); /* (regex_without.c) */
void hn_regex_fini(hn_regex *r);
/* One character of a set: as its UTF-8, or as JSON strings have it. */
typedef hn_expr hn_regex_class(hn_builder *b, const hn_ranges *set);
hn_expr hn_regex_expr(const hn_regex *r, hn_regex_class *class_of);
/* The texts that all allow (or do not, those that are `without`), of min to max characters (max -1: no limit). n >= 1. */
hn_expr hn_regex_all(hn_builder *b, const hn_regex *r, int n, int64_t min, int64_t max, hn_regex_class *class_of);

/* ---- between its files; -1: failed ---- */
int32_t hn_regex_put(hn_regex *r, hn_regex_node node);
int32_t hn_regex_list(hn_regex *r, hn_regex_kind kind, const int32_t *part, size_t n);
int32_t hn_regex_set(hn_regex *r, hn_ranges *set); /* takes the set, sorted */
int32_t hn_regex_anchor(hn_regex *r, bool search); /* the tree without ^ and $ (regex_anchors.c) */
/* Adds \d \w \s and their opposites, or \p{..} and \P{..}, whose letter is cls and whose property is name [len]. Where readers of the
 * expression disagree about a character it is in the set only if `wide`. False: no memory, or (*known false) there is no such set. */
bool hn_regex_shorthand(hn_builder *b, hn_ranges *to, char cls, const char *name, size_t len, bool wide, bool *known);
void hn_regex_properties_free(hn_builder *b); /* what the builder keeps for that */
#endif
