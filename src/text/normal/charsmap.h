/* SPDX-License-Identifier: Apache-2.0 */
/* charsmap.h - SentencePiece's precompiled normalisation rules: a double-array trie over byte strings whose values are
 * offsets into a list of replacements. Untrusted bytes: every step through the trie is checked. */
#ifndef HN_CHARSMAP_H
#define HN_CHARSMAP_H
#include "base/status.h"

typedef struct hn_charsmap {
    uint32_t *units;
    size_t n_units;
    char *texts; /* each NUL-terminated */
    size_t n_texts;
} hn_charsmap;

/* How rules are matched in a text. SentencePiece takes the longest rule that matches at a place; the `tokenizers`
 * package looks up grapheme clusters, then characters, and takes the shortest rule that a cluster begins with. */
typedef enum hn_charsmap_rule { HN_CHARSMAP_LONGEST, HN_CHARSMAP_CLUSTERS } hn_charsmap_rule;

/* Copies the bytes. HUNCH_REFUSED if they are not a charsmap. */
hunch_status hn_charsmap_init(hn_charsmap *m, const char *bytes, size_t n, hunch_error *err);
void hn_charsmap_fini(hn_charsmap *m);

/* The replacement of the longest, or shortest, rule that s begins with; NULL: none. *used: bytes of s that the rule
 * matches. */
const char *hn_charsmap_find(const hn_charsmap *m, const char *s, size_t len, bool longest, size_t *used);
#endif
