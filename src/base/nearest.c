/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - see nearest.h. */
#include "base/least.h"
#include "base/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool same_letter(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

size_t hn_edit_distance(const char *a, size_t n_a, const char *b, size_t n_b) {
    enum { LONGEST = 80 };
    size_t rows[3][LONGEST + 1], *before = rows[0], *above = rows[1], *row = rows[2]; /* of the table of prefixes */
    n_a = hn_least_size(n_a, LONGEST);
    n_b = hn_least_size(n_b, LONGEST);
    for (size_t j = 0; j <= n_b; j++) row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            row[j] = hn_least_size(above[j - 1] + !same_letter(a[i - 1], b[j - 1]), hn_least_size(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                row[j] = hn_least_size(row[j], before[j - 2] + 1);
        }
    }
    return row[n_b];
}

const char *hn_nearest(const char *word, const char *const *names, size_t n) {
    const size_t len = strlen(word), most = (len + 2) / 3;
    const char *best = NULL;
    size_t letters = 0, nearest = 0; /* nearest: twice the distance, and one more if the first letter differs */
    for (const char *c = word; *c; c++) letters += isalnum((unsigned char)*c) != 0;
    for (size_t i = 0; i < n; i++) {
        size_t distance = hn_edit_distance(word, len, names[i], strlen(names[i]));
        if (letters >= 2 && distance > 1 && strncasecmp(word, names[i], len) == 0) distance = 1;
        /* A word of which every letter differs is not near: -x is not near -m. */
        const size_t far = 2 * distance + !same_letter(word[0], names[i][0]);
        if (distance > most || distance >= letters || (best && far >= nearest)) continue;
        best = names[i];
        nearest = far;
    }
    return best;
}

char *hn_nearest_hint(char *out, size_t size, const char *word, const char *const *names, size_t n) {
    const char *near = hn_nearest(word, names, n);
    out[0] = '\0';
    if (near) snprintf(out, size, ", did you mean %s?", near);
    return out;
}
