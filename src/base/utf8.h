/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - strict UTF-8 (no overlong forms, no surrogates, at most U+10FFFF). */
#ifndef HN_UTF8_H
#define HN_UTF8_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one code point at s (len bytes left). Returns its length 1..4, or 0 if invalid or cut off. */
int hn_utf8_decode(const char *s, size_t len, uint32_t *cp);
int hn_utf8_encode(uint32_t cp, char out[4]); /* length, 0 for an invalid code point */
/* Bytes of the sequence that begins with this one; 0: none does. */
int hn_utf8_length(char first);
/* Whether a byte is inside a sequence: a text must not be cut before it. */
static inline bool hn_utf8_inside(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}
/* Offset of the first invalid byte, or len if all is valid. */
size_t hn_utf8_check(const char *s, size_t len);
/* In place: control characters of ASCII, and those of Latin-1 (two bytes), which could move a terminal's cursor or end a line, become `by`.
 * Returns s. */
char *hn_utf8_mask(char *s, char by);
/* A copy in which each byte that is of no sequence is U+FFFD, of at most 3 * len bytes; one without so much room is cut between
 * characters. Returns its length; no zero is added. */
size_t hn_utf8_mend(const char *s, size_t len, char *out, size_t room);
/* Length of the longest prefix that ends on a sequence boundary: the part of a growing text that can be shown. Bytes that can
 * never become valid count as complete (the caller replaces them by U+FFFD). */
size_t hn_utf8_complete(const char *s, size_t len);
#endif
