/* SPDX-License-Identifier: Apache-2.0 */
/* command_train_test.c - `hunch train` as a user meets it: help, spellings and messages like those of the other commands, what it says
 * while it works and at its end, and what it refuses. What heads learn is tested beside the trainer. */
#include "command.h"

#define TRAINER HUNCH_COMMAND "-train"

static const char rows[] = "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"Lily and Ben\"}\n{\"prompt\": \"The sun\"}\n"
                           "{\"prompt\": \"Tim had a dog\"}\n{\"prompt\": \"One day\"}\n{\"prompt\": \"Mom said\"}\n";

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
        refused(1, "no-such.txt", "train", line, STORIES, "-f", path_of("no-such.txt"), "-o",
                path_of(strcmp(line, "data") ? "none" : "made"), "-q");
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

/* ---- a training -------------------------------------------------------------------------------------------------- */

static result train(const char *head, const char *steps, const char *flag, const char *value) {
    return command("train", "eagle3", STORIES, "-f", path_of("texts"), "-o", path_of(head), "--steps", steps, "--batch=256", "--vocab=300",
                   "--held-out=3", flag, value);
}

static void texts_make(void) {
    text_write("rows.jsonl", rows);
    result r = command("train", "data", STORIES, "-f", path_of("rows.jsonl"), "-n30", "-q", "-o", path_of("texts"));
    if (r.code || r.err[0]) fail_msg("%d: %s", r.code, r.err);
    result_free(&r);
}

static void says(const result *r, int code, const char *what) {
    if (r->code != code || !strstr(r->err, what)) fail_msg("no \"%s\" in %d: %s", what, r->code, r->err);
}

/* What is printed to a file: lines, each with what its numbers are; at the end what to do with the head. */
static void test_what_it_says(void **state) {
    (void)state;
    char last[700];
    texts_make();
    result r = train("head", "4", NULL, NULL);
    says(&r, 0, "step 4 of 4, held-out texts: loss of draft 1: ");
    says(&r, 0, "; accepted 1: ");
    assert_null(strchr(r.err, '\r'));
    assert_null(strchr(r.err, 27));
    snprintf(last, sizeof last, "wrote %s; try: hunch check %s --draft eagle3:", path_of("head"), STORIES);
    says(&r, 0, last);
    char *try = strstr(r.err, "try: hunch") + 10;
    char line[2000];
    snprintf(line, sizeof line, HUNCH_COMMAND "%.*s --no-smoke > /dev/null 2>&1", (int)strcspn(try, "\n"), try);
    if (system(line) != 0) fail_msg("%s", line);
    result_free(&r);
    r = train("head", "4", NULL, NULL);
    says(&r, 0, "was trained already; more steps: --steps; try: hunch check ");
    result_free(&r);
    r = train("same", "2", "--rate", "0"); /* it learns nothing, so no later check is better */
    result_free(&r);
    r = train("same", "3", "--rate", "0");
    says(&r, 0, "is the earlier one: no check of these steps was better; try: hunch check ");
    result_free(&r);
    r = train("quiet", "4", "-q", NULL);
    assert_int_equal(r.code + (int)strlen(r.err) + (int)r.out_len, 0);
    result_free(&r);
}

/* The output of a short training on a terminal. */
static char *shown_on(const char *term, const char *head) {
    char line[2500];
    snprintf(line, sizeof line,
             "TERM=%s script -qec '" TRAINER " mtp " STORIES " -f %s -o %s --steps 4 --batch 256 --vocab 300 --held-out 3' /dev/null", term,
             path_of("texts"), path_of(head));
    return shell_says(line);
}

/* On a terminal a line is overwritten, unless it cannot do that. */
static void test_terminal(void **state) {
    (void)state;
    if (system("command -v script > /dev/null 2>&1") != 0) skip();
    char *shown = shown_on("xterm", "shown");
    if (!strstr(shown, "\r\033[K") || !strstr(shown, "step 1 of 4: loss of draft 1: ")) fail_msg("%s", shown);
    free(shown);
    shown = shown_on("dumb", "dumb");
    assert_null(strstr(shown, "\033["));
    assert_non_null(strstr(shown, "wrote "));
    free(shown);
}

/* More steps go on from the checkpoint, with the same bytes each time that this is done; fewer are refused. */
static void test_more_steps(void **state) {
    (void)state;
    static const char *const heads[] = {"more-1", "more-2"};
    char *checkpoint[2], *picture;
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        char path[100];
        result first = train(heads[i], "4", "-q", NULL), then = train(heads[i], "9", NULL, NULL);
        assert_int_equal(first.code, 0);
        says(&then, 0, "step 9 of 9, held-out texts: loss");
        assert_null(strstr(then.err, "was trained already"));
        snprintf(path, sizeof path, "%s.training/checkpoint.bin", heads[i]);
        checkpoint[i] = file_read(path_of(path), &size[i]);
        result_free(&first);
        result_free(&then);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(checkpoint[0], checkpoint[1], size[0]);
    picture = file_read(path_of("more-1.svg"), NULL);
    assert_non_null(strstr(picture, "step 9 of 9"));
    result r = train("more-1", "8", NULL, NULL);
    says(&r, 3, "is of a training with --steps 9, this one has --steps 8: expected --steps 9 or more, or another -o");
    result_free(&r);
    free(checkpoint[0]);
    free(checkpoint[1]);
    free(picture);
}

/* A training that cannot go on says which option differs. */
static void test_other_options(void **state) {
    (void)state;
    static const char *const other[][3] = {
        {"--unroll", "2", "with --unroll 3, this one has --unroll 2: expected --unroll 3, or another -o"},
        {"--rate", "0.1", "with --rate 0.001, this one has --rate 0.1: expected --rate 0.001, or another -o"},
        {"--taps", "1:3", "of --taps 1:2:4, this training has --taps 1:3: expected --taps 1:2:4, or another -o"},
        {"--centroids", "30:3", "with no --centroids, this one has --centroids 30:3: expected no --centroids, or another -o"},
        {"--held-out", "2", "with --held-out 3, this one has --held-out 2: expected --held-out 3, or another -o"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        result r = train("head", "4", other[i][0], other[i][1]);
        says(&r, 3, other[i][2]);
        result_free(&r);
    }
}

/* ---- what is not enough, or wrong ---------------------------------------------------------------------------------- */

static void test_held_out(void **state) {
    (void)state;
    result r = train("judged", "4", "--held-out", "7");
    says(&r, 2, "--held-out 7 needs at least 14 texts, and there are 12: expected --held-out 6 or less, or more texts");
    result_free(&r);
    r = train("judged", "4", "--held-out", "6");
    assert_int_equal(r.code, 0);
    result_free(&r);
}

static void test_wrong_rows(void **state) {
    (void)state;
    char many[2000] = "{\"prompt\": \"good\"}\nno\n{\"prompt\": \"good, too\"}\n[]\n{\"prompt\": \"\"}\n", list[300];
    refused(3, "line 2 is not JSON: ", "train", "data", STORIES, "-f", text_write("bad.jsonl", many), "-o", path_of("never"));
    refused(3, "; wrong are 3 rows: 2, 4, 5", "train", "data", STORIES, "-f", path_of("bad.jsonl"), "-o", path_of("never"));
    for (int i = 5; i < 60; i++) strcat(many, "{}\n");
    strcpy(list, "; wrong are 58 rows: 2, 4");
    for (int i = 5; i < 23; i++) snprintf(list + strlen(list), sizeof list - strlen(list), ", %d", i);
    strcat(list, ", ...\n");
    refused(3, list, "train", "data", STORIES, "-f", text_write("bad.jsonl", many), "-o", path_of("never"));
    refused(3, "row 2: expected an object with messages, prompt, question, instruction or text; wrong are 2 rows: 2, 3\n", "train", "data",
            STORIES, "-f", text_write("bad.json", "[{\"prompt\": \"a\"}, {}, 7]"), "-o", path_of("never"));
}

int main(void) {
    if (access(TRAINER, X_OK) != 0) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_help),    cmocka_unit_test(test_near_names),
                                       cmocka_unit_test(test_spellings),   cmocka_unit_test(test_kinds_are_offered),
                                       cmocka_unit_test(test_what_it_says), cmocka_unit_test(test_terminal),
                                       cmocka_unit_test(test_more_steps),  cmocka_unit_test(test_other_options),
                                       cmocka_unit_test(test_held_out),    cmocka_unit_test(test_wrong_rows)};
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
