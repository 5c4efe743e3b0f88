/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_failures_test.c - passes of drafters that fail: for want of pages there are fewer drafts, and nothing is said; for any other
 * reason the drafter is lost for the texts of that pass, which is noted with the reason. The texts are those of plain decoding, and later
 * ones are drafted for again.
 *
 * The calls are intercepted by the linker: --wrap=hn_pass_run_with, --wrap=hn_cache_reserve. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/session.h"
#include "fixture.h"
#include "random_head.h"
#include "random_steps.h"

enum { TEXTS = 2, TOKENS = 20, EACH = 9 };
#define STORIES "models/stories260K/stories260K.f16.gguf"

/* ---- injected failures ------------------------------------------------------------------------------------------------ */

static const hn_runner *target_runner, *plain_runner; /* whose passes do not fail; of the engine that makes plain texts */
static int calls, fails_at = -1, target_reserves, drafter_passes;
static hunch_status fails_with;

static bool only_in_feed, in_feed;

static bool inject(hunch_error *err) {
    if ((only_in_feed && !in_feed) || calls++ != fails_at) return false;
    (void)hn_fail(err, fails_with, "injected");
    return true;
}

hunch_status __real_hn_pass_run_with(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more,
                                     hunch_error *err);
hunch_status __wrap_hn_pass_run_with(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more,
                                     hunch_error *err);
hunch_status __wrap_hn_pass_run_with(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more,
                                     hunch_error *err) {
    drafter_passes += r != target_runner && r != plain_runner;
    if (r != target_runner && inject(err)) return fails_with;
    return __real_hn_pass_run_with(r, rows, n, cache_seq, n_seqs, more, err);
}

hunch_status __real_hn_cache_reserve(hn_cache *c, int seq, int model_id, int tentative, hunch_error *err);
hunch_status __wrap_hn_cache_reserve(hn_cache *c, int seq, int model_id, int tentative, hunch_error *err);
hunch_status __wrap_hn_cache_reserve(hn_cache *c, int seq, int model_id, int tentative, hunch_error *err) {
    if (model_id > 0 && inject(err)) return fails_with;
    target_reserves += model_id == 0;
    return __real_hn_cache_reserve(c, seq, model_id, tentative, err);
}

static int text_passes; /* of the target, for each text that was in one */

/* ---- texts ------------------------------------------------------------------------------------------------------------ */

static hunch_engine *engine_with(hunch_model *m, const char *draft) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = 96;
    o.page_rows = 16;
    o.parallel = TEXTS;
    hunch_engine *e = open_engine_with(m, draft, o);
    target_runner = e->runner;
    return e;
}

/* Both texts in the same rounds, in which `failed` counts the failures of the target's passes. Returns the drafts. */
static uint64_t decode(hunch_engine *e, hunch_token out[TEXTS][TOKENS], int *failed) {
    static const hunch_token prompt[TEXTS][18] = {{1, 403, 407, 261, 378, 403, 407, 261, 9, 10, 11, 403, 407, 261, 378, 403, 407, 261},
                                                  {1, 300, 301, 302, 303, 300, 301, 302, 303, 17, 18, 19, 20, 300, 301, 302, 9, 8}};
    hunch_session *s[TEXTS];
    hunch_error why = {0};
    uint64_t drafted = 0;
    for (int i = 0; i < TEXTS; i++) {
        hunch_request r;
        hunch_request_defaults(&r, e->model);
        r.prompt = prompt[i];
        r.n_prompt = 18;
        r.max_tokens = TOKENS;
        r.ignore_eos = true;
        r.sampling = (hunch_sampling){.top_p = 1};
        must(hunch_session_open(&s[i], e, &r, err));
    }
    for (*failed = 0; hunch_engine_running(e) > 0;)
        if (hunch_engine_round(e, &why) && ++*failed > TOKENS) fail_msg("%s", why.message);
    for (int i = 0; i < TEXTS; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        if (st.finish != HUNCH_FINISH_LENGTH) fail_msg("text %d ended by %d: %s", i, (int)st.finish, st.error.message);
        memcpy(out[i], st.tokens, sizeof out[i]);
        drafted += st.drafted;
        text_passes += (int)st.passes;
        hunch_session_close(&s[i]);
    }
    assert_true(hn_cache_valid(e->cache));
    return drafted;
}

static const char *note_with(const hunch_engine *e, const char *words) {
    for (int i = 0; hunch_engine_note(e, i); i++)
        if (strstr(hunch_engine_note(e, i), words)) return hunch_engine_note(e, i);
    return NULL;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void check_failure(hunch_model *m, const char *draft, int at, hunch_status with, hunch_token plain[TEXTS][TOKENS]) {
    hunch_token got[TEXTS][TOKENS];
    hunch_engine *e = engine_with(m, draft);
    int failed;
    calls = 0;
    fails_at = at;
    fails_with = with;
    decode(e, got, &failed);
    fails_at = -1;
    assert_int_equal(failed, 0);
    assert_true(calls > at);
    assert_memory_equal(got, plain, sizeof got);
    const char *note = note_with(e, "injected");
    if (!note != (with == HUNCH_NO_MEMORY)) fail_msg("%s: call %d failed with %d: noted \"%s\"", draft, at, (int)with, note ? note : "");
    if (decode(e, got, &failed) == 0) fail_msg("%s: call %d failed: later texts are not drafted for", draft, at);
    assert_memory_equal(got, plain, sizeof got);
    hunch_engine_close(&e);
}

static void check_drafter(hunch_model *m, const char *draft) {
    hunch_token plain[TEXTS][TOKENS], got[TEXTS][TOKENS];
    int failed;
    hunch_engine *e = engine_with(m, "none");
    decode(e, plain, &failed);
    hunch_engine_close(&e);
    e = engine_with(m, draft);
    calls = 0;
    assert_true(decode(e, got, &failed) > 0);
    const int all = calls, tries = light() ? 4 : EACH;
    hunch_engine_close(&e);
    assert_true(all > tries);
    for (int i = 0; i < tries; i++) {
        check_failure(m, draft, i * all / tries, HUNCH_FAILED, plain);
        check_failure(m, draft, i * all / tries, HUNCH_NO_MEMORY, plain);
    }
}

static const char *spec(const char *text, const char *path) {
    static char line[700];
    snprintf(line, sizeof line, text, path);
    return line;
}

static void test_drafters(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE);
    check_drafter(m, spec("model:%s,depth=3", data_path("models/stories260K/stories260K.f32.gguf")));
    check_drafter(m, spec("eagle:%s,depth=3", head_write_form(&STORIES_EAGLE, test_path("eagle"))));
    check_drafter(m, spec("eagle3:%s,tree=dynamic,topk=2,total=6,depth=3", head_write_form(&STORIES_EAGLE3, test_path("eagle3"))));
    check_drafter(m, spec("peagle:%s,depth=3", head_write_form(&STORIES_PEAGLE, test_path("peagle"))));
    check_drafter(m, spec("falcon:%s,depth=4", head_write_form(&STORIES_FALCON, test_path("falcon"))));
    check_drafter(m, spec("dflash:%s,depth=3", head_write_form(&STORIES_DFLASH, test_path("dflash"))));
    check_drafter(m, spec("dspark:%s,depth=3", head_write_form(&STORIES_DSPARK, test_path("dspark"))));
    check_drafter(m, spec("domino:%s,pool=90,depth=3", head_write_form(&STORIES_DOMINO, test_path("domino"))));
    check_drafter(m, spec("dflash2:%s,depth=3", head_write_form(&STORIES_DFLASH2, test_path("dflash2"))));
    check_drafter(m, spec("hydra:%s,depth=2", steps_write("hydra", test_path("hydra"))));
    hunch_model_close(&m);
    m = open_model(data_path("goldens/glm4_moe-3blocks"), "best", 1, HUNCH_PRECISION_NATIVE);
    check_drafter(m, "mtp,depth=4");
    hunch_model_close(&m);
}

/* A head that reads the output matrix of a mapped model checks its file around each pass: a check that fails there is noted, one around
 * the target's pass fails the round, and none of them changes a text. */
static void test_mapped(void **state) {
    (void)state;
    hunch_model *m = open_model_as(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE, true);
    const char *draft = spec("eagle:%s,depth=3", head_write_form(&STORIES_EAGLE, test_path("mapped")));
    hunch_token plain[TEXTS][TOKENS], got[TEXTS][TOKENS];
    int failed, noted = 0, rounds = 0;
    hunch_engine *e = engine_with(m, draft);
    hn_fault_arm(HN_FAULT_READ, INT64_MAX, false);
    decode(e, plain, &failed);
    const int checks = (int)hn_fault_count(HN_FAULT_READ), tries = light() ? 10 : 40;
    hn_fault_arm(HN_FAULT_READ, -1, false);
    hunch_engine_close(&e);
    for (int i = 0; i < tries; i++) {
        e = engine_with(m, draft);
        hn_fault_arm(HN_FAULT_READ, i * checks / tries, false);
        decode(e, got, &failed);
        hn_fault_arm(HN_FAULT_READ, -1, false);
        assert_memory_equal(got, plain, sizeof got);
        const bool note = note_with(e, "stories260K.f16.gguf");
        if (note == (failed > 0)) fail_msg("check %d failed: %d rounds, noted: %d", i * checks / tries, failed, note);
        noted += note;
        rounds += failed;
        hunch_engine_close(&e);
    }
    assert_true(noted > 0 && rounds > 0);
    hunch_model_close(&m);
}

static const hn_drafter_ops *inner;

static void mark_feed(hn_drafter *d, const hn_feed_row *rows, int n, const hn_features *f) {
    in_feed = true;
    inner->feed(d, rows, n, f);
    in_feed = false;
}

static hunch_session *open_text(hunch_engine *e, const hunch_token *prompt, size_t n, int tokens) {
    hunch_session *s = NULL;
    hunch_request r;
    hunch_request_defaults(&r, e->model);
    r.prompt = prompt;
    r.n_prompt = n;
    r.max_tokens = tokens;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    must(hunch_session_open(&s, e, &r, err));
    return s;
}

/* A long prompt fills the store of a head, which evaluates rows while it is fed: if that fails, that text has no drafts, and goes on; a
 * text that begins later has its drafts. */
static void test_feeds(void **state) {
    (void)state;
    enum { LONG = 400 };
    static hunch_token prompt[LONG];
    hunch_session_state st[2];
    hunch_model *m = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = 512;
    o.parallel = TEXTS;
    hunch_engine *e = open_engine_with(m, spec("eagle:%s,depth=3", head_write_form(&STORIES_EAGLE, test_path("fed"))), o);
    hn_drafter_ops ops = *(inner = e->drafter[0].ops);
    ops.feed = mark_feed;
    e->drafter[0].ops = &ops;
    target_runner = e->runner;
    for (int i = 0; i < LONG; i++) prompt[i] = i == 0 ? 1 : (i * 31) % 200 + 300;
    calls = 0;
    fails_at = 0;
    fails_with = HUNCH_FAILED;
    only_in_feed = true;
    hunch_session *s[2] = {open_text(e, prompt, LONG, TOKENS), NULL};
    while (hn_session_emitted(s[0]) < 2) must(hunch_engine_round(e, err));
    assert_true(calls > 0);
    s[1] = open_text(e, prompt + 200, 9, TOKENS);
    must(hunch_engine_run(e, err));
    only_in_feed = false;
    fails_at = -1;
    for (int i = 0; i < 2; i++) {
        hunch_session_get(s[i], &st[i]);
        assert_int_equal(st[i].finish, HUNCH_FINISH_LENGTH);
        assert_true((st[i].drafted > 0) == (i == 1));
        hunch_session_close(&s[i]);
    }
    assert_non_null(note_with(e, "injected"));
    assert_true(hn_cache_valid(e->cache));
    e->drafter[0].ops = inner;
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* Texts under one system message: those that are past it have nothing that a newcomer could share, so a head computes nothing for it; and
 * the pending rows of texts that end together are one pass. */
static void test_catching_up(void **state) {
    (void)state;
    enum { N = 6, SYSTEM = 40, EACH_PROMPT = 60 };
    static hunch_token prompt[N][EACH_PROMPT];
    hunch_model *m = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = 128;
    o.page_rows = 16;
    o.parallel = N;
    hunch_engine *e = open_engine_with(m, spec("eagle:%s,depth=3,force=1", head_write_form(&STORIES_EAGLE, test_path("late"))), o);
    hunch_session *s[N];
    target_runner = e->runner;
    plain_runner = e->plain->runner;
    fails_at = -1;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < EACH_PROMPT; k++) prompt[i][k] = k == 0 ? 1 : (k * 31 + (k < SYSTEM ? 0 : 7 * (i + 1) * k)) % 200 + 300;
    for (int i = 0; i + 1 < N; i++) s[i] = open_text(e, prompt[i], EACH_PROMPT, 40);
    while (hn_session_emitted(s[N - 2]) < 4) must(hunch_engine_round(e, err));
    drafter_passes = 0;
    s[N - 1] = open_text(e, prompt[N - 1], EACH_PROMPT, 40);
    assert_true(s[N - 1]->id >= 0 && s[N - 1]->stats.n_restored >= SYSTEM / 16 * 16 - 1);
    assert_int_equal(drafter_passes, 0);
    for (int i = 0; i < N; i++) hunch_session_close(&s[i]);
    hunch_engine_forget(e);
    for (int i = 0; i < N; i++) s[i] = open_text(e, prompt[i] + SYSTEM, 9, 1);
    drafter_passes = 0;
    must(hunch_engine_round(e, err)); /* one pass of all prompts, whose next tokens are all */
    assert_int_equal(hunch_engine_running(e), 0);
    assert_int_equal(drafter_passes, 1);
    for (int i = 0; i < N; i++) hunch_session_close(&s[i]);
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* The rows of a text in a pass of the target are reserved once: by the scheduler, which may preempt another text for them. */
static void test_reserved_once(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = engine_with(m, "ngram,min=1");
    hunch_token got[TEXTS][TOKENS];
    int failed;
    target_reserves = 0;
    text_passes = 0;
    decode(e, got, &failed);
    assert_true(text_passes > TEXTS);
    assert_int_equal(target_reserves, text_passes);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reserved_once), cmocka_unit_test(test_feeds),
                                       cmocka_unit_test(test_catching_up), cmocka_unit_test(test_drafters), cmocka_unit_test(test_mapped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
