/* SPDX-License-Identifier: Apache-2.0 */
/* draft_rows_test.c - a tree that grows over several passes, each of which names rows kept by earlier ones, has the
 * logits of the same tree in one pass, bit for bit (contract C2): for every instruction level, type of cache, size of
 * pages; and a runner's buffers are as wide as its widest layer, at any place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"

enum { SEQS = 3, ROWS = 400, WIDEST = 512, MOST_NODES = 150 };
static int vocab;

/* ---- trees ------------------------------------------------------------------------------------------------------------ */

/* Nodes in an order in which parents come first; pass[i]: in which of the passes each is computed. */
typedef struct grown {
    int n, passes;
    int32_t token[MOST_NODES];
    int16_t parent[MOST_NODES];
    int pass[MOST_NODES];
} grown;

typedef enum growth { BY_LEVEL, CHAIN, BY_CUTS, GROWTHS } growth;

static int below(uint64_t *rng, int n) {
    return (int)(hn_splitmix(rng) % (uint64_t)n);
}

/* Sorted by pass; the order within a pass is the one of being made. */
static grown grown_make(uint64_t *rng, growth how, int n) {
    int level[MOST_NODES];
    grown t = {.n = n};
    for (int i = 0, cut = 0; i < n; i++) {
        t.token[i] = below(rng, vocab);
        t.parent[i] = (int16_t)(how == CHAIN ? i - 1 : below(rng, i + 1) - 1);
        level[i] = t.parent[i] < 0 ? 0 : level[t.parent[i]] + 1;
        cut += i > 0 && below(rng, 3) == 0;
        t.pass[i] = how == BY_LEVEL ? level[i] : cut;
        if (t.pass[i] >= t.passes) t.passes = t.pass[i] + 1;
    }
    if (how != BY_LEVEL) return t;
    grown sorted = {.n = n, .passes = t.passes};
    int16_t at[MOST_NODES];
    for (int p = 0, m = 0; p < t.passes; p++)
        for (int i = 0; i < n; i++)
            if (t.pass[i] == p) {
                at[i] = (int16_t)m;
                sorted.token[m] = t.token[i];
                sorted.parent[m] = t.parent[i] < 0 ? -1 : at[t.parent[i]];
                sorted.pass[m++] = p;
            }
    return sorted;
}

/* ---- passes ------------------------------------------------------------------------------------------------------------- */

typedef struct rig {
    hn_cache *cache;
    hn_runner *runner;
} rig;

static rig rig_open(const hn_model *m, int page_rows, hn_dtype type) {
    hn_cache_group group[HN_MODEL_GROUPS];
    rig r;
    const int n = hn_kv_groups(m->run, type, group, NULL);
    group[0].page_rows = page_rows;
    for (int g = 0; g < n; g++) group[g].tentative = MOST_NODES;
    must(hn_cache_open(&r.cache, m->backend, group, n, SEQS, ROWS, 0, err));
    must(hn_runner_open(&r.runner, m, r.cache, 0, ROWS, NULL, err));
    for (int s = 0; s < SEQS; s++) hn_cache_seq_begin(r.cache, s);
    return r;
}

static void rig_close(rig *r) {
    hn_runner_close(&r->runner);
    hn_cache_close(&r->cache);
}

static void keep_logits_of(const rig *r, int row, float *to) {
    memcpy(to, hn_pass_logits(r->runner, row), (size_t)vocab * sizeof *to);
}

/* Commits a text of random tokens, the same for the same seed. */
static void commit_text(rig *r, int seq, int n, uint64_t seed) {
    hn_row row[HN_MAX_ROWS];
    for (int at = 0, k; at < n; at += k) {
        k = n - at < HN_MAX_ROWS ? n - at : HN_MAX_ROWS;
        for (int i = 0; i < k; i++) row[i] = (hn_row){.token = below(&seed, vocab), .parent = (int16_t)(i - 1)};
        must(hn_pass_run(r->runner, row, k, &seq, 1, err));
        hn_cache_commit(r->cache, seq, 0, NULL, k);
    }
}

/* All trees in one pass; out[s]: logits of each node. */
static void run_at_once(rig *r, const grown *t, float *const *out) {
    static const int seqs[SEQS] = {0, 1, 2};
    hn_row row[HN_MAX_ROWS];
    int n = 0;
    for (int s = 0; s < SEQS; s++) {
        const int first = n;
        for (int i = 0; i < t[s].n; i++, n++)
            row[n] = (hn_row){.token = t[s].token[i],
                              .seq = (int16_t)s,
                              .parent = (int16_t)(t[s].parent[i] < 0 ? -1 : first + t[s].parent[i]),
                              .logits = HN_LOGITS_ALL};
    }
    must(hn_pass_run(r->runner, row, n, seqs, SEQS, err));
    n = 0;
    for (int s = 0; s < SEQS; s++)
        for (int i = 0; i < t[s].n; i++) keep_logits_of(r, n++, out[s] + (size_t)i * WIDEST);
}

/* The rows of one pass: the new nodes of each sequence, after those kept by earlier passes. */
static void run_grown_pass(rig *r, const grown *t, int n_seqs, int pass, int *made, float *const *out) {
    hn_row row[HN_MAX_ROWS];
    hn_draft_rows drafts[SEQS];
    int seqs[SEQS], of[HN_MAX_ROWS], node[HN_MAX_ROWS], n = 0, m = 0;
    for (int s = 0; s < n_seqs; s++) {
        const int first = n, before = made[s];
        while (made[s] < t[s].n && t[s].pass[made[s]] == pass) {
            const int parent = t[s].parent[made[s]];
            row[n] = (hn_row){.token = t[s].token[made[s]], .seq = (int16_t)m, .logits = HN_LOGITS_ALL};
            row[n].parent = parent < 0 ? (int16_t)-1 : parent < before ? hn_draft_parent(parent) : (int16_t)(first + parent - before);
            of[n] = s;
            node[n++] = made[s]++;
        }
        if (n == first) continue;
        drafts[m] = (hn_draft_rows){before, t[s].parent};
        seqs[m++] = s;
    }
    if (n == 0) return;
    const hn_pass_options more = {.draft_rows = drafts};
    must(hn_pass_reserve(r->runner, row, n, seqs, m, &more, err));
    must(hn_pass_run_with(r->runner, row, n, seqs, m, &more, err));
    for (int i = 0; i < n; i++) keep_logits_of(r, i, out[of[i]] + (size_t)node[i] * WIDEST);
}

static void run_grown(rig *r, const grown *t, int n_seqs, float *const *out) {
    int made[SEQS] = {0}, passes = 0;
    for (int s = 0; s < n_seqs; s++) passes = t[s].passes > passes ? t[s].passes : passes;
    for (int p = 0; p < passes; p++) run_grown_pass(r, t, n_seqs, p, made, out);
    for (int s = 0; s < n_seqs; s++) assert_int_equal(made[s], t[s].n);
}

/* Keeps a random path of each tree, and returns the logits after it. */
static void commit_paths(rig *r, const grown *t, uint64_t seed, float *out) {
    for (int s = 0; s < SEQS; s++) {
        int16_t up[MOST_NODES], path[MOST_NODES];
        int n = 0;
        for (int i = below(&seed, t[s].n); i >= 0; i = t[s].parent[i]) up[n++] = (int16_t)i;
        for (int i = 0; i < n; i++) path[i] = up[n - 1 - i];
        hn_cache_commit(r->cache, s, 0, path, n);
        const hn_row next = {.token = 7, .parent = -1, .logits = HN_LOGITS_ALL};
        must(hn_pass_run(r->runner, &next, 1, &s, 1, err));
        keep_logits_of(r, 0, out + (size_t)s * WIDEST);
    }
}

static float *store[2][SEQS], behind[2][SEQS * WIDEST];

static void check(const hn_model *m, const char *isa, hn_dtype type, int page_rows, uint64_t seed) {
    static const int lengths[SEQS] = {0, 37, 258};
    rig one = rig_open(m, 64, type), grows = rig_open(m, page_rows, type);
    for (int s = 0; s < SEQS; s++) {
        commit_text(&one, s, lengths[s], seed + (uint64_t)s);
        commit_text(&grows, s, lengths[s], seed + (uint64_t)s);
    }
    for (growth how = BY_LEVEL; how < GROWTHS; how++) {
        grown t[SEQS];
        for (int s = 0; s < SEQS; s++) t[s] = grown_make(&seed, how, 1 + below(&seed, HN_MAX_ROWS / SEQS));
        run_at_once(&one, t, store[0]);
        run_grown(&grows, t, SEQS, store[1]);
        for (int s = 0; s < SEQS; s++)
            for (int i = 0; i < t[s].n; i++)
                if (memcmp(store[0][s] + i * WIDEST, store[1][s] + i * WIDEST, (size_t)vocab * sizeof(float)))
                    fail_msg("%s, %s, pages of %d, growth %d: node %d of text %d has other logits", isa, hn_dtype_name(type),
                             page_rows, how, i, s);
        commit_paths(&one, t, seed, behind[0]);
        commit_paths(&grows, t, seed, behind[1]);
        for (int s = 0; s < SEQS; s++)
            assert_memory_equal(behind[0] + s * WIDEST, behind[1] + s * WIDEST, (size_t)vocab * sizeof(float));
        assert_true(hn_cache_valid(grows.cache));
    }
    rig_close(&one);
    rig_close(&grows);
}

static int make_room(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int s = 0; s < SEQS; s++) store[k][s] = calloc((size_t)MOST_NODES * WIDEST, sizeof(float));
    return 0;
}

static int free_room(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int s = 0; s < SEQS; s++) free(store[k][s]);
    return 0;
}

static void test_one_pass_or_many(void **state) {
    static const hn_dtype types[] = {HN_BF16, HN_F16, HN_F32, HN_Q8_0};
    const char *isa[HN_ISA_COUNT];
    (void)state;
    for (int n = levels(isa), i = light() ? n - 1 : 0; i < n; i++) {
        hunch_model *m = open_model(data_path("goldens-heads/targets/qwen3-a"), isa[i], test_threads(), HUNCH_PRECISION_NATIVE);
        vocab = m->target.arch.vocab;
        assert_true(vocab <= WIDEST);
        for (int type = 0; type < 4; type++)
            for (int page_rows = 16; page_rows <= (light() ? 16 : 256); page_rows *= 4)
                check(&m->target, isa[i], types[type], page_rows, (uint64_t)(i * 1000 + type * 100 + page_rows));
        hunch_model_close(&m);
    }
}

/* Windows are by position, for any place of the rows. */
static void test_windows(void **state) {
    static const char *const families[] = {"goldens/mistral-sliding", "goldens/gemma3_text-local"};
    (void)state;
    for (int f = 0; f < 2; f++) {
        hunch_model *m = open_model(data_path(families[f]), "best", test_threads(), HUNCH_PRECISION_F32);
        vocab = m->target.arch.vocab;
        assert_true(vocab <= WIDEST);
        check(&m->target, "best", HN_BF16, 16, (uint64_t)f);
        hunch_model_close(&m);
    }
}

/* More nodes than one pass has rows: each has the logits of its path alone. */
static void test_more_than_a_pass(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    uint64_t seed = 5;
    float alone[WIDEST];
    vocab = m->target.arch.vocab;
    rig r = rig_open(&m->target, 16, HN_BF16);
    commit_text(&r, 0, 70, 1);
    commit_text(&r, 1, 70, 1);
    const grown t = grown_make(&seed, BY_LEVEL, MOST_NODES);
    run_grown(&r, &t, 1, store[0]);
    for (int i = 0; i < t.n; i++) {
        hn_row row[HN_MAX_ROWS];
        int n = 0;
        const int seq = 1;
        for (int k = i; k >= 0; k = t.parent[k]) n++;
        for (int k = i, at = n - 1; k >= 0; k = t.parent[k], at--)
            row[at] = (hn_row){.token = t.token[k], .parent = (int16_t)(at - 1), .logits = at == n - 1 ? HN_LOGITS_ALL : HN_LOGITS_NONE};
        must(hn_pass_run(r.runner, row, n, &seq, 1, err));
        keep_logits_of(&r, n - 1, alone);
        assert_memory_equal(alone, store[0][0] + i * WIDEST, (size_t)vocab * sizeof *alone);
    }
    rig_close(&r);
    hunch_model_close(&m);
}

/* ---- buffers ------------------------------------------------------------------------------------------------------------ */

static size_t taken;
static hunch_status (*real_create)(hn_backend *, hn_mem_kind, size_t, hn_mem **, hunch_error *);

static hunch_status count_bytes(hn_backend *b, hn_mem_kind kind, size_t bytes, hn_mem **out, hunch_error *err) {
    if (kind == HN_MEM_WORK) taken = bytes;
    return real_create(b, kind, bytes, out, err);
}

/* Bytes of a runner of two layers of these many heads and numbers between gate and down. */
static size_t bytes_of(const hn_model *like, int heads0, int ffn0, int heads1, int ffn1) {
    hn_model m = *like;
    hn_layer_desc layer[2] = {like->arch.layer[0], like->arch.layer[0]};
    layer[0].heads = heads0;
    layer[0].ffn_width = ffn0;
    layer[1].heads = heads1;
    layer[1].ffn_width = ffn1;
    m.arch.layers = 2;
    m.arch.layer = layer;
    m.run = hn_layers_of(&m.arch);
    real_create = m.backend->mem_create;
    rig r = rig_open(&m, 16, HN_BF16); /* what the cache takes is not counted */
    hn_runner_close(&r.runner);
    m.backend->mem_create = count_bytes;
    must(hn_runner_open(&r.runner, &m, r.cache, 0, ROWS, NULL, err));
    m.backend->mem_create = real_create;
    const size_t bytes = taken;
    rig_close(&r);
    return bytes;
}

static void test_widest_layer(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    const hn_model *t = &m->target;
    const size_t wide = bytes_of(t, 16, 512, 16, 512);
    assert_true(bytes_of(t, 8, 512, 8, 512) < wide && bytes_of(t, 16, 128, 16, 128) < wide);
    assert_int_equal(bytes_of(t, 8, 128, 16, 512), wide);
    assert_int_equal(bytes_of(t, 16, 512, 8, 128), wide);
    assert_int_equal(bytes_of(t, 16, 128, 8, 512), wide);
    assert_int_equal(bytes_of(t, 8, 512, 16, 128), wide);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_pass_or_many), cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_more_than_a_pass), cmocka_unit_test(test_widest_layer)};
    return cmocka_run_group_tests(tests, make_room, free_room);
}
