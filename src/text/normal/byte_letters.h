/* SPDX-License-Identifier: Apache-2.0 */
/* byte_letters.h - GPT-2's alphabet: each of the 256 bytes written as a printable letter, as byte-level vocabularies
 * spell their tokens. Printable Latin-1 is written as itself, the other bytes, in order, as U+0100, U+0101, … */
#ifndef HN_BYTE_LETTERS_H
#define HN_BYTE_LETTERS_H
#include <stdbool.h>
#include <stddef.h>

/* Bytes of a spelling; false if a character is not in the alphabet. out has room for len bytes. */
bool hn_letters_to_bytes(const char *text, size_t len, char *out, size_t *n);
/* Writes the spelling of the bytes to out, which has room for 2 * len bytes, and returns its length. */
size_t hn_bytes_to_letters(const char *bytes, size_t len, char *out);
#endif
