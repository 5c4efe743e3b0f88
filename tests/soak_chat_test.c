/* SPDX-License-Identifier: Apache-2.0 */
/* soak_chat_test.c - `hunch chat` for thousands of lines: the resources of the process after them (memory, file
 * descriptors, threads) are those after the first hundreds. */
#include "command.h"

#include <dirent.h>
#include <time.h>

#include "base/run_mode_for_tests.h"

enum { WARM = 400, LINES = 3000, LIGHT_WARM = 60, LIGHT_LINES = 300, PATIENCE_S = 600 };

typedef struct held {
    long resident_kib;
    int files, threads;
} held;

static int entries(pid_t pid, const char *what) {
    char path[80];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static held look(pid_t pid) {
    char path[80];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return (held){pages * (sysconf(_SC_PAGESIZE) / 1024), entries(pid, "fd"), entries(pid, "task")};
}

static long lines_of(const char *path) {
    size_t len;
    long n = 0;
    if (access(path, R_OK) != 0) return 0; /* the command has not begun */
    char *text = file_read(path, &len);
    for (size_t i = 0; i < len; i++) n += text[i] == '\n';
    free(text);
    return n;
}

/* Sends messages from..to-1, of changing lengths, with commands between them, and waits for the answers. */
static void say(int input, const char *out, int from, int to) {
    static const char *const messages[] = {"Once upon a time", "The dog", "a b c d e f g h", "Tom and Lily went to the park and"};
    for (int i = from; i < to; i++) {
        char line[200];
        const int n = snprintf(line, sizeof line, "%s %d\n%s", messages[i % 4], i % 97,
                               i % 5 == 4   ? "/reset\n"
                               : i % 7 == 6 ? "/stats\n"
                                            : "");
        assert_int_equal(write(input, line, (size_t)n), n);
    }
    const time_t give_up = time(NULL) + PATIENCE_S;
    while (lines_of(out) < to) {
        if (time(NULL) > give_up) fail_msg("%ld answers to %d messages", lines_of(out), to);
        usleep(20000);
    }
}

static void test_chat_holds_no_more(void **state) {
    (void)state;
    const int warm = test_light() ? LIGHT_WARM : WARM, lines = test_light() ? LIGHT_LINES : LINES;
    int pipes[2];
    char out[300], err[300];
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    input_fd = pipes[0];
    const char *const args[] = {"chat", "-m", STORIES, "--json-lines", "-n", "6", "--draft", "ngram", "--draft", "suffix,mib=1", "--draft",
                                "cache,mib=1", "--context", "256", "--ignore-eos", NULL};
    const pid_t child = command_start(args, out, err);
    close(pipes[0]);
    input_fd = -1;
    say(pipes[1], out, 0, warm);
    const held before = look(child);
    say(pipes[1], out, warm, lines);
    const held after = look(child);
    close(pipes[1]);
    assert_int_equal(child_wait(child), 0);
    assert_int_equal(before.files, after.files);
    assert_int_equal(before.threads, after.threads);
    print_message("%d lines: %ld KiB resident, %ld after %d\n", lines, after.resident_kib, before.resident_kib, warm);
    /* the rest of the two stores' MiB each, and of the cache's pages */
    if (!SANITIZED && after.resident_kib > before.resident_kib + 3 * 1024)
        fail_msg("%d lines: %ld KiB resident, %ld after %d", lines, after.resident_kib, before.resident_kib, warm);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chat_holds_no_more)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
