/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h - suggestions for misspelt words: the edit distance of two words, and the nearest of several. */
#ifndef HN_NEAREST_H
#define HN_NEAREST_H
#include "base/status.h"

/* The number of letters to change, insert, delete or swap with their neighbour to get from the first n_a bytes of a to the
 * first n_b of b, without regard to the case of ASCII letters; at most 80 bytes of each count. */
size_t hn_edit_distance(const char *a, size_t n_a, const char *b, size_t n_b);
/* The name nearest to word, the first of several; NULL if none is near. A name that begins with the word, if that has two
 * letters or more, is near however long it is. */
const char *hn_nearest(const char *word, const char *const *names, size_t n);
/* Writes ", did you mean X?" with the nearest name to `out`, or "" if none is near. Returns out. */
char *hn_nearest_hint(char *out, size_t size, const char *word, const char *const *names, size_t n);
#endif
