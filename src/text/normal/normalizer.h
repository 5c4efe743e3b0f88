/* SPDX-License-Identifier: Apache-2.0 */
/* normalizer.h - normalises a text before it is split into words: Unicode forms, case, white space, replacements. A list of
 * steps, read-only after open. */
#ifndef HN_NORMALIZER_H
#define HN_NORMALIZER_H
#include "text/normal/charsmap.h"
#include "text/split/pattern.h"

typedef enum hn_normal_kind {
    HN_NORMAL_NFC,
    HN_NORMAL_NFD,
    HN_NORMAL_NFKC,
    HN_NORMAL_NFKD,
    HN_NORMAL_LOWERCASE,
    HN_NORMAL_STRIP,         /* removes white space at the ends that left and right select */
    HN_NORMAL_STRIP_ACCENTS, /* removes marks */
    HN_NORMAL_NMT,           /* SentencePiece's rule: removes controls, white space becomes a space */
    HN_NORMAL_REPLACE,       /* replaces every match of pattern, or every string, by content */
    HN_NORMAL_PREPEND,       /* puts content before a text that is not empty */
    HN_NORMAL_CHARSMAP,      /* SentencePiece's compiled rules; longest: see charsmap.h */
    HN_NORMAL_SPACES         /* runs of spaces become one, those at the ends are removed, one is put in front */
} hn_normal_kind;

enum { HN_NORMAL_MAX_STEPS = 16, HN_NORMAL_MAX_CONTENT = 64 };

typedef struct hn_normal_step {
    hn_normal_kind kind;
    bool left, right;    /* strip */
    const char *string;  /* replace: NULL if a pattern is given */
    const char *pattern; /* replace */
    const char *content; /* replace, prepend: at most HN_NORMAL_MAX_CONTENT bytes */
    const char *charsmap;
    size_t n_charsmap;
    hn_charsmap_rule rule;
} hn_normal_step;

typedef struct hn_normalizer hn_normalizer;
typedef struct hn_normal_work hn_normal_work; /* work memory of one thread */

/* Copies the data that the steps point to. */
hunch_status hn_normalizer_open(hn_normalizer **out, const hn_normal_step *steps, size_t n, hunch_error *err);
void hn_normalizer_close(hn_normalizer **n);

hunch_status hn_normal_work_open(hn_normal_work **out, hunch_error *err);
void hn_normal_work_close(hn_normal_work **w);
typedef struct hn_normal_text {
    const char *bytes; /* valid UTF-8; lives until the next call with this work area */
    size_t len;
    bool lost_start; /* the start of the text was removed */
} hn_normal_text;

/* text: valid UTF-8. HUNCH_USAGE if the result would have more than 16 times its bytes plus 4,096. */
hunch_status hn_normalize(const hn_normalizer *n, hn_normal_work *w, const char *text, size_t len, hn_normal_text *out,
                          hunch_error *err);
#endif
