/* SPDX-License-Identifier: Apache-2.0 */
/* learn_private.h - the fields of a learner: learn.c opens it and runs steps, learn_batch.c makes batches of texts,
 * learn_files.c saves and loads. */
#ifndef HN_LEARN_PRIVATE_H
#define HN_LEARN_PRIVATE_H
#include "train/math/adamw.h"
#include "train/data/common_tokens.h"
#include "train/learn/learn_kind.h"
#include "train/learn/on_policy.h"
#include "train/data/online.h"

/* A piece of a text: rows [from, from + rows), each with the token after it. */
typedef struct hn_learn_piece {
    uint32_t text;
    int from, rows;
} hn_learn_piece;

struct hn_learner {
    hunch_model *model;
    const hn_features_read *f;
    hn_learn_options o;
    hn_workers workers;
    void *head; /* of o.kind */
    hn_target_rows target;
    hn_target_name name; /* of the target, for other programs */
    hn_common_tokens tokens; /* that it drafts, or whose distribution it learns */
    hn_learn_piece *all;              /* trained on, in the order of the texts */
    uint32_t *order;         /* [n_all] of this epoch */
    size_t n_all, at;        /* at: the next in order */
    hn_on_policy spoken;     /* texts of the student in place of some of them */
    hn_learn_piece *judged;           /* held out */
    size_t n_judged;
    hn_train_text *held;
    size_t n_held;
    int step, epoch;
    bool all_words; /* batches have losses also at tokens of the prompts */
    hn_learn_note note;
    size_t count; /* of weights */
    void *memory; /* [bytes] of all below */
    size_t bytes;
    hn_real *w, *g;
    hn_adamw adam;
    /* a batch */
    hn_features_wanted *wanted; /* [rows] */
    int *token, *start, *before;
    size_t reads; /* width of the states that a row reads */
    int *dist_row, *label;
    hn_real *states, *last, *counted, *logits, *dist, *weight; /* counted: `last` of the rows with a loss */
};

typedef struct hn_learn_made {
    int rows, texts;
    double own; /* rows with a loss */
} hn_learn_made;

/* Cuts the texts to pieces, and holds some out. HUNCH_REFUSED: there is nothing to train on. */
hunch_status hn_learn_share_texts(hn_learner *l, hunch_error *err);
/* Sets the order of an epoch, at its beginning: it depends only on seed and number. */
void hn_learn_shuffle(hn_learner *l);
/* The number of pieces of the next batch: the first of n that fit. */
size_t hn_learn_fitting(const hn_learner *l, const hn_learn_piece *all, const uint32_t *order, size_t n);
/* A batch of the first of n pieces that fit: in the order of `order`, which is that of the epoch from `at` on, NULL: as
 * listed. *taken: their number. Valid until the next one. Errors of computed features (online.h). */
hunch_status hn_learn_make_batch(hn_learner *l, const hn_learn_piece *all, const uint32_t *order, size_t n, hn_learn_made *b,
                                 hn_net_batch *out, size_t *taken, hunch_error *err);
/* HUNCH_REFUSED, with the reason. */
hunch_status hn_learn_damaged_checkpoint(const char *path, hunch_error *err);
/* The next batch of the epoch, or the first of the next epoch. */
hunch_status hn_learn_next_batch(hn_learner *l, hn_learn_made *b, hn_net_batch *out, hunch_error *err);
#endif
