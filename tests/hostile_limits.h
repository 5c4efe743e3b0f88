/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_limits.h - limits of a command for any input file, a gigabyte and some seconds of processor time; and checks of refusals. */
#ifndef HN_HOSTILE_LIMITS_H
#define HN_HOSTILE_LIMITS_H
#include <sys/resource.h>

#include "base/run_mode_for_tests.h"
#include "command.h"
#include "hunch/hunch.h"

enum { LIMIT_SECONDS = 60, LIMIT_MIB = 1024 }; /* seconds: of a sanitizer's build on a slow machine */

/* Started commands inherit them, with new counts. */
static inline void limits_set(void) {
    const struct rlimit memory = {(rlim_t)LIMIT_MIB << 20, (rlim_t)LIMIT_MIB << 20},
                        time = {LIMIT_SECONDS, LIMIT_SECONDS};
    if (!SANITIZED) /* a sanitizer uses terabytes of addresses */
        assert_int_equal(setrlimit(RLIMIT_AS, &memory), 0);
    assert_int_equal(setrlimit(RLIMIT_CPU, &time), 0);
    /* it scans the whole of a long text for each match in it */
    assert_int_equal(setenv("ASAN_OPTIONS", "intercept_memmem=0", 0), 0);
}

static inline int hostile_setup(void **state) {
    limits_set();
    return folder_make(state);
}

/* The model is refused, by name. what: the change, for messages. */
static inline void model_refused(const char *path, const char *prompt, const char *what, const char *says) {
    result r = command("run", "-m", path, "-p", prompt, "--raw", "-n", "3");
    const char *end = strchr(r.err, '\n');
    if (r.code != HUNCH_REFUSED || !strstr(r.err, path) || !strstr(r.err, says) || !end || end[1] || r.out_len)
        fail_msg("%s: expected 3 and a line that names the file and \"%s\", got %d and \"%s\", output \"%s\"", what,
                 says, r.code, r.err, r.out);
    result_free(&r);
    r = command("inspect", path, "--json"); /* shows what opens, with the reason */
    if (r.code != HUNCH_REFUSED && (r.code != HUNCH_OK || !strstr(r.out, "\"runs\"")))
        fail_msg("%s: inspect gave %d, \"%s\"", what, r.code, r.err);
    result_free(&r);
}

static inline void model_runs(const char *path, const char *prompt) {
    json_t *j = json_of("run", "-m", path, "-p", prompt, "--raw", "-n", "3", "--ignore-eos");
    assert_int_equal(json_array_size(get(j, "tokens")), 3);
    json_decref(j);
}
#endif
