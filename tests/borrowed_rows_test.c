/* SPDX-License-Identifier: Apache-2.0 */
/* borrowed_rows_test.c - a runner that borrows reads another model's rows through a view, and has none of its own. Over the rows of its own
 * model such a reader that sees rows 0 to n - 1, at position n - 1, has the bits of that row's ordinary pass, and the pages that a view
 * holds are not given to others before it releases them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"
#include "goldens.h"

enum { ROWS = 400, SEQS = 3, WIDEST = 512 };

static char families[MOST_GOLDENS][GOLDEN_NAME]; /* those whose layers all have keys and values of their own */
static int n_families;

static int find_families(void **state) {
    (void)state;
    n_families = golden_models(golden_attends, families);
    return 0;
}

/* Texts of a model in a cache, the runner that writes them, and a reader of each. */
typedef struct rig {
    hunch_model *m;
    hn_cache *cache;
    hn_runner *writer, *reader;
    hn_layer_place *place;
    hn_cache_view *view[SEQS];
    int vocab;
} rig;

static unsigned all_groups(const hn_arch *a) {
    hn_cache_group group[HN_MODEL_GROUPS];
    return (1u << hn_kv_groups(hn_layers_of(a), HN_BF16, group, NULL)) - 1;
}

static rig rig_open(const char *family, hn_dtype kv, int page_rows, int pool_rows) {
    rig r = {.m = open_model(data_path(family), "best", test_threads(), HUNCH_PRECISION_NATIVE)};
    const hn_arch *a = &r.m->target.arch;
    hn_cache_group group[HN_MODEL_GROUPS];
    r.vocab = a->vocab;
    r.place = calloc((size_t)a->layers, sizeof *r.place);
    const int n = hn_kv_groups(hn_layers_of(a), kv, group, r.place);
    group[0].page_rows = page_rows;
    must(hn_cache_open(&r.cache, r.m->target.backend, group, n, SEQS, ROWS, pool_rows, err));
    must(hn_runner_open(&r.writer, &r.m->target, r.cache, 0, ROWS, NULL, err));
    must(hn_runner_open_borrowed(&r.reader, &r.m->target, r.cache, 0, r.place, NULL, ROWS, err));
    for (int s = 0; s < SEQS; s++) {
        hn_cache_seq_begin(r.cache, s);
        must(hn_cache_view_open(r.cache, all_groups(a), &r.view[s], err));
    }
    return r;
}

static void rig_close(rig *r) {
    for (int s = 0; s < SEQS; s++) hn_cache_view_close(r->cache, &r->view[s]);
    hn_runner_close(&r->reader);
    hn_runner_close(&r->writer);
    hn_cache_close(&r->cache);
    hunch_model_close(&r->m);
    free(r->place);
}

/* Writes and commits n rows of a text; the logits of the last one. */
static void write_rows(rig *r, int seq, const int32_t *text, int n, float *logits) {
    hn_row row[HN_MAX_ROWS];
    for (int at = 0, k; at < n; at += k) {
        k = n - at < HN_MAX_ROWS ? n - at : HN_MAX_ROWS;
        for (int i = 0; i < k; i++)
            row[i] = (hn_row){.token = text[at + i], .parent = (int16_t)(i - 1), .logits = i == k - 1 ? HN_LOGITS_ALL : HN_LOGITS_NONE};
        must(hn_pass_run(r->writer, row, k, &seq, 1, err));
        memcpy(logits, hn_pass_logits(r->writer, k - 1), (size_t)r->vocab * sizeof *logits);
        hn_cache_commit(r->cache, seq, 0, NULL, k);
    }
}

/* A pass of readers of these sequences, `each` rows of the token of each; checks the first against `want` if there is any. */
static void read_rows(rig *r, int n_seqs, const int32_t *token, int each, int shift, float *const *want, const char *what) {
    hn_row row[HN_MAX_ROWS];
    const hn_cache_view *views[SEQS];
    const int seqs[SEQS] = {0, 1, 2};
    for (int i = 0; i < n_seqs * each; i++)
        row[i] = (hn_row){.token = i % each ? (token[i / each] + i) % r->vocab : token[i / each], .seq = (int16_t)(i / each), .parent = -1,
                          .logits = HN_LOGITS_ALL};
    for (int s = 0; s < n_seqs; s++) views[s] = r->view[s];
    const hn_pass_options more = {.views = views, .shift = shift};
    must(hn_pass_run_with(r->reader, row, n_seqs * each, seqs, n_seqs, &more, err));
    for (int s = 0; s < n_seqs; s++)
        if (memcmp(want[s], hn_pass_logits(r->reader, s * each), (size_t)r->vocab * sizeof(float)))
            fail_msg("%s, %s: sequence %d of %d, %d rows of each", r->m->target.arch.name, what, s, n_seqs, each);
}

/* ---- the same bits ------------------------------------------------------------------------------------------------------- */

static void check_family(const char *family, hn_dtype kv, int page_rows, uint64_t rng) {
    static const int lengths[] = {1, 1, 14, 1, 1, 3, 40, 1, 195, 64};
    rig r = rig_open(family, kv, page_rows, 0);
    float *want[SEQS];
    int32_t text[HN_PASS_ROWS], last[SEQS];
    for (int s = 0; s < SEQS; s++) want[s] = malloc((size_t)r.vocab * sizeof(float));
    for (size_t step = 0; step < sizeof lengths / sizeof *lengths; step++) {
        for (int s = 0; s < SEQS; s++) {
            const int n = lengths[(step + (size_t)s) % (sizeof lengths / sizeof *lengths)];
            for (int i = 0; i < n; i++) text[i] = (int32_t)(hn_splitmix(&rng) % (uint64_t)r.vocab);
            write_rows(&r, s, text, n, want[s]);
            last[s] = text[n - 1];
            hn_cache_view_take(r.cache, r.view[s], s, hn_cache_committed(r.cache, s, 0));
        }
        assert_true(hn_cache_valid(r.cache));
        for (int n = 1; n <= SEQS; n++) read_rows(&r, n, last, n == 2 ? 20 : n, -1, want, "a reader");
        for (int s = 0; s < SEQS; s++) hn_cache_view_release(r.cache, r.view[s]);
        assert_true(hn_cache_valid(r.cache));
    }
    for (int s = 0; s < SEQS; s++) free(want[s]);
    rig_close(&r);
}

static void test_same_bits(void **state) {
    (void)state;
    for (int f = 0; f < n_families; f++) {
        check_family(families[f], HN_BF16, 16, (uint64_t)f);
        check_family(families[f], HN_F32, 64, (uint64_t)f + 100);
    }
}

/* Behind the last row by more than a window, a reader sees that row: numbers, whatever the distance. */
static void test_far_positions(void **state) {
    (void)state;
    rig r = rig_open("goldens/mistral-sliding", HN_F32, 16, 0);
    int32_t text[60];
    float want[WIDEST];
    for (int i = 0; i < 60; i++) text[i] = i;
    write_rows(&r, 0, text, 60, want);
    hn_cache_view_take(r.cache, r.view[0], 0, 60);
    for (int shift = 0; shift < 70; shift++) {
        const hn_row row = {.token = 7, .parent = -1, .logits = HN_LOGITS_ALL};
        const hn_cache_view *const view = r.view[0];
        const hn_pass_options more = {.views = &view, .shift = shift};
        const int seq = 0;
        must(hn_pass_run_with(r.reader, &row, 1, &seq, 1, &more, err));
        const float *got = hn_pass_logits(r.reader, 0);
        for (int i = 0; i < r.vocab; i++)
            if (!isfinite(got[i])) fail_msg("position %d: logit %d is %g", 60 + shift, i, (double)got[i]);
    }
    rig_close(&r);
}

/* ---- pages that are held --------------------------------------------------------------------------------------------------- */

/* A page with two readers, a text and a view: when the text ends and others write to every free page, the view's are as they were. */
static void check_held(const char *family) {
    rig r = rig_open(family, HN_BF16, 16, 2 * ROWS);
    int32_t text[HN_PASS_ROWS];
    float *want = malloc((size_t)r.vocab * sizeof *want), *other = malloc((size_t)r.vocab * sizeof *other);
    for (int i = 0; i < 200; i++) text[i] = (i * 7 + 3) % r.vocab;
    const int free_before = hn_cache_free_pages(r.cache);
    write_rows(&r, 0, text, 100, want);
    hn_cache_view_take(r.cache, r.view[0], 0, 100);
    hn_cache_seq_end(r.cache, 0);
    assert_true(hn_cache_valid(r.cache));
    assert_true(hn_cache_free_pages(r.cache) < free_before);
    for (int i = 0; i < 200; i++) text[i] = (i * 5 + 1) % r.vocab;
    const int32_t token = (99 * 7 + 3) % r.vocab;
    for (int s = 1, reserved = 0; s < SEQS; s++, reserved = 0) /* others take what they can get */
        while (reserved < ROWS - HN_MAX_ROWS && hn_cache_free_pages(r.cache) > 8) {
            write_rows(&r, s, text, HN_MAX_ROWS, other);
            reserved += HN_MAX_ROWS;
        }
    read_rows(&r, 1, &token, 1, -1, &want, "a text that ended");
    hn_cache_view_release(r.cache, r.view[0]);
    for (int s = 1; s < SEQS; s++) hn_cache_seq_end(r.cache, s);
    assert_int_equal(hn_cache_free_pages(r.cache), free_before);
    assert_true(hn_cache_valid(r.cache));
    free(want);
    free(other);
    rig_close(&r);
}

static void test_held_pages(void **state) {
    (void)state;
    for (int f = 0; f < n_families; f += test_every(1, 5)) check_held(families[f]);
}

/* Pages that the index has stay there while a view holds them: a text that needs pages does not evict them. */
static void test_held_in_index(void **state) {
    (void)state;
    rig r = rig_open("goldens/llama-gqa", HN_BF16, 16, ROWS);
    int32_t text[HN_PASS_ROWS], others[HN_PASS_ROWS];
    float want[WIDEST], other[WIDEST];
    const int valid[HN_MAX_MODELS] = {96};
    for (int i = 0; i < 200; i++) text[i] = (i * 7 + 3) % r.vocab, others[i] = (i * 3 + 2) % r.vocab;
    write_rows(&r, 0, text, 96, want);
    hn_cache_publish(r.cache, 0, text, valid);
    hn_cache_view_take(r.cache, r.view[0], 0, 96);
    hn_cache_seq_end(r.cache, 0);
    assert_int_equal(hn_cache_idle_pages(r.cache), 0);
    for (int i = 0; i < 5; i++) {
        hn_cache_seq_begin(r.cache, 0);
        write_rows(&r, 0, others, 192, other);
        hn_cache_seq_end(r.cache, 0);
    }
    hn_cache_index_clear(r.cache);
    assert_true(hn_cache_valid(r.cache));
    hn_cache_seq_begin(r.cache, 0);
    write_rows(&r, 0, others, 192, other);
    float *const wanted = want;
    read_rows(&r, 1, &text[95], 1, -1, &wanted, "a text that left the index");
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_far_positions),
        cmocka_unit_test(test_held_pages),
        cmocka_unit_test(test_held_in_index),
    };
    return cmocka_run_group_tests(tests, find_families, NULL);
}
