/* SPDX-License-Identifier: Apache-2.0 */
/* signals_test.c - SIGINT, SIGTERM and SIGHUP at any time of any subcommand: it ends within a second with 128 + the
 * signal, or was done before; no partial file remains, and standard output is complete JSON or empty. SIGPIPE: silence.
 * A model's file that is changed while it is in use: file_changes_test.c. */
#include "command.h"

#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Other work on the machine may delay a process. */
static const double MOST_SECONDS = 8;

/* Lines of whole JSON, or nothing. */
static void json_whole(const char *what, const char *text, size_t len) {
    if (len == 0)
        return;
    if (text[len - 1] != '\n')
        fail_msg("%s: output ends inside a line", what);
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        json_t *j = json_loadb(line, (size_t)(end - line), 0, NULL);
        if (!j)
            fail_msg("%s: no JSON: %.*s", what, (int)(end - line), line);
        json_decref(j);
    }
}

static void folder_clean(const char *what) {
    char line[400];
    snprintf(line, sizeof line, "ls %s | grep -c -e partial -e XXXX > /dev/null", folder);
    if (system(line) == 0)
        fail_msg("%s: a partial file stayed", what);
}

/* Long and short commands: both get a signal at many times. */
typedef struct job {
    const char *name;
    const char *args[20];
} job;

static job jobs[] = {
    {"run", {"run", "-m", STORIES, "-p", "Once", "--samples", "1000000", "--json-lines", "-n", "50"}},
    {"run text", {"run", "-m", STORIES, "-p", "Once", "-n", "500", "--ignore-eos", "--draft", "ngram"}},
    {"compare", {"compare", "-m", STORIES, "-f", NULL, "--draft", "ngram", "--json", "--repeat", "100"}},
    {"bench", {"bench", "-m", STORIES, "--json"}},
    {"bench machine", {"bench", "--machine", "--json"}},
    {"inspect", {"inspect", STORIES_HF, "--json"}},
    {"tokenize", {"tokenize", "-m", STORIES, "-p", "Once upon a time", "--json"}},
    {"logits", {"logits", "-m", STORIES, "-f", NULL, "-o", NULL, "--json"}},
    {"draft", {"draft", "-m", STORIES, "--draft", "model:" STORIES, "-p", "Once", "-o", NULL, "--json"}},
    {"score", {"score", "-m", STORIES, "-f", NULL, "--json"}},
    {"convert", {"convert", "-m", STORIES_HF, "-o", NULL, "--json"}},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static void jobs_complete(void) {
    char *text = malloc(200000);
    assert_non_null(text);
    *text = 0;
    char *to = text;
    for (int i = 0; i < 30; i++)
        to += sprintf(to, "Once upon a time there was a %d. ", i);
    const char *file = text_write("long.txt", text);
    free(text);
    for (size_t i = 0; i < JOBS; i++)
        for (int k = 1; k < 19 && jobs[i].args[k - 1]; k++)
            if (!jobs[i].args[k] && !strcmp(jobs[i].args[k - 1], "-o"))
                jobs[i].args[k] = path_of("made");
            else if (!jobs[i].args[k] && !strcmp(jobs[i].args[k - 1], "-f"))
                jobs[i].args[k] = strcmp(jobs[i].name, "compare") ? file : prompts_write();
}

static void interrupt(const job *j, int number, useconds_t after) {
    char out[300], err[300];
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    unlink(path_of("made"));
    test_file_write(out, "", 0); /* a signal may come before the child has opened it: then it must not have the contents of another run */
    test_file_write(err, "", 0);
    pid_t child = command_start(j->args, out, err);
    usleep(after);
    const double sent = now();
    kill(child, number);
    const int code = child_wait(child);
    const double took = now() - sent;
    size_t len;
    char *text = file_read(out, &len), *words = file_read(err, NULL);
    /* before main it is the system's signal; after the end of the work, success */
    if (code != 128 + number && code != -number && code != 0)
        fail_msg("%s: signal %d after %u us: code %d, %s", j->name, number, after, code, words);
    if (took > MOST_SECONDS)
        fail_msg("%s: signal %d after %u us: took %g s", j->name, number, after, took);
    if (strcmp(j->name, "run text") != 0)
        json_whole(j->name, text, len);
    folder_clean(j->name);
    free(text);
    free(words);
}

/* README: "A full disk, a closed pipe or a signal ends the command with its exit code, and leaves no half-written
 * file." */
static void test_every_command_at_any_time(void **state) {
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    static const useconds_t times[] = {200, 3000, 8000, 15000, 30000, 60000, 120000, 250000};
    jobs_complete();
    for (size_t i = 0; i < JOBS; i++)
        for (size_t t = 0; t < sizeof times / sizeof *times; t++)
            interrupt(&jobs[i], numbers[(i + t) % 3], times[t]);
}

/* nohup's child goes on. */
static void test_ignored_stays_ignored(void **state) {
    (void)state;
    const char *const args[] = {"run", "-m", STORIES, "-p", "Once", "-n", "400", "--ignore-eos", "--context", "512", "--json", NULL};
    char out[300], err[300];
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    pid_t child = command_start(args, out, err);
    for (int i = 0; i < 5; i++) {
        usleep(10000);
        kill(child, i % 2 ? SIGHUP : SIGINT);
    }
    assert_int_equal(child_wait(child), 0);
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
}

/* The reader closes the pipe: there is no message, and the command ends soon. */
static void test_closed_pipe(void **state) {
    (void)state;
    static const char *const commands[] = {
        "run -m '" STORIES "' -p Once -n 400 --ignore-eos",
        "run -m '" STORIES "' -p Once --samples 100000 --json-lines -n 20",
        "inspect '" STORIES "' --json",
        "tokenize -m '" STORIES "' -p 'Once upon a time'",
        "run --help",
        "draft -m '" STORIES "' --draft ngram -p 'Once upon Once upon Once' --json",
        "score -m '" STORIES "' -p 'Once upon a time' --json"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[900];
        snprintf(line, sizeof line, "{ '%s' %s 2> %s/said; echo $? > %s/code; } | head -c 1 > %s/out", HUNCH_COMMAND, commands[i], folder,
                 folder, folder);
        const double begun = now();
        assert_int_equal(system(line), 0);
        if (now() - begun > 60)
            fail_msg("%s: went on for %g s", commands[i], now() - begun);
        char said[300], code[300];
        snprintf(said, sizeof said, "%s/said", folder);
        snprintf(code, sizeof code, "%s/code", folder);
        char *words = file_read(said, NULL), *number = file_read(code, NULL);
        if (strstr(words, "standard output") || strstr(words, "ipe"))
            fail_msg("%s: said \"%s\"", commands[i], words);
        if (atoi(number) > 1)
            fail_msg("%s: code %s", commands[i], number);
        free(words);
        free(number);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_command_at_any_time),
        cmocka_unit_test(test_ignored_stays_ignored),
        cmocka_unit_test(test_closed_pipe),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
