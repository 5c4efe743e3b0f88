/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer.h - cuts a text into the words that a model's merges stay within. Read-only after open.
 *
 * A pre-tokenizer is a list of steps; each gets every piece that the one before it left. What files call Digits,
 * Punctuation, Whitespace and so on are splits by a pattern.
 */
#ifndef HN_PRETOKENIZER_H
#define HN_PRETOKENIZER_H
#include "base/status.h"

typedef struct hn_pretok hn_pretok;
typedef struct hn_pretok_work hn_pretok_work; /* scratch of one thread */

enum { HN_PRETOK_MAX_STEPS = 16 };

typedef enum hn_pretok_step_kind {
    HN_PRETOK_SPLIT,    /* at the matches of a pattern */
    HN_PRETOK_SPACE,    /* adds a space before a piece that has none */
    HN_PRETOK_LETTERS,  /* the steps behind it see bytes as the letters of byte_letters.h; words are bytes again */
    HN_PRETOK_METASPACE /* spaces become U+2581, one is added in front, each begins a word */
} hn_pretok_step_kind;

typedef enum hn_split { /* what becomes of a match and of what lies between two */
                        HN_SPLIT_ISOLATED,
                        HN_SPLIT_REMOVED, /* matches are dropped */
                        HN_SPLIT_WITH_PREVIOUS,
                        HN_SPLIT_WITH_NEXT,
                        HN_SPLIT_CONTIGUOUS /* isolated, but neighbouring matches are one word */
} hn_split;

/* Where a space is added in front: nowhere, at the start of a text, at the start of each piece. */
typedef enum hn_space_prefix { HN_SPACE_PREFIX_NONE, HN_SPACE_PREFIX_FIRST, HN_SPACE_PREFIX_EACH } hn_space_prefix;

typedef struct hn_pretok_step {
    hn_pretok_step_kind kind;
    const char *pattern; /* of a split */
    hn_split split;
    bool invert;      /* of a split: matches and what lies between them change places */
    hn_space_prefix prefix; /* of Metaspace */
    bool whole;       /* of Metaspace: no cuts */
} hn_pretok_step;

enum { HN_PRETOK_MAX_PATTERNS = 6 };

/* What a GGUF file says of its words, by the names of tokenizer.ggml.pre. */
typedef struct hn_pretok_kind {
    const char *names;                            /* with spaces between them */
    const char *patterns[HN_PRETOK_MAX_PATTERNS]; /* isolated splits one after the other, NULL-terminated if fewer */
    bool ignore_merges;                           /* a word that is a token is that token, whatever the merges say */
    bool adds_bos;                                /* unless the file says otherwise */
    bool marks; /* text with U+2581 for spaces, bytes as <0x0A>, a run of line ends that is a token is that token: not
                   byte-level */
} hn_pretok_kind;

/* HUNCH_REFUSED, listing the known names. */
hunch_status hn_pretok_find(const hn_pretok_kind **out, const char *name, size_t len, hunch_error *err);
hunch_status hn_pretok_open_kind(hn_pretok **out, const hn_pretok_kind *kind, hunch_error *err);
extern const char *const hn_pretok_gpt2; /* the pattern of GPT-2 */

hunch_status hn_pretok_open(hn_pretok **out, const hn_pretok_step *steps, size_t n, hunch_error *err);
void hn_pretok_close(hn_pretok **p);

hunch_status hn_pretok_work_open(hn_pretok_work **out, hunch_error *err);
void hn_pretok_work_close(hn_pretok_work **w);
/* A text of len bytes begins: see hn_pattern_work_begin. */
void hn_pretok_work_begin(hn_pretok_work *w, size_t len);

/* word is called with the words of a valid UTF-8 text from left to right; a status other than OK ends the walk. Words
 * live until the call returns. first: the text is the start of what the user gave. */
typedef hunch_status hn_word_fn(void *user, const char *word, size_t len, hunch_error *err);
hunch_status hn_pretok_split(const hn_pretok *p, hn_pretok_work *w, const char *text, size_t len, bool first,
                             hn_word_fn *word, void *user, hunch_error *err);
#endif
