/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - helpers for black-box tests of the `hunch` command: running it, reading its output, checking its JSON. On
 * an error they fail the running test. Each program that includes it has its own folder, made by folder_make. */
#ifndef HN_TESTS_COMMAND_H
#define HN_TESTS_COMMAND_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/bytes_for_tests.h"

#define STORIES HUNCH_TEST_DATA "/models/stories260K/stories260K.f32.gguf"
#define STORIES_HF HUNCH_TEST_DATA "/models/stories260K/hf"
#define NO_TOKENIZER HUNCH_TEST_DATA "/goldens/llama-tied"

static char folder[] = "/tmp/hunch-command-XXXXXX";

/* ---- running the command ------------------------------------------------------------------------------------- */

typedef struct result {
    int code; /* exit code, or -signal */
    char *out, *err;
    size_t out_len;
} result;

/* Path of a file in the test's folder; the same pointer for the same name, valid until exit. */
static inline char *path_of(const char *name) {
    static char paths[64][300];
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (int i = 0; i < 64; i++) {
        if (!paths[i][0])
            strcpy(paths[i], path);
        if (strcmp(paths[i], path) == 0)
            return paths[i];
    }
    fail_msg("too many files");
    return NULL;
}

/* The bytes of a file, followed by a NUL, to be freed. */
static inline char *file_read(const char *path, size_t *len) {
    if (!test_file_exists(path))
        fail_msg("cannot read %s", path);
    bytes b = test_file_read(path);
    if (len)
        *len = b.size;
    bytes_number(&b, 0, 1);
    return (char *)b.at;
}

static inline const char *file_write(const char *name, const void *data, size_t len) {
    const char *path = path_of(name);
    test_file_write(path, data, len);
    return path;
}

static inline const char *text_write(const char *name, const char *text) {
    return file_write(name, text, strlen(text));
}

static inline const char *json_write(const char *name, const json_t *value) {
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    const char *path = text_write(name, text);
    free(text);
    return path;
}

/* The program. */
static const char *command_program = HUNCH_COMMAND;

/* Standard input of the next commands. */
static int input_fd = -1;

static inline pid_t command_start(const char *const *args, const char *out, const char *err) {
    const char *argv[64] = {command_program};
    int n = 1;
    while (args[n - 1] && n < 63) {
        argv[n] = args[n - 1];
        n++;
    }
    /* Not fork, which copies the page tables of this process: a sanitized one has many, and a test starts hundreds of commands. */
    pid_t child = -1;
    posix_spawn_file_actions_t files;
    const int made = O_WRONLY | O_CREAT | O_TRUNC;
    assert_int_equal(posix_spawn_file_actions_init(&files), 0);
    assert_int_equal(input_fd >= 0 ? posix_spawn_file_actions_adddup2(&files, input_fd, 0) :
                                     posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&files, 1, out, made, 0600), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&files, 2, err, made, 0600), 0);
    const int failed = posix_spawn(&child, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ);
    if (failed)
        fail_msg("cannot run %s: %s", command_program, strerror(failed));
    posix_spawn_file_actions_destroy(&files);
    return child;
}

static inline int child_wait(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline result command_args(const char *const *args) {
    char out[300], err[300];
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    unlink(out);
    unlink(err);
    result r = {.code = child_wait(command_start(args, out, err))};
    r.out = file_read(out, &r.out_len);
    r.err = file_read(err, NULL);
    return r;
}
#define command(...) command_args((const char *const[]){__VA_ARGS__, NULL})

static inline result command_input_args(const char *input, const char *const *args) {
    input_fd = open(text_write("input", input), O_RDONLY);
    assert_true(input_fd >= 0);
    result r = command_args(args);
    close(input_fd);
    input_fd = -1;
    return r;
}
#define command_input(input, ...) command_input_args(input, (const char *const[]){__VA_ARGS__, NULL})

static inline void result_free(result *r) {
    free(r->out);
    free(r->err);
}

/* Fails with `code`, nothing on standard output, and one line on standard error that holds `says`. */
static inline void refused_args(int code, const char *says, const char *const *args) {
    result r = command_args(args);
    char *end = strchr(r.err, '\n');
    if (r.code != code || !strstr(r.err, says) || !end || end[1] || r.out_len)
        fail_msg("expected %d and one line with \"%s\", got %d and \"%s\", output \"%s\"", code, says, r.code, r.err,
                 r.out);
    result_free(&r);
}
#define refused(code, says, ...) refused_args(code, says, (const char *const[]){__VA_ARGS__, NULL})

static inline json_t *json_args(const char *const *args) {
    result r = command_args(args);
    json_error_t je;
    json_t *j = json_loads(r.out, JSON_ALLOW_NUL, &je);
    if (r.code != 0 || !j)
        fail_msg("exit code %d, output \"%.200s\", %s", r.code, r.out, r.err);
    result_free(&r);
    return j;
}
#define json_of(...) json_args((const char *const[]){__VA_ARGS__, "--json", NULL})

/* ---- reading JSON -------------------------------------------------------------------------------------------- */

static inline json_t *get(const json_t *o, const char *key) {
    json_t *v = json_object_get(o, key);
    if (!v)
        fail_msg("no \"%s\"", key);
    return v;
}

static inline double real_of(const json_t *o, const char *key) {
    json_t *v = get(o, key);
    if (!json_is_number(v))
        fail_msg("\"%s\" is not a number", key);
    return json_number_value(v);
}

static inline long long int_of(const json_t *o, const char *key) {
    json_t *v = get(o, key);
    if (!json_is_integer(v))
        fail_msg("\"%s\" is not a whole number", key);
    return json_integer_value(v);
}

static inline const char *text_of(const json_t *o, const char *key) {
    json_t *v = get(o, key);
    if (!json_is_string(v))
        fail_msg("\"%s\" is not a text", key);
    return json_string_value(v);
}

static inline void near(double a, double b, double relative) {
    if (!(fabs(a - b) <= relative * fmax(fabs(a), fabs(b))))
        fail_msg("%.9g is not within %g of %.9g", a, relative, b);
}

/* Row `number` of a golden file. */
static inline json_t *golden(const char *name, int number) {
    char path[400];
    snprintf(path, sizeof path, "%s/models/stories260K/%s", HUNCH_TEST_DATA, name);
    char *text = file_read(path, NULL), *line = text;
    for (int i = 0; i < number; i++) {
        line = strchr(line, '\n');
        assert_non_null(line++);
    }
    line[strcspn(line, "\n")] = 0;
    json_t *row = json_loads(line, 0, NULL);
    assert_non_null(row);
    free(text);
    return row;
}

static inline json_t *first_of(const json_t *list, size_t n) {
    json_t *head = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append(head, json_array_get(list, i));
    return head;
}

/* ---- shapes --------------------------------------------------------------------------------------------------- */

static inline void run_shape(const json_t *j) {
    size_t n = json_array_size(get(j, "tokens")), accepted = 0, i;
    json_t *p;
    assert_int_equal(json_array_size(get(j, "provenance")), n);
    json_array_foreach(get(j, "provenance"), i, p) {
        assert_true(json_integer_value(p) >= -1);
        assert_true(json_integer_value(p) < (json_int_t)json_array_size(get(j, "drafters")));
        accepted += json_integer_value(p) >= 0;
    }
    assert_int_equal(int_of(j, "accepted"), accepted);
    assert_true(int_of(j, "drafted") >= int_of(j, "accepted"));
    if (int_of(j, "rounds"))
        near(real_of(j, "tau"), ((double)n - 1) / (double)int_of(j, "rounds"), 1e-9);
    else
        assert_true(json_is_null(get(j, "tau")));
    size_t by_position = 0;
    json_array_foreach(get(j, "accepted_per_position"), i, p) by_position += (size_t)json_integer_value(p);
    assert_int_equal(by_position, accepted);
    const json_t *t = get(j, "timing");
    assert_true(real_of(t, "load_s") > 0 && real_of(t, "prefill_s") > 0 && real_of(t, "decode_s") >= 0);
    near(real_of(t, "prefill_tok_s"),
         (double)(int_of(j, "prompt_tokens") - int_of(j, "prefix_rows")) / real_of(t, "prefill_s"), 1e-6);
    assert_true(real_of(j, "peak_rss_mib") > 1);
    assert_true(json_is_null(get(j, "lossy")));
    assert_true(int_of(j, "prefix_rows") >= 0 && int_of(j, "prefix_rows") < int_of(j, "prompt_tokens"));
    assert_true(int_of(j, "preempted") >= 0);
    assert_true(strlen(text_of(j, "verify")) > 0);
    assert_true(json_is_string(get(j, "text")) || json_is_null(get(j, "text")));
}

static inline void tokens_equal(const json_t *a, const json_t *b) {
    if (!json_equal(get(a, "tokens"), get(b, "tokens")))
        fail_msg("\"%s\" is not \"%s\"", text_of(a, "text"), text_of(b, "text"));
}

static inline void method_shape(const json_t *m, size_t prompts) {
    size_t i;
    const json_t *p;
    double ratios[8];
    assert_int_equal(json_array_size(get(m, "per_prompt")), prompts);
    json_array_foreach(get(m, "per_prompt"), i, p) {
        ratios[i] = real_of(p, "ratio");
        near(ratios[i], real_of(p, "tok_s") / real_of(p, "plain_tok_s"), 1e-6);
        const json_t *ci = get(p, "ci");
        double low = json_number_value(json_array_get(ci, 0)), high = json_number_value(json_array_get(ci, 1));
        if (int_of(p, "tokens") * int_of(p, "repeats") <= 4 * 16) /* too few slices for an interval */
            assert_true(json_is_null(ci));
        else
            assert_true(low > 0 && low <= high && low <= ratios[i] * 1.0000001 && high >= ratios[i] * 0.9999999);
        assert_true(json_is_true(get(p, "identical")));
        assert_true(real_of(p, "tau") >= 1);
    }
    if (prompts == 2)
        near(real_of(m, "ratio"), (ratios[0] + ratios[1]) / 2, 1e-6);
    double total = real_of(m, "ratio_total");
    assert_true(total >= fmin(ratios[0], ratios[1]) * 0.999999 && total <= fmax(ratios[0], ratios[1]) * 1.000001);
    assert_true(json_is_true(get(m, "identical")));
    assert_true(json_is_null(get(m, "first_difference")));
}

static inline const char *prompts_write(void) {
    return text_write("prompts.jsonl",
                      "{\"id\": \"a\", \"group\": \"g\", \"prompt\": \"Once upon a time\", \"more\": 1}\n\n"
                      "{\"id\": 17, \"tokens\": [1, 403, 407, 261]}\n");
}

/* ---- logits --------------------------------------------------------------------------------------------------- */

typedef struct matrix {
    char *file;
    const float *data; /* [rows][columns] */
    size_t rows, columns;
} matrix;

static inline matrix npy_read(const char *path) {
    matrix m;
    size_t len;
    m.file = file_read(path, &len);
    assert_memory_equal(m.file, "\x93NUMPY\x01\x00", 8);
    size_t head = 10 + (size_t)(unsigned char)m.file[8] + 256 * (size_t)(unsigned char)m.file[9];
    assert_int_equal(head % 64, 0);
    assert_int_equal(m.file[head - 1], '\n');
    assert_non_null(strstr(m.file + 10, "'descr': '<f4'"));
    assert_int_equal(sscanf(strstr(m.file + 10, "'shape': "), "'shape': (%zu, %zu)", &m.rows, &m.columns), 2);
    assert_int_equal(len, head + 4 * m.rows * m.columns);
    m.data = (const float *)(const void *)(m.file + head);
    return m;
}

/* Sum of -log softmax of ids[from..n-1], each predicted by the row before it; the matrix is of ids from `begin` on. */
static inline double nll_sum(const matrix *m, const json_t *ids, size_t begin, size_t from, size_t end) {
    double total = 0;
    for (size_t i = from; i < end; i++) {
        const float *row = m->data + (i - 1 - begin) * m->columns;
        double sum = 0;
        for (size_t v = 0; v < m->columns; v++)
            sum += exp((double)row[v]);
        total += log(sum) - row[json_integer_value(json_array_get(ids, i))];
    }
    return total;
}

static inline matrix logits_of(const json_t *ids, size_t begin, size_t end) {
    json_t *part = json_array();
    for (size_t i = begin; i < end; i++)
        json_array_append(part, json_array_get(ids, i));
    json_t *j = json_of("logits", "-m", STORIES, "--tokens", json_write("part.json", part), "--precision", "f32", "-o",
                        path_of("part.npy"));
    assert_int_equal(int_of(j, "tokens"), end - begin);
    assert_int_equal(access(path_of("part.npy.partial"), F_OK), -1);
    json_decref(j);
    json_decref(part);
    return npy_read(path_of("part.npy"));
}

/* ---- the test's folder ------------------------------------------------------------------------------------------ */

static inline int folder_make(void **state) {
    (void)state;
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT};
    for (int i = 0; i < 3; i++) signal(numbers[i], SIG_DFL); /* nohup and a script's background ignore them: commands would, too */
    return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove(void **state) {
    (void)state;
    char line[400];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

#endif
