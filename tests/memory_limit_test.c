/* SPDX-License-Identifier: Apache-2.0 */
/* memory_limit_test.c - memory that really ends (ulimit -v and -d), anywhere in the life of a subcommand: exit code 4 and one
 * line that says so, or the whole answer; never a signal. Injected failures: fault_load_test.c, fault_round_test.c. */
#include "command.h"

#include <sys/resource.h>

#include "base/random.h"
#include "base/run_mode_for_tests.h"

static const char *const jobs[][16] = {
    {"run", "-m", STORIES, "-p", "Once upon a time", "-n", "60", "--draft", "auto", "--json", "--threads", "2"},
    {"run", "-m", STORIES_HF, "-p", "Once upon a time", "-n", "20", "--draft", "model:" STORIES, "--json", "--threads", "2"},
    {"run", "-m", STORIES, "--mapped", "-p", "Once", "-n", "20", "--samples", "6", "--parallel", "3", "--json-lines"},
    {"inspect", STORIES_HF, "--json"},
    {"tokenize", "-m", STORIES_HF, "-p", "Once upon a time", "--json"},
    {"score", "-m", STORIES, "-p", "Once upon a time there was", "--json"},
    {"convert", "-m", STORIES_HF, "--force", "-o", NULL, "--json"},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static int with_limit(const char *const *args, int kind, rlim_t most, char **out, size_t *len, char **words) {
    char to[300], err[300];
    snprintf(to, sizeof to, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const char *argv[20] = {HUNCH_COMMAND};
        const int o = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600), e = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (int n = 0; args[n]; n++)
            argv[n + 1] = args[n];
        const struct rlimit r = {most, most};
        if (dup2(o, 1) < 0 || dup2(e, 2) < 0 || setrlimit(kind, &r) != 0)
            _exit(99);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(98);
    }
    const int code = child_wait(child);
    *out = file_read(to, len);
    *words = file_read(err, NULL);
    return code;
}

/* Returns whether it ran to its end. */
static bool check(const char *const *job, int kind, rlim_t bytes_allowed) {
    const char *args[16] = {NULL};
    for (int i = 0; i < 15 && (job[i] || (i && !strcmp(job[i - 1], "-o"))); i++)
        args[i] = job[i] ? job[i] : path_of("made");
    char *out, *words;
    size_t len;
    const int code = with_limit(args, kind, bytes_allowed, &out, &len, &words);
    const bool loader = code == 127 || strstr(words, "shared librar"); /* the program had not started yet */
    const char *line = strstr(words, "hunch: ");
    char what[200];
    snprintf(what, sizeof what, "%s with %s of %lld", args[0], kind == RLIMIT_AS ? "-v" : "-d", (long long)bytes_allowed);
    if (code != 0 && code != 4 && !loader && code != -SIGKILL) /* exec itself kills a process without room for its stack */
        fail_msg("%s: code %d, said \"%s\"", what, code, words);
    if (code == 4 && (!line || (!strstr(line, "memory") && !strstr(line, "cannot be started"))))
        fail_msg("%s: said \"%s\"", what, words);
    if (code == -SIGKILL && (words[0] || len))
        fail_msg("%s: was killed after \"%s\"", what, words);
    if (len > 0 && out[len - 1] != '\n')
        fail_msg("%s: output ends inside a line", what);
    free(out);
    free(words);
    return code == 0;
}

static void test_limits(void **state) {
    (void)state;
    uint64_t seed = 20261121;
    const int tries = test_light() ? 8 : 40;
    for (size_t i = 0; i < JOBS; i++) {
        int done = 0;
        for (int k = 0; k < tries; k++) {
            const int kind = k % 2 ? RLIMIT_DATA : RLIMIT_AS;
            /* less than the program's own size ends inside exec, by a signal */
            const rlim_t least = kind == RLIMIT_DATA ? 1 << 18 : 6 << 20, most = kind == RLIMIT_DATA ? 80 << 20 : 300 << 20;
            done += check(jobs[i], kind,
                          (least + (most - least) * (rlim_t)k / (rlim_t)tries + hn_splitmix(&seed) % (1 << 20)) &
                              ~(rlim_t)4095);
        }
        if (done == tries)
            fail_msg("%s: no limit was reached", jobs[i][0]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits)};
    if (SANITIZED) return 77; /* a sanitizer takes terabytes of addresses */
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
