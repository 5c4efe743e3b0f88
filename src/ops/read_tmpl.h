/* SPDX-License-Identifier: Apache-2.0 */
/* read_tmpl.h - the sum of a run of memory, with the widest loads of the level that includes this. READ is its name. */
#include "ops/machine.h"

uint64_t READ(const void *p, size_t bytes) {
    typedef uint64_t line __attribute__((vector_size(64), may_alias));
    const line *at = p, *end = at + bytes / 256 * 4;
    line a = {0}, b = {0}, c = {0}, d = {0};
    for (; at < end; at += 4) {
        a += at[0];
        b += at[1];
        c += at[2];
        d += at[3];
    }
    a += b + c + d;
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++) sum += a[i];
    return sum;
}
