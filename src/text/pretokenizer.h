/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer.h - cuts a text into the words that byte-level BPE merges within. Read-only after open. */
#ifndef HN_PRETOKENIZER_H
#define HN_PRETOKENIZER_H
#include "base/status.h"

typedef struct hn_pretok hn_pretok;
typedef struct hn_pretok_work hn_pretok_work; /* scratch of one thread */

enum { HN_PRETOK_MAX_PATTERNS = 8 };

/* What a file says of its words, by the name that GGUF's tokenizer.ggml.pre uses. */
typedef struct hn_pretok_kind {
    const char *name;
    const char *patterns[HN_PRETOK_MAX_PATTERNS]; /* applied one after the other, NULL-terminated */
    bool ignore_merges;                           /* a word that is a token is that token, whatever the merges say */
    bool adds_bos;                                /* unless the file says otherwise */
} hn_pretok_kind;

/* HUNCH_REFUSED, listing the known names. */
hunch_status hn_pretok_find(const hn_pretok_kind **out, const char *name, size_t len, hunch_error *err);
extern const char *const hn_pretok_gpt2; /* the pattern of GPT-2 */

/* Each pattern cuts every piece that the ones before it left into its matches and what lies between them. */
hunch_status hn_pretok_open(hn_pretok **out, const char *const *patterns, size_t n, hunch_error *err);
void hn_pretok_close(hn_pretok **p);

hunch_status hn_pretok_work_open(hn_pretok_work **out, hunch_error *err);
void hn_pretok_work_close(hn_pretok_work **w);

/* word is called with the words of a valid UTF-8 text from left to right; a status other than OK ends the walk. */
typedef hunch_status hn_word_fn(void *user, const char *word, size_t len, hunch_error *err);
hunch_status hn_pretok_split(const hn_pretok *p, hn_pretok_work *w, const char *text, size_t len, hn_word_fn *word,
                             void *user, hunch_error *err);
#endif
