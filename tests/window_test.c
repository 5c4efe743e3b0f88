/* SPDX-License-Identifier: Apache-2.0 */
/* window_test.c - layers with a window keep only its rows, without effect: every logit of chunks, of trees and of the
 * rows after them equals, bit for bit, that of a cache which keeps all rows and only masks them (contract C7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"
#include "goldens.h"
#include "ops/profile.h"

enum { ROWS = 700, SEQS = 3, WIDEST = 512 };
static int vocab; /* of the model in use: WIDEST at most */

static char families[MOST_GOLDENS][GOLDEN_NAME]; /* those with windows */
static int n_families;

static int find_families(void **state) {
    (void)state;
    n_families = golden_models(golden_windows, families);
    return 0;
}

static hunch_model *open_family(int f, int threads) {
    hunch_model *m = open_model(data_path(families[f]), "best", threads, HUNCH_PRECISION_NATIVE);
    vocab = m->target.arch.vocab;
    assert_true(vocab >= 100 && vocab <= WIDEST);
    return m;
}

/* A cache and a runner for some sequences of a model. */
typedef struct rig {
    hn_cache *cache;
    hn_runner *runner;
    int n_groups;
    hn_cache_group group[HN_MODEL_GROUPS];
} rig;

static rig rig_open(const hunch_model *m, int page_rows, bool keep_all) {
    rig r = {0};
    r.n_groups = hn_kv_groups(m->target.run, HN_BF16, r.group, NULL);
    r.group[0].page_rows = page_rows;
    for (int g = 0; g < r.n_groups && keep_all; g++) r.group[g].window = 0;
    must(hn_cache_open(&r.cache, m->target.backend, r.group, r.n_groups, SEQS, ROWS, 0, err));
    must(hn_runner_open(&r.runner, &m->target, r.cache, 0, ROWS, NULL, err));
    for (int s = 0; s < SEQS; s++) hn_cache_seq_begin(r.cache, s);
    return r;
}

static void rig_close(rig *r) {
    hn_runner_close(&r->runner);
    hn_cache_close(&r->cache);
}

/* One pass over a random tree of each sequence, or a chain, and the path that each keeps. */
typedef struct step {
    hn_row row[HN_MAX_ROWS];
    int n, first[SEQS + 1];
    int16_t path[SEQS][HN_MAX_ROWS];
    int kept[SEQS];
} step;

static int below(uint64_t *rng, int n) {
    return (int)(hn_splitmix(rng) % (uint64_t)n);
}

static step random_step(uint64_t *rng, const int *committed) {
    step t = {.n = 0};
    for (int s = 0; s < SEQS; s++) {
        const int room = ROWS - committed[s], most = HN_MAX_ROWS / SEQS, chain = below(rng, 3);
        const int n = 1 + below(rng, below(rng, 4) ? 4 : most);
        t.first[s] = t.n;
        for (int i = 0; i < n; i++) {
            const int parent = i == 0 ? -1 : chain ? t.n - 1 : t.first[s] + below(rng, i);
            t.row[t.n++] = (hn_row){.token = below(rng, vocab), .seq = (int16_t)s, .parent = (int16_t)parent, .logits = true};
        }
        int16_t up[HN_MAX_ROWS];
        int depth = 0;
        for (int i = t.first[s] + below(rng, n); i >= 0; i = t.row[i].parent) up[depth++] = (int16_t)(i - t.first[s]);
        for (int i = 0; i < depth; i++) t.path[s][i] = up[depth - 1 - i];
        t.kept[s] = depth < room ? depth : room;
    }
    t.first[SEQS] = t.n;
    return t;
}

static void run_step(rig *r, const step *t, float *logits) {
    static const int seqs[SEQS] = {0, 1, 2};
    must(hn_pass_run(r->runner, t->row, t->n, seqs, SEQS, err));
    for (int i = 0; i < t->n; i++)
        memcpy(logits + WIDEST * i, hn_pass_logits(r->runner, i), (size_t)vocab * sizeof *logits);
    for (int s = 0; s < SEQS; s++) hn_cache_commit(r->cache, s, 0, t->path[s], t->kept[s]);
}

/* Pages of a sequence's tables. */
static int pages_held(const rig *r, int seq) {
    int held = 0;
    for (int g = 0, n; g < r->n_groups; g++) {
        const int32_t *page = hn_cache_pages(r->cache, seq, g, &n);
        for (int i = 0; i < n; i++) held += page[i] != HN_NO_PAGE;
    }
    return held;
}

static void check_trees(const hunch_model *m, int page_rows, uint64_t seed) {
    static float want[HN_MAX_ROWS * WIDEST], got[HN_MAX_ROWS * WIDEST];
    rig all = rig_open(m, 64, true), r = rig_open(m, page_rows, false);
    int committed[SEQS] = {0}, steps = 0;
    for (bool room = true; room; steps++) {
        const step t = random_step(&seed, committed);
        run_step(&all, &t, want);
        run_step(&r, &t, got);
        for (int i = 0; i < t.n; i++)
            if (memcmp(want + WIDEST * i, got + WIDEST * i, (size_t)vocab * sizeof *want))
                fail_msg("%s, pages of %d: step %d, row %d behind %d rows", m->target.arch.name, page_rows, steps, i,
                         committed[t.row[i].seq]);
        for (int s = 0; s < SEQS; s++) {
            committed[s] += t.kept[s];
            room &= committed[s] < ROWS;
            assert_true(pages_held(&r, s) <= hn_cache_pages_for(r.cache, committed[s]));
        }
        assert_true(hn_cache_valid(r.cache));
    }
    assert_true(steps > 50);
    rig_close(&all);
    rig_close(&r);
}

static void test_trees(void **state) {
    (void)state;
    for (int f = 0; f < n_families; f++) {
        hunch_model *m = open_family(f, 2);
        for (int page_rows = light() && f % 2 ? 32 : 16; page_rows <= (light() ? 16 << f % 2 : 256); page_rows *= 2)
            check_trees(m, page_rows, (uint64_t)(page_rows + f));
        hunch_model_close(&m);
    }
}

/* ---- whole texts ------------------------------------------------------------------------------------------------------ */

typedef struct kept_rows {
    float *logits; /* [n][vocab] */
    size_t rows;
} kept_rows;

static void keep_row(void *user, size_t position, const float *logits, int width) {
    kept_rows *k = user;
    assert_int_equal(position, k->rows);
    assert_int_equal(width, vocab);
    memcpy(k->logits + (size_t)width * k->rows++, logits, (size_t)width * sizeof *logits);
}

/* The logits of a text with all rows kept. */
static void masked_logits(const hunch_model *m, const hunch_token *text, int n, float *logits) {
    rig r = rig_open(m, 64, true);
    hn_row row[HN_MAX_ROWS];
    const int seq = 0;
    for (int at = 0, k; at < n; at += k) {
        k = n - at < HN_MAX_ROWS ? n - at : HN_MAX_ROWS;
        for (int i = 0; i < k; i++) row[i] = (hn_row){.token = text[at + i], .parent = (int16_t)(i - 1), .logits = true};
        must(hn_pass_run(r.runner, row, k, &seq, 1, err));
        for (int i = 0; i < k; i++)
            memcpy(logits + (size_t)(at + i) * (size_t)vocab, hn_pass_logits(r.runner, i),
                   (size_t)vocab * sizeof *logits);
        hn_cache_commit(r.cache, seq, 0, NULL, k);
    }
    rig_close(&r);
}

/* The logits of a text do not depend on how it is cut, nor on pages. */
/* README: "A row's logits do not depend on the other rows of a pass, on threads, chunks or pages." */
static void test_chunks(void **state) {
    (void)state;
    static const int chunks[] = {64, 1, 7, 63}, pages[] = {16, 64};
    const size_t n = light() ? 300 : ROWS;
    hunch_token *text = malloc(n * sizeof *text);
    kept_rows got = {malloc(n * WIDEST * sizeof(float)), 0};
    float *want = malloc(n * WIDEST * sizeof *want);
    uint64_t rng = 11;
    for (size_t i = 0; i < n; i++) text[i] = below(&rng, 100);
    for (int f = 0; f < n_families; f++) {
        hunch_model *m = open_family(f, 2);
        masked_logits(m, text, (int)n, want);
        for (int c = 0; c < 4; c++)
            for (int p = 0; p < 2; p++) {
                if (light() && (c + p + f) % 2) continue;
                hunch_engine *e = open_engine(m, NULL, 1, chunks[c], HUNCH_KV_DEFAULT, pages[p], ROWS);
                got.rows = 0;
                must(hunch_evaluate(e, text, n, keep_row, &got, err));
                assert_int_equal(got.rows, n);
                if (memcmp(want, got.logits, n * (size_t)vocab * sizeof(float)))
                    fail_msg("%s: chunks of %d, pages of %d", families[f], chunks[c], pages[p]);
                hunch_engine_close(&e);
            }
        hunch_model_close(&m);
    }
    free(text);
    free(want);
    free(got.logits);
}

/* Whether its texts keep keys and values alone. */
static bool attends_alone(const hunch_model *m) {
    bool all = true;
    for (int i = 0; i < m->target.arch.layers; i++) all &= hn_layer_attends(&m->target.arch.layer[i]);
    return all;
}

/* A context of thousands needs no more memory than one of hundreds in a model with only windows. */
static void test_memory(void **state) {
    (void)state;
    int windows_only = 0;
    for (int f = 0; f < n_families; f++) {
        size_t bytes[2];
        bool full = false;
        hunch_model *m = open_family(f, 1);
        const bool keys_alone = attends_alone(m);
        for (int k = 0; k < 2; k++) {
            hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 16, k ? 4096 : 512);
            bytes[k] = hn_cache_bytes(e->cache);
            hunch_engine_close(&e);
        }
        for (int i = 0; i < m->target.arch.layers; i++) full |= m->target.arch.layer[i].window == 0;
        assert_true(full ? bytes[1] > (keys_alone ? 4 : 1) * bytes[0] : bytes[1] == bytes[0]);
        windows_only += !full;
        hunch_model_close(&m);
    }
    assert_true(windows_only > 0 && windows_only < n_families);
}

/* Measuring goes back and forth in one sequence, beyond the rows of its windows. */
static void test_measuring(void **state) {
    (void)state;
    double seconds[2];
    static const int contexts[] = {300, 299, 280, 40, 0, 333, 17};
    for (int f = 0; f < n_families; f++) {
        hunch_model *m = open_family(f, 1);
        const bool keys_alone = attends_alone(m);
        hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 16, 400);
        for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
            must(hunch_measure_pass(e, 8, contexts[i], 2, seconds, err));
            assert_int_equal(hn_cache_committed(e->cache, 1, 0), contexts[i]);
            hunch_work w;
            hunch_engine_work(e, 1, 1, contexts[i], &w);
            if (keys_alone) assert_true(w.kv_bytes == 2.0 * (double)hunch_model_kv_elements(m, contexts[i] + 1));
            hunch_phase p[HUNCH_PHASES];
            must(hunch_measure_profile(e, 8, contexts[i], p, NULL, err));
            hunch_engine_work(e, 8, 8, contexts[i], &w);
            assert_string_equal(p[HN_PHASE_ATTENTION - 1].name, "attention");
            if (keys_alone) assert_true(p[HN_PHASE_ATTENTION - 1].bytes == w.kv_bytes);
            must(hunch_measure_commit(e, 8, 3, contexts[i], 2, seconds, err));
            assert_int_equal(hn_cache_committed(e->cache, 1, 0), contexts[i]);
            assert_true(hn_cache_valid(e->cache));
        }
        hunch_engine_close(&e);
        hunch_model_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trees), cmocka_unit_test(test_chunks),
                                       cmocka_unit_test(test_memory), cmocka_unit_test(test_measuring)};
    return cmocka_run_group_tests(tests, find_families, NULL);
}
