/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_for_tests.h - drives one drafter as the engine does, on given texts. Include after cmocka. */
#ifndef HN_DRAFTER_FOR_TESTS_H
#define HN_DRAFTER_FOR_TESTS_H
#include <stdlib.h>
#include <string.h>

#include "base/helper_for_tests.h"
#include "base/random.h"
#include "base/run_mode_for_tests.h"
#include "draft/drafter.h"


enum { TEXT = 400, DEPTH = HN_TREE_ROWS - 1, POISON = 1000000 };
static const hn_target_info TARGET = {.vocab = 1000, .hidden = 8, .layers = 2, .context = TEXT};

/* The texts of the published golden vectors. */
#define TEXT_A {1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 11
#define TEXT_B {7, 8, 9, 7, 8, 1, 7, 8, 9, 2, 7, 8}, 12
#define TEXT_C {5, 6, 5, 6, 5, 6, 5}, 7

/* Sanitizer builds run fewer cases of the same tests. */
HELPER int cases(int full) {
    return test_light() ? (full + 3) / 4 : full;
}

HELPER void open_or_fail(hn_drafter *d, const char *spec, int max_seqs) {
    hunch_error err = {0};
    if (hn_drafter_open(d, spec, 0, max_seqs, &TARGET, &err)) fail_msg("%s", err.message);
}

/* A sequence begins with a prompt of n tokens. */
HELPER void begin(hn_drafter *d, int seq, const int32_t *token, int n) {
    const hn_begin b = {.seq = seq, .text = {token, n, n}};
    assert_int_equal(d->ops->begin(d, &b, 1, NULL), HUNCH_OK);
}

/* All levels of a round, called as the engine does. */
HELPER void draft(hn_drafter *d, int seq, hn_committed_text text, int budget, hn_tree *t) {
    hn_propose p = {.seq = seq, .text = text, .tree = t, .budget = budget};
    hn_tree_reset(t, text.token[text.n - 1], HN_TREE_ROWS);
    while (d->ops->work && d->ops->work(d)) continue; /* as many rounds have passed */
    for (int level = 0; p.budget > 0; level++) {
        const int before = t->n_rows;
        if (!d->ops->propose(d, &p, 1, level)) break;
        p.budget -= t->n_rows - before;
    }
    assert_true(hn_tree_valid(t));
    assert_true(t->n_rows - 1 <= budget);
    assert_true(hn_tree_depth(t) <= d->needs.max_depth);
}

/* The chain that a new round proposes; returns its length. The tree is left in t. */
HELPER int chain_in(hn_drafter *d, int seq, hn_committed_text text, int budget, int32_t out[DEPTH], hn_tree *t) {
    draft(d, seq, text, budget, t);
    assert_true(hn_tree_is_chain(t));
    assert_int_equal(t->n_candidates, t->n_rows - 1);
    for (int c = 0; c < t->n_candidates; c++) assert_true(t->candidate[c].estimate > 0 && t->candidate[c].estimate < 1);
    memcpy(out, t->token + 1, (size_t)(t->n_rows - 1) * sizeof *out);
    return t->n_rows - 1;
}

HELPER int chain(hn_drafter *d, int seq, const int32_t *token, int n, int budget, int32_t out[DEPTH]) {
    hn_tree t;
    return chain_in(d, seq, (hn_committed_text){token, n, n}, budget, out, &t);
}

/* Verifies a chain against the target's tokens, `truth` (room for one token more than the chain's), and calls the drafter's
 * observe. Returns how many were accepted. */
HELPER int verify_chain(hn_drafter *d, int seq, const hn_tree *t, const int32_t *truth) {
    int16_t path[HN_TREE_ROWS];
    hn_observe o = {.seq = seq, .tree = t, .path = path};
    for (int row = 0; (row = hn_tree_child(t, row, truth[o.n_accepted])) > 0;) path[o.n_accepted++] = (int16_t)row;
    o.next_token = truth[o.n_accepted];
    if (d->ops->observe) {
        d->ops->observe(d, &o, 1);
        d->ops->observe(d, &o, 1); /* twice is once */
    }
    return o.n_accepted;
}

HELPER void expect_chain(hn_drafter *d, int seq, const int32_t *token, int n, const int32_t *want, int len) {
    int32_t out[DEPTH];
    const int got = chain(d, seq, token, n, DEPTH, out);
    if (got != len || (len > 0 && memcmp(out, want, (size_t)len * sizeof *out)))
        fail_msg("%s behind %d tokens: %d drafted, first %d, expected %d, first %d", d->name, n, got,
                 got ? (int)out[0] : -1, len, len ? (int)want[0] : -1);
}

/* A text with repeats: random tokens and copies of earlier stretches. */
HELPER void text_make(uint64_t *seed, int32_t *h) {
    const int vocab = 2 + (int)(hn_splitmix(seed) % 12);
    for (int i = 0; i < TEXT;) {
        const int from = i ? (int)(hn_splitmix(seed) % (uint64_t)i) : 0, len = 1 + (int)(hn_splitmix(seed) % 30);
        const bool copy = i > 20 && hn_splitmix(seed) % 2;
        for (int k = 0; k < len && i < TEXT; k++, i++)
            h[i] = copy ? h[from + k] : (int32_t)(hn_splitmix(seed) % (uint64_t)vocab);
    }
}
#endif
