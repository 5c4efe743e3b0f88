/* SPDX-License-Identifier: Apache-2.0 */
/* recycle_matrix.c - the matrix of recycle_matrix.h; its file: recycle_file.c. */
#include "draft/text/recycle_matrix.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

static size_t width(const hn_recycle *x) {
    return (size_t)x->k + 1;
}

bool hn_recycle_open(hn_recycle *x, int rows, int k) {
    assert(rows >= 1 && k >= 1 && k <= HN_RECYCLE_K);
    *x = (hn_recycle){rows, k, NULL};
    x->cell = hn_zalloc((size_t)rows, width(x) * sizeof *x->cell);
    if (x->cell) hn_recycle_clear(x);
    return x->cell != NULL;
}

void hn_recycle_close(hn_recycle *x) {
    hn_free(x->cell);
    x->cell = NULL;
}

void hn_recycle_clear(hn_recycle *x) {
    for (size_t i = 0; i < (size_t)x->rows; i++) x->cell[i * width(x)] = -1;
}

const int32_t *hn_recycle_row(const hn_recycle *x, int32_t token) {
    assert(token >= 0);
    const int32_t *row = x->cell + (size_t)(token % x->rows) * width(x);
    return row[0] == token ? row + 1 : NULL;
}

void hn_recycle_set(hn_recycle *x, int32_t token, const int32_t *best, int n) {
    assert(token >= 0);
    int32_t *row = x->cell + (size_t)(token % x->rows) * width(x);
    int known = 0;
    while (known < x->k && known < n && best[known] >= 0) known++;
    if (known == 0) return;
    row[0] = token;
    memcpy(row + 1, best, (size_t)known * sizeof *row);
    for (int i = known; i < x->k; i++) row[1 + i] = -1;
}
