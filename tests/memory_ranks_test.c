/* SPDX-License-Identifier: Apache-2.0 */
/* memory_ranks_test.c - a model whose weights are more than the memory of a machine runs over two (docs/machines.md): a control group for
 * each rank limits it. Its vocabulary has several slices, so logits and the best of them come from several ranks. */
#include "memory_group.h"

#include "base/run_mode_for_tests.h"

enum { LIMIT = 96 << 20 };

static group limited[2] = {{.limit = LIMIT, .name = "hunch-test-rank0"}, {.limit = LIMIT, .name = "hunch-test-rank1"}};

#define ANSWER                                                                                                                 \
    "run", path, "--prompt-tokens", prompt, "-n", "24", "--ignore-eos", "--context", "128", "--threads", "1", "--seed", "7", "--json"
#define OVER "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"

/* The tokens of an answer, to be freed. */
static json_t *tokens_of(const result *r, const char *how) {
    json_t *j = json_loads(r->out, 0, NULL), *tokens = json_incref(json_object_get(j, "tokens"));
    if (r->code != 0 || json_array_size(tokens) != 24) fail_msg("%s: code %d, \"%s\" %s", how, r->code, r->err, r->out);
    json_decref(j);
    return tokens;
}

/* By env, which finds mpirun. */
static void same_over(const char *const *args, const json_t *want, const char *how) {
    command_program = "/usr/bin/env";
    result r = command_args(args);
    command_program = HUNCH_COMMAND;
    json_t *tokens = tokens_of(&r, how);
    if (!json_equal(tokens, want)) fail_msg("%s: other tokens: %s", how, r.out);
    json_decref(tokens);
    result_free(&r);
}

static void test_ranks(void **state) {
    static const char *const sampled[] = {"0", "1"};
    const char *path = model_write(), *prompt = text_write("prompt.json", "[3, 141, 5900, 26, 5, 358, 8997]");
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *const alone[] = {ANSWER, "--temperature", sampled[i], NULL};
        const char *const two[] = {OVER, "2", HUNCH_COMMAND, ANSWER, "--temperature", sampled[i], NULL};
        const char *const three[] = {OVER, "3", HUNCH_COMMAND, ANSWER, "--temperature", sampled[i], NULL};
        result r = command_args(alone);
        json_t *want = tokens_of(&r, "alone");
        same_over(two, want, "over two ranks");
        same_over(three, want, "over three");
        result_free(&r);
        json_decref(want);
    }
}

static void test_larger_than_a_machine(void **state) {
    const char *path = path_of("large.gguf"), *prompt = path_of("prompt.json");
    char enter[2 * MOST_FOLDER];
    struct stat st;
    (void)state;
    if (!limited[1].path[0]) {
        print_message("no control group can be made here: %s\n", limited[0].refused);
        skip();
    }
    assert_true(stat(path, &st) == 0 && st.st_size > LIMIT);
    const char *const alone[] = {ANSWER, NULL};
    result r = command_args(alone);
    json_t *want = tokens_of(&r, "alone");
    result_free(&r);
    r = run_inside(&limited[0], alone);
    if (r.code != HUNCH_NO_MEMORY) fail_msg("there was memory enough: %d %s", r.code, r.err);
    result_free(&r);
    const char *const first = limited[0].path, *const rank = strstr(first, "-rank") + strlen("-rank");
    snprintf(enter, sizeof enter, "echo $$ > \"%.*s$OMPI_COMM_WORLD_RANK-%d/cgroup.procs\" && exec \"$0\" \"$@\"",
             (int)(rank - first), first, (int)getpid());
    const char *const over[] = {OVER, "2", "sh", "-c", enter, HUNCH_COMMAND, ANSWER, NULL};
    forget_pages(path);
    same_over(over, want, "over two ranks with little memory each");
    json_decref(want);
    for (int i = 0; i < 2; i++) {
        const long long used = most_used(&limited[i]);
        if (used > LIMIT || used < LIMIT / 3) fail_msg("rank %d used %lld bytes of memory", i, used);
    }
}

static bool has_mpi(void) {
    char path[] = HUNCH_COMMAND;
    char library[sizeof path + 40];
    *strrchr(path, '/') = 0;
    snprintf(library, sizeof library, "%s/libhunch_mpi.so", path);
    return access(library, F_OK) == 0 && system("command -v mpirun > /dev/null") == 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks), cmocka_unit_test(test_larger_than_a_machine)};
    if (SANITIZED || !has_mpi()) {
        puts(SANITIZED ? "skipped: MPI is not sanitized" : "skipped: no MPI (make deps installs it)");
        return 77;
    }
    for (int i = 0; i < 2; i++) hn_cgroups_visit("/proc/self/cgroup", "/proc/self/mountinfo", "memory", group_make, &limited[i]);
    const int failed = cmocka_run_group_tests(tests, folder_make, folder_remove);
    if (limited[0].path[0]) (void)number_write(limited[0].before, "cgroup.procs", getpid()); /* a test that failed may be inside */
    for (int i = 0; i < 2; i++)
        if (limited[i].path[0] && rmdir(limited[i].path) != 0) printf("%s: %s\n", limited[i].path, strerror(errno));
    return failed;
}
