/* SPDX-License-Identifier: Apache-2.0 */
/* memory_group_test.c - a mixture of experts larger than the memory that there is: a control group limits it (of either version,
 * where this process may make one), and pages of the file count too. Refused with advice; with experts left in the file, or all
 * weights, the answer is that of an unlimited run, memory stays within the limit, and the limit was reached. */
#include "memory_group.h"

#include "base/run_mode_for_tests.h"

enum { LIMIT = 64 << 20 };

static group limited = {.limit = LIMIT, .name = "hunch-test"};

#define ANSWER "run", "-m", path, "--prompt-tokens", prompt, "-n", "24", "--ignore-eos", "--context", "128", "--threads", "2", "--json"

static void same_tokens(const result *r, const json_t *want, const char *how) {
    json_t *j = json_loads(r->out, 0, NULL);
    if (r->code != 0 || !j || !json_equal(json_object_get(j, "tokens"), want))
        fail_msg("%s: code %d, \"%s\" %s", how, r->code, r->err, r->out);
    json_decref(j);
}

static void test_larger_than_memory(void **state) {
    (void)state;
    static const char *const mapped[] = {"--mapped-experts", "--mapped"};
    static const char *const said[] = {" MB of experts stay mapped in the file, ", " MB of weights stay mapped in the file, "};
    const char *path = model_write(), *prompt = text_write("prompt.json", "[3, 141, 59, 26, 5, 358, 97]");
    struct stat st;
    assert_true(stat(path, &st) == 0 && st.st_size > LIMIT + LIMIT / 2);
    const char *const plain[] = {ANSWER, NULL};
    result r = command_args(plain);
    json_t *j = json_loads(r.out, 0, NULL), *want = json_incref(json_object_get(j, "tokens"));
    assert_int_equal(json_array_size(want), 24);
    json_decref(j);
    result_free(&r);
    r = run_inside(&limited, plain);
    if (r.code != HUNCH_NO_MEMORY || !strstr(r.err, "--mapped-experts leaves experts in the file")) fail_msg("%d: %s", r.code, r.err);
    result_free(&r);
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {ANSWER, mapped[i], NULL};
        forget_pages(path);
        const long long before = times_short(&limited);
        r = run_inside(&limited, args);
        same_tokens(&r, want, mapped[i]);
        if (!strstr(r.err, said[i]) || !strstr(r.err, " of cache a token")) fail_msg("%s: %s", mapped[i], r.err);
        if (times_short(&limited) == before) fail_msg("%s: there was memory enough", mapped[i]);
        result_free(&r);
    }
    assert_true(most_used(&limited) <= LIMIT);
    json_decref(want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_larger_than_memory)};
    if (SANITIZED) {
        puts("skipped: a sanitizer's shadows take more memory than is allowed here");
        return 77;
    }
    hn_cgroups_visit("/proc/self/cgroup", "/proc/self/mountinfo", "memory", group_make, &limited);
    if (!limited.path[0]) {
        printf("skipped: no control group can be made here: %s\n",
               limited.refused[0] ? limited.refused : "there is none that limits memory");
        return 77;
    }
    const int failed = cmocka_run_group_tests(tests, folder_make, folder_remove);
    (void)number_write(limited.before, "cgroup.procs", getpid()); /* a test that failed may be inside */
    if (rmdir(limited.path) != 0) printf("%s: %s\n", limited.path, strerror(errno));
    return failed;
}
