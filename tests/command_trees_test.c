/* SPDX-License-Identifier: Apache-2.0 */
/* command_trees_test.c - output of trees: `run` and `compare` --json --trees, `run --why`, the drawing of `hunch draft`; ranks counted by
 * `compare`, and the trees fitted to them. */
#include "command.h"

#define EAGLE "eagle:" HUNCH_TEST_DATA "/heads/stories-eagle"
#define ASK "-m", STORIES, "-p", "Once upon a time there was", "--ignore-eos"

/* ---- trees of rounds ---------------------------------------------------------------------------------------------------- */

static int at(const json_t *list, size_t i) {
    return (int)json_integer_value(json_array_get(list, i));
}

/* The rounds together give the text: a root, its path, the next round's root. Parents first, siblings distinct, ranks in order. */
static void check_tree(const json_t *tree, const json_t *tokens, size_t *emitted, bool last, long long *models) {
    const json_t *nodes = get(tree, "nodes"), *path = get(tree, "path");
    assert_int_equal(int_of(tree, "root"), at(tokens, *emitted));
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *n = json_array_get(nodes, i);
        long long rank = 0;
        assert_true(int_of(n, "parent") >= -1 && int_of(n, "parent") < (long long)i);
        for (size_t k = 0; k < i; k++) {
            const json_t *o = json_array_get(nodes, k);
            if (int_of(o, "parent") != int_of(n, "parent")) continue;
            assert_true(int_of(o, "token") != int_of(n, "token"));
            if (int_of(o, "drafter") != int_of(n, "drafter")) continue;
            rank++;
            assert_true(int_of(o, "rank") < int_of(n, "rank"));
        }
        assert_true(int_of(n, "rank") >= rank); /* more if an earlier drafter had proposed one of its candidates */
        assert_true(real_of(n, "estimate") >= 0 && real_of(n, "estimate") <= 1);
        if (json_is_null(get(n, "margin"))) { /* a drafter without a model */
            assert_true(json_is_null(get(n, "entropy")));
            continue;
        }
        assert_true(real_of(n, "margin") >= 0 && real_of(n, "margin") <= 1 && real_of(n, "entropy") >= 0);
        ++*models;
    }
    for (size_t i = 0; i < json_array_size(path); i++) {
        const json_t *n = json_array_get(nodes, (size_t)at(path, i));
        assert_int_equal(int_of(n, "parent"), i ? at(path, i - 1) : -1);
        assert_int_equal(int_of(n, "token"), at(tokens, *emitted + 1 + i));
    }
    *emitted += json_array_size(path) + 1;
    if (last) assert_true(*emitted + 1 >= json_array_size(tokens));
}

static void test_run(void **state) {
    (void)state;
    static const char *const drafts[] = {EAGLE ",tree=dynamic,total=20", EAGLE ",depth=3", EAGLE ",tree=opt+ngram",
                                         "auto"};
    for (int d = 0; d < 4; d++) {
        json_t *j = json_of("run", ASK, "-n", "60", "--draft", drafts[d], "--trees");
        const json_t *trees = get(j, "trees"), *tree;
        size_t i, emitted = 0;
        long long accepted = 0, drafted = 0, models = 0;
        assert_int_equal(json_array_size(trees), int_of(j, "rounds"));
        json_array_foreach (trees, i, tree) {
            check_tree(tree, get(j, "tokens"), &emitted, i + 1 == json_array_size(trees), &models);
            accepted += (long long)json_array_size(get(tree, "path"));
            drafted += (long long)json_array_size(get(tree, "nodes"));
        }
        assert_int_equal(accepted, int_of(j, "accepted"));
        assert_true(drafted <= int_of(j, "drafted") && (d > 1 || drafted == int_of(j, "drafted"))); /* rows may be shared */
        assert_true(d == 3 || accepted > 20);
        assert_true(d > 1 ? models < drafted : models == drafted);
        json_decref(j);
        j = json_of("run", ASK, "-n", "20", "--draft", drafts[d], "--why");
        assert_true(json_object_get(j, "trees") == NULL && json_object_get(j, "why"));
        json_decref(j);
    }
    refused(HUNCH_USAGE, "--trees needs --json", "run", ASK, "--draft", "none", "--trees");
    refused(HUNCH_USAGE, "--trees needs --json", "compare", ASK, "--draft", "ngram", "--trees");
}

/* ---- ranks -------------------------------------------------------------------------------------------------------------- */

enum { DEPTHS = 8, RANKS = 16 };
typedef struct counts {
    int asked[DEPTHS][RANKS], accepted[DEPTHS][RANKS];
} counts;

/* Counts the candidates at the rows that were reached. */
static void count_tree(const json_t *tree, counts *c) {
    const json_t *nodes = get(tree, "nodes"), *path = get(tree, "path");
    for (size_t d = 0; d <= json_array_size(path); d++) {
        const int row = d ? at(path, d - 1) : -1, next = d < json_array_size(path) ? at(path, d) : -1;
        for (size_t i = 0; i < json_array_size(nodes); i++) {
            const json_t *n = json_array_get(nodes, i);
            if (int_of(n, "parent") != row) continue;
            c->asked[d][int_of(n, "rank")]++;
            c->accepted[d][int_of(n, "rank")] += (int)i == next;
        }
    }
}

static void check_ranks(const json_t *ranks, const counts *c) {
    int asked = 0, wanted = 0;
    for (size_t d = 0; d < DEPTHS; d++)
        for (size_t r = 0; r < RANKS; r++) {
            const json_t *depth = json_array_get(ranks, d);
            assert_int_equal(at(json_object_get(depth, "asked"), r), c->asked[d][r]);
            assert_int_equal(at(json_object_get(depth, "accepted"), r), c->accepted[d][r]);
            wanted += c->asked[d][r];
        }
    for (size_t d = 0; d < json_array_size(ranks); d++)
        for (size_t r = 0; r < json_array_size(get(json_array_get(ranks, d), "asked")); r++)
            asked += at(get(json_array_get(ranks, d), "asked"), r);
    assert_true(asked == wanted && asked > 100);
}

static void test_ranks(void **state) {
    (void)state;
    counts c = {0};
    size_t p, i;
    json_t *j = json_of("compare", "-m", STORIES, "-f", prompts_write(), "-n", "40", "--ignore-eos", "--draft",
                        EAGLE ",tree=mc_sim_7b_63", "--draft", "suffix+ngram", "--trees"),
           *prompt, *tree;
    const json_t *method = json_array_get(get(j, "methods"), 0);
    json_array_foreach (get(method, "per_prompt"), p, prompt)
        json_array_foreach (get(prompt, "trees"), i, tree) count_tree(tree, &c);
    check_ranks(get(method, "ranks"), &c);
    assert_true(json_is_null(get(json_array_get(get(j, "methods"), 1), "ranks")));
    json_write("ranks.json", j);
    json_decref(j);
    /* a tree fitted to them: its nodes are the likeliest paths, so the first has rank 0 and no node has a rank that was
     * never right */
    char spec[900];
    static const char *const forms[] = {"fitted", "sequoia"};
    for (int f = 0; f < 2; f++) {
        snprintf(spec, sizeof spec, EAGLE ",tree=%s,ranks=%s,total=12", forms[f], path_of("ranks.json"));
        j = json_of("run", ASK, "-n", "40", "--draft", spec, "--trees");
        const json_t *nodes = get(json_array_get(get(j, "trees"), 0), "nodes");
        assert_int_equal(json_array_size(nodes), 12);
        assert_int_equal(int_of(json_array_get(nodes, 0), "rank"), 0);
        assert_true(int_of(j, "accepted") > 20);
        json_decref(j);
    }
    j = json_of("compare", ASK, "-n", "20", "--draft", EAGLE);
    prompt = json_array_get(get(json_array_get(get(j, "methods"), 0), "per_prompt"), 0);
    assert_true(json_object_get(prompt, "trees") == NULL);
    json_decref(j);
}

/* ---- pictures ----------------------------------------------------------------------------------------------------------- */

static int count_of(const char *text, const char *what) {
    int n = 0;
    for (const char *c = text; (c = strstr(c, what)); c += strlen(what)) n++;
    return n;
}

/* Characters of the longest line. */
static int widest(const char *text) {
    int most = 0, n = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '\n') n = 0;
        else if ((*c & 0xC0) != 0x80) n++;
        if (n > most) most = n;
    }
    return most;
}

/* Each node is printed once, on its own line or beside its siblings. */
static void test_picture(void **state) {
    (void)state;
    static const char *const trees[] = {"mc_sim_7b_63", "dynamic,total=30", "dynamic,topk=16,total=63"};
    static const int nodes[] = {63, 30, 63};
    for (int t = 0; t < 3; t++) {
        char spec[500];
        snprintf(spec, sizeof spec, EAGLE ",tree=%s", trees[t]);
        result r = command("draft", "-m", STORIES, "-p", "Once upon a time there was", "--draft", spec);
        char *legend = strstr(r.out, "\n%");
        assert_true(r.code == 0 && legend != NULL);
        *legend = 0;
        assert_int_equal(count_of(r.out, " %"), nodes[t]);
        assert_int_equal(count_of(r.out, "·") + count_of(r.out, "├─") + count_of(r.out, "└─") >= nodes[t] - 6,
                         1); /* long lines continue */
        assert_true(count_of(r.out, "·") > 2 && widest(r.out) <= 110 && count_of(r.out, "✓") > 0);
        result_free(&r);
    }
}

static void test_picture_exactly(void **state) {
    (void)state;
    const char *file = text_write(
        "tree.json", "[[0], [1], [2], [3], [4], [0, 0], [0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2], [1, 0], [1, 1]]");
    static const char want[] = "\" little\"   the model's token after the text\n"
                               "├─ \" g\"      64 %  ✓\n"
                               "│  ├─ \"ir\"   95 %  ✓\n"
                               "│  └─ \"o\"     2 %\n"
                               "│     └─ \"il\" 34 % · \"ar\" 15 % · \"ir\" 9 %\n"
                               "├─ \" b\"      24 %\n"
                               "│  ├─ \"o\"    63 %\n"
                               "│  └─ \"ir\"   20 %\n"
                               "└─ \" c\" 2 % · \" do\" 1 % · \" p\" 1 %\n";
    char spec[500];
    snprintf(spec, sizeof spec, EAGLE ",tree=%s", file);
    result r = command("draft", "-m", STORIES, "-p", "Once upon a time, there was a", "--draft", spec);
    r.out[strlen(want) < strlen(r.out) ? strlen(want) : 0] = 0;
    assert_string_equal(r.out, want);
    result_free(&r);
}

/* A chain is one line per round; a tree with branches is drawn below it, with the accepted nodes marked. */
static void test_why(void **state) {
    (void)state;
    result r = command("run", ASK, "-n", "30", "--draft", EAGLE ",tree=dynamic,total=12", "--why");
    assert_int_equal(r.code, 0);
    const int rounds = count_of(r.err, "\nround ");
    assert_true(rounds > 3 && count_of(r.err, "\n    \"") >= rounds - 1 && count_of(r.err, "✓") > 10);
    assert_non_null(strstr(r.err, "\n    └─ ") ? strstr(r.err, "\n    └─ ") : strstr(r.err, "\n    ├─ "));
    result_free(&r);
    r = command("run", ASK, "-n", "30", "--draft", EAGLE, "--why");
    assert_true(r.code == 0 && count_of(r.err, "─") == 0 && count_of(r.err, "\nround ") > 3);
    result_free(&r);
}

/* A page of its own: nothing from elsewhere, a part for every round, text of tokens escaped. Beside it the answer is compared with plain
 * decoding. */
static void test_page(void **state) {
    (void)state;
    const char *page = path_of("why.html");
    result r = command("run", ASK, "-n", "30", "--draft", EAGLE "+ngram", "--why-html", page, "--verify-exact");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "all 30 tokens and their logits are those of plain decoding"));
    result_free(&r);
    char *html = file_read(page, NULL);
    json_t *j = json_of("run", ASK, "-n", "30", "--draft", EAGLE "+ngram");
    assert_int_equal(count_of(html, "<div class=\"round\""), int_of(j, "rounds"));
    const int own = count_of(html, "class=\"n own\"") - 1, right = count_of(html, "class=\"n ok\"") - 1; /* one is in the key */
    assert_int_equal(own, int_of(j, "rounds")); /* the token that the model writes itself */
    assert_int_equal(count_of(html, "<li>") - count_of(html, "class=\"n root\"") - own, int_of(j, "drafted"));
    assert_int_equal(right, int_of(j, "accepted"));
    assert_true(count_of(html, ", margin ") > 10 && count_of(html, ", margin ") <= int_of(j, "drafted")); /* those of the head */
    assert_true(!strstr(html, "<script") && !strstr(html, "http") && !strstr(html, "src="));
    assert_non_null(strstr(html, "How this answer was guessed"));
    json_decref(j);
    free(html);
    static const char *const refused[][2] = {{"--verify", "ratio"}, {"--lossy-top-m", "2"}};
    for (int i = 0; i < 2; i++) {
        r = command("run", ASK, "-n", "5", "--verify-exact", refused[i][0], refused[i][1]);
        assert_int_equal(r.code, 2);
        assert_non_null(strstr(r.err, "--verify-exact contradicts"));
        result_free(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_page), cmocka_unit_test(test_run),     cmocka_unit_test(test_ranks),
                                       cmocka_unit_test(test_picture), cmocka_unit_test(test_picture_exactly),
                                       cmocka_unit_test(test_why)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
