/* SPDX-License-Identifier: Apache-2.0 */
/* tree_pruned_test.c - DART's trees compared with those of its own search for the same levels and texts (tests/data/trees/dart.json,
 * tools/make_dart_trees.py), and properties of any tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/random.h"
#include "draft/shape/tree_pruned.h"
#include "draft/shape/trie_for_tests.h"

enum { MOST_NODES = 63 };
static hn_tokenizer *tokenizer;

static int ids_of(const json_t *list, int32_t *out) {
    const int n = (int)json_array_size(list);
    for (int i = 0; i < n; i++) out[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    return n;
}

static int int_of(const json_t *o, const char *key) {
    return (int)json_integer_value(json_object_get(o, key));
}

static void add_level(hn_pruned *t, const json_t *level, const hn_trie *trie, int32_t ends) {
    int32_t token[HN_PRUNED_TOKENS];
    float p[HN_PRUNED_TOKENS];
    const int n = (int)json_array_size(level);
    for (int i = 0; i < n; i++) {
        const json_t *one = json_array_get(level, (size_t)i);
        token[i] = (int32_t)json_integer_value(json_array_get(one, 0));
        p[i] = 0.7f * (float)json_number_value(json_array_get(one, 1)); /* of all tokens: these are a part of them */
    }
    hn_pruned_level(t, token, p, n, trie, ends);
}

/* The tokens from the root to a node. */
static int path_of(const hn_pruned *t, int at, int32_t *out) {
    int n = 0;
    for (int i = at; i >= 0; i = t->node[i].parent) n++;
    for (int i = at, k = n; i >= 0; i = t->node[i].parent) out[--k] = t->node[i].token;
    return n;
}

static void check_paths(const hn_pruned *t, const int *list, int n, const json_t *want, int number) {
    size_t i;
    const json_t *path;
    if (n != (int)json_array_size(want)) fail_msg("tree %d: %d nodes, expected %zu", number, n, json_array_size(want));
    json_array_foreach (want, i, path) {
        int32_t tokens[64], own[64];
        const int length = ids_of(path, tokens);
        bool found = false;
        for (int k = 0; k < n; k++)
            found |= path_of(t, list[k], own) == length && !memcmp(own, tokens, (size_t)length * sizeof *own);
        if (!found) fail_msg("tree %d: the path %s is not there", number, json_dumps(path, 0));
    }
}

static void check_case(const json_t *c, int number) {
    static trie_texts texts;
    const json_t *text, *levels = json_object_get(c, "levels"), *level;
    int32_t tokens[200];
    size_t i;
    hn_trie trie = {0};
    hn_pruned tree = {0};
    int list[MOST_NODES];
    texts.n = texts.tokens = 0;
    json_array_foreach (json_object_get(c, "texts"), i, text) trie_text(&texts, tokens, ids_of(text, tokens));
    if (texts.n) trie = trie_open(&texts, tokenizer, test_path("dart.trie"));
    assert_int_equal(hn_pruned_open(&tree, (int)json_array_size(levels), NULL), HUNCH_OK);
    for (int again = 0; again < 2; again++) {
        hn_pruned_start(&tree, tokens, ids_of(json_object_get(c, "prompt"), tokens));
        json_array_foreach (levels, i, level) add_level(&tree, level, texts.n ? &trie : NULL, int_of(c, "ends"));
        check_paths(&tree, list, hn_pruned_best(&tree, int_of(c, "total"), list), json_object_get(c, "paths"), number);
    }
    hn_pruned_close(&tree);
    hn_trie_close(&trie);
}

static void test_reference(void **state) {
    (void)state;
    json_t *all = json_load_file(HUNCH_TEST_DATA "/trees/dart.json", 0, NULL);
    const json_t *c;
    size_t i;
    assert_int_equal(json_array_size(all), 11);
    json_array_foreach (all, i, c) check_case(c, (int)i);
    json_decref(all);
}

/* Random levels with equal probabilities among them: no path twice, none without its beginning, none left out that is better than one
 * that is in the tree. */
static void test_any(void **state) {
    (void)state;
    uint64_t seed = 5;
    hn_pruned t = {0};
    assert_int_equal(hn_pruned_open(&t, 9, NULL), HUNCH_OK);
    for (int round = 0; round < 200; round++) {
        const int total = 1 + (int)(hn_splitmix(&seed) % MOST_NODES), levels = 1 + round % 9;
        int list[MOST_NODES];
        hn_pruned_start(&t, (const int32_t[]){1, 2, 3}, round % 4);
        for (int l = 0; l < levels; l++) {
            int32_t token[HN_PRUNED_TOKENS];
            float p[HN_PRUNED_TOKENS];
            const int n = (int)(hn_splitmix(&seed) % (HN_PRUNED_TOKENS + 1));
            for (int i = 0; i < n; i++) token[i] = i, p[i] = (float)(1 + (n - i) / 3) / 40;
            hn_pruned_level(&t, token, p, n, NULL, round % 2 ? 0 : -1);
        }
        const int n = hn_pruned_best(&t, total, list);
        assert_int_equal(n, total < t.n ? total : t.n);
        for (int i = 0, in = 0; i < t.n; i++) {
            if (in < n && list[in] == i) {
                bool there = t.node[i].parent < 0;
                for (int k = 0; k < in; k++) there |= list[k] == t.node[i].parent;
                assert_true(there);
                in++;
                continue;
            }
            for (int k = 0; k < n; k++)
                assert_true(t.node[list[k]].score > t.node[i].score || (t.node[list[k]].score == t.node[i].score && list[k] < i));
        }
        for (int i = 0; i < t.n; i++)
            for (int k = 0; k < i; k++) assert_true(t.node[i].parent != t.node[k].parent || t.node[i].token != t.node[k].token);
    }
    hn_pruned_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference), cmocka_unit_test(test_any)};
    tokenizer = trie_tokenizer();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hn_tokenizer_close(&tokenizer);
    return failed;
}
