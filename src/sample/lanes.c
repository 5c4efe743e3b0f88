/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - the sampler's vector loops for every machine, and the choice among levels. The body is lanes_tmpl.h. */
#include "sample/lanes.h"

#include <stdatomic.h>

#define LANES_BYTES 16
#define LANES_TABLE hn_lanes_ref
#include "sample/lanes_tmpl.h"

const hn_lanes *hn_lanes_for(hn_isa isa) {
#ifdef __x86_64__
    if (hn_isa_includes(isa, HN_ISA_AVX512)) return &hn_lanes_avx512;
    if (hn_isa_includes(isa, HN_ISA_AVX2)) return &hn_lanes_avx2;
#endif
    (void)isa;
    return &hn_lanes_ref;
}

const hn_lanes *hn_lanes_best(void) {
    static _Atomic(const hn_lanes *) best; /* several threads may set it, to the same value */
    const hn_lanes *lanes = atomic_load_explicit(&best, memory_order_relaxed);
    if (!lanes) {
        lanes = hn_lanes_for(hn_isa_best());
        atomic_store_explicit(&best, lanes, memory_order_relaxed);
    }
    return lanes;
}

double hn_weights_sum(const float *w, int n) {
    return hn_lanes_best()->sum(w, n);
}
