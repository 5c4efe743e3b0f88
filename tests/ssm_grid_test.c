/* SPDX-License-Identifier: Apache-2.0 */
/* ssm_grid_test.c - states on a grid of positions (ops/ssm.h): a row's logits are those of plain decoding, bit for bit, wherever in a cell
 * of the grid the root lies, in drafts that go through several cells, in trees whose paths cross a multiple of the grid by different rows,
 * over random trees and accepted paths, and in drafts that grow by a level a pass. Planted mistakes are detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/cpu_mem.h"
#include "ops/ssm.h"
#include "bits.h"

enum { ROWS = 150, LEVELS = 30, CELLS = 3 };
static const char *const models[] = {"goldens/mamba2-plain", "goldens/granitemoehybrid-dense"};

/* ---- mistakes ------------------------------------------------------------------------------------------------------------- */

typedef enum mistake { NONE, STAYS, TWICE, NEIGHBOUR, NOT_WRITTEN, MISTAKES } mistake;
static const char *const names[] = {"none", "a state that does not move on", "a row that is added twice", "a row of another path",
                                    "a state that moves on in the pass alone"};
static mistake planted;
static const hn_ops *honest;

/* One thread. Of the first cell that adds rows: */
static void wrong_ssm(const hn_exec *ex, const hn_ssm_job *j) {
    const hn_exec right = {honest, ex->backend, ex->rank, ex->ranks};
    hn_grid_cell *cells = hn_host(j->grid->cell);
    const int32_t *first = hn_host_i32(j->grid->first);
    int32_t *slot = hn_host(j->grid->slot);
    int i = 0;
    while (i < first[1] && cells[i].slots == 0) i++;
    if (planted != NONE && i < first[1]) {
        hn_grid_cell *c = &cells[i];
        int32_t *of = slot + c->slot;
        const int32_t kept = of[1], last = of[HN_GRID - 1];
        const hn_grid_cell was = *c;
        if (planted == STAYS && c->from == HN_WALK_STATE) c->slots = 0;
        if (planted == TWICE) of[1] = of[0];
        if (planted == NEIGHBOUR && of[HN_GRID - 1] > 0) of[HN_GRID - 1]--;
        if (planted == NOT_WRITTEN && c->to == HN_WALK_STATE) c->to = HN_GRID_LEVELS;
        honest->ssm(&right, j);
        *c = was;
        of[1] = kept;
        of[HN_GRID - 1] = last;
        return;
    }
    honest->ssm(&right, j);
}

/* ---- a text in a cache ------------------------------------------------------------------------------------------------------ */

typedef struct rig {
    hn_cache *cache;
    hn_runner *runner;
    hn_row row[HN_MAX_ROWS];
    int16_t path[HN_MAX_ROWS];
    int n, n_path;
} rig;
static const int seq = 0;

static rig rig_open(const bits *b, const hunch_model *m, const hn_ops *table, int page_rows) {
    hn_cache_group group[HN_MODEL_GROUPS];
    const int n_groups = hn_kv_groups(m->target.run, HN_BF16, group, NULL);
    rig r = {0};
    group[0].page_rows = page_rows;
    must(hn_cache_open(&r.cache, m->target.backend, group, n_groups, 1, b->context, 0, err));
    must(hn_runner_open(&r.runner, &m->target, r.cache, 0, b->context, NULL, err));
    if (table) hn_runner_set_ops(r.runner, table);
    hn_cache_seq_begin(r.cache, seq);
    return r;
}

static void rig_close(rig *r) {
    hn_runner_close(&r->runner);
    hn_cache_close(&r->cache);
}

static void rig_run(rig *r, int n_certain) {
    const hn_pass_options more = {.n_certain = &n_certain};
    must(hn_pass_reserve(r->runner, r->row, r->n, &seq, 1, &more, err));
    must(hn_pass_run_with(r->runner, r->row, r->n, &seq, 1, &more, err));
}

static bool row_is(const bits *b, const rig *r, int row, int position) {
    return !memcmp(b->want + (size_t)position * (size_t)b->vocab, hn_pass_logits(r->runner, row), (size_t)b->vocab * sizeof(float));
}

/* Reads the text up to `rows` rows, in chunks that are certain. */
static void rig_read(const bits *b, rig *r, int rows, int chunk) {
    for (int at = hn_cache_committed(r->cache, seq, 0); at < rows; at += r->n) {
        r->n = rows - at < chunk ? rows - at : chunk;
        for (int i = 0; i < r->n; i++) r->row[i] = (hn_row){.token = b->token[at + i], .parent = (int16_t)(i - 1), .logits = HN_LOGITS_ALL};
        rig_run(r, r->n);
        for (int i = 0; i < r->n; i++) assert_true(row_is(b, r, i, at + i));
        hn_cache_commit(r->cache, seq, 0, NULL, r->n);
    }
}

/* ---- random trees ------------------------------------------------------------------------------------------------------------ */

/* A tree with the text's next rows as one of its paths. */
static void make_tree(bits *b, rig *r, int most, int spare) {
    const int left = b->n - b->at, length = 1 + bits_below(b, left < most ? left : most);
    int parent = -1;
    r->n = r->n_path = 0;
    for (int i = 0; i < length; i++) {
        for (int here = i > 0 ? bits_below(b, 3) : 0; here > 0 && spare > 0; here--, spare--) { /* the root has no siblings */
            const int up = bits_below(b, 2) ? r->n - 1 : bits_below(b, r->n);
            r->row[r->n++] = (hn_row){.token = bits_below(b, b->vocab), .parent = (int16_t)up, .logits = HN_LOGITS_NONE};
        }
        r->path[r->n_path++] = (int16_t)r->n;
        r->row[r->n] = (hn_row){.token = b->token[b->at + i], .parent = (int16_t)parent, .logits = HN_LOGITS_ALL};
        parent = r->n++;
    }
}

/* What the cache counts as absorbed: all committed and certain rows but the last, down to a multiple; less if a node ends there. */
static void check_absorbed(const rig *r, int before, int committed, int n_certain, int node_rows) {
    const int end = committed + n_certain, full = end - end % node_rows;
    const int last = full > committed && end - full < HN_MAX_ROWS - HN_GRID ? full - 1 : n_certain > 0 ? end - 1 : committed;
    assert_int_equal(hn_cache_absorbed(r->cache, 0, 0), hn_grid_floor(last) > before ? hn_grid_floor(last) : before);
}

static int read_text(bits *b, const hunch_model *m, const hn_ops *table, int most) {
    const int page_rows = 16 << bits_below(b, 3);
    int wrong = 0, rewinds = 4;
    rig r = rig_open(b, m, table, page_rows);
    for (b->at = 0; b->at < b->n;) {
        make_tree(b, &r, most, HN_MAX_ROWS - most);
        int certain = 0;
        const int before = hn_cache_absorbed(r.cache, seq, 0);
        while (certain < r.n_path && r.path[certain] == certain) certain++;
        certain = bits_below(b, certain + 1);
        rig_run(&r, certain);
        for (int i = 0; i < r.n_path; i++) wrong += !row_is(b, &r, r.path[i], b->at + i);
        check_absorbed(&r, before, b->at, certain, page_rows);
        const int least = certain > 0 ? certain : 1, kept = least + bits_below(b, r.n_path - least + 1);
        hn_cache_commit(r.cache, seq, 0, r.path, kept);
        assert_true(hn_cache_valid(r.cache));
        b->at += kept;
        if (b->at > 30 && rewinds > 0 && !bits_below(b, 8)) { /* some rows are dropped, down to the last multiple at least */
            const int rows = b->at - 1 - bits_below(b, 20), absorbed = hn_cache_absorbed(r.cache, seq, 0);
            b->at = hn_cache_rewind(r.cache, seq, 0, rows);
            rewinds--;
            assert_int_equal(b->at, rows < absorbed ? 0 : rows);
        }
    }
    rig_close(&r);
    return wrong;
}

static void test_patterns(void **state HN_UNUSED) {
    const char *isa[HN_ISA_COUNT];
    for (int l = 0, n = levels(isa); l < n; l++)
        for (int k = 0; k < 2; k++) {
            if (light() && (l + k) % 2) continue;
            hunch_model *m = open_model_as(data_path(models[k]), isa[l], 1 + l % 2, HUNCH_PRECISION_NATIVE, l % 3 == 1);
            bits *b = bits_open(m, HUNCH_KV_BF16, ROWS);
            for (int i = 0; i < (light() ? 2 : 5); i++) {
                const int wrong = read_text(b, m, NULL, 1 + i * 9);
                if (wrong) fail_msg("%s at %s: %d rows differ", models[k], isa[l], wrong);
            }
            bits_free(b);
            hunch_model_close(&m);
        }
}

static void test_mistakes(void **state HN_UNUSED) {
    hunch_model *m = open_model(data_path(models[1]), "best", 1, HUNCH_PRECISION_NATIVE);
    bits *b = bits_open(m, HUNCH_KV_BF16, ROWS);
    hn_ops table = *m->target.backend->ops;
    honest = m->target.backend->ops;
    table.ssm = wrong_ssm;
    for (planted = NONE; planted < MISTAKES; planted++) {
        const int wrong = read_text(b, m, &table, 20);
        print_message("%s: %d rows differ\n", names[planted], wrong);
        assert_int_equal(wrong > 0, planted != NONE);
    }
    bits_free(b);
    hunch_model_close(&m);
}

/* ---- roots at every position ----------------------------------------------------------------------------------------------- */

/* A chain of two texts' next rows that are equal up to `split`, as a tree; returns the first row of the second's own. */
static int two_paths(rig *r, const bits *a, const bits *b, int root, int split) {
    r->n = 0;
    for (int i = 0; i < LEVELS; i++)
        r->row[r->n++] = (hn_row){.token = a->token[root + i], .parent = (int16_t)(i - 1), .logits = HN_LOGITS_ALL};
    const int own = r->n;
    for (int i = split; i < LEVELS; i++) {
        const int parent = i == split ? split - 1 : r->n - 1;
        r->row[r->n++] = (hn_row){.token = b->token[root + i], .parent = (int16_t)parent, .logits = HN_LOGITS_ALL};
    }
    return own;
}

/* Behind a root anywhere in three cells, two paths of 30 levels cross one or two multiples by different rows; then one of them is
 * committed, and the text goes on. */
static void test_roots(void **state HN_UNUSED) {
    for (int k = 0; k < 2; k++) {
        hunch_model *m = open_model(data_path(models[k]), "best", 1, HUNCH_PRECISION_NATIVE);
        bits *a = bits_open(m, HUNCH_KV_BF16, CELLS * HN_GRID + LEVELS + 40), *b = bits_open(m, HUNCH_KV_BF16, a->n);
        for (int root = 1; root <= CELLS * HN_GRID; root += light() ? 7 : 1) {
            const int split = 1 + bits_below(a, LEVELS - 1), chunk = 1 + bits_below(a, 40);
            rig r = rig_open(a, m, NULL, 16 << root % 3);
            memcpy(b->token, a->token, sizeof a->token);
            for (int i = root + split; i < b->n; i++) b->token[i] = (b->token[i] + 1 + i % 7) % b->vocab;
            bits_evaluate(b, m, HUNCH_KV_BF16, 64, bits_keep);
            rig_read(a, &r, root, chunk);
            const int own = two_paths(&r, a, b, root, split);
            rig_run(&r, 1);
            for (int i = 0; i < LEVELS; i++) {
                if (!row_is(a, &r, i, root + i)) fail_msg("%s, root %d: row %d of the first path differs", models[k], root, i);
                if (i >= split && !row_is(b, &r, own + i - split, root + i))
                    fail_msg("%s, root %d, split after %d: row %d of the second path differs", models[k], root, split, i);
            }
            const bool second = bits_below(a, 2);
            const int kept = second ? split + 1 + bits_below(a, LEVELS - split) : 1 + bits_below(a, LEVELS);
            for (int i = 0; i < kept; i++) r.path[i] = (int16_t)(second && i >= split ? own + i - split : i);
            hn_cache_commit(r.cache, seq, 0, r.path, kept);
            rig_read(second ? b : a, &r, a->n, 1 + bits_below(a, 9));
            rig_close(&r);
        }
        bits_free(a);
        bits_free(b);
        hunch_model_close(&m);
    }
}

/* ---- drafts that grow ----------------------------------------------------------------------------------------------------------- */

/* A level a pass, as a draft model drafts: the state does not move, however deep. */
static void test_levels(void **state HN_UNUSED) {
    for (int k = 0; k < 2; k++) {
        hunch_model *m = open_model(data_path(models[k]), "best", 1, HUNCH_PRECISION_NATIVE);
        bits *b = bits_open(m, HUNCH_KV_BF16, ROWS);
        for (int root = 3; root <= 2 * HN_GRID + 3; root += light() ? 9 : 3) {
            rig r = rig_open(b, m, NULL, 16);
            int16_t parent[HN_MAX_ROWS], path[HN_MAX_ROWS];
            hn_draft_rows drafts = {0, parent};
            rig_read(b, &r, root, 7);
            const int absorbed = hn_cache_absorbed(r.cache, seq, 0);
            for (int level = 0, up = -1; level < LEVELS; level++) { /* the text's row, and another that nobody continues */
                const hn_pass_options more = {.draft_rows = &drafts};
                const int16_t below = up < 0 ? -1 : hn_draft_parent(up);
                r.n = level % 2 ? 2 : 1;
                const int text = r.n - 1;
                r.row[0] = (hn_row){.token = 5, .parent = below, .logits = HN_LOGITS_NONE};
                r.row[text] = (hn_row){.token = b->token[root + level], .parent = below, .logits = HN_LOGITS_ALL};
                must(hn_pass_reserve(r.runner, r.row, r.n, &seq, 1, &more, err));
                must(hn_pass_run_with(r.runner, r.row, r.n, &seq, 1, &more, err));
                if (!row_is(b, &r, text, root + level)) fail_msg("%s, root %d: level %d differs", models[k], root, level);
                for (int i = 0; i < r.n; i++) parent[drafts.n + i] = (int16_t)up;
                up = drafts.n + text;
                path[level] = (int16_t)up;
                drafts.n += r.n;
            }
            assert_int_equal(hn_cache_absorbed(r.cache, seq, 0), absorbed);
            hn_cache_commit(r.cache, seq, 0, path, LEVELS);
            rig_read(b, &r, b->n, 11);
            rig_close(&r);
        }
        bits_free(b);
        hunch_model_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_patterns), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_roots),
                                       cmocka_unit_test(test_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
