/* SPDX-License-Identifier: Apache-2.0 */
/* shared_rows_for_tests.h - a cache with models of all kinds, and rows whose content is a function of the text up to them, as
 * in a real cache (contract C2): a row's mark is the hash of that text. Include after cmocka. */
#ifndef HN_SHARED_ROWS_FOR_TESTS_H
#define HN_SHARED_ROWS_FOR_TESTS_H
#include "cache/rows_for_tests.h"

/* Nodes of 32 rows. Models 0 to 2 have rows, model 3 has none. */
enum { B = 32, MOST_GROUPS = 6, MODELS = 4, ROWS = 320, TEXT = ROWS + HN_MAX_ROWS };
typedef struct shape {
    int n;
    hn_cache_group group[MOST_GROUPS];
    int rows[MOST_GROUPS]; /* of a page */
} shape;

/* Model 0: 32 and 64 rows a page; model 1: 128; model 2: 32 and 16. */
HELPER const shape FULL = {5,
                           {{.name = "target", .layers = 4, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .page_rows = B},
                            {.name = "narrow", .layers = 2, .kv_heads = 1, .head_dim = 8, .type = HN_BF16},
                            {.name = "light", .layers = 1, .kv_heads = 1, .head_dim = 8, .type = HN_F16, .model_id = 1},
                            {.name = "even", .layers = 4, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .model_id = 2},
                            {.name = "heavy", .layers = 8, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .model_id = 2}},
                           {32, 64, 128, 32, 16}};
/* Windows and full groups, in larger, equal and smaller pages. */
HELPER const shape MIXED = {
    6,
    {{.name = "target", .layers = 4, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .page_rows = B},
     {.name = "target's window", .layers = 8, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .window = 70},
     {.name = "window of a page", .layers = 2, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .window = 64},
     {.name = "drafter's window",
      .layers = 4,
      .kv_heads = 1,
      .head_dim = 8,
      .type = HN_BF16,
      .model_id = 1,
      .window = 50,
      .back = 9},
     {.name = "even", .layers = 4, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .model_id = 2},
     {.name = "short window", .layers = 8, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .model_id = 2, .window = 2}},
    {32, 16, 64, 32, 32, 16}};
/* A target with windows only. */
HELPER const shape WINDOWS = {
    4,
    {{.name = "target's window",
      .layers = 4,
      .kv_heads = 1,
      .head_dim = 8,
      .type = HN_BF16,
      .page_rows = B,
      .window = 75},
     {.name = "shorter", .layers = 8, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .window = 17},
     {.name = "full", .layers = 4, .kv_heads = 1, .head_dim = 8, .type = HN_BF16, .model_id = 1},
     {.name = "drafter's window",
      .layers = 1,
      .kv_heads = 1,
      .head_dim = 8,
      .type = HN_F16,
      .model_id = 2,
      .window = 40,
      .back = 5}},
    {32, 16, 32, 128}};
/* Keys alone, values narrower than keys and inside of them, rows that are no keys: of a window, without a state. */
HELPER const shape DECLARED = {
    6,
    {{.name = "narrow values", .layers = 4, .kv_heads = 1, .head_dim = 8, .v_dim = 4, .type = HN_BF16, .page_rows = B},
     {.name = "keys alone", .layers = 2, .kv_heads = 1, .head_dim = 8, .v_dim = HN_NO_VALUES, .type = HN_BF16},
     {.name = "rows", .layers = 2, .kind = HN_CACHE_ROWS, .units = 2, .unit_bytes = 64, .window = 4},
     {.name = "in keys", .layers = 2, .kv_heads = 1, .head_dim = 8, .v_in_k = 6, .type = HN_F16, .model_id = 1},
     {.name = "drafter's rows", .layers = 3, .kind = HN_CACHE_ROWS, .units = 6, .unit_bytes = 32, .window = 9, .model_id = 1},
     {.name = "rows alone", .layers = 1, .kind = HN_CACHE_ROWS, .units = 1, .unit_bytes = 256, .window = 3, .back = 5, .model_id = 2}},
    {32, 128, 32, 128, 16, 16}};
static const shape *of = &FULL; /* the caches that are opened */

HELPER hn_cache *open_shared(int seqs, int pool_rows) {
    hn_cache *c = NULL;
    hunch_error err;
    assert_int_equal(hn_cache_open(&c, backend, of->group, of->n, seqs, ROWS, pool_rows, &err), HUNCH_OK);
    for (int g = 0; g < of->n; g++) assert_int_equal(hn_cache_kv(c, g, 0).page_rows, of->rows[g]);
    return c;
}

/* The first row that the row after `rows` rows sees. */
HELPER int first_seen(int group, int rows) {
    const int window = of->group[group].window, first = rows - window + 1;
    return window && first > 0 ? first : 0;
}

/* mark of row i = hash of text[0..i] */
HELPER void make_marks(const int32_t *text, int n, uint32_t *mark) {
    uint32_t h = 1;
    for (int i = 0; i < n; i++) mark[i] = h = (h ^ (uint32_t)text[i]) * 16777619u + 7;
}

HELPER void write_rows(const hn_cache *c, int seq, int model_id, int first, int n, const uint32_t *mark) {
    for (int g = 0; g < of->n; g++)
        for (int i = 0; i < n && of->group[g].model_id == model_id; i++)
            group_row(c, seq, g, of->group[g].layers, first + i, mark[i], true);
}

/* Checks that the committed rows of the model which the next row sees have these marks. */
HELPER void check_rows(const hn_cache *c, int seq, int model_id, const uint32_t *mark) {
    const int rows = hn_cache_committed(c, seq, model_id);
    for (int g = 0; g < of->n; g++)
        for (int i = first_seen(g, rows); i < rows && of->group[g].model_id == model_id; i++)
            if (group_row(c, seq, g, of->group[g].layers, i, mark[i], false))
                fail_msg("sequence %d, model_id %d, group %d: row %d is another's", seq, model_id, g, i);
}
#endif
