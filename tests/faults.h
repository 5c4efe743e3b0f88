/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h - for tests that break the n-th allocation, read or write of an operation: counts them, breaks one after the other,
 * then one and all after it, and checks the errors. An operation that succeeds in spite of it must give its usual result. The
 * sanitizer build finds leaks. Include after cmocka.
 *
 * jansson's memory is counted too: json_set_alloc_funcs is global for the process, so only the program may call it, and here the
 * test is the program. */
#ifndef HN_TEST_FAULTS_H
#define HN_TEST_FAULTS_H
#include <jansson.h>

#include "base/fault.h"
#include "base/mem.h"
#include "fixture.h"

/* An operation to break. digest: of all its results. */
typedef hunch_status (*fault_life)(const void *what, uint64_t *digest, hunch_error *err);

HELPER int64_t fault_points; /* so far */

/* In jansson's parser a single failure is not always noticed (base/json_load.h), so there only lasting failures are injected. The
 * parser is intercepted by the linker: --wrap=json_loadb. */
HELPER bool faults_parsing, faults_sticky;

json_t *__real_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where);
json_t *__wrap_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where);
json_t *__wrap_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where) {
    faults_parsing = true;
    json_t *out = __real_json_loadb(text, size, flags, where);
    faults_parsing = false;
    return out;
}

HELPER void *faults_json_alloc(size_t size) {
    return faults_parsing && !faults_sticky ? malloc(size) : hn_alloc(size);
}

HELPER int faults_setup(void **state) {
    (void)state;
    json_set_alloc_funcs(faults_json_alloc, free);
    return 0;
}

HELPER int faults_teardown(void **state) {
    (void)state;
    print_message("%lld failures were injected\n", (long long)fault_points);
    return 0;
}

HELPER void digest_add(uint64_t *digest, const void *data, size_t size) {
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) *digest = (*digest ^ p[i]) * 0x100000001B3u;
}

HELPER void digest_text(uint64_t *digest, const char *text) {
    if (text) digest_add(digest, text, strlen(text) + 1);
}

static const char *const fault_names[] = {"allocation", "read", "write", "short read or write"};

/* How many failures of a kind are tried: with HUNCH_TEST_ALL in the environment all (0), which takes minutes. */
HELPER int64_t faults_most(int64_t most) {
    if (getenv("HUNCH_TEST_ALL")) return 0;
    return light() && (most == 0 || most > 5) ? 5 : most;
}

/* Checks the error of a failure: one line that names what was missing. */
HELPER void faults_check_words(const char *name, const char *kind, int64_t n, hunch_status got, hunch_status want,
                                const hunch_error *err) {
    const char *m = err->message;
    if (got != want)
        fail_msg("%s: %s %lld failed: status %d (%s), expected %d", name, kind, (long long)n, got, m, want);
    if (err->status != got || !m[0] || strchr(m, '\n'))
        fail_msg("%s: %s %lld failed: said \"%s\" with status %d", name, kind, (long long)n, m, err->status);
    if (want == HUNCH_NO_MEMORY && !strstr(m, "memory") && !strstr(m, "cannot be started"))
        fail_msg("%s: %s %lld failed: \"%s\" does not say that memory is missing", name, kind, (long long)n, m);
}

/* Breaks each of them, or, if there are more than `most` (0: all; see faults_most), that many, evenly chosen.
 * needed: at least one in so many must be noticed (optional parts may do without memory); 0: none need be. */
HELPER void faults_break(const char *name, fault_life life, const void *what, enum hn_fault_kind kind, bool sticky,
                          hunch_status want, int64_t most, int needed) {
    hunch_error err = {0};
    uint64_t expected = 0, got = 0;
    int64_t tried = 0, noticed = 0;
    faults_sticky = sticky;
    if (life(what, &expected, &err) != HUNCH_OK) fail_msg("%s: %s", name, err.message);
    hn_fault_arm(kind, INT64_MAX, false);
    if (life(what, &got, &err) != HUNCH_OK || got != expected) fail_msg("%s: not the same twice (%s)", name, err.message);
    const int64_t calls = (int64_t)hn_fault_count(kind);
    hn_fault_arm(kind, -1, false);
    most = faults_most(most);
    assert_true(calls > 0);
    for (int64_t n = 0, i = 0; n < calls; i++, n = most && calls > most ? i * calls / most : i) {
        memset(&err, 0, sizeof err);
        got = 0;
        hn_fault_arm(kind, n, sticky);
        const hunch_status st = life(what, &got, &err);
        hn_fault_arm(kind, -1, false);
        tried++;
        if (st != HUNCH_OK) {
            faults_check_words(name, fault_names[kind], n, st, want, &err);
            noticed++;
        } else if (got != expected) {
            fail_msg("%s: %s %lld failed, nothing was said and the result is another", name, fault_names[kind],
                     (long long)n);
        }
    }
    fault_points += tried;
    if (needed && noticed * needed < tried)
        fail_msg("%s: of %lld failed %ss %lld were noticed", name, (long long)tried, fault_names[kind], (long long)noticed);
    got = 0;
    if (life(what, &got, &err) != HUNCH_OK || got != expected) fail_msg("%s: not the same afterwards", name);
}

/* A single failure, and one with all calls after it failing too. */
HELPER void faults_break_both(const char *name, fault_life life, const void *what, enum hn_fault_kind kind,
                               hunch_status want, int64_t most, int needed) {
    faults_break(name, life, what, kind, false, want, most, needed);
    faults_break(name, life, what, kind, true, want, most, needed);
}
#endif
