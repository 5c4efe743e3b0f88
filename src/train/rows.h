/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - what a head is taught with, as users have it: conversations whose answers the target writes, and texts that are taken
 * as they are.
 *
 *   .jsonl, .json   rows, a line each or in an array, with one of
 *                     messages [{"role", "content"}], conversations [{"from", "value"}]   the answers in it are not used
 *                     prompt, question, or instruction and perhaps input                  one message of the user
 *                     text                                                                as it is
 *   others          text; its paragraphs are gathered to pieces of some thousand bytes
 *
 * Rows whose conversation was there before are left out, and rows near what must stay unseen: of whose runs of eight words one in five
 * stands in the files to leave out. */
#ifndef HN_TRAIN_ROWS_H
#define HN_TRAIN_ROWS_H
#include <jansson.h>

#include "base/status.h"

typedef struct hn_train_row {
    json_t *messages; /* up to the last one of the user; NULL: a text */
    char *text;
} hn_train_row;

typedef struct hn_train_rows {
    hn_train_row *item;
    size_t n, cap;
    size_t doubles, near; /* how many were left out, and why */
    struct hn_train_runs *seen, *unseen;
} hn_train_rows;

/* What must stay unseen: every string in the file's rows. Before the rows. */
hunch_status hn_train_rows_leave_out(hn_train_rows *r, const char *path, hunch_error *err);
/* HUNCH_REFUSED: a row that has none of the keys, naming file and line. */
hunch_status hn_train_rows_read(hn_train_rows *r, const char *path, hunch_error *err);
/* One message of the user. */
hunch_status hn_train_rows_add_prompt(hn_train_rows *r, const char *text, hunch_error *err);
void hn_train_rows_fini(hn_train_rows *r); /* zeroed is fine */
#endif
