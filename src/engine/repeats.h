/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.h - whether a text repeats itself without end. */
#ifndef HN_REPEATS_H
#define HN_REPEATS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_LOOP_TIMES = 4 }; /* occurrences of the same tokens that end an answer */

/* Whether the last `piece` of n tokens (piece >= 1) occur in them at least `times` times, including themselves, without
 * overlap. Takes time proportional to n. */
bool hn_repeats(const int32_t *tokens, size_t n, size_t piece, int times);

#endif
