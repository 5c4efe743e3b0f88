/* SPDX-License-Identifier: Apache-2.0 */
/* token_rows.h - which rows of a table hold what depends on a token alone, for the tokens that were needed last: what has been computed
 * for a token need not be computed again. The table itself is its user's. */
#ifndef HN_TOKEN_ROWS_H
#define HN_TOKEN_ROWS_H
#include "base/status.h"

typedef struct hn_token_rows {
    int32_t *row;      /* owned: [tokens] its row, -1: none */
    int32_t *token;    /* owned: [rows] the token of each, -1: none */
    uint64_t *used;    /* owned: [rows] the last call that needed it */
    int rows, next;    /* next: the row that is given away next */
    uint64_t call;
} hn_token_rows;

/* Errors: HUNCH_NO_MEMORY; close then, too. */
hunch_status hn_token_rows_open(hn_token_rows *t, int tokens, int rows, hunch_error *err);
void hn_token_rows_close(hn_token_rows *t); /* zeroed is fine */
/* A call begins, in which fewer tokens are found than there are rows: their rows stay until the next call. */
void hn_token_rows_begin(hn_token_rows *t);
/* The token's row; *fresh: it has been given to it now, and is to be computed. */
int hn_token_rows_find(hn_token_rows *t, int32_t token, bool *fresh);
#endif
