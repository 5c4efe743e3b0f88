/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer_scan.h - hand-written scanners for the two most used patterns. A scanner decides matches of ASCII alone and
 * leaves others to PCRE2 at the same place, so that Unicode's classes are PCRE2's and the result never depends on which of
 * the two searched. */
#ifndef HN_PRETOKENIZER_SCAN_H
#define HN_PRETOKENIZER_SCAN_H
#include <stddef.h>

/* A scanner looks for the next match from `at` on. MATCH: it is [*from, *to). UNDECIDED: PCRE2 must search, from *from on.
 * NONE: there is none. */
typedef enum hn_scan { HN_SCAN_NONE, HN_SCAN_MATCH, HN_SCAN_UNDECIDED } hn_scan;
typedef hn_scan hn_scanner(const char *text, size_t at, size_t end, size_t *from, size_t *to);

/* NULL: none for this pattern. */
hn_scanner *hn_scanner_of(const char *pattern);
#endif
