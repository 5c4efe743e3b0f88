/* SPDX-License-Identifier: Apache-2.0 */
/* layer_sets_test.c - draft rows that run some of a model's layers (hn_pass_options.layers): their logits are, bit for bit, those of a
 * model that has only these layers, in trees that grow over several passes; and what they leave behind changes nothing of the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"
#include "goldens.h"

enum { ROWS = 24, PASSES = 3, CONTEXT = 96, WIDEST = 520 };
static uint64_t rng = 3;
static int below(int n) { return (int)(hn_splitmix(&rng) % (uint64_t)n); }

/* A model of some layers of another: it borrows all of it. */
static hn_model model_of(const hn_model *m, const hn_layer_set *set, hn_layer_desc *desc, hn_layer *layer) {
    hn_model own = *m;
    int at[256] = {0}, n = 0;
    for (int i = 0; i < m->arch.layers; i++) {
        if (!hn_layer_set_has(set, i)) continue;
        desc[n] = m->arch.layer[i];
        if (desc[n].kv_back > 0) desc[n].kv_back = n - at[i - desc[n].kv_back];
        layer[n] = m->layer[i];
        at[i] = n++;
    }
    own.arch.layer = desc;
    own.arch.layers = n;
    own.layer = layer;
    own.run = hn_layers_of(&own.arch);
    return own;
}

typedef struct rig {
    hn_cache *cache;
    hn_runner *runner;
} rig;

static rig rig_open(const hn_model *m) {
    hn_cache_group group[HN_MODEL_GROUPS];
    const int n = hn_kv_groups(m->run, HN_F32, group, NULL);
    rig r;
    group[0].page_rows = 16;
    for (int g = 0; g < n; g++) group[g].tentative = ROWS;
    must(hn_cache_open(&r.cache, m->backend, group, n, 1, CONTEXT, 0, err));
    must(hn_runner_open(&r.runner, m, r.cache, 0, CONTEXT, NULL, err));
    hn_cache_seq_begin(r.cache, 0);
    return r;
}

static void rig_close(rig *r) {
    hn_runner_close(&r->runner);
    hn_cache_close(&r->cache);
}

static int16_t parent_of(int16_t parent, int first) {
    if (parent < 0) return -1;
    return parent < first ? hn_draft_parent(parent) : (int16_t)(parent - first);
}

/* A tree that grows over PASSES passes, after no text. */
static void draft(const rig *r, const hn_layer_set *layers, const int32_t *token, const int16_t *parent, int vocab, float *logits) {
    const int seq = 0;
    for (int p = 0, first = 0; p < PASSES; p++) {
        const int last = ROWS * (p + 1) / PASSES;
        const hn_draft_rows before = {first, parent};
        const hn_pass_options more = {.draft_rows = &before, .layers = layers};
        hn_row row[ROWS];
        for (int i = first; i < last; i++)
            row[i - first] = (hn_row){.token = token[i], .logits = HN_LOGITS_ALL, .parent = parent_of(parent[i], first)};
        must(hn_pass_reserve(r->runner, row, last - first, &seq, 1, &more, err));
        must(hn_pass_run_with(r->runner, row, last - first, &seq, 1, &more, err));
        for (int i = first; i < last; i++) memcpy(logits + i * vocab, hn_pass_logits(r->runner, i - first), sizeof *logits * (size_t)vocab);
        first = last;
    }
}

/* A text in two passes, the first of which is committed. */
static void text(const rig *r, const int32_t *token, int vocab, float *logits) {
    const int seq = 0;
    for (int p = 0; p < 2; p++) {
        hn_row row[ROWS / 2];
        for (int i = 0; i < ROWS / 2; i++)
            row[i] = (hn_row){.token = token[p * ROWS / 2 + i], .parent = (int16_t)(i - 1), .logits = HN_LOGITS_ALL};
        must(hn_pass_run(r->runner, row, ROWS / 2, &seq, 1, err));
        for (int i = 0; i < ROWS / 2; i++)
            memcpy(logits + (p * ROWS / 2 + i) * vocab, hn_pass_logits(r->runner, i), sizeof *logits * (size_t)vocab);
        hn_cache_commit(r->cache, 0, 0, NULL, ROWS / 2);
    }
}

static void same(const float *a, const float *b, int vocab, const char *model, const char *what) {
    for (int i = 0; i < ROWS; i++)
        if (memcmp(a + i * vocab, b + i * vocab, sizeof *a * (size_t)vocab)) fail_msg("%s: row %d of %s", model, i, what);
}

static void check(const hn_model *m, const hn_layer_set *set, const char *name) {
    static float got[ROWS * WIDEST], want[ROWS * WIDEST];
    const int vocab = m->arch.vocab;
    int32_t token[ROWS];
    int16_t parent[ROWS];
    hn_layer_desc *desc = calloc((size_t)m->arch.layers, sizeof *desc);
    hn_layer *layer = calloc((size_t)m->arch.layers, sizeof *layer);
    const hn_model own = model_of(m, set, desc, layer);
    assert_true(vocab <= WIDEST);
    for (int i = 0; i < ROWS; i++) {
        token[i] = below(vocab);
        parent[i] = (int16_t)(i == 0 || below(8) == 0 ? -1 : below(2) ? i - 1 : below(i));
    }
    rig all = rig_open(m), some = rig_open(&own), fresh = rig_open(m);
    draft(&all, set, token, parent, vocab, got);
    draft(&some, NULL, token, parent, vocab, want);
    same(got, want, vocab, name, "a draft");
    text(&all, token, vocab, got);
    text(&fresh, token, vocab, want);
    same(got, want, vocab, name, "the text after it");
    rig_close(&all);
    rig_close(&some);
    rig_close(&fresh);
    free(desc);
    free(layer);
}

static hn_layer_set random_set(const hn_arch *a) {
    for (;;) {
        hn_layer_set s = {{0}};
        for (int i = 0; i < a->layers; i++) s.bits[i / 64] |= (uint64_t)below(2) << (i % 64);
        if (hn_layer_set_fits(&s, hn_layers_of(a)) && (s.bits[0] || s.bits[1])) return s;
    }
}

/* A token's inputs are for a layer by its number, which another model's layers do not keep. */
static bool without_inputs(const hn_arch *a) {
    return a->layer[0].token_input == 0;
}

static void test_sets(void **state) {
    (void)state;
    static char models[1 + MOST_GOLDENS][GOLDEN_NAME] = {"models/stories260K/stories260K.f32.gguf"};
    for (int i = 0, n = 1 + golden_models(without_inputs, models + 1); i < n; i++) {
        hunch_model *h = open_model(data_path(models[i]), "best", test_threads(), HUNCH_PRECISION_NATIVE);
        const hn_model *m = &h->target;
        for (int exit = 1; exit < m->arch.layers; exit++) { /* the layers up to one: an early exit */
            const hn_layer_set first = {{(1ull << exit) - 1}};
            if (hn_layer_set_fits(&first, m->run)) check(m, &first, models[i]);
        }
        for (int k = 0; k < 4; k++) {
            const hn_layer_set some = random_set(&m->arch);
            check(m, &some, models[i]);
        }
        hunch_model_close(&h);
    }
}

/* A layer that reads the keys and values of one before it needs that one. */
static void test_fits(void **state) {
    (void)state;
    hn_layer_desc layer[4] = {{.kv_back = 0}};
    const hn_arch a = {.layers = 4, .layer = layer};
    layer[3].kv_back = 2;
    assert_true(hn_layer_set_fits(&(hn_layer_set){{0x5}}, hn_layers_of(&a)));
    assert_true(hn_layer_set_fits(&(hn_layer_set){{0xa}}, hn_layers_of(&a)));
    assert_false(hn_layer_set_fits(&(hn_layer_set){{0xd}}, hn_layers_of(&a)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sets), cmocka_unit_test(test_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
