/* SPDX-License-Identifier: Apache-2.0 */
/* shared_rows_for_tests.h - a cache with owners of all kinds, and rows whose content is a function of the text up to
 * them, as in a real one (contract C2): a row's mark is the hash of that text. Include after cmocka. */
#ifndef HN_SHARED_ROWS_FOR_TESTS_H
#define HN_SHARED_ROWS_FOR_TESTS_H
#include "cache/rows_for_tests.h"

/* Blocks of 32 rows. Owner 0: 32 and 64 rows a page; owner 1: 128; owner 2: 32 and 16; owner 3 has no rows. */
enum { B = 32, GROUPS = 5, OWNERS = 4, ROWS = 320, TEXT = ROWS + HN_MAX_ROWS };
static const hn_cache_group groups[GROUPS] = {{"target", 4, 1, 8, HN_BF16, B, 0, 0},
                                              {"narrow", 2, 1, 8, HN_BF16, 0, 0, 0},
                                              {"light", 1, 1, 8, HN_F16, 0, 1, 0},
                                              {"even", 4, 1, 8, HN_BF16, 0, 2, 0},
                                              {"heavy", 8, 1, 8, HN_BF16, 0, 2, 0}};
static const int group_rows[GROUPS] = {32, 64, 128, 32, 16};

HELPER hn_cache *open_shared(int seqs, int pool_rows) {
    hn_cache *c = NULL;
    hunch_error err;
    assert_int_equal(hn_cache_open(&c, &ops, groups, GROUPS, seqs, ROWS, pool_rows, &err), HUNCH_OK);
    for (int g = 0; g < GROUPS; g++) assert_int_equal(hn_cache_kv(c, g, 0).page_rows, group_rows[g]);
    return c;
}

/* mark of row i = hash of text[0..i] */
HELPER void make_marks(const int32_t *text, int n, uint32_t *mark) {
    uint32_t h = 1;
    for (int i = 0; i < n; i++) mark[i] = h = (h ^ (uint32_t)text[i]) * 16777619u + 7;
}

HELPER void write_rows(const hn_cache *c, int seq, int owner, int first, int n, const uint32_t *mark) {
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < n && groups[g].owner == owner; i++)
            group_row(c, seq, g, groups[g].layers, first + i, mark[i], true);
}

/* The committed rows of the owner have these marks. */
HELPER void check_rows(const hn_cache *c, int seq, int owner, const uint32_t *mark) {
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < hn_cache_committed(c, seq, owner) && groups[g].owner == owner; i++)
            if (group_row(c, seq, g, groups[g].layers, i, mark[i], false))
                fail_msg("sequence %d, owner %d, group %d: row %d is another's", seq, owner, g, i);
}
#endif
