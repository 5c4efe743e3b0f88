/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_api_test.c - drafts at the end of the context, where there is hardly room for one, with every drafter; calls from inside the
 * callbacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

static const hunch_token prompt[] = {1, 403, 407, 261, 378, 432, 403, 407, 261, 378};
enum { N = sizeof prompt / sizeof *prompt };
static const char *const drafts[] = {"ngram,min=1", "ngram,form=mod,max=1,min=1", "suffix", "cache", "forced,accept=1,depth=8", "MODEL"};

/* Drafts after the whole prompt in a context of this many rows; gives the depth of the deepest node. */
static hunch_status draft_at_end(hunch_model *m, const char *draft, int context, int accept, hunch_draft_result *out, int *deepest) {
    static char self[600];
    int depth[64];
    hunch_error why;
    snprintf(self, sizeof self, "model:%s,depth=8", data_path("models/stories260K/stories260K.f16.gguf"));
    hunch_engine *e = open_engine(m, strcmp(draft, "MODEL") ? draft : self, 1, 64, HUNCH_KV_DEFAULT, 64, context);
    const hunch_status st = hunch_draft(e, prompt, N, 8, accept, NULL, NULL, NULL, out, &why);
    *deepest = 0;
    for (int i = 0; i < out->n; i++) {
        depth[i] = 1 + (out->node[i].parent < 0 ? 0 : depth[out->node[i].parent]);
        if (depth[i] > *deepest) *deepest = depth[i];
    }
    hunch_engine_close(&e);
    return st;
}

/* After a prompt of N tokens and its root a context of N + 1 + d rows has room for d drafts. */
static void test_end_of_context(void **state) {
    (void)state;
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 2, HUNCH_PRECISION_NATIVE);
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
        for (int context = N; context < N + 8; context++)
            for (int accept = -1; accept < 4; accept++) {
                hunch_draft_result out;
                int deepest;
                const int places = context - N - 1;
                const hunch_status st = draft_at_end(m, drafts[i], context, accept, &out, &deepest);
                if (st) { /* fewer drafts than were to be accepted */
                    assert_int_equal(st, HUNCH_USAGE);
                    assert_true(accept > 0);
                } else {
                    assert_true(out.root >= 0 && out.root < 512);
                    assert_true(deepest <= (places > 0 ? places : 0));
                    if (i >= 4 && accept < 0 && places > 1) assert_true(deepest > 0); /* these two always have one */
                }
                hunch_free(out.node);
            }
    hunch_model_close(&m);
}

/* Calls from a callback while its engine runs. */
typedef struct caller {
    hunch_model *m;
    hunch_engine *e;
    int calls;
} caller;

static void is_usage(hunch_status st, const hunch_error *why) {
    assert_int_equal(st, HUNCH_USAGE);
    assert_non_null(strstr(why->message, "in the middle of a call"));
}

static void in_row(void *user, size_t at, const float *logits, int vocab);

static void try_all(caller *v) {
    hunch_error why;
    hunch_request r;
    hunch_session *s = NULL;
    hunch_draft_result out;
    double seconds;
    v->calls++;
    hunch_request_defaults(&r, v->m);
    r.prompt = prompt;
    r.n_prompt = N;
    is_usage(hunch_evaluate(v->e, prompt, N, in_row, NULL, &why), &why);
    is_usage(hunch_engine_round(v->e, &why), &why);
    is_usage(hunch_session_open(&s, v->e, &r, &why), &why);
    if (hunch_engine_running(v->e) > 0) return; /* this would be the error then */
    is_usage(hunch_draft(v->e, prompt, N, 2, -1, NULL, NULL, NULL, &out, &why), &why);
    is_usage(hunch_measure_pass(v->e, 1, 0, 1, &seconds, &why), &why);
}

static void in_row(void *user, size_t at, const float *logits, int vocab) {
    (void)at, (void)logits, (void)vocab;
    try_all(user);
}

static void in_draft(void *user, int level, const float *logits, int vocab) {
    (void)level, (void)logits, (void)vocab;
    try_all(user);
}

static void in_round(void *user, const hunch_round_report *report) {
    (void)report;
    try_all(user);
}

static void test_calls_inside(void **state) {
    (void)state;
    static char self[600];
    hunch_draft_result out;
    hunch_request r;
    hunch_session *s = NULL;
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 2, HUNCH_PRECISION_NATIVE);
    snprintf(self, sizeof self, "model:%s,depth=8", data_path("models/stories260K/stories260K.f16.gguf"));
    caller v = {m, open_engine(m, self, 1, 64, HUNCH_KV_DEFAULT, 64, 128), 0};
    must(hunch_evaluate(v.e, prompt, N, in_row, &v, err));
    assert_int_equal(v.calls, N);
    must(hunch_draft(v.e, prompt, N, 4, -1, NULL, in_draft, &v, &out, err));
    hunch_free(out.node);
    assert_in_range(v.calls, N + 1, N + 4);
    const int before = v.calls;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = N;
    r.max_tokens = 8;
    r.on_round = in_round;
    r.on_round_user = r.on_logits_user = &v;
    r.on_logits = in_row;
    must(hunch_session_open(&s, v.e, &r, err));
    must(hunch_engine_run(v.e, err));
    hunch_session_close(&s);
    assert_true(v.calls > before + 8);
    must(hunch_draft(v.e, prompt, N, 4, -1, NULL, NULL, NULL, &out, err)); /* the engine is usable afterwards */
    hunch_free(out.node);
    hunch_engine_close(&v.e);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_end_of_context), cmocka_unit_test(test_calls_inside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
