/* SPDX-License-Identifier: Apache-2.0 */
/* tool_values.c - see tool_values.h. */
#include "app/tool_values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

const char *tool_value_shown(const char *s, char out[TOOL_SHOWN]) {
    const size_t most = TOOL_SHOWN - 4, len = strlen(s), n = len < TOOL_SHOWN ? len : hn_utf8_complete(s, most);
    snprintf(out, TOOL_SHOWN, "%.*s%s", (int)n, s, n < len ? "..." : "");
    return out;
}

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
