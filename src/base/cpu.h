/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h - what this processor can do. */
#ifndef HN_CPU_H
#define HN_CPU_H
#include "base/status.h"

/* Instruction levels, rising. A machine has every level up to its best one. */
typedef enum hn_isa {
    HN_ISA_REF,    /* plain C */
    HN_ISA_AVX2,   /* AVX2, FMA, F16C */
    HN_ISA_AVX512, /* AVX-512 F, BW, VL, DQ and VNNI */
    HN_ISA_COUNT
} hn_isa;

const char *hn_isa_name(hn_isa isa); /* "ref", "avx2", "avx512" */
hn_isa hn_isa_best(void);            /* by CPUID and XGETBV */
/* NULL or "best": the best. Unknown names and levels the machine lacks: HUNCH_USAGE, listing those it has. */
hunch_status hn_isa_parse(const char *name, hn_isa *out, hunch_error *err);
void hn_cpu_name(char *out, size_t size); /* model name from /proc/cpuinfo, with family/model/stepping where that says more */
#endif
