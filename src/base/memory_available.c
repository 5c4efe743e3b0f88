/* SPDX-License-Identifier: Apache-2.0 */
/* memory_available.c - how much memory this process may still allocate.
 *
 * Linux overcommits addresses and kills a process that touches more memory than there is; a load that would end so is refused.
 * Files in the page cache count as free: they can be dropped. All of it may change at any moment.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cgroup.h"
#include "base/mem.h"

/* The sum of the numbers on lines that begin with one of two words, -1 if the first is missing. */
static long long lines_sum(const char *path, const char *first, const char *second) {
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    long long sum = 0, n;
    bool found = false;
    char word[64];
    for (char line[512]; fgets(line, sizeof line, f);) {
        if (sscanf(line, "%63s %lld", word, &n) != 2 || n < 0) continue;
        const bool is_first = strcmp(word, first) == 0;
        if (is_first || strcmp(word, second) == 0) sum += n;
        found |= is_first;
    }
    fclose(f);
    return found ? sum : -1;
}

static size_t lower(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The rest of a limit of which `used` bytes are in use. */
static size_t rest_of(unsigned long long limit, unsigned long long used) {
    const unsigned long long rest = used < limit ? limit - used : 0;
    return rest < SIZE_MAX ? (size_t)rest : SIZE_MAX;
}

/* In version 2 also memory.high, above which a group is throttled: a load would take for ever. -1: no limit. */
static long long group_limit(const char *folder, bool v2) {
    long long limit = -1, high = -1;
    if (hn_cgroup_numbers(folder, v2 ? "memory.max" : "memory.limit_in_bytes", &limit, 1) < 1) limit = -1;
    if (!v2 || hn_cgroup_numbers(folder, "memory.high", &high, 1) < 1 || high < 0) return limit;
    return limit < 0 || high < limit ? high : limit;
}

static void group_limit_apply(void *left, const char *folder, bool v2) {
    char stat[4200];
    long long used;
    const long long limit = group_limit(folder, v2);
    if (limit < 0) return;
    if (hn_cgroup_numbers(folder, v2 ? "memory.current" : "memory.usage_in_bytes", &used, 1) < 1 || used < 0) return;
    snprintf(stat, sizeof stat, "%s/memory.stat", folder);
    const long long files =
        lines_sum(stat, v2 ? "inactive_file" : "total_inactive_file", v2 ? "active_file" : "total_active_file");
    if (files > 0) used = files < used ? used - files : 0;
    *(size_t *)left = lower(*(size_t *)left, rest_of((unsigned long long)limit, (unsigned long long)used));
}

size_t hn_memory_available_of(const char *meminfo, const char *cgroup_table, const char *mounts) {
    const long long kib = lines_sum(meminfo, "MemAvailable:", "SwapFree:");
    size_t left = kib < 0 || kib > (long long)(SIZE_MAX >> 11) ? SIZE_MAX : (size_t)kib << 10;
    hn_cgroups_visit(cgroup_table, mounts, "memory", group_limit_apply, &left);
    return left;
}

static size_t own_limit(int which, const char *used) {
    struct rlimit r;
    if (getrlimit(which, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
    const long long kib = lines_sum("/proc/self/status", used, used);
    return rest_of(r.rlim_cur, kib > 0 ? (unsigned long long)kib << 10 : 0);
}

size_t hn_memory_available(void) {
    const size_t system = hn_memory_available_of("/proc/meminfo", "/proc/self/cgroup", "/proc/self/mountinfo");
    return lower(system, lower(own_limit(RLIMIT_AS, "VmSize:"), own_limit(RLIMIT_DATA, "VmData:")));
}
