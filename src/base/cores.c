/* SPDX-License-Identifier: Apache-2.0 */
/* cores.c - how many cores this process may use: its affinity mask, cut by the cpu quota of its cgroups.
 *
 * More threads than that would only preempt each other at the barriers of threads.c. A container may see all cores of
 * the host in its mask and still be held to two by a quota, so both are read.
 */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"

enum { PATH_SIZE = 4096 };

/* Reads up to max numbers; "max" counts as -1. Returns how many there were. */
static int numbers_read(const char *path, long long *v, int max) {
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    int n = 0;
    for (char word[32]; n < max && fscanf(f, "%31s", word) == 1; n++) {
        v[n] = strcmp(word, "max") == 0 ? -1 : strtoll(word, NULL, 10);
    }
    fclose(f);
    return n;
}

/* Cores that quota microseconds in each period buy, rounded up; 0: no limit. */
static int quota_cores(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return 0;
    long long cores = quota / period + (quota % period != 0);
    return cores < INT_MAX ? (int)cores : INT_MAX;
}

static int folder_quota(const char *folder, bool v2) {
    char path[PATH_SIZE + 32];
    long long v[2] = {-1, -1};
    if (v2) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        return numbers_read(path, v, 2) == 2 ? quota_cores(v[0], v[1]) : 0;
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (numbers_read(path, &v[0], 1) < 1) return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return numbers_read(path, &v[1], 1) < 1 ? 0 : quota_cores(v[0], v[1]);
}

static int lower_limit(int a, int b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The limits of a group and of all groups above it. Inside a container the path may name a folder that only the host
 * sees; the walk up ends at the mount itself, which is then the container's own group. */
static int group_quota(const char *mount, const char *group, bool v2) {
    char folder[PATH_SIZE];
    int n = snprintf(folder, sizeof folder, "%s%s", mount, group), limit = 0;
    if (n < 0 || (size_t)n >= sizeof folder) return 0;
    for (size_t root = strlen(mount);;) {
        limit = lower_limit(limit, folder_quota(folder, v2));
        if (strlen(folder) <= root) return limit;
        *strrchr(folder, '/') = '\0';
    }
}

/* True if the comma-separated list of v1 controllers holds "cpu". */
static bool controllers_hold_cpu(const char *list) {
    for (; *list; list += strspn(list, ",")) {
        size_t n = strcspn(list, ",");
        if (n == 3 && strncmp(list, "cpu", 3) == 0) return true;
        list += n;
    }
    return false;
}

int hn_cores_quota(const char *cgroup_table, const char *mount) {
    FILE *f = fopen(cgroup_table, "r");
    if (!f) return 0;
    int limit = 0;
    /* Lines are "id:controllers:/path"; version 2 has no controllers. */
    for (char line[PATH_SIZE]; fgets(line, sizeof line, f);) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/') continue;
        *group++ = '\0';
        controllers++;
        bool v2 = !*controllers;
        if (!v2 && !controllers_hold_cpu(controllers)) continue;
        char root[PATH_SIZE];
        int n = snprintf(root, sizeof root, "%s%s%s", mount, v2 ? "" : "/", controllers);
        if (n < 0 || (size_t)n >= sizeof root) continue;
        limit = lower_limit(limit, group_quota(root, strcmp(group, "/") == 0 ? "" : group, v2));
    }
    fclose(f);
    return limit;
}

static int affinity_cores(void) {
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        int n = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (n > 0) return n;
    }
    return 1;
}

int hn_cores(void) {
    int quota = hn_cores_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return lower_limit(affinity_cores(), quota);
}
