/* SPDX-License-Identifier: Apache-2.0 */
/* learn_kind.h - the training of each kind of head: a table of functions for each kind, in its own file
 * (learn_eagle3.c, learn_eagle.c, ..). The common part is in learn.c: vocabulary, batches, steps, checkpoints. */
#ifndef HN_LEARN_KIND_H
#define HN_LEARN_KIND_H
#include <jansson.h>

#include "train/data/common_tokens.h"
#include "train/learn/learn.h"
#include "train/data/target_rows.h"
#include "train/learn/target_name.h"
#include "train/math/parts.h"
#include "train/nets/net_batch.h"

/* The setting of a head in training; everything that it points to must outlive the head. */
typedef struct hn_learn_setting {
    const hn_arch *target;
    const hn_target_rows *rows; /* output: rows of the drafted tokens */
    const hn_learn_options *o;
    hn_workers *workers;
    const char *path;   /* of the target's file */
    const hn_target_name *name; /* the target's, for other programs */
    const int32_t *ids; /* [o->vocab] the chosen tokens, ascending */
    const hn_common_tokens *tokens; /* the same, and by frequency */
    const int *taps; /* layers whose entering states it reads; n_taps 0: it reads the last state, after the norm */
    int n_taps;
} hn_learn_setting;

enum { HN_LEARN_PART_NAME = 80 };

/* head: the kind's own data. Weights, gradients and the optimiser's averages are vectors of `count` numbers, part after part. */
struct hn_learn_kind {
    const char *name;   /* on the command line, and of the drafter */
    const char *others; /* other programs that read its folder (--format hf); NULL: none */
    /* for these the folder has a copy of the target's embedding: without one speculators 0.9 computes with memory that it never set */
    bool others_need_embedding;
    bool reads_layers;
    bool reads_trunk; /* with reads_layers: it reads only the state entering the last layer */
    bool whole_model; /* a model, not a head: saved only as a folder, with its own width */
    bool layered;    /* has --layers layers, else one */
    bool shifts;     /* has --shift-label and --pure-prefix */
    bool one_layer_of_others; /* with several layers no other program reads its folder */
    /* it has an output matrix of the chosen tokens, and drafts only these; else it drafts with the target's whole
     * output matrix, and rows have a loss for any next token */
    bool own_output;
    const char *ids_name; /* name in the folder of the list of drafted tokens, as ids; "d2t": as offsets; NULL: d2t, and also t2d */
    void (*usual)(hn_learn_options *o); /* the kind's own defaults for hn_learn_usual; NULL: none */
    hunch_status (*open)(void **head, const hn_learn_setting *s, hunch_error *err);
    void (*close)(void *head); /* NULL is fine */
    size_t (*count)(const void *head);
    /* it is first trained on all tokens of the texts, and only on the target's answers in the last two sevenths of the steps */
    bool two_stages;
    bool no_ffn; /* it has no feed-forward layer with a width to set */
    int (*parts)(const void *head);
    /* A matrix [outputs][inputs], or a vector [1][n]; without rows if the head does not have it. */
    hn_mat (*part)(const void *head, int part, hn_real *vector);
    void (*part_name)(const void *head, int part, char out[HN_LEARN_PART_NAME]); /* in the folder */
    int (*ones)(const void *head, int part); /* leading dimensions of 1 of a vector in the folder; NULL: none */
    /* For a part with rotated rows the width of a head: the folder has each head's rows in pairs, as Llama's own files;
     * 0 or NULL: not reordered. */
    int (*turned)(const void *head, int part);
    size_t (*read)(const void *head);                  /* number of weights that a draft reads; NULL: all */
    void (*begin)(const void *head, hn_real *weights); /* the same for the same seed */
    /* As hn_eagle3_net_loss. */
    double (*loss)(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses);
    const int *(*order)(const void *head); /* [o->vocab] its outputs, cluster after cluster; NULL, and what it returns: there are none */
    json_t *(*config)(const void *head); /* config.json of the folder, the caller's; NULL: no memory */
};

extern const hn_learn_kind hn_learn_eagle3, hn_learn_eagle, hn_learn_mtp, hn_learn_peagle, hn_learn_dart, hn_learn_dflash, hn_learn_dspark,
    hn_learn_jetspec, hn_learn_domino,
    hn_learn_medusa, hn_learn_hydra, hn_learn_mlp, hn_learn_meta_mtp, hn_learn_falcon, hn_learn_student;
const hn_learn_kind *hn_learn_kind_named(const char *name); /* NULL: there is none */
const hn_learn_kind *hn_learn_kind_at(int i);               /* in the order of the help; NULL: there are no more */

/* Adds to an object, to a list of config.json, and takes the value; without memory, also for the value, *to is freed and becomes NULL. */
void hn_config_put(json_t **to, const char *key, json_t *value);
void hn_config_append(json_t **to, json_t *value);
/* Lists of config.json, the caller's; NULL: no memory. The layers that a head reads; that its own layers see all rows. */
json_t *hn_config_taps(const hn_learn_setting *s);
json_t *hn_config_layer_types(int layers);
/* The key speculators_config: the algorithm, the tokens that it drafts a round, and the target. */
json_t *hn_config_speculators(const hn_learn_setting *s, const char *algorithm, int tokens);
/* For kinds with labels of state and distribution: the weight of the distribution. */
double hn_learn_dist_share(const hn_learn_options *o);
/* config.json of so many layers of these sizes, of a kind of models that has SiLU. */
json_t *hn_config_layers(const hn_learn_setting *s, const hn_sizes *z, const char *type, int layers);
/* Sizes of the target's layers, for a head's. */
hn_sizes hn_learn_sizes(const hn_learn_setting *s);
/* The width of an attention head in EAGLE-1's folders, whose loaders support only one. */
int hn_learn_head_dim(const hn_arch *a);
/* Sets random numbers with mean 0 and this standard deviation; updates x. */
void hn_learn_random(hn_mat m, double spread, uint64_t *x);
#endif
