/* SPDX-License-Identifier: Apache-2.0 */
/* memory_available_test.c - the memory that the system, control groups of both versions and ulimit leave, read from tables made for
 * the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include "base/run_mode_for_tests.h"
#include "base/mem.h"
#include "base/file_tree_for_tests.h"

static size_t left(const char *meminfo, const char *table) {
    char paths[3][256], lines[2][400], mounts[800];
    tree_mount(lines[0], sizeof lines[0], "/", "groups", "cgroup2", "nsdelegate");
    tree_mount(lines[1], sizeof lines[1], "/", "groups/memory", "cgroup", "memory");
    snprintf(mounts, sizeof mounts, "%s%s", lines[0], lines[1]);
    tree_put("meminfo", meminfo);
    tree_put("table", table);
    tree_put("mounts", mounts);
    tree_path(paths[0], "meminfo");
    tree_path(paths[1], "table");
    tree_path(paths[2], "mounts");
    return hn_memory_available_of(paths[0], paths[1], paths[2]);
}

#define SYSTEM "MemTotal:  9000 kB\nMemFree:  100 kB\nMemAvailable:   5000 kB\nSwapTotal: 7000 kB\nSwapFree:   300 kB\n"
#define KIB(n) ((size_t)(n) << 10)

static void test_system(void **state) {
    (void)state;
    assert_int_equal(left(SYSTEM, ""), KIB(5300));
    assert_int_equal(left("MemAvailable: 7 kB\n", ""), KIB(7));
    assert_true(left("MemFree: 7 kB\n", "") == SIZE_MAX);
    assert_true(left("SwapFree: 7 kB\n", "") == SIZE_MAX); /* swap without memory is not enough */
    assert_true(left("MemAvailable: much\n", "") == SIZE_MAX);
    assert_true(left("", "") == SIZE_MAX);
    assert_true(hn_memory_available_of("/no/such/file", "/no/such/file", "/no") == SIZE_MAX);
}

/* README: "Threads and memory follow the limits of the control group it runs in." */
static void test_groups(void **state) {
    (void)state;
    tree_folder("groups");
    tree_folder("groups/a");
    tree_folder("groups/a/b");
    tree_folder("groups/memory");
    tree_put("groups/a/memory.max", "2048000\n");
    tree_put("groups/a/memory.current", "1024000\n");
    tree_put("groups/a/b/memory.max", "max\n");
    tree_put("groups/a/b/memory.current", "1024000\n");
    assert_int_equal(left(SYSTEM, "0::/a/b\n"), 1024000); /* the group above limits */
    tree_put("groups/a/memory.stat", "anon 5\ninactive_file 20000\nactive_file 4000\n");
    assert_int_equal(left(SYSTEM, "0::/a/b\n"), 1048000); /* files can be dropped */
    tree_put("groups/a/b/memory.high", "1030000\n");
    assert_int_equal(left(SYSTEM, "0::/a/b\n"), 6000); /* above it the group is throttled */
    tree_put("groups/a/b/memory.high", "max\n");
    assert_int_equal(left(SYSTEM, "0::/a/b\n"), 1048000);
    tree_put("groups/a/b/memory.max", "1000000\n");
    assert_int_equal(left(SYSTEM, "0::/a/b\n"), 0); /* above its limit */
    tree_put("groups/a/b/memory.max", "99999999999\n");
    tree_put("groups/a/memory.max", "99999999999\n");
    assert_int_equal(left(SYSTEM, "0::/a/b\n"), KIB(5300));
    assert_int_equal(left(SYSTEM, "0::/elsewhere\n"), KIB(5300));
    tree_put("groups/memory/memory.limit_in_bytes", "70000\n");
    tree_put("groups/memory/memory.usage_in_bytes", "60000\n");
    tree_put("groups/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\ntotal_active_file 20\n");
    assert_int_equal(left(SYSTEM, "3:cpu:/\n4:memory:/\n"), 10520);
}

/* In a process of its own, which exits with 0 if the memory left is within the limit that it set. */
static void test_own_limit(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* terabytes of addresses */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit r = {64 << 20, 64 << 20};
        if (setrlimit(RLIMIT_DATA, &r) != 0) _exit(2);
        _exit(hn_memory_available() > 0 && hn_memory_available() < 64 << 20 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(hn_memory_available() > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_own_limit),
    };
    return cmocka_run_group_tests(tests, tree_make, tree_remove);
}
