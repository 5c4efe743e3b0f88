/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - fills the tables, one per level: plain C first, then each level's own functions in ascending order. */
#include "ops/kernels.h"

#include <pthread.h>

static struct hn_kernels tables[HN_ISA_COUNT];

/* Functions that fill the table of a level that the machine lacks are not called: they are compiled for that level too. */
static HN_UNUSED bool takes(hn_isa isa, hn_isa part) {
    return hn_isa_includes(isa, part) && hn_isa_has(part);
}

static void fill(struct hn_kernels *k, hn_isa isa) {
    hn_kernels_ref_linear(k);
    hn_kernels_ref_norm(k);
    hn_kernels_ref_attention(k);
    hn_kernels_ref_delta(k);
    hn_kernels_ref_ssm(k);
#if defined(__x86_64__)
    if (takes(isa, HN_ISA_AVX2)) {
        hn_kernels_avx2_linear(k);
        hn_kernels_avx2_rows(k);
        hn_kernels_avx2_attention(k);
        hn_kernels_avx2_delta(k);
        hn_kernels_avx2_ssm(k);
        hn_kernels_avx2_attention_bf16(k);
        hn_kernels_avx2_keys(k);
    }
    if (takes(isa, HN_ISA_AVXVNNI)) hn_kernels_avxvnni_linear(k);
    if (takes(isa, HN_ISA_AVX512)) {
        hn_kernels_avx512_linear(k);
        hn_kernels_avx512_rows(k);
        hn_kernels_avx512_attention(k);
        hn_kernels_avx512_delta(k);
        hn_kernels_avx512_ssm(k);
        hn_kernels_avx512_attention_bf16(k);
        hn_kernels_avx512_keys(k);
    }
    if (takes(isa, HN_ISA_AVX512BF16)) {
        hn_kernels_avx512bf16_linear(k);
        hn_kernels_avx512bf16_attention(k);
        hn_kernels_avx512bf16_q8_cache(k);
    }
    if (takes(isa, HN_ISA_AMX)) {
        hn_kernels_amx_linear(k);
        hn_kernels_amx_attention(k);
    }
#elif defined(__aarch64__)
    if (takes(isa, HN_ISA_DOTPROD)) {
        hn_kernels_dotprod_linear(k);
        hn_kernels_dotprod_rows(k);
        hn_kernels_dotprod_attention(k);
        hn_kernels_dotprod_delta(k);
    }
    if (takes(isa, HN_ISA_I8MM)) hn_kernels_i8mm_linear(k);
#else
    (void)isa;
#endif
}

static void fill_all(void) {
    for (int isa = 0; isa < HN_ISA_COUNT; isa++) fill(&tables[isa], (hn_isa)isa);
}

const struct hn_kernels *hn_kernels_get(hn_isa isa) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_all);
    return &tables[isa];
}
