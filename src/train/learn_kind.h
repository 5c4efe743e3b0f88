/* SPDX-License-Identifier: Apache-2.0 */
/* learn_kind.h - what each kind of head does in its own way when it is trained: a table of functions a kind, in a file of its
 * own (learn_eagle3.c, learn_eagle.c, ..). What they share is learn.c's: vocabulary, batches, steps, checkpoints. */
#ifndef HN_LEARN_KIND_H
#define HN_LEARN_KIND_H
#include <jansson.h>

#include "train/learn.h"
#include "train/target_rows.h"

/* What a head in training is opened with; all that it points to outlives the head. */
typedef struct hn_learn_setting {
    const hn_arch *target;
    const hn_target_rows *rows; /* output: those of the tokens that are drafted */
    const hn_learn_options *o;
    hn_team *team;
    const char *path;   /* of the target's file */
    const int32_t *ids; /* [o->vocab] of the chosen tokens, rising */
    const int *taps; /* layers whose entering states it reads; n_taps 0: it reads the last state, behind the norm */
    int n_taps;
} hn_learn_setting;

typedef struct hn_learn_batch {
    int texts;
    const int *start;      /* [texts + 1], as in attention_back.h */
    const int *token;      /* [rows]: behind the place of the states */
    const int *before;     /* [texts]: the token at the place of the first row's states */
    hn_mat states;         /* [rows]: what the head reads of the target at the row's place */
    hn_mat next;           /* [rows][hidden]: the last state behind the norm, one place on */
    hn_mat law;            /* [..][o->vocab]: the target's behind the token, of the rows that have a loss */
    const hn_real *weight; /* [rows], 0: no loss there */
    const int *law_row;    /* [rows]: where in law the row's is */
    uint64_t seed;         /* of what a kind chooses of the batch */
    const int *label;      /* [rows]: which of the chosen tokens came behind the row's token, -1: none of them, or the text ended */
} hn_learn_batch;

enum { HN_LEARN_PART_NAME = 80 };

/* head: a kind's own. Weights, gradients and what the optimiser keeps are vectors of `count` numbers, part behind part. */
struct hn_learn_kind {
    const char *name;   /* on the command line, and the drafter's */
    const char *says;   /* of it in --help */
    const char *others; /* who else reads its folder: --format hf; NULL: nobody does */
    bool reads_layers;
    bool reads_trunk; /* of reads_layers: the state that enters the last layer, and no other */
    bool whole_model; /* a model, not a head: a folder alone, and as wide as it is */
    bool layered;    /* of as many layers as --layers says; else of one */
    bool one_layer_of_others; /* with several nobody else reads its folder */
    bool own_output; /* of the chosen tokens, which it drafts alone; else it drafts with the target's whole output matrix, and rows
                        have a loss whatever token comes next */
    const char *ids_name; /* of the list of tokens that are drafted, in the folder, each by its number;
                             "d2t": by its offset; NULL: d2t, and t2d beside it */
    void (*usual)(hn_learn_options *o); /* what is its own of hn_learn_usual; NULL: nothing */
    hunch_status (*open)(void **head, const hn_learn_setting *s, hunch_error *err);
    void (*close)(void *head); /* NULL is fine */
    size_t (*count)(const void *head);
    bool two_stages; /* it learns from all words of the texts first, and from the target's own alone in the last two sevenths of the steps */
    bool no_ffn; /* it has no feed-forward layer of a width that one could say */
    int (*parts)(const void *head);
    /* A matrix [outputs][inputs], or a vector [1][n]; no rows: it has none. */
    hn_mat (*part)(const void *head, int part, hn_real *vector);
    void (*part_name)(const void *head, int part, char out[HN_LEARN_PART_NAME]); /* in the folder */
    int (*ones)(const void *head, int part); /* dimensions of 1 before a vector's own in the folder; NULL: none */
    /* Of a part whose rows turn, the width of a head: in the folder each has them in pairs, as Llama's own files; 0 or NULL: as they are. */
    int (*turned)(const void *head, int part);
    size_t (*read)(const void *head);                  /* weights that a draft reads; NULL: all */
    void (*begin)(const void *head, hn_real *weights); /* the same for the same seed */
    /* As hn_eagle3_net_loss. */
    double (*loss)(void *head, hn_real *weights, const hn_learn_batch *b, hn_real *gradient, double *losses);
    json_t *(*config)(const void *head); /* config.json of the folder, the caller's; NULL: no memory */
};

extern const hn_learn_kind hn_learn_eagle3, hn_learn_eagle, hn_learn_mtp, hn_learn_peagle, hn_learn_dart, hn_learn_dflash, hn_learn_dspark,
    hn_learn_medusa, hn_learn_hydra, hn_learn_mlp, hn_learn_meta_mtp, hn_learn_falcon, hn_learn_student;
const hn_learn_kind *hn_learn_kind_named(const char *name); /* NULL: there is none */
const hn_learn_kind *hn_learn_kind_at(int i);               /* of all, in the order of --help; NULL: there are no more */

/* Of kinds that are held against the state and the law: what the law weighs. */
double hn_learn_law_share(const hn_learn_options *o);
/* The width of a head of attention in EAGLE-1's folders, whose loaders know one alone. */
int hn_learn_head_dim(const hn_arch *a);
/* Numbers at random around 0 with this standard deviation; x goes on. */
void hn_learn_random(hn_mat m, double spread, uint64_t *x);
#endif
