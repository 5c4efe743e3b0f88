/* SPDX-License-Identifier: Apache-2.0 */
/* tree_shape_test.c - the published trees by name are those of their releases (tests/data/trees); files of paths give the same tree in
 * any order; files that are not trees are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "draft/shape/head_tree.h"
#include "format/bytes_for_tests.h" /* last: it defines a type "bytes" */

static int at(const json_t *list, size_t i) {
    return (int)json_integer_value(json_array_get(list, i));
}

/* Compares node by node: the root is node 0 of the file, and is not in the shape. */
static void check_published(const json_t *t) {
    const json_t *parent = json_object_get(t, "parent"), *depth = json_object_get(t, "depth"), *rank = json_object_get(t, "rank");
    hn_shape s;
    bool expanded[HN_TREE_ROWS] = {false};
    int widest = 0, deepest = 0, of_level[HN_TREE_ROWS] = {0}, most = 0;
    hunch_error err;
    if (hn_shape_read(&s, json_string_value(json_object_get(t, "name")), &err) != HUNCH_OK) fail_msg("%s", err.message);
    assert_int_equal(s.n, json_array_size(parent) - 1);
    for (int i = 0; i < s.n; i++) {
        const size_t k = (size_t)i + 1;
        assert_int_equal(s.node[i].parent, at(parent, k) - 1);
        assert_int_equal(s.node[i].depth, at(depth, k));
        assert_int_equal(s.node[i].rank, at(rank, k));
        widest = at(rank, k) + 1 > widest ? at(rank, k) + 1 : widest;
        deepest = at(depth, k) > deepest ? at(depth, k) : deepest;
        if (!expanded[at(parent, k)]) of_level[at(depth, k)]++;
        expanded[at(parent, k)] = true;
    }
    for (int d = 2; d <= deepest; d++) most = of_level[d] > most ? of_level[d] : most; /* the root is expanded in any case */
    assert_int_equal(s.widest, widest);
    assert_int_equal(s.depth, deepest);
    assert_int_equal(s.most_expanded, most);
}

static void test_published(void **state) {
    char line[4096];
    int n = 0;
    (void)state;
    FILE *f = fopen(HUNCH_TEST_DATA "/trees/published.jsonl", "r");
    assert_non_null(f);
    for (; fgets(line, sizeof line, f); n++) {
        json_t *t = json_loads(line, 0, NULL);
        assert_non_null(t);
        check_published(t);
        json_decref(t);
    }
    assert_int_equal(n, 10);
    fclose(f);
}

static hunch_status read_text(hn_shape *s, const char *text, hunch_error *err) {
    const char *path = test_path("tree.json");
    test_file_write(path, text, strlen(text));
    return hn_shape_read(s, path, err);
}

static void test_files(void **state) {
    static const char *const same[] = {"{\"paths\": [[0], [1], [0, 2], [0, 2, 1]]}", "[[0, 2, 1], [1], [0, 2], [0]]",
                                       "{\"name\": \"x\", \"paths\": [[0, 2], [0, 2, 1], [0], [1]], \"more\": 3}",
                                       "{\"nodes\": [{\"parent\": 1, \"rank\": 1}, {\"parent\": 3, \"rank\": 2}, "
                                       "{\"parent\": -1, \"rank\": 1}, {\"parent\": -1, \"rank\": 0}]}"};
    hunch_error err;
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        hn_shape s;
        if (read_text(&s, same[i], &err) != HUNCH_OK) fail_msg("%s", err.message);
        assert_int_equal(s.n, 4);
        assert_true(s.node[0].parent == -1 && s.node[0].rank == 0 && s.node[0].depth == 1);
        assert_true(s.node[1].parent == -1 && s.node[1].rank == 1 && s.node[1].depth == 1);
        assert_true(s.node[2].parent == 0 && s.node[2].rank == 2 && s.node[2].depth == 2);
        assert_true(s.node[3].parent == 2 && s.node[3].rank == 1 && s.node[3].depth == 3);
        assert_true(s.widest == 3 && s.depth == 3 && s.most_expanded == 1);
    }
}

/* The deepest and the largest tree that a file may have. */
static void test_limits(void **state) {
    char text[20000] = "[";
    hunch_error err;
    hn_shape s;
    (void)state;
    for (int n = 1; n <= HN_TREE_ROWS; n++) { /* a chain; the last is one too long */
        for (int i = 0; i < n; i++) sprintf(text + strlen(text), "%s0%s", i ? "," : n > 1 ? ",[" : "[", i == n - 1 ? "]" : "");
        if (n < HN_TREE_ROWS - 1) continue;
        const size_t end = strlen(text);
        strcpy(text + end, "]");
        assert_int_equal(read_text(&s, text, &err), n < HN_TREE_ROWS ? HUNCH_OK : HUNCH_REFUSED);
        if (n < HN_TREE_ROWS) assert_true(s.n == n && s.depth == n && s.widest == 1 && s.most_expanded == 1);
        text[end] = 0;
    }
}

static void test_refused(void **state) {
    static const struct {
        const char *text, *says;
    } cases[] = {{"", "not readable as JSON"},
                 {"[[0], [1]", "not readable as JSON"},
                 {"{}", "expected a list \"paths\""},
                 {"[]", "expected a list \"paths\""},
                 {"{\"paths\": 3}", "expected a list \"paths\""},
                 {"{\"paths\": {\"0\": [0]}}", "expected a list \"paths\""},
                 {"[[0], 1]", "path 1: expected a list of"},
                 {"[[0], []]", "path 1: expected a list of"},
                 {"[[0], [0, -1]]", "path 1: expected a list of"},
                 {"[[0], [0, 64]]", "path 1: expected a list of"},
                 {"[[0], [0, 1e0]]", "path 1: expected a list of"},
                 {"[[0], [\"1\"]]", "path 1: expected a list of"},
                 {"[[0], [4294967296]]", "path 1: expected a list of"},
                 {"[[0], [1, 0, 0]]", "path [1, 0, 0] has no parent, expected a path of its first 2 ranks too"},
                 {"[[1, 0], [0]]", "path [1, 0] has no parent, expected a path of its first 1 rank too"},
                 {"[[0], [1], [0]]", "path [0] is there twice"},
                 {"{\"nodes\": []}", "\"nodes\": expected a list of 1 to 63 nodes"},
                 {"{\"nodes\": {}}", "\"nodes\": expected a list of 1 to 63 nodes"},
                 {"{\"nodes\": [0]}", "node 0: expected \"parent\""},
                 {"{\"nodes\": [{\"parent\": -1}]}", "node 0: expected \"parent\""},
                 {"{\"nodes\": [{\"parent\": -1, \"rank\": 64}]}", "and \"rank\", 0 to 63"},
                 {"{\"nodes\": [{\"parent\": -1, \"rank\": 0}, {\"parent\": 2, \"rank\": 0}]}",
                  "node 1: expected \"parent\", a node of 0 to 1"},
                 {"{\"nodes\": [{\"parent\": -2, \"rank\": 0}]}", "node 0: expected \"parent\""},
                 {"{\"nodes\": [{\"parent\": 0, \"rank\": 0}]}", "node 0 is its own ancestor"},
                 {"{\"nodes\": [{\"parent\": -1, \"rank\": 0}, {\"parent\": 2, \"rank\": 0}, {\"parent\": 1, \"rank\": 0}]}",
                  "node 1 is its own ancestor"},
                 {"{\"nodes\": [{\"parent\": -1, \"rank\": 0}, {\"parent\": 0, \"rank\": 1}, {\"parent\": 0, \"rank\": 1}]}",
                  "path [0, 1] is there twice"}};
    hunch_error err;
    hn_shape s;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (read_text(&s, cases[i].text, &err) != HUNCH_REFUSED || !strstr(err.message, cases[i].says))
            fail_msg("%s: %s", cases[i].text, err.message);
    assert_int_equal(hn_shape_read(&s, "no_such_tree", &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "mc_sim_7b_63, vicuna_7b_stage2"));
    assert_non_null(strstr(err.message, "eagle_mc_sim_7b_63"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published), cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_limits), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
