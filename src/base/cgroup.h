/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - the control groups of this process, and the numbers in their files (used by cores.c, memory_available.c). */
#ifndef HN_CGROUP_H
#define HN_CGROUP_H
#include <stdbool.h>

/* Calls visit with the folder of each group that has the controller ("cpu", "memory") and contains this process, and of all
 * groups above it, as far as they are mounted. table and mounts are files in the format of /proc/self/cgroup and
 * /proc/self/mountinfo. */
void hn_cgroups_visit(const char *table, const char *mounts, const char *controller,
                      void (*visit)(void *user, const char *folder, bool v2), void *user);
/* Reads up to max numbers from a file of such a folder; "max" counts as -1. Returns how many there were. */
int hn_cgroup_numbers(const char *folder, const char *file, long long *v, int max);
#endif
