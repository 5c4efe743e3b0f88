/* SPDX-License-Identifier: Apache-2.0 */
/* byte_letters.c - the alphabet by its three plain ranges and the three gaps between them. */
#include "text/normal/byte_letters.h"

#include "base/utf8.h"

/* -1: not in the alphabet. */
static int byte_of_letter(uint32_t cp) {
    static const struct { uint32_t first, last; } plain[] = {{0x21, 0x7E}, {0xA1, 0xAC}, {0xAE, 0xFF}};
    for (int i = 0; i < 3; i++) {
        if (cp >= plain[i].first && cp <= plain[i].last) return (int)cp;
    }
    if (cp < 0x100 || cp > 0x143) return -1;
    uint32_t k = cp - 0x100; /* the k-th byte that is not plain: 0-20, 7F-A0, AD */
    if (k <= 0x20) return (int)k;
    return k < 0x43 ? (int)(k - 0x21 + 0x7F) : 0xAD;
}

static uint32_t letter_of_byte(unsigned char b) {
    if (b <= 0x20) return 0x100u + b;
    if (b >= 0x7F && b <= 0xA0) return 0x121u + (b - 0x7Fu);
    return b == 0xAD ? 0x143 : b;
}

bool hn_letters_to_bytes(const char *text, size_t len, char *out, size_t *n) {
    uint32_t cp;
    *n = 0;
    for (size_t i = 0; i < len;) {
        int step = hn_utf8_decode(text + i, len - i, &cp), byte = step ? byte_of_letter(cp) : -1;
        if (byte < 0) return false;
        out[(*n)++] = (char)byte;
        i += (size_t)step;
    }
    return true;
}

size_t hn_bytes_to_letters(const char *bytes, size_t len, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) n += (size_t)hn_utf8_encode(letter_of_byte((unsigned char)bytes[i]), out + n);
    return n;
}
