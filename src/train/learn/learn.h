/* SPDX-License-Identifier: Apache-2.0 */
/* learn.h - training a draft head from features, stored or computed for each batch (online.h): batches of whole texts,
 * the head unrolled some steps, with the target's own distributions as labels, AdamW. Kinds of heads: learn_kind.h. On one level
 * the bits depend only on the seed, not on the number of threads; a run that continues from a checkpoint gives the same
 * bits. */
#ifndef HN_LEARN_H
#define HN_LEARN_H
#include "engine/engine.h"
#include "train/math/layers/attention_back.h"
#include "train/math/loss/choose_clusters.h"
#include "train/math/loss/divergence.h"
#include "train/data/features.h"
#include "train/learn/picture.h"

typedef struct hn_learn_kind hn_learn_kind;

typedef struct hn_learn_options {
    const hn_learn_kind *kind;
    int steps;         /* of the optimiser */
    int rows;          /* the most rows of a batch */
    int longest;       /* the most rows of a piece; longer texts are cut */
    int unroll;        /* steps of the head */
    double decay;      /* weight of an unrolled step relative to the one before */
    double rate, clip; /* peak of the learning rate; limit of the gradient's norm */
    int vocab;         /* tokens that it drafts, at most the target's */
    int layers;        /* for kinds with several; for a draft model 0: the default */
    char init[256];    /* for a draft model: file of the model that it starts from; empty: the target's */
    hn_divergence divergence; /* for a draft model: the loss */
    int ffn;           /* width of its feed-forward layer; 0: the target's */
    bool norm_before_residual;
    bool cell; /* for mlp: Arctic's form, with a cell */
    /* for domino: rows draft the token after their own position; the first drafts of a block, which have no bias */
    bool shift_label;
    int plain;
    /* for eagle3: clusters of the tokens that it drafts, 0: none; those that a row has logits of, 0: an eighth of them, at most 32 */
    int clusters, clusters_used;
    hn_cluster_start cluster_start;
    uint64_t seed;
    double state_share; /* for eagle and falcon: weight of Smooth-L1 to the state; the weight of the distribution is then a tenth, else 1 */
    double token_share; /* share of the text's next token in the labels, 0 to 1; the rest is the target's distribution */
    /* for a draft model: the share of the texts learned from that are its own (on_policy.h), drawn at this temperature; batches from one
     * time that it speaks to the next; answers at once; the folder that it is then written to, which outlives the learner; not 0: it
     * stops speaking soon, NULL: never */
    double on_policy, policy_temperature;
    int refresh, parallel;
    const char *spoken_in;
    const volatile int *stop;
    const char *verifier; /* the target's name in the folder's config.json, which outlives the learner; NULL: its path */
    int held_out; /* texts that are not trained on: every n/held_out-th */
    int every;    /* steps from one check to the next */
    hn_products products;
} hn_learn_options;

/* The default options of a kind for this target and number of tokens. */
hn_learn_options hn_learn_usual(const hn_learn_kind *kind, const hn_arch *target, uint64_t tokens);

typedef struct hn_learner hn_learner;

/* model: of the features, opened from `path`. Weights start from the target's output and norm; with steps 0 they are not changed. */
hunch_status hn_learner_open(hn_learner **out, hunch_model *m, const char *path, const hn_features_read *f,
                             const hn_learn_options *o, hunch_error *err);
void hn_learner_close(hn_learner **l);
int hn_learner_step_number(const hn_learner *l);
double hn_learner_parameters(const hn_learner *l);
double hn_learner_draft_reads(const hn_learner *l); /* weights that a draft reads */
double hn_learner_coverage(const hn_learner *l); /* share of the answers' tokens that it can draft, 0..1 */
const hn_train_text *hn_learner_held_out(const hn_learner *l, size_t *n);

/* Data of the caller's checks that checkpoints keep. */
typedef struct hn_learn_note {
    double best;     /* best of the checks so far, 0: none */
    int64_t worse;   /* checks since the best */
    hn_run_history past; /* data of the plot */
} hn_learn_note;
hn_learn_note *hn_learner_note(hn_learner *l);

/* One step. losses [unroll]; *tokens: rows with a loss. HUNCH_FAILED: the loss is not a number. Weights are then
 * unchanged, also after errors of computed features (online.h), and of the student's texts, of which HUNCH_CANCELLED is one: it
 * stopped speaking. The step may then be tried again. */
hunch_status hn_learner_step(hn_learner *l, double *losses, int *tokens, hunch_error *err);
/* The losses of the held-out texts. */
hunch_status hn_learner_held_out_losses(hn_learner *l, double *losses, hunch_error *err);

/* The head as a folder. */
hunch_status hn_learner_save_head(const hn_learner *l, const char *folder, hunch_error *err);
/* The same, with all that other programs need in it. */
hunch_status hn_learner_save_head_for_others(const hn_learner *l, const char *folder, hunch_error *err);
/* Writes all that the next step depends on to one file, completely or not at all. */
hunch_status hn_learner_save(const hn_learner *l, const char *path, hunch_error *err);
/* *steps: the planned steps of a checkpoint's run, 0: there is no checkpoint. HUNCH_REFUSED: it is of another kind of
 * head, or of another instruction level than this model's. Needs no learner, so that it can be called first. */
hunch_status hn_learner_planned(const char *path, const hn_learn_kind *kind, const hunch_model *m, int *steps,
                                hunch_error *err);
/* A run planned for fewer steps continues with this one's: from then on the rate, and the stage, are those of a run of this
 * number. HUNCH_REFUSED: it has other features, options, kind or level, or more steps; the message has both values. */
hunch_status hn_learner_load(hn_learner *l, const char *path, hunch_error *err);
#endif
