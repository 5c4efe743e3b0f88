/* SPDX-License-Identifier: Apache-2.0 */
/* golden_assistants_test.c - drafts of Gemma 4's assistants, in f32 precision, compared with those of transformers' modules: six tokens
 * after prompts of 1 to 100 tokens, the logits of each level, and the rounds of whole texts; from folders and from GGUF files, of the
 * assistant and of its target. Sources of the goldens: tests/data/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "golden/golden.h"
#include "model/folder_for_tests.h"

enum { MOST_TEXT = 256, VOCAB = 512, DEPTH = 6, ROUND = 4 };

static const char *const pairs[][2] = {{"goldens/gemma4-e", "goldens/gemma4-e-assistant"},
                                       {"goldens/gemma4-keqv", "goldens/gemma4-keqv-assistant"},
                                       {"goldens/gemma4-mixture", "goldens/gemma4-mixture-assistant"}};
enum { PAIRS = sizeof pairs / sizeof *pairs };

typedef struct golden {
    const char *name;
    json_t *json;
    hn_source *tensors;
    hunch_engine *e;
} golden;

typedef struct taken {
    float logits[DEPTH][VOCAB];
    int levels;
} taken;

static void take_logits(void *user, int level, const float *logits, int vocab) {
    taken *t = user;
    assert_int_equal(vocab, VOCAB);
    assert_int_equal(level, t->levels);
    memcpy(t->logits[t->levels++], logits, sizeof t->logits[0]);
}

/* Drafts after n tokens; the root and the tokens are those of the reference. */
static void check_drafts(const golden *g, const hunch_token *text, size_t n, const json_t *want, int depth, taken *t) {
    hunch_draft_result r;
    t->levels = 0;
    must(hunch_draft(g->e, text, n, depth, -1, NULL, take_logits, t, &r, err));
    assert_int_equal(r.root, json_integer_value(json_object_get(want, "bonus")));
    assert_int_equal(r.n, depth);
    for (int i = 0; i < depth; i++)
        if (r.node[i].token != json_integer_value(json_array_get(json_object_get(want, "drafts"), (size_t)i)))
            fail_msg("%s: after %zu tokens draft %d is %d", g->name, n, i, r.node[i].token);
    hunch_free(r.node);
}

/* Of tokens that were not chosen the reference has one value below all others, and we have none. */
static void check_logits(const golden *g, int prompt, const taken *t, bool clusters) {
    char name[40];
    snprintf(name, sizeof name, "draft_logits.%d", prompt);
    const golden_tensor want = get_golden(g->tensors, name);
    assert_int_equal(want.n, DEPTH * VOCAB);
    for (int level = 0; level < DEPTH; level++) {
        const float *w = want.data + level * VOCAB;
        float least = w[0];
        double square = 0, sum = 0;
        int chosen = 0;
        for (int i = 0; i < VOCAB; i++) {
            least = fminf(least, w[i]);
            sum += (double)w[i];
            square += (double)w[i] * (double)w[i];
        }
        const double deviation = sqrt(square / VOCAB - sum / VOCAB * (sum / VOCAB));
        for (int i = 0; i < VOCAB; i++) {
            const bool is = !clusters || w[i] > least;
            chosen += is;
            if (is ? !(fabs((double)(t->logits[level][i] - w[i])) <= 1e-3 * deviation) : t->logits[level][i] > -INFINITY)
                fail_msg("%s: prompt %d, level %d: logit %d is %g, reference %g", g->name, prompt, level, i, (double)t->logits[level][i],
                         (double)w[i]);
        }
        assert_int_equal(chosen, clusters ? VOCAB / 4 : VOCAB);
    }
}

static void check_prompts(const golden *g, bool clusters) {
    const json_t *prompts = json_object_get(g->json, "prompts");
    hunch_token text[MOST_TEXT];
    taken t;
    for (size_t i = 0; i < json_array_size(prompts); i++) {
        const json_t *p = json_array_get(prompts, i);
        const size_t n = ids_of(json_object_get(p, "ids"), text);
        assert_int_equal(n, json_integer_value(json_object_get(p, "p"))); /* the position of all queries */
        check_drafts(g, text, n, p, DEPTH, &t);
        check_logits(g, (int)i, &t, clusters);
    }
    assert_int_equal(json_array_size(prompts), 5);
}

/* The text of a round begins where the round before and what was accepted in it end. */
static void check_rounds(const golden *g) {
    const json_t *all = json_object_get(g->json, "rounds"), *list;
    const char *prompt;
    json_object_foreach((json_t *)(uintptr_t)all, prompt, list) {
        hunch_token text[MOST_TEXT];
        size_t n = ids_of(json_object_get(json_array_get(json_object_get(g->json, "prompts"), (size_t)(prompt[0] - '0')), "ids"), text);
        taken t;
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *round = json_array_get(list, i), *drafts = json_object_get(round, "drafts");
            const size_t accepted = (size_t)json_integer_value(json_object_get(round, "accepted"));
            assert_int_equal(n, json_integer_value(json_object_get(round, "n")));
            check_drafts(g, text, n, round, ROUND, &t);
            assert_true(n + accepted + 1 < MOST_TEXT);
            text[n++] = (hunch_token)json_integer_value(json_object_get(round, "bonus"));
            for (size_t k = 0; k < accepted; k++) text[n++] = (hunch_token)json_integer_value(json_array_get(drafts, k));
        }
    }
    assert_int_equal(json_object_size(all), 2);
}

static void check_pair(int pair, const char *target, const char *spec) {
    char path[200];
    golden g = {.name = pairs[pair][1]};
    snprintf(path, sizeof path, "%s/golden_assistant.json", pairs[pair][1]);
    g.json = json_load_file(data_path(path), 0, NULL);
    assert_non_null(g.json);
    snprintf(path, sizeof path, "%s/golden_assistant.safetensors", pairs[pair][1]);
    must(hn_source_open_safetensors(&g.tensors, data_path(path), err));
    hunch_model *m = open_model(target, "best", test_threads(), HUNCH_PRECISION_F32);
    g.e = open_engine(m, spec, 1, 16, HUNCH_KV_F32, 16, MOST_TEXT);
    check_prompts(&g, pair != 1);
    check_rounds(&g);
    hunch_engine_close(&g.e);
    hunch_model_close(&m);
    hn_source_close(&g.tensors);
    json_decref(g.json);
}

static void test_folders(void **state) {
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        char spec[600];
        snprintf(spec, sizeof spec, "%s,depth=6", data_path(pairs[i][1])); /* its kind is found */
        check_pair(i, data_path(pairs[i][0]), spec);
    }
}

static void test_ggufs(void **state) {
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        char spec[600], target[600];
        snprintf(target, sizeof target, "%s", test_path("target.gguf"));
        snprintf(spec, sizeof spec, "assistant:%s,depth=6", test_path("assistant.gguf"));
        must(hunch_convert(data_path(pairs[i][0]), target, NULL, err));
        must(hunch_convert(data_path(pairs[i][1]), test_path("assistant.gguf"), NULL, err));
        check_pair(i, target, spec);
    }
}

/* transformers 5 saves the heads of full layers under another key. */
static void test_saved_again(void **state) {
    (void)state;
    char spec[600];
    folder_write_changed("gemma4-keqv-assistant", "\"global_head_dim\": 32",
                         "\"per_layer_config\": {\"3\": {\"head_dim\": 32, \"num_key_value_heads\": 1}}");
    snprintf(spec, sizeof spec, "%s,depth=6", test_path("changed"));
    check_pair(1, data_path(pairs[1][0]), spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folders), cmocka_unit_test(test_saved_again), cmocka_unit_test(test_ggufs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
