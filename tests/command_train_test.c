/* SPDX-License-Identifier: Apache-2.0 */
/* command_train_test.c - `hunch train` as a user meets it: help, spellings and messages like those of the other commands, what it says
 * while it works and at its end, and what it refuses. What heads learn is tested beside the trainer. */
#include "command.h"

#define TRAINER HUNCH_COMMAND "-train"

/* ---- the command line -------------------------------------------------------------------------------------------- */

/* The output of a line of the shell. */
static char *shell_says(const char *line) {
    char all[2000];
    snprintf(all, sizeof all, "%s > %s 2>&1", line, path_of("says"));
    (void)!system(all);
    return file_read(path_of("says"), NULL);
}

static void test_one_help(void **state) {
    (void)state;
    result help = command("train", "--help"), topic = command("help", "train"), late = command("train", "eagle3", "--help");
    char *own = shell_says(TRAINER " --help");
    assert_int_equal(help.code + topic.code + late.code, 0);
    assert_string_equal(help.out, topic.out);
    assert_string_equal(help.out, late.out);
    assert_string_equal(help.out, own);
    assert_non_null(strstr(help.out, "\nTraining\n  --seconds T"));
    assert_non_null(strstr(help.out, "\n  meta-mtp "));
    result man = command("manual", "train");
    assert_non_null(strstr(man.out, "meta\\-mtp"));
    assert_non_null(strstr(man.out, "token\\-share"));
    free(own);
    result_free(&help);
    result_free(&topic);
    result_free(&late);
    result_free(&man);
}

static void test_near_names(void **state) {
    (void)state;
    refused(2, "train: unknown flag --stepz, did you mean --steps?", "train", "eagle3", STORIES, "--stepz", "3");
    refused(2, "train: no kind of head eagel3, did you mean eagle3?", "train", "eagel3", STORIES, "-o", "x");
    refused(2, "train: no kind of head date, did you mean data?", "train", "date", STORIES, "-o", "x");
    refused(2, "--divergence rverse is unknown, did you mean reverse?", "train", "model", "--divergence", "rverse");
    refused(2, "train: which model? hunch train mtp MODEL -o OUT", "train", "mtp", "-o", "x");
    refused(2, "train: where to? hunch train mtp MODEL -o OUT", "train", "mtp", STORIES);
    refused(2, "train: expected data, trie or a kind of head first", "train");
    refused(2, "unexpected argument more: files of mtp come with -f", "train", "mtp", STORIES, "more", "-o", "x");
    char *own = shell_says(TRAINER " eagel3 model -o x");
    assert_string_equal(own, "hunch: train: no kind of head eagel3, did you mean eagle3?\n");
    free(own);
}

static void test_spellings(void **state) {
    (void)state;
    static const char *const wrong[][2] = {{"--steps=x", "--steps x is not a whole number from 0 to 10000000"},
                                           {"-n=0", "-n 0 is not a whole number from 1 to"},
                                           {"-n0", "-n 0 is not a whole number from 1 to"},
                                           {"-n3x", "-n 3x is not a whole number from 1 to"},
                                           {"--temperature=11", "--temperature 11 is not a number from 0 to 10"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) refused(2, wrong[i][1], "train", "data", STORIES, "-o", "x", wrong[i][0]);
    result a = command("run", STORIES, "-pOnce"), b = command("run", STORIES, "Once", "-n3", "-q"),
           c = command("run", "-m=" STORIES, "-p=Once", "-n=3", "-q");
    assert_int_equal(a.code, 2); /* only a number follows a short flag directly */
    assert_int_equal(b.code + c.code, 0);
    assert_string_equal(b.out, c.out);
    result_free(&a);
    result_free(&b);
    result_free(&c);
}

/* Each kind that is offered reaches its trainer. */
static void test_kinds_are_offered(void **state) {
    (void)state;
    result r = command("completion", "--query", "train", "");
    int n = 0;
    for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n"), n++) {
        line[strcspn(line, "\t")] = 0;
        refused(1, "no-such.txt", "train", line, STORIES, "-f", path_of("no-such.txt"), "-o", path_of("none"), "-q");
    }
    assert_true(n > 10);
    result_free(&r);
    r = command("completion", "--query", "train", "trie", STORIES, "");
    assert_string_equal(r.out, ":files\n");
    result_free(&r);
    r = command("completion", "--query", "train", "-m", STORIES, "drt");
    assert_string_equal(r.out, "");
    result_free(&r);
    r = command("completion", "--query", "train", "-m", STORIES, "dar");
    assert_memory_equal(r.out, "dart\t", 5);
    result_free(&r);
}

int main(void) {
    if (access(TRAINER, X_OK) != 0) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_help), cmocka_unit_test(test_near_names), cmocka_unit_test(test_spellings),
                                       cmocka_unit_test(test_kinds_are_offered)};
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
