/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - detects which instruction levels the processor has and whether the system saves their registers.
 *
 * Owns the names of the levels. Which kernel runs at a level is decided in src/ops/.
 */
#include "base/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

static const struct {
    const char *name;
    hn_isa below;
} levels[HN_ISA_COUNT] = {
    [HN_ISA_REF] = {"ref", HN_ISA_REF},
    [HN_ISA_AVX2] = {"avx2", HN_ISA_REF},
    [HN_ISA_AVXVNNI] = {"avxvnni", HN_ISA_AVX2},
    [HN_ISA_AVX512] = {"avx512", HN_ISA_AVX2},
    [HN_ISA_AVX512BF16] = {"avx512bf16", HN_ISA_AVX512},
    [HN_ISA_AMX] = {"amx", HN_ISA_AVX512BF16},
    [HN_ISA_DOTPROD] = {"dotprod", HN_ISA_REF},
    [HN_ISA_I8MM] = {"i8mm", HN_ISA_DOTPROD},
};

const char *hn_isa_name(hn_isa isa) {
    return levels[isa].name;
}

hn_isa hn_isa_below(hn_isa isa) {
    return levels[isa].below;
}

bool hn_isa_includes(hn_isa isa, hn_isa part) {
    while (isa != part && isa != HN_ISA_REF) isa = levels[isa].below;
    return isa == part;
}

/* Detection, each level on its own. */
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Register sets that the system saves on a context switch (XCR0). */
static unsigned long long saved_state(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (unsigned long long)high << 32 | low;
}

/* Linux gives a process the tile registers only on request. */
static bool tiles_granted(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static void detect_levels(bool has[HN_ISA_COUNT]) {
    enum { YMM = 0x6, ZMM = 0xE6, TILES = 0x60000 };
    enum { AVXVNNI = 1 << 4, AVX512BF16 = 1 << 5 };                     /* leaf 7, 1: eax */
    const unsigned amx = 1u << 22 | 1u << 24 | 1u << 25;                /* leaf 7, 0: edx: bf16, tile, int8 */
    const unsigned need1 = bit_FMA | bit_AVX | bit_F16C | bit_OSXSAVE;
    const unsigned need512 = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
    unsigned a, b, c, d, a1 = 0, b1, c1, d1;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & need1) != need1) return;
    const unsigned long long saved = saved_state();
    if ((saved & YMM) != YMM || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    if (a > 0) __get_cpuid_count(7, 1, &a1, &b1, &c1, &d1);
    has[HN_ISA_AVX2] = (b & bit_AVX2) != 0;
    has[HN_ISA_AVXVNNI] = (a1 & AVXVNNI) != 0;
    has[HN_ISA_AVX512] = (saved & ZMM) == ZMM && (b & need512) == need512 && (c & bit_AVX512VNNI);
    has[HN_ISA_AVX512BF16] = (a1 & AVX512BF16) != 0;
    has[HN_ISA_AMX] = (saved & TILES) == TILES && (d & amx) == amx && tiles_granted();
}
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

static void detect_levels(bool has[HN_ISA_COUNT]) {
    const unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);
    has[HN_ISA_DOTPROD] = (one & HWCAP_ASIMDDP) && (one & HWCAP_ASIMDHP);
    has[HN_ISA_I8MM] = (two & HWCAP2_I8MM) != 0;
}
#else
static void detect_levels(bool has[HN_ISA_COUNT] HN_UNUSED) {}
#endif

static bool supported[HN_ISA_COUNT];

static void detect_once(void) {
    detect_levels(supported);
    supported[HN_ISA_REF] = true;
    for (int i = 1; i < HN_ISA_COUNT; i++) supported[i] = supported[i] && supported[levels[i].below];
}

bool hn_isa_has(hn_isa isa) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, detect_once);
    return supported[isa];
}

hn_isa hn_isa_next(hn_isa isa) {
    do isa++;
    while (isa < HN_ISA_COUNT && !hn_isa_has(isa));
    return isa;
}

hn_isa hn_isa_best(void) {
    hn_isa best = HN_ISA_REF;
    for (hn_isa i = HN_ISA_REF; i < HN_ISA_COUNT; i = hn_isa_next(i)) best = i;
    return best;
}

hunch_status hn_isa_parse(const char *name, hn_isa *out, hunch_error *err) {
    if (!name || strcmp(name, "best") == 0) {
        *out = hn_isa_best();
        return HUNCH_OK;
    }
    char list[128] = "", hint[100];
    const char *names[HN_ISA_COUNT + 1] = {[HN_ISA_COUNT] = "best"};
    bool known = false;
    for (hn_isa i = HN_ISA_REF; i < HN_ISA_COUNT; i++) {
        const bool same = strcmp(name, levels[i].name) == 0;
        known |= same;
        names[i] = levels[i].name;
        if (!hn_isa_has(i)) continue;
        if (same) {
            *out = i;
            return HUNCH_OK;
        }
        strcat(strcat(list, levels[i].name), ", ");
    }
    hn_nearest_hint(hint, sizeof hint, name, names, HN_ISA_COUNT + 1);
    return hn_fail(err, HUNCH_USAGE, "isa '%s' %s%s expected %sbest", name,
                   known ? "is more than this processor has" : "is not a level", !known && *hint ? hint : ",", list);
}

/* If the line of /proc/cpuinfo is "key : value", copies the value into out. */
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
    /* Virtual machines often report only a brand as the model ("AMD EPYC"): the numbers then identify the core. */
    if (family[0] && model[0]) {
        snprintf(out, size, "%s (family %s model %s stepping %s)", name, family, model, stepping);
    } else {
        snprintf(out, size, "%s", name);
    }
}
