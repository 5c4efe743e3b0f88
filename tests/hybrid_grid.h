/* SPDX-License-Identifier: Apache-2.0 */
/* hybrid_grid.h - for tests of models with every kind of mixers, and with kinds that no model has (toy_mixers.h): cells of a grid. A cell
 * is a model, a level, threads, mapped or not, drafters, temperature, texts at once, chunk (borders inside the convolution's window among
 * them), page size, and a small pool with few states, whose texts lose their places, or not. Eight texts that share beginnings, then
 * eight that continue their answers: tokens and logits must be plain decoding's, bit for bit. Include after cmocka. */
#ifndef HN_TEST_HYBRID_GRID_H
#define HN_TEST_HYBRID_GRID_H
#include "base/random.h"
#include "engine/session.h"
#include "fixture.h"
#include "toy_mixers.h"

enum { GRID_TEXTS = 8, GRID_WAVES = 2, GRID_ROWS = 320, GRID_TOKENS = 24, GRID_HYBRIDS = 9 };
typedef struct grid_model {
    const char *path, *what;
    void (*change)(const hn_model *m, hn_layer_desc *l, int i); /* of its layers; NULL: none */
} grid_model;
static const grid_model grid_models[] = {{"goldens/qwen3_5-dense", "", NULL},
                                         {"goldens/qwen3_next-moe", "", NULL},
                                         {"goldens/qwen3_5_moe-fused", "", NULL},
                                         {"goldens/qwen3_next-odd", "", NULL},
                                         {"goldens/lfm2-conv", "", NULL},
                                         {"goldens/lfm2_moe-bias", "", NULL},
                                         {"goldens/mamba2-plain", "", NULL},
                                         {"goldens/granitemoehybrid-dense", "", NULL},
                                         {"goldens/granitemoehybrid-moe", "", NULL},
                                         {"goldens/llama-gqa", "", NULL},
                                         {"goldens/deepseek_v3-mtp2", "", NULL},
                                         {"goldens/llama-gqa", " with means beside attention", toy_beside},
                                         {"goldens/gemma3_text-local", " with means beside attention", toy_beside},
                                         {"goldens/llama-gqa", " of means alone", toy_alone},
                                         {"goldens/qwen3-dense", " of means and attention in turns", toy_turns},
                                         {"goldens/qwen3_5-dense", " of recurrent layers of two shapes alone", toy_shapes},
                                         {"goldens/qwen3_next-odd", " of two mixers each", toy_pairs}};
enum { GRID_MODELS = sizeof grid_models / sizeof *grid_models };

/* Kinds of mixers that plain texts ran through. */
static const hn_mixer_kind *grid_kinds[16];
static int grid_n_kinds;
HELPER bool grid_has_kind(const hn_mixer_kind *kind) {
    int i = 0;
    while (i < grid_n_kinds && grid_kinds[i] != kind) i++;
    return i < grid_n_kinds;
}

HELPER hunch_model *grid_open_model(const grid_model *g, const char *isa, int threads, bool mapped) {
    hunch_model *m = open_model_as(data_path(g->path), isa, threads, HUNCH_PRECISION_NATIVE, mapped);
    if (g->change) toy_change(&m->target, g->change);
    return m;
}

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

HELPER int grid_below(uint64_t *rng, int n) {
    return (int)(hn_splitmix(rng) % (uint64_t)n);
}

HELPER hunch_request grid_request(const grid_plain *p, const hunch_model *m, int wave, int text) {
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
HELPER void grid_make_prompts(grid_plain *p, int wave, int vocab, uint64_t *rng) {
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
            to[n++] = i >= 12 && grid_below(&same, 3) ? to[i - 12] : grid_below(&same, vocab);
        while (n < (size_t)length[t] || (wave > 0 && n % 7)) to[n++] = grid_below(rng, vocab);
        p->n_prompt[wave][t] = n;
    }
}

HELPER grid_plain *grid_open(const grid_model *model, const char *isa, double temperature) {
    grid_plain *p = calloc(1, sizeof *p);
    uint64_t rng = 77;
    hunch_model *m = grid_open_model(model, isa, 1, false);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_BF16, 64, GRID_ROWS);
    p->temperature = temperature;
    for (int i = 0; i < m->target.run.n; i++)
        for (int k = 0; k < hn_layer_mixers(&m->target.run.at[i]); k++)
            if (!grid_has_kind(m->target.run.at[i].mixer[k].kind)) grid_kinds[grid_n_kinds++] = m->target.run.at[i].mixer[k].kind;
    for (int wave = 0; wave < GRID_WAVES; wave++) {
        grid_make_prompts(p, wave, m->target.arch.vocab, &rng);
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

HELPER void grid_free(grid_plain *p) {
    for (int i = 0; i < GRID_WAVES * GRID_TEXTS; i++) answer_free(&p->answer[i / GRID_TEXTS][i % GRID_TEXTS]);
    free(p);
}

/* Sessions together; every few rounds one loses its place and waits for another, if `preempt`. */
HELPER void grid_requests(hunch_engine *e, hunch_request *r, int n, int preempt, answer *out, grid_sums *sums) {
    hunch_session *s[GRID_TEXTS];
    for (int i = 0; i < n; i++) {
        r[i].on_logits = keep_logits;
        r[i].on_logits_user = &out[i];
        must(hunch_session_open(&s[i], e, &r[i], err));
    }
    for (int round = 1; hunch_engine_running(e) > 0; round++) {
        hunch_session *loser = preempt && round % preempt == 0 ? s[round / preempt % n] : NULL;
        if (loser && loser->id >= 0 && loser->stats.preempted < 3) { /* it must get on */
            hn_session_release(loser);
            hn_queue_push(loser, true);
            loser->stats.preempted++;
        }
        must(hunch_engine_round(e, err));
    }
    for (int i = 0; i < n; i++) {
        keep_answer(&out[i], s[i]);
        hunch_session_close(&s[i]);
        sums->accepted += out[i].accepted;
        sums->restored += out[i].restored;
        sums->preempted += out[i].preempted;
    }
}

/* Runs a cell's texts, some at once. */
HELPER void grid_run(const grid_plain *p, hunch_model *m, hunch_engine *e, int together, bool preempt, const char *what, grid_sums *sums) {
    for (int wave = 0; wave < GRID_WAVES; wave++)
        for (int t = 0; t < GRID_TEXTS; t += together) {
            const int n = GRID_TEXTS - t < together ? GRID_TEXTS - t : together;
            hunch_request r[GRID_TEXTS];
            answer got[GRID_TEXTS] = {{0}};
            for (int i = 0; i < n; i++) r[i] = grid_request(p, m, wave, t + i);
            grid_requests(e, r, n, preempt ? 3 + t % 3 : 0, got, sums);
            for (int i = 0; i < n; i++) {
                assert_same(&p->answer[wave][t + i], &got[i], what);
                answer_free(&got[i]);
            }
            assert_true(hn_cache_valid(e->cache));
        }
}

HELPER uint64_t grid_state_bytes(const grid_model *g) {
    hunch_model_info info = {0};
    hunch_model *m = grid_open_model(g, "best", 1, false);
    hunch_model_get_info(m, &info);
    hunch_model_close(&m);
    return info.state_bytes;
}

HELPER int grid_vocab(const grid_model *g) {
    hn_source *src;
    hn_arch a;
    must(hn_source_open(&src, data_path(g->path), err));
    must(hn_arch_read(&a, src, err));
    hn_source_close(&src);
    const int vocab = a.vocab;
    hn_arch_fini(&a);
    return vocab;
}

static const char *const grid_drafts[] = {"ngram", "suffix", "suffix,mode=tree", "mtp,depth=4", "mtp,depth=6,force=0.7",
                                          "mtp,depth=4,tree=dynamic,topk=3,total=10", "forced,accept=0.6,depth=7,seed=1",
                                          "forced,accept=0.7,depth=6,tree=random,seed=2", "forced,accept=0.8,depth=4,width=3,seed=3",
                                          "mtp,depth=3+suffix,mode=tree", "auto", "model:%s,depth=3"};
static const int grid_chunks[] = {1, 2, 3, 5, 23, 64}, grid_together[] = {1, 3, 8};

/* What a cell chooses, and from how many: levels are those of the machine. OTHER: the draft model. STATES: room in a small pool. */
typedef enum grid_choice {
    GRID_MODEL, GRID_LEVEL, GRID_HOT, GRID_DRAFT, GRID_OTHER, GRID_THREADS, GRID_CHUNK, GRID_TOGETHER, GRID_MAPPED, GRID_SMALL, GRID_STATES,
    GRID_PAGES, GRID_CHOICES
} grid_choice;
static int grid_sizes[GRID_CHOICES] = {GRID_MODELS, 0, 2, sizeof grid_drafts / sizeof *grid_drafts, GRID_MODELS, 3, 6, 3, 2, 2, 3, 3};

typedef struct grid_cell {
    int of[GRID_CHOICES];
} grid_cell;

HELPER grid_cell grid_draw(uint64_t *rng) {
    grid_cell c;
    for (int i = 0; i < GRID_CHOICES; i++) c.of[i] = grid_below(rng, grid_sizes[i]);
    return c;
}

HELPER void grid_check(const grid_cell *c, const char *isa, const grid_plain *p, grid_sums *sums) {
    const int together = grid_together[c->of[GRID_TOGETHER]];
    const bool small = c->of[GRID_SMALL], own = strncmp(grid_drafts[c->of[GRID_DRAFT]], "model:", 6) == 0;
    const grid_model *model = &grid_models[c->of[GRID_MODEL]], *like = &grid_models[c->of[GRID_OTHER]],
                     other = {grid_vocab(like) == grid_vocab(model) ? like->path : model->path, "", NULL};
    char draft[600], what[900];
    snprintf(draft, sizeof draft, own ? "model:%s,depth=3" : "%s", own ? data_path(other.path) : grid_drafts[c->of[GRID_DRAFT]]);
    const uint64_t states = grid_state_bytes(model) + (own ? grid_state_bytes(&other) : 0);
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = together;
    o.chunk = grid_chunks[c->of[GRID_CHUNK]];
    o.kv = HUNCH_KV_BF16;
    o.page_rows = 16 << c->of[GRID_PAGES];
    o.context = GRID_ROWS;
    o.pool_rows = small ? GRID_ROWS : 0;
    o.state_bytes = small ? states * (1 + (uint64_t)c->of[GRID_STATES]) : 0;
    const int threads = 1 + c->of[GRID_THREADS];
    snprintf(what, sizeof what,
             "%s%s at %s, %d threads%s, %s, temperature %g, %d at once, chunk %d, pages of %d, %s%d states",
             model->path, model->what, isa, threads, c->of[GRID_MAPPED] ? ", mapped" : "", draft, p->temperature,
             together, o.chunk, o.page_rows, small ? "a small pool, " : "", 1 + c->of[GRID_STATES]);
    hunch_model *m = grid_open_model(model, isa, threads, c->of[GRID_MAPPED]);
    if (!m->target.has_own_head && !strncmp(draft, "mtp", 3)) snprintf(draft, sizeof draft, "suffix,mode=tree");
    hunch_engine *e = open_engine_with(m, draft, o);
    grid_run(p, m, e, together, small, what, sums);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* The cells of a model, level and temperature. */
HELPER void grid_check_all(const grid_cell *cell, int n, const char *isa, const grid_cell *like, grid_sums *sums) {
    grid_plain *p = NULL;
    for (int i = 0; i < n; i++) {
        const int *of = cell[i].of;
        if (memcmp(of, like->of, (GRID_HOT + 1) * sizeof *of)) continue;
        if (!p) p = grid_open(&grid_models[of[GRID_MODEL]], isa, of[GRID_HOT] ? 0.8 : 0);
        grid_check(&cell[i], isa, p, sums);
    }
    if (p) grid_free(p);
}
#endif
