/* SPDX-License-Identifier: Apache-2.0 */
/* certainty_test.c - margin and entropy of drafts, of every kind of draft head and of a draft model, against the softmax of the logits that
 * on_logits shows, in double: of chains, of trees along their best path, of drawn drafts. Drafters without logits have none, nobody
 * computes them where no callback sees a round, and other texts do not change them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "heads.h"

enum { DEPTH = 4 };

static const hunch_token prompt[] = {1, 8, 200, 10, 8, 9, 77, 210, 8, 200, 10, 8, 9, 23, 55, 8, 200, 10};

static const char *const of_llama[] = {
    "eagle:@eagle1-bias-bin,depth=4",
    "eagle:@eagle2-nobias-gqa,depth=3,tree=dynamic,topk=8,total=59,weights=f32",
    "eagle3:@eagle3-official-d2t,depth=4",
    "eagle3:@eagle3-official-d2t,depth=4,tree=opt,topk=5,total=30,gain=0.05",
    "eagle:@eagle1-bias-bin,tree=#fork.json,weights=q4_0",
    "peagle:@peagle-spec-2layers,depth=4",
    "peagle:@peagle-spec-2layers,depth=4,tree=dynamic,topk=4,total=14",
    "peagle:@peagle-spec-2layers,depth=4,tree=best,topk=6,total=40",
    "dart:@dart-d2t,depth=4",
    "dart:@dart-d2t,tree=pruned,total=20,weights=f32",
    "falcon:@falcon-k2,depth=4",
    "dflash:@dflashspec-ahead-anchor,depth=4,vocab=150,ids=%even.json",
    "dspark:@dspark-rnn,depth=4",
    "dspark:@dspark-gated,depth=4,tree=dynamic,topk=3,total=12",
    "domino:@domino-early,depth=4",
    "domino:@domino-early,depth=4,pool=100,weights=q4_0",
    "domino:@domino-early,depth=4,tree=dynamic,topk=3,total=12,pool=100",
    "dflash2:@dflash2-zlab,depth=4",
    "jetspec:@jetspec-automodel,depth=4,tree=expanded,topk=4,total=20",
    "pard:@pard-llama-tied,depth=4",
    "medusa:@medusa-4heads,depth=4",
    "medusa:@medusa-vllm-map,depth=3,tree=dynamic,topk=4,total=14",
    "mlp:@mlp-tied-5,depth=4",
    "hydra:@hydra-prefix,depth=3",
};
static const char *const of_qwen[] = {"hass:@hass-bias,depth=4", "mtp:@mtp-spec-qwen3,depth=4", "pard:@pard-2-qwen3,tree=mc_sim_7b_63",
                                      "mtp:@mtp-spec-qwen3,depth=3,tree=dynamic,topk=3,total=9", "hydra:@hydra-2blocks,depth=3"};
static const char *const of_meta[] = {"meta-mtp:@meta-3tokens", "meta-mtp:@meta-3tokens,tree=#pair.json"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- the softmax of a row --------------------------------------------------------------------------------------------------- */

typedef struct seen {
    int levels;
    double margin[DEPTH], entropy[DEPTH];
} seen;

static void keep(void *user, int level, const float *l, int vocab) {
    seen *s = user;
    double most[2] = {-INFINITY, -INFINITY}, sum = 0, entropy = 0;
    assert_true(level < DEPTH);
    for (int i = 0; i < vocab; i++) {
        if ((double)l[i] > most[0]) most[1] = most[0], most[0] = (double)l[i];
        else if ((double)l[i] > most[1]) most[1] = (double)l[i];
    }
    for (int i = 0; i < vocab; i++) sum += exp((double)l[i] - most[0]);
    for (int i = 0; i < vocab; i++) {
        const double p = exp((double)l[i] - most[0]) / sum;
        if (p > 0) entropy -= p * log(p);
    }
    s->levels = level + 1;
    s->margin[level] = (1 - exp(most[1] - most[0])) / sum;
    s->entropy[level] = entropy;
}

/* Every node whose parent is on the path of the best tokens, which is the chain's. */
static int check_nodes(const hunch_draft_result *r, const seen *s, const char *spec) {
    bool best[HN_TREE_ROWS];
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        const hunch_draft_node *k = &r->node[i];
        const bool after_best = k->parent < 0 || best[k->parent];
        best[i] = after_best && k->rank == 0;
        assert_true(k->depth == (k->parent < 0 ? 1 : r->node[k->parent].depth + 1));
        if (!after_best) {
            assert_true(k->margin >= 0 && k->margin <= 1 && k->entropy >= 0);
            continue;
        }
        if (k->depth > s->levels) continue;
        const double margin = s->margin[k->depth - 1], entropy = s->entropy[k->depth - 1];
        if (!(fabs(k->margin - margin) <= 1e-6 && fabs(k->entropy - entropy) <= 1e-5 * (1 + entropy)))
            fail_msg("%s: node %d at depth %d: margin %g, entropy %g; expected %g, %g", spec, i, k->depth, k->margin, k->entropy, margin,
                     entropy);
        n++;
    }
    return n;
}

static void check_spec(hunch_model *m, const char *spec, const hunch_sampling *sampling, hunch_verify verify) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = 128;
    o.verify = verify;
    hunch_engine *e = open_engine_with(m, spec, o);
    const int most = e->drafter[0].needs.max_depth, depth = most < DEPTH ? most : DEPTH;
    for (int round = 0; round < 2; round++) {
        hunch_draft_result r;
        seen s = {0};
        must(hunch_draft(e, prompt, COUNT(prompt), depth, round ? 2 : -1, sampling, keep, &s, &r, err));
        assert_true(s.levels > 0 && check_nodes(&r, &s, spec) > 0);
        hunch_free(r.node);
    }
    hunch_engine_close(&e);
}

static void check_target(const char *path, const char *const *specs, size_t n) {
    for (int p = 0; p < 2; p++) {
        hunch_model *m = open_model(data_path(path), "best", 2, p ? HUNCH_PRECISION_NATIVE : HUNCH_PRECISION_F32);
        for (size_t i = 0; i < n; i++) check_spec(m, heads_spec(specs[i]), NULL, HUNCH_VERIFY_DEFAULT);
        hunch_model_close(&m);
    }
}

static void test_heads(void **state) {
    (void)state;
    check_target(HEADS_LLAMA, of_llama, COUNT(of_llama));
    check_target(HEADS_QWEN, of_qwen, COUNT(of_qwen));
    check_target(HEADS_META, of_meta, COUNT(of_meta));
}

/* Whatever the request's distribution is, it is the model's that counts. */
static void test_drawn(void **state) {
    (void)state;
    static const char *const specs[] = {"eagle:@eagle1-bias-bin,depth=4", "dflash:@dflashspec-d2t,depth=4", "dspark:@dspark-rnn,depth=4"};
    const hunch_sampling sampling = {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .seed = 5};
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 2, HUNCH_PRECISION_NATIVE);
    for (size_t i = 0; i < COUNT(specs); i++) {
        check_spec(m, heads_spec(specs[i]), &sampling, HUNCH_VERIFY_RATIO);
        check_spec(m, heads_spec(specs[i]), &sampling, HUNCH_VERIFY_MATCH);
    }
    hunch_model_close(&m);
}

static void test_draft_model(void **state) {
    (void)state;
    const hunch_sampling sampling = {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .seed = 5};
    char spec[600];
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 2, HUNCH_PRECISION_NATIVE);
    snprintf(spec, sizeof spec, "model:%s,depth=4", data_path(HEADS_LLAMA));
    check_spec(m, spec, NULL, HUNCH_VERIFY_DEFAULT);
    check_spec(m, spec, &sampling, HUNCH_VERIFY_RATIO);
    check_spec(m, spec, &sampling, HUNCH_VERIFY_MATCH);
    hunch_model_close(&m);
}

/* ---- who has them, and when -------------------------------------------------------------------------------------------------- */

enum { TEXTS = 3, TOKENS = 12, MOST = 200 };

/* The drafts of an answer, round by round. */
typedef struct shown {
    int n;
    hunch_draft_node node[MOST];
} shown;

static void show(void *user, const hunch_round_report *r) {
    shown *s = user;
    for (int i = 0; i < r->rows - 1 && s->n < MOST; i++) s->node[s->n++] = r->node[i];
}

/* Answers to texts [first, first + n) at once; shown NULL: no callback sees their rounds. Returns how many drafts the last one had, of
 * which the record has their certainty if it was asked for. */
static int run_texts(hunch_engine *e, int first, int n, shown *out) {
    static hunch_token text[TEXTS][COUNT(prompt)];
    hunch_session *s[TEXTS];
    int drafts = 0;
    for (int i = first; i < first + n; i++) {
        hunch_request r;
        hunch_request_defaults(&r, e->model);
        for (size_t k = 0; k < COUNT(prompt); k++) text[i][k] = k == 0 ? 1 : prompt[k] + (hunch_token)(i * 3);
        r.prompt = text[i];
        r.n_prompt = COUNT(prompt) - (size_t)i;
        r.max_tokens = TOKENS;
        r.ignore_eos = true;
        r.on_round = out ? show : NULL;
        r.on_round_user = out ? &out[i] : NULL;
        must(hunch_session_open(&s[i], e, &r, err));
    }
    while (hunch_engine_running(e)) {
        must(hunch_engine_round(e, err));
        const hn_round_drafts *d = &s[first + n - 1]->round.drafts;
        drafts += d->n;
        for (int k = 0; k < d->n; k++) assert_true(out || (isnan(d->draft[k].certainty.margin) && isnan(d->draft[k].certainty.entropy)));
    }
    for (int i = first; i < first + n; i++) hunch_session_close(&s[i]);
    return drafts;
}

/* Where a round waits once nobody reads the logits of drafts, so these have none. */
static hunch_model *open_by_host(void) {
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 2, HUNCH_PRECISION_NATIVE);
    m->target.backend->one_wait = false;
    return m;
}

static const char *own_model(void) {
    static char spec[600];
    snprintf(spec, sizeof spec, "model:%s,depth=3", data_path(HEADS_LLAMA));
    return spec;
}

/* It costs a pass over a row's logits, which nobody pays who does not look. */
static void test_asked_for(void **state) {
    (void)state;
    static shown s[TEXTS];
    const char *const specs[] = {own_model(), heads_spec("eagle3:@eagle3-official-d2t,depth=3"), heads_spec("dspark:@dspark-rnn,depth=3"),
                                 heads_spec("peagle:@peagle-spec-2layers,depth=3,tree=best,topk=3,total=9"), "ngram,min=1"};
    hunch_model *m = open_by_host();
    for (size_t i = 0; i < COUNT(specs); i++) {
        hunch_engine *e = open_engine(m, specs[i], 1, 64, HUNCH_KV_DEFAULT, 16, 128);
        s[0].n = 0;
        assert_true(run_texts(e, 0, 1, s) > 0 && s[0].n > 0);
        for (int k = 0; k < s[0].n; k++)
            assert_true(isnan(s[0].node[k].margin) == (i == 4) && isnan(s[0].node[k].entropy) == (i == 4));
        assert_true(run_texts(e, 0, 1, NULL) > 0);
        hunch_engine_close(&e);
    }
    hunch_model_close(&m);
}

/* Other texts in the drafters' passes change no bit of it. */
static void test_company(void **state) {
    (void)state;
    static const char *const forms[] = {"domino:@domino-early,depth=4,pool=100", "dspark:@dspark-rnn,depth=3",
                                        "hydra:@hydra-prefix,depth=3", "eagle:@eagle2-nobias-gqa,depth=3,tree=dynamic,topk=3,total=9"};
    hunch_model *m = open_by_host();
    for (size_t f = 0; f <= COUNT(forms); f++) {
        static shown alone[TEXTS], together[TEXTS];
        hunch_engine *e = open_engine(m, f < COUNT(forms) ? heads_spec(forms[f]) : own_model(), TEXTS, 64, HUNCH_KV_DEFAULT, 16, 128);
        for (int i = 0; i < TEXTS; i++) {
            alone[i].n = together[i].n = 0;
            run_texts(e, i, 1, alone);
        }
        run_texts(e, 0, TEXTS, together);
        for (int i = 0; i < TEXTS; i++) {
            assert_true(alone[i].n > 0 && alone[i].n == together[i].n);
            for (int k = 0; k < alone[i].n; k++) {
                const hunch_draft_node *a = &alone[i].node[k], *b = &together[i].node[k];
                assert_true(a->token == b->token && a->margin == b->margin && a->entropy == b->entropy);
            }
        }
        hunch_engine_close(&e);
    }
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heads), cmocka_unit_test(test_drawn), cmocka_unit_test(test_draft_model),
                                       cmocka_unit_test(test_asked_for), cmocka_unit_test(test_company)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
