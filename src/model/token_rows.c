/* SPDX-License-Identifier: Apache-2.0 */
/* token_rows.c - see token_rows.h. Rows are given away in turn, those of the call excepted. */
#include "model/token_rows.h"

#include <assert.h>

#include "base/mem.h"

hunch_status hn_token_rows_open(hn_token_rows *t, int tokens, int rows, hunch_error *err) {
    *t = (hn_token_rows){.rows = rows};
    t->row = hn_zalloc((size_t)tokens, sizeof *t->row);
    t->token = hn_zalloc((size_t)rows, sizeof *t->token);
    t->used = hn_zalloc((size_t)rows, sizeof *t->used);
    if (!t->row || !t->token || !t->used) return hn_fail_memory(err, "rows of tokens", (size_t)tokens * sizeof *t->row);
    for (int i = 0; i < tokens; i++) t->row[i] = -1;
    for (int i = 0; i < rows; i++) t->token[i] = -1;
    return HUNCH_OK;
}

void hn_token_rows_close(hn_token_rows *t) {
    hn_free(t->row);
    hn_free(t->token);
    hn_free(t->used);
    *t = (hn_token_rows){0};
}

void hn_token_rows_begin(hn_token_rows *t) {
    t->call++;
}

static int give_away(hn_token_rows *t) {
    while (t->used[t->next] == t->call) t->next = (t->next + 1) % t->rows;
    const int row = t->next;
    t->next = (t->next + 1) % t->rows;
    if (t->token[row] >= 0) t->row[t->token[row]] = -1;
    return row;
}

int hn_token_rows_find(hn_token_rows *t, int32_t token, bool *fresh) {
    *fresh = t->row[token] < 0;
    if (*fresh) {
        const int row = give_away(t);
        t->row[token] = row;
        t->token[row] = token;
    }
    t->used[t->row[token]] = t->call;
    return t->row[token];
}
