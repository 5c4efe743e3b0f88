/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_limits.h - what a command may use whatever file it is given: a gigabyte, and seconds of the processor. Include
 * after cmocka. */
#ifndef HN_HOSTILE_LIMITS_H
#define HN_HOSTILE_LIMITS_H
#include <sys/resource.h>

#include "sanitized.h"

enum { LIMIT_SECONDS = 60, LIMIT_MIB = 1024 }; /* seconds: of a sanitizer's build on a slow machine */

/* Commands that are started inherit them, and begin to count anew. */
static inline void limits_set(void) {
    const struct rlimit memory = {(rlim_t)LIMIT_MIB << 20, (rlim_t)LIMIT_MIB << 20},
                        time = {LIMIT_SECONDS, LIMIT_SECONDS};
    if (!SANITIZED) /* which takes terabytes of addresses for itself */
        assert_int_equal(setrlimit(RLIMIT_AS, &memory), 0);
    assert_int_equal(setrlimit(RLIMIT_CPU, &time), 0);
    /* which looks at the whole of a long text for each place that is found in it */
    assert_int_equal(setenv("ASAN_OPTIONS", "intercept_memmem=0", 0), 0);
}
#endif
