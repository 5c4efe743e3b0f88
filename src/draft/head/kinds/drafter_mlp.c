/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_mlp.c - IBM's speculator of products (2404.19124), and Arctic's with a cell (SwiftKV's and Arctic's LSTM speculators).
 *
 *   mlp:PATH[,last=normed|raw], options: head_drafter.h
 *
 * The state s begins as the target's last one after its final norm at the last row that it has computed; t is the token drafted before, at
 * first the newest one. Step i:
 *
 *   s = gelu(norm(P s + a E t) + b)        with a cell: three gates and a candidate instead of the sum, model/layer_steps.c
 *   logits = U s
 *
 * It reads only a state of its own and tokens: no attention, no cache; q is a proper conditional. Tied: one E, U and norm for all steps,
 * one P of the first step and one of all others. a follows from n_predict and the width of s.
 *
 * Files: speculator.{emb,proj,head,ln}.{i}.*, of tied ones those of index 0 and proj 1, or copies; Arctic's in lists of modules
 * (emb.{i}.0.weight), or forget_emb.0, {forget,input,output,cell}_proj.{0,1} or projs.{0,1}, cell_ln.0, state_ln.0, head.0.
 */
#include <stdio.h>
#include <string.h>

#include "draft/head/open/head_help.h"
#include "draft/head/open/head_reading.h"
#include "model/head/head_steps.h"

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

/* Arctic's are lists of one module. */
static void number(hn_step_layout *layout, const hn_source *src, const hn_head_names *names) {
    layout->inside = !hn_tensor_find(src, names, (hn_tensor_id){HN_STEP_EMBEDDING, 0, 0});
}

static const hn_step_form sum_steps = {
    .key = {{"vocab_size", HN_FACT_TOKENS}},
    .number = number,
};
static const hn_head_form sum_form = {
    .part = {[HN_HEAD_IDS] = "!d2t",
             [HN_STEP_PROJECTION] = "proj.#~0.weight", [HN_STEP_EMBEDDING] = "emb.#~0.weight", [HN_STEP_NORM] = "ln.#~0.weight",
             [HN_STEP_NORM_BIAS] = "ln.#~0.bias", [HN_STEP_OUTPUT] = "head.#.weight"},
    .steps = &sum_steps,
    .mark = {{"speculator.", "emb.0."}, {"", "emb.0."}},
};

static const hn_step_form lstm_steps = {
    .key = {{"vocab_size", HN_FACT_TOKENS}},
};
static const hn_head_form lstm_form = {
    .part = {[HN_HEAD_IDS] = "!d2t",
             [HN_STEP_GATE_FORGET] = "forget_proj.#.weight", [HN_STEP_GATE_INPUT] = "input_proj.#.weight",
             [HN_STEP_GATE_OUTPUT] = "output_proj.#.weight", [HN_STEP_GATE_CELL] = "cell_proj.#.weight",
             [HN_STEP_GATES_FUSED] = "projs.#.weight", [HN_STEP_EMBEDDING] = "forget_emb.#.weight", [HN_STEP_NORM] = "state_ln.#.weight",
             [HN_STEP_NORM_BIAS] = "state_ln.#.bias", [HN_STEP_CELL_NORM] = "cell_ln.#.weight", [HN_STEP_CELL_NORM_BIAS] = "cell_ln.#.bias",
             [HN_STEP_OUTPUT] = "head.#.weight"},
    .steps = &lstm_steps,
    .mark = {{"speculator.", "forget_emb.0."}, {"", "forget_emb.0."}},
};

/* ---- the description -------------------------------------------------------------------------------------------------------- */

/* Arctic's files may have several products where others have one; these are refused. */
static hunch_status check_modules(const hn_source *src, const hn_head_names *names, hunch_error *err) {
    char name[128], deeper[140];
    const hn_tensor_id all[] = {{HN_STEP_PROJECTION, 0, 0}, {HN_STEP_EMBEDDING, 0, 0}, {HN_STEP_NORM, 0, 0}};
    for (size_t i = 0; names->steps.inside && i < sizeof all / sizeof *all; i++) {
        hn_tensor_name(names, all[i], name);
        const size_t n = strlen(name) - strlen(".0.weight");
        snprintf(deeper, sizeof deeper, "%.*s.%d.weight", (int)n, name, i == 2 ? 2 : 1);
        if (hn_source_find(src, deeper))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: expected a speculator with one product and one norm a step",
                           hn_source_path(src), deeper);
    }
    return HUNCH_OK;
}

static bool is_lstm(const hn_source *src, const hn_head_names *names) {
    return names->form == &lstm_form || hn_tensor_find(src, names, (hn_tensor_id){HN_STEP_CELL_NORM, 0, 0});
}

/* Number of steps: n_predict if the file has it, because tied steps have only one set of tensors. */
static hunch_status read_steps(hn_steps_desc *d, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    const char *name;
    uint64_t n = 0;
    bool tied = false, found = false;
    const int outputs = hn_steps_count(src, names, HN_STEP_OUTPUT);
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_STEPS, &n, &name, err);
    if (!st && names->form != &hn_head_gguf_steps) st = hn_source_bool(src, "tie_weights", &tied, &found, err);
    if (st) return st;
    d->own_state.tied = tied || d->kind == HN_STEP_LSTM || (!found && name && n > 1 && outputs == 1);
    if (d->own_state.tied && !name)
        return hn_fail(err, HUNCH_REFUSED, "%s: the number of tokens that it drafts is not specified: expected n_predict in config.json",
                       hn_source_path(src));
    d->n = name ? n > HN_MOST_HEAD_STEPS ? HN_MOST_HEAD_STEPS + 1 : (int)n : outputs;
    return HUNCH_OK;
}

static hunch_status read_width(hn_steps_desc *d, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    const hn_tensor *output = hn_tensor_find(src, names, (hn_tensor_id){HN_STEP_OUTPUT, 0, 0});
    if (!output || output->n_dims != 2 || output->dims[0] < 1 || output->dims[0] > 1 << 17)
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor head.0.weight of a speculator, or not a matrix", hn_source_path(src));
    d->own_state.width = (int)output->dims[0];
    return HUNCH_OK;
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_steps_desc *d = &a->draft_head.rows.steps;
    hunch_status st = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_head_check_kind(src, "mlp", err) : HUNCH_OK;
    if (st) return st;
    if (names->form != &sum_form && names->form != &lstm_form && names->form != &hn_head_gguf_steps)
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor speculator.emb.0.weight nor forget_emb.0.weight: not a speculator of products",
                       hn_source_path(src));
    d->kind = is_lstm(src, names) ? HN_STEP_LSTM : HN_STEP_SUM;
    st = hn_steps_check_layers(a, src, 0, err);
    if (!st) st = check_modules(src, names, err);
    if (!st) st = read_steps(d, src, names, err);
    if (!st) st = read_width(d, src, names, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_KEY_SCALE_INPUT, &d->own_state.scale_input, err);
    if (!st) st = hn_steps_finish(a, src, names, target->vocab, err);
    return st ? st : hn_head_read_last(spec, target, taps, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&sum_form, &lstm_form},
    .only = {"speculator.emb.", "speculator.forget_emb.", "forget_emb.", "emb.0."},
    .steps_tensor = "speculator.emb.0.weight or forget_emb.0.weight",
};
static const hn_drafter_help help = {
    ":HEAD", "IBM's and Arctic's speculators: a state of their own and a token make the next one",
    {HN_HELP_LAST, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_mlp = {.name = "mlp", .help = &help, .head = &facts, HN_HEAD_KIND};
