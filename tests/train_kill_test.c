/* SPDX-License-Identifier: Apache-2.0 */
/* train_kill_test.c - `hunch train` that is killed repeatedly, at any moment, ends with the bytes of an undisturbed
 * run; Ctrl-C keeps the results so far; a changed model, a full disk and damaged texts are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fixture.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

#define PROGRAM HUNCH_COMMAND "-train"
#define STORIES "models/stories260K/stories260K.f32.gguf"
static char model[600];

static int setup(void **state) {
    (void)state;
    static const char rows[] =
        "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"Lily and Ben\"}\n{\"prompt\": \"The sun\"}\n"
        "{\"prompt\": \"Tim had a dog\"}\n{\"prompt\": \"One day\"}\n{\"prompt\": \"Mom said\"}\n"
        "{\"prompt\": \"A big bird\"}\n{\"prompt\": \"In the park\"}\n";
    test_file_write(test_path("rows.jsonl"), rows, sizeof rows - 1);
    snprintf(model, sizeof model, "%s", data_path(STORIES));
    return 0;
}

/* The exit code, or minus the signal that ended it. microseconds: when it is sent `number`; below 0: never. */
static int run(const char *const *arguments, int number, long microseconds, long file_limit, char *said, size_t room) {
    const char *argv[30] = {PROGRAM};
    for (int i = 0; arguments[i]; i++) argv[i + 1] = arguments[i];
    const pid_t child = fork();
    if (child == 0) {
        const int to = open(test_path("said"), O_CREAT | O_TRUNC | O_WRONLY, 0600);
        dup2(to, STDERR_FILENO);
        if (file_limit > 0) {
            const struct rlimit l = {(rlim_t)file_limit, (rlim_t)file_limit};
            (void)signal(SIGXFSZ, SIG_IGN);
            (void)setrlimit(RLIMIT_FSIZE, &l);
        }
        execv(PROGRAM, (char *const *)(uintptr_t)argv);
        _exit(99);
    }
    int status;
    if (microseconds >= 0) {
        usleep((useconds_t)microseconds);
        kill(child, number);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (said) {
        bytes b = test_file_read(test_path("said"));
        snprintf(said, room, "%.*s", (int)b.size, (const char *)b.at);
        bytes_free(&b);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static const char *kind = "eagle3", *isa = "best";

static const char *const *training(const char *out, const char *steps) {
    static const char *a[30];
    static char file[600], head[600];
    snprintf(file, sizeof file, "%s", test_path("rows.jsonl"));
    snprintf(head, sizeof head, "%s", test_path(out));
    const char *const all[] = {kind,         model, "-f",        file,  "-o",      head,  "-n",      "40",
                               "--context",  "128", "--steps",   steps, "--batch", "256", "--vocab", "300",
                               "--held-out", "4",   "--threads", "1",   "--isa",   isa,   "-q",      NULL};
    memcpy(a, all, sizeof all);
    return a;
}

static bool same_files(const char *a, const char *b) {
    bytes x = test_file_read(test_path(a)), y = test_file_read(test_path(b));
    const bool same = x.size == y.size && !memcmp(x.at, y.at, x.size);
    bytes_free(&x);
    bytes_free(&y);
    return same;
}

/* The picture, its head's name taken out. */
static void picture_of(const char *head, char to[60000]) {
    char path[100], title[100];
    snprintf(path, sizeof path, "%s.svg", head);
    snprintf(title, sizeof title, ">%s: step 60 of 60, ", head);
    bytes b = test_file_read(test_path(path));
    assert_true(b.size > 1000 && b.size < 60000);
    snprintf(to, 60000, "%.*s", (int)b.size, (const char *)b.at);
    bytes_free(&b);
    char *at = strstr(to, title);
    assert_non_null(at);
    memmove(at + 1, at + 1 + strlen(head), strlen(at + strlen(head)));
}

static void same_pictures(void) {
    static char whole[60000], killed[60000];
    picture_of("whole", whole);
    picture_of("killed", killed);
    assert_string_equal(whole, killed);
    assert_non_null(strstr(whole, "speed-up at most "));
    assert_non_null(strstr(whole, "held out: loss "));
}

/* The same command with another flag. */
static const char *const *with(const char *flag, const char *value, const char *out) {
    static const char *a[30];
    int n = 0;
    for (const char *const *x = training(out, "60"); *x; x++) a[n++] = *x;
    a[n++] = flag;
    a[n++] = value;
    a[n] = NULL;
    return a;
}

/* A training with the flag, "whole", and one that is killed until it gets to the end, "killed". */
static void run_and_kill(const char *flag, const char *value, const char *whole_head, const char *killed_head) {
    const double start = hn_now();
    assert_int_equal(run(with(flag, value, whole_head), 0, -1, 0, NULL, 0), 0);
    const double whole = hn_now() - start;
    uint64_t x = 11;
    int kills = 0, code;
    do {
        x = x * 6364136223846793005u + 1442695040888963407u;
        /* a run that is killed early does not get past its last checkpoint: so later ones run longer */
        const double longest = whole * (0.2 + 0.05 * kills);
        code = run(with(flag, value, killed_head), SIGKILL, (long)(1e6 * longest * (double)(x >> 40) / (1 << 24)), 0, NULL, 0);
        kills += code == -SIGKILL;
        assert_true(code == 0 || code == -SIGKILL);
    } while (code != 0 && kills < 20);
    if (code != 0) assert_int_equal(run(with(flag, value, killed_head), 0, -1, 0, NULL, 0), 0);
    print_message("%d kills\n", kills);
    assert_true(kills >= 3);
}

static void test_killed(void **state) {
    (void)state;
    run_and_kill("--features", "stored", "whole", "killed");
    assert_true(same_files("whole.training/texts.jsonl", "killed.training/texts.jsonl"));
    assert_true(same_files("whole.training/features-0000.bin", "killed.training/features-0000.bin"));
    assert_true(same_files("whole.training/checkpoint.bin", "killed.training/checkpoint.bin"));
    assert_true(same_files("whole/model.safetensors", "killed/model.safetensors"));
    assert_true(same_files("whole/config.json", "killed/config.json"));
    same_pictures();
}

/* A draft model that learns from its own texts, too; wherever the target's states of the stored ones are. */
static void test_killed_on_policy(void **state) {
    (void)state;
    char said[2000];
    kind = "model";
    run_and_kill("--on-policy", "0.5", "own-whole", "own-killed");
    assert_true(same_files("own-whole.training/checkpoint.bin", "own-killed.training/checkpoint.bin"));
    assert_true(same_files("own-whole/model.safetensors", "own-killed/model.safetensors"));
    assert_int_equal(run(with("--on-policy", "0.6", "own-whole"), 0, -1, 0, said, sizeof said), 3);
    if (!strstr(said, "with --on-policy 0.5, this one has --on-policy 0.6: expected --on-policy 0.5, or another -o")) fail_msg("%s", said);
    assert_int_equal(run(with("--on-policy", "1.1", "own-more"), 0, -1, 0, said, sizeof said), 2);
    if (!strstr(said, "--on-policy 1.1 is not a number from 0 to 1")) fail_msg("%s", said);
    assert_int_equal(run(with("--refresh", "4", "own-more"), 0, -1, 0, said, sizeof said), 2);
    if (!strstr(said, "--refresh: expected it with --on-policy")) fail_msg("%s", said);
    assert_int_equal(run(training("own-none", "60"), 0, -1, 0, NULL, 0), 0);
    assert_int_equal(run(with("--on-policy", "0", "own-0"), 0, -1, 0, NULL, 0), 0);
    assert_true(same_files("own-none.training/checkpoint.bin", "own-0.training/checkpoint.bin"));
    assert_true(!same_files("own-none/model.safetensors", "own-whole/model.safetensors"));
    kind = "eagle3";
    assert_int_equal(run(with("--on-policy", "0.5", "own-head"), 0, -1, 0, said, sizeof said), 2);
    if (!strstr(said, "--on-policy: a head of kind eagle3 has no texts of its own")) fail_msg("%s", said);
}

/* The same command with features in another place; after test_killed. */
static const char *const *with_features(const char *out, const char *where) {
    return with("--features", where, out);
}

static void test_online(void **state) {
    (void)state;
    char said[2000];
    (void)run(with_features("online", "online"), SIGKILL, 600000, 0, NULL, 0);
    assert_int_equal(run(with_features("online", "online"), 0, -1, 0, NULL, 0), 0);
    assert_true(access(test_path("online.training/features-0000.bin"), F_OK) != 0);
    assert_true(same_files("whole.training/checkpoint.bin", "online.training/checkpoint.bin"));
    assert_int_equal(run(with_features("online", "online"), 0, -1, 0, NULL, 0), 0); /* again: nothing remains to do */
    assert_true(same_files("whole.training/checkpoint.bin", "online.training/checkpoint.bin"));
    assert_true(same_files("whole/model.safetensors", "online/model.safetensors"));
    assert_int_equal(run(with_features("online", "here"), 0, -1, 0, said, sizeof said), 2);
    if (!strstr(said, "--features here: expected stored or online, or a folder")) fail_msg("%s", said);
}

/* A folder of features that trainings share gives the same bytes, wherever the first was killed; one of another kind reads it without
 * writing anything, and learns what it learns by itself. */
static void test_shared(void **state) {
    (void)state;
    char said[2000], folder[600];
    snprintf(folder, sizeof folder, "%s", test_path("features"));
    (void)run(with_features("shared", folder), SIGKILL, 300000, 0, NULL, 0);
    assert_int_equal(run(with_features("shared", folder), 0, -1, 0, NULL, 0), 0);
    assert_true(access(test_path("shared.training/features-0000.bin"), F_OK) != 0);
    assert_true(same_files("whole.training/features-0000.bin", "features/features-0000.bin"));
    assert_true(same_files("whole.training/checkpoint.bin", "shared.training/checkpoint.bin"));
    kind = "mtp";
    assert_int_equal(run(with_features("mtp-shared", folder), 0, -1, 0, NULL, 0), 0);
    assert_int_equal(run(with_features("mtp-online", "online"), 0, -1, 0, NULL, 0), 0);
    kind = "eagle3";
    const char *const *all = with_features("other-taps", folder), *a[30] = {0};
    size_t n = 0;
    for (; all[n]; n++) a[n] = all[n];
    a[n++] = "--taps", a[n++] = "1:3";
    assert_int_equal(run(a, 0, -1, 0, said, sizeof said), 3);
    static const char refusal[] = "features of the states of layers 1, 2, 4, the last one: expected 3, too, or another folder";
    if (!strstr(said, refusal)) fail_msg("%s", said);
    assert_true(same_files("mtp-online.training/checkpoint.bin", "mtp-shared.training/checkpoint.bin"));
    assert_true(same_files("whole.training/features-0000.bin", "features/features-0000.bin"));
}

/* Too few texts to hold any out: the head of the last step is written. */
static void test_nothing_held_out(void **state) {
    (void)state;
    char said[2000], file[600];
    static const char row[] = "{\"prompt\": \"Once upon a time\"}\n";
    test_file_write(test_path("one.jsonl"), row, sizeof row - 1);
    snprintf(file, sizeof file, "%s", test_path("one.jsonl"));
    const char *const one[] = {"eagle3", model, "-f", file, "-o", test_path("unjudged"),
                               "-n",     "40",  "--steps", "5", "--vocab", "300", "-q", NULL};
    assert_int_equal(run(one, 0, -1, 0, NULL, 0), 0);
    assert_int_equal(access(test_path("unjudged/config.json"), R_OK), 0);
    assert_int_equal(run(with("--held-out", "9", "judged"), 0, -1, 0, said, sizeof said), 2);
    static const char needs[] = "--held-out 9 needs at least 18 texts, and there are 16: expected --held-out 8 or less";
    if (!strstr(said, needs)) fail_msg("%s", said);
}

static void test_interrupted(void **state) {
    (void)state;
    char said[2000];
    const int code = run(training("broken-off", "100000"), SIGINT, 2500000, 0, said, sizeof said);
    assert_int_equal(code, 130);
    if (!strstr(said, "interrupted at step")) fail_msg("%s", said);
    assert_int_equal(access(test_path("broken-off.training/checkpoint.bin"), R_OK), 0);
}

/* Whether hunch drafts with the written head. */
static void drafts(const char *drafter, const char *head, const char *keys) {
    char line[2500];
    snprintf(line, sizeof line, "'%s' draft '%s' -p 'Once upon a time' --draft '%s%s%s' --json > /dev/null 2>&1",
             HUNCH_COMMAND, model, drafter, test_path(head), keys);
    if (system(line) != 0) fail_msg("%s", line);
}

static void test_no_steps(void **state) {
    (void)state;
    assert_int_equal(run(training("untrained", "0"), 0, -1, 0, NULL, 0), 0);
    assert_int_equal(run(training("one-step", "1"), 0, -1, 0, NULL, 0), 0);
    assert_int_equal(run(training("untrained.gguf", "0"), 0, -1, 0, NULL, 0), 0);
    drafts("eagle3:", "untrained", "");
    drafts("", "untrained.gguf", "");
    kind = "eagle";
    assert_int_equal(run(training("untrained-1", "0"), 0, -1, 0, NULL, 0), 0);
    assert_int_equal(run(training("untrained-1.gguf", "0"), 0, -1, 0, NULL, 0), 0);
    kind = "eagle3";
    drafts("eagle:", "untrained-1", "");
    drafts("hass:", "untrained-1", "");
    char keys[700];
    snprintf(keys, sizeof keys, ",vocab=300,ids=%s", test_path("untrained-1/tokens.json"));
    drafts("eagle:", "untrained-1", keys);
    drafts("", "untrained-1", "");
    drafts("", "untrained-1.gguf", "");
}

/* A run continues only with the same inputs. */
static void test_other_kind_or_level(void **state) {
    (void)state;
    char said[2000];
    assert_int_equal(run(training("kept", "3"), 0, -1, 0, NULL, 0), 0);
    kind = "eagle";
    assert_int_equal(run(training("kept", "3"), 0, -1, 0, said, sizeof said), 3);
    kind = "eagle3";
    if (!strstr(said, "a training of a head of kind eagle3: expected one of eagle")) fail_msg("%s", said);
    isa = "ref";
    assert_int_equal(run(training("kept", "3"), 0, -1, 0, said, sizeof said), 3);
    isa = "best";
    if (!strstr(said, "expected one of ref")) fail_msg("%s", said);
    assert_int_equal(run(training("kept", "3"), 0, -1, 0, said, sizeof said), 0);
    const char *taps[] = {"eagle", model, "-f", "x", "-o", test_path("x"), "--taps", "1:2:3", NULL};
    assert_int_equal(run(taps, 0, -1, 0, said, sizeof said), 2);
    if (!strstr(said, "--taps 1:2:3: a head of kind eagle reads the last state alone")) fail_msg("%s", said);
}

static void said_of(const char *line, char *to, size_t room) {
    FILE *f = popen(line, "r");
    assert_non_null(f);
    to[fread(to, 1, room - 1, f)] = 0;
    assert_int_equal(pclose(f), 0);
}

/* A quantised file of a head drafts the same tokens as its folder. */
static void test_types(void **state) {
    (void)state;
    static const char *const types[] = {NULL, "q4_0"}, *const options[] = {"", ",weights=q4_0"},
                      *const are[] = {"Q8_0", "Q4_0"};
    char said[2000], line[1500], head[2][4000];
    for (int i = 0; i < 2; i++) {
        const char *const *all = training(i ? "blocks4.gguf" : "blocks8.gguf", "1");
        const char *a[30] = {0};
        size_t n = 0;
        for (; all[n]; n++) a[n] = all[n];
        if (types[i]) a[n++] = "--type", a[n++] = types[i];
        assert_int_equal(run(a, 0, -1, 0, NULL, 0), 0);
        for (int file = 0; file < 2; file++) {
            snprintf(line, sizeof line, "'%s' draft '%s' -p 'Once upon a time' --draft '%s%s' --json 2> /dev/null",
                     HUNCH_COMMAND, model, file ? a[5] : test_path("one-step"), file ? "" : options[i]);
            said_of(line, head[file], sizeof head[file]);
        }
        assert_true(strlen(head[0]) > 50);
        assert_string_equal(head[0], head[1]);
        snprintf(line, sizeof line, "'%s' inspect '%s' --json | grep -q %s", HUNCH_COMMAND, a[5], are[i]);
        assert_int_equal(system(line), 0);
    }
    const char *const folder[] = {"eagle3", model, "-o", test_path("never"), "--type", "q8_0", NULL},
                      *const bad[] = {"eagle3", model, "-o", test_path("never.gguf"), "--type", "q9", NULL};
    assert_int_equal(run(folder, 0, -1, 0, said, sizeof said), 2);
    if (!strstr(said, "--type q8_0: a folder has bf16")) fail_msg("%s", said);
    assert_int_equal(run(bad, 0, -1, 0, said, sizeof said), 2);
    if (!strstr(said, "--type q9 is unknown: expected q8_0")) fail_msg("%s", said);
}

static void test_others(void **state) {
    (void)state;
    char said[2000];
    char other[600];
    snprintf(other, sizeof other, "%s", model);
    snprintf(model, sizeof model, "%s", data_path("models/stories260K/stories260K.f16.gguf"));
    assert_int_equal(run(training("whole", "60"), 0, -1, 0, said, sizeof said), 3);
    if (!strstr(said, "a training for another model")) fail_msg("%s", said);
    snprintf(model, sizeof model, "%s", other);
    assert_int_equal(run(training("whole", "59"), 0, -1, 0, said, sizeof said), 3);
    if (!strstr(said, "with --steps 60, this one has --steps 59: expected --steps 60 or more, or another -o")) fail_msg("%s", said);
    assert_int_equal(run(training("full", "60"), 0, -1, 30000, said, sizeof said), 1);
    if (!strstr(said, "cannot be written")) fail_msg("%s", said);
    test_file_write(test_path("rows.jsonl"), "{\"prompt\": ", 11);
    assert_int_equal(run(training("broken", "60"), 0, -1, 0, said, sizeof said), 3);
    if (!strstr(said, "rows.jsonl: line 1 is not JSON")) fail_msg("%s", said);
    const char *const usage[][8] = {{"eagle3", model, "-f", "x", NULL},
                                    {"eagle9", model, "-o", "x", NULL},
                                    {"data", "-o", "x", NULL},
                                    {"eagle3", "--steps", "-1", NULL},
                                    {"--bogus", NULL},
                                    {"data", model, "-o", NULL},
                                    {"data", model, "more", "-o", "x", NULL}};
    for (size_t i = 0; i < sizeof usage / sizeof *usage; i++)
        assert_int_equal(run(usage[i], 0, -1, 0, said, sizeof said), 2);
}

int main(void) {
    if (access(PROGRAM, X_OK) != 0) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed),
                                       cmocka_unit_test(test_killed_on_policy),
                                       cmocka_unit_test(test_online),
                                       cmocka_unit_test(test_shared),
                                       cmocka_unit_test(test_interrupted),
                                       cmocka_unit_test(test_nothing_held_out),
                                       cmocka_unit_test(test_no_steps),
                                       cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_other_kind_or_level),
                                       cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
