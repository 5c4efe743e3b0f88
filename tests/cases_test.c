/* SPDX-License-Identifier: Apache-2.0 */
/* cases_test.c - small inputs made from public bug reports (tests/data/cases, a folder each with a case.json, which tests/data/README.md
 * describes): the command is run as it says, and what it prints, writes and returns is what is right. */
#include "command.h"

#include <dirent.h>

#include "base/json_load.h"
#include "base/mem.h"
#include "text/split/pattern.h"

static char why[2000]; /* the first fault of a list of checks */

static bool fault(const char *fmt, ...) {
    va_list list;
    va_start(list, fmt);
    vsnprintf(why, sizeof why, fmt, list);
    va_end(list);
    return false;
}

static bool is_found(const char *expression, const char *text) {
    hn_pattern *p;
    hn_pattern_work *w;
    hunch_error err;
    bool found;
    size_t from, to;
    if (hn_pattern_open(&p, expression, &err) || hn_pattern_work_open(&w, &err))
        fail_msg("%s: %s", expression, err.message);
    hn_pattern_work_begin(w, strlen(text));
    if (hn_pattern_find(p, w, text, 0, strlen(text), &found, &from, &to, &err))
        fail_msg("%s: %s", expression, err.message);
    hn_pattern_work_close(&w);
    hn_pattern_close(&p);
    return found;
}

static const char *current; /* the case that runs */

/* "{out}/" is a place in the test's folder that each case has for itself. */
static const char *place(const char *text) {
    static char paths[64][400];
    static int next;
    char *to = paths[next++ & 63];
    const char *at = strstr(text, "{out}/");
    if (at)
        snprintf(to, sizeof paths[0], "%.*s%s/%s-%s", (int)(at - text), text, folder, current, at + 6);
    else
        snprintf(to, sizeof paths[0], "%s", text);
    return to;
}

static bool npy_is(const json_t *check) {
    const char *file = place(json_string_value(json_object_get(check, "file"))),
               *want = json_string_value(json_object_get(check, "want"));
    double most = 0;
    if (!test_file_exists(file)) return fault("%s is not there", file);
    matrix got = npy_read(file), right = npy_read(want);
    const bool same = got.rows == right.rows && got.columns == right.columns;
    for (size_t i = 0; same && i < got.rows * got.columns; i++) {
        const double d = fabs((double)got.data[i] - right.data[i]);
        most = d <= most ? most : d; /* NaN, too */
    }
    free(got.file);
    free(right.file);
    if (!same) return fault("%s is of another shape", file);
    return most <= json_number_value(json_object_get(check, "tol")) || fault("logits differ by %g", most);
}

/* The value at "a.0.b"; borrowed. */
static const json_t *dig(const json_t *value, const char *path) {
    char key[100];
    while (value && *path) {
        const size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key)) : json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return value;
}

static bool json_is(const json_t *check, const result *r) {
    const json_t *wanted = json_object_get(check, "json"), *want;
    const char *key;
    bool ok = true;
    if (!wanted) return true;
    json_t *doc = hn_json_load(r->out, r->out_len, 0, NULL);
    if (!doc) return fault("no JSON on standard output: %.200s", r->out);
    json_object_foreach((json_t *)(uintptr_t)wanted, key, want) {
        const json_t *got = dig(doc, key);
        if (ok && !json_equal(got, want)) {
            char *text = got ? hn_json_dump(got, JSON_ENCODE_ANY) : NULL;
            ok = fault("%s is %.300s", key, text ? text : "missing");
            hn_free(text);
        }
    }
    json_decref(doc);
    return ok;
}

static bool code_is(const json_t *want, int code) {
    size_t i;
    const json_t *one;
    if (!want) return code == 0;
    if (json_is_integer(want)) return code == json_integer_value(want);
    json_array_foreach(want, i, one) if (code == json_integer_value(one)) return true;
    return false;
}

static bool check_holds(const json_t *check, const result *runs) {
    static const char *const keys[] = {"command", "rc", "stderr", "stderr_not", "text", "json", "npy"};
    const result *r = &runs[json_integer_value(json_object_get(check, "command"))];
    const char *key, *text = json_string_value(json_object_get(check, "text"));
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)check, key, value) {
        bool known = false;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) known = known || strcmp(key, keys[i]) == 0;
        if (!known) fail_msg("a check that this test does not know: %s", key);
    }
    const char *said = json_string_value(json_object_get(check, "stderr")),
               *not_said = json_string_value(json_object_get(check, "stderr_not"));
    if (!code_is(json_object_get(check, "rc"), r->code)) return fault("exit code %d: %.300s", r->code, r->err);
    if (said && !is_found(said, r->err)) return fault("standard error is not /%s/: %.300s", said, r->err);
    if (not_said && is_found(not_said, r->err)) return fault("standard error is /%s/: %.300s", not_said, r->err);
    if (text && strcmp(text, r->out) != 0) return fault("prints %.300s", r->out);
    const json_t *npy = json_object_get(check, "npy");
    return json_is(check, r) && (!npy || npy_is(npy));
}

static bool all_hold(const json_t *checks, const result *runs) {
    size_t i;
    const json_t *check;
    json_array_foreach(checks, i, check) if (!check_holds(check, runs)) return false;
    return true;
}

static void case_run(const char *name) {
    enum { MOST = 32, MOST_WORDS = 40 };
    char path[400];
    result runs[MOST];
    const json_t *commands, *command, *word, *ways;
    size_t i, k, len;
    bool ok = false;
    current = name;
    snprintf(path, sizeof path, HUNCH_TEST_DATA "/cases/%s", name);
    assert_int_equal(chdir(path), 0);
    char *file = file_read("case.json", &len);
    json_t *all = hn_json_load(file, len, 0, NULL);
    if (!all) fail_msg("%s: case.json is no JSON", name);
    commands = json_object_get(all, "commands");
    assert_in_range(json_array_size(commands), 1, MOST);
    json_array_foreach(commands, i, command) {
        const char *words[MOST_WORDS + 1] = {NULL};
        assert_in_range(json_array_size(command), 2, MOST_WORDS);
        json_array_foreach(command, k, word) if (k > 0) words[k - 1] = place(json_string_value(word));
        runs[i] = command_args(words);
    }
    const json_t *expect = json_object_get(all, "expect"), *any = json_object_get(expect, "any_of");
    json_array_foreach(any, k, ways) ok = ok || all_hold(ways, runs);
    ok = ok || (!any && all_hold(expect, runs));
    if (!ok) fail_msg("%s: %s", name, why);
    for (i = 0; i < json_array_size(commands); i++) free(runs[i].out), free(runs[i].err);
    json_decref(all);
    free(file);
}

static void test_cases(void **state) {
    (void)state;
    DIR *d = opendir(HUNCH_TEST_DATA "/cases");
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        case_run(e->d_name);
        n++;
    }
    closedir(d);
    assert_true(n >= 14);
}

/* The checks themselves: each kind of them can fail. */
static void test_checks(void **state) {
    (void)state;
    char out[] = "{\"a\": [1, {\"b\": 2}]}", err[] = "line 2: no";
    const result r = {.code = 3, .out = out, .err = err, .out_len = strlen(out)};
    static const struct {
        const char *check;
        bool holds;
    } checks[] = {{"{\"rc\": 3}", true},
                  {"{}", false},
                  {"{\"rc\": [1, 3]}", true},
                  {"{\"rc\": [1, 2]}", false},
                  {"{\"rc\": 3, \"stderr\": \"(?i)LINE .*no\"}", true},
                  {"{\"rc\": 3, \"stderr\": \"yes\"}", false},
                  {"{\"rc\": 3, \"stderr_not\": \"no$\"}", false},
                  {"{\"rc\": 3, \"text\": \"x\"}", false},
                  {"{\"rc\": 3, \"json\": {\"a.1.b\": 2}}", true},
                  {"{\"rc\": 3, \"json\": {\"a.0\": 2}}", false},
                  {"{\"rc\": 3, \"json\": {\"c\": 2}}", false}};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        json_t *check = json_loads(checks[i].check, 0, NULL);
        assert_non_null(check);
        assert_int_equal(check_holds(check, &r), checks[i].holds);
        json_decref(check);
    }
}

static int leave(void **state) {
    assert_int_equal(chdir("/"), 0);
    return folder_remove(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_checks)};
    return cmocka_run_group_tests(tests, folder_make, leave);
}
