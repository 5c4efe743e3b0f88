/* SPDX-License-Identifier: Apache-2.0 */
/* head_steps.c - see head_steps.h: names, shapes, what a file's tensors show, and the form of a GGUF. Loading: head_steps_load.c. */
#include "model/head/head_steps.h"

#include <stdio.h>

#include "base/mem.h"

/* ---- what a file shows --------------------------------------------------------------------------------------------------- */

int hn_steps_count(const hn_source *src, const hn_head_names *names, hn_role part) {
    int n = 0;
    while (n < 10000 && hn_tensor_find(src, names, (hn_tensor_id){part, n, 0})) n++;
    return n;
}

static bool shows(const hn_source *src, const hn_head_names *names, hn_role part) {
    return hn_tensor_find(src, names, (hn_tensor_id){part, 0, 0});
}

hn_step_layout hn_steps_find_layout(const hn_source *src, const hn_head_names *names) {
    hn_head_names found = *names;
    hn_step_layout *l = &found.steps;
    *l = (hn_step_layout){0};
    if (names->form->steps->number) names->form->steps->number(l, src, &found);
    while (l->resblocks < 10000 && hn_tensor_find(src, &found, (hn_tensor_id){HN_STEP_RESBLOCK, 0, l->resblocks})) l->resblocks++;
    l->fused_gates = shows(src, &found, HN_STEP_GATES_FUSED);
    return *l;
}

static int dim_of(const hn_tensor *t, int dim) {
    return t && dim < t->n_dims && t->dims[dim] <= 1 << 23 ? (int)t->dims[dim] : 0;
}

void hn_steps_guess(const hn_source *src, const hn_head_names *names, int *tokens, int *width) {
    static const hn_tensor_id block = {HN_STEP_RESBLOCK, 0, 0}, output = {HN_STEP_OUTPUT, 0, 0}, embedding = {HN_STEP_EMBEDDING, 0, 0};
    *tokens = *width = 0;
    if (names->form->steps->model_output) {
        *tokens = dim_of(hn_source_find(src, names->form->steps->model_output), 1);
        *width = dim_of(hn_source_find(src, names->form->steps->model_norm), 0);
        return;
    }
    *width = dim_of(hn_tensor_find(src, names, block), 1);
    for (int part = HN_STEP_PROJECTION; !*width && part <= HN_STEP_GATES_FUSED; part++)
        *width = dim_of(hn_tensor_find(src, names, (hn_tensor_id){(hn_role)part, 0, 0}), 0);
    *tokens = dim_of(hn_tensor_find(src, names, embedding), 1);
    if (!*tokens && !hn_head_find_tensor(src, names, HN_HEAD_IDS)) *tokens = dim_of(hn_tensor_find(src, names, output), 1);
}

void hn_steps_begin(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target) {
    snprintf(a->architecture, sizeof a->architecture, "head");
    a->files.form = hn_source_get_kind(src);
    a->hidden = target->hidden;
    a->context = 1 << 24; /* the file has no limit */
    a->vocab = target->vocab;
    a->norm_eps = 1e-6f;
    a->embed_scale = a->residual_scale = a->logit_scale = 1;
    a->files.body = names->front;
    a->files.head = "";
    a->files.head_form = names->form;
    a->files.steps = names->steps;
    a->draft_head.input = (hn_input_stage){
        .stream = HN_STREAM_STATE, .features = 1, .feature_width = target->hidden, .embeddings = target->vocab};
    a->draft_head.rows.kind = HN_ROWS_STEPS;
    a->draft_head.output.norm = HN_NORM_NONE;
}

hunch_status hn_steps_create_layers(hn_arch *a, int n, const hn_layer_desc *like, hunch_error *err) {
    a->layer = hn_zalloc((size_t)n, sizeof *a->layer);
    if (!a->layer) return hn_fail_memory(err, "layer descriptions", (size_t)n * sizeof *a->layer);
    a->layers = n;
    a->draft_head.output.norm = HN_NORM_ONCE;
    for (int i = 0; i < n; i++) a->layer[i] = *like;
    return HUNCH_OK;
}

static hunch_status check_counts(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_steps_desc *d = &a->draft_head.rows.steps;
    if (d->n < 1 || d->n > HN_MOST_HEAD_STEPS)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d positions are drafted, expected 1 to %d", hn_source_path(src), d->n, HN_MOST_HEAD_STEPS);
    const hn_resblocks_desc *blocks = hn_steps_resblocks(d);
    if (blocks && blocks->n > HN_MOST_STEP_RESBLOCKS)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d resblocks a position, expected at most %d", hn_source_path(src), blocks->n,
                       HN_MOST_STEP_RESBLOCKS);
    return HUNCH_OK;
}

static hunch_status check_matrix(const hn_source *src, const hn_tensor *t, hunch_error *err) {
    return t->n_dims == 2 && t->dims[1] >= 1
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has %d dimensions, expected 2", hn_source_path(src), t->name, t->n_dims);
}

/* Every token may be the last of a text, so it must have an embedding; each output is a token of the target. */
static hunch_status read_vocabularies(hn_arch *a, const hn_source *src, const hn_head_names *names, int tokens, hunch_error *err) {
    hn_head_desc *h = &a->draft_head;
    const hn_tensor *embedding = hn_tensor_find(src, names, (hn_tensor_id){HN_STEP_EMBEDDING, 0, 0}),
                    *output = hn_tensor_find(src, names, (hn_tensor_id){HN_STEP_OUTPUT, 0, 0});
    hunch_status st = embedding ? check_matrix(src, embedding, err) : HUNCH_OK;
    if (!st && output) st = check_matrix(src, output, err);
    if (st) return st;
    if (embedding && (embedding->dims[1] < (uint64_t)tokens || embedding->dims[1] > 1 << 24))
        return hn_fail(err, HUNCH_REFUSED, "%s: an embedding of %llu tokens, expected the %d of the target", hn_source_path(src),
                       (unsigned long long)embedding->dims[1], tokens);
    if (output && output->dims[1] > (uint64_t)tokens)
        return hn_fail(err, HUNCH_REFUSED, "%s: an output of %llu tokens, expected at most the %d of the target",
                       hn_source_path(src), (unsigned long long)output->dims[1], tokens);
    if (embedding) h->input.embeddings = (int)embedding->dims[1];
    a->vocab = output ? (int)output->dims[1] : tokens;
    return HUNCH_OK;
}

hunch_status hn_steps_finish(hn_arch *a, const hn_source *src, const hn_head_names *names, int tokens, hunch_error *err) {
    hn_head_desc *h = &a->draft_head;
    hn_steps_desc *d = &h->rows.steps;
    hunch_status st = check_counts(a, src, err);
    if (st) return st;
    const hn_own_state_desc *state = hn_steps_own_state(d);
    if (hn_steps_resblocks(d)) d->resblocks.bias = shows(src, names, HN_STEP_RESBLOCK_BIAS);
    d->output_bias = shows(src, names, HN_STEP_OUTPUT_BIAS);
    h->output.own = shows(src, names, HN_STEP_OUTPUT);
    if (!h->output.own || (state && state->tied)) d->one_output = true;
    st = read_vocabularies(a, src, names, tokens, err);
    return st ? st : hn_steps_check_keys(a, src, names, tokens, err);
}

/* ---- our GGUF --------------------------------------------------------------------------------------------------------------- */

/* Layers in a GGUF are described like those of every head (head_keys.c). */
static hunch_status read_gguf_layers(hn_arch *a, hn_source *src, const hn_arch *target HN_UNUSED, hunch_error *err) {
    if (!hn_source_find(src, "blk.0.attn_q.weight")) return HUNCH_OK;
    const hn_arch before = *a;
    const hn_family *family;
    bool pairs = false;
    hunch_status st = hn_head_find_family(src, &family, err);
    if (!st) st = hn_family_read_layers(a, src, family, err);
    if (!st) st = hn_head_read_rotation(a, src, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_KEY_ROWS_IN_PAIRS, &pairs, err);
    a->files.rows_in_pairs = pairs;
    a->draft_head.output.norm = HN_NORM_ONCE;
    if (st) return st;
    return a->hidden == before.hidden ? HUNCH_OK
                                      : hn_fail(err, HUNCH_REFUSED, "%s: layers %d wide, expected the %d of the target",
                                                hn_source_path(src), a->hidden, before.hidden);
}

static const hn_step_form gguf_steps = {
    .key = {{"hunch-head.steps", HN_FACT_POSITIONS}, {"hunch-head.vocab_size", HN_FACT_TOKENS}},
    .read_layers = read_gguf_layers,
};
const hn_head_form hn_head_gguf_steps = {
    .part = {[HN_HEAD_OUTPUT_NORM] = "output_norm.weight", [HN_HEAD_IDS] = "d2t",
             [HN_STEP_RESBLOCK] = "step.#.ffn.@.weight", [HN_STEP_RESBLOCK_BIAS] = "step.#.ffn.@.bias",
             [HN_STEP_RESIDUAL] = "step.#.ffn_residual.weight", [HN_STEP_RESIDUAL_BIAS] = "step.#.ffn_residual.bias",
             [HN_STEP_PROJECTION] = "step.#.proj.weight", [HN_STEP_GATE_FORGET] = "step.#.gate_forget.weight",
             [HN_STEP_GATE_INPUT] = "step.#.gate_input.weight", [HN_STEP_GATE_OUTPUT] = "step.#.gate_output.weight",
             [HN_STEP_GATE_CELL] = "step.#.gate_cell.weight", [HN_STEP_GATES_FUSED] = "step.#.gates.weight",
             [HN_STEP_EMBEDDING] = "step.#.token_embd.weight", [HN_STEP_NORM] = "step.#.norm.weight",
             [HN_STEP_NORM_BIAS] = "step.#.norm.bias", [HN_STEP_CELL_NORM] = "step.#.cell_norm.weight",
             [HN_STEP_CELL_NORM_BIAS] = "step.#.cell_norm.bias",
             [HN_STEP_OUTPUT] = "step.#.output.weight", [HN_STEP_OUTPUT_BIAS] = "step.#.output.bias"},
    .steps = &gguf_steps,
};
