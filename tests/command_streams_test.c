/* SPDX-License-Identifier: Apache-2.0 */
/* command_streams_test.c - "-" as an output is standard output, for every command; input that does not end is refused before it
 * fills memory. */
#include "command.h"

/* ---- "-" -------------------------------------------------------------------------------------------------------- */

/* Standard output has the bytes of the file, and nothing else; -o comes last in args. */
static void same_as_file(const char *const *args) {
    const char *all[20] = {NULL};
    int n = 0;
    for (; args[n]; n++)
        all[n] = args[n];
    all[n] = path_of("made");
    unlink(all[n]);
    result r = command_args(all);
    if (r.code != 0)
        fail_msg("%s: %s", args[0], r.err);
    result_free(&r);
    size_t len;
    char *made = file_read(all[n], &len);
    all[n] = "-";
    r = command_args(all);
    if (r.code != 0 || r.out_len != len || memcmp(r.out, made, len))
        fail_msg("%s: code %d, %zu bytes of %zu, said %s", args[0], r.code, r.out_len, len, r.err);
    assert_int_equal(access("-", F_OK), -1);
    free(made);
    result_free(&r);
}
#define same_as_file(...) same_as_file((const char *const[]){__VA_ARGS__, "-o", NULL})

static void test_standard_output(void **state) {
    (void)state;
    same_as_file("logits", STORIES, "Once upon a time");
    same_as_file("draft", STORIES, "Once upon", "--draft", "model:" STORIES);
    same_as_file("convert", STORIES_HF);
    refused(2, "both write to standard output", "logits", STORIES, "Once", "-o", "-", "--json");
    refused(2, "both write to standard output", "convert", STORIES_HF, "--json", "-o", "-");
    refused(2, "give one of --json, --csv and --svg", "bench", STORIES, "--csv=-", "--svg", "-");
    refused(2, "give one of --json, --csv and --svg", "bench", STORIES, "--json", "--svg=-");
    result r = command("bench", STORIES, "--quick", "--rows", "1,2,4", "--contexts", "64", "--svg", "-");
    if (r.code != 0 || strncmp(r.out, "<svg", 4) || strcmp(r.out + r.out_len - 7, "</svg>\n"))
        fail_msg("code %d, \"%.40s\", said %s", r.code, r.out, r.err);
    result_free(&r);
}

/* Errors name standard output. */
static void test_full(void **state) {
    (void)state;
    const char *const args[] = {"logits", STORIES, "Once upon a time", "-o", "-", NULL};
    assert_int_equal(child_wait(command_start(args, "/dev/full", path_of("err"))), 1);
    char *err = file_read(path_of("err"), NULL);
    assert_non_null(strstr(err, "standard output: cannot be written: No space left on device"));
    free(err);
}

/* ---- input without end ------------------------------------------------------------------------------------------- */

/* A sparse file of `size` bytes: the text, then zeros. */
static const char *sparse_make(const char *name, const char *text, off_t size) {
    const char *path = text_write(name, text);
    assert_int_equal(truncate(path, size), 0);
    return path;
}

static void test_long_input(void **state) {
    (void)state;
    static const char says[] = "more than 64 MiB, a text that no context holds";
    const char *path = sparse_make("zeros", "", (64 << 20) + 1);
    const int input = open(path, O_RDONLY);
    assert_true(input >= 0);
    input_fd = input;
    static const char *const readers[][7] = {{"run", STORIES}, {"compare", STORIES, "-p", "-"}, {"logits", STORIES,
                                             "-o", "/dev/null"},
                                             {"draft", STORIES, "-f", "-"}};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        assert_int_equal(lseek(input, 0, SEEK_SET), 0);
        refused_args(2, says, readers[i]);
    }
    input_fd = -1;
    close(input);
    refused(2, says, "run", STORIES, "-f", path);
}

/* Rows are separate texts, and texts read in windows have any length, both up to the limit of files. */
static void test_longer_input(void **state) {
    (void)state;
    bytes rows = {0};
    bytes_put(&rows, "{\"prompt\": \"Once upon a time\"}\n", 31);
    char blank[4096];
    memset(blank, '\n', sizeof blank);
    for (int i = 0; i < (64 << 20) / (int)sizeof blank; i++)
        bytes_put(&rows, blank, sizeof blank);
    result r = command("run", STORIES, "-f", file_write("rows", rows.at, rows.size), "-n", "3", "-q");
    if (r.code != 0)
        fail_msg("%s", r.err);
    result_free(&r);
    bytes_free(&rows);
    const char *path = sparse_make("huge", "Once", (1LL << 30) + 1);
    refused(2, "more than 1024 MiB", "tokenize", STORIES, "-f", path);
    refused(2, "more than 1024 MiB", "score", STORIES, "-f", path);
    refused(2, "more than 1024 MiB", "run", STORIES, "--tokens", path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standard_output),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_long_input),
        cmocka_unit_test(test_longer_input),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
