/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_model.c - a GGUF file from its first byte to the tokens that it generates: inspected, opened, and run for a few
 * tokens if it opens, with drafting: by n-grams, or (files of odd length) by itself as a draft model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { CONTEXT = 24, NEW_TOKENS = 6 };

static void session_run(hunch_engine *e, const hunch_model *m, int vocab) {
    const hunch_token prompt[] = {1 % vocab, 2 % vocab, 1 % vocab};
    hunch_session *s = NULL;
    hunch_session_state state;
    hunch_request r;
    hunch_error err = {0};
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = NEW_TOKENS;
    hunch_status st = hunch_session_open(&s, e, &r, &err);
    fuzz_check(st, &err, NULL);
    while (st == HUNCH_OK && hunch_engine_running(e) > 0) st = hunch_engine_round(e, &err);
    FUZZ_MUST(st != HUNCH_OK || hunch_engine_running(e) == 0);
    if (s != NULL) {
        hunch_session_get(s, &state);
        for (size_t i = 0; i < state.n_tokens; i++) FUZZ_MUST(state.tokens[i] >= 0 && state.tokens[i] < vocab);
        if (state.finish == HUNCH_FINISH_FAILED && !strstr(state.error.message, "every logit is NaN or -inf"))
            fuzz_check(state.error.status, &state.error, NULL);
    }
    hunch_session_close(&s);
}

static void engine_run(hunch_model *m, const char *draft) {
    const char *const drafts[] = {draft};
    hunch_model_info info;
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_error err = {0};
    hunch_model_get_info(m, &info);
    hunch_engine_options_defaults(&o);
    o.context = info.context < CONTEXT ? info.context : CONTEXT;
    o.chunk = 8;
    o.page_rows = 16;
    o.drafts = drafts;
    o.n_drafts = 1;
    hunch_status st = hunch_engine_open(&e, m, &o, &err);
    fuzz_check(st, &err, NULL);
    if (st == HUNCH_OK) session_run(e, m, info.vocab);
    hunch_engine_close(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file(0, (fuzz_bytes){data, size});
    char *json = NULL, itself[80];
    hunch_model *m = NULL;
    hunch_model_options o;
    hunch_error err = {0};
    snprintf(itself, sizeof itself, "model:%s,depth=2", path);
    fuzz_check(hunch_inspect(path, &json, &err), &err, path);
    hunch_free(json);
    hunch_model_options_defaults(&o);
    o.threads = 1;
    hunch_status st = hunch_model_open(&m, path, &o, &err);
    fuzz_check(st, &err, path);
    if (st == HUNCH_OK) engine_run(m, size % 2 ? itself : "ngram");
    hunch_model_close(&m);
    return 0;
}
