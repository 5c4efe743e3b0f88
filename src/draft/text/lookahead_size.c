/* SPDX-License-Identifier: Apache-2.0 */
/* lookahead_size.c - see lookahead_size.h. */
#include "draft/text/lookahead_size.h"

#include <math.h>

/* Rows and tokens of a pass as hunch compare counted them: SmolLM2-135M-Instruct, bench16, greedy, 64 tokens a prompt. Fewer rows than
 * (window + guess)(ngram - 1): most first tokens have fewer n-grams than are kept. */
static const hn_lookahead_size measured[] = {
    {2, 3, 2, 5.3, 1.55, 0},  {3, 3, 3, 8.1, 1.59, 0},  {3, 4, 3, 12.4, 1.69, 0},
    {5, 4, 5, 20.4, 1.78, 0}, {7, 5, 7, 36.3, 1.90, 0},
};

static double seconds_at(const double *seconds, double rows) {
    const int below = (int)floor(rows);
    return seconds[below] + (rows - below) * (seconds[below + 1] - seconds[below]);
}

bool hn_lookahead_best_size(const double *seconds, int most, hn_lookahead_size *out) {
    bool found = false;
    for (int i = 0; i < (int)(sizeof measured / sizeof *measured); i++) {
        hn_lookahead_size s = measured[i];
        if (s.rows + 2 > most) break;
        s.speed_up = s.tokens * seconds[1] / seconds_at(seconds, 1 + s.rows);
        if (found && s.speed_up <= out->speed_up) continue;
        *out = s;
        found = true;
    }
    return found;
}
