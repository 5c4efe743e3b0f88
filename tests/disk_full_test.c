/* SPDX-License-Identifier: Apache-2.0 */
/* disk_full_test.c - a full disk while a subcommand writes: exit code 1, one clear line, no partial file, and the old
 * one stays. With a limit of file sizes (RLIMIT_FSIZE, whose signal SIGXFSZ must not end it), on a file system that is
 * really full if this user may mount one, and with /dev/full as standard output. */
#include "base/run_mode_for_tests.h"
#include "command.h"

#include <sys/mount.h>
#include <sys/resource.h>

static const char *made; /* what is written */

static void old_write(void) {
    test_file_write(made, "old", 3);
}

static void check_refused(const char *const *args, int code, const char *says) {
    result r = command_args(args);
    const char *line = strstr(r.err, "hunch: ");
    if (r.code != code || !line || !strstr(r.err, says))
        fail_msg("%s: code %d, said \"%s\", expected %d and \"%s\"", args[0], r.code, r.err, code, says);
    result_free(&r);
    size_t len;
    char *old = file_read(made, &len), partial[400];
    assert_int_equal(len, 3);
    assert_memory_equal(old, "old", 3);
    free(old);
    snprintf(partial, sizeof partial, "%s.partial", made);
    assert_int_equal(access(partial, F_OK), -1);
}

/* All commands that write a named file. */
static void check_all(const char *says) {
    const char *const convert[] = {"convert", "-m", STORIES_HF, "-o", made, "--force", NULL};
    const char *const logits[] = {"logits", "-m", STORIES, "-p", "Once upon a time there was a little girl", "-o", made, NULL};
    const char *const draft[] = {"draft", "-m", STORIES, "--draft", "model:" STORIES, "-p", "Once upon", "-o", made, NULL};
    const char *const *const all[] = {convert, logits, draft};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        old_write();
        check_refused(all[i], 1, says);
    }
}

/* A cache file that cannot be written is refused when the engine opens; one that fills the disk later is left as it was. */
static void check_save(void) {
    char spec[500];
    static const int32_t old[] = {1, -1, -1, -1, 1, 2, 1}; /* one n-gram, and what followed it */
    snprintf(spec, sizeof spec, "cache,save=%s", made);
    test_file_write(made, old, sizeof old);
    result r = command("run", "-m", STORIES, "--draft", spec, "-p", "Once upon a time", "-n", "300", "--ignore-eos", "--json");
    assert_true(r.code == 0 || r.code == 1);
    size_t len;
    char *now = file_read(made, &len);
    if (len != sizeof old || memcmp(now, old, sizeof old))
        fail_msg("the old cache is gone, %zu bytes are there", len);
    free(now);
    result_free(&r);
}

static struct rlimit limit_was;

static void limit_files(rlim_t most) {
    struct rlimit r = limit_was;
    r.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* README: "A full disk, a closed pipe or a signal ends the command with its exit code, and leaves no half-written
 * file." */
static void test_limit(void **state) {
    (void)state;
    made = path_of("made");
    limit_files(6000);
    check_all("File too large");
    limit_files(1000);
    check_save();
    limit_files(limit_was.rlim_max);
}

/* The message names the file that the command writes, not standard output. */
static void test_bench_files(void **state) {
    (void)state;
    static const char *const flags[] = {"--json=", "--csv=", "--svg="};
    made = path_of("made");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i += test_light() ? 2 : 1) { /* each measures for seconds if sanitized */
        char flag[400];
        snprintf(flag, sizeof flag, "%s%s", flags[i], made);
        const char *const args[] = {"bench", "-m", STORIES, "--quick", "--rows", "1,2", "--contexts", "0", flag, NULL};
        old_write();
        limit_files(100);
        result r = command_args(args);
        limit_files(limit_was.rlim_max);
        if (r.code == 2 && strstr(r.err, "svg")) { /* there is too little to draw */
            result_free(&r);
            continue;
        }
        size_t len;
        char *old = file_read(made, &len);
        if (len != 3 || r.code != 1)
            fail_msg("%s: code %d, %zu bytes, said %s", flag, r.code, len, r.err);
        free(old);
        result_free(&r);
    }
}

static void test_full_file_system(void **state) {
    (void)state;
    char *mounted = path_of("disk");
    assert_int_equal(mkdir(mounted, 0700), 0);
    if (mount("tmpfs", mounted, "tmpfs", 0, "size=64k") != 0) {
        print_message("not shown on a real file system: this user may not mount one\n");
        skip();
    }
    static char path[400];
    snprintf(path, sizeof path, "%s/made", mounted);
    made = path;
    char filler[400];
    snprintf(filler, sizeof filler, "%s/filler", mounted);
    char *zeros = calloc(1, 56 << 10);
    assert_non_null(zeros);
    test_file_write(filler, zeros, 56 << 10);
    free(zeros);
    check_all("No space left on device");
    check_save();
    assert_int_equal(umount(mounted), 0);
}

/* The answers in the file so far, each a whole line: their number. */
static int whole_rows(const char *path) {
    size_t len;
    char *text = file_read(path, &len), *line = text, *end;
    int n = 0;
    for (; (end = strchr(line, '\n')); line = end + 1, n++) {
        json_t *row = json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL, NULL);
        assert_non_null(get(row, "id"));
        json_decref(row);
    }
    if (line != text + len)
        fail_msg("%d rows, and a part of one: %s", n, line);
    free(text);
    return n;
}

/* The disk is full after some answers: these stay whole, the next one is not there in part, and --resume goes on. */
static void test_rows(void **state) {
    (void)state;
    char *rows = path_of("rows.jsonl"), *to = path_of("answers.jsonl");
    text_write("rows.jsonl", "{\"prompt\": \"Once\"}\n{\"prompt\": \"One day\"}\n{\"prompt\": \"Mom said\"}\n{\"prompt\": \"Lily\"}\n");
    const char *const args[] = {"run", "-m", STORIES, "-f", rows, "--json-lines", "-n", "20", "-o", to, NULL, NULL};
    result r = command_args(args);
    if (r.code != 0 || whole_rows(to) != 4)
        fail_msg("%d: %s", r.code, r.err);
    result_free(&r);
    size_t len;
    free(file_read(to, &len));
    static const int parts[] = {40, 60, 90}; /* of a hundred */
    for (int i = 0; i < 3; i++) {
        unlink(to);
        limit_files((rlim_t)(len * (size_t)parts[i] / 100));
        r = command_args(args);
        limit_files(limit_was.rlim_max);
        const int n = whole_rows(to);
        if (r.code != 1 || !strstr(r.err, "answers.jsonl: cannot be written: File too large") || n < 1 || n > 3)
            fail_msg("%d rows, code %d: %s", n, r.code, r.err);
        result_free(&r);
    }
    const char *again[12];
    memcpy(again, args, sizeof again);
    again[10] = "--resume";
    r = command_args(again);
    if (r.code != 0 || whole_rows(to) != 4)
        fail_msg("%d: %s", r.code, r.err);
    result_free(&r);
}

/* Standard output of every subcommand. */
static void test_standard_output(void **state) {
    (void)state;
    static const char *const commands[][12] = {
        {"run", "-m", STORIES, "-p", "Once", "-n", "5"},
        {"run", "-m", STORIES, "-p", "Once", "-n", "5", "--json"},
        {"run", "-m", STORIES, "-p", "Once", "-n", "5", "--samples", "3", "--json-lines"},
        {"compare", "-m", STORIES, "-p", "Once", "-n", "20", "--draft", "ngram"},
        {"compare", "-m", STORIES, "-p", "Once", "-n", "20", "--draft", "ngram", "--json"},
        {"inspect", STORIES},
        {"inspect", STORIES, "--json"},
        {"tokenize", "-m", STORIES, "-p", "Once"},
        {"tokenize", "-m", STORIES, "-p", "Once", "--json"},
        {"draft", "-m", STORIES, "--draft", "ngram", "-p", "Once"},
        {"draft", "-m", STORIES, "--draft", "ngram", "-p", "Once", "--json"},
        {"score", "-m", STORIES, "-p", "Once upon a time"},
        {"score", "-m", STORIES, "-p", "Once upon a time", "--json"},
        {"bench", "-m", STORIES, "--quick", "--rows", "1", "--contexts", "0"},
        {"--help"},
        {"run", "--help"},
        {"--version"}};
    char err[300];
    snprintf(err, sizeof err, "%s/err", folder);
    text_write("prompt.txt", "Once");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const char *args[13] = {NULL};
        for (int k = 0; k < 12 && commands[i][k]; k++)
            args[k] = commands[i][k];
        for (int k = 0; k < 12 && args[k] && !strcmp(args[0], "compare"); k++)
            if (!strcmp(args[k], "-p")) {
                args[k] = "-f";
                args[k + 1] = path_of("prompt.txt");
            }
        const int code = child_wait(command_start(args, "/dev/full", err));
        char *text = file_read(err, NULL), *at = strstr(text, "standard output");
        if (code != 1 || !at || strstr(at + 1, "standard output"))
            fail_msg("%s %s: code %d, said \"%s\"", args[0], args[1] ? args[1] : "", code, text);
        free(text);
    }
}

static int setup(void **state) {
    if (getrlimit(RLIMIT_FSIZE, &limit_was) != 0)
        return -1;
    return folder_make(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_bench_files),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_full_file_system),
        cmocka_unit_test(test_standard_output),
    };
    return cmocka_run_group_tests(tests, setup, folder_remove);
}
