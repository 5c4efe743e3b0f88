/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_ops.c - the sampler's vector loops for every machine, and the choice among levels. The body is vocab_ops_tmpl.h. */
#include "ops/vocab_ops.h"

#include <stdatomic.h>

#define LANES_BYTES 16
#define VOCAB_OPS_TABLE hn_vocab_ops_ref
#include "ops/vocab_ops_tmpl.h"

const hn_vocab_ops *hn_vocab_ops_for(hn_isa isa) {
#ifdef __x86_64__
    if (hn_isa_includes(isa, HN_ISA_AVX512)) return &hn_vocab_ops_avx512;
    if (hn_isa_includes(isa, HN_ISA_AVX2)) return &hn_vocab_ops_avx2;
#endif
    (void)isa;
    return &hn_vocab_ops_ref;
}

const hn_vocab_ops *hn_vocab_ops_best(void) {
    static _Atomic(const hn_vocab_ops *) best; /* several threads may set it, to the same value */
    const hn_vocab_ops *vocab_ops = atomic_load_explicit(&best, memory_order_relaxed);
    if (!vocab_ops) {
        vocab_ops = hn_vocab_ops_for(hn_isa_best());
        atomic_store_explicit(&best, vocab_ops, memory_order_relaxed);
    }
    return vocab_ops;
}

double hn_weights_sum(const float *w, int n) {
    return hn_vocab_ops_best()->sum(w, n);
}
