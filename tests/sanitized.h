/* SPDX-License-Identifier: Apache-2.0 */
/* sanitized.h - whether a program is built with the address or thread sanitizer, as gcc and clang say it. */
#ifndef HN_TEST_SANITIZED_H
#define HN_TEST_SANITIZED_H
#include <stdbool.h>

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
#endif
