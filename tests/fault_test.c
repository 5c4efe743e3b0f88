/* SPDX-License-Identifier: Apache-2.0 */
/* fault_test.c - every allocation and every read of a load, a session and its rounds fails once: a clear error each time,
 * no leaks (found by the sanitizer build), and the next try works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "fixture.h"

/* Load, open, four rounds, close; the model also drafts for itself. Returns the first failure. */
static hunch_status whole_life(const char *path, bool mapped, hunch_error *err) {
    static char self[600];
    hunch_model_options mo;
    hunch_engine_options eo;
    hunch_model *m = NULL;
    hunch_engine *e = NULL;
    hunch_session *s = NULL;
    hunch_request r;
    const char *const drafts[] = {"ngram", "cache", "suffix", "prediction", "recycle", "lookahead", self, "forced,accept=0.8,depth=3"},
                      *const stops[] = {"zzz"};
    const hunch_token prompt[] = {1, 403, 407, 261, 378, 403, 407};
    hunch_model_options_defaults(&mo);
    hunch_engine_options_defaults(&eo);
    mo.threads = 2;
    mo.mapped = mapped;
    snprintf(self, sizeof self, "model:%s,depth=2", path);
    eo.drafts = drafts;
    eo.n_drafts = sizeof drafts / sizeof *drafts;
    eo.context = 64;
    eo.page_rows = 16;
    hunch_status st = hunch_model_open(&m, path, &mo, err);
    if (!st) st = hunch_engine_open(&e, m, &eo, err);
    if (!st) {
        hunch_request_defaults(&r, m);
        r.prompt = prompt;
        r.n_prompt = sizeof prompt / sizeof *prompt;
        r.max_tokens = 12;
        r.ignore_eos = true;
        r.prediction = prompt;
        r.n_prediction = sizeof prompt / sizeof *prompt;
        r.logprobs = true;
        r.top_logprobs = 3;
        r.sampling.repetition_penalty = 1.2;
        r.stop = stops;
        r.n_stop = strstr(path, "gguf") ? 1 : 0; /* the folder has no tokenizer */
        st = hunch_session_open(&s, e, &r, err);
    }
    for (int i = 0; !st && i < 4; i++) {
        hunch_session_state state;
        st = hunch_engine_round(e, err);
        if (st) break;
        hunch_session_get(s, &state);
        if (state.finish == HUNCH_FINISH_FAILED) {
            *err = state.error;
            st = state.error.status;
        }
    }
    if (s) hunch_session_close(&s);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    return st;
}

static void check_faults(enum hn_fault_kind kind, const char *path, bool mapped, hunch_status want) {
    hunch_error err = {0};
    hn_fault_arm(kind, INT64_MAX, false); /* counts only */
    assert_int_equal(whole_life(path, mapped, &err), HUNCH_OK);
    const int64_t calls = (int64_t)hn_fault_count(kind);
    assert_true(calls > 3);
    const int64_t step = light() && calls > 60 ? calls / 60 : 1;
    int64_t tried = 0, survived = 0;
    for (int64_t n = 0; n < calls; n += step) {
        memset(&err, 0, sizeof err);
        hn_fault_arm(kind, n, false);
        const hunch_status st = whole_life(path, mapped, &err);
        hn_fault_arm(kind, -1, false);
        tried++;
        if (st == HUNCH_OK) { /* lookup continues with a smaller index, a prefix is not shared: slower, never wrong */
            survived++;
            continue;
        }
        if (st != want)
            fail_msg("%s: failure %ld gave status %d (%s), expected %d", path, (long)n, st, err.message, want);
        assert_true(err.message[0] != '\0' && !strchr(err.message, '\n'));
    }
    assert_true(survived * 4 <= tried);
    assert_int_equal(whole_life(path, mapped, &err), HUNCH_OK);
}

/* README: "An allocation or a read that fails is an error: nothing is lost, and the next try works." */
static void test_allocations_of_a_gguf(void **state) {
    (void)state;
    check_faults(HN_FAULT_ALLOC, data_path("models/stories260K/stories260K.f16.gguf"), false, HUNCH_NO_MEMORY);
}
static void test_allocations_of_a_folder(void **state) {
    (void)state;
    check_faults(HN_FAULT_ALLOC, data_path("goldens/llama-tied"), false, HUNCH_NO_MEMORY);
}
static void test_allocations_of_a_mapped_folder(void **state) {
    (void)state;
    check_faults(HN_FAULT_ALLOC, data_path("goldens/llama-tied"), true, HUNCH_NO_MEMORY);
}
/* README: "An allocation or a read that fails is an error: nothing is lost, and the next try works." */
static void test_reads_of_a_folder(void **state) {
    (void)state;
    check_faults(HN_FAULT_READ, data_path("goldens/llama-tied"), false, HUNCH_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_allocations_of_a_gguf),
                                       cmocka_unit_test(test_allocations_of_a_folder),
                                       cmocka_unit_test(test_allocations_of_a_mapped_folder),
                                       cmocka_unit_test(test_reads_of_a_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
