/* SPDX-License-Identifier: Apache-2.0 */
/* cores_test.c - cpu quotas of both cgroup versions, read from trees made for the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>

#include "base/file_tree_for_tests.h"
#include "base/threads.h"

static int setup(void **state) {
    static const char *const folders[] = {"v2", "v2/a", "v2/a/b", "cpu,cpuacct", "cpu,cpuacct/job", "odd place"};
    if (tree_make(state) != 0) return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_folder(folders[i]);
    return 0;
}

static int quota_of(const char *table, const char *mounts) {
    char table_path[256], mounts_path[256];
    tree_put("table", table);
    tree_put("mounts", mounts);
    tree_path(table_path, "table");
    tree_path(mounts_path, "mounts");
    return hn_cores_quota(table_path, mounts_path);
}

/* Version 1's groups in cpu,cpuacct, version 2's in the folder; other mounts before and after them. */
static int quota(const char *table, const char *v2) {
    char lines[2][400], mounts[1200];
    tree_mount(lines[0], sizeof lines[0], "/", "cpu,cpuacct", "cgroup", "cpu,cpuacct");
    tree_mount(lines[1], sizeof lines[1], "/", v2, "cgroup2", "nsdelegate");
    snprintf(mounts, sizeof mounts,
             "22 27 0:21 / /proc rw,relatime shared:1 - proc proc rw\n%s%s25 24 0:23 / /dev/shm rw - tmpfs\n", lines[0],
             lines[1]);
    return quota_of(table, mounts);
}

/* README: "Threads and memory follow the limits of the control group it runs in." */
static void test_version_2(void **state) {
    (void)state;
    tree_put("v2/a/b/cpu.max", "150000 100000\n");
    assert_int_equal(quota("0::/a/b\n", "v2"), 2); /* 1.5 rounded up */
    tree_put("v2/a/cpu.max", "50000 100000\n");
    assert_int_equal(quota("0::/a/b\n", "v2"), 1); /* the group above is tighter */
    tree_put("v2/a/cpu.max", "max 100000\n");
    tree_put("v2/a/b/cpu.max", "max 100000\n");
    assert_int_equal(quota("0::/a/b\n", "v2"), 0);
    tree_put("v2/cpu.max", "400000 100000\n");
    assert_int_equal(quota("0::/a/b\n", "v2"), 4);
    assert_int_equal(quota("0::/\n", "v2"), 4);
    assert_int_equal(quota("0::/only/the/host/sees/this\n", "v2"), 4);
}

static void test_version_1(void **state) {
    (void)state;
    tree_put("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
    tree_put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota("5:memory:/job\n4:cpu,cpuacct:/job\n", "v2/a/b"), 3);
    assert_int_equal(quota("4:cpuset:/job\n", "v2/a/b"), 0); /* another controller */
    tree_put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(quota("4:cpu,cpuacct:/job\n", "v2/a/b"), 0);
}

/* A container that sees its own group at the mount, but the host's names in its table; a name with a blank. */
static void test_mounts(void **state) {
    (void)state;
    char mounts[1200];
    tree_mount(mounts, sizeof mounts, "/docker/0123", "cpu,cpuacct", "cgroup", "cpu,cpuacct");
    tree_put("cpu,cpuacct/cpu.cfs_quota_us", "500000\n");
    tree_put("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    tree_put("cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
    tree_put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota_of("4:cpu,cpuacct:/docker/0123\n", mounts), 5);
    assert_int_equal(quota_of("4:cpu,cpuacct:/docker/0123/job\n", mounts), 2);
    assert_int_equal(quota_of("4:cpu,cpuacct:/docker/01234/job\n", mounts), 5); /* another's, not below it */
    assert_int_equal(quota_of("4:cpuacct:/docker/0123\n", mounts), 0);
    tree_put("odd place/cpu.max", "300000 100000\n");
    tree_mount(mounts, sizeof mounts, "/", "odd\\040place", "cgroup2", "nsdelegate");
    assert_int_equal(quota_of("0::/\n", mounts), 3);
    tree_mount(mounts, sizeof mounts, "/", "odd\\040place", "cgroup", "cpu");
    assert_int_equal(quota_of("0::/\n", mounts), 0); /* of the other version */
}

static void test_nonsense(void **state) {
    (void)state;
    static const char *const tables[] = {"", "\n", "0:", "0::", "0::relative\n", ":::::\n", "no colon"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) assert_int_equal(quota(tables[i], "v2/a"), 0);
    tree_put("v2/a/cpu.max", "banana split\n");
    assert_int_equal(quota("0::/\n", "v2/a"), 0);
    tree_put("v2/a/cpu.max", "");
    assert_int_equal(quota("0::/\n", "v2/a"), 0);
    assert_int_equal(hn_cores_quota("/no/such/table", "/proc/self/mountinfo"), 0);
    static const char *const mounts[] = {
        "", "\n", " - ", " - cgroup2", "1 2 3 - cgroup2 x y\n", "1 2 3 / - cgroup2 x y", "1 2 3 / /\n"};
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++)
        assert_int_equal(quota_of("0::/\n1:cpu:/\n", mounts[i]), 0);
    char *text = calloc(1, 20001); /* a line longer than any */
    memset(text, 'x', 19999);
    text[19999] = '\n';
    tree_put("v2/a/cpu.max", "700000 100000\n");
    tree_mount(text + 15000, 400, "/", "v2/a", "cgroup2", "rw");
    text[14999] = '\n';
    assert_int_equal(quota_of("0::/\n", text), 7);
    free(text);
}

static void test_affinity(void **state) {
    (void)state;
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    int before = hn_cores();
    assert_in_range(before, 1, CPU_COUNT(&old));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &old)) CPU_SET(i, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(hn_cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
    assert_int_equal(hn_cores(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_mounts),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_affinity),
    };
    return cmocka_run_group_tests(tests, setup, tree_remove);
}
