/* SPDX-License-Identifier: Apache-2.0 */
/* cores_test.c - cpu quotas of both cgroup versions, read from trees made for the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>

#include "base/threads.h"
#include "base/tree_for_tests.h"

static int setup(void **state) {
    static const char *const folders[] = {"v2", "v2/a", "v2/a/b", "cpu,cpuacct", "cpu,cpuacct/job"};
    if (tree_make(state) != 0) return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_folder(folders[i]);
    return 0;
}

static int quota(const char *table, const char *mount) {
    char table_path[256], mount_path[256];
    tree_put("table", table);
    tree_path(table_path, "table");
    tree_path(mount_path, mount);
    return hn_cores_quota(table_path, mount_path);
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
    assert_int_equal(quota("5:memory:/job\n4:cpu,cpuacct:/job\n", ""), 3);
    assert_int_equal(quota("4:cpuset:/job\n", ""), 0); /* another controller */
    tree_put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(quota("4:cpu,cpuacct:/job\n", ""), 0);
}

static void test_nonsense(void **state) {
    (void)state;
    static const char *const tables[] = {"", "\n", "0:", "0::", "0::relative\n", ":::::\n", "no colon"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) assert_int_equal(quota(tables[i], "v2/a"), 0);
    tree_put("v2/a/cpu.max", "banana split\n");
    assert_int_equal(quota("0::/\n", "v2/a"), 0);
    tree_put("v2/a/cpu.max", "");
    assert_int_equal(quota("0::/\n", "v2/a"), 0);
    assert_int_equal(hn_cores_quota("/no/such/table", tree_root), 0);
}

static void test_affinity(void **state) {
    (void)state;
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    int before = hn_cores();
    assert_in_range(before, 1, CPU_COUNT(&old));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
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
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_affinity),
    };
    return cmocka_run_group_tests(tests, setup, tree_remove);
}
