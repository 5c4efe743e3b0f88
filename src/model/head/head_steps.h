/* SPDX-License-Identifier: Apache-2.0 */
/* head_steps.h - draft heads that have weights of their own for each drafted position (hn_steps_desc): names and shapes
 * of their tensors, what a file shows of them, and loading. The computation: layer_steps.c. */
#ifndef HN_HEAD_STEPS_H
#define HN_HEAD_STEPS_H
#include "model/head/head.h"
#include "model/weights.h"

/* What a key of a file says that its tensors show too. */
typedef enum hn_step_fact { HN_FACT_POSITIONS, HN_FACT_WITH_FIRST, HN_FACT_RESBLOCKS, HN_FACT_OUTPUTS, HN_FACT_TOKENS } hn_step_fact;

/* The part of a form of files (hn_head_form) that is of such heads alone. */
typedef struct hn_step_form {
    struct {
        const char *key;
        hn_step_fact is;
    } key[5]; /* to a NULL key: they must agree with the tensors */
    const char *model_norm, *model_output; /* of the whole model, if they are in such a folder: its width and tokens; NULL: neither is */
    bool in_model;                         /* tensors without the names' prefix are the model's */
    /* How modules and resblocks are numbered, in a zeroed layout; NULL: from 0 on. names has the layout so far. */
    void (*number)(hn_step_layout *layout, const hn_source *src, const hn_head_names *names);
    /* The layers that such heads have before their steps, or as their steps; NULL: they have none. After hn_steps_begin. */
    hunch_status (*read_layers)(hn_arch *a, hn_source *src, const hn_arch *target, hunch_error *err);
} hn_step_form;

static inline bool hn_step_is_projection(hn_role role) { /* of a state: tied steps share those after the first */
    return role >= HN_STEP_PROJECTION && role <= HN_STEP_GATES_FUSED;
}

/* The layout of a file of this form, from its tensors. */
hn_step_layout hn_steps_find_layout(const hn_source *src, const hn_head_names *names);
/* Sets the sizes outside layers in a zeroed description, for a head of the target's width without layers. */
void hn_steps_begin(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target);
/* For read_layers: n layers like this one, and a norm before the output. */
hunch_status hn_steps_create_layers(hn_arch *a, int n, const hn_layer_desc *like, hunch_error *err);
/* With the kind, n, and the number of resblocks or the width of its own state set: reads what the tensors show (biases, own outputs,
 * vocabularies). HUNCH_REFUSED if they do not fit a target of `tokens` tokens. */
hunch_status hn_steps_finish(hn_arch *a, const hn_source *src, const hn_head_names *names, int tokens, hunch_error *err);
/* After it, compares the file's keys with its tensors (head_steps_check.c): HUNCH_REFUSED, naming the key, if they differ. */
hunch_status hn_steps_check_keys(const hn_arch *a, const hn_source *src, const hn_head_names *names, int tokens, hunch_error *err);
/* HUNCH_REFUSED if such a head has more layers of attention. */
hunch_status hn_steps_check_layers(const hn_arch *a, const hn_source *src, int most, hunch_error *err);
/* After the plan: marks copies of tensors that tied steps share as used. HUNCH_REFUSED, naming it, if one is not a copy; HUNCH_FAILED. */
hunch_status hn_steps_take_copies(hn_source *src, const hn_arch *a, hunch_error *err);
/* For a folder: whether an unused tensor of this name means that the head is another one. */
bool hn_steps_counts(const hn_arch *a, const char *name);
/* The target's vocabulary and width as the folder's tensors show them; 0: they do not. */
void hn_steps_guess(const hn_source *src, const hn_head_names *names, int *tokens, int *width);
/* The number of steps in a file, by tensors of that part. */
int hn_steps_count(const hn_source *src, const hn_head_names *names, hn_role part);

/* Copies shared tensors to each step, after the load and after m->output was set to the target's if the file has none. */
void hn_steps_share(hn_model *m);
/* Keeps only rows ids[n] of all outputs. */
hunch_status hn_steps_trim(hn_model *m, const int32_t *ids, int n, hunch_error *err);
void hn_steps_close(hn_model *m); /* zeroed is fine */
#endif
