/* SPDX-License-Identifier: Apache-2.0 */
/* head_steps.c - see head_steps.h: names, shapes, and what a file's tensors show. Loading: head_steps_load.c. */
#include "model/head/head_steps.h"

#include <stdio.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------------------------------------- */

/* '#': the step; '@': the resblock; '^': the number after all resblocks; '~': ".0" or ".1" if modules are in a list; NULL:
 * the form has none. Gates: forget, input, output, cell. */
static const char *const folders[HN_STEP_PARTS][HN_HEAD_FORMS] = {
    [HN_STEP_RESBLOCK] = {[HN_HEAD_MEDUSA] = "#.@.linear.weight", [HN_HEAD_MEDUSA_VLLM] = "blocks.#.layers.@.weight",
                       [HN_HEAD_HYDRA] = "hydra_mlp.#.@.linear.weight", [HN_HEAD_GGUF_STEPS] = "step.#.ffn.@.weight"},
    [HN_STEP_RESBLOCK_BIAS] = {[HN_HEAD_MEDUSA] = "#.@.linear.bias", [HN_HEAD_MEDUSA_VLLM] = "blocks.#.layers.@.bias",
                            [HN_HEAD_HYDRA] = "hydra_mlp.#.@.linear.bias", [HN_HEAD_GGUF_STEPS] = "step.#.ffn.@.bias"},
    [HN_STEP_RESIDUAL] = {[HN_HEAD_HYDRA] = "hydra_mlp.#.@.res_connection.weight", [HN_HEAD_GGUF_STEPS] = "step.#.ffn_residual.weight"},
    [HN_STEP_RESIDUAL_BIAS] = {[HN_HEAD_HYDRA] = "hydra_mlp.#.@.res_connection.bias",
                               [HN_HEAD_GGUF_STEPS] = "step.#.ffn_residual.bias"},
    [HN_STEP_GATE] = {[HN_HEAD_SPECULATOR] = "proj.#~.weight", [HN_HEAD_GGUF_STEPS] = "step.#.proj.weight"},
    [HN_STEP_GATES_FUSED] = {[HN_HEAD_ARCTIC_LSTM] = "projs.#.weight", [HN_HEAD_GGUF_STEPS] = "step.#.gates.weight"},
    [HN_STEP_EMBEDDING] = {[HN_HEAD_SPECULATOR] = "emb.#~.weight", [HN_HEAD_ARCTIC_LSTM] = "forget_emb.#.weight",
                           [HN_HEAD_GGUF_STEPS] = "step.#.token_embd.weight"},
    [HN_STEP_NORM] = {[HN_HEAD_SPECULATOR] = "ln.#~.weight", [HN_HEAD_ARCTIC_LSTM] = "state_ln.#.weight",
                      [HN_HEAD_GGUF_STEPS] = "step.#.norm.weight"},
    [HN_STEP_NORM_BIAS] = {[HN_HEAD_SPECULATOR] = "ln.#~.bias", [HN_HEAD_ARCTIC_LSTM] = "state_ln.#.bias",
                           [HN_HEAD_GGUF_STEPS] = "step.#.norm.bias"},
    [HN_STEP_CELL_NORM] = {[HN_HEAD_ARCTIC_LSTM] = "cell_ln.#.weight", [HN_HEAD_GGUF_STEPS] = "step.#.cell_norm.weight"},
    [HN_STEP_CELL_NORM_BIAS] = {[HN_HEAD_ARCTIC_LSTM] = "cell_ln.#.bias", [HN_HEAD_GGUF_STEPS] = "step.#.cell_norm.bias"},
    [HN_STEP_OUTPUT] = {[HN_HEAD_MEDUSA] = "#.^.weight", [HN_HEAD_MEDUSA_VLLM] = "lm_heads.#.weight",
                        [HN_HEAD_HYDRA] = "hydra_lm_head.#~.weight", [HN_HEAD_SPECULATOR] = "head.#.weight",
                        [HN_HEAD_ARCTIC_LSTM] = "head.#.weight", [HN_HEAD_GGUF_STEPS] = "step.#.output.weight"},
    [HN_STEP_OUTPUT_BIAS] = {[HN_HEAD_HYDRA] = "hydra_lm_head.#~.bias", [HN_HEAD_GGUF_STEPS] = "step.#.output.bias"},
};
static const char *const gates[HN_STEP_GATES][2] = {{"forget_proj.#.weight", "step.#.gate_forget.weight"},
                                                    {"input_proj.#.weight", "step.#.gate_input.weight"},
                                                    {"output_proj.#.weight", "step.#.gate_output.weight"},
                                                    {"cell_proj.#.weight", "step.#.gate_cell.weight"}};

static const char *form_of(const hn_head_names *names, const hn_steps_desc *d, hn_step_tensor t) {
    if (t.part == HN_STEP_GATE && d->kind == HN_STEP_LSTM) return gates[t.number][names->form == HN_HEAD_GGUF_STEPS];
    return folders[t.part][names->form];
}

bool hn_head_form_has_steps(hn_head_form form) {
    return form == HN_HEAD_META || folders[HN_STEP_OUTPUT][form] != NULL;
}

const char *hn_step_name(const hn_head_names *names, const hn_steps_desc *d, hn_step_tensor t, char out[128]) {
    const char *p = form_of(names, d, t);
    const bool folder = names->form != HN_HEAD_GGUF_STEPS;
    const hn_step_numbers *at = &names->steps;
    const int first = folder ? at->first_resblock : 0, stride = folder && at->resblock_stride ? at->resblock_stride : 1;
    if (!p) return NULL;
    size_t n = (size_t)snprintf(out, 128, "%s", names->front);
    for (; *p && n < 120; p++) {
        if (*p == '#')
            n += (size_t)snprintf(out + n, 128 - n, "%d", t.step);
        else if (*p == '@')
            n += (size_t)snprintf(out + n, 128 - n, "%d", first + stride * t.number);
        else if (*p == '^')
            n += (size_t)snprintf(out + n, 128 - n, "%d", d->resblocks);
        else if (*p == '~')
            n += at->inside ? (size_t)snprintf(out + n, 128 - n, names->form == HN_HEAD_HYDRA ? ".1" : ".0") : 0;
        else
            out[n++] = *p;
    }
    out[n] = 0;
    return out;
}

const hn_tensor *hn_step_find_tensor(const hn_source *src, const hn_head_names *names, const hn_steps_desc *d, hn_step_tensor t) {
    char name[128];
    return hn_step_name(names, d, t, name) ? hn_source_find(src, name) : NULL;
}

/* ---- which there are, and their shapes ------------------------------------------------------------------------------------- */

bool hn_step_part_is_vector(hn_step_part part) {
    return part == HN_STEP_RESBLOCK_BIAS || part == HN_STEP_RESIDUAL_BIAS || part == HN_STEP_OUTPUT_BIAS ||
           (part >= HN_STEP_NORM && part <= HN_STEP_CELL_NORM_BIAS);
}

static bool has_state(const hn_steps_desc *d) {
    return d->kind == HN_STEP_SUM || d->kind == HN_STEP_LSTM;
}

void hn_step_shape(const hn_arch *a, hn_step_tensor t, uint64_t dims[2]) {
    const hn_steps_desc *d = &a->draft_head.rows.steps;
    const uint64_t hidden = (uint64_t)a->hidden, inner = (uint64_t)d->inner;
    const bool grounded = d->kind == HN_STEP_GROUNDED && t.number == 0;
    dims[0] = has_state(d) ? inner : hidden;
    dims[1] = 1;
    if (t.part == HN_STEP_RESBLOCK || t.part == HN_STEP_RESIDUAL) {
        dims[1] = hidden;
        if (grounded) dims[0] = (uint64_t)(t.step + 2) * hidden;
    }
    if (t.part == HN_STEP_GATE || t.part == HN_STEP_GATES_FUSED) {
        dims[0] = t.step == 0 ? (uint64_t)a->draft_head.input.feature_width : inner;
        dims[1] = t.part == HN_STEP_GATE ? inner : HN_STEP_GATES * inner;
    }
    if (t.part == HN_STEP_EMBEDDING) dims[1] = (uint64_t)a->draft_head.input.embeddings;
    if (t.part == HN_STEP_OUTPUT) dims[1] = (uint64_t)a->vocab;
    if (t.part == HN_STEP_OUTPUT_BIAS) dims[0] = (uint64_t)a->vocab;
}

/* The number of a step's own tensors of a part. */
static int tensors_of(const hn_arch *a, hn_step_part part, int step) {
    const hn_head_desc *h = &a->draft_head;
    const hn_steps_desc *d = &h->rows.steps;
    const bool lstm = d->kind == HN_STEP_LSTM, state = has_state(d), own = !d->tied || step == 0;
    switch (part) {
    case HN_STEP_RESBLOCK: return d->resblocks;
    case HN_STEP_RESBLOCK_BIAS: return d->resblock_bias ? d->resblocks : 0;
    case HN_STEP_RESIDUAL:
    case HN_STEP_RESIDUAL_BIAS: return d->kind == HN_STEP_GROUNDED;
    case HN_STEP_GATE: return !state || d->fused_gates || (d->tied && step > 1) ? 0 : lstm ? HN_STEP_GATES : 1;
    case HN_STEP_GATES_FUSED: return d->fused_gates && (!d->tied || step <= 1);
    case HN_STEP_EMBEDDING:
    case HN_STEP_NORM:
    case HN_STEP_NORM_BIAS: return state && own;
    case HN_STEP_CELL_NORM:
    case HN_STEP_CELL_NORM_BIAS: return lstm && own;
    case HN_STEP_OUTPUT: return h->output.own && (!d->one_output || step == 0);
    case HN_STEP_OUTPUT_BIAS: return d->output_bias && (!d->one_output || step == 0);
    case HN_STEP_PARTS: break;
    }
    return 0;
}

bool hn_step_next(const hn_arch *a, hn_step_tensor *t) {
    const hn_steps_desc *d = hn_head_steps(&a->draft_head);
    const int n = d ? d->n : 0;
    t->number++;
    while (t->step < n && t->number >= tensors_of(a, t->part, t->step)) {
        t->number = 0;
        t->part++;
        if (t->part < HN_STEP_PARTS) continue;
        t->part = 0;
        t->step++;
    }
    return t->step < n;
}

/* ---- what a file shows --------------------------------------------------------------------------------------------------- */

int hn_steps_count(const hn_source *src, const hn_head_names *names, const hn_steps_desc *d, hn_step_part part) {
    int n = 0;
    while (n < 10000 && hn_step_find_tensor(src, names, d, (hn_step_tensor){part, n, 0})) n++;
    return n;
}

static bool shows(const hn_source *src, const hn_head_names *names, const hn_steps_desc *d, hn_step_part part) {
    return hn_step_find_tensor(src, names, d, (hn_step_tensor){part, 0, 0});
}

/* Hydra's lists may have a dropout before each module, Arctic's are lists of one. */
hn_step_numbers hn_steps_find_numbers(const hn_source *src, const hn_head_names *names) {
    const hn_steps_desc none = {0};
    const hn_step_part listed = names->form == HN_HEAD_HYDRA ? HN_STEP_OUTPUT : HN_STEP_EMBEDDING;
    hn_step_numbers n = {.resblock_stride = 1};
    if (names->form == HN_HEAD_HYDRA || names->form == HN_HEAD_SPECULATOR) n.inside = !shows(src, names, &none, listed);
    if (names->form == HN_HEAD_HYDRA && !shows(src, names, &none, HN_STEP_RESBLOCK)) n.first_resblock = 1, n.resblock_stride = 2;
    return n;
}

void hn_steps_count_parts(const hn_source *src, const hn_head_names *names, hn_steps_desc *d) {
    while (d->resblocks < 10000 && hn_step_find_tensor(src, names, d, (hn_step_tensor){HN_STEP_RESBLOCK, 0, d->resblocks})) d->resblocks++;
    d->fused_gates = shows(src, names, d, HN_STEP_GATES_FUSED);
}

static int dim_of(const hn_tensor *t, int dim) {
    return t && dim < t->n_dims && t->dims[dim] <= 1 << 23 ? (int)t->dims[dim] : 0;
}

void hn_steps_guess(const hn_source *src, const hn_head_names *names, int *tokens, int *width) {
    hn_steps_desc d = {.kind = names->form == HN_HEAD_ARCTIC_LSTM ? HN_STEP_LSTM : HN_STEP_RESBLOCKS}; /* as names need it */
    const hn_step_tensor block = {HN_STEP_RESBLOCK, 0, 0}, output = {HN_STEP_OUTPUT, 0, 0}, embedding = {HN_STEP_EMBEDDING, 0, 0};
    hn_steps_count_parts(src, names, &d);
    const hn_step_tensor gate = {d.fused_gates ? HN_STEP_GATES_FUSED : HN_STEP_GATE, 0, 0};
    *tokens = *width = 0;
    if (names->form == HN_HEAD_META) {
        *tokens = dim_of(hn_source_find(src, "output.weight"), 1);
        *width = dim_of(hn_source_find(src, "norm.weight"), 0);
        return;
    }
    *width = dim_of(hn_step_find_tensor(src, names, &d, block), 1);
    if (!*width) *width = dim_of(hn_step_find_tensor(src, names, &d, gate), 0);
    *tokens = dim_of(hn_step_find_tensor(src, names, &d, embedding), 1);
    if (!*tokens && !hn_head_find_tensor(src, names, HN_HEAD_IDS)) *tokens = dim_of(hn_step_find_tensor(src, names, &d, output), 1);
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

static hunch_status check_counts(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_steps_desc *d = &a->draft_head.rows.steps;
    if (d->n < 1 || d->n > HN_MOST_HEAD_STEPS)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d positions are drafted, expected 1 to %d", hn_source_path(src), d->n, HN_MOST_HEAD_STEPS);
    if (d->resblocks > HN_MOST_STEP_RESBLOCKS)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d resblocks a position, expected at most %d", hn_source_path(src), d->resblocks,
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
    const hn_tensor *embedding = hn_step_find_tensor(src, names, &h->rows.steps, (hn_step_tensor){HN_STEP_EMBEDDING, 0, 0}),
                    *output = hn_step_find_tensor(src, names, &h->rows.steps, (hn_step_tensor){HN_STEP_OUTPUT, 0, 0});
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
    d->resblock_bias = hn_step_find_tensor(src, names, d, (hn_step_tensor){HN_STEP_RESBLOCK_BIAS, 0, 0});
    d->output_bias = hn_step_find_tensor(src, names, d, (hn_step_tensor){HN_STEP_OUTPUT_BIAS, 0, 0});
    h->output.own = hn_step_find_tensor(src, names, d, (hn_step_tensor){HN_STEP_OUTPUT, 0, 0});
    if (!h->output.own || d->tied) d->one_output = true;
    st = read_vocabularies(a, src, names, tokens, err);
    return st ? st : hn_steps_check_said(a, src, names, tokens, err);
}
