/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - regular expressions that a file may have chosen: PCRE2 over UTF-8 with Unicode's classes, and bounds on
 * what a match may cost. Patterns are read-only after open; a work area belongs to one thread. */
#ifndef HN_PATTERN_H
#define HN_PATTERN_H
#include "base/status.h"

typedef struct hn_pattern hn_pattern;
typedef struct hn_pattern_work hn_pattern_work;

/* HUNCH_REFUSED with the place and PCRE2's reason if it is not a pattern. */
hunch_status hn_pattern_open(hn_pattern **out, const char *text, hunch_error *err);
void hn_pattern_close(hn_pattern **p);

/* The patterns of a tokenizer.json are Oniguruma's. Gives PCRE2's spelling of one (hn_alloc'ed); what the two read
 * differently and we do not rewrite is refused. */
hunch_status hn_pattern_translate(char **out, const char *text, hunch_error *err);
/* A pattern that matches the string itself (hn_alloc'ed). NULL: no memory. */
char *hn_pattern_quote(const char *text);

hunch_status hn_pattern_work_open(hn_pattern_work **out, hunch_error *err);
void hn_pattern_work_close(hn_pattern_work **w);
/* A text of len bytes begins: all searches until the next call may take a few seconds, and some more a megabyte. */
void hn_pattern_work_begin(hn_pattern_work *w, size_t len);
/* From now on so many seconds of this thread's processor time. */
void hn_pattern_work_limit(hn_pattern_work *w, double seconds);

/* The next match that is not empty of valid UTF-8 text[0, end), from byte `at` on: [*from, *to). HUNCH_REFUSED where the
 * pattern backtracks beyond the bounds. */
hunch_status hn_pattern_find(const hn_pattern *p, hn_pattern_work *w, const char *text, size_t at, size_t end,
                             bool *found, size_t *from, size_t *to, hunch_error *err);
#endif
