/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h - the instruction levels and the name of this processor. */
#ifndef HN_CPU_H
#define HN_CPU_H
#include "base/status.h"

/* Instruction levels. Each builds on an earlier one (hn_isa_below); a machine need not have all levels below its best: Zen 4 has
 * avx512bf16 without avxvnni. */
typedef enum hn_isa {
    HN_ISA_REF,        /* plain C */
    HN_ISA_AVX2,       /* AVX2, FMA, F16C */
    HN_ISA_AVXVNNI,    /* and VNNI in its VEX form */
    HN_ISA_AVX512,     /* on AVX2: AVX-512 F, BW, VL, DQ and VNNI */
    HN_ISA_AVX512BF16, /* and BF16 */
    HN_ISA_AMX,        /* and tiles of int8 and bf16, if the system permits their use */
    HN_ISA_DOTPROD,    /* aarch64: dot products of bytes, and arithmetic of half floats */
    HN_ISA_I8MM,       /* and matrix products of bytes */
    HN_ISA_COUNT
} hn_isa;

const char *hn_isa_name(hn_isa isa); /* "ref", "avx2", "avxvnni", "avx512", "avx512bf16", "amx", "dotprod", "i8mm" */
bool hn_isa_has(hn_isa isa);         /* whether this machine has it, by the processor and the system */
hn_isa hn_isa_best(void);            /* the last that it has */
hn_isa hn_isa_next(hn_isa isa);      /* the next that it has; after the best HN_ISA_COUNT. The first is HN_ISA_REF. */
hn_isa hn_isa_below(hn_isa isa);     /* the level that it builds on; of HN_ISA_REF itself */
bool hn_isa_includes(hn_isa isa, hn_isa part); /* part is isa, or isa builds on it */
/* NULL or "best": the best. Unknown names and levels the machine lacks: HUNCH_USAGE, listing those it has. */
hunch_status hn_isa_parse(const char *name, hn_isa *out, hunch_error *err);
void hn_cpu_name(char *out, size_t size); /* model name from /proc/cpuinfo, with family/model/stepping if there */
#endif
