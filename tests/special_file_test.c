/* SPDX-License-Identifier: Apache-2.0 */
/* special_file_test.c - what a command writes into a pipe or a device goes there, and it stays what it was: root's /dev/null too. */
#include "command.h"

static void test_pipe(void **state) {
    (void)state;
    const char *path = path_of("pipe");
    char magic[6] = "", rest[4096];
    struct stat st;
    assert_int_equal(mkfifo(path, 0600), 0);
    const char *const args[] = {"logits", "-m", STORIES, "-p", "Once", "-o", path, NULL};
    const pid_t child = command_start(args, path_of("out"), path_of("err"));
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, magic, sizeof magic), sizeof magic);
    while (read(fd, rest, sizeof rest) > 0) continue;
    close(fd);
    assert_int_equal(child_wait(child), 0);
    assert_memory_equal(magic, "\x93NUMPY", 6);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pipe)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
