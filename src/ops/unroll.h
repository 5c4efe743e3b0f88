/* SPDX-License-Identifier: Apache-2.0 */
/* unroll.h - macros that keep arrays of vectors in registers with both compilers: full unrolling of short loops with
 * constant bounds, inlining, and chains of additions that are not reordered. */
#ifndef HN_UNROLL_H
#define HN_UNROLL_H
#if !defined(__clang__)
#define HN_UNROLL _Pragma("GCC unroll 16")
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HN_UNROLL /* with each access checked, clang needs minutes per file for unrolled loops */
#else
#define HN_UNROLL _Pragma("clang loop unroll(full)")
#endif
/* Forces the value of vector register v here: keeps the compiler from turning a chain of integer additions into a tree,
 * which needs too many registers. */
#define HN_SETTLE(v) __asm__("" : "+x"(v))
/* Forces a read and write of the memory at p: keeps the compiler from holding it in registers over a loop. */
#define HN_REREAD(p) __asm__("" : "+r"(p))
#define HN_INLINE static inline __attribute__((always_inline))
#endif
