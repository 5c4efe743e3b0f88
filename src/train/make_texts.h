/* SPDX-License-Identifier: Apache-2.0 */
/* make_texts.h - texts in the target's own words: rows are answered by the target, each at several temperatures, and every user's turn of a
 * conversation behind the answers that the target gave before. What it says does not depend on what else runs, so that the file is
 * the same however often the work was ended. */
#ifndef HN_TRAIN_MAKE_TEXTS_H
#define HN_TRAIN_MAKE_TEXTS_H
#include <hunch/hunch.h>

#include "train/rows.h"

typedef struct hn_train_make {
    const double *temperature;
    int n_temperatures;
    int max_tokens, context, parallel;
    uint64_t seed;
    /* rows done of all, tokens of all texts so far, seconds of this run; NULL: nobody looks */
    void (*progress)(void *user, size_t done, size_t of, uint64_t tokens, double seconds);
    void *user;
    hunch_model *speaker;     /* who answers in the target's tokens: a draft model, for texts of its own; NULL: the target */
    const volatile int *stop; /* other than 0: end soon; NULL: never */
} hn_train_make;

/* A speaker's answers end where the target's would: at its end tokens. Appends to `path` what is not there yet. HUNCH_CANCELLED: stopped; what is there is whole. */
hunch_status hn_train_texts_make(hunch_model *m, const hn_train_rows *rows, const hn_train_make *how, const char *path,
                                 hunch_error *err);

/* n prompts as the target itself would write them behind its template's words for a user (Magpie, 2406.08464), or without a template
 * behind a single token. They join the rows. */
hunch_status hn_train_rows_of_model(hunch_model *m, hn_train_rows *rows, size_t n, const hn_train_make *how,
                                    hunch_error *err);
#endif
