/* SPDX-License-Identifier: Apache-2.0 */
/* ascii.h - kinds of ASCII characters, whatever the locale is. */
#ifndef HN_ASCII_H
#define HN_ASCII_H
#include <stdbool.h>

static inline bool hn_is_digit(int c) { return c >= '0' && c <= '9'; }
/* What JSON has between values. */
static inline bool hn_is_json_space(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
/* The value of a hexadecimal digit; -1: it is none. */
static inline int hn_hex_digit(int c) {
    return hn_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
#endif
