/* SPDX-License-Identifier: Apache-2.0 */
/* cores_test.c - cpu quotas of both cgroup versions, read from trees made for the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"

static char root[] = "/tmp/hunch_cores_test.XXXXXX";

static void path_of(char out[256], const char *name) {
    snprintf(out, 256, "%s/%s", root, name);
}

static void put(const char *name, const char *text) {
    char path[256];
    path_of(path, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const char *const folders[] = {"v2", "v2/a", "v2/a/b", "cpu,cpuacct", "cpu,cpuacct/job"};
static const char *const files[] = {"table",
                                    "v2/cpu.max",
                                    "v2/a/cpu.max",
                                    "v2/a/b/cpu.max",
                                    "cpu,cpuacct/job/cpu.cfs_quota_us",
                                    "cpu,cpuacct/job/cpu.cfs_period_us"};

static int setup(void **state) {
    (void)state;
    char path[256];
    if (!mkdtemp(root)) return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        path_of(path, folders[i]);
        if (mkdir(path, 0700) != 0) return -1;
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    char path[256];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        path_of(path, files[i]);
        unlink(path);
    }
    for (size_t i = sizeof folders / sizeof *folders; i-- > 0;) {
        path_of(path, folders[i]);
        rmdir(path);
    }
    return rmdir(root);
}

static int quota(const char *table, const char *mount) {
    char table_path[256], mount_path[256];
    put("table", table);
    path_of(table_path, "table");
    path_of(mount_path, mount);
    return hn_cores_quota(table_path, mount_path);
}

static void test_version_2(void **state) {
    (void)state;
    put("v2/a/b/cpu.max", "150000 100000\n");
    assert_int_equal(quota("0::/a/b\n", "v2"), 2); /* 1.5 rounded up */
    put("v2/a/cpu.max", "50000 100000\n");
    assert_int_equal(quota("0::/a/b\n", "v2"), 1); /* the group above is tighter */
    put("v2/a/cpu.max", "max 100000\n");
    put("v2/a/b/cpu.max", "max 100000\n");
    assert_int_equal(quota("0::/a/b\n", "v2"), 0);
    put("v2/cpu.max", "400000 100000\n");
    assert_int_equal(quota("0::/a/b\n", "v2"), 4);
    assert_int_equal(quota("0::/\n", "v2"), 4);
    assert_int_equal(quota("0::/only/the/host/sees/this\n", "v2"), 4);
}

static void test_version_1(void **state) {
    (void)state;
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
    put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota("5:memory:/job\n4:cpu,cpuacct:/job\n", ""), 3);
    assert_int_equal(quota("4:cpuset:/job\n", ""), 0); /* another controller */
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(quota("4:cpu,cpuacct:/job\n", ""), 0);
}

static void test_nonsense(void **state) {
    (void)state;
    static const char *const tables[] = {"", "\n", "0:", "0::", "0::relative\n", ":::::\n", "no colon"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) assert_int_equal(quota(tables[i], "v2/a"), 0);
    put("v2/a/cpu.max", "banana split\n");
    assert_int_equal(quota("0::/\n", "v2/a"), 0);
    put("v2/a/cpu.max", "");
    assert_int_equal(quota("0::/\n", "v2/a"), 0);
    assert_int_equal(hn_cores_quota("/no/such/table", root), 0);
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
    return cmocka_run_group_tests(tests, setup, teardown);
}
