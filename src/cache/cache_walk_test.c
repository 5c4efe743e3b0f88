/* SPDX-License-Identifier: Apache-2.0 */
/* cache_walk_test.c - long random walks over all operations of a cache, against a naive model: sequences and drafters that
 * draft, commit, branch from each other's texts, end and return. Single cases: cache_share_test.c. */
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
    bool exact;       /* no evictions: all published pages are there */
    int brought_back; /* rewinds that found released rows in the index */
    struct {
        bool live;
        int32_t text[TEXT];         /* of its rows, and of those that it will write */
        uint32_t mark[TEXT];        /* of the text */
        uint32_t has[MODELS][TEXT]; /* content of the committed rows */
        int rows[MODELS];
        int first[MOST_GROUPS];     /* first page that the table still has */
        int published[MOST_GROUPS]; /* pages */
    } seq[SEQS];
    uint64_t key[KEYS]; /* set of published pages: group, number, text to the end of its node */
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

/* True if page i of the group for the sequence's text is in the set. add: adds it. */
static bool known(walk *w, int s, int group, int i, bool add) {
    const int end = ((i + 1) * of->rows[group] + B - 1) / B * B;
    uint64_t key = ((uint64_t)w->seq[s].mark[end - 1] << 32) + (uint64_t)(group * 4096 + i + 1);
    uint64_t hash = key;
    size_t at = (size_t)hn_splitmix(&hash) % KEYS;
    while (w->key[at] && w->key[at] != key) at = (at + 1) % KEYS;
    if (add) w->key[at] = key;
    return w->key[at] == key;
}

static int first_page(int group, int rows) {
    return first_seen(group, rows) / of->rows[group];
}

/* Rows of the model that the naive index has for the sequence's text, `rows` at most. */
static int naive_rows(walk *w, int s, int model_id, int rows) {
    for (; rows > 0; rows--) {
        bool whole = true;
        for (int g = 0; g < of->n && whole; g++) {
            if (of->group[g].model_id != model_id) continue;
            whole = rows % of->rows[g] == 0;
            for (int i = first_page(g, rows); i < rows / of->rows[g] && whole; i++) whole = known(w, s, g, i, false);
        }
        if (whole) break;
    }
    return rows;
}

static void walk_begin(walk *w, int s) {
    const int n = pick(w, ROWS + 1);
    plan_text(w, s, 0);
    hn_cache_seq_begin(w->c, s);
    const int got = hn_cache_restore(w->c, s, w->seq[s].text, n);
    for (int o = 0; o < MODELS; o++) {
        const int rows = hn_cache_committed(w->c, s, o), naive = o == 3 ? 0 : naive_rows(w, s, o, o ? got : n / B * B);
        assert_true(w->exact ? rows == naive : rows <= naive);
        w->seq[s].rows[o] = rows;
        memcpy(w->seq[s].has[o], w->seq[s].mark, sizeof w->seq[s].mark);
    }
    assert_int_equal(w->seq[s].rows[0], got);
    for (int g = 0; g < of->n; g++) {
        w->seq[s].first[g] = first_page(g, w->seq[s].rows[of->group[g].model_id]);
        w->seq[s].published[g] = w->seq[s].rows[of->group[g].model_id] / of->rows[g];
    }
    w->seq[s].live = true;
}

static void walk_end(walk *w, int s) {
    hn_cache_seq_end(w->c, s);
    w->seq[s].live = false;
}

/* Number of leading rows that have the sequence's text. */
static int walk_valid(const walk *w, int s, int o) {
    int n = 0;
    while (n < w->seq[s].rows[o] && w->seq[s].has[o][n] == w->seq[s].mark[n]) n++;
    return n;
}

/* The first page that a drafter's window keeps beside `first`: pages that are not published wait, if the plan has room for them. */
static int first_waiting(const walk *w, int s, int g, int first, int rows) {
    const int pages = (rows + of->rows[g] - 1) / of->rows[g], planned = pages - (int)hn_cache_pages_at_most(w->c, g, ROWS);
    const int published = w->seq[s].published[g], waiting = published > planned ? published : planned;
    const bool waits = of->group[g].model_id > 0 && of->group[g].window && w->seq[s].published[0] > 0;
    return waits && waiting < first ? waiting : first;
}

/* Number of pages that a reserve of n rows releases; if the index may not have all that was published, at most. */
static int walk_let_go(walk *w, int s, int o, int n) {
    int gone = 0;
    for (int g = 0; g < of->n; g++) {
        const int seen = of->group[g].model_id == o ? first_page(g, w->seq[s].rows[o] - of->group[g].back) : 0;
        const int first = w->exact ? first_waiting(w, s, g, seen, w->seq[s].rows[o] + n) : seen;
        gone += first > w->seq[s].first[g] ? first - w->seq[s].first[g] : 0;
    }
    return gone;
}

/* After that reserve. */
static void walk_first(walk *w, int s, int o, int n) {
    for (int g = 0; g < of->n; g++) {
        const int seen = of->group[g].model_id == o ? first_page(g, w->seq[s].rows[o] - of->group[g].back) : 0;
        const int least = first_waiting(w, s, g, seen, w->seq[s].rows[o] + n);
        int *const first = &w->seq[s].first[g], pages, before = *first;
        const int32_t *page = hn_cache_pages(w->c, s, g, &pages);
        if (least > *first) *first = least;
        while (!w->exact && *first < pages && page[*first] == HN_NO_PAGE) ++*first;
        assert_true(*first == before || *first <= seen);
    }
}

/* A tree of rows after the committed ones, of which a path with the text's next rows is kept. */
static void walk_extend(walk *w, int s, int o) {
    int *at = &w->seq[s].rows[o];
    const int n = 1 + pick(w, HN_MAX_ROWS), before = hn_cache_free_pages(w->c), dense = 1 + pick(w, 4);
    uint32_t mark[HN_MAX_ROWS];
    int16_t keep[HN_MAX_ROWS];
    int k = 0, wanted = 0;
    hunch_error err;
    if (walk_valid(w, s, o) < *at) return; /* must be rewound first */
    for (int g = 0, have; g < of->n; g++) {
        if (of->group[g].model_id != o) continue;
        hn_cache_pages(w->c, s, g, &have);
        const int want = (*at + n + of->rows[g] - 1) / of->rows[g];
        wanted += want > have ? want - have : 0;
    }
    const int gone = walk_let_go(w, s, o, n);
    const hunch_status st = hn_cache_reserve(w->c, s, o, n, &err);
    walk_first(w, s, o, n);
    if (st) {
        const int now = hn_cache_free_pages(w->c);
        assert_true(!w->exact && now < wanted + of->n);
        assert_true(now >= before && now <= before + gone);
        return;
    }
    assert_true(wanted <= before + gone);
    for (int i = 0; i < n; i++) {
        const bool kept = *at + k < ROWS && pick(w, dense) == 0;
        mark[i] = kept ? w->seq[s].mark[*at + k] : (uint32_t)pick(w, 1 << 30);
        if (kept) keep[k++] = (int16_t)i;
    }
    write_rows(w->c, s, o, *at, n, mark);
    hn_cache_commit(w->c, s, o, keep, k);
    for (int i = 0; i < k; i++, ++*at) w->seq[s].has[o][*at] = w->seq[s].mark[*at];
}

/* True if the model released rows that the one after `rows` rows sees. */
static bool naive_gone(const walk *w, int s, int o, int rows) {
    for (int g = 0; g < of->n; g++)
        if (of->group[g].model_id == o && first_page(g, rows) < w->seq[s].first[g]) return true;
    return false;
}

/* Rows of a model that the naive index restores: published ones, `rows` at most. */
static int naive_back(walk *w, int s, int o, int rows) {
    for (int g = 0; g < of->n; g++) {
        const int published = w->seq[s].published[g] * of->rows[g];
        if (of->group[g].model_id == o && published < rows) rows = published;
    }
    return naive_rows(w, s, o, rows);
}

/* Rewinds the target to some row, from which another text follows; or a drafter, at most to where the text branches. Sometimes
 * by a few rows only. */
static void walk_rewind(walk *w, int s, int o) {
    const int valid = walk_valid(w, s, o), most = pick(w, 3) || valid < 12 ? valid + 1 : 12;
    const int wanted = pick(w, 4) || o == 0 ? valid - pick(w, most) : valid;
    const bool gone = naive_gone(w, s, o, wanted);
    const int naive = gone ? naive_back(w, s, o, wanted) : wanted, rows = hn_cache_rewind(w->c, s, o, wanted);
    assert_true(w->exact || !gone ? rows == naive : rows <= naive);
    w->brought_back += gone && rows > 0;
    w->seq[s].rows[o] = rows;
    for (int g = 0; g < of->n; g++) {
        int *const first = &w->seq[s].first[g], *const published = &w->seq[s].published[g];
        const int most_pages = (o ? rows : rows / B * B) / of->rows[g];
        if (of->group[g].model_id == o && first_page(g, rows) < *first) *first = first_page(g, rows);
        if ((o == 0 || of->group[g].model_id == o) && *published > most_pages) *published = most_pages;
    }
    if (o == 0) plan_text(w, s, rows);
}

static void walk_publish(walk *w, int s) {
    int valid[MODELS] = {0};
    for (int o = 0; o < 3; o++) valid[o] = walk_valid(w, s, o);
    const int nodes = valid[0] / B;
    hn_cache_publish(w->c, s, w->seq[s].text, valid);
    for (int g = 0; g < of->n; g++) {
        int *i = &w->seq[s].published[g];
        const int model_id = of->group[g].model_id, rows = valid[model_id] < nodes * B ? valid[model_id] : nodes * B;
        for (; (*i + 1) * of->rows[g] <= rows; ++*i)
            if (*i >= w->seq[s].first[g]) known(w, s, g, *i, true);
    }
}

/* Pages in no table are free or idle, all others are not; a table has the right ones. */
static void check_pages(walk *w) {
    static bool seen[1 << 16];
    int used = 0;
    memset(seen, 0, sizeof seen);
    for (int s = 0; s < SEQS; s++)
        for (int g = 0, n; g < of->n; g++) {
            const int32_t *page = hn_cache_pages(w->c, s, g, &n);
            for (int i = 0; i < n; i++) {
                assert_int_equal(page[i] == HN_NO_PAGE, i < w->seq[s].first[g]);
                if (page[i] == HN_NO_PAGE) continue;
                used += !seen[page[i]];
                seen[page[i]] = true;
            }
        }
    assert_int_equal(hn_cache_free_pages(w->c), w->all_pages - used);
    assert_true(hn_cache_valid(w->c));
}

static void walk_forget(walk *w) {
    hn_cache_index_clear(w->c);
    for (int s = 0; s < SEQS; s++) memset(w->seq[s].published, 0, sizeof w->seq[s].published);
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
        walk_forget(w);
    else
        walk_extend(w, s, o);
    check_pages(w);
    for (o = 0; o < 3 && w->seq[s].live && what % 4 == 0; o++) {
        assert_int_equal(hn_cache_committed(w->c, s, o), w->seq[s].rows[o]);
        check_rows(w->c, s, o, w->seq[s].has[o]);
    }
}

static void run_walk(const shape *with, uint64_t seed, bool exact, int pool_rows) {
    walk *w = calloc(1, sizeof *w);
    of = with;
    w->c = open_shared(SEQS, pool_rows);
    w->rng = seed;
    w->exact = exact;
    w->all_pages = hn_cache_free_pages(w->c);
    for (int step = 0; step < (light() ? 300 : 1500); step++) walk_step(w);
    assert_true(!exact || w->c->n_free > 0); /* else something was evicted: the pool is too small for this walk */
    assert_true(light() || !exact || of == &FULL || w->brought_back > 0);
    for (int s = 0; s < SEQS; s++)
        if (w->seq[s].live) walk_end(w, s);
    check_pages(w);
    assert_int_equal(hn_cache_free_pages(w->c), w->all_pages);
    hn_cache_close(&w->c);
    free(w);
}

static const shape *const shapes[] = {&FULL, &MIXED, &WINDOWS};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void test_walk_against_model(void **state) {
    (void)state;
    for (uint64_t i = 0; i < SHAPES; i++) {
        run_walk(shapes[i], 10 * i + 1, true, 600 * ROWS);
        run_walk(shapes[i], 10 * i + 2, true, 600 * ROWS);
    }
}

static void test_walk_under_pressure(void **state) {
    (void)state;
    for (uint64_t i = 0; i < SHAPES; i++) {
        run_walk(shapes[i], 10 * i + 3, false, 1);
        run_walk(shapes[i], 10 * i + 4, false, 2 * ROWS);
        run_walk(shapes[i], 10 * i + 5, false, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walk_against_model),
                                       cmocka_unit_test(test_walk_under_pressure)};
    return cmocka_run_group_tests(tests, rows_setup, rows_teardown);
}
