/* SPDX-License-Identifier: Apache-2.0 */
/* shortest.c - see shortest.h. */
#include "base/shortest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hn_shortest(double v, int least, char out[HN_SHORTEST_TEXT]) {
    enum { ENOUGH = 17 };
    for (int digits = least;; digits++) {
        snprintf(out, HN_SHORTEST_TEXT, "%.*e", digits - 1, v);
        if (digits == ENOUGH || strtod(out, NULL) == v) return digits;
    }
}

void hn_shortest_trim(char *text) {
    char *mark = strchr(text, 'e'), *last = mark;
    if (!strchr(text, '.')) return;
    while (last[-1] == '0') last--;
    if (last[-1] == '.') last--;
    memmove(last, mark, strlen(mark) + 1);
}
