/* SPDX-License-Identifier: Apache-2.0 */
/* selfdraft_test.c - the drafters that learn from rows which were not accepted, against straight Python models
 * (tools/make_selfdraft_goldens.py): over 200 passes of a toy target the same trees, the same accepted tokens, and the same matrix, window
 * and pool after each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "draft/drafter_for_tests.h"
#include "draft/text/lookahead_window.h"
#include "draft/text/recycle_matrix.h"
#include "fixture.h"

enum { V = 97, PASSES = 200, PROMPT = 24, SEED = 5, LISTS = 8, MOST = PROMPT + PASSES * 16 };

/* ---- the toy target: as in the script ---- */

static void likeliest(int a, int b, int32_t out[LISTS]) {
    const int h = a % 3 * 31 + b * 17 + 7;
    for (int r = 0; r < LISTS; r++) out[r] = (h + r * (1 + h % (V - 1))) % V;
}

static int32_t emitted(const int32_t *text, int n) {
    int32_t list[LISTS];
    likeliest(text[n - 2], text[n - 1], list);
    return list[(uint32_t)n * 2654435761u >> 29 == 0];
}

static int prompt_make(int32_t *text) {
    int n = 0;
    text[n++] = 1;
    text[n++] = 2;
    for (; n < PROMPT; n++) text[n] = (text[n - 1] * 5 + n) % V;
    return n;
}

static uint64_t fnv(uint64_t h, int32_t x) {
    return (h ^ (uint32_t)x) * 0x100000001B3u;
}
static const uint64_t EMPTY = 0xCBF29CE484222325u;

static uint64_t tree_hash(const hn_tree *t) {
    uint64_t h = EMPTY;
    for (int i = 0; i < t->n_rows; i++) h = fnv(h, t->token[i]);
    for (int i = 0; i < t->n_rows; i++) h = fnv(h, t->parent[i]);
    return h;
}

/* A pass: the lists of the tree's rows, and what the target accepts; the text grows. */
typedef struct pass {
    int32_t best[HN_TREE_ROWS * LISTS];
    int16_t path[HN_TREE_ROWS];
    hn_observe seen;
} pass;

static void pass_run(pass *p, const hn_tree *t, int32_t *text, int *n) {
    for (int i = 0; i < t->n_rows; i++)
        likeliest(i == 0 ? text[*n - 2] : t->token[t->parent[i]], t->token[i], p->best + i * LISTS);
    p->seen = (hn_observe){.tree = t, .path = p->path, .best = p->best, .n_best = LISTS};
    for (int row = 0;;) {
        const int32_t token = emitted(text, *n);
        text[(*n)++] = token;
        row = hn_tree_child(t, row, token);
        p->seen.next_token = token;
        if (row < 0) return;
        p->path[p->seen.n_accepted++] = (int16_t)row;
    }
}

/* What is learned, by the parts that the drafters use. */
typedef struct learner {
    hn_recycle matrix;
    hn_lookahead window;
    hn_ngram_pool pool;
    int pooled; /* n-grams of the text that begin before this token are in the pool; -1: none are added */
} learner;

static uint64_t matrix_hash(const hn_recycle *x) {
    uint64_t h = EMPTY;
    for (int32_t token = 0; token < V; token++) {
        const int32_t *row = hn_recycle_row(x, token);
        for (int k = 0; k < x->k; k++) h = fnv(h, row ? row[k] : -1);
    }
    return h;
}

static uint64_t window_hash(const hn_lookahead *w, const hn_ngram_pool *pool) {
    uint64_t h = EMPTY;
    for (int r = 0; r <= w->filled; r++)
        for (int c = r == 0; c <= hn_lookahead_chain(w); c++) h = fnv(h, w->cell[r][c]);
    for (int32_t token = 0; token < V; token++) {
        const int n = hn_ngram_pool_of(pool, token);
        if (n == 0) continue;
        h = fnv(fnv(h, token), n);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < pool->len; k++) h = fnv(h, hn_ngram_pool_at(pool, token, i)[k]);
    }
    return h;
}

static void text_pool(learner *l, const int32_t *text, int n) {
    if (l->pooled < 0) return;
    hn_ngram_pool_text(&l->pool, text, l->pooled, n);
    l->pooled = n - l->pool.len;
}

static uint64_t learn(learner *l, const pass *p) {
    const hn_tree *t = p->seen.tree;
    if (!l->matrix.cell) {
        hn_lookahead_move(&l->window, t, p->best, LISTS, &l->pool);
        return window_hash(&l->window, &l->pool);
    }
    for (int i = 0; i < t->n_rows; i++) hn_recycle_set(&l->matrix, t->token[i], p->best + i * LISTS, LISTS);
    return matrix_hash(&l->matrix);
}

/* The drafter's trees beside what its parts learn from them, and the lines of the golden file. */
static void check_passes(const char *spec, const char *golden, learner *l) {
    static int32_t text[MOST];
    static pass p;
    char path[100];
    int n = prompt_make(text), accepted = 0;
    hn_drafter d;
    hn_tree t;
    snprintf(path, sizeof path, "drafts/%s.txt", golden);
    FILE *f = fopen(data_path(path), "r");
    assert_non_null(f);
    open_or_fail(&d, spec, 1);
    const hn_begin b = {.seed = SEED, .text = {text, n, n}};
    assert_int_equal(d.ops->begin(&d, &b, 1, NULL), HUNCH_OK);
    for (int i = 0; i < PASSES; i++) {
        int rows, right;
        unsigned long long tree, learned;
        assert_int_equal(fscanf(f, "%d %d %llx %llx", &rows, &right, &tree, &learned), 4);
        if (!l->matrix.cell) text_pool(l, text, n);
        draft(&d, 0, (hn_committed_text){text, n, PROMPT}, DEPTH, &t);
        pass_run(&p, &t, text, &n);
        if (t.n_rows != rows || p.seen.n_accepted != right || tree_hash(&t) != tree)
            fail_msg("%s, pass %d: %d rows, %d accepted; expected %d, %d, or the trees differ", spec, i, t.n_rows, p.seen.n_accepted, rows,
                     right);
        if (learn(l, &p) != learned) fail_msg("%s, pass %d: something else was learned", spec, i);
        d.ops->observe(&d, &p.seen, 1);
        d.ops->observe(&d, &p.seen, 1); /* twice is once */
        accepted += right;
    }
    assert_true(l->pool.each == 0 && !l->matrix.cell ? accepted == 0 : accepted > 100);
    fclose(f);
    hn_drafter_close(&d);
}

static void check_recycle(const char *spec, const char *golden, int k) {
    learner l = {0};
    assert_true(hn_recycle_open(&l.matrix, V, k));
    check_passes(spec, golden, &l);
    hn_recycle_close(&l.matrix);
}

static void test_recycle(void **state) {
    (void)state;
    check_recycle("recycle,tree=paper", "recycle-paper", 8);
    check_recycle("recycle,nodes=24,depth=6", "recycle-best", 8);
    check_recycle("recycle,tree=paper,k=3,nodes=40", "recycle-narrow", 3);
}

static void check_lookahead(int columns, int n, int guess, bool prompt) {
    static int32_t text[PROMPT];
    char spec[100], golden[100];
    learner l = {.pooled = prompt ? 0 : -1};
    snprintf(spec, sizeof spec, "lookahead,window=%d,ngram=%d,guess=%d,prompt=%d", columns, n, guess, prompt);
    snprintf(golden, sizeof golden, "lookahead-%d-%d-%d", columns, n, guess);
    hn_lookahead_begin(&l.window, columns, n, text, prompt_make(text), SEED);
    assert_true(hn_ngram_pool_open(&l.pool, V, n - 1, guess, V));
    check_passes(spec, golden, &l);
    hn_ngram_pool_close(&l.pool);
}

static void test_lookahead(void **state) {
    (void)state;
    check_lookahead(5, 4, 5, true);
    check_lookahead(8, 5, 7, false);
}

/* The smallest case: one row of guesses, each the target's answer to the one before it. */
static void test_jacobi(void **state) {
    (void)state;
    check_lookahead(8, 2, 0, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recycle), cmocka_unit_test(test_lookahead), cmocka_unit_test(test_jacobi)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
