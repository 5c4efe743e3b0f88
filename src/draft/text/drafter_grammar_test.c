/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_grammar_test.c - what a grammar leaves no choice about is drafted: the only token that is allowed, the tokenizer's split of a
 * text, nothing where there is a choice, where the text may end, or without a grammar; and a tree takes no token that its grammar
 * forbids, whoever drafts it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "draft/drafter.h"
#include "fixture.h"
#include "format/source.h"

enum { VOCAB = 512, ROOT = 261, MOST = 40 };
static hn_source *source;
static hn_tokenizer *tokenizer;
static hn_vocab_trie *trie;
static hn_drafter drafter;

static int setup(void **state) {
    (void)state;
    must(hn_source_open(&source, data_path("models/stories260K/stories260K.f32.gguf"), err));
    must(hn_tokenizer_open(&tokenizer, source, err));
    must(hn_vocab_trie_open(&trie, tokenizer, VOCAB, err));
    const hn_target_info target = {.vocab = VOCAB, .hidden = 8, .layers = 2, .context = 100, .tokenizer = tokenizer};
    must(hn_drafter_open(&drafter, "grammar", 0, 2, &target, err));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hn_drafter_close(&drafter);
    hn_vocab_trie_close(&trie);
    hn_tokenizer_close(&tokenizer);
    hn_source_close(&source);
    return 0;
}

static hn_matcher *matcher_of(const char *regex) {
    hn_grammar *g = NULL;
    hn_matcher *m = NULL;
    must(hn_grammar_regex(&g, regex, strlen(regex), err));
    must(hn_matcher_open(&m, &g, trie, err));
    return m;
}

/* The text that is drafted after `before`; *ended: an end token follows it. */
static void drafted(hn_tree *t, hn_matcher *m, const char *before, char *text, bool *ended) {
    const int32_t root[] = {ROOT};
    hn_tree_reset(t, ROOT, HN_TREE_ROWS);
    if (m) hn_tree_constrain(t, m, hn_matcher_bytes(m, hn_matcher_start(m), before, strlen(before)));
    hn_propose p = {.seq = 1, .text = {root, 1, 1}, .tree = t, .budget = MOST, .depth = MOST};
    for (int level = 0; drafter.ops->propose(&drafter, &p, 1, level) > 0; level++) {}
    *text = 0;
    *ended = false;
    for (int r = 1; r < t->n_rows; r++) {
        size_t n;
        const char *piece = hn_tokenizer_piece(tokenizer, t->token[r], &n);
        *ended = hn_tokenizer_is_end(tokenizer, t->token[r]);
        assert_int_equal(t->parent[r], r - 1);
        if (!*ended) strncat(text, piece, n);
    }
}

static void test_drafts(void **state) {
    (void)state;
    static const struct {
        const char *regex, *before, *draft;
        bool ends;
    } cases[] = {
        {"one (time|day)\\.", "", "one ", false},   {"one (time|day)\\.", "one t", "ime.", true}, {"[a-z]+ once", "the", "", false},
        {"(ab|cd)!", "", "", false},                {"(ab|cd)!", "c", "d!", true},                {"a*", "aa", "", false},
        {"upon a time, there was a (dog|cat)", "u", "pon a time, there was a ", false},           {"x", "x", "", true},
        {"h\\u00e9 says", "h", "\xc3\xa9 says", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_matcher *m = matcher_of(cases[i].regex);
        hn_tree t;
        char text[200];
        bool ended;
        drafted(&t, m, cases[i].before, text, &ended);
        if (strcmp(text, cases[i].draft) != 0 || ended != cases[i].ends)
            fail_msg("%s after \"%s\": \"%s\"%s", cases[i].regex, cases[i].before, text, ended ? ", and the end" : "");
        hn_matcher_close(&m);
    }
    hn_tree free_text;
    char text[200];
    bool ended;
    drafted(&free_text, NULL, "", text, &ended);
    assert_int_equal(free_text.n_rows, 1);
}

/* What was wrong is estimated lower the next time. */
static void test_observes(void **state) {
    (void)state;
    hn_matcher *m = matcher_of("there was a dog");
    hn_tree t;
    char text[200];
    bool ended;
    float before = 0;
    for (int round = 0; round < 20; round++) {
        drafted(&t, m, "", text, &ended);
        assert_true(t.n_candidates > 2);
        assert_true(round == 0 || t.candidate[0].estimate < before);
        before = t.candidate[0].estimate;
        const hn_observe o = {.seq = 1, .tree = &t, .next_token = 3};
        drafter.ops->observe(&drafter, &o, 1);
        drafter.ops->observe(&drafter, &o, 1); /* twice is once */
    }
    hn_matcher_close(&m);
}

static int32_t token_of(const char *text) {
    for (int32_t id = 0; id < VOCAB; id++) {
        size_t n;
        const char *piece = hn_tokenizer_piece(tokenizer, id, &n);
        if (piece && n == strlen(text) && !memcmp(piece, text, n) && !hn_tokenizer_is_special(tokenizer, id)) return id;
    }
    fail_msg("no token '%s'", text);
    return -1;
}

/* States follow the rows, also of a tree that was cut. */
static void test_tree(void **state) {
    (void)state;
    hn_matcher *m = matcher_of("(ab|cd)[xy]");
    const int32_t a = token_of("a"), b = token_of("b"), c = token_of("c"), d = token_of("d"), x = token_of("x");
    hn_tree t;
    bool keep[HN_TREE_ROWS] = {true, false, true, true};
    hn_tree_reset(&t, ROOT, HN_TREE_ROWS);
    hn_tree_constrain(&t, m, hn_matcher_start(m));
    assert_int_equal(hn_tree_add(&t, 0, x, 0, .5f), -1);
    assert_int_equal(hn_tree_add(&t, 0, a, 0, .5f), 1);
    assert_int_equal(hn_tree_add(&t, 0, c, 0, .5f), 2);
    assert_int_equal(hn_tree_add(&t, 1, d, 0, .5f), -1);
    assert_int_equal(hn_tree_add(&t, 2, b, 0, .5f), -1);
    assert_int_equal(hn_tree_add(&t, 2, d, 0, .5f), 3);
    hn_tree_keep(&t, keep, NULL);
    assert_int_equal(hn_tree_add(&t, 2, d, 0, .5f), -1);
    assert_int_equal(hn_tree_add(&t, 2, x, 0, .5f), 3);
    assert_int_equal(hn_tree_add(&t, 3, x, 0, .5f), -1);
    assert_int_equal(t.n_candidates, 3);
    assert_true(hn_tree_valid(&t));
    hn_matcher_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drafts), cmocka_unit_test(test_observes), cmocka_unit_test(test_tree)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
