/* SPDX-License-Identifier: Apache-2.0 */
/* attention_ahead.h - helpers of the AVX-512 attention kernels: the visible lanes of a chunk, and prefetches during
 * scores: keys of the next chunks, and values of the current ones. */
#ifndef HN_ATTENTION_AHEAD_H
#define HN_ATTENTION_AHEAD_H
#include <immintrin.h>

#include "ops/kernels.h"
#include "ops/unroll.h"

/* Lanes of chunk c that are in [lo, hi). */
HN_INLINE __mmask16 hn_chunk_lanes(int c, int lo, int hi) {
    unsigned from = lo > 16 * c ? (unsigned)(lo - 16 * c) : 0, to = hi < 16 * c + 16 ? (unsigned)(hi - 16 * c) : 16;
    return (__mmask16)((1u << to) - (1u << from));
}

/* Prefetches an address, which need not be inside an object: keys may be wider than values, and there may be no values. */
HN_INLINE void hn_prefetch(const void *base, size_t bytes) {
    _mm_prefetch((const char *)((uintptr_t)base + bytes), _MM_HINT_T1);
}

/* The part of step d (a dim, or a pair of them) of prefetching the keys of the P chunks after those at c, and the
 * values of those at c. Chunks are usually adjacent in a page, so that some share a line. */
HN_INLINE void hn_prefetch_ahead(const hn_dtype t, const int P, const hn_keys *keys, int c, int c1, int d) {
    const int each = 4 / (int)hn_kv_lane_bytes(t); /* chunks per line */
    HN_UNROLL for (int p = 0; p < P; p += each) {
        const int next = c + P + p < c1 ? c + P + p : c1 - 1, of = c + p + (p + d % each < P ? d % each : 0);
        const size_t step = (size_t)keys->k_stride[next] * hn_kv_lane_bytes(t);
        hn_prefetch(keys->k[next], step * (size_t)d);
        hn_prefetch(keys->v[of], (size_t)(d - d % each) * HN_KEY_CHUNK * hn_kv_lane_bytes(t));
    }
}
#endif
