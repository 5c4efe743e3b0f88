/* SPDX-License-Identifier: Apache-2.0 */
/* unroll.h - how kernels keep arrays of vectors in registers with both compilers: full unrolling of short loops with
 * constant bounds, inlining, and chains of additions that stay chains. */
#ifndef HN_UNROLL_H
#define HN_UNROLL_H
#if !defined(__clang__)
#define HN_UNROLL _Pragma("GCC unroll 16")
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HN_UNROLL /* with each access checked, unrolled loops take clang minutes a file */
#else
#define HN_UNROLL _Pragma("clang loop unroll(full)")
#endif
/* The vector register v has its value here: keeps the compiler from turning a chain of integer additions into a tree,
 * which needs more registers than there are. */
#define HN_SETTLE(v) __asm__("" : "+x"(v))
/* What the pointer p leads to is read and written here: keeps the compiler from holding it in registers over a loop. */
#define HN_REREAD(p) __asm__("" : "+r"(p))
#define HN_INLINE static inline __attribute__((always_inline))
#endif
