/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_suffix_test.c - the drafter around the trees: golden vectors through its levels, budgets, the life of texts
 * from begin to the store of earlier ones, options, memory that runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "draft/drafter_for_tests.h"
#include "suffix_naive.h"

static hn_committed_text text_of(const int32_t *token, int n) {
    return (hn_committed_text){token, n, n};
}

static void observe(hn_drafter *d, int seq, const hn_tree *t, const int16_t *path, int n, int32_t next) {
    const hn_observe o = {.seq = seq, .tree = t, .n_accepted = n, .path = path, .next_token = next};
    d->ops->observe(d, &o, 1);
}

/* The rows that a target accepts whose next tokens are token[0..n); returns how many. */
static int accept(const hn_tree *t, const int32_t *token, int n, int16_t path[DEPTH]) {
    int len = 0;
    for (int row = 0; len < n && (row = hn_tree_child(t, row, token[len])) > 0;) path[len++] = (int16_t)row;
    return len;
}

/* The rows of a tree are the first `budget` tokens of a draft, with the estimates of their steps. */
static void check_rows(const hn_tree *t, const hn_suffix_draft *want, int budget) {
    int row[DEPTH], n = want->n < budget ? want->n : budget;
    assert_int_equal(t->n_rows, n + 1);
    for (int i = 0; i < n; i++) {
        int above = want->parent[i] < 0 ? 0 : row[want->parent[i]];
        row[i] = hn_tree_child(t, above, want->token[i]);
        assert_true(row[i] > 0);
        for (int c = 0; c < t->n_candidates; c++)
            if (t->candidate[c].child == row[i]) assert_float_equal(t->candidate[c].estimate, (float)want->step[i], 0);
    }
}

/* ---- golden vectors ---------------------------------------------------------------------------------------------- */

static void check_golden(const char *spec, const int32_t *text, int n, const int32_t *token, const int16_t *parent,
                         int len) {
    hn_drafter d;
    hn_tree t;
    open_or_fail(&d, spec, 1);
    begin(&d, 0, text, n);
    draft(&d, 0, text_of(text, n), DEPTH, &t);
    assert_int_equal(t.n_rows, len + 1);
    for (int i = 1; i <= len; i++) { /* rows come level by level */
        assert_int_equal(t.token[i], token[i - 1]);
        assert_int_equal(t.parent[i], parent ? parent[i - 1] : i - 1);
    }
    hn_drafter_close(&d);
}

static void test_golden(void **state) {
    (void)state;
#define A (const int32_t[]) TEXT_A
#define B (const int32_t[]) TEXT_B
#define C (const int32_t[]) TEXT_C
#define GOLDEN(spec, text, parent, n, ...)                                                                             \
    check_golden("suffix,window=8,min_p=.1" spec, text, (const int32_t[]){__VA_ARGS__}, parent, n)
    GOLDEN("", A, NULL, 3, 4, 1, 2);
    GOLDEN("", B, NULL, 2, 9, 7);
    GOLDEN("", C, NULL, 3, 6, 5, 6);
    GOLDEN(",factor=2", A, NULL, 5, 4, 1, 2, 3, 5);
    GOLDEN(",factor=2", B, NULL, 4, 9, 7, 8, 1);
    GOLDEN(",factor=2", C, NULL, 4, 6, 5, 6, 5);
    GOLDEN(",mode=tree", A, ((const int16_t[]){0, 0, 1}), 3, 4, 5, 1);
    GOLDEN(",mode=tree", B, ((const int16_t[]){0, 0}), 2, 9, 1);
    GOLDEN(",mode=tree", C, NULL, 3, 6, 5, 6);
}

/* Both texts are finished sequences; the third finds its matches there. Its own text has none. */
static void test_golden_earlier(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        int32_t text[4];
        int n, len;
        int32_t token[3];
        int16_t parent[3];
    } earlier[] = {
        {"suffix,window=8,depth=8,min_p=.1", {2, 3}, 2, 1, {4}, {0}},
        {"suffix,window=8,depth=8,min_p=.1", {1, 2, 3}, 3, 2, {4, 5}, {0, 1}},
        {"suffix,window=8,depth=8,min_p=.1", {9, 2, 3, 4}, 4, 2, {5, 6}, {0, 1}},
        {"suffix,window=8,depth=8,min_p=.1,mode=tree", {9, 2, 3, 4}, 4, 3, {5, 7, 6}, {0, 0, 1}},
        {"suffix,window=8,depth=8,max_texts=0", {9, 2, 3, 4}, 4, 0, {0}, {0}},
    };
    for (size_t i = 0; i < sizeof earlier / sizeof earlier[0]; i++) {
        hn_drafter d;
        hn_tree t;
        open_or_fail(&d, earlier[i].spec, 2);
        begin(&d, 0, (const int32_t[]){1, 2, 3, 4, 5, 6}, 6);
        begin(&d, 1, (const int32_t[]){9, 2, 3, 4, 7, 8}, 6);
        d.ops->end(&d, 0);
        d.ops->end(&d, 1);
        begin(&d, 1, earlier[i].text, earlier[i].n);
        draft(&d, 1, text_of(earlier[i].text, earlier[i].n), DEPTH, &t);
        assert_int_equal(t.n_rows, 1 + earlier[i].len);
        for (int k = 0; k < earlier[i].len; k++) {
            assert_int_equal(t.token[k + 1], earlier[i].token[k]);
            assert_int_equal(t.parent[k + 1], earlier[i].parent[k]);
        }
        d.ops->forget(&d); /* the store is empty, the sequence lives on */
        draft(&d, 1, text_of(earlier[i].text, earlier[i].n), DEPTH, &t);
        assert_int_equal(t.n_rows, 1);
        hn_drafter_close(&d);
    }
}

/* ---- properties ---------------------------------------------------------------------------------------------------- */

/* The drafter's choice, by recounting: this text's draft unless that of the earlier ones scores higher. */
static void naive_choice(naive_texts *earlier, const hn_suffix_rules *r, const int32_t *text, int n, int longest_text,
                         hn_suffix_draft *out) {
    static naive_texts own;
    hn_suffix_draft other;
    int kept = n < longest_text ? n : longest_text;
    own = (naive_texts){.window = earlier->window, .n = 1};
    own.text[0].n = kept;
    memcpy(own.text[0].token, text + n - kept, (size_t)kept * sizeof *text);
    naive_best(&own, r, text, n, out);
    naive_best(earlier, r, text, n, &other);
    if (other.score > out->score) *out = other;
}

/* Complete texts: prompt, rounds of several tokens, end; the next texts find the earlier ones. After
 * every prefix the draft equals that of recounting, so also that of a drafter that began there. Nothing after
 * the committed text is read. */
static void check_lives(const char *spec, hn_suffix_rules r, int window, uint64_t *seed) {
    static naive_texts earlier;
    hn_drafter d;
    hn_tree t;
    open_or_fail(&d, spec, 2);
    earlier = (naive_texts){.window = window};
    for (int life = 0; life < 4; life++) {
        int32_t h[TEXT], seen[TEXT], seq = life % 2, total = 30 + (int)(hn_splitmix(seed) % 60);
        int n = 1 + (int)(hn_splitmix(seed) % 20), accepted;
        int16_t path[DEPTH];
        text_make(seed, h);
        if (life && hn_splitmix(seed) % 2) memcpy(h, earlier.text[life - 1].token, 25 * sizeof *h);
        h[0] = 11 + life; /* no text is a prefix of another */
        begin(&d, seq, h, n);
        while (n <= total - 9) {
            int budget = hn_splitmix(seed) % 2 ? DEPTH : 1 + (int)(hn_splitmix(seed) % 8);
            hn_suffix_draft want;
            for (int i = 0; i < TEXT; i++) seen[i] = i < n ? h[i] : POISON;
            draft(&d, seq, text_of(seen, n), budget, &t);
            naive_choice(&earlier, &r, h, n, TEXT, &want);
            check_rows(&t, &want, budget);
            accepted = accept(&t, h + n, total - n, path);
            if (hn_splitmix(seed) % 2) observe(&d, seq, &t, path, accepted, n + accepted < total ? h[n + accepted] : 0);
            n += 1 + (int)(hn_splitmix(seed) % 4);
        }
        /* the tokens that the last round accepted had no propose after them: `observe` adds them */
        n = total - 9;
        draft(&d, seq, text_of(h, n), DEPTH, &t);
        accepted = accept(&t, h + n, 8, path);
        observe(&d, seq, &t, path, accepted, h[n + accepted]);
        total = n + accepted + 1;
        d.ops->end(&d, seq);
        earlier.text[earlier.n].n = total;
        memcpy(earlier.text[earlier.n++].token, h, (size_t)total * sizeof *h);
    }
    hn_drafter_close(&d);
}

static void test_lives(void **state) {
    (void)state;
    uint64_t seed = 23;
    for (int round = 0; round < cases(8); round++) {
        check_lives("suffix", (hn_suffix_rules){false, 16, 1, 0, .3}, 64, &seed);
        check_lives("suffix,mode=tree,min_p=.1", (hn_suffix_rules){true, 16, 1, 0, .1}, 64, &seed);
        check_lives("suffix,mode=tree,depth=63,factor=3,offset=2,min_p=0,window=12",
                    (hn_suffix_rules){true, 63, 3, 2, 0}, 12, &seed);
        check_lives("suffix,window=5,depth=4,factor=1.5,offset=-1,min_p=.3", (hn_suffix_rules){false, 4, 1.5, -1, .3},
                    5, &seed);
    }
}

/* Of a text longer than `text` tokens only the newest are used, in whatever steps they came. */
static void test_long_text(void **state) {
    (void)state;
    enum { LONG = 8 * TEXT, NEWEST = 256 };
    static naive_texts none = {.window = 16};
    int32_t h[LONG];
    const hn_suffix_rules r = {.tree = true, .depth = 16, .factor = 1, .min_p = .1};
    uint64_t seed = 29;
    hn_drafter d;
    hn_tree t;
    open_or_fail(&d, "suffix,mode=tree,window=16,min_p=.1,text=256", 1);
    for (int i = 0; i + TEXT <= LONG; i += TEXT) text_make(&seed, h + i);
    begin(&d, 0, h, 1000);
    for (int n = 1000, checked = 0; n <= LONG; n += checked++ == 40 ? 500 : 1 + (int)(hn_splitmix(&seed) % 30)) {
        hn_suffix_draft want;
        if (checked == 60) n -= 700; /* before what is still stored */
        draft(&d, 0, text_of(h, n), DEPTH, &t);
        naive_choice(&none, &r, h, n, NEWEST, &want);
        check_rows(&t, &want, DEPTH);
    }
    hn_drafter_close(&d);
}

/* A preempted sequence ends and begins again with its text: the final text is counted once. */
static void test_preempted(void **state) {
    (void)state;
    static const int32_t text[] = {1, 2, 3, 4, 5, 1, 2, 3, 6, 7};
    hn_drafter d;
    hn_tree t;
    open_or_fail(&d, "suffix", 1);
    for (int n = 5; n <= 10; n++) {
        begin(&d, 0, text, n);
        draft(&d, 0, text_of(text, n), DEPTH, &t);
        d.ops->end(&d, 0);
    }
    /* once 4 and once 6 after 1 2 3, so a half, and the older first */
    begin(&d, 0, (const int32_t[]){9, 1, 2, 3}, 4);
    draft(&d, 0, text_of((const int32_t[]){9, 1, 2, 3}, 4), DEPTH, &t);
    assert_int_equal(t.token[1], 4);
    assert_float_equal(t.candidate[0].estimate, .5, 0);
    hn_drafter_close(&d);
}

/* Rows of other drafters cost nothing; without rows of its own a draft only shares existing ones. */
static void test_shared_rows(void **state) {
    (void)state;
    static const int32_t h[] = {1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4};
    hn_drafter d;
    hn_tree t;
    open_or_fail(&d, "suffix", 1);
    d.index = 1;
    begin(&d, 0, h, 11);
    hn_tree_reset(&t, 4, HN_TREE_ROWS);
    int row = hn_tree_add(&t, 0, 5, 0, .5f);
    hn_tree_add(&t, row, 6, 0, .5f);
    hn_propose p = {.seq = 0, .text = {h, 11, 11}, .tree = &t, .budget = 0};
    for (int level = 0; level < 4; level++) assert_int_equal(d.ops->propose(&d, &p, 1, level), level < 2);
    assert_int_equal(t.n_rows, 3);
    assert_int_equal(t.n_candidates, 4);
    assert_true(hn_tree_valid(&t));
    /* the budget may have shrunk since the round began */
    hn_tree_reset(&t, 4, HN_TREE_ROWS);
    p.budget = 9;
    assert_int_equal(d.ops->propose(&d, &p, 1, 0), 1);
    p.budget = 0;
    assert_int_equal(d.ops->propose(&d, &p, 1, 1), 0);
    /* a level of a round that was never begun adds nothing */
    hn_tree_reset(&t, 3, HN_TREE_ROWS);
    p.text.n = 10;
    p.budget = 9;
    assert_int_equal(d.ops->propose(&d, &p, 1, 1), 0);
    hn_drafter_close(&d);
}

/* A long prompt is counted between rounds, some of it at a time; until all of it is there is no draft from it. */
static void test_slices(void **state) {
    (void)state;
    enum { LONG = 20000, PERIOD = 500, MOST = 2048 };
    static int32_t h[LONG];
    hn_drafter d;
    hn_tree t;
    int rounds = 0, drafted = 0;
    for (int i = 0; i < LONG; i++) h[i] = i % PERIOD;
    open_or_fail(&d, "suffix", 1);
    begin(&d, 0, h, LONG);
    for (; !drafted; rounds++) {
        hn_propose p = {.seq = 0, .text = text_of(h, LONG), .tree = &t, .budget = DEPTH};
        hn_tree_reset(&t, h[LONG - 1], HN_TREE_ROWS);
        drafted = d.ops->propose(&d, &p, 1, 0);
        (void)d.ops->work(&d);
        if (drafted) assert_int_equal(t.token[1], 0);
    }
    assert_in_range(rounds, LONG / MOST, LONG / 256);
    begin(&d, 0, h, LONG);
    for (rounds = 0; d.ops->work(&d); rounds++) continue; /* alone, while the prompt is read */
    assert_in_range(rounds, LONG / MOST, LONG / 256);
    draft(&d, 0, text_of(h, LONG), DEPTH, &t);
    assert_true(t.n_rows > 8);
    hn_drafter_close(&d);
}

static void test_options(void **state) {
    (void)state;
    static const char *const bad[] = {
        "suffix:file",         "suffix,depth=0",  "suffix,depth=64",  "suffix,window=1",  "suffix,window=65",
        "suffix,factor=-1",    "suffix,factor=x", "suffix,min_p=1.1", "suffix,min_p=-.1", "suffix,mode=both",
        "suffix,max_texts=-1", "suffix,mib=0",    "suffix,text=255",  "suffix,offset=65", "suffix,form=pld",
    };
    hn_drafter d;
    hunch_error err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(hn_drafter_open(&d, bad[i], 0, 1, &TARGET, &err), HUNCH_USAGE);
    open_or_fail(&d, "suffix,depth=5,mode=tree", 3);
    assert_int_equal(d.needs.max_depth, 5);
    assert_true(d.needs.branches && !d.needs.has_dist && d.needs.cost == HN_COST_PER_ROUND);
    hn_drafter_close(&d);
}

/* Every allocation fails once, and all from one on: open reports it; later there is no draft, or a text is not stored, and
 * any drafts are the same as with memory. */
static void test_no_memory(void **state) {
    (void)state;
    uint64_t seed = 31;
    int32_t h[TEXT];
    text_make(&seed, h);
    int opened = 0;
    for (int sticky = 0; sticky < 2; sticky++)
        for (int after = 0;; after++) {
            hn_drafter d;
            hn_tree t;
            hunch_error err;
            hn_fault_arm(HN_FAULT_ALLOC, after, sticky);
            hunch_status s = hn_drafter_open(&d, "suffix,text=256,mib=1", 0, 1, &TARGET, &err);
            if (s) {
                assert_int_equal(s, HUNCH_NO_MEMORY);
                hn_fault_arm(HN_FAULT_ALLOC, -1, false);
                continue;
            }
            opened++;
            for (int life = 0; life < 2; life++) {
                begin(&d, 0, h, 100);
                for (int n = 100; n <= TEXT; n += 20) {
                    draft(&d, 0, text_of(h, n), DEPTH, &t);
                    observe(&d, 0, &t, NULL, 0, 1);
                }
                d.ops->end(&d, 0);
            }
            bool done = hn_fault_count(HN_FAULT_ALLOC) <= (uint64_t)after;
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            d.ops->forget(&d); /* the stored texts depend on when memory ran out */
            begin(&d, 0, h, TEXT);
            draft(&d, 0, text_of(h, TEXT), DEPTH, &t);
            static naive_texts none = {.window = 64};
            const hn_suffix_rules r = {false, 16, 1, 0, .3};
            hn_suffix_draft want;
            naive_choice(&none, &r, h, TEXT, TEXT, &want);
            check_rows(&t, &want, DEPTH);
            hn_drafter_close(&d);
            if (done) break;
        }
    assert_true(opened > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),    cmocka_unit_test(test_golden_earlier), cmocka_unit_test(test_lives),
        cmocka_unit_test(test_long_text), cmocka_unit_test(test_preempted),      cmocka_unit_test(test_shared_rows),
        cmocka_unit_test(test_options),   cmocka_unit_test(test_no_memory),      cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
