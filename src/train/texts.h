/* SPDX-License-Identifier: Apache-2.0 */
/* texts.h - texts to learn from as token ids, and the file they lie in: texts.jsonl, a line each,
 *
 *   {"id": NAME, "own": N, "ids": [...]}      the ids from N on are the target's own words, or to be learned for another reason
 *   {"done": K}                               K jobs are done: those whose texts stand before it
 *
 * Jobs are appended in one order, so that a run that was ended at any point goes on behind the last that is done, and ends with
 * the same bytes. */
#ifndef HN_TRAIN_TEXTS_H
#define HN_TRAIN_TEXTS_H
#include <stdio.h>

#include "base/status.h"

typedef struct hn_train_text {
    int32_t *ids;
    int n, own;
} hn_train_text;

typedef struct hn_train_texts {
    hn_train_text *item;
    size_t n, cap;
    uint64_t tokens, own; /* in all; of them behind their text's `own` */
} hn_train_texts;

/* HUNCH_REFUSED: a line that is none of the above, or an id out of 0 .. vocab - 1; a last line that was cut off is left out. */
hunch_status hn_train_texts_read(hn_train_texts *t, const char *path, int vocab, hunch_error *err);
int hn_train_texts_longest(const hn_train_texts *t); /* tokens; 0: there are none */
void hn_train_texts_fini(hn_train_texts *t); /* zeroed is fine */

/* Opens the file to be gone on with, which is made if need be: what follows the last job that is done is cut off. *done: how many are. */
hunch_status hn_train_texts_resume(FILE **f, const char *path, size_t *done, hunch_error *err);
/* HUNCH_FAILED: the disk is full, ... The second brings everything to the system. */
hunch_status hn_train_texts_append(FILE *f, const char *path, const char *id, const int32_t *ids, size_t n, size_t own,
                                   hunch_error *err);
hunch_status hn_train_texts_done(FILE *f, const char *path, size_t done, hunch_error *err);
#endif
