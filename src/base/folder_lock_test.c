/* SPDX-License-Identifier: Apache-2.0 */
/* folder_lock_test.c - a second process does not get the lock, one that is killed holds it no longer, and a folder that is not
 * there is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/folder_lock.h"

static char root[] = "/tmp/hunch-lock-test-XXXXXX";

static const char *path_of(const char *name) {
    static char path[2][100];
    static unsigned turn;
    char *out = path[turn++ % 2];
    snprintf(out, sizeof path[0], "%s/%s", root, name);
    return out;
}

static int setup(void **state) {
    (void)state;
    return mkdtemp(root) && mkdir(path_of("held"), 0700) == 0 ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    (void)rmdir(path_of("held"));
    (void)unlink(path_of("file"));
    return rmdir(root);
}

/* A process that holds the lock of the folder until it is killed; returns when it has it. */
static pid_t holder(const char *folder) {
    int ready[2], fd;
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hn_lock got;
        (void)alarm(30); /* a test that fails does not end it */
        if (hn_folder_lock(folder, &fd, &got, NULL) || got != HN_LOCK_HELD || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) (void)pause();
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    return child;
}

static hn_lock try_lock(const char *folder, int *fd) {
    hn_lock got;
    assert_int_equal(hn_folder_lock(folder, fd, &got, NULL), HUNCH_OK);
    return got;
}

static void test_one_at_a_time(void **state) {
    (void)state;
    int fd, other;
    const pid_t child = holder(path_of("held"));
    assert_int_equal(try_lock(path_of("held"), &fd), HN_LOCK_BUSY);
    hn_folder_unlock(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(try_lock(path_of("held/../held"), &fd), HN_LOCK_HELD);
    assert_int_equal(try_lock(path_of("held"), &other), HN_LOCK_BUSY); /* the same process, another descriptor */
    hn_folder_unlock(&other);
    hn_folder_unlock(&fd);
    assert_int_equal(try_lock(path_of("held"), &fd), HN_LOCK_HELD);
    hn_folder_unlock(&fd);
    hn_folder_unlock(&fd);
}

static void test_no_folder(void **state) {
    (void)state;
    hunch_error why;
    hn_lock got;
    int fd;
    const int file = open(path_of("file"), O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    (void)close(file);
    static const char *const names[] = {"nowhere", "file"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hn_folder_lock(path_of(names[i]), &fd, &got, &why), HUNCH_FAILED);
        assert_int_equal(fd, -1);
        if (!strstr(why.message, names[i]) || !strstr(why.message, "expected a folder")) fail_msg("%s", why.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_at_a_time), cmocka_unit_test(test_no_folder)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
