/* SPDX-License-Identifier: Apache-2.0 */
/* characters.c - categories by utf8proc. */
#include "text/normal/characters.h"

#include <utf8proc.h>

#include "base/utf8.h"

bool hn_char_is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13);
    if (cp == 0x85) return true;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

bool hn_char_is_mark(uint32_t cp) {
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

/* ASCII, the most frequent case, needs no table. */
bool hn_char_is_letter(uint32_t cp) {
    if (cp < 0x80) return (cp | 0x20) - 'a' < 26;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool hn_char_is_number(uint32_t cp) {
    if (cp < 0x80) return cp - '0' < 10;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool hn_char_is_digit(uint32_t cp) {
    return cp < 0x80 ? cp - '0' < 10 : utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

bool hn_char_is_printable(uint32_t cp) {
    if (cp < 0x80) return cp >= ' ' && cp != 0x7F;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return cp == ' ';
    default: return true;
    }
}

/* Alphabetic, but not of category L: the circled and squared letters. */
static bool is_enclosed_letter(uint32_t cp) {
    return (cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) || (cp >= 0x1F150 && cp <= 0x1F169) ||
           (cp >= 0x1F170 && cp <= 0x1F189);
}

/* \w: letters, marks, decimal digits, connecting punctuation */
static bool is_word(uint32_t cp) {
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return hn_char_is_mark(cp) || is_enclosed_letter(cp) || cp == 0x200C || cp == 0x200D;
    }
}

/* Offset of the last character. */
static size_t last_start(const char *text, size_t len) {
    size_t i = len - 1;
    while (i > 0 && ((unsigned char)text[i] & 0xC0) == 0x80) i--;
    return i;
}

size_t hn_spaces_at_end(const char *text, size_t len) {
    size_t end = len;
    uint32_t cp;
    while (end > 0) {
        size_t from = last_start(text, end);
        if (!hn_utf8_decode(text + from, end - from, &cp) || !hn_char_is_space(cp)) break;
        end = from;
    }
    return len - end;
}

size_t hn_spaces_at_start(const char *text, size_t len) {
    size_t at = 0;
    uint32_t cp;
    for (int step; at < len && (step = hn_utf8_decode(text + at, len - at, &cp)) && hn_char_is_space(cp);)
        at += (size_t)step;
    return at;
}

bool hn_word_at_end(const char *text, size_t len) {
    uint32_t cp;
    if (len == 0) return false;
    size_t from = last_start(text, len);
    return hn_utf8_decode(text + from, len - from, &cp) && is_word(cp);
}

bool hn_word_at_start(const char *text, size_t len) {
    uint32_t cp;
    return hn_utf8_decode(text, len, &cp) && is_word(cp);
}
