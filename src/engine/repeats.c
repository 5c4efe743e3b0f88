/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.c - see repeats.h. Occurrences are taken from the end on, each as late as possible: no other choice finds more of them. */
#include "engine/repeats.h"

#include <string.h>

bool hn_repeats(const int32_t *tokens, size_t n, size_t piece, int times) {
    const size_t bytes = piece * sizeof *tokens;
    if (n / piece < (size_t)times) return false;
    const int32_t *last = tokens + n - piece;
    const int32_t newest = tokens[n - 1];
    size_t end = n - piece; /* an occurrence ends here at the latest */
    for (times--; times > 0 && end >= piece; end--) {
        if (tokens[end - 1] != newest || memcmp(tokens + end - piece, last, bytes) != 0) continue;
        times--;
        end -= piece - 1;
    }
    return times == 0;
}
