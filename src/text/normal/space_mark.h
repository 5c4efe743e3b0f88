/* SPDX-License-Identifier: Apache-2.0 */
/* space_mark.h - U+2581, which SentencePiece and its successors write for a space. */
#ifndef HN_SPACE_MARK_H
#define HN_SPACE_MARK_H
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define HN_SPACE_MARK "\xE2\x96\x81"
enum { HN_SPACE_MARK_BYTES = sizeof HN_SPACE_MARK - 1 };

/* True if the text begins with one. Called for every byte of a text: inline, and decided by the first byte as a rule. */
static inline bool hn_is_space_mark(const char *text, size_t len) {
    return len >= HN_SPACE_MARK_BYTES && text[0] == HN_SPACE_MARK[0] &&
           memcmp(text, HN_SPACE_MARK, HN_SPACE_MARK_BYTES) == 0;
}

/* Writes the text with spaces for the marks to out, which has room for len bytes. Returns the number of bytes written. */
size_t hn_marks_to_spaces(const char *text, size_t len, char *out);
#endif
