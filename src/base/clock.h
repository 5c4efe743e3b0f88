/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the monotonic clock, used for all measurements. */
#ifndef HN_CLOCK_H
#define HN_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline int64_t hn_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline double hn_now(void) { /* seconds */
    return (double)hn_now_ns() * 1e-9;
}
#endif
