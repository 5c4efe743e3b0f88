/* SPDX-License-Identifier: Apache-2.0 */
/* shortest.h - the fewest decimal digits that are read as the same double. */
#ifndef HN_SHORTEST_H
#define HN_SHORTEST_H

enum { HN_SHORTEST_TEXT = 40 };

/* Writes a finite number as "%.*e" does in the C locale, which the thread must be in, with as few digits as give it back, from `least`
 * on: of a normal number 15 digits survive the way to a double and back, so fewer need not be tried. Returns how many, at most 17. */
int hn_shortest(double v, int least, char out[HN_SHORTEST_TEXT]);
/* Of a text of "%e" with a point: the zeros behind its last other digit go, and the point if none is left. */
void hn_shortest_trim(char *text);
#endif
