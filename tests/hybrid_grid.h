/* SPDX-License-Identifier: Apache-2.0 */
/* hybrid_grid.h - for tests of models with gated delta nets: cells of a grid, drawn at random. A cell is a model, a level,
 * threads, mapped or not, drafters, temperature, texts at once, chunk (borders inside the convolution's window among them),
 * page size, and a small pool with few states, or not. Eight texts that share beginnings, then eight that
 * continue their answers: tokens and logits must be plain decoding's, bit for bit. Include after cmocka. */
#ifndef HN_TEST_HYBRID_GRID_H
#define HN_TEST_HYBRID_GRID_H
#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"

enum { GRID_TEXTS = 8, GRID_WAVES = 2, GRID_ROWS = 320, GRID_TOKENS = 20, GRID_MODELS = 4 };
static const char *const grid_models[GRID_MODELS] = {"goldens/qwen3_5-dense", "goldens/qwen3_next-moe", "goldens/qwen3_5_moe-fused",
                                                     "goldens/qwen3_next-odd"};

/* Plain decoding of the texts: one by one, one thread. */
typedef struct grid_plain {
    hunch_token prompt[GRID_WAVES][GRID_TEXTS][GRID_ROWS];
    size_t n_prompt[GRID_WAVES][GRID_TEXTS];
    answer answer[GRID_WAVES][GRID_TEXTS];
    double temperature;
} grid_plain;

typedef struct grid_sums {
    uint64_t accepted, restored, preempted;
} grid_sums;

FIXTURE int grid_below(uint64_t *rng, int n) {
    return (int)(hn_splitmix(rng) % (uint64_t)n);
}

FIXTURE hunch_request grid_request(const grid_plain *p, const hunch_model *m, int wave, int text) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = p->prompt[wave][text];
    r.n_prompt = p->n_prompt[wave][text];
    r.max_tokens = GRID_TOKENS;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = p->temperature, .top_p = 1, .seed = 40 + (uint64_t)text};
    return r;
}

/* Texts of the first wave have one of two prefixes, and repeat a phrase; those of the second continue an answer. */
FIXTURE void grid_make_prompts(grid_plain *p, int wave, uint64_t *rng) {
    static const int length[GRID_TEXTS] = {1, 3, 166, 230, 7, 229, 164, 197};
    for (int t = 0; t < GRID_TEXTS; t++) {
        size_t n = 0;
        hunch_token *to = p->prompt[wave][t];
        if (wave > 0) {
            memcpy(to, p->prompt[0][t], p->n_prompt[0][t] * sizeof *to);
            n = p->n_prompt[0][t];
            memcpy(to + n, p->answer[0][t].token, p->answer[0][t].n * sizeof *to);
            n += p->answer[0][t].n;
        }
        uint64_t same = 3 + (uint64_t)t % 2; /* of the beginning */
        for (int i = 0; wave == 0 && i < length[t] && i < 70; i++)
            to[n++] = i >= 12 && grid_below(&same, 3) ? to[i - 12] : grid_below(&same, 512);
        while (n < (size_t)length[t] || (wave > 0 && n % 7)) to[n++] = grid_below(rng, 512);
        p->n_prompt[wave][t] = n;
    }
}

FIXTURE grid_plain *grid_open(const char *model, const char *isa, double temperature) {
    grid_plain *p = calloc(1, sizeof *p);
    uint64_t rng = 77;
    hunch_model *m = open_model(data_path(model), isa, 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_BF16, 64, GRID_ROWS);
    p->temperature = temperature;
    for (int wave = 0; wave < GRID_WAVES; wave++) {
        grid_make_prompts(p, wave, &rng);
        for (int t = 0; t < GRID_TEXTS; t++) {
            const hunch_request r = grid_request(p, m, wave, t);
            hunch_engine_forget(e);
            run_requests(e, &r, 1, true, &p->answer[wave][t]);
        }
    }
    hunch_engine_close(&e);
    hunch_model_close(&m);
    return p;
}

FIXTURE void grid_free(grid_plain *p) {
    for (int i = 0; i < GRID_WAVES * GRID_TEXTS; i++) answer_free(&p->answer[i / GRID_TEXTS][i % GRID_TEXTS]);
    free(p);
}

/* Runs a cell's texts, some at once. */
FIXTURE void grid_run(const grid_plain *p, hunch_model *m, hunch_engine *e, int together, const char *what, grid_sums *sums) {
    for (int wave = 0; wave < GRID_WAVES; wave++)
        for (int t = 0; t < GRID_TEXTS; t += together) {
            const int n = GRID_TEXTS - t < together ? GRID_TEXTS - t : together;
            hunch_request r[GRID_TEXTS];
            answer got[GRID_TEXTS] = {{0}};
            for (int i = 0; i < n; i++) r[i] = grid_request(p, m, wave, t + i);
            run_requests(e, r, n, true, got);
            for (int i = 0; i < n; i++) {
                assert_same(&p->answer[wave][t + i], &got[i], what);
                sums->accepted += got[i].accepted;
                sums->restored += got[i].restored;
                sums->preempted += got[i].preempted;
                answer_free(&got[i]);
            }
            assert_true(hn_cache_valid(e->cache));
        }
}

/* Of models; path NULL: 0. */
FIXTURE uint64_t grid_state_bytes(const char *path) {
    hunch_model_info info = {0};
    if (!path) return 0;
    hunch_model *m = open_model(path, "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_model_get_info(m, &info);
    hunch_model_close(&m);
    return info.state_bytes;
}

FIXTURE void grid_cell(const char *model, const char *isa, const grid_plain *p, uint64_t *rng, grid_sums *sums) {
    static const char *const drafts[] = {"ngram", "suffix", "suffix,mode=tree", "mtp,depth=4", "mtp,depth=6,force=0.7",
                                         "mtp,depth=4,tree=dynamic,topk=3,total=10", "forced,accept=0.6,depth=7,seed=1",
                                         "forced,accept=0.7,depth=6,tree=random,seed=2", "forced,accept=0.8,depth=4,width=3,seed=3",
                                         "mtp,depth=3+suffix,mode=tree", "auto"};
    enum { N_DRAFTS = sizeof drafts / sizeof *drafts };
    static const int chunks[] = {1, 2, 3, 5, 23, 64}, at_once[] = {1, 3, 8};
    const int threads = 1 + grid_below(rng, 3), chunk = chunks[grid_below(rng, 6)], together = at_once[grid_below(rng, 3)];
    const bool mapped = grid_below(rng, 4) == 0, small = grid_below(rng, 2) == 0;
    char own[600], what[900];
    const int d = grid_below(rng, N_DRAFTS + 1);
    const char *other = data_path(grid_models[grid_below(rng, GRID_MODELS)]), *draft = d < N_DRAFTS ? drafts[d] : own;
    snprintf(own, sizeof own, "model:%s,depth=3", other);
    const uint64_t states = grid_state_bytes(data_path(model)) + grid_state_bytes(d < N_DRAFTS ? NULL : other);
    hunch_engine_options o;
    hunch_model *m = open_model_as(data_path(model), isa, threads, HUNCH_PRECISION_NATIVE, mapped);
    hunch_engine_options_defaults(&o);
    o.parallel = together;
    o.chunk = chunk;
    o.kv = HUNCH_KV_BF16;
    o.page_rows = 16 << grid_below(rng, 3);
    o.context = GRID_ROWS;
    o.pool_rows = small ? GRID_ROWS : 0;
    o.state_bytes = small ? states * (1 + (uint64_t)grid_below(rng, 3)) : 0;
    snprintf(what, sizeof what, "%s at %s, %d threads%s, %s, temperature %g, %d at once, chunk %d, pages of %d%s", model, isa, threads,
             mapped ? ", mapped" : "", draft, p->temperature, together, chunk, o.page_rows, small ? ", a small pool" : "");
    hunch_engine *e = open_engine_with(m, draft, o);
    grid_run(p, m, e, together, what, sums);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* So many cells of a model at a level and temperature. Each has a seed of its own, which does not depend on the others. */
FIXTURE void grid_check_at(const char *model, const char *isa, bool hot, int cells, uint64_t seed, grid_sums *sums) {
    grid_plain *p = grid_open(model, isa, hot ? 0.8 : 0);
    for (int i = 0; i < cells; i++) {
        uint64_t rng = seed * 1000 + (uint64_t)(2 * i + hot);
        grid_cell(model, isa, p, &rng, sums);
    }
    grid_free(p);
}

/* So many cells at each level of the machine and temperature, of one model. */
FIXTURE grid_sums grid_check(const char *model, int cells, bool best_only, uint64_t seed) {
    const char *isa[HN_ISA_COUNT];
    grid_sums sums = {0};
    const int n = levels(isa);
    for (int l = best_only ? n - 1 : 0; l < n; l++)
        for (int hot = 0; hot < 2; hot++) grid_check_at(model, isa[l], hot, cells, seed * 10 + (uint64_t)l, &sums);
    print_message("%s: %d drafts accepted, %d rows restored, %d places lost\n", model, (int)sums.accepted, (int)sums.restored,
                  (int)sums.preempted);
    return sums;
}
#endif
