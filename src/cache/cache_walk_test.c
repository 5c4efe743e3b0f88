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

enum { SEQS = 6, KEYS = 1 << 16, LEAVES = 2000 };

/* The end of a text that filled no node. */
typedef struct leaf {
    uint32_t before; /* mark of the text before it */
    int begin, n;
    int32_t token[B];
    int rows[MODELS], first[MOST_GROUPS]; /* of each model; first page that the table still had */
} leaf;

typedef struct walk {
    hn_cache *c;
    uint64_t rng;
    int all_pages;
    bool exact;       /* no evictions: all published pages are there */
    int brought_back; /* rewinds that found released rows in the index */
    int inside;       /* restores that ended inside a leaf's page */
    int n_leaves;
    leaf leaf[LEAVES]; /* in the order in which they were added */
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

/* Whether the text has node i in the index. add: adds it. */
static bool node_known(walk *w, int s, int i, bool add) {
    uint64_t key = ((uint64_t)w->seq[s].mark[(i + 1) * B - 1] << 32) + (uint64_t)(MOST_GROUPS * 4096 + i + 1);
    uint64_t hash = key;
    size_t at = (size_t)hn_splitmix(&hash) % KEYS;
    while (w->key[at] && w->key[at] != key) at = (at + 1) % KEYS;
    if (add) w->key[at] = key;
    return w->key[at] == key;
}

/* How many tokens of a leaf the text has, which ends after n. */
static int leaf_same(const walk *w, int s, const leaf *l, int n) {
    int k = 0;
    if (l->n == 0 || (l->begin > 0 && w->seq[s].mark[l->begin - 1] != l->before)) return 0;
    while (k < l->n && l->begin + k < n && l->token[k] == w->seq[s].text[l->begin + k]) k++;
    return k;
}

/* The leaf at a place that has most of the text, of equal ones the newest; NULL: none has. */
static leaf *leaf_at(walk *w, int s, int begin, int n, int *same) {
    leaf *best = NULL;
    *same = 0;
    for (int i = w->n_leaves - 1; i >= 0; i--) {
        const int k = w->leaf[i].begin == begin ? leaf_same(w, s, &w->leaf[i], n) : 0;
        if (k > *same) *same = k, best = &w->leaf[i];
    }
    return best;
}

static int first_page(int group, int rows) {
    return first_seen(group, rows) / of->rows[group];
}

/* Whether the index has page i of a group, in a node or in the leaf. */
static bool page_known(walk *w, int s, int g, int i, const leaf *l) {
    const int model_id = of->group[g].model_id;
    if (!l || ((i + 1) * of->rows[g] - 1) / B < l->begin / B) return known(w, s, g, i, false);
    return l->rows[model_id] > l->begin && i >= l->first[g] && i * of->rows[g] < l->rows[model_id];
}

/* Rows of the model that the naive index has for the sequence's text, `rows` at most; l: the leaf after its last node, NULL: none. */
static int naive_rows(walk *w, int s, int model_id, int rows, const leaf *l) {
    for (; rows > 0; rows--) {
        bool whole = true;
        for (int g = 0; g < of->n && whole; g++) {
            if (of->group[g].model_id != model_id) continue;
            const bool in_leaf = l && rows > l->begin;
            whole = in_leaf ? rows <= l->rows[model_id] : rows % of->rows[g] == 0;
            for (int i = first_page(g, rows); i * of->rows[g] < rows && whole; i++) whole = page_known(w, s, g, i, l);
        }
        if (whole) break;
    }
    return rows;
}

/* After evictions: at most the rows that one of the leaves, or none, gives. */
static int naive_most(walk *w, int s, int model_id, int rows, int n) {
    int most = naive_rows(w, s, model_id, rows / B * B, NULL);
    for (int i = 0; i < w->n_leaves; i++) {
        const int same = leaf_same(w, s, &w->leaf[i], n), end = w->leaf[i].begin + same;
        const int got = same > 0 ? naive_rows(w, s, model_id, end < rows ? end : rows, &w->leaf[i]) : 0;
        if (got > most) most = got;
    }
    return most;
}

static void walk_begin(walk *w, int s) {
    const int n = pick(w, ROWS + 1);
    plan_text(w, s, 0);
    hn_cache_seq_begin(w->c, s);
    const int got = hn_cache_restore(w->c, s, w->seq[s].text, n);
    int nodes = 0, same;
    while ((nodes + 1) * B <= n && node_known(w, s, nodes, false)) nodes++;
    const leaf *l = leaf_at(w, s, nodes * B, n, &same);
    w->inside += got % B > 0;
    for (int o = 0; o < MODELS; o++) {
        const int rows = hn_cache_committed(w->c, s, o), most = o ? got : w->exact ? nodes * B + same : n;
        const int naive = o == 3 ? 0 : w->exact ? naive_rows(w, s, o, most, l) : naive_most(w, s, o, most, n);
        assert_true(w->exact ? rows == naive : rows <= naive);
        w->seq[s].rows[o] = rows;
        memcpy(w->seq[s].has[o], w->seq[s].mark, sizeof w->seq[s].mark);
    }
    assert_int_equal(w->seq[s].rows[0], got);
    for (int g = 0; g < of->n; g++) {
        w->seq[s].first[g] = first_page(g, w->seq[s].rows[of->group[g].model_id]);
        const int rows = w->seq[s].rows[of->group[g].model_id];
        w->seq[s].published[g] = (rows < got / B * B ? rows : got / B * B) / of->rows[g];
    }
    w->seq[s].live = true;
}

/* Number of leading rows that have the sequence's text. */
static int walk_valid(const walk *w, int s, int o) {
    int n = 0;
    while (n < w->seq[s].rows[o] && w->seq[s].has[o][n] == w->seq[s].mark[n]) n++;
    return n;
}

/* The first page that a drafter's window keeps beside `first`: pages that are not published wait, if the plan has room for them. Under
 * pressure the index may have no room for a node: fewer are published than here. */
static int first_waiting(const walk *w, int s, int g, int first, int rows) {
    const int pages = (rows + of->rows[g] - 1) / of->rows[g], planned = pages - (int)hn_cache_pages_at_most(w->c, g, ROWS);
    const int *in_index = w->exact ? w->seq[s].published : w->c->seq[s].published;
    const int published = in_index[g], waiting = published > planned ? published : planned;
    const bool waits = of->group[g].model_id > 0 && of->group[g].window && in_index[0] > 0;
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
    return naive_rows(w, s, o, rows, NULL);
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

/* Adds what the naive index has of the text's last page. */
static void walk_leaf(walk *w, int s, const int *valid, bool shared) {
    const int begin = valid[0] / B * B, n = valid[0] - begin;
    int same;
    leaf *old = leaf_at(w, s, begin, valid[0], &same), l = {.before = begin ? w->seq[s].mark[begin - 1] : 0, .begin = begin, .n = n};
    if (n == 0 || shared || (w->exact && old && same == n && old->n > n)) return;
    memcpy(l.token, w->seq[s].text + begin, (size_t)n * sizeof *l.token);
    for (int o = 0; o < 3; o++) l.rows[o] = valid[o] < valid[0] ? valid[o] : valid[0];
    memcpy(l.first, w->seq[s].first, sizeof l.first);
    if (w->exact && old && same == old->n) old->n = 0;
    assert_true(w->n_leaves < LEAVES);
    w->leaf[w->n_leaves++] = l;
}

static void walk_publish(walk *w, int s, bool end) {
    int valid[MODELS] = {0}, pages;
    for (int o = 0; o < 3; o++) valid[o] = walk_valid(w, s, o);
    const int nodes = valid[0] / B;
    const int32_t *page = hn_cache_pages(w->c, s, 0, &pages);
    /* a page that others use is in the index, unless it was cleared */
    const bool shared = nodes < pages && !of->group[0].window && w->c->use[page[nodes]].tables > 1;
    (end ? hn_cache_publish_end : hn_cache_publish)(w->c, s, w->seq[s].text, valid);
    for (int i = 0; i < nodes; i++) node_known(w, s, i, true);
    if (end) walk_leaf(w, s, valid, shared);
    for (int g = 0; g < of->n; g++) {
        int *i = &w->seq[s].published[g];
        const int model_id = of->group[g].model_id, rows = valid[model_id] < nodes * B ? valid[model_id] : nodes * B;
        for (; (*i + 1) * of->rows[g] <= rows; ++*i)
            if (*i >= w->seq[s].first[g]) known(w, s, g, *i, true);
    }
}

static void walk_end(walk *w, int s) {
    if (pick(w, 4)) walk_publish(w, s, true);
    hn_cache_seq_end(w->c, s);
    w->seq[s].live = false;
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
        walk_publish(w, s, false);
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
    assert_true(light() || w->inside > 0);
    for (int s = 0; s < SEQS; s++)
        if (w->seq[s].live) walk_end(w, s);
    check_pages(w);
    assert_int_equal(hn_cache_free_pages(w->c), w->all_pages);
    hn_cache_close(&w->c);
    free(w);
}

static const shape *const shapes[] = {&FULL, &MIXED, &WINDOWS, &DECLARED};
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
