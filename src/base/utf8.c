/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - strict UTF-8, by the table of well-formed sequences in the Unicode standard (table 3-7).
 *
 * Owns the one decoder of the library. Character classes and normalisation belong to src/text/.
 */
#include "base/utf8.h"

#include <string.h>

/* Length of the sequence that a lead byte begins, 0 if none begins with it; [*low, *high]: range of its second byte.
 * The narrowed ranges exclude overlong forms (E0, F0), surrogates (ED) and code points above U+10FFFF (F4). */
static int lead_length(unsigned char c, unsigned char *low, unsigned char *high) {
    *low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    *high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (c < 0x80) return 1;
    if (c < 0xC2) return 0;
    if (c < 0xE0) return 2;
    if (c < 0xF0) return 3;
    return c < 0xF5 ? 4 : 0;
}

int hn_utf8_length(char first) {
    unsigned char low, high;
    return lead_length((unsigned char)first, &low, &high);
}

/* Returns how many of the bytes at s belong to the sequence that s[0] begins; *want: its full length, 0 if none. */
static int sequence_match(const unsigned char *s, size_t len, int *want) {
    unsigned char low, high;
    *want = lead_length(s[0], &low, &high);
    if (*want == 0) return 0;
    int n = 1;
    for (; n < *want && (size_t)n < len; n++) {
        if (s[n] < low || s[n] > high) break;
        low = 0x80, high = 0xBF;
    }
    return n;
}

int hn_utf8_decode(const char *s, size_t len, uint32_t *cp) {
    const unsigned char *u = (const unsigned char *)s;
    int want;
    if (len == 0 || sequence_match(u, len, &want) != want || want == 0) return 0;
    static const unsigned char lead_mask[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t value = u[0] & lead_mask[want];
    for (int i = 1; i < want; i++) value = value << 6 | (u[i] & 0x3F);
    *cp = value;
    return want;
}

int hn_utf8_encode(uint32_t cp, char out[4]) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) return 0;
    int n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const unsigned char lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = n - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)(lead[n] | cp);
    return n;
}

size_t hn_utf8_check(const char *s, size_t len) {
    size_t at = 0;
    for (uint32_t cp; at < len;) {
        int n = hn_utf8_decode(s + at, len - at, &cp);
        if (n == 0) break;
        at += (size_t)n;
    }
    return at;
}

char *hn_utf8_mask(char *s, char by) {
    for (char *at = s; *at; at++) {
        const unsigned char *c = (const unsigned char *)at;
        const bool latin = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0;
        if (c[0] < 0x20 || c[0] == 0x7f || latin) *at = by;
        if (latin) *++at = by;
    }
    return s;
}

size_t hn_utf8_mend(const char *s, size_t len, char *out, size_t room) {
    char *to = out;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        const size_t step = (size_t)hn_utf8_decode(s + i, len - i, &cp), n = step ? step : 3;
        if (n > room - (size_t)(to - out)) break;
        memcpy(to, step ? s + i : "\xEF\xBF\xBD", n);
        to += n;
        i += step ? step : 1;
    }
    return (size_t)(to - out);
}

size_t hn_utf8_complete(const char *s, size_t len) {
    const unsigned char *u = (const unsigned char *)s;
    /* Only a sequence that began in the last three bytes can still be incomplete. */
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        if (hn_utf8_inside(s[len - back])) continue;
        int want, have = sequence_match(u + len - back, back, &want);
        return (size_t)have == back && have < want ? len - back : len;
    }
    return len;
}
