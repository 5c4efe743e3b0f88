/* SPDX-License-Identifier: Apache-2.0 */
/* least.h - the smaller and the larger of two numbers. Inlined: fmin and fmax are calls, which also handle NaN. */
#ifndef HN_LEAST_H
#define HN_LEAST_H
#include <stddef.h>

static inline int hn_least(int a, int b) { return a < b ? a : b; }
static inline int hn_most(int a, int b) { return a > b ? a : b; }
static inline size_t hn_least_size(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t hn_most_size(size_t a, size_t b) { return a > b ? a : b; }
static inline double hn_least_double(double a, double b) { return a < b ? a : b; }
static inline double hn_most_double(double a, double b) { return a > b ? a : b; }
#endif
