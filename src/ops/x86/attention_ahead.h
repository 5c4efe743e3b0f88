/* SPDX-License-Identifier: Apache-2.0 */
/* attention_ahead.h - helpers of the AVX-512 attention kernels: the visible lanes of a chunk, and prefetches of what is read
 * after the keys or values at hand. */
#ifndef HN_ATTENTION_AHEAD_H
#define HN_ATTENTION_AHEAD_H
#include <immintrin.h>
#include <limits.h>

#include "ops/kernels.h"
#include "ops/unroll.h"

/* Lanes of chunk c that are in [lo, hi). */
HN_INLINE __mmask16 hn_chunk_lanes(int c, int lo, int hi) {
    unsigned from = lo > 16 * c ? (unsigned)(lo - 16 * c) : 0, to = hi < 16 * c + 16 ? (unsigned)(hi - 16 * c) : 16;
    return (__mmask16)((1u << to) - (1u << from));
}

/* What a tile has of it while it runs. */
typedef struct hn_fetch {
    const unsigned char *at, *end;
    int turn; /* the next step that prefetches */
} hn_fetch;

HN_INLINE hn_fetch hn_fetch_begin(const hn_read_ahead *a, int turn) {
    return a ? (hn_fetch){a->at, a->end, turn} : (hn_fetch){NULL, NULL, INT_MAX};
}

HN_INLINE void hn_fetch_end(hn_read_ahead *a, const hn_fetch *f) {
    if (a) a->at = f->at, a->end = f->end;
}

/* The next lines; a run's last ones may be lines behind it. */
HN_INLINE void hn_fetch_lines(hn_read_ahead *a, hn_fetch *f, const int lines) {
    if (f->at >= f->end) {
        if (a->next == a->count) return;
        f->at = a->run[a->next].at;
        f->end = f->at + a->run[a->next++].bytes;
    }
    HN_UNROLL for (int i = 0; i < lines; i++) _mm_prefetch((const char *)((uintptr_t)f->at + 64u * (unsigned)i), _MM_HINT_T1);
    f->at = (const unsigned char *)((uintptr_t)f->at + 64u * (unsigned)lines);
}

/* The same for keys that may have nothing ahead. */
HN_INLINE void hn_keys_fetch(const hn_keys *keys, hn_fetch *f, const int lines) {
    if (keys->ahead) hn_fetch_lines(keys->ahead, f, lines);
}

/* As many lines as a step reads that loads `vectors` of 16 lanes. */
HN_INLINE void hn_fetch_step(const hn_dtype t, const int vectors, int step, hn_read_ahead *a, hn_fetch *f) {
    const int bytes = 16 * (int)hn_kv_lane_bytes(t) * vectors;
    if (step != f->turn) return;
    f->turn += a->every;
    hn_fetch_lines(a, f, bytes < 64 ? 1 : bytes / 64);
    if (t == HN_Q8_0 && step % 8 == 0) hn_fetch_lines(a, f, 1); /* scales */
}

#endif
