/* SPDX-License-Identifier: Apache-2.0 */
/* file_changes_test.c - a model's file that changes while it is in use: a new file of the same name is not used;
 * truncating or writing it during the load is an error that names it; with a mapped model the round that would read it
 * fails, and the text until then is right. In the command a page that is lost at that moment gives one line, not a
 * crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "fixture.h"
#include "format/split_for_tests.h"

#define MODEL HUNCH_TEST_DATA "/models/stories260K/stories260K.f16.gguf"

static void file_copy(const char *to, const char *from) {
    size_t len;
    char *data = file_read(from, &len);
    test_file_write(to, data, len);
    free(data);
}

static hunch_request ask(hunch_model *m) {
    static const hunch_token prompt[] = {1, 403, 407, 261, 378, 403, 407};
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = 30;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    return r;
}

static void answer_of(hunch_model *m, answer *out) {
    hunch_engine *e = open_engine(m, "ngram", 1, 64, HUNCH_KV_DEFAULT, 16, 96);
    const hunch_request r = ask(m);
    run_requests(e, &r, 1, true, out);
    hunch_engine_close(&e);
}

/* A new file of the same name: the model is the one that was opened. */
static void test_renamed_over(void **state) {
    (void)state;
    const char *path = path_of("model.gguf"), *other = path_of("other.gguf");
    answer want = {0}, got = {0};
    for (int mapped = 0; mapped < 2; mapped++) {
        file_copy(path, MODEL);
        test_file_write(other, "no model at all", 15);
        hunch_model *m = open_model_as(path, NULL, 2, HUNCH_PRECISION_NATIVE, mapped);
        answer_of(m, &want);
        assert_int_equal(rename(other, path), 0);
        answer_of(m, &got);
        assert_same(&want, &got, "renamed over");
        answer_free(&got);
        assert_int_equal(unlink(path), 0);
        answer_of(m, &got);
        assert_same(&want, &got, "removed");
        answer_free(&want);
        answer_free(&got);
        hunch_model_close(&m);
    }
}

/* The change of a file that is open. */
static void cut(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void cut_to_nothing(const char *path) {
    assert_int_equal(truncate(path, 0), 0);
}

static void overwrite(const char *path) {
    const int fd = open(path, O_WRONLY);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pwrite(fd, "\x11\x22\x33\x44", 4, st.st_size - 64), 4);
    close(fd);
}

static void grow(const char *path) {
    const int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "more", 4), 4);
    close(fd);
}

static void (*const changes[])(const char *path) = {cut, cut_to_nothing, overwrite, grow};
enum { CHANGES = sizeof changes / sizeof *changes };

typedef struct change {
    void (*make)(const char *path);
    const char *path;
    double at;
} change;

/* Called by the opening thread in the middle of the load. */
static void change_at(void *user, uint64_t done, uint64_t total) {
    change *c = user;
    if (!c->make || (double)done < c->at * (double)total) return;
    usleep(20000); /* clocks of file systems are coarse */
    c->make(c->path);
    c->make = NULL;
}

static void check_load(const char *path, const char *changed, void (*make)(const char *path), double at) {
    change c = {make, changed, at};
    hunch_model_options o;
    hunch_model *m = NULL;
    hunch_error err = {0};
    hunch_model_options_defaults(&o);
    o.threads = 2;
    o.progress = change_at;
    o.progress_user = &c;
    assert_int_equal(hunch_model_open(&m, path, &o, &err), HUNCH_FAILED);
    assert_null(m);
    if (!strstr(err.message, changed)) fail_msg("\"%s\" does not name %s", err.message, changed);
}

static void test_while_loading(void **state) {
    (void)state;
    for (int i = 0; i < CHANGES; i++)
        for (double at = 0; at < 0.9; at += 0.4) {
            const char *path = path_of("model.gguf");
            file_copy(path, MODEL);
            check_load(path, path, changes[i], at);
            /* a folder's file, and a part */
            char line[900];
            const char *copy = path_of("copied");
            snprintf(line, sizeof line, "rm -rf %s && cp -r '%s' %s && chmod -R u+w %s", copy, NO_TOKENIZER, copy, copy);
            assert_int_equal(system(line), 0);
            char weights[400];
            snprintf(weights, sizeof weights, "%s/model-00003-of-00003.safetensors", copy);
            check_load(copy, weights, changes[i], at);
            const char *first = split_file(MODEL, "changing", 3, false);
            char last[400];
            snprintf(last, sizeof last, "%s", first);
            memcpy(strstr(last, "00001-of"), "00003", 5);
            check_load(first, last, changes[i], at * 0.5);
        }
}

/* The session's text up to the failed round is that of an undisturbed one. */
static void check_mapped(void (*make)(const char *path), int rounds) {
    const char *path = path_of("model.gguf");
    answer want = {0};
    hunch_error why = {0};
    hunch_session *s;
    hunch_session_state st;
    file_copy(path, MODEL);
    hunch_model *m = open_model_as(path, NULL, 2, HUNCH_PRECISION_NATIVE, true);
    answer_of(m, &want);
    hunch_engine *e = open_engine(m, "ngram", 1, 64, HUNCH_KV_DEFAULT, 16, 96);
    const hunch_request r = ask(m);
    must(hunch_session_open(&s, e, &r, err));
    for (int i = 0; i < rounds; i++) must(hunch_engine_round(e, err));
    usleep(20000);
    make(path);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hunch_engine_round(e, &why), HUNCH_FAILED);
        if (!strstr(why.message, path)) fail_msg("\"%s\" does not name %s", why.message, path);
    }
    hunch_session_get(s, &st);
    assert_true(st.n_tokens <= want.n && (rounds == 0 || st.n_tokens > 0));
    assert_memory_equal(st.tokens, want.token, st.n_tokens * sizeof *st.tokens);
    hunch_session_close(&s);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    answer_free(&want);
}

static void test_mapped(void **state) {
    (void)state;
    for (int i = 0; i < CHANGES; i++)
        for (int rounds = 0; rounds < 6; rounds += 3) check_mapped(changes[i], rounds);
}

/* ---- the command --------------------------------------------------------------------------------------------------------- */

/* Truncated at many moments of a mapped run: an error that names it, never a signal. */
/* README: "A model file that is replaced or truncated while the command runs is an error or changes nothing; it is no
 * crash." */
static void test_command(void **state) {
    (void)state;
    const char *path = path_of("model.gguf");
    const char *const args[] = {"run", "-m", path, "--mapped", "-p", "Once", "-n", "100000", "--samples", "100", "--ignore-eos",
                                "--json-lines", NULL};
    char out[300], err[300];
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    for (int i = 0; i < 12; i++) {
        file_copy(path, MODEL);
        pid_t child = command_start(args, out, err);
        usleep((useconds_t)(i * 17000));
        cut_to_nothing(path);
        const int code = child_wait(child);
        char *words = file_read(err, NULL), *line = strstr(words, "hunch: ");
        if ((code != 1 && code != 3) || !line) fail_msg("try %d: code %d, said \"%s\"", i, code, words);
        free(words);
    }
}

/* The race itself: the page is accessed without a check before. */
static void test_lost_page(void **state) {
    (void)state;
    char err[300];
    snprintf(err, sizeof err, "%s/err", folder);
    const char *const args[] = {"bench", "-m", STORIES, "--requests", NULL};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    input_fd = ends[0]; /* the command waits for a request */
    pid_t child = command_start(args, "/dev/null", err);
    input_fd = -1;
    close(ends[0]);
    usleep(300000);
    kill(child, SIGBUS); /* from outside: another fault, handled as by default */
    assert_int_equal(child_wait(child), -SIGBUS);
    close(ends[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renamed_over), cmocka_unit_test(test_while_loading), cmocka_unit_test(test_mapped),
        cmocka_unit_test(test_command),      cmocka_unit_test(test_lost_page)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
