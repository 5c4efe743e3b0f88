/* SPDX-License-Identifier: Apache-2.0 */
/* cores.c - how many cores this process may use: its affinity mask, cut by the cpu quota of its cgroups.
 *
 * More threads than that would only preempt each other at the barriers of threads.c. A container may see all cores of
 * the host in its mask and still be held to two by a quota, so both are read.
 */
#include <limits.h>
#include <sched.h>

#include "base/cgroup.h"
#include "base/threads.h"

/* Cores that a quota of microseconds in each period amounts to, rounded up; 0: no limit. */
static int quota_cores(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return 0;
    long long cores = quota / period + (quota % period != 0);
    return cores < INT_MAX ? (int)cores : INT_MAX;
}

static int folder_quota(const char *folder, bool v2) {
    long long v[2] = {-1, -1};
    if (v2) return hn_cgroup_numbers(folder, "cpu.max", v, 2) == 2 ? quota_cores(v[0], v[1]) : 0;
    if (hn_cgroup_numbers(folder, "cpu.cfs_quota_us", &v[0], 1) < 1) return 0;
    return hn_cgroup_numbers(folder, "cpu.cfs_period_us", &v[1], 1) < 1 ? 0 : quota_cores(v[0], v[1]);
}

static int lower_limit(int a, int b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static void quota_apply(void *limit, const char *folder, bool v2) {
    *(int *)limit = lower_limit(*(int *)limit, folder_quota(folder, v2));
}

int hn_cores_quota(const char *cgroup_table, const char *mounts) {
    int limit = 0;
    hn_cgroups_visit(cgroup_table, mounts, "cpu", quota_apply, &limit);
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
    const int quota = hn_cores_quota("/proc/self/cgroup", "/proc/self/mountinfo");
    const int cores = lower_limit(affinity_cores(), quota);
    return cores < HN_MAX_THREADS ? cores : HN_MAX_THREADS;
}
