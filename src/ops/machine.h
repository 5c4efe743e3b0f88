/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - the limits of this machine, which speeds are compared with. Measured with the workers of a pool, at a
 * level; not to be called inside a pool run. */
#ifndef HN_MACHINE_H
#define HN_MACHINE_H
#include "ops/backend.h"

typedef struct hn_machine hn_machine;

hunch_status hn_machine_open(hn_machine **out, hn_pool *pool, hn_isa isa, hunch_error *err); /* the pool is borrowed */
void hn_machine_close(hn_machine **m);

/* n readings, in GB/s, of a sum over `bytes` (at least a page a thread) by the first `threads` ranks, each over its own part in
 * ascending order; several sums per reading if it fits the caches. The memory is kept for the next call, unless that needs more
 * or other pages; huge_pages false: 4 KiB. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_machine_read(hn_machine *m, size_t bytes, int threads, bool huge_pages, int n, double *gb_s,
                             hunch_error *err);

/* Rates of all ranks together, the best of several runs. int8, bf16, f32: `linear` on Q8_0, BF16 and F32 weights, with
 * its block scales, on operands in the L2 cache. The dots: only the level's dot products, on registers; 0 if it has
 * none. */
typedef struct hn_peaks {
    double int8_gmac_s, bf16_gmac_s, f32_gmac_s;
    double int8_dot_gmac_s, bf16_dot_gmac_s;
    double barrier_us;
} hn_peaks;
hunch_status hn_machine_peaks(hn_machine *m, hn_peaks *out, hunch_error *err);

/* A level's own loops. read: a sum of 64-bit words, whole lines of 256 bytes. dots: the number of multiply-accumulates in `rounds`. */
typedef uint64_t hn_read_fn(const void *p, size_t bytes);
typedef double hn_dots_fn(int rounds);
hn_read_fn hn_read_avx2, hn_read_avx512;
hn_dots_fn hn_dots_int8_avxvnni, hn_dots_int8_avx512, hn_dots_int8_amx, hn_dots_int8_dotprod, hn_dots_int8_i8mm;
hn_dots_fn hn_dots_bf16_avx512bf16, hn_dots_bf16_amx;
#endif
