/* SPDX-License-Identifier: Apache-2.0 */
/* train_outputs_test.c - what `hunch train` may write: no file that it reads, by whatever name; what is there already and is not its
 * own only with --force; one process at a time in a folder; and no head from the texts of another model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/folder_lock.h"
#include "fixture.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

#define PROGRAM HUNCH_COMMAND "-train"

static char said[8000];

/* Runs a line of sh in the test's folder, in which `train` is the program: the exit code, and what it said. */
static int sh(const char *line) {
    char command[3000];
    const int n = snprintf(command, sizeof command, "cd '%s' && train() { '%s' \"$@\" --threads 1 -q; } && { %s\n} 2>&1", test_path(""),
                           PROGRAM, line);
    assert_true(n > 0 && n < (int)sizeof command);
    FILE *from = popen(command, "r");
    assert_non_null(from);
    said[fread(said, 1, sizeof said - 1, from)] = 0;
    const int status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void works(const char *line) {
    const int code = sh(line);
    if (code != 0) fail_msg("%s: %d, %s", line, code, said);
}

/* The line is refused with the code and one line that says it; none of the test's files is changed, made or removed. */
static void refused(int code, const char *says, const char *line) {
    static const char list[] = "find . -type f ! -name before ! -name after | sort | xargs -d '\\n' md5sum";
    char command[300];
    snprintf(command, sizeof command, "%s > before", list);
    works(command);
    const int got = sh(line);
    const char *end = strchr(said, '\n');
    if (got != code || !strstr(said, says) || !end || end[1])
        fail_msg("%s: %d, \"%s\", expected %d and \"%s\"", line, got, said, code, says);
    snprintf(command, sizeof command, "%s > after && cmp before after", list);
    if (sh(command) != 0) fail_msg("%s: %s", line, said);
}

static int setup(void **state) {
    (void)state;
    static const char rows[] = "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"Lily and Ben\"}\n{\"prompt\": \"The sun\"}\n"
                               "{\"prompt\": \"Tim had a dog\"}\n{\"prompt\": \"One day\"}\n{\"prompt\": \"Mom said\"}\n";
    static const char *const models[][2] = {{"m.gguf", "models/stories260K/stories260K.f32.gguf"},
                                            {"other.gguf", "models/stories260K/stories260K.f16.gguf"}};
    for (int i = 0; i < 2; i++) {
        bytes b = test_file_read(data_path(models[i][1]));
        test_file_write(test_path(models[i][0]), b.at, b.size);
        bytes_free(&b);
    }
    test_file_write(test_path("rows.jsonl"), rows, sizeof rows - 1);
    test_file_write(test_path("w.txt"), "Once upon a time there was a dog.\n", 34);
    test_file_write(test_path("notes.gguf"), "my notes\n", 9);
    char line[700];
    snprintf(line, sizeof line, "cp -r '%s' hf && ln -s m.gguf link && ln -s link farther && ln m.gguf hard && ln -s hf hf-link",
             data_path("models/stories260K/hf"));
    works(line);
    works("train data m.gguf -f rows.jsonl -n 40 -o texts");
    return 0;
}

#define HOW " -f texts --steps 2 --vocab 300 --held-out 2 --batch 256"
static const char reads[] = "would be written over a file that the training reads";

/* README: "A file that the command reads is never overwritten, by whatever name; `convert` replaces a file only with
 * `--force`." */
static void test_inputs(void **state) {
    (void)state;
    static const char *const names[] = {"m.gguf", "link", "farther", "hard", "texts/../m.gguf"};
    char line[300];
    for (int force = 0; force < 2; force++) {
        const char *more = force ? " --force" : "";
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            snprintf(line, sizeof line, "train medusa m.gguf" HOW " --format gguf -o %s%s", names[i], more);
            refused(2, reads, line);
            snprintf(line, sizeof line, "train trie %s w.txt -o m.gguf%s", names[i], more);
            refused(2, reads, line);
        }
        snprintf(line, sizeof line, "train medusa hf" HOW " -o hf-link%s", more);
        refused(2, "hf-link/model.safetensors would be written over a file that the training reads (MODEL)", line);
        snprintf(line, sizeof line, "train model m.gguf" HOW " --init hf -o hf/../hf%s", more);
        refused(2, "that the training reads (--init)", line);
        snprintf(line, sizeof line, "train trie m.gguf w.txt -o w.txt%s", more);
        refused(2, "w.txt would be written over a file that the training reads (-f)", line);
        snprintf(line, sizeof line, "train data m.gguf -f texts/texts.jsonl -o texts%s", more);
        refused(2, "texts/texts.jsonl would be written over a file that the training reads (-f)", line);
        snprintf(line, sizeof line, "cp w.txt t.partial && train trie m.gguf t.partial -o t%s", more);
        works("cp w.txt t.partial");
        refused(2, "t.partial would be written over", line);
    }
    works("mkdir d && cp rows.jsonl d/made.json");
    refused(2, "d/made.json would be written over a file that the training reads (--leave-out)",
            "train data m.gguf -f rows.jsonl --leave-out d/made.json -o d");
}

/* README: "`run -o`, `save=` of a drafter and `hunch train` replace a file that they did not write themselves only with `--force`." The
 * first two: overwrite_test. */
static void test_others(void **state) {
    (void)state;
    static const char ours[] = "is there already and is not of this training: expected another -o, or --force";
    refused(2, ours, "train medusa m.gguf" HOW " -o notes.gguf");
    refused(2, ours, "train trie m.gguf w.txt -o notes.gguf");
    refused(2, ours, "train medusa m.gguf" HOW " -o hf");
    works("echo drawing > drawn.svg; mkdir worked.training worked.training/last; echo mine > worked.training/last/config.json");
    refused(2, "drawn.svg is there already", "train medusa m.gguf" HOW " -o drawn");
    refused(2, "worked.training/last is there already", "train medusa m.gguf" HOW " -o worked");
    works("mkdir words && echo mine > words/texts.jsonl");
    refused(2, "words/texts.jsonl is there already", "train data m.gguf -f rows.jsonl -n 40 -o words");
    refused(1, "rows.jsonl is not a folder", "train data m.gguf -f rows.jsonl -n 40 -o rows.jsonl");
    refused(1, "notes.gguf is not a folder", "train medusa m.gguf" HOW " --format hf -o notes.gguf");
    refused(1, "is a folder, expected a file", "train medusa m.gguf" HOW " --format gguf -o texts");
    refused(1, "is a folder, expected a file", "train trie m.gguf w.txt -o texts");
    works("train medusa m.gguf" HOW " -o drawn --force && grep -q svg drawn.svg && test -f drawn/config.json");
    works("train data m.gguf -f rows.jsonl -n 40 -o words --force && cmp words/texts.jsonl texts/texts.jsonl");
    works("train trie m.gguf w.txt -o notes.gguf --force && train trie m.gguf w.txt -o notes.gguf"); /* a trie replaces one */
    works("mkdir empty && train medusa m.gguf" HOW " -o empty && : > empty-file && train trie m.gguf w.txt -o empty-file");
}

/* The same command continues, or has nothing left to do; another kind or model is refused, and --force begins it. */
static void test_own(void **state) {
    (void)state;
    works("train medusa m.gguf" HOW " -o head && cp -r head first && train medusa m.gguf" HOW " -o ./head && cmp head/model.safetensors "
          "first/model.safetensors && rm -r first");
    works("train medusa m.gguf" HOW " -o h.gguf && train medusa m.gguf" HOW " -o h.gguf");
    works("rm head.training/checkpoint.bin && train medusa m.gguf" HOW " -o head"); /* as if killed before the first one */
    refused(3, "head.training/training.json: a training of a head of kind medusa: expected one of hydra",
            "train hydra m.gguf" HOW " -o head");
    works("train hydra m.gguf" HOW " -o head --force && train hydra m.gguf" HOW " -o head");
    works("train data other.gguf -f rows.jsonl -n 40 -o its-texts");
    refused(3, "head.training/training.json: a training for another model (m.gguf)",
            "train hydra other.gguf -f its-texts --steps 2 --vocab 300 --held-out 2 -o head");
    refused(3, "made.json: made with another model", "train data other.gguf -f rows.jsonl -n 40 -o texts");
    works("cp -r texts again && train data other.gguf -f rows.jsonl -n 40 -o again --force && cmp again/texts.jsonl its-texts/texts.jsonl");
    works("train medusa m.gguf -f rows.jsonl -n 40 --steps 2 --vocab 300 --held-out 2 -o made && head -n 4 rows.jsonl > fewer.jsonl");
    refused(3, "made with another number of rows", /* its checkpoint stays */
            "train medusa m.gguf -f fewer.jsonl -n 40 --steps 2 --vocab 300 --held-out 2 -o made --force");
    works("rm -r head.training");
    refused(2, "head is there already", "train hydra m.gguf" HOW " -o head");
}

/* The texts of another model are refused by name, unless a draft model learns from them, or with --force. */
static void test_texts_of_another(void **state) {
    (void)state;
    refused(3, "texts: texts of another model, m.gguf: expected those that other.gguf made",
            "mkdir -p b.training && train medusa other.gguf" HOW " -o b; code=$?; rmdir b.training; (exit $code)");
    works("train medusa other.gguf" HOW " -o b --force");
    works("train model other.gguf" HOW " --layers 1 -o student");
    works("mkdir bare && cp texts/texts.jsonl bare && train medusa other.gguf -f bare --steps 2 --vocab 300 --held-out 2 -o from-bare");
}

/* While one process writes, another is refused: of two at once one has done everything, and the texts are those of one. */
static void test_two_at_once(void **state) {
    (void)state;
    hn_lock got;
    int fd;
    works("mkdir busy head2.training");
    assert_int_equal(hn_folder_lock(test_path("busy"), &fd, &got, NULL), HUNCH_OK);
    refused(3, "busy: another process writes there", "train data m.gguf -f rows.jsonl -n 40 -o busy");
    hn_folder_unlock(&fd);
    assert_int_equal(hn_folder_lock(test_path("head2.training"), &fd, &got, NULL), HUNCH_OK);
    refused(3, "head2.training: another process writes there", "train medusa m.gguf" HOW " -o head2");
    hn_folder_unlock(&fd);
    works("ln -s busy alias; train data m.gguf -f rows.jsonl -n 40 -o busy > said 2>&1 & first=$!\n"
          "train data m.gguf -f rows.jsonl -n 40 -o alias > said2 2>&1; second=$?\n"
          "wait $first; first=$?\n"
          "test $first = 0 -o $second = 0 && test $first = 0 -o $first = 3 && test $second = 0 -o $second = 3 && "
          "cmp busy/texts.jsonl texts/texts.jsonl");
    works("train medusa m.gguf" HOW " -o head2 && test -f head2/config.json");
    refused(2, "--features head2.training: is the training's own folder", "train medusa m.gguf" HOW " -o head2 --features head2.training");
}

int main(void) {
    if (access(PROGRAM, X_OK) != 0) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inputs), cmocka_unit_test(test_others), cmocka_unit_test(test_own),
                                       cmocka_unit_test(test_texts_of_another), cmocka_unit_test(test_two_at_once)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
