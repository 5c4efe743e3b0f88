/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer.h - splits a text into words, within which merges apply. Read-only after open.
 *
 * A pre-tokenizer is a list of steps; each receives every piece of the one before. The types Digits, Punctuation,
 * Whitespace and so on of files are splits by a pattern.
 */
#ifndef HN_PRETOKENIZER_H
#define HN_PRETOKENIZER_H
#include "base/status.h"

typedef struct hn_pretok hn_pretok;
typedef struct hn_pretok_work hn_pretok_work; /* work memory of one thread */

enum { HN_PRETOK_MAX_STEPS = 16 };

typedef enum hn_pretok_step_kind {
    HN_PRETOK_SPLIT,    /* at the matches of a pattern */
    HN_PRETOK_SPACE,    /* adds a space before a piece that has none */
    HN_PRETOK_LETTERS,  /* for later steps bytes become the letters of byte_letters.h; words are bytes again */
    HN_PRETOK_METASPACE /* spaces become U+2581, one is added in front, each begins a word */
} hn_pretok_step_kind;

typedef enum hn_split { /* how a text is split at matches */
                        HN_SPLIT_ISOLATED,
                        HN_SPLIT_REMOVED, /* matches are dropped */
                        HN_SPLIT_WITH_PREVIOUS,
                        HN_SPLIT_WITH_NEXT,
                        HN_SPLIT_CONTIGUOUS /* isolated, but neighbouring matches are one word */
} hn_split;

/* Where a space is added: nowhere, at the start of a text, at the start of each piece. */
typedef enum hn_space_prefix { HN_SPACE_PREFIX_NONE, HN_SPACE_PREFIX_FIRST, HN_SPACE_PREFIX_EACH } hn_space_prefix;

typedef struct hn_pretok_step {
    hn_pretok_step_kind kind;
    const char *pattern; /* of a split */
    hn_split split;
    bool invert;      /* of a split: matches and the text between them are exchanged */
    hn_space_prefix prefix; /* of Metaspace */
    bool whole;       /* of Metaspace: no cuts */
} hn_pretok_step;

enum { HN_PRETOK_MAX_PATTERNS = 6 };

/* A pre-tokenizer of GGUF files, by the names of tokenizer.ggml.pre. */
typedef struct hn_pretok_kind {
    const char *names;                            /* with spaces between them */
    const char *patterns[HN_PRETOK_MAX_PATTERNS]; /* isolated splits one after the other, NULL-terminated if fewer */
    bool ignore_merges;                           /* a word that is a token becomes that token, without merges */
    bool adds_bos;                                /* unless the file specifies it */
    bool marks; /* not byte-level: U+2581 for spaces, bytes as <0x0A>; a run of line ends that is a token becomes that
                   token */
} hn_pretok_kind;

/* HUNCH_REFUSED, listing the known names. */
hunch_status hn_pretok_find(const hn_pretok_kind **out, const char *name, size_t len, hunch_error *err);
hunch_status hn_pretok_open_kind(hn_pretok **out, const hn_pretok_kind *kind, hunch_error *err);
extern const char *const hn_pretok_gpt2; /* the pattern of GPT-2 */

hunch_status hn_pretok_open(hn_pretok **out, const hn_pretok_step *steps, size_t n, hunch_error *err);
void hn_pretok_close(hn_pretok **p);

hunch_status hn_pretok_work_open(hn_pretok_work **out, hunch_error *err);
void hn_pretok_work_close(hn_pretok_work **w);
/* Begins a text of len bytes: see hn_pattern_work_begin. */
void hn_pretok_work_begin(hn_pretok_work *w, size_t len);

/* Calls word with the words of a valid UTF-8 text from left to right; a status other than OK ends it. A word is valid until
 * its call returns. first: the text is the start of the user's text. */
typedef hunch_status hn_word_fn(void *user, const char *word, size_t len, hunch_error *err);
hunch_status hn_pretok_split(const hn_pretok *p, hn_pretok_work *w, const char *text, size_t len, bool first,
                             hn_word_fn *word, void *user, hunch_error *err);
#endif
