/* SPDX-License-Identifier: Apache-2.0 */
/* smollm2.h - the real model of the equality tests. It is fetched by scripts/fetch-demo-model.sh, never shipped; a test
 * that cannot find it reports it and counts as skipped (exit code 77). Include after fixture.h. */
#ifndef HN_TEST_SMOLLM2_H
#define HN_TEST_SMOLLM2_H
#include "real_model.h"

/* $HUNCH_SMOLLM2, else the user's cache folder; NULL if it is not there. */
HELPER const char *smollm2_path(void) {
    static char path[600];
    return cached_model("HUNCH_SMOLLM2", "SmolLM2-135M-Instruct.Q4_1.gguf", "scripts/fetch-demo-model.sh", path);
}

static const char *const smollm2_prompts[] = {
    ("Summarise in one sentence: The town council met on Monday to discuss the new bridge. The bridge will cross the "
     "river north "
     "of the old mill. Work on the new bridge begins in May, and the old bridge closes in June."),
    "Rewrite this function so that the argument is called price: def total(cost):\n    tax = cost * 0.2\n    return "
    "cost + tax\n",
    "Why is the sky blue?", "Count from one to twenty in words."};
enum { N_SMOLLM2_PROMPTS = sizeof smollm2_prompts / sizeof *smollm2_prompts };

/* The prompt in the model's chat template, as tokens. */
HELPER size_t smollm2_tokens(const hunch_model *m, int prompt, hunch_token **ids) {
    char vars[2000], escaped[1600];
    char *text = NULL;
    size_t len = 0, n = 0, k = 0;
    for (const char *p = smollm2_prompts[prompt]; *p; p++) {
        if (*p == '\n') {
            escaped[k++] = '\\';
            escaped[k++] = 'n';
        } else
            escaped[k++] = *p;
    }
    escaped[k] = '\0';
    snprintf(vars, sizeof vars, "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}", escaped);
    must(hunch_chat_render(m, vars, NULL, &text, &len, err));
    must(hunch_tokenize(m, text, len, HUNCH_TEXT_PARSE_SPECIAL, ids, &n, err));
    hunch_free(text);
    return n;
}

typedef struct way {
    const char *draft;
    int parallel, chunk, threads;
    double temperature;
} way;

/* Plain answers of all prompts (one thread, one text, chunks of 64), then each way against them: tokens and logits. */
HELPER void smollm2_check(const char *path, const char *isa, const way *ways, int n_ways, int tokens) {
    for (int threads = 1; threads <= 2; threads++) {
        hunch_model *m = NULL;
        for (int t = 0; t < 2; t++) {
            answer want[N_SMOLLM2_PROMPTS] = {{0}};
            bool have = false;
            for (int w = 0; w < n_ways; w++) {
                const way *v = &ways[w];
                if (v->threads != threads || (v->temperature > 0) != (t == 1)) continue;
                if (!m) m = open_model(path, isa, threads, HUNCH_PRECISION_NATIVE);
                hunch_request r[8];
                hunch_token *ids[N_SMOLLM2_PROMPTS] = {0};
                answer got[8] = {{0}};
                for (int i = 0; i < N_SMOLLM2_PROMPTS; i++) {
                    hunch_request_defaults(&r[i], m);
                    r[i].n_prompt = smollm2_tokens(m, i, &ids[i]);
                    r[i].prompt = ids[i];
                    r[i].max_tokens = tokens;
                    r[i].ignore_eos = true;
                    r[i].sampling = (hunch_sampling){.temperature = v->temperature,
                                                     .top_k = v->temperature > 0 ? 50 : 0,
                                                     .top_p = 1,
                                                     .seed = 7 + (uint64_t)i};
                    r[i + N_SMOLLM2_PROMPTS] = r[i];
                }
                if (!have) {
                    hunch_model *one = threads == 1 ? m : open_model(path, isa, 1, HUNCH_PRECISION_NATIVE);
                    hunch_engine *e = open_engine(one, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 1024);
                    for (int i = 0; i < N_SMOLLM2_PROMPTS; i++) run_requests(e, &r[i], 1, true, &want[i]);
                    hunch_engine_close(&e);
                    if (one != m) hunch_model_close(&one);
                    have = true;
                }
                hunch_engine *e = open_engine(m, v->draft, v->parallel, v->chunk, HUNCH_KV_DEFAULT, 64, 1024);
                const int n = v->parallel > N_SMOLLM2_PROMPTS ? v->parallel : N_SMOLLM2_PROMPTS;
                for (int i = 0; i < n; i += v->parallel) run_requests(e, r + i, v->parallel, true, got + i);
                for (int i = 0; i < n; i++) {
                    char what[300];
                    snprintf(what, sizeof what,
                             "SmolLM2 at %s, %d threads, draft %s, %d together, chunk %d, temperature %g, prompt %d",
                             isa, threads, v->draft ? v->draft : "none", v->parallel, v->chunk, v->temperature, i);
                    assert_same(&want[i % N_SMOLLM2_PROMPTS], &got[i], what);
                    answer_free(&got[i]);
                }
                hunch_engine_close(&e);
                for (int i = 0; i < N_SMOLLM2_PROMPTS; i++) hunch_free(ids[i]);
            }
            for (int i = 0; i < N_SMOLLM2_PROMPTS; i++) answer_free(&want[i]);
        }
        if (m) hunch_model_close(&m);
    }
}
#endif
