/* SPDX-License-Identifier: Apache-2.0 */
/* run_mode_for_tests.h - how a test runs: with the address or thread sanitizer (macros of gcc and clang); with how many of its cases
 * (a macro and an environment variable). */
#ifndef HN_RUN_MODE_FOR_TESTS_H
#define HN_RUN_MODE_FOR_TESTS_H
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

#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
enum { THREAD_SANITIZED = true };
#else
enum { THREAD_SANITIZED = false };
#endif

/* Sanitizer builds run fewer cases of the same tests. */
static inline bool test_light(void) {
    const char *v = getenv("HUNCH_TEST_LIGHT");
    return v && *v && strcmp(v, "0") != 0;
}

/* An x_long_test.c that defines EVERY_CASE and includes x_test.c runs all cases of it, under make test-long. */
#ifndef EVERY_CASE
#define EVERY_CASE false
#endif

/* Of the cases of a loop every how-many-th runs: all in a long test, one of `usual` in make test, one of `light` in its sanitized
 * run. */
static inline int test_every(int usual, int light) { return test_light() ? light : EVERY_CASE ? 1 : usual; }

/* Threads for a test that is not about them. Tests run beside each other, and passes of tiny models are short: with two threads each they
 * would spend more time on switching between threads than on the passes. `make test-long` runs all with two, as clang builds them. */
static inline int test_threads(void) { return EVERY_CASE || THREAD_SANITIZED || getenv("HUNCH_TEST_THREADS") ? 2 : 1; }
#endif
