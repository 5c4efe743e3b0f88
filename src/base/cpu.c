/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - asks the processor which instruction levels it has, and the system whether it saves their registers.
 *
 * Owns the names of the levels. Which kernel runs at a level is decided in src/ops/.
 */
#include "base/cpu.h"

#include <stdio.h>
#include <string.h>

static const char *const isa_names[HN_ISA_COUNT] = {"ref", "avx2", "avx512"};

const char *hn_isa_name(hn_isa isa) {
    return isa_names[isa];
}

#if defined(__x86_64__)
#include <cpuid.h>

/* Register sets that the system saves on a context switch (XCR0). */
static unsigned long long saved_state(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (unsigned long long)high << 32 | low;
}

hn_isa hn_isa_best(void) {
    enum { YMM = 0x6, ZMM = 0xE6 };
    const unsigned need1 = bit_FMA | bit_AVX | bit_F16C | bit_OSXSAVE;
    const unsigned need512 = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & need1) != need1) return HN_ISA_REF;
    unsigned long long saved = saved_state();
    if ((saved & YMM) != YMM) return HN_ISA_REF;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return HN_ISA_REF;
    bool zmm = (saved & ZMM) == ZMM && (b & need512) == need512 && (c & bit_AVX512VNNI);
    return zmm ? HN_ISA_AVX512 : HN_ISA_AVX2;
}

#else

hn_isa hn_isa_best(void) {
    return HN_ISA_REF;
}

#endif

hunch_status hn_isa_parse(const char *name, hn_isa *out, hunch_error *err) {
    hn_isa best = hn_isa_best();
    if (!name || strcmp(name, "best") == 0) {
        *out = best;
        return HUNCH_OK;
    }
    for (int i = 0; i <= (int)best; i++) {
        if (strcmp(name, isa_names[i]) == 0) {
            *out = (hn_isa)i;
            return HUNCH_OK;
        }
    }
    char list[64] = "";
    for (int i = 0; i <= (int)best; i++) strcat(strcat(list, isa_names[i]), ", ");
    bool known = false;
    for (int i = (int)best + 1; i < HN_ISA_COUNT; i++) known |= strcmp(name, isa_names[i]) == 0;
    return hn_fail(err, HUNCH_USAGE, "isa '%s' %s, expected %sbest", name,
                   known ? "is more than this processor has" : "is not a level", list);
}

/* Copies the value of the line "key : value" of /proc/cpuinfo into out if the line is that. */
static void info_take(const char *line, const char *key, char *out, size_t size) {
    size_t n = strlen(key);
    if (out[0] || strncmp(line, key, n) != 0) return;
    const char *p = line + n + strspn(line + n, " \t");
    if (*p != ':') return;
    p += 1 + strspn(p + 1, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(p, "\n"), p);
}

void hn_cpu_name(char *out, size_t size) {
    char line[512], name[96] = "", family[16] = "", model[16] = "", stepping[16] = "", part[32] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        info_take(line, "model name", name, sizeof name);
        info_take(line, "cpu family", family, sizeof family);
        info_take(line, "model", model, sizeof model);
        info_take(line, "stepping", stepping, sizeof stepping);
        info_take(line, "CPU part", part, sizeof part);
    }
    if (f) fclose(f);
    if (!name[0]) snprintf(name, sizeof name, "unknown processor%s%s", part[0] ? " part " : "", part);
    /* Virtual machines often hide the model behind a brand ("AMD EPYC"): the numbers then say which core it is. */
    if (family[0] && model[0]) {
        snprintf(out, size, "%s (family %s model %s stepping %s)", name, family, model, stepping);
    } else {
        snprintf(out, size, "%s", name);
    }
}
