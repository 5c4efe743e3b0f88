/* SPDX-License-Identifier: Apache-2.0 */
/* learn.h - training a draft head from features, stored or taken when a batch needs them (online.h): batches of whole texts, the head
 * unrolled some steps, held against the target's own law, AdamW. What kinds of heads there are: learn_kind.h. The same seed gives the
 * same bits on one level whatever the threads; a checkpoint goes on with the same bits. */
#ifndef HN_LEARN_H
#define HN_LEARN_H
#include "engine/engine.h"
#include "train/attention_back.h"
#include "train/divergence.h"
#include "train/features.h"
#include "train/picture.h"

typedef struct hn_learn_kind hn_learn_kind;

typedef struct hn_learn_options {
    const hn_learn_kind *kind;
    int steps;         /* of the optimiser */
    int rows;          /* of a batch, at most */
    int longest;       /* rows of a text; longer ones are cut to pieces */
    int unroll;        /* steps of the head */
    double decay;      /* weight of an unrolled step against the one before it */
    double rate, clip; /* the peak of the learning rate; the most that the gradient's norm may be */
    int vocab;         /* tokens that it drafts, at most the target's */
    int layers;        /* of a kind that has several; of a draft model 0: by itself */
    char init[256];    /* of a draft model: another one's file that it begins as; empty: the target's */
    hn_divergence divergence; /* of a draft model: what it makes small */
    int ffn;           /* width of its feed-forward layer; 0: the target's */
    bool norm_before_residual;
    bool cell; /* of mlp: Arctic's form, with a cell */
    uint64_t seed;
    double state_share; /* of eagle and falcon: what Smooth-L1 to the state weighs; the law then weighs a tenth, without it all */
    double token_share; /* of a law that is learned: what the token that came has of it, 0 to 1; the rest is the target's */
    int held_out; /* texts that are not learned from: every n/held_out-th */
    int every;    /* steps from one check to the next */
    hn_products products;
} hn_learn_options;

/* The usual ones of a kind for this target and so many tokens to learn from. */
hn_learn_options hn_learn_usual(const hn_learn_kind *kind, const hn_arch *target, uint64_t tokens);

typedef struct hn_learner hn_learner;

/* model: of the features, opened from `path`. Weights begin from the target's output and norm; with steps 0 that is the head. */
hunch_status hn_learner_open(hn_learner **out, hunch_model *m, const char *path, const hn_features_read *f,
                             const hn_learn_options *o, hunch_error *err);
void hn_learner_close(hn_learner **l);
int hn_learner_step_number(const hn_learner *l);
double hn_learner_parameters(const hn_learner *l);
double hn_learner_draft_reads(const hn_learner *l); /* weights that a draft reads */
double hn_learner_coverage(const hn_learner *l); /* of the texts' own tokens: how many it can draft, 0..1 */
const hn_train_text *hn_learner_held_out(const hn_learner *l, size_t *n);

/* What whoever checks it wants kept in checkpoints. */
typedef struct hn_learn_note {
    double best;     /* of the checks so far, 0: none */
    int64_t worse;   /* checks since */
    hn_run_history past; /* what is drawn of them */
} hn_learn_note;
hn_learn_note *hn_learner_note(hn_learner *l);

/* One step. losses [unroll]; *tokens: rows that it learned from. HUNCH_FAILED: the loss is no number. Weights are then what they were; so
 * after errors of features that are taken (online.h). */
hunch_status hn_learner_step(hn_learner *l, double *losses, int *tokens, hunch_error *err);
/* The losses of the held-out texts. */
hunch_status hn_learner_judge(hn_learner *l, double *losses, hunch_error *err);

/* The head as a folder. */
hunch_status hn_learner_save_head(const hn_learner *l, const char *folder, hunch_error *err);
/* All that the next step depends on, in one file, whole or not at all. */
hunch_status hn_learner_save(const hn_learner *l, const char *path, hunch_error *err);
/* *steps: how many the run of a checkpoint is to have, 0: there is none. HUNCH_REFUSED: it is of another kind of head, or of another
 * instruction level than this model's. Needs no learner: to be asked before anything else is done. */
hunch_status hn_learner_planned(const char *path, const hn_learn_kind *kind, const hunch_model *m, int *steps,
                                hunch_error *err);
/* HUNCH_REFUSED: of other features, options, kind or level. */
hunch_status hn_learner_load(hn_learner *l, const char *path, hunch_error *err);
#endif
