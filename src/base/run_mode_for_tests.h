/* SPDX-License-Identifier: Apache-2.0 */
/* run_mode_for_tests.h - how a test runs: with the address or thread sanitizer (macros of gcc and clang); with fewer cases (an
 * environment variable). */
#ifndef HN_TEST_HOW_RUN_H
#define HN_TEST_HOW_RUN_H
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || HAS_FEATURE(address_sanitizer) ||                 \
    HAS_FEATURE(thread_sanitizer)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

/* Sanitizer builds run fewer cases of the same tests. */
static inline bool test_light(void) {
    const char *v = getenv("HUNCH_TEST_LIGHT");
    return v && *v && strcmp(v, "0") != 0;
}
#endif
