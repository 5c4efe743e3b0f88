/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer_scan.c - GPT-2's pattern and that of single numbers, over ASCII. */
#include "text/split/pretokenizer_scan.h"

#include <string.h>

#include "text/split/pretokenizer.h"

enum { LETTER = 1, DIGIT = 2, SPACE = 4, WIDE = 8 }; /* classes of a byte; 0: other ASCII */

static inline unsigned class_of(char c) {
    unsigned char u = (unsigned char)c;
    if ((unsigned)(u | 0x20) - 'a' < 26) return LETTER;
    if ((unsigned)u - '0' < 10) return DIGIT;
    if (u == ' ' || (u >= 9 && u <= 13)) return SPACE;
    return u >= 0x80 ? WIDE : 0;
}

/* \p{N} */
static hn_scan scan_number(const char *text, size_t at, size_t end, size_t *from, size_t *to) {
    for (; at < end; at++) {
        unsigned class = class_of(text[at]);
        if (!(class & (DIGIT | WIDE))) continue;
        *from = at;
        *to = at + 1;
        return class == DIGIT ? HN_SCAN_MATCH : HN_SCAN_UNDECIDED;
    }
    return HN_SCAN_NONE;
}

/* Length of 's 't 'm 'd 're 've 'll at s, which is an apostrophe with n bytes; 0: none. */
static size_t contraction(const char *s, size_t n) {
    if (n < 2) return 0;
    if (strchr("stmd", s[1]) && s[1]) return 2;
    if (n < 3) return 0;
    return (s[1] == 'r' && s[2] == 'e') || (s[1] == 'v' && s[2] == 'e') || (s[1] == 'l' && s[2] == 'l') ? 3 : 0;
}

/* GPT2: every place of a text starts a match, so *from is always `at`. */
static hn_scan scan_gpt2(const char *text, size_t at, size_t end, size_t *from, size_t *to) {
    if (at == end) return HN_SCAN_NONE;
    *from = at;
    if (text[at] == '\'') {
        size_t n = contraction(text + at, end - at);
        if (n) {
            *to = at + n;
            return HN_SCAN_MATCH;
        }
    }
    size_t i = at + (text[at] == ' ');
    unsigned class = i < end ? class_of(text[i]) : SPACE;
    if (class == WIDE) return HN_SCAN_UNDECIDED;
    if (class == SPACE) i = at;
    size_t first = i;
    while (i < end && class_of(text[i]) == class) i++;
    if (i < end && class_of(text[i]) == WIDE) return HN_SCAN_UNDECIDED; /* may belong to the run */
    if (class == SPACE && i < end && i - first > 1) i--; /* the last space belongs to the following match, or is one of its own */
    *to = i;
    return HN_SCAN_MATCH;
}

hn_scanner *hn_scanner_of(const char *pattern) {
    if (strcmp(pattern, "\\p{N}") == 0) return scan_number;
    return strcmp(pattern, hn_pretok_gpt2) == 0 ? scan_gpt2 : NULL;
}
