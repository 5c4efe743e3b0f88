/* SPDX-License-Identifier: Apache-2.0 */
/* on_policy.h - texts of the student itself within its training (DistillSpec, 2310.08461): in place of a share of the pieces of an
 * epoch's order it learns from what it says with its present weights after the same prompt, by the target's distribution of each of its
 * tokens. It speaks for some batches at once, in the engine, from a folder that its weights are written to; never beyond the end of
 * an epoch. What it said is kept by checkpoints until those batches are done. The target's states of it are computed for each
 * batch. */
#ifndef HN_ON_POLICY_H
#define HN_ON_POLICY_H
#include "base/file_out.h"
#include "train/data/features.h"

struct hn_learner;

/* Zeroed: nothing was said. */
typedef struct hn_on_policy {
    int epoch;
    size_t from, to; /* places of the epoch's order: those of the batches that it spoke for */
    hn_train_texts
        said;           /* in place of those that have its own text, in their order. Each is no longer than its piece */
    hn_features_read f; /* the same texts, with the target's states */
} hn_on_policy;

/* Before the batch at l->at is made: speaks, unless it has spoken for it. After an error nothing was said. */
hunch_status hn_on_policy_speak(struct hn_learner *l, hunch_error *err);
/* The number of its text in place of a piece of the order, among those that it spoke for; -1: the piece is of the stored text. */
int hn_on_policy_text(const struct hn_learner *l, size_t place);
/* What a checkpoint has of it, behind the weights: nothing if no text shall be the student's. To be loaded when the epoch is set;
 * HUNCH_REFUSED: of another share, temperature or refresh, or damaged. */
hunch_status hn_on_policy_save(const struct hn_learner *l, hn_out *out, hunch_error *err);
hunch_status hn_on_policy_load(struct hn_learner *l, const void *data, size_t bytes, const char *path,
                               hunch_error *err);
void hn_on_policy_close(hn_on_policy *p);
#endif
