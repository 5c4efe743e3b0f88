/* SPDX-License-Identifier: Apache-2.0 */
/* characters.h - Unicode properties of characters for tokenizers and templates. (Patterns use PCRE2's classes.) */
#ifndef HN_CHARACTERS_H
#define HN_CHARACTERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool hn_char_is_space(uint32_t cp); /* White_Space */
bool hn_char_is_mark(uint32_t cp);  /* the categories M */
bool hn_char_is_letter(uint32_t cp);    /* L */
bool hn_char_is_number(uint32_t cp);    /* N */
bool hn_char_is_digit(uint32_t cp);     /* Nd */
bool hn_char_is_printable(uint32_t cp); /* as in Python's repr(): not of category C, and no separator but the space */

/* Bytes of white space at the end, or at the start, of valid UTF-8. */
size_t hn_spaces_at_end(const char *text, size_t len);
size_t hn_spaces_at_start(const char *text, size_t len);
/* True if the text ends, or starts, with a word character. */
bool hn_word_at_end(const char *text, size_t len);
bool hn_word_at_start(const char *text, size_t len);
#endif
