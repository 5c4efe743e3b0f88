/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_ngram_test.c - golden vectors of the published lookups, plain searches written from their descriptions, and
 * the properties that every text drafter must have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include "base/fault.h"
#include "draft/drafter_for_tests.h"

/* ---- golden vectors ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *spec;
    int32_t text[24];
    int n, budget;
    int32_t draft[16];
    int len;
} GOLDEN[] = {
    {"ngram,form=pld,max=3,depth=4", TEXT_A, 63, {4, 1, 2, 3}, 4},
    {"ngram,form=pld,max=3,depth=4", TEXT_B, 63, {9, 7, 8, 1}, 4},
    {"ngram,form=pld,max=3,depth=4", TEXT_C, 63, {6, 5, 6, 5}, 4},
    {"ngram,form=hf,max=2,depth=10", TEXT_A, 63, {4, 1, 2, 3, 5, 1, 2, 3}, 8},
    {"ngram,form=hf,max=2,depth=10", TEXT_B, 63, {9, 7, 8, 1, 7, 8, 9, 2, 7, 8}, 10},
    {"ngram,form=hf,max=2,depth=10", TEXT_C, 63, {6, 5, 6, 5}, 4},
    {"ngram,form=hf", TEXT_A, 63, {4, 1, 2, 3, 5, 1, 2, 3}, 8}, /* these are its defaults */
    {"ngram,form=longest,min=2,max=3,depth=4", TEXT_A, 63, {4, 1, 2, 3}, 4},
    {"ngram,form=longest,min=2,max=3,depth=4", TEXT_B, 63, {9, 7, 8, 1}, 4},
    {"ngram,form=longest,min=2,max=3,depth=4", TEXT_C, 63, {6, 5, 6, 5}, 4},
    {"ngram,form=longest,min=1,max=5,depth=3", TEXT_A, 63, {4, 1, 2}, 3},
    {"ngram,form=longest,min=1,max=5,depth=3", TEXT_B, 63, {9, 7, 8}, 3},
    {"ngram,form=longest,min=1,max=5,depth=3", TEXT_C, 63, {6, 5}, 2},
    {"ngram,form=longest,min=1,max=5,depth=5", TEXT_A, 2, {4, 1}, 2}, /* max_len = L + 2 */
    {"ngram,form=longest,min=1,max=5,depth=5", TEXT_B, 2, {9, 7}, 2},
    {"ngram,form=longest,min=1,max=5,depth=5", TEXT_C, 2, {6, 5}, 2},
    {"ngram,form=longest,min=2,max=3,depth=4", {1, 2, 3, 4, 2, 3}, 6, 63, {4, 2, 3}, 3},
    {"ngram,form=simple,max=2,depth=3", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 10, 11, 12, 13, 1, 2}, 18, 63,
     {10, 11, 12}, 3},
    {"ngram,form=recent,max=3,depth=4", TEXT_A, 63, {5, 1, 2}, 3},
    {"ngram,form=recent,max=3,depth=4,grow=2", TEXT_A, 63, {5, 1, 2, 3}, 4},
    {"ngram,form=recent,max=3,depth=4", TEXT_B, 63, {9, 2}, 2},
    /* five agree, though at most three are matched */
    {"ngram,form=recent,max=3,depth=9", TEXT_C, 63, {6, 5, 6, 5, 6}, 5},
    {"ngram,form=recent,max=1,depth=9,grow=.5", TEXT_C, 63, {6, 5}, 2},
};

static void test_golden(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof GOLDEN / sizeof GOLDEN[0]; i++) {
        hn_drafter d;
        int32_t out[DEPTH];
        open_or_fail(&d, GOLDEN[i].spec, 1);
        begin(&d, 0, GOLDEN[i].text, GOLDEN[i].n);
        int len = chain(&d, 0, GOLDEN[i].text, GOLDEN[i].n, GOLDEN[i].budget, out);
        if (len != GOLDEN[i].len || memcmp(out, GOLDEN[i].draft, (size_t)len * sizeof *out))
            fail_msg("vector %zu (%s): wrong draft of %d tokens, first %d", i, GOLDEN[i].spec, len,
                     len ? (int)out[0] : -1);
        d.ops->end(&d, 0);
        hn_drafter_close(&d);
    }
}

/* ---- the published methods by their descriptions, as plain searches ---------------------------------------------- */

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

/* min: unused. Complete continuations; a fifth kind does not count. */
static int plain_k4v(const int32_t *h, int L, int min, int n, int m, int32_t *out) {
    int at[4], count[4], kinds = 0, sum = 0, best = 0;
    (void)min;
    for (int i = 0; n <= L && i + n + m <= L; i++) {
        int k = 0;
        if (!same(h, L, i, n)) continue;
        while (k < kinds && memcmp(h + at[k], h + i + n, (size_t)m * sizeof *h)) k++;
        if (k == 4) continue;
        if (k == kinds) {
            at[kinds] = i + n;
            count[kinds++] = 0;
        }
        count[k]++;
        sum++;
    }
    for (int k = 1; k < kinds; k++)
        if (count[k] > count[best]) best = k;
    return kinds && count[best] >= 2 * (sum - count[best]) ? plain_copy(h, at[best], L, m, out) : 0;
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
    {"ngram,form=map-k", plain_longest, 12, 12, 48},
    {"ngram,form=map-k,max=2,depth=6", plain_longest, 2, 2, 6},
    {"ngram,form=map-k4v,min=1,max=1,depth=2", plain_k4v, 1, 1, 2},
    {"ngram,form=map-k4v,min=3,depth=1", plain_k4v, 3, 3, 1},
    {"ngram,form=map-k4v,max=2,depth=7", plain_k4v, 2, 2, 7},
};

/* Incremental and interleaved over two sequences, with another text now and then: every prefix gives the same as a plain search
 * over it, so also the same as a rebuild from scratch. Nothing after the committed text is read. */
static void check_method(const struct method *m, uint64_t *seed) {
    hn_drafter d;
    open_or_fail(&d, m->spec, 2);
    int32_t h[2][TEXT], seen[TEXT], out[DEPTH], want[DEPTH];
    int n[2] = {1, 1};
    for (int s = 0; s < 2; s++) {
        text_make(seed, h[s]);
        begin(&d, s, h[s], n[s]);
    }
    while (n[0] <= TEXT && n[1] <= TEXT) {
        int s = (int)(hn_splitmix(seed) % 2), budget = 1 + (int)(hn_splitmix(seed) % 63);
        for (int i = 0; i < TEXT; i++) seen[i] = i < n[s] ? h[s][i] : POISON;
        int len = chain(&d, s, seen, n[s], budget, out);
        int plain = m->plain(h[s], n[s], m->min, m->max, m->K, want);
        if (plain > budget) plain = budget;
        assert_int_equal(len, plain);
        assert_memory_equal(out, want, (size_t)len * sizeof *out);
        if (hn_splitmix(seed) % 40 == 0) { /* another text that begins like this one */
            n[s] = 1 + n[s] / 2;
            h[s][n[s] - 1] ^= 1;
            d.ops->end(&d, s);
            begin(&d, s, h[s], n[s]);
        }
        n[s] += 1 + (int)(hn_splitmix(seed) % 4);
    }
    hn_drafter_close(&d);
}

static void test_against_plain_search(void **state) {
    (void)state;
    uint64_t seed = 31;
    for (int round = 0; round < cases(12); round++)
        for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++) check_method(&METHODS[i], &seed);
}

/* Once a period has been seen the draft is the continuation, as far as the match allows: one token more with every token that
 * agrees with the period before. */
static void test_periodic(void **state) {
    (void)state;
    hn_drafter d;
    open_or_fail(&d, "ngram", 1);
    for (int period = 1; period <= 40; period++) {
        int32_t h[TEXT], out[DEPTH];
        for (int i = 0; i < TEXT; i++) h[i] = i % period;
        begin(&d, 0, h, 1);
        for (int n = period + 2; n <= 3 * period + 20; n++) {
            int len = n - period < 16 ? n - period : 16;
            assert_int_equal(chain(&d, 0, h, n, 63, out), len);
            assert_memory_equal(out, h + n, (size_t)len * sizeof *h);
        }
        d.ops->end(&d, 0);
    }
    hn_drafter_close(&d);
}

/* ---- map and mod, by hand ---------------------------------------------------------------------------------------- */

/* One round: the draft after h[0..n) is `want`, and h[n..] are the target's tokens. */
static void round_expect(hn_drafter *d, int seq, const int32_t *h, int n, const int32_t *want, int len) {
    hn_tree t;
    int32_t out[DEPTH];
    assert_int_equal(chain_in(d, seq, (hn_committed_text){h, n, n}, DEPTH, out, &t), len);
    if (len > 0) assert_memory_equal(out, want, (size_t)len * sizeof *out);
    verify_chain(d, seq, &t, h + n);
}

#define WANT(...) (const int32_t[]){__VA_ARGS__}, (int)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
#define NOTHING NULL, 0

/* The accepted part of the last draft from an n-gram limits the next one; a draft that was right as far as it went limits
 * nothing. */
static void test_map_caps(void **state) {
    (void)state;
    /*                          0           5           10          15          20          25          30    */
    static const int32_t h[] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 9, 9, 1,
                                2, 3, 8, 2, 3, 7, 7, 7, 2, 3, 8, 1, 2, 6, 6, 6};
    hn_drafter d;
    open_or_fail(&d, "ngram,form=map-k,max=2,depth=3", 1);
    begin(&d, 0, h, 7);
    round_expect(&d, 0, h, 7, WANT(3, 4, 5));  /* all right */
    round_expect(&d, 0, h, 12, WANT(3, 4, 5)); /* one right */
    round_expect(&d, 0, h, 17, WANT(3));
    round_expect(&d, 0, h, 21, WANT(4, 5, 1)); /* another key: nothing right */
    round_expect(&d, 0, h, 26, NOTHING);
    round_expect(&d, 0, h, 29, WANT(3)); /* wrong now */
    round_expect(&d, 0, h, 29, NOTHING);
    begin(&d, 0, h, 7); /* a new sequence has no limits */
    round_expect(&d, 0, h, 7, WANT(3, 4, 5));
    hn_drafter_close(&d);
    /* rows that a tree lost before it was verified are not counted */
    hn_tree t;
    int32_t out[DEPTH];
    bool keep[HN_TREE_ROWS] = {true, true};
    open_or_fail(&d, "ngram,form=map-k,max=2,depth=3", 1);
    begin(&d, 0, h, 7);
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){h, 7, 7}, DEPTH, out, &t), 3);
    hn_tree_keep(&t, keep, NULL);
    assert_int_equal(verify_chain(&d, 0, &t, h + 7), 1);
    round_expect(&d, 0, h, 12, WANT(3, 4, 5));
    hn_drafter_close(&d);
}

static void test_map_k4v(void **state) {
    (void)state;
    static const int32_t h[] = {1, 2, 3, 1, 2, 3, 1, 4, 5, 1, 4, 5, 1, 2, 3, 1, 2, 3, 1, 4, 6, 1};
    hn_drafter d;
    open_or_fail(&d, "ngram,form=map-k4v,max=1,depth=2", 1);
    begin(&d, 0, h, 1);
    expect_chain(&d, 0, h, 1, NOTHING);
    expect_chain(&d, 0, h, 4, WANT(2, 3));
    expect_chain(&d, 0, h, 7, WANT(2, 3));
    expect_chain(&d, 0, h, 10, WANT(2, 3)); /* two against one */
    expect_chain(&d, 0, h, 13, NOTHING);    /* two against two */
    expect_chain(&d, 0, h, 16, NOTHING);    /* three against two */
    expect_chain(&d, 0, h, 19, WANT(2, 3)); /* four against two */
    round_expect(&d, 0, h, 19, WANT(2, 3)); /* and wrong: no drafts from now on */
    expect_chain(&d, 0, h, 19, NOTHING);
    hn_drafter_close(&d);
}

static void test_mod(void **state) {
    (void)state;
    enum { FAR = 300 };
    int32_t h[FAR], other[] = {700, 1, 2};
    for (int i = 0; i < FAR; i++) h[i] = i;
    hn_drafter d;
    open_or_fail(&d, "ngram,form=mod,max=2,min=3,depth=5", 2);
    begin(&d, 0, h, 6);
    begin(&d, 1, other, 3);
    expect_chain(&d, 1, other, 3, WANT(3, 4, 5)); /* another sequence's text; the chain breaks at its end */
    const int32_t shorter[] = {9, 2, 3};
    expect_chain(&d, 1, shorter, 3, NOTHING); /* 4 5 would be too short */
    /* emitted tokens are learned 32 at a time, when they are observed */
    const int32_t tail[] = {700, 6, 7};
    hn_tree t;
    int32_t out[DEPTH];
    for (int n = 6; n < 6 + 32; n++) {
        assert_int_equal(chain_in(&d, 0, (hn_committed_text){h, n, 6}, DEPTH, out, &t), 0);
        verify_chain(&d, 0, &t, h + n);
        expect_chain(&d, 1, tail, 3, NOTHING);
    }
    chain_in(&d, 0, (hn_committed_text){h, 38, 6}, DEPTH, out, &t);
    expect_chain(&d, 1, tail, 3, NOTHING); /* proposing writes nothing */
    verify_chain(&d, 0, &t, h + 38);
    expect_chain(&d, 1, tail, 3, WANT(8, 9, 10, 11, 12));
    /* forgotten; a sequence that lives adds its text again */
    d.ops->forget(&d);
    expect_chain(&d, 1, tail, 3, NOTHING);
    chain_in(&d, 0, (hn_committed_text){h, 39, 6}, DEPTH, out, &t);
    verify_chain(&d, 0, &t, h + 39);
    expect_chain(&d, 1, tail, 3, WANT(8, 9, 10, 11, 12));
    hn_drafter_close(&d);
}

/* Five successive rounds with less than a quarter right empty the table; one with a quarter right resets the count. */
static void test_mod_is_emptied(void **state) {
    (void)state;
    const int32_t h[] = {1, 2, 3, 4, 5, 6, 1, 2}, right[] = {3, 9}, wrong[] = {9};
    hn_drafter d;
    hn_tree t;
    int32_t out[DEPTH];
    open_or_fail(&d, "ngram,form=mod,max=2,min=4,depth=4", 1);
    begin(&d, 0, h, 8);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(chain_in(&d, 0, (hn_committed_text){h, 8, 8}, DEPTH, out, &t), 4);
        verify_chain(&d, 0, &t, i == 4 ? right : wrong);
    }
    expect_chain(&d, 0, h, 8, NOTHING);
    hn_drafter_close(&d);
}

/* After any number of emptyings no earlier content is found. */
static void test_mod_emptied_often(void **state) {
    (void)state;
    const int32_t a[] = {1, 2, 3, 4}, b[] = {5, 1, 2};
    hn_drafter d;
    open_or_fail(&d, "ngram,form=mod,max=2,min=1", 1);
    for (int i = 0; i < 600; i++) {
        if (i % 50 == 0) {
            begin(&d, 0, a, 4);
            expect_chain(&d, 0, b, 3, WANT(3, 4));
        }
        d.ops->forget(&d);
        d.ops->end(&d, 0);
        begin(&d, 0, b, i % 2 ? 3 : 2);
        expect_chain(&d, 0, b, 3, NOTHING);
    }
    hn_drafter_close(&d);
}

/* The periodic text of each published form: the draft is the continuation once a period and the key after it were
 * seen. */
static void test_periodic_forms(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        int key, depth; /* tokens that match */
    } forms[] = {{"ngram,form=hf", 2, 10},
                 {"ngram,form=longest,min=1,max=3", 3, 8},
                 {"ngram,form=pld,depth=4", 3, 4},
                 {"ngram,form=map-k,max=3,depth=8", 3, 8},
                 {"ngram,form=map-k4v,max=3,depth=4", 3, 4},
                 {"ngram,form=mod,max=3,min=6,depth=6", 3, 6}};
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        hn_drafter d;
        open_or_fail(&d, forms[f].spec, 1);
        for (int period = 8; period <= 40; period++) {
            int32_t h[TEXT], out[DEPTH];
            for (int i = 0; i < TEXT; i++) h[i] = i % period;
            for (int n = period + forms[f].key; n <= 3 * period; n += 5) {
                begin(&d, 0, h, n);
                const int len = chain(&d, 0, h, n, 63, out);
                const int first = (n - forms[f].key) % period + forms[f].key, there = n - first;
                assert_int_equal(len, forms[f].depth < there ? forms[f].depth : there);
                assert_memory_equal(out, h + n, (size_t)len * sizeof *h);
            }
            d.ops->end(&d, 0);
            if (d.ops->forget) d.ops->forget(&d);
        }
        hn_drafter_close(&d);
    }
}

/* When memory runs out while a text grows there are fewer drafts, no errors. */
static void test_no_memory(void **state) {
    (void)state;
    static const char *const specs[] = {"ngram,form=recent", "ngram,form=map-k,max=2",
                                        "ngram,form=map-k4v,max=2,depth=4", "ngram,form=mod,max=2,min=1"};
    uint64_t seed = 12;
    int32_t h[TEXT];
    text_make(&seed, h);
    for (int s = 0; s < 4; s++)
        for (int after = 0; after < 20; after++) {
            hn_drafter d;
            open_or_fail(&d, specs[s], 1);
            hn_fault_arm(HN_FAULT_ALLOC, after, true);
            begin(&d, 0, h, 10);
            for (int n = 10; n + DEPTH < TEXT;) {
                hn_tree t;
                int32_t out[DEPTH];
                chain_in(&d, 0, (hn_committed_text){h, n, 10}, DEPTH, out, &t);
                n += verify_chain(&d, 0, &t, h + n) + 1;
            }
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            hn_drafter_close(&d);
        }
}

/* Two drafters on one tree: equal paths share rows, each keeps its candidates; with a budget of no rows sharing is still possible. */
static void test_merged(void **state) {
    (void)state;
    static const int32_t h[] = {1, 2, 3, 4, 5, 6, 1, 2, 3};
    hn_drafter a, b;
    open_or_fail(&a, "ngram,depth=4,grow=2", 1);
    open_or_fail(&b, "ngram,form=hf,depth=3", 1);
    b.index = 1;
    begin(&a, 0, h, 9);
    begin(&b, 0, h, 9);
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
        cmocka_unit_test(test_map_caps),
        cmocka_unit_test(test_map_k4v),
        cmocka_unit_test(test_mod),
        cmocka_unit_test(test_mod_is_emptied),
        cmocka_unit_test(test_mod_emptied_often),
        cmocka_unit_test(test_periodic),
        cmocka_unit_test(test_periodic_forms),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
