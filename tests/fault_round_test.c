/* SPDX-License-Identifier: Apache-2.0 */
/* fault_round_test.c - every allocation of sessions and of their rounds fails, once and from then on, on one engine that
 * continues: a session that fails reports it and ends alone; every other session gives its usual text, and so do later
 * ones. Loads and the calls outside rounds: fault_load_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session.h"
#include "faults.h"
#include "random_head.h"
#include "random_steps.h"

enum { SESSIONS = 4, TOKENS = 24, CONTEXT = 96, MOST_ROUNDS = 2000, BROKEN_ROUNDS = 300, MANY = 16 };
#define STORIES "models/stories260K/stories260K.f32.gguf"

static hunch_model *model;
static char self_draft[600], tree_head[600], one_head[600], two_heads[1300], file_head[600], few_tokens[2][1300], masks[600],
            other_two[1300], steps_two[1300], steps_pair[1300], steps_head[N_STEPS_KINDS][600], blocks[1300], block[1300], parts[1300];

static int setup(void **state) {
    faults_setup(state);
    model = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE); /* what fails is not in passes */
    snprintf(self_draft, sizeof self_draft, "model:%s,depth=3", data_path("models/stories260K/stories260K.f16.gguf"));
    snprintf(tree_head, sizeof tree_head, "eagle3:%s,tree=eagle_mc_sim_7b_63", head_write_form(&STORIES_EAGLE3, test_path("three")));
    snprintf(one_head, sizeof one_head, "eagle:%s,depth=2", head_write_form(&STORIES_EAGLE, test_path("one")));
    snprintf(masks, sizeof masks, "peagle:%s,tree=eagle_mc_sim_7b_63", head_write_form(&STORIES_PEAGLE, test_path("masks")));
    snprintf(other_two, sizeof other_two, "mtp:%s,depth=2+peagle:%s,depth=3", head_write_form(&STORIES_MTP, test_path("mtp")),
             test_path("masks"));
    snprintf(blocks, sizeof blocks, "dflash:%s,depth=3+dspark:%s,depth=3", head_write_form(&STORIES_DFLASH, test_path("dflash")),
             head_write_form(&STORIES_DSPARK, test_path("dspark")));
    snprintf(block, sizeof block, "dspark:%s,depth=3", test_path("dspark"));
    snprintf(parts, sizeof parts, "dart:%s,tree=pruned,total=5+falcon:%s,depth=4", head_write_form(&STORIES_DART, test_path("dart")),
             head_write_form(&STORIES_FALCON, test_path("falcon")));
    snprintf(file_head, sizeof file_head, "%s,depth=3", test_path("clusters.gguf")); /* its kind is found, too */
    must(hunch_convert(head_write_form(&STORIES_CLUSTERS, test_path("clusters")), test_path("clusters.gguf"), NULL, err));
    snprintf(two_heads, sizeof two_heads, "%s+eagle3:%s,tree=dynamic,topk=2,total=4,depth=2", one_head, test_path("three"));
    test_file_write(test_path("rows.jsonl"), "{\"text\": \"Once upon a time\"}\n", 29);
    test_file_write(test_path("ids.json"), "[261, 403, 407, 9, 5, 378]", 26);
    snprintf(few_tokens[0], sizeof few_tokens[0], "eagle:%s,depth=3,vocab=100,texts=%s", test_path("one"), test_path("rows.jsonl"));
    snprintf(few_tokens[1], sizeof few_tokens[1], "eagle:%s,depth=3,vocab=9,ids=%s", test_path("one"), test_path("ids.json"));
    for (int i = 0; i < N_STEPS_KINDS; i++)
        snprintf(steps_head[i], sizeof steps_head[i], "%s:%s,tree=dynamic,topk=2,total=4", steps_kinds[i].kind,
                 steps_write(steps_kinds[i].kind, test_path(steps_kinds[i].kind)));
    snprintf(steps_two, sizeof steps_two, "medusa:%s+hydra:%s,tree=dynamic,topk=2,total=4", test_path("medusa"), test_path("hydra"));
    snprintf(steps_pair, sizeof steps_pair, "mlp:%s,depth=2+meta-mtp:%s,vocab=9,ids=%s", test_path("mlp"), test_path("meta-mtp"),
             test_path("ids.json"));
    return 0;
}

static int teardown(void **state) {
    hunch_model_close(&model);
    return faults_teardown(state);
}

typedef struct scene {
    const char *name, *draft; /* joined by + */
    hunch_verify verify;
    int parallel, pool_rows; /* few: sessions are preempted */
    hunch_sampling sampling;
    bool rich; /* stop strings, log-probabilities */
} scene;

/* Prompts that share their first page; the third's is the first's. */
static hunch_request request_of(const scene *s, int i) {
    static hunch_token prompt[SESSIONS][40], prediction[] = {403, 407, 261, 378, 403, 407};
    static const char *const stops[] = {"zzz zzz", "qqqqqqq"};
    static const hunch_bias bias[] = {{7, -1.5}, {9, 0.5}};
    hunch_request r;
    hunch_request_defaults(&r, model);
    for (int k = 0; k < 40; k++) prompt[i][k] = k == 0 ? 1 : (hunch_token)((k * 31 + (k < 18 ? 0 : i % 2 * 57)) % 9 + 300);
    r.prompt = prompt[i];
    r.n_prompt = (size_t)(20 + 5 * (i % 2));
    r.max_tokens = TOKENS;
    r.ignore_eos = true;
    r.sampling = s->sampling;
    r.sampling.seed = (uint64_t)i / 2;
    r.sampling.bias = s->rich ? bias : NULL;
    r.sampling.n_bias = s->rich ? 2 : 0;
    r.prediction = prediction;
    r.n_prediction = sizeof prediction / sizeof *prediction;
    r.logprobs = s->rich;
    r.top_logprobs = s->rich ? 5 : 0;
    r.stop = s->rich ? stops : NULL;
    r.n_stop = s->rich ? 2 : 0;
    return r;
}

static hunch_engine *engine_of(const scene *s) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = CONTEXT;
    o.page_rows = 16;
    o.parallel = s->parallel;
    o.pool_rows = s->pool_rows;
    o.verify = s->verify;
    return open_engine_with(model, s->draft, o);
}

typedef struct outcome {
    hunch_token token[TOKENS];
    float logprob[TOKENS];
    char text[400];
    size_t n;
    bool there; /* it was not refused, and did not fail */
} outcome;

static void outcome_of(const hunch_session *s, outcome *out) {
    hunch_session_state st;
    *out = (outcome){.there = true};
    hunch_session_get(s, &st);
    assert_true(st.n_tokens <= TOKENS);
    out->n = st.n_tokens;
    memcpy(out->token, st.tokens, st.n_tokens * sizeof *out->token);
    if (st.logprobs) memcpy(out->logprob, st.logprobs, st.n_tokens * sizeof *out->logprob);
    snprintf(out->text, sizeof out->text, "%.*s", (int)st.text_len, st.text);
}

/* Runs all sessions; the fault is already armed. Returns the number of failures. */
static int scene_run(const scene *s, hunch_engine *e, int64_t n, outcome out[SESSIONS]) {
    hunch_session *session[SESSIONS] = {0};
    hunch_error err = {0};
    int failures = 0, rounds = 0;
    for (int i = 0; i < SESSIONS; i++) {
        const hunch_request r = request_of(s, i);
        out[i].there = false;
        const hunch_status st = hunch_session_open(&session[i], e, &r, &err);
        if (!st) continue;
        assert_null(session[i]);
        faults_check_words(s->name, "allocation", n, st, HUNCH_NO_MEMORY, &err);
        failures++;
    }
    while (hunch_engine_running(e) > 0) {
        if (hunch_engine_round(e, &err)) fail_msg("%s: allocation %lld: a round failed: %s", s->name, (long long)n, err.message);
        if (++rounds == BROKEN_ROUNDS) hn_fault_arm(HN_FAULT_ALLOC, -1, false); /* memory is available again */
        if (rounds == MOST_ROUNDS) fail_msg("%s: allocation %lld: the engine does not come to an end", s->name, (long long)n);
    }
    for (int i = 0; i < SESSIONS; i++) {
        hunch_session_state st;
        if (!session[i]) continue;
        hunch_session_get(session[i], &st);
        if (st.finish == HUNCH_FINISH_FAILED) {
            faults_check_words(s->name, "allocation", n, st.error.status, HUNCH_NO_MEMORY, &st.error);
            failures++;
        } else {
            outcome_of(session[i], &out[i]);
        }
        hunch_session_close(&session[i]);
    }
    return failures;
}

static void scene_same(const scene *s, int64_t n, const outcome want[SESSIONS], const outcome got[SESSIONS]) {
    for (int i = 0; i < SESSIONS; i++)
        if (got[i].there && memcmp(&want[i], &got[i], sizeof *got))
            fail_msg("%s: allocation %lld failed: session %d: \"%s\" (%zu tokens), expected \"%s\" (%zu)", s->name, (long long)n,
                     i, got[i].text, got[i].n, want[i].text, want[i].n);
}

/* One engine serves the sessions with the failure, and then again without it. */
static void scene_break(const scene *s, bool sticky) {
    static outcome want[SESSIONS], got[SESSIONS];
    hunch_engine *e = engine_of(s);
    int64_t noticed = 0, tried = 0;
    const bool fixed = s->verify == HUNCH_VERIFY_DEFAULT; /* else only the distribution of the text is fixed */
    faults_sticky = sticky;
    hn_fault_arm(HN_FAULT_ALLOC, INT64_MAX, false);
    assert_int_equal(scene_run(s, e, -1, want), 0);
    const int64_t calls = (int64_t)hn_fault_count(HN_FAULT_ALLOC), most = faults_most(MANY);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    hunch_engine_close(&e);
    for (int64_t i = 0, n = 0; n < calls; i++, n = most && calls > most ? i * calls / most : i) {
        e = engine_of(s);
        hn_fault_arm(HN_FAULT_ALLOC, n, sticky);
        noticed += scene_run(s, e, n, got) > 0;
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (fixed) scene_same(s, n, want, got);
        assert_true(hn_cache_valid(e->cache));
        if (scene_run(s, e, n, got) != 0) fail_msg("%s: not the same afterwards", s->name);
        if (fixed) scene_same(s, n, want, got);
        assert_true(hn_cache_valid(e->cache));
        hunch_engine_close(&e);
        tried++;
    }
    fault_points += tried;
    if (noticed == 0) fail_msg("%s: of %lld failed allocations none was noticed", s->name, (long long)tried);
}

static void check(const scene *s) {
    scene_break(s, false);
    scene_break(s, true);
}

static const hunch_sampling greedy = {.top_p = 1}, warm = {.temperature = 0.8, .top_p = 0.95, .top_k = 40};

/* README: "An allocation or a read that fails is an error: nothing is lost, and the next try works." */
static void test_plain(void **state) {
    (void)state;
    check(&(scene){.name = "plain", .parallel = 2, .sampling = greedy});
    check(&(scene){.name = "plain, few pages", .parallel = 4, .pool_rows = CONTEXT, .sampling = greedy});
}

static void test_lookup(void **state) {
    (void)state;
    check(&(scene){.name = "lookup", .draft = "ngram+cache+suffix+prediction+recycle+lookahead,window=2", .parallel = 2,
                   .sampling = greedy});
    check(&(scene){.name = "lookup, few pages", .draft = "ngram,form=map-k4v+suffix,mode=tree", .parallel = 3,
                   .pool_rows = CONTEXT + 32, .sampling = warm});
}

static void test_model(void **state) {
    (void)state;
    check(&(scene){.name = "model", .draft = self_draft, .parallel = 2, .sampling = warm});
    check(&(scene){.name = "model, few pages", .draft = self_draft, .parallel = 3, .pool_rows = CONTEXT + 32, .sampling = greedy});
}

static void test_heads(void **state) {
    (void)state;
    check(&(scene){.name = "heads", .draft = two_heads, .parallel = 2, .sampling = greedy});
    check(&(scene){.name = "masks and a module", .draft = other_two, .parallel = 2, .sampling = warm});
    check(&(scene){.name = "medusa and hydra", .draft = steps_two, .parallel = 2, .sampling = greedy});
    check(&(scene){
        .name = "mlp and Meta's heads, few pages", .draft = steps_pair, .parallel = 3, .pool_rows = CONTEXT + 64, .sampling = warm});
    check(&(scene){.name = "blocks", .draft = blocks, .parallel = 2, .sampling = warm});
    check(&(scene){.name = "a block, few pages", .draft = block, .verify = HUNCH_VERIFY_RATIO, .parallel = 3, .pool_rows = CONTEXT + 128,
                   .sampling = warm});
    check(&(scene){.name = "a pruned tree and blocks of rows", .draft = parts, .parallel = 2, .sampling = greedy});
    check(&(scene){.name = "head, few pages", .draft = one_head, .verify = HUNCH_VERIFY_BLOCK, .parallel = 3,
                   .pool_rows = CONTEXT + 64, .sampling = warm});
}

static void test_forced(void **state) {
    (void)state;
    check(&(scene){.name = "forced", .draft = "forced,accept=0.7,depth=4,tree=random,seed=3", .parallel = 2, .sampling = greedy});
}

static void test_auto(void **state) {
    (void)state;
    check(&(scene){.name = "auto", .draft = "auto", .parallel = 2, .sampling = greedy});
}

static void test_sampling(void **state) {
    (void)state;
    const hunch_sampling all = {.temperature = 0.9, .top_p = 0.95, .top_k = 50, .min_p = 0.01, .top_n_sigma = 3, .typical_p = 0.98,
                                .xtc_probability = 0.3, .xtc_threshold = 0.1, .repetition_penalty = 1.1,
                                .frequency_penalty = 0.1, .presence_penalty = 0.1, .dry_multiplier = 0.8};
    check(&(scene){.name = "sampling", .draft = "ngram+suffix", .parallel = 2, .sampling = all, .rich = true});
    check(&(scene){.name = "plain sampling", .parallel = 2, .sampling = all, .rich = true});
}

static void test_rules(void **state) {
    (void)state;
    check(&(scene){.name = "ratio", .draft = self_draft, .verify = HUNCH_VERIFY_RATIO, .parallel = 2, .sampling = warm});
    check(&(scene){.name = "block", .draft = self_draft, .verify = HUNCH_VERIFY_BLOCK, .parallel = 2, .sampling = warm});
    check(&(scene){.name = "traversal", .draft = self_draft, .verify = HUNCH_VERIFY_TRAVERSAL, .parallel = 2, .sampling = warm});
}

/* ---- inspecting calls -------------------------------------------------------------------------------------------------- */

static void row_digest(void *user, size_t position, const float *logits, int vocab) {
    (void)position;
    digest_add(user, logits, (size_t)vocab * sizeof *logits);
}

/* On an engine of its own, opened with the failures. */
static hunch_status inspect_life(const void *what, uint64_t *digest, hunch_error *err) {
    static const hunch_token ids[] = {1, 403, 407, 261, 378, 403, 407, 261};
    const char *draft = what;
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_draft_result d = {0};
    double seconds[2];
    hunch_phase phases[HUNCH_PHASES];
    hunch_engine_options_defaults(&o);
    o.context = CONTEXT;
    o.drafts = &draft;
    o.n_drafts = 1;
    hunch_status st = hunch_engine_open(&e, model, &o, err);
    if (!st) st = hunch_draft(e, ids, 8, 2, 1, NULL, NULL, NULL, &d, err);
    for (int i = 0; !st && i < d.n; i++) digest_add(digest, &d.node[i].token, sizeof d.node[i].token);
    if (st) assert_null(d.node);
    hunch_free(d.node);
    if (!st) st = hunch_evaluate(e, ids, 8, row_digest, digest, err);
    if (!st) st = hunch_measure_pass(e, 3, 10, 2, seconds, err);
    if (!st) st = hunch_measure_prefill(e, 20, seconds, err);
    if (!st) st = hunch_measure_decode(e, 2, 10, seconds, err);
    if (!st) st = hunch_measure_commit(e, 4, 2, 10, 1, seconds, err);
    if (!st) st = hunch_measure_profile(e, 2, 10, phases, seconds, err);
    hunch_engine_close(&e);
    return st;
}

static void test_inspect(void **state) {
    (void)state;
    faults_break_both("inspect, model", inspect_life, self_draft, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 80, 2);
    faults_break_both("inspect, head", inspect_life, tree_head, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 80, 2);
    faults_break_both("inspect, masks", inspect_life, masks, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 80, 2);
    for (int i = 0; i < N_STEPS_KINDS; i++) {
        faults_break_both(steps_kinds[i].kind, inspect_life, steps_head[i], HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 40, 2);
        faults_break_both(steps_kinds[i].kind, inspect_life, steps_head[i], HN_FAULT_READ, HUNCH_FAILED, 20, 2);
    }
    for (char *each = blocks; each; each = strchr(each, '+') ? strchr(each, '+') + 1 : NULL) { /* one at a time */
        char one[600];
        snprintf(one, sizeof one, "%.*s", (int)strcspn(each, "+"), each);
        faults_break_both("inspect, block", inspect_life, one, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 60, 2);
        faults_break_both("inspect, block: reads", inspect_life, one, HN_FAULT_READ, HUNCH_FAILED, 20, 2);
    }
    faults_break_both("inspect, head: reads", inspect_life, tree_head, HN_FAULT_READ, HUNCH_FAILED, 0, 2);
    for (int i = 0; i < 2; i++) {
        faults_break_both("inspect, head of few tokens", inspect_life, few_tokens[i], HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 40, 2);
        faults_break_both("inspect, head of few tokens: reads", inspect_life, few_tokens[i], HN_FAULT_READ, HUNCH_FAILED, 20, 2);
    }
    faults_break_both("inspect, head of a GGUF", inspect_life, file_head, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 40, 2);
    faults_break_both("inspect, forced", inspect_life, "forced,accept=1,depth=4", HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 0, 2);
    faults_break_both("inspect, model: reads", inspect_life, self_draft, HN_FAULT_READ, HUNCH_FAILED, 60, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain),  cmocka_unit_test(test_lookup),
                                       cmocka_unit_test(test_model),  cmocka_unit_test(test_forced),  cmocka_unit_test(test_heads),
                                       cmocka_unit_test(test_auto),   cmocka_unit_test(test_sampling),
                                       cmocka_unit_test(test_rules),  cmocka_unit_test(test_inspect)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
