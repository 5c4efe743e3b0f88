/* SPDX-License-Identifier: Apache-2.0 */
/* tool_values.c - see tool_values.h. */
#include "tool_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------------------------------------------- */

static bool number_begins(const char *s) {
    return (*s >= '0' && *s <= '9') || *s == '-' || *s == '.';
}

bool tool_parse_int64(const char *s, int64_t *out) {
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    *out = v;
    return number_begins(s) && *end == 0 && end != s && errno == 0;
}

bool tool_parse_real(const char *s, double *out) {
    char *end;
    *out = strtod(s, &end);
    return number_begins(s) && !strpbrk(s, "xX") && *end == 0 && end != s && isfinite(*out);
}

/* Copies the part before `mark`; *rest is the text after it. False: no mark, or a part too long for a number. */
static bool part_before(const char *s, char mark, char part[64], const char **rest) {
    const char *at = strchr(s, mark);
    size_t len = at ? (size_t)(at - s) : 0;
    if (!at || len >= 64)
        return false;
    memcpy(part, s, len);
    part[len] = 0;
    *rest = at + 1;
    return true;
}

bool tool_parse_pair(const char *s, double out[2]) {
    char first[64];
    const char *second;
    return part_before(s, ',', first, &second) && tool_parse_real(first, &out[0]) && tool_parse_real(second, &out[1]);
}

bool tool_parse_bias(const char *s, hunch_bias *out) {
    char id[64];
    const char *bias;
    int64_t token;
    if (!part_before(s, '=', id, &bias) || !tool_parse_int64(id, &token) || token < 0 || token > INT32_MAX)
        return false;
    out->token = (hunch_token)token;
    out->bias = -INFINITY;
    return strcmp(bias, "-inf") == 0 || tool_parse_real(bias, &out->bias);
}

int tool_parse_ints(const char *s, int64_t min, int64_t max, int *items) {
    for (int n = 0;;) {
        char word[16];
        size_t len = strcspn(s, ",");
        int64_t v;
        if (len == 0 || len >= sizeof word)
            return 0;
        memcpy(word, s, len);
        word[len] = 0;
        if (!tool_parse_int64(word, &v) || v < min || v > max)
            return 0;
        items[n++] = (int)v;
        if (s[len] == 0)
            return n;
        s += len + 1;
    }
}

/* ---- nearest names ------------------------------------------------------------------------------------------- */

static size_t min3(size_t a, size_t b, size_t c) {
    return a < b ? (a < c ? a : c) : b < c ? b : c;
}

/* Edit distance (insert, delete, replace: 1 each) of two words below 64 letters. */
static size_t distance(const char *a, const char *b) {
    size_t row[64], na = strlen(a), nb = strlen(b);
    if (na >= 64 || nb >= 64)
        return 64;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[nb];
}

const char *tool_nearest(const char *word, const char *const *names, size_t n) {
    const char *best = NULL;
    size_t least = 64;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, names[i]);
        /* A name that begins with the typed word is near, whatever its length. */
        if (strlen(word) >= 4 && strncmp(word, names[i], strlen(word)) == 0)
            d = 1;
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return least <= 2 + strlen(word) / 4 ? best : NULL;
}
