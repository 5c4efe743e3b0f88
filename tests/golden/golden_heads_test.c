/* SPDX-License-Identifier: Apache-2.0 */
/* golden_heads_test.c - drafts of heads, in f32 precision, compared with those of their reference implementations: root, chains with q
 * and logits, trees, and the round after some of them were accepted; and the target's features that they are fed. The drafts have the
 * same bits for any threads and chunks. Sources of the goldens: tests/data/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "golden/golden.h"
#include "model/folder_for_tests.h"

enum { MOST_TEXT = 64, MOST_STATES = 8 };

static const char *const folders[] = {
    "eagle1-bias-bin",      "eagle2-nobias-gqa",  "eagle2-qkv-bias",
    "hass-bias",            "eagle3-official-d2t", "eagle3-official-fullvocab",
    "eagle3-outputs",       "eagle3-narrow",      "eagle3spec-plain",
    "eagle3spec-norm-before-residual", "eagle3spec-v31", "eagle3spec-qwen3-mqa",
    "eagle3spec-biases",    "eagle3spec-2layers", "eagle3spec-gptoss",  "eagle3-gptoss-tree",
    "peagle-spec-2layers",
    "peagle-vllm-4layers",  "peagle-norms",       "peagle-biases",
    "mtp-spec-qwen3",       "mtp-untied-bias",
    "medusa-2heads-pt",     "medusa-4heads",      "medusa-3blocks",
    "medusa-vllm-map",      "medusa-vllm-5heads", "medusa-vllm-one-output",
    "medusa-blockwise",     "hydra-2blocks",      "hydra-ungrounded",
    "hydra-prefix",         "hydra-offset",       "mlp-tied-scaled",
    "mlp-tied-5",           "mlp-untied-narrow",  "mlp-arctic-lstm",
    "mlp-arctic-fused",     "mlp-arctic-rnn",     "meta-3tokens",
    "dart-d2t",             "dart-7masks",

    "dflash-zlab",          "dflash-default-ids", "dflashmask-zlab",    "dflashwin-zlab",
    "dflash-gptoss-zlab",   "dflashspec-gptoss",
    "dflashspec-d2t",       "dflashspec-windows", "dflashspec-ahead-anchor",
    "dspark-vanilla",       "dspark-gated",       "dspark-rnn",         "dspark-windows",
    "dflash2-zlab",         "dflash2-dotted",     "dflash2spec-windows",
    "domino-shifted",       "domino-early",
    "dflash-deepspec",      "dflash-swa-sinks",   "dflash-causal",      "dflash-noncausal",   "dspark-deepspec",
    "jetspec-official",     "jetspec-automodel",
    "pard-llama-tied",      "pard-qwen2-padded",  "pard-2-qwen3",
    "falcon-k2",            "falcon-k3",          "falcon-k3-none"};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

typedef struct golden {
    const char *name;
    char spec[700], target[600];
    json_t *json;
    hn_source *tensors;
    hunch_token ids[MOST_TEXT];
    size_t n;
    int depth, accept;
    double tolerance;
} golden;

static int int_of(const json_t *o, const char *key) {
    assert_true(json_is_integer(json_object_get(o, key)));
    return (int)json_integer_value(json_object_get(o, key));
}

static const json_t *round_of(const golden *g, int round) {
    return json_array_get(json_object_get(g->json, "rounds"), (size_t)round);
}

static golden_tensor tensor_of(const golden *g, int round, const char *what) {
    char name[40];
    snprintf(name, sizeof name, "r%d.%s", round, what);
    return get_golden(g->tensors, name);
}

static void golden_open(golden *g, const char *name) {
    char path[200];
    *g = (golden){.name = name};
    snprintf(path, sizeof path, "goldens-heads/%s/golden.json", name);
    g->json = json_load_file(data_path(path), 0, NULL);
    assert_non_null(g->json);
    snprintf(path, sizeof path, "goldens-heads/%s/golden.safetensors", name);
    must(hn_source_open_safetensors(&g->tensors, data_path(path), err));
    g->depth = int_of(g->json, "depth");
    g->accept = int_of(g->json, "accept");
    g->tolerance = json_number_value(json_object_get(g->json, "tolerance"));
    g->n = ids_of(json_object_get(round_of(g, 0), "context"), g->ids);
    assert_true(g->tolerance > 0 && g->tolerance < 0.05 && g->n > 0);
    snprintf(path, sizeof path, "goldens-heads/%s", name);
    snprintf(g->spec, sizeof g->spec, "%s:%s/%s", json_string_value(json_object_get(g->json, "kind")), data_path(path),
             json_string_value(json_object_get(g->json, "head")));
    snprintf(g->target, sizeof g->target, "%s/%s", data_path(path), json_string_value(json_object_get(g->json, "target")));
}

static void golden_close(golden *g) {
    hn_source_close(&g->tensors);
    json_decref(g->json);
}

/* ---- features fed to drafters ----------------------------------------------------------------------------------------- */

static hn_backend *backend;
static const hn_drafter_ops *listened; /* its feed is recorded */
static struct {
    bool begun; /* the text of this draft; if it begins with a shared prefix only the rows after it are fed */
    int rows, states, hidden;
    float *state; /* [MOST_TEXT][MOST_STATES][hidden] */
} fed;

static void keep_fed(hn_drafter *d, const hn_feed_row *rows, int n, const hn_features *f) {
    fed.states = f->n;
    if (!fed.begun) {
        assert_true(rows[0].position <= fed.rows);
        fed.rows = rows[0].position;
        fed.begun = true;
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(rows[i].position, fed.rows);
        for (int k = 0; k < f->n; k++)
            memcpy(fed.state + (size_t)(fed.rows * MOST_STATES + k) * (size_t)fed.hidden,
                   backend->read(backend, (hn_ticket){0}, hn_at(f->buffer[k], sizeof(float) * (size_t)rows[i].feature_row * (size_t)f->ld),
                                 sizeof(float) * (size_t)fed.hidden),
                   sizeof(float) * (size_t)fed.hidden);
        fed.rows++;
    }
    listened->feed(d, rows, n, f);
}

/* Index, in rising order of boundaries, of the buffer that is the reference's k-th state. */
static int place_of(const json_t *boundaries, size_t k) {
    int place = 0;
    for (size_t i = 0; i < json_array_size(boundaries); i++)
        place += json_integer_value(json_array_get(boundaries, i)) < json_integer_value(json_array_get(boundaries, k));
    return place;
}

/* The features fed up to a round equal those that the reference's head read. */
static void check_fed(const golden *g, int round) {
    const json_t *boundaries = json_object_get(json_object_get(g->json, "consumes"), "boundaries");
    if (boundaries && json_array_size(boundaries) == 0) return; /* it reads none */
    const golden_tensor want = tensor_of(g, round, "features");
    const json_t *consumes = json_object_get(g->json, "consumes");
    const size_t rows = want.n / want.cols, hidden = (size_t)fed.hidden, first = (size_t)fed.rows - rows;
    if (strstr(json_string_value(json_object_get(consumes, "state")), "last row only") ||
        strstr(json_string_value(json_object_get(consumes, "width")), "last row only"))
        assert_int_equal(rows, 1);
    else
        assert_int_equal(fed.rows, rows);
    assert_int_equal(fed.states, boundaries ? json_array_size(boundaries) : 1);
    assert_int_equal(want.cols, (size_t)fed.states * hidden);
    double square = 0;
    for (size_t i = 0; i < want.n; i++) square += (double)want.data[i] * (double)want.data[i];
    for (size_t i = 0; i < rows; i++)
        for (int k = 0; k < fed.states; k++) {
            const int place = boundaries ? place_of(boundaries, (size_t)k) : 0;
            const double d = largest_difference(fed.state + ((first + i) * MOST_STATES + (size_t)place) * hidden,
                                                want.data + i * want.cols + (size_t)k * hidden, hidden);
            if (!(d <= 5e-4 * sqrt(square / (double)want.n))) fail_msg("%s: state %d of row %zu is off by %g", g->name, k, i, d);
        }
}

/* ---- drafts ------------------------------------------------------------------------------------------------------------ */

typedef struct taken {
    float *logits; /* [depth][vocab] */
    int vocab, levels;
} taken;

static void take_logits(void *user, int level, const float *logits, int vocab) {
    taken *t = user;
    assert_int_equal(vocab, t->vocab);
    assert_int_equal(level, t->levels);
    memcpy(t->logits + (size_t)t->levels++ * (size_t)vocab, logits, (size_t)vocab * sizeof *logits);
}

static hunch_draft_result draft(hunch_engine *e, const golden *g, int round, int depth, taken *t) {
    hunch_draft_result r;
    t->vocab = e->model->target.arch.vocab;
    t->levels = 0;
    t->logits = calloc((size_t)depth * (size_t)t->vocab, sizeof *t->logits);
    must(hunch_draft(e, g->ids, g->n, depth, round ? g->accept : -1, NULL, take_logits, t, &r, err));
    return r;
}

static double deviation(const float *x, size_t n) {
    double sum = 0, square = 0;
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            sum += (double)x[i];
            square += (double)x[i] * (double)x[i];
            m++;
        }
    return sqrt(fmax(0, square / (double)m - sum / (double)m * (sum / (double)m)));
}

/* Logits of the chain: -inf where the reference has it, else within the tolerance. */
static void check_logits(const golden *g, int round, const taken *t) {
    const golden_tensor want = tensor_of(g, round, "logits");
    assert_int_equal(want.cols, t->vocab);
    assert_int_equal(want.n, (size_t)t->levels * want.cols);
    for (int k = 0; k < t->levels; k++) {
        const float *w = want.data + (size_t)k * want.cols, *have = t->logits + (size_t)k * want.cols;
        const double limit = g->tolerance * fmax(1, deviation(w, want.cols));
        for (size_t i = 0; i < want.cols; i++)
            if (isfinite(w[i]) ? !(fabs((double)w[i] - (double)have[i]) <= limit) : have[i] > -INFINITY || isnan(have[i]))
                fail_msg("%s: round %d: logit %zu of draft %d is %g, reference %g", g->name, round, i, k, (double)have[i], (double)w[i]);
    }
}

static void check_chain(const golden *g, int round, const hunch_draft_result *r) {
    const json_t *want = round_of(g, round);
    assert_int_equal(r->root, int_of(want, "root"));
    assert_int_equal(r->n, g->depth);
    assert_false(r->is_tree);
    for (int i = 0; i < r->n; i++) {
        const double q = json_number_value(json_array_get(json_object_get(want, "q"), (size_t)i));
        assert_int_equal(r->node[i].token, json_integer_value(json_array_get(json_object_get(want, "tokens"), (size_t)i)));
        assert_int_equal(r->node[i].parent, json_integer_value(json_array_get(json_object_get(want, "parents"), (size_t)i)));
        const json_t *sure = json_array_get(json_object_get(want, "confidence"), (size_t)i);
        const double confidence = sure ? json_number_value(sure) : -1;
        if (!(fabs(r->node[i].confidence - confidence) <= 1e-4))
            fail_msg("%s: confidence of draft %d is %g, reference %g", g->name, i, r->node[i].confidence, confidence);
        if (!(fabs(r->node[i].q - q) <= g->tolerance)) fail_msg("%s: q of draft %d is %g, reference %g", g->name, i, r->node[i].q, q);
    }
}

static void check_tree(const golden *g, int round, const hunch_draft_result *r) {
    const json_t *nodes = json_object_get(json_object_get(round_of(g, round), "tree"), "nodes"), *want;
    size_t i;
    assert_int_equal(r->root, int_of(round_of(g, round), "root"));
    assert_int_equal(r->n, json_array_size(nodes));
    assert_true(r->is_tree);
    json_array_foreach (nodes, i, want) {
        const double logp = json_number_value(json_object_get(want, "logp"));
        assert_int_equal(r->node[i].token, int_of(want, "token"));
        assert_int_equal(r->node[i].parent, int_of(want, "parent"));
        if (!(fabs(r->node[i].logp - logp) <= g->tolerance * 2))
            fail_msg("%s: log p of node %zu is %g, reference %g", g->name, i, r->node[i].logp, logp);
    }
}

/* ---- over threads and chunks ------------------------------------------------------------------------------------------ */

static hunch_engine *open_engine_for(hunch_model *m, const golden *g, int chunk, bool tree, hn_drafter_ops *listening) {
    const json_t *shape = json_object_get(g->json, "tree");
    char spec[800];
    snprintf(spec, sizeof spec, "%s,depth=%d", g->spec, tree ? int_of(shape, "levels") : g->depth);
    const char *form = tree ? json_string_value(json_object_get(shape, "form")) : NULL; /* else EAGLE-2's */
    if (tree)
        snprintf(spec + strlen(spec), 60, ",tree=%s,topk=%d,total=%d", form ? form : "dynamic", int_of(shape, "top_k"),
                 int_of(shape, "total"));
    hunch_engine *e = open_engine(m, spec, 1, chunk, HUNCH_KV_DEFAULT, 16, 256);
    listened = e->drafter[0].ops;
    *listening = *listened;
    listening->feed = keep_fed;
    e->drafter[0].ops = listening;
    backend = m->target.backend;
    fed.rows = 0;
    fed.hidden = m->target.arch.hidden;
    fed.state = calloc(MOST_TEXT * MOST_STATES * (size_t)fed.hidden, sizeof *fed.state);
    return e;
}

static void engine_close(hunch_engine *e) {
    e->drafter[0].ops = listened;
    hunch_engine_close(&e);
    free(fed.state);
}

/* The bits of a draft, to be compared with those for other threads and chunks. */
typedef struct bits {
    float *logits[2];
    double p[2][HUNCH_MAX_DEPTH];
} bits;

static void same_bits(const golden *g, int round, const hunch_draft_result *r, taken *t, bits *first) {
    const size_t size = (size_t)t->levels * (size_t)t->vocab * sizeof *t->logits;
    double p[HUNCH_MAX_DEPTH] = {0};
    for (int i = 0; i < r->n; i++) p[i] = r->node[i].logp;
    if (!first->logits[round]) {
        first->logits[round] = t->logits;
        memcpy(first->p[round], p, sizeof p);
        return;
    }
    if (memcmp(first->logits[round], t->logits, size) || memcmp(first->p[round], p, sizeof p))
        fail_msg("%s: round %d: other bits with other threads or chunks", g->name, round);
    free(t->logits);
}

static void check_rounds(hunch_model *m, const golden *g, int chunk, bool tree, bits *first) {
    hn_drafter_ops listening;
    hunch_engine *e = open_engine_for(m, g, chunk, tree, &listening);
    for (int round = 0; round < 2; round++) {
        taken t;
        fed.begun = false;
        hunch_draft_result r =
            draft(e, g, round, tree ? int_of(json_object_get(g->json, "tree"), "levels") : g->depth, &t);
        if (tree)
            check_tree(g, round, &r);
        else
            check_chain(g, round, &r);
        /* a tree's are those of the chain, which may have a different number of levels */
        if (t.levels == g->depth) check_logits(g, round, &t);
        check_fed(g, round);
        same_bits(g, round, &r, &t, first);
        hunch_free(r.node);
    }
    engine_close(e);
}

static void check_golden(const char *name, const char *isa) {
    static const struct {
        int threads, chunk;
    } way[] = {{1, 64}, {1, 1}, {2, 3}};
    golden g;
    bits chain = {0}, tree = {0};
    golden_open(&g, name);
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        hunch_model *m = open_model(g.target, isa, way[i].threads, HUNCH_PRECISION_F32);
        check_rounds(m, &g, way[i].chunk, false, &chain);
        if (json_object_get(g.json, "tree")) check_rounds(m, &g, way[i].chunk, true, &tree);
        hunch_model_close(&m);
    }
    for (int round = 0; round < 2; round++) {
        free(chain.logits[round]);
        free(tree.logits[round]);
    }
    golden_close(&g);
}

static void test_goldens(void **state) {
    const char *isa[HN_ISA_COUNT];
    (void)state;
    for (int n = levels(isa), i = 0; i < n; i++)
        for (int f = test_light() ? i : 0; f < N_FOLDERS; f += test_light() ? n : 1) /* lightly: each at one level */
            check_golden(folders[f], isa[i]);
}

/* A shorter block of JetSpec has the bits of the longest one. */
static void test_shorter_blocks(void **state) {
    golden g;
    hn_drafter_ops listening;
    (void)state;
    golden_open(&g, "jetspec-automodel");
    hunch_model *m = open_model(g.target, "best", 1, HUNCH_PRECISION_F32);
    hunch_engine *e = open_engine_for(m, &g, 64, false, &listening);
    taken whole, part;
    hunch_draft_result r = draft(e, &g, 0, g.depth, &whole);
    hunch_free(r.node);
    for (int depth = 1; depth < g.depth; depth += 4) {
        fed.begun = false;
        r = draft(e, &g, 0, depth, &part);
        assert_int_equal(part.levels, depth);
        assert_memory_equal(part.logits, whole.logits, (size_t)depth * (size_t)whole.vocab * sizeof *whole.logits);
        free(part.logits);
        hunch_free(r.node);
    }
    free(whole.logits);
    engine_close(e);
    hunch_model_close(&m);
    golden_close(&g);
}

/* Layers that attend to a window are not silently read as layers with full attention. */
static void test_windows_are_refused(void **state) {
    static const char whole[] = "\"layer_types\": [\"full_attention\"], \"hidden_act\"",
                      window[] = "\"layer_types\": [\"sliding_attention\"], \"sliding_window\": 6, \"hidden_act\"";
    golden g;
    (void)state;
    golden_open(&g, "eagle3spec-plain");
    hunch_model *m = open_model(g.target, "best", 1, HUNCH_PRECISION_F32);
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_error error = {0};
    char spec[300];
    snprintf(spec, sizeof spec, "eagle3:%s", test_path("changed"));
    const char *const drafts[] = {spec};
    hunch_engine_options_defaults(&o);
    o.drafts = drafts;
    o.n_drafts = 1;
    folder_write_changed("../goldens-heads/eagle3spec-plain/head", "\"hidden_act\"", whole);
    must(hunch_engine_open(&e, m, &o, err));
    hunch_engine_close(&e);
    folder_write_changed("../goldens-heads/eagle3spec-plain/head", "\"hidden_act\"", window);
    assert_int_equal(hunch_engine_open(&e, m, &o, &error), HUNCH_REFUSED);
    assert_non_null(strstr(error.message, "layer 0 is of type sliding_attention, expected a draft head's to be full_attention"));
    hunch_model_close(&m);
    golden_close(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_goldens), cmocka_unit_test(test_shorter_blocks),
                                       cmocka_unit_test(test_windows_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
