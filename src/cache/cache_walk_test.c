/* SPDX-License-Identifier: Apache-2.0 */
/* cache_walk_test.c - long random walks over everything that a cache does, against a naive model: sequences and
 * drafters that draft, commit, part from each other's texts, end and come back. Single cases: cache_share_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/cache_private.h"
#include "cache/shared_rows_for_tests.h"
#include "fixture.h"

enum { SEQS = 6, KEYS = 1 << 16 };

typedef struct walk {
    hn_cache *c;
    uint64_t rng;
    int all_pages;
    bool exact; /* no pressure: all that was published is there */
    struct {
        bool live;
        int32_t text[TEXT];         /* what it has and what it will write */
        uint32_t mark[TEXT];        /* of the text */
        uint32_t has[OWNERS][TEXT]; /* content of the committed rows */
        int rows[OWNERS];
    } seq[SEQS];
    uint64_t key[KEYS]; /* set of published pages: group, number, text to the end of its block */
} walk;

static int pick(walk *w, int n) {
    return (int)(hn_splitmix(&w->rng) % (uint64_t)n);
}

/* The text from row `from` on: chunks of 16 tokens, each one of two. */
static void plan_text(walk *w, int s, int from) {
    for (int i = from, odd = 0; i < TEXT; i++) {
        if (i % 16 == 0 || i == from) odd = pick(w, 5) == 0;
        w->seq[s].text[i] = (int32_t)(i * 2 + odd);
    }
    make_marks(w->seq[s].text, TEXT, w->seq[s].mark);
}

/* Is page i of the group, as it is for the sequence's text, in the set? add: it is from now on. */
static bool known(walk *w, int s, int group, int i, bool add) {
    const int end = ((i + 1) * group_rows[group] + B - 1) / B * B;
    uint64_t key = ((uint64_t)w->seq[s].mark[end - 1] << 32) + (uint64_t)(group * 4096 + i + 1);
    uint64_t hash = key;
    size_t at = (size_t)hn_splitmix(&hash) % KEYS;
    while (w->key[at] && w->key[at] != key) at = (at + 1) % KEYS;
    if (add) w->key[at] = key;
    return w->key[at] == key;
}

/* Rows of the owner that the naive index has for the sequence's text, `rows` at most. */
static int naive_rows(walk *w, int s, int owner, int rows) {
    for (; rows > 0; rows--) {
        bool whole = true;
        for (int g = 0; g < GROUPS && whole; g++) {
            if (groups[g].owner != owner) continue;
            whole = rows % group_rows[g] == 0;
            for (int i = 0; i < rows / group_rows[g] && whole; i++) whole = known(w, s, g, i, false);
        }
        if (whole) break;
    }
    return rows;
}

static void walk_begin(walk *w, int s) {
    const int n = pick(w, ROWS + 1);
    plan_text(w, s, 0);
    hn_cache_seq_begin(w->c, s);
    int blocks = 0;
    while ((blocks + 1) * B <= n && known(w, s, 0, blocks, false)) blocks++;
    const int got = hn_cache_restore(w->c, s, w->seq[s].text, n);
    for (int o = 0; o < OWNERS; o++) {
        const int rows = hn_cache_committed(w->c, s, o), naive = o == 3 ? 0 : naive_rows(w, s, o, o ? got : blocks * B);
        assert_true(w->exact ? rows == naive : rows <= naive);
        w->seq[s].rows[o] = rows;
        memcpy(w->seq[s].has[o], w->seq[s].mark, sizeof w->seq[s].mark);
    }
    assert_int_equal(w->seq[s].rows[0], got);
    w->seq[s].live = true;
}

static void walk_end(walk *w, int s) {
    hn_cache_seq_end(w->c, s);
    w->seq[s].live = false;
}

/* Rows at the front that hold the sequence's text. */
static int walk_valid(const walk *w, int s, int o) {
    int n = 0;
    while (n < w->seq[s].rows[o] && w->seq[s].has[o][n] == w->seq[s].mark[n]) n++;
    return n;
}

/* A tree of rows behind the committed ones, of which a path with the text's next rows is kept. */
static void walk_extend(walk *w, int s, int o) {
    int *at = &w->seq[s].rows[o];
    const int n = 1 + pick(w, HN_MAX_ROWS), before = hn_cache_free_pages(w->c), dense = 1 + pick(w, 4);
    uint32_t mark[HN_MAX_ROWS];
    int16_t keep[HN_MAX_ROWS];
    int k = 0, wanted = 0;
    hunch_error err;
    if (walk_valid(w, s, o) < *at) return; /* must be rewound first */
    for (int g = 0, have; g < GROUPS; g++) {
        if (groups[g].owner != o) continue;
        hn_cache_pages(w->c, s, g, &have);
        const int want = (*at + n + group_rows[g] - 1) / group_rows[g];
        wanted += want > have ? want - have : 0;
    }
    if (hn_cache_reserve(w->c, s, o, n, &err)) {
        assert_true(!w->exact && before < wanted + GROUPS);
        assert_int_equal(hn_cache_free_pages(w->c), before);
        return;
    }
    assert_true(wanted <= before);
    for (int i = 0; i < n; i++) {
        const bool kept = *at + k < ROWS && pick(w, dense) == 0;
        mark[i] = kept ? w->seq[s].mark[*at + k] : (uint32_t)pick(w, 1 << 30);
        if (kept) keep[k++] = (int16_t)i;
    }
    write_rows(w->c, s, o, *at, n, mark);
    hn_cache_commit(w->c, s, o, keep, k);
    for (int i = 0; i < k; i++, ++*at) w->seq[s].has[o][*at] = w->seq[s].mark[*at];
}

/* The target's rows end at `rows` and another text follows; or a drafter's do, at the latest where the text parts. */
static void walk_rewind(walk *w, int s, int o) {
    const int rows = pick(w, 4) || o == 0 ? pick(w, walk_valid(w, s, o) + 1) : walk_valid(w, s, o);
    hn_cache_rewind(w->c, s, o, rows);
    w->seq[s].rows[o] = rows;
    if (o == 0) plan_text(w, s, rows);
}

static void walk_publish(walk *w, int s) {
    int valid[OWNERS] = {0};
    for (int o = 0; o < 3; o++) valid[o] = walk_valid(w, s, o);
    const int blocks = valid[0] / B;
    hn_cache_publish(w->c, s, w->seq[s].text, valid);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; (i + 1) * group_rows[g] <= valid[groups[g].owner] && (i + 1) * group_rows[g] <= blocks * B; i++)
            known(w, s, g, i, true);
}

/* Pages that no table names are free or idle, all others are not. */
static void check_pages(walk *w) {
    static bool seen[1 << 15];
    int used = 0;
    memset(seen, 0, sizeof seen);
    for (int s = 0; s < SEQS; s++)
        for (int g = 0, n; g < GROUPS; g++) {
            const int32_t *page = hn_cache_pages(w->c, s, g, &n);
            for (int i = 0; i < n; i++) {
                used += !seen[page[i]];
                seen[page[i]] = true;
            }
        }
    assert_int_equal(hn_cache_free_pages(w->c), w->all_pages - used);
    assert_true(hn_cache_valid(w->c));
}

static void walk_step(walk *w) {
    const int s = pick(w, SEQS), what = pick(w, 100);
    int o = pick(w, 3);
    if (!w->seq[s].live)
        walk_begin(w, s);
    else if (what < 5)
        walk_end(w, s);
    else if (what < 15)
        walk_rewind(w, s, o);
    else if (what < 40)
        walk_publish(w, s);
    else if (what < 41 && !w->exact)
        hn_cache_forget(w->c);
    else
        walk_extend(w, s, o);
    check_pages(w);
    for (o = 0; o < 3 && w->seq[s].live && what % 4 == 0; o++) {
        assert_int_equal(hn_cache_committed(w->c, s, o), w->seq[s].rows[o]);
        check_rows(w->c, s, o, w->seq[s].has[o]);
    }
}

static void run_walk(uint64_t seed, bool exact, int pool_rows) {
    walk *w = calloc(1, sizeof *w);
    w->c = open_shared(SEQS, pool_rows);
    w->rng = seed;
    w->exact = exact;
    w->all_pages = hn_cache_free_pages(w->c);
    for (int step = 0; step < (light() ? 300 : 1500); step++) walk_step(w);
    assert_true(!exact || w->c->n_free > 0); /* else something was evicted: the pool is too small for this walk */
    for (int s = 0; s < SEQS; s++)
        if (w->seq[s].live) walk_end(w, s);
    check_pages(w);
    assert_int_equal(hn_cache_free_pages(w->c), w->all_pages);
    hn_cache_close(&w->c);
    free(w);
}

static void test_walk_against_model(void **state) {
    (void)state;
    run_walk(1, true, 300 * ROWS);
    run_walk(2, true, 300 * ROWS);
}

static void test_walk_under_pressure(void **state) {
    (void)state;
    run_walk(3, false, 1);
    run_walk(4, false, 2 * ROWS);
    run_walk(5, false, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walk_against_model),
                                       cmocka_unit_test(test_walk_under_pressure)};
    return cmocka_run_group_tests(tests, rows_setup, rows_teardown);
}
