/* SPDX-License-Identifier: Apache-2.0 */
/* special_file_test.c - output to a pipe, a device or an open file is written there, and the file itself is not
 * replaced, also root's /dev/null and /dev/stdout. A link stays, and its target is written. Descriptors that were
 * closed at the start stay closed. */
#include "command.h"

/* Commands that write a named file; -o is the last argument. */
static const char *const logits[] = {"logits", "-m", STORIES, "-p", "Once", "-o", NULL};
static const char *const convert[] = {"convert", "-m", STORIES_HF, "--force", "-o", NULL};
static const struct {
    const char *const *args;
    const char *magic;
} writers[] = {{logits, "\x93NUMPY"}, {convert, "GGUF"}};

static pid_t writer_start(int writer, const char *path, const char *out) {
    const char *args[8] = {NULL};
    int n = 0;
    for (; writers[writer].args[n]; n++)
        args[n] = writers[writer].args[n];
    args[n] = path;
    return command_start(args, out, path_of("err"));
}

static void test_pipe(void **state) {
    (void)state;
    const char *path = path_of("pipe");
    char magic[6] = "", rest[4096];
    struct stat st;
    assert_int_equal(mkfifo(path, 0600), 0);
    for (int i = 0; i < 2; i++) {
        const pid_t child = writer_start(i, path, path_of("out"));
        const int fd = open(path, O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(read(fd, magic, sizeof magic), sizeof magic);
        while (read(fd, rest, sizeof rest) > 0) continue;
        close(fd);
        assert_int_equal(child_wait(child), 0);
        assert_memory_equal(magic, writers[i].magic, strlen(writers[i].magic));
        assert_int_equal(stat(path, &st), 0);
        assert_true(S_ISFIFO(st.st_mode));
    }
}

static void write_to(int writer, const char *path, const char *out) {
    const int code = child_wait(writer_start(writer, path, out));
    if (code != 0)
        fail_msg("%s to %s: code %d, %s", writers[writer].args[0], path, code, file_read(path_of("err"), NULL));
}

static void link_make(const char *to, const char *at) {
    unlink(at);
    assert_int_equal(symlink(to, at), 0);
}

static void link_check(const char *at, const char *to) {
    char text[400] = "";
    if (readlink(at, text, sizeof text - 1) < 0 || strcmp(text, to) != 0)
        fail_msg("%s is not a link to %s any more", at, to);
}

/* The file of the command with this number exists, and no temporary file. */
static void whole_check(int writer, const char *path) {
    size_t len;
    char *text = file_read(path, &len), partial[400];
    if (len < 2000 || memcmp(text, writers[writer].magic, strlen(writers[writer].magic)) != 0)
        fail_msg("%s: %zu bytes that are not the file", path, len);
    free(text);
    snprintf(partial, sizeof partial, "%s.partial", path);
    assert_int_equal(access(partial, F_OK), -1);
}

static void test_links(void **state) {
    (void)state;
    char target[400], dangling[400];
    assert_int_equal(mkdir(path_of("other"), 0700), 0);
    snprintf(target, sizeof target, "%s/real", path_of("other"));
    snprintf(dangling, sizeof dangling, "%s/new", path_of("other"));
    for (int i = 0; i < 2; i++) {
        struct stat st;
        test_file_write(target, "old", 3);
        assert_int_equal(chmod(target, 0620), 0); /* permissions are kept */
        unlink(dangling);
        link_make("other/real", path_of("link")); /* relative to the link's folder, not to the current one */
        link_make(path_of("link"), path_of("link to it"));
        link_make("other/new", path_of("dangling"));
        write_to(i, path_of("link to it"), path_of("out"));
        link_check(path_of("link to it"), path_of("link"));
        link_check(path_of("link"), "other/real");
        whole_check(i, target);
        assert_int_equal(stat(target, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0620);
        write_to(i, path_of("dangling"), path_of("out"));
        link_check(path_of("dangling"), "other/new");
        whole_check(i, dangling);
    }
    link_make("ring", path_of("ring"));
    refused(1, "symbolic links", "logits", "-m", STORIES, "-p", "Once", "-o", path_of("ring"));
    refused(1, "symbolic links", "convert", "-m", STORIES_HF, "-o", path_of("ring"));
}

/* Names like /dev/stdout, where standard output is a file: rename would put a file in the place of the link. */
static void test_open_already(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        link_make("/proc/self/fd/1", path_of("my stdout"));
        write_to(i, path_of("my stdout"), path_of("said"));
        link_check(path_of("my stdout"), "/proc/self/fd/1");
        whole_check(i, path_of("said"));
    }
    const int fd = open(path_of("said"), O_WRONLY | O_TRUNC); /* the command has it too, as its third */
    assert_true(fd >= 0);
    char name[40];
    assert_int_equal(write(fd, "before ", 7), 7);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    link_make(name, path_of("my third"));
    write_to(0, path_of("my third"), path_of("out"));
    close(fd);
    link_check(path_of("my third"), name);
    char *text = file_read(path_of("said"), NULL);
    assert_memory_equal(text, "before \x93NUMPY", 13);
    free(text);
}

/* Another user's link in a folder like /tmp, where the system does not follow it: neither do we. */
static void test_link_of_another(void **state) {
    (void)state;
    char link[400];
    const char *ours = text_write("ours", "ours");
    assert_int_equal(mkdir(path_of("tmp"), 0700), 0);
    assert_int_equal(chmod(path_of("tmp"), 01777), 0);
    snprintf(link, sizeof link, "%s/out", path_of("tmp"));
    link_make(ours, link);
    if (lchown(link, 12345, 12345) != 0 || access(link, F_OK) == 0) { /* by fs.protected_symlinks */
        print_message("not shown: this user cannot make one, or this system follows it\n");
        skip();
    }
    refused(1, "Permission denied", "logits", "-m", STORIES, "-p", "Once", "-o", link);
    refused(1, "Permission denied", "convert", "-m", STORIES_HF, "-o", link);
    link_check(link, ours);
    char *text = file_read(ours, NULL);
    assert_string_equal(text, "ours");
    free(text);
}

/* An existing link under the name of the partial file: its target must not be written. */
static void test_planted(void **state) {
    (void)state;
    char partial[400];
    for (int i = 0; i < 2; i++) {
        const char *theirs = text_write("theirs", "theirs");
        snprintf(partial, sizeof partial, "%s.partial", path_of("made"));
        unlink(path_of("made"));
        link_make(theirs, partial);
        write_to(i, path_of("made"), path_of("out"));
        whole_check(i, path_of("made"));
        char *text = file_read(theirs, NULL);
        assert_string_equal(text, "theirs");
        free(text);
    }
}

/* Runs the command with a descriptor closed; its exit code, -SIGALRM if it never ends. */
static int run_without(int closed, const char *const *args) {
    const char *argv[16] = {HUNCH_COMMAND};
    for (int i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int in = open("/dev/null", O_RDONLY), out = open(path_of("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int err = open(path_of("err"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
            _exit(99);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        close(closed);
        alarm(20);
        signal(SIGALRM, SIG_DFL);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(98);
    }
    return child_wait(child);
}

/* Its number is not used: neither read nor written by mistake. */
static void test_closed(void **state) {
    (void)state;
    static const struct {
        int closed, code;
        const char *says; /* on standard error; NULL: that is closed */
        const char *args[10];
    } cases[] = {{0, 0, "", {"chat", "-m", STORIES}},
                 {0, 1, "-: Bad file descriptor", {"run", "-m", STORIES, "-f", "-", "-n", "5"}},
                 {0, 0, "5 tokens", {"run", "-m", STORIES, "-p", "Once", "-n", "5"}},
                 {1, 1, "standard output: Bad file descriptor", {"run", "-m", STORIES, "-p", "Once", "-n", "5", "--json"}},
                 {1, 1, "/proc/self/fd/1: ", {"logits", "-m", STORIES, "-p", "Once", "-o", "/proc/self/fd/1"}},
                 {2, 0, NULL, {"run", "-m", STORIES, "-p", "Once", "-n", "5"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int code = run_without(cases[i].closed, cases[i].args);
        char *said = file_read(path_of("err"), NULL);
        if (code != cases[i].code || (cases[i].says ? !strstr(said, cases[i].says) : *said))
            fail_msg("%s without %d: code %d, said \"%s\"", cases[i].args[0], cases[i].closed, code, said);
        free(said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pipe), cmocka_unit_test(test_links), cmocka_unit_test(test_open_already),
                                       cmocka_unit_test(test_link_of_another),
                                       cmocka_unit_test(test_planted), cmocka_unit_test(test_closed)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
