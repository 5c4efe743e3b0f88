/* SPDX-License-Identifier: Apache-2.0 */
/* golden_steps_test.c - heads with weights for each position beyond chains: the tokens of Medusa's published tree, the
 * best suffixes of IBM's speculator, and blockwise parallel decoding (Stern et al. 2018, 1811.03115) in Medusa's form,
 * whose rounds follow from the plain text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "golden/golden.h"
#include "random_head.h"
#include "random_steps.h"

enum { MOST_TEXT = 64, STEPS = 3, MOST_NODES = 64 };

static json_t *golden_of(const char *name, char target[600]) {
    char path[200];
    snprintf(path, sizeof path, "goldens-heads/%s/golden.json", name);
    json_t *g = json_load_file(data_path(path), 0, NULL);
    assert_non_null(g);
    snprintf(path, sizeof path, "goldens-heads/%s/%s", name, json_string_value(json_object_get(g, "target")));
    snprintf(target, 600, "%s", data_path(path));
    return g;
}

/* The tree that a spec drafts in a golden's round. */
static hunch_draft_result tree_of(hunch_model *m, const json_t *g, const char *spec, int round, int depth) {
    hunch_token ids[MOST_TEXT];
    hunch_draft_result r;
    const size_t n = ids_of(json_object_get(json_array_get(json_object_get(g, "rounds"), 0), "context"), ids);
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 256);
    must(hunch_draft(e, ids, n, depth, round ? (int)json_integer_value(json_object_get(g, "accept")) : -1, NULL, NULL, NULL, &r, err));
    assert_true(r.is_tree && r.n > 0 && r.n < MOST_NODES);
    hunch_engine_close(&e);
    return r;
}

/* ---- Medusa's tree ---------------------------------------------------------------------------------------------------------- */

static void test_static_tree(void **state) {
    (void)state;
    char target[600], spec[700];
    json_t *g = golden_of("medusa-4heads", target);
    snprintf(spec, sizeof spec, "medusa:%s,tree=mc_sim_7b_63", data_path("goldens-heads/medusa-4heads/head"));
    hunch_model *m = open_model(target, "best", 1, HUNCH_PRECISION_F32);
    for (int round = 0; round < 2; round++) {
        const json_t *want = json_object_get(json_array_get(json_object_get(g, "rounds"), (size_t)round), "static_tree");
        const json_t *tokens = json_object_get(want, "tokens"), *position = json_object_get(want, "position");
        hunch_draft_result r = tree_of(m, g, spec, round, 4);
        int depth[MOST_NODES];
        assert_int_equal(r.n + 1, json_array_size(tokens)); /* the reference's begin with the root */
        assert_int_equal(r.root, json_integer_value(json_array_get(tokens, 0)));
        for (int i = 0; i < r.n; i++) {
            depth[i] = r.node[i].parent < 0 ? 1 : depth[r.node[i].parent] + 1;
            assert_int_equal(r.node[i].token, json_integer_value(json_array_get(tokens, (size_t)i + 1)));
            assert_int_equal(depth[i], json_integer_value(json_array_get(position, (size_t)i + 1)));
        }
        hunch_free(r.node);
    }
    hunch_model_close(&m);
    json_decref(g);
}

/* ---- the speculator's best suffixes ------------------------------------------------------------------------------------------ */

/* Every path of ranks below these. */
static const char *write_paths(const int *ranks) {
    static char text[4000];
    size_t n = (size_t)snprintf(text, sizeof text, "[");
    for (int a = 0; a < ranks[0]; a++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s[%d]", a ? "," : "", a);
        for (int b = 0; b < ranks[1]; b++) {
            n += (size_t)snprintf(text + n, sizeof text - n, ",[%d,%d]", a, b);
            for (int c = 0; c < ranks[2]; c++) n += (size_t)snprintf(text + n, sizeof text - n, ",[%d,%d,%d]", a, b, c);
        }
    }
    snprintf(text + n, sizeof text - n, "]");
    test_file_write(test_path("paths.json"), text, strlen(text));
    return test_path("paths.json");
}

/* The most probable path of full length that is not taken; -1: there is none. */
static int best_leaf(const hunch_draft_result *r, const bool *taken) {
    int best = -1;
    for (int i = 0; i < r->n; i++) {
        int depth = 1;
        for (int k = r->node[i].parent; k >= 0; k = r->node[k].parent) depth++;
        if (depth == STEPS && !taken[i] && (best < 0 || r->node[i].logp > r->node[best].logp)) best = i;
    }
    return best;
}

static void test_candidates(void **state) {
    (void)state;
    static const int ranks[STEPS] = {4, 3, 2}; /* top_k_tokens_per_head of its config.json */
    char target[600], spec[1300];
    json_t *g = golden_of("mlp-untied-narrow", target);
    snprintf(spec, sizeof spec, "mlp:%s,tree=%s", data_path("goldens-heads/mlp-untied-narrow/head"), write_paths(ranks));
    hunch_model *m = open_model(target, "best", 1, HUNCH_PRECISION_F32);
    for (int round = 0; round < 2; round++) {
        const json_t *want = json_object_get(json_array_get(json_object_get(g, "rounds"), (size_t)round), "candidates"), *path;
        hunch_draft_result r = tree_of(m, g, spec, round, STEPS);
        bool taken[MOST_NODES] = {false};
        size_t i;
        assert_int_equal(r.n, 4 + 12 + 24);
        assert_int_equal(json_array_size(want), 5);
        json_array_foreach (want, i, path) {
            int at = best_leaf(&r, taken);
            taken[at] = true;
            for (int k = STEPS - 1; k >= 0; k--, at = r.node[at].parent)
                assert_int_equal(r.node[at].token, json_integer_value(json_array_get(path, (size_t)k)));
        }
        hunch_free(r.node);
    }
    hunch_model_close(&m);
    json_decref(g);
}

/* ---- states between levels ----------------------------------------------------------------------------------------------------- */

/* A level continues from the whole states that the one before it kept for it: a tree has the same bits whatever was drafted before. */
static void check_states(const char *kind, const char *name) {
    static const hunch_token other[] = {9, 310, 44, 1, 77, 250, 33}, own[] = {5, 77, 301, 9, 44, 260, 133, 8};
    char target[600], spec[1300];
    json_t *g = golden_of(name, target);
    snprintf(spec, sizeof spec, "%s:%s/goldens-heads/%s/head,tree=dynamic,topk=4,total=24", kind, HUNCH_TEST_DATA, name);
    hunch_model *m = open_model(target, "best", 1, HUNCH_PRECISION_F32);
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 256);
    hunch_draft_result r[3];
    for (int i = 0; i < 3; i++) must(hunch_draft(e, i == 1 ? other : own, i == 1 ? 7 : 8, 3, -1, NULL, NULL, NULL, &r[i], err));
    assert_int_equal(r[0].n, 24);
    assert_int_equal(r[2].n, 24);
    for (int i = 0; i < 24; i++)
        if (r[0].node[i].token != r[2].node[i].token || r[0].node[i].parent != r[2].node[i].parent ||
            r[0].node[i].logp != r[2].node[i].logp)
            fail_msg("%s: node %d is token %d, log p %.9g, and after another text token %d, log p %.9g", name, i, r[0].node[i].token,
                     r[0].node[i].logp, r[2].node[i].token, r[2].node[i].logp);
    for (int i = 0; i < 3; i++) hunch_free(r[i].node);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    json_decref(g);
}

static void test_states(void **state) {
    (void)state;
    check_states("hydra", "hydra-2blocks");
    check_states("hydra", "hydra-prefix");
    check_states("mlp", "mlp-tied-5");
    check_states("mlp", "mlp-arctic-lstm");
}

/* ---- blockwise parallel decoding ------------------------------------------------------------------------------------------- */

/* A feed-forward block with a residual for each position, and the model's own output matrix. The blocks are zero: every
 * position has the model's logits of the next one. */
static const char *write_blockwise(int hidden) {
    random_head h = {.config = json_pack("{s:s}", "model_type", "medusa")};
    char name[40];
    for (int k = 0; k < STEPS; k++) {
        for (int bias = 0; bias < 2; bias++) {
            snprintf(name, sizeof name, "%d.0.linear.%s", k, bias ? "bias" : "weight");
            head_floats(&h, "", name, hidden, bias ? 0 : hidden);
            memset(h.tensor[h.n - 1].data.at, 0, h.tensor[h.n - 1].data.size);
        }
    }
    head_write(&h, test_path("blockwise"));
    head_free(&h);
    return test_path("blockwise");
}

/* Rounds and accepted drafts computed from the text: a round's drafts repeat its root, and the longest prefix of them
 * that the model continues with is accepted. */
static void foretell(const answer *a, uint64_t *rounds, uint64_t *accepted) {
    for (size_t at = 0; at + 1 < a->n; ++*rounds) {
        size_t n = 0;
        while (n < STEPS && at + n + 2 < a->n && a->token[at + n + 1] == a->token[at]) n++;
        *accepted += n;
        at += n + 1;
    }
}

/* docs/writing-heads.md: "`medusa` in that form" */
static void test_blockwise(void **state) {
    (void)state;
    enum { TEXTS = 12 };
    char spec[700];
    uint64_t want = 0, rounds = 0, have = 0, passes = 0;
    hunch_model *m = open_model(data_path("goldens-heads/targets/qwen3-a"), "best", 1, HUNCH_PRECISION_NATIVE);
    snprintf(spec, sizeof spec, "medusa:%s", write_blockwise(m->target.arch.hidden));
    for (int i = 0; i < TEXTS; i++) {
        hunch_token prompt[4] = {1, (hunch_token)(30 + 37 * i), (hunch_token)(400 - 17 * i), (hunch_token)(5 + i)};
        answer plain = {0}, got = {0};
        hunch_request r;
        hunch_request_defaults(&r, m);
        r.prompt = prompt;
        r.n_prompt = 4;
        r.max_tokens = 60;
        r.ignore_eos = true;
        r.sampling.temperature = 0;
        for (int drafts = 0; drafts < 2; drafts++) {
            hunch_engine *e = open_engine(m, drafts ? spec : NULL, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
            run_requests(e, &r, 1, true, drafts ? &got : &plain);
            hunch_engine_close(&e);
        }
        assert_same(&plain, &got, "blockwise");
        foretell(&plain, &rounds, &want);
        have += got.accepted;
        passes += got.rounds;
        answer_free(&plain);
        answer_free(&got);
    }
    assert_int_equal(have, want);
    assert_int_equal(passes, rounds);
    assert_true(want > 20);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_static_tree), cmocka_unit_test(test_candidates),
                                       cmocka_unit_test(test_states), cmocka_unit_test(test_blockwise)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
