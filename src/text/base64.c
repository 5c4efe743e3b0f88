/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - four letters to three bytes. */
#include "text/base64.h"

#include <stdint.h>
#include <string.h>

static int value_of(char c) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? (int)(at - letters) : -1;
}

bool hn_base64_decode(const char *text, size_t len, char *out, size_t *n) {
    *n = 0;
    if (len % 4) return false;
    for (size_t i = 0; i < len; i += 4) {
        size_t padding = 0;
        if (i + 4 == len && text[i + 3] == '=') padding = text[i + 2] == '=' ? 2 : 1;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int v = k < 4 - padding ? value_of(text[i + k]) : 0;
            if (v < 0) return false;
            bits = bits << 6 | (uint32_t)v;
        }
        for (size_t k = 0; k < 3 - padding; k++) out[(*n)++] = (char)(bits >> (16 - 8 * k));
    }
    return true;
}
