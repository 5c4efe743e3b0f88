/* SPDX-License-Identifier: Apache-2.0 */
/* drafters_long_test.c - every drafter and mix on a real model: 64 real prompts, 200 tokens each, greedy and sampled, 1 to
 * 16 sequences at once, with shared prefixes, and with too few pages so that sessions are preempted. The texts equal
 * those of plain decoding. HUNCH_WAYS=a-b runs only some of the ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "smollm2.h"
#include "preempt_for_tests.h"

enum { PROMPTS = 64, TOKENS = 200, CONTEXT = 1024 };
static hunch_model *model;
static hunch_token *prompt[PROMPTS], *guess[PROMPTS];
static size_t length[PROMPTS], guess_length[PROMPTS];
static answer plain[2][PROMPTS]; /* by temperature */

/* All prompts begin alike (a system message), so that later ones start after shared pages. */
static int read_prompts(void) {
    FILE *f = fopen(data_path("prompts/spec64.jsonl"), "r");
    char line[4000];
    int n = 0;
    assert_non_null(f);
    for (; n < PROMPTS && fgets(line, sizeof line, f); n++) {
        char *text = NULL;
        size_t len = 0;
        json_t *row = json_loads(line, 0, NULL),
               *vars = json_pack("{s:[{s:s,s:s},{s:s,s:O}]}", "messages", "role", "system", "content",
                                 "You are a careful assistant. Answer in plain words, keep to what was asked, and say so "
                                 "when you do not know something. Do not repeat the question before you answer it. When a "
                                 "list is asked for, give a list, and otherwise write whole sentences. Numbers are written "
                                 "as digits, dates with the year first, and names as they stand in the question. If code is "
                                 "asked for, give the code first and at most three sentences about it afterwards.",
                                 "role", "user", "content", json_object_get(row, "prompt"));
        char *json = json_dumps(vars, 0);
        must(hunch_chat_render(model, json, NULL, &text, &len, err));
        must(hunch_tokenize(model, text, len, HUNCH_TEXT_PARSE_SPECIAL, &prompt[n], &length[n], err));
        hunch_free(text);
        free(json);
        json_decref(vars);
        json_decref(row);
    }
    fclose(f);
    return n;
}

static hunch_request request(int i, bool sampled) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt[i];
    r.n_prompt = length[i];
    r.max_tokens = TOKENS;
    r.prediction = guess[i];
    r.n_prediction = guess_length[i];
    r.sampling = (hunch_sampling){.temperature = sampled ? 0.7 : 0, .top_p = sampled ? 0.95 : 1, .seed = 100 + (uint64_t)i};
    if (sampled && i % 4 == 0) r.sampling.repetition_penalty = 1.1;
    if (sampled && i % 4 == 1) r.sampling.min_p = 0.05;
    if (sampled && i % 4 == 2) r.sampling.presence_penalty = 0.5;
    return r;
}

static int setup(void **state) {
    (void)state;
    model = open_model(smollm2_path(), "best", 2, HUNCH_PRECISION_NATIVE);
    if (read_prompts() != PROMPTS) return -1;
    for (int t = 0; t < 2; t++) {
        hunch_engine *e = open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, CONTEXT);
        for (int i = 0; i < PROMPTS; i++) {
            const hunch_request r = request(i, t);
            hunch_engine_forget(e);
            run_requests(e, &r, 1, false, &plain[t][i]);
        }
        hunch_engine_close(&e);
        fprintf(stderr, "plain answers at temperature %g are there\n", t ? 0.7 : 0.0);
    }
    for (int i = 0; i < PROMPTS; i++) { /* every seventh token of the expected text is another one */
        guess[i] = calloc(TOKENS, sizeof *guess[i]);
        guess_length[i] = plain[0][i].n;
        for (size_t k = 0; k < plain[0][i].n; k++) guess[i][k] = k % 7 == 6 ? 100 : plain[0][i].token[k];
    }
    return 0;
}

static void check_way(int number, const char *draft, bool sampled, int parallel, int pool_rows) {
    answer got[PROMPTS] = {{0}};
    hunch_engine_options o;
    char what[300];
    uint64_t restored = 0, preempted = 0, rounds = 0, tokens = 0;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = CONTEXT;
    o.pool_rows = pool_rows;
    hunch_engine *e = open_engine_with(model, draft, o);
    hunch_request r[PROMPTS];
    for (int i = 0; i < PROMPTS; i++) r[i] = request(i, sampled);
    if (pool_rows) run_preempted_requests(e, r, PROMPTS, got);
    else run_requests(e, r, PROMPTS, false, got);
    for (int i = 0; i < PROMPTS; i++) {
        snprintf(what, sizeof what, "way %d: draft %s, %s, %d at once, %d rows, prompt %d", number, draft,
                 sampled ? "sampled" : "greedy", parallel, pool_rows, i);
        assert_same(&plain[sampled][i], &got[i], what);
        assert_string_equal(plain[sampled][i].text, got[i].text);
        restored += got[i].restored;
        preempted += got[i].preempted;
        rounds += got[i].rounds;
        tokens += got[i].n - 1;
        answer_free(&got[i]);
    }
    hunch_engine_close(&e);
    assert_true(restored > 0);
    assert_true(pool_rows == 0 || preempted > 0);
    fprintf(stderr, "way %d: %s, %s, %d at once, %d rows: same; tau %.2f, %d rows restored, %d preemptions\n", number, draft,
            sampled ? "sampled" : "greedy", parallel, pool_rows, (double)tokens / (double)rounds, (int)restored,
            (int)preempted);
}

static void test_all_ways(void **state) {
    (void)state;
    static char self[700], mix[900];
    snprintf(self, sizeof self, "model:%s,precision=f32,depth=3", smollm2_path());
    snprintf(mix, sizeof mix, "%s+ngram+suffix", self);
    const struct {
        const char *draft;
        int parallel, pool_rows;
    } ways[] = {{"ngram", 1, 0},
                {"ngram,form=pld", 16, 0},
                {"ngram,form=hf", 16, CONTEXT},
                {"ngram,form=longest,min=2,max=5", 4, 0},
                {"ngram,form=simple,max=4", 3, 0},
                {"ngram,form=map-k,max=4", 16, 0},
                {"ngram,form=map-k4v,max=4", 5, 0},
                {"ngram,form=mod,max=4,min=2", 16, CONTEXT},
                {"cache", 2, 0},
                {"suffix", 6, 0},
                {"suffix,mode=tree", 16, CONTEXT},
                {"prediction", 7, 0},
                {"forced,accept=0.7,depth=6,tree=random", 4, 0},
                {self, 16, CONTEXT},
                {mix, 16, 0},
                {"recycle", 16, 0},
                {"recycle,tree=paper", 5, CONTEXT},
                {"lookahead", 1, 0},
                {"lookahead,window=8,ngram=5,guess=7", 3, CONTEXT},
                {"ngram+cache+suffix+prediction", 16, CONTEXT},
                {"auto", 1, 0},
                {"auto", 16, CONTEXT}};
    int from = 0, to = (int)(sizeof ways / sizeof *ways) - 1;
    const char *some = getenv("HUNCH_WAYS");
    if (some) assert_int_equal(sscanf(some, "%d-%d", &from, &to), 2);
    for (int w = from; w <= to; w++)
        for (int t = 0; t < 2; t++) check_way(w, ways[w].draft, t, ways[w].parallel, ways[w].pool_rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_ways)};
    return smollm2_path() ? cmocka_run_group_tests(tests, setup, NULL) : SKIPPED;
}
