/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - regular expressions from untrusted files: PCRE2 over UTF-8 with Unicode's classes, and limits on the cost of
 * a match. Patterns are read-only after open; a work area belongs to one thread. */
#ifndef HN_PATTERN_H
#define HN_PATTERN_H
#include "base/status.h"

typedef struct hn_pattern hn_pattern;
typedef struct hn_pattern_work hn_pattern_work;

/* HUNCH_REFUSED with the offset and PCRE2's message if it is not a valid pattern. */
hunch_status hn_pattern_open(hn_pattern **out, const char *text, hunch_error *err);
void hn_pattern_close(hn_pattern **p);

/* Translates a pattern of a tokenizer.json from Oniguruma's syntax to PCRE2's (hn_alloc'ed). HUNCH_REFUSED for constructs
 * that differ between the two and cannot be translated. */
hunch_status hn_pattern_translate(char **out, const char *text, hunch_error *err);
/* A pattern that matches the string itself (hn_alloc'ed). NULL: no memory. */
char *hn_pattern_quote(const char *text);

hunch_status hn_pattern_work_open(hn_pattern_work **out, hunch_error *err);
void hn_pattern_work_close(hn_pattern_work **w);
/* Begins a text of len bytes: limits all searches until the next call to a few seconds, plus some per megabyte. */
void hn_pattern_work_begin(hn_pattern_work *w, size_t len);
/* Sets the limit to this many seconds of the thread's processor time from now on. */
void hn_pattern_work_limit(hn_pattern_work *w, double seconds);

/* Finds the next non-empty match in valid UTF-8 text[0, end), from byte `at` on: [*from, *to). HUNCH_REFUSED if the search
 * exceeds the limits. */
hunch_status hn_pattern_find(const hn_pattern *p, hn_pattern_work *w, const char *text, size_t at, size_t end,
                             bool *found, size_t *from, size_t *to, hunch_error *err);
#endif
