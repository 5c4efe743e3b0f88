/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_ngram_test.c - golden vectors of the published lookups, plain searches written from their descriptions, and
 * the properties every text drafter has to have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "draft/drafter.h"

enum { TEXT = 400, DEPTH = HN_TREE_ROWS - 1, POISON = 1000000 };
static const hn_target_info TARGET = {.vocab = 1000, .hidden = 8, .layers = 2, .context = TEXT};

static void open_or_fail(hn_drafter *d, const char *spec, int max_seqs) {
    hunch_error err = {0};
    if (hn_drafter_open(d, spec, 0, max_seqs, &TARGET, &err)) fail_msg("%s", err.message);
}

static void begin(hn_drafter *d, int seq) {
    const hn_begin b = {.seq = seq};
    assert_int_equal(d->ops->begin(d, &b, 1, NULL), HUNCH_OK);
}

/* All levels of a round as the engine asks for them. */
static void draft(hn_drafter *d, int seq, const int32_t *token, int n, int budget, hn_tree *t) {
    hn_propose p = {.seq = seq, .text = {token, n, n}, .tree = t, .budget = budget};
    for (int level = 0; p.budget > 0; level++) {
        int before = t->n_rows;
        if (!d->ops->propose(d, &p, 1, level)) return;
        p.budget -= t->n_rows - before;
    }
}

/* The chain that a fresh round proposes; returns its length. */
static int chain(hn_drafter *d, int seq, const int32_t *token, int n, int budget, int32_t out[DEPTH]) {
    hn_tree t;
    hn_tree_reset(&t, token[n - 1], HN_TREE_ROWS);
    draft(d, seq, token, n, budget, &t);
    assert_true(hn_tree_valid(&t));
    assert_true(hn_tree_is_chain(&t));
    assert_int_equal(t.n_candidates, t.n_rows - 1);
    for (int c = 0; c < t.n_candidates; c++) assert_true(t.candidate[c].estimate > 0 && t.candidate[c].estimate < 1);
    memcpy(out, t.token + 1, (size_t)(t.n_rows - 1) * sizeof *out);
    return t.n_rows - 1;
}

/* ---- golden vectors ---------------------------------------------------------------------------------------------- */

#define A {1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 11
#define B {7, 8, 9, 7, 8, 1, 7, 8, 9, 2, 7, 8}, 12
#define C {5, 6, 5, 6, 5, 6, 5}, 7

static const struct {
    const char *spec;
    int32_t text[24];
    int n, budget;
    int32_t draft[16];
    int len;
} GOLDEN[] = {
    {"ngram,form=pld,max=3,depth=4", A, 63, {4, 1, 2, 3}, 4},
    {"ngram,form=pld,max=3,depth=4", B, 63, {9, 7, 8, 1}, 4},
    {"ngram,form=pld,max=3,depth=4", C, 63, {6, 5, 6, 5}, 4},
    {"ngram,form=hf,max=2,depth=10", A, 63, {4, 1, 2, 3, 5, 1, 2, 3}, 8},
    {"ngram,form=hf,max=2,depth=10", B, 63, {9, 7, 8, 1, 7, 8, 9, 2, 7, 8}, 10},
    {"ngram,form=hf,max=2,depth=10", C, 63, {6, 5, 6, 5}, 4},
    {"ngram,form=hf", A, 63, {4, 1, 2, 3, 5, 1, 2, 3}, 8}, /* these are its defaults */
    {"ngram,form=longest,min=2,max=3,depth=4", A, 63, {4, 1, 2, 3}, 4},
    {"ngram,form=longest,min=2,max=3,depth=4", B, 63, {9, 7, 8, 1}, 4},
    {"ngram,form=longest,min=2,max=3,depth=4", C, 63, {6, 5, 6, 5}, 4},
    {"ngram,form=longest,min=1,max=5,depth=3", A, 63, {4, 1, 2}, 3},
    {"ngram,form=longest,min=1,max=5,depth=3", B, 63, {9, 7, 8}, 3},
    {"ngram,form=longest,min=1,max=5,depth=3", C, 63, {6, 5}, 2},
    {"ngram,form=longest,min=1,max=5,depth=5", A, 2, {4, 1}, 2}, /* max_len = L + 2 */
    {"ngram,form=longest,min=1,max=5,depth=5", B, 2, {9, 7}, 2},
    {"ngram,form=longest,min=1,max=5,depth=5", C, 2, {6, 5}, 2},
    {"ngram,form=longest,min=2,max=3,depth=4", {1, 2, 3, 4, 2, 3}, 6, 63, {4, 2, 3}, 3},
    {"ngram,form=simple,max=2,depth=3", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 10, 11, 12, 13, 1, 2}, 18, 63, {10, 11, 12}, 3},
    {"ngram,form=recent,max=3,depth=4", A, 63, {5, 1, 2}, 3},
    {"ngram,form=recent,max=3,depth=4,grow=2", A, 63, {5, 1, 2, 3}, 4},
    {"ngram,form=recent,max=3,depth=4", B, 63, {9, 2}, 2},
    {"ngram,form=recent,max=3,depth=9", C, 63, {6, 5, 6, 5, 6}, 5}, /* five agree, though at most three are looked up */
    {"ngram,form=recent,max=1,depth=9,grow=.5", C, 63, {6, 5}, 2},
};

static void test_golden(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof GOLDEN / sizeof GOLDEN[0]; i++) {
        hn_drafter d;
        int32_t out[DEPTH];
        open_or_fail(&d, GOLDEN[i].spec, 1);
        begin(&d, 0);
        int len = chain(&d, 0, GOLDEN[i].text, GOLDEN[i].n, GOLDEN[i].budget, out);
        if (len != GOLDEN[i].len || memcmp(out, GOLDEN[i].draft, (size_t)len * sizeof *out))
            fail_msg("vector %zu (%s): wrong draft of %d tokens, first %d", i, GOLDEN[i].spec, len, len ? (int)out[0] : -1);
        d.ops->end(&d, 0);
        hn_drafter_close(&d);
    }
}

/* ---- the published methods as their descriptions read, by plain search -------------------------------------------- */

static bool same(const int32_t *h, int L, int i, int n) {
    return !memcmp(h + i, h + L - n, (size_t)n * sizeof *h);
}

static int plain_copy(const int32_t *h, int at, int end, int most, int32_t *out) {
    int len = end - at < most ? end - at : most;
    memcpy(out, h + at, (size_t)len * sizeof *h);
    return len;
}

static int plain_pld(const int32_t *h, int L, int min, int max, int K, int32_t *out) {
    for (int n = max; n >= min; n--)
        for (int i = 0; n <= L && i + n <= L; i++)
            if (same(h, L, i, n) && i + n + K <= L && i + n < L - n) return plain_copy(h, i + n, L, K, out);
    return 0;
}

static int plain_longest(const int32_t *h, int L, int min, int max, int K, int32_t *out) {
    for (int n = max; n >= min; n--)
        for (int i = 0; i + n < L; i++)
            if (same(h, L, i, n)) return plain_copy(h, i + n, L, K, out);
    return 0;
}

static int plain_simple(const int32_t *h, int L, int min, int n, int m, int32_t *out) {
    (void)min;
    int cur = L - 1;
    if (cur <= n + m + 1) return 0;
    for (int j = cur - n - 1; j >= 1; j--)
        if (same(h, L, j, n)) return cur - (j + n) < n ? 0 : plain_copy(h, j + n, cur, m, out);
    return 0;
}

/* grow 1 */
static int plain_recent(const int32_t *h, int L, int min, int max, int K, int32_t *out) {
    for (int n = max; n >= min; n--)
        for (int i = L - 1 - n; i >= 0; i--)
            if (same(h, L, i, n)) {
                int match = n;
                while (n == max && match < K && match < i + n && same(h, L, i + n - match - 1, match + 1)) match++;
                if (match > K) match = K;
                for (int k = 0; k < match; k++) out[k] = h[i + n + k % (L - i - n)];
                return match;
            }
    return 0;
}

static const struct method {
    const char *spec;
    int (*plain)(const int32_t *h, int L, int min, int max, int K, int32_t *out);
    int min, max, K;
} METHODS[] = {
    {"ngram", plain_recent, 2, 8, 16},
    {"ngram,min=1,depth=5", plain_recent, 1, 8, 5},
    {"ngram,form=recent,min=2,max=3,depth=40", plain_recent, 2, 3, 40},
    {"ngram,form=pld", plain_pld, 1, 3, 10},
    {"ngram,form=pld,min=2,max=4,depth=3", plain_pld, 2, 4, 3},
    {"ngram,form=hf", plain_longest, 1, 2, 10},
    {"ngram,form=longest", plain_longest, 5, 5, 8},
    {"ngram,form=longest,max=3", plain_longest, 3, 3, 8},
    {"ngram,form=longest,min=4", plain_longest, 4, 4, 8},
    {"ngram,form=longest,min=1,max=6,depth=2", plain_longest, 1, 6, 2},
    {"ngram,form=simple", plain_simple, 12, 12, 48},
    {"ngram,form=simple,max=3,depth=5", plain_simple, 3, 3, 5},
};

/* A text with repeats: random tokens and copies of earlier stretches, behind it poison that nobody may read. */
static void text_make(uint64_t *seed, int32_t *h) {
    int vocab = 2 + (int)(hn_splitmix(seed) % 12);
    for (int i = 0; i < TEXT;) {
        int from = i ? (int)(hn_splitmix(seed) % (uint64_t)i) : 0, len = 1 + (int)(hn_splitmix(seed) % 30);
        bool copy = i > 20 && hn_splitmix(seed) % 2;
        for (int k = 0; k < len && i < TEXT; k++, i++)
            h[i] = copy ? h[from + k] : (int32_t)(hn_splitmix(seed) % (uint64_t)vocab);
    }
}

/* Incremental and interleaved over two sequences, with a rewind now and then: every prefix gives what a plain search
 * over it gives, so also what a rebuild from scratch gives. Nothing behind the committed text is looked at. */
static void check_method(const struct method *m, uint64_t *seed) {
    hn_drafter d;
    open_or_fail(&d, m->spec, 2);
    int32_t h[2][TEXT], seen[TEXT], out[DEPTH], want[DEPTH];
    int n[2] = {1, 1};
    for (int s = 0; s < 2; s++) {
        text_make(seed, h[s]);
        begin(&d, s);
    }
    while (n[0] <= TEXT && n[1] <= TEXT) {
        int s = (int)(hn_splitmix(seed) % 2), budget = 1 + (int)(hn_splitmix(seed) % 63);
        for (int i = 0; i < TEXT; i++) seen[i] = i < n[s] ? h[s][i] : POISON;
        int len = chain(&d, s, seen, n[s], budget, out);
        int plain = m->plain(h[s], n[s], m->min, m->max, m->K, want);
        if (plain > budget) plain = budget;
        assert_int_equal(len, plain);
        assert_memory_equal(out, want, (size_t)len * sizeof *out);
        if (hn_splitmix(seed) % 40 == 0) { /* a session rewound, and going on otherwise */
            n[s] = 1 + n[s] / 2;
            d.ops->drop(&d, s, n[s]);
            h[s][n[s] - 1] ^= 1;
        }
        n[s] += 1 + (int)(hn_splitmix(seed) % 4);
    }
    hn_drafter_close(&d);
}

static void test_against_plain_search(void **state) {
    (void)state;
    uint64_t seed = 31;
    for (int round = 0; round < 12; round++)
        for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++) check_method(&METHODS[i], &seed);
}

/* Once a period has been seen the draft is the continuation, as far as it reaches: one token more with every token that
 * agrees with the period before. */
static void test_periodic(void **state) {
    (void)state;
    hn_drafter d;
    open_or_fail(&d, "ngram", 1);
    for (int period = 1; period <= 40; period++) {
        int32_t h[TEXT], out[DEPTH];
        for (int i = 0; i < TEXT; i++) h[i] = i % period;
        begin(&d, 0);
        for (int n = period + 2; n <= 3 * period + 20; n++) {
            int len = n - period < 16 ? n - period : 16;
            assert_int_equal(chain(&d, 0, h, n, 63, out), len);
            assert_memory_equal(out, h + n, (size_t)len * sizeof *h);
        }
        d.ops->end(&d, 0);
    }
    hn_drafter_close(&d);
}

/* Two drafters on one tree: equal paths share rows, each keeps its candidates; a budget of no rows still lets it share. */
static void test_merged(void **state) {
    (void)state;
    static const int32_t h[] = {1, 2, 3, 4, 5, 6, 1, 2, 3};
    hn_drafter a, b;
    open_or_fail(&a, "ngram,depth=4,grow=2", 1);
    open_or_fail(&b, "ngram,form=hf,depth=3", 1);
    b.index = 1;
    begin(&a, 0);
    begin(&b, 0);
    hn_tree t;
    hn_tree_reset(&t, 3, HN_TREE_ROWS);
    hn_propose p = {.seq = 0, .text = {h, 9, 9}, .tree = &t, .budget = 4}, q = p;
    q.budget = 0;
    for (int level = 0; level < 5; level++) {
        assert_int_equal(a.ops->propose(&a, &p, 1, level), level < 4);
        assert_int_equal(b.ops->propose(&b, &q, 1, level), level < 3);
    }
    assert_int_equal(t.n_rows, 5);
    assert_int_equal(t.n_candidates, 7);
    assert_true(hn_tree_valid(&t));
    /* a level of a round that was never begun, or of another text, adds nothing */
    hn_tree_reset(&t, 3, HN_TREE_ROWS);
    p.text.n = 8;
    assert_int_equal(a.ops->propose(&a, &p, 1, 1), 0);
    hn_drafter_close(&a);
    hn_drafter_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_against_plain_search),
        cmocka_unit_test(test_periodic),
        cmocka_unit_test(test_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
