/* SPDX-License-Identifier: Apache-2.0 */
/* head_steps.h - draft heads that have weights of their own for each position that they draft (hn_steps_desc): what their tensors are
 * called and how large they are, what a file shows of them, and their way into memory. What is computed: layer_steps.c. */
#ifndef HN_HEAD_STEPS_H
#define HN_HEAD_STEPS_H
#include "model/head.h"
#include "model/weights.h"

typedef enum hn_step_part {
    HN_STEP_BLOCK, /* its number is the block's */
    HN_STEP_BLOCK_BIAS,
    HN_STEP_RESIDUAL,
    HN_STEP_RESIDUAL_BIAS,
    HN_STEP_GATE,  /* its number is the gate's; of HN_STEP_SUM the one projection */
    HN_STEP_GATES_FUSED,
    HN_STEP_EMBEDDING,
    HN_STEP_NORM,
    HN_STEP_NORM_BIAS,
    HN_STEP_CELL_NORM,
    HN_STEP_CELL_NORM_BIAS,
    HN_STEP_OUTPUT,
    HN_STEP_OUTPUT_BIAS,
    HN_STEP_PARTS
} hn_step_part;

/* A tensor of a step. */
typedef struct hn_step_tensor {
    hn_step_part part;
    int step, number;
} hn_step_tensor;

bool hn_head_form_has_steps(hn_head_form form);
/* Its name in such a file; NULL: the form has none. Of d: blocks, numbering. */
const char *hn_step_name(const hn_head_names *names, const hn_steps_desc *d, hn_step_tensor t, char out[128]);
const hn_tensor *hn_step_look(const hn_source *src, const hn_head_names *names, const hn_steps_desc *d, hn_step_tensor t);
bool hn_step_part_is_vector(hn_step_part part);
void hn_step_shape(const hn_arch *a, hn_step_tensor t, uint64_t dims[2]); /* as hn_head_part_shape */

/* All tensors that a head of this description has, one after another: the next behind *t; begin with {0, 0, -1}. What steps share is
 * named once, as its first one's. */
bool hn_step_next(const hn_arch *a, hn_step_tensor *t);

/* Sizes that are no layer's into a zeroed description, for a head of the target's width without layers. */
void hn_steps_begin(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target);
/* Behind it: the layers that such heads have in front of their steps, or as them. */
hunch_status hn_steps_read_layers(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err);
/* With kind, n, blocks and inner: what the tensors show beside them (biases, own outputs, vocabularies). HUNCH_REFUSED where they do not fit
 * a target of so many tokens. */
hunch_status hn_steps_finish(hn_arch *a, const hn_source *src, const hn_head_names *names, int tokens, hunch_error *err);
/* Behind it, of what a file says beside its tensors (head_steps_check.c): HUNCH_REFUSED, naming the key, where they contradict it. */
hunch_status hn_steps_check_said(const hn_arch *a, const hn_source *src, const hn_head_names *names, int tokens, hunch_error *err);
/* HUNCH_REFUSED where such a head has more layers of attention. */
hunch_status hn_steps_check_layers(const hn_arch *a, const hn_source *src, int most, hunch_error *err);
/* Marks copies of what tied steps share as used, behind the plan. HUNCH_REFUSED, naming it, where one is none; HUNCH_FAILED. */
hunch_status hn_steps_take_copies(hn_source *src, const hn_arch *a, hunch_error *err);
/* Of a folder: is a tensor that nobody took one that makes the head another? */
bool hn_steps_counts(const hn_arch *a, const char *name);
/* How a folder numbers blocks and lists modules, how many blocks there are, whether gates are fused: into a zeroed description. */
void hn_steps_number(const hn_source *src, const hn_head_names *names, hn_steps_desc *d);
/* What a folder's tensors show of the target, 0: nothing. */
void hn_steps_guess(const hn_source *src, const hn_head_names *names, int *tokens, int *width);
/* How many steps a file has, by tensors of that part. */
int hn_steps_count(const hn_source *src, const hn_head_names *names, const hn_steps_desc *d, hn_step_part part);

/* Plans them all; m->head.step is made. Then, behind the load and when m->output is the target's where the file has none, what steps
 * share is copied to each. */
hunch_status hn_steps_plan(hn_plan *p, hunch_error *err);
void hn_steps_share(hn_model *m);
size_t hn_steps_tensors(const hn_arch *a); /* how many there are at most */
/* Rows ids[n] alone of all outputs. */
hunch_status hn_steps_trim(hn_model *m, const int32_t *ids, int n, hunch_error *err);
void hn_steps_close(hn_model *m); /* those of a zeroed model too */
#endif
