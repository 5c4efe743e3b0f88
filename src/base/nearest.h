/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h - what somebody may have meant: how far two words are apart, and the nearest of several. */
#ifndef HN_NEAREST_H
#define HN_NEAREST_H
#include "base/status.h"

/* How many letters to change, add, leave out or swap with their neighbour to get from the first n_a bytes of a to the first
 * n_b of b, whatever the case of ASCII letters; of 80 of each at most. */
size_t hn_word_distance(const char *a, size_t n_a, const char *b, size_t n_b);
/* The name nearest to word, the first of several; NULL if none is near. A name that begins with a word of two letters or
 * more is near however long its rest. */
const char *hn_nearest(const char *word, const char *const *names, size_t n);
/* ", did you mean X?" of the nearest name to `out`, else "". Returns out. */
char *hn_nearest_hint(char *out, size_t size, const char *word, const char *const *names, size_t n);
#endif
