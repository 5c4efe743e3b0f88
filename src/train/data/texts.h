/* SPDX-License-Identifier: Apache-2.0 */
/* texts.h - texts for training as token ids, and their file, texts.jsonl, with a line each:
 *
 *   {"id": NAME, "own": N, "ids": [...]}      the ids from N on are the target's answer, or are trained on for another reason
 *   {"done": K}                               K jobs are done: those whose texts precede it
 *
 * Jobs are appended in a fixed order, so that an interrupted run continues after the last done job, and gives the same bytes. */
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
    uint64_t tokens, own; /* in all; from their text's `own` on */
} hn_train_texts;

/* HUNCH_REFUSED: an invalid line, or an id out of 0 .. vocab - 1; an incomplete last line is ignored. */
hunch_status hn_train_texts_read(hn_train_texts *t, const char *path, int vocab, hunch_error *err);
int hn_train_texts_longest(const hn_train_texts *t); /* tokens; 0: there are no texts */
void hn_train_texts_fini(hn_train_texts *t); /* zeroed is fine */

/* Opens the file to continue, creating it if needed: data after the last done job is cut off. *done: number of done jobs. */
hunch_status hn_train_texts_resume(FILE **f, const char *path, size_t *done, hunch_error *err);
/* HUNCH_FAILED: the disk is full, ... The second flushes the file. */
hunch_status hn_train_texts_append(FILE *f, const char *path, const char *id, const int32_t *ids, size_t n, size_t own,
                                   hunch_error *err);
hunch_status hn_train_texts_done(FILE *f, const char *path, size_t done, hunch_error *err);
#endif
