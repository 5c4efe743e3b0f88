/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.h - whether a text goes round in circles. */
#ifndef HN_REPEATS_H
#define HN_REPEATS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_LOOP_TIMES = 4 }; /* so often the same is said before an answer ends */

/* Whether the last `piece` of n tokens (piece >= 1) stand in them at least `times` times, themselves included and no two of the
 * places overlapping. Takes time proportional to n. */
bool hn_repeats(const int32_t *tokens, size_t n, size_t piece, int times);

#endif
