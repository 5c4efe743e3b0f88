/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_falcon.c - Falcon (2412.12639): EAGLE-1's inputs through an LSTM, and k tokens a pass.
 *
 *   falcon:PATH[,last=normed|raw], options: head_drafter.h
 *
 *   last   the state that is read: after the final norm, or before it                                normed
 *
 * A row of token x[i+1] reads the target's last state after its final norm at position i, f[i]:
 *
 *   u = lstm(lstm(E[x[i+1]] | f[i]))       two layers; no state is carried from row to row
 *   r = u + attention(u)                   no norm before it; rows of a block attend to all rows before it and to each other
 *   f' = r + swiglu(norm(r))               the feature of the row k positions later
 *   logits = the target's output matrix f' draft the token k positions after the row's own
 *
 * The last k rows of the text are a block, and draft k tokens; these with those k outputs are the next one. Rows before the text's last
 * block are only keys and values, which do not depend on the positions of blocks. The released code counts blocks from the first row of
 * each of its passes, so that a draft depends on how the text was split into passes; here the last k rows are one block for any history.
 * The released code passes the LSTM's pair of output and state on, and fails there; if only the output is passed, with one text a batch,
 * its state is zero for every row, and so it is here.
 *
 * Files: lstm.{weight_ih,bias_ih,bias_hh}_l{0,1}, and EAGLE-1's layers.0.*; config.json is Llama's with k_mask.
 */
#include "draft/head/open/head_help.h"
#include "draft/head/open/head_reading.h"

/* All but the LSTM is named as in EAGLE's. */
static const hn_head_form release_form = {
    .base = &hn_head_folder,
    .part = {[HN_HEAD_LSTM_1] = "lstm.weight_ih_l0", [HN_HEAD_LSTM_2] = "lstm.weight_ih_l1",
             [HN_HEAD_LSTM_BIAS_1] = "lstm.bias_ih_l0", [HN_HEAD_LSTM_BIAS_2] = "lstm.bias_ih_l1",
             [HN_HEAD_LSTM_STATE_BIAS_1] = "lstm.bias_hh_l0", [HN_HEAD_LSTM_STATE_BIAS_2] = "lstm.bias_hh_l1"},
    .mark = {{"", "lstm."}},
};

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    static const hn_head_key keys[] = {HN_HEAD_KEY_SPAN, HN_HEAD_KEYS};
    hn_head_desc *d = &a->draft_head;
    const hn_tensor *gates = hn_head_find_tensor(src, names, HN_HEAD_LSTM_1);
    hunch_status st = hn_head_check_kind(src, "falcon", err);
    if (st) return st;
    if (!gates)
        return hn_fail(err, HUNCH_REFUSED, "%s: not a head of Falcon: expected a tensor lstm.weight_ih_l0", hn_source_path(src));
    if (a->layers != 1) /* rows of a second layer would depend on their blocks */
        return hn_fail(err, HUNCH_REFUSED, "%s: %d layers, expected a head of Falcon to have one", hn_source_path(src), a->layers);
    if (a->vocab != target->vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: an output of %d tokens, expected the target's own matrix", hn_source_path(src), a->vocab);
    d->input.stream = HN_STREAM_LSTM;
    d->input.features = 1;
    d->input.feature_width = a->hidden;
    d->rows.kind = HN_ROWS_SPAN;
    d->output.norm = HN_NORM_NONE;
    st = hn_head_keys_read(a, src, keys, err);
    a->layer[0].input = HN_INPUT_PLAIN;
    a->layer[0].ahead = true;
    return st ? st : hn_head_read_last(spec, target, taps, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&release_form},
    .only = {"lstm."},
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of Falcon: as EAGLE-1's, but drafts k tokens a pass",
    {HN_HELP_LAST, HN_HELP_TREES("chain|NAME|FILE")}};
const hn_drafter_kind hn_drafter_falcon = {.name = "falcon", .help = &help, .head = &facts, HN_HEAD_KIND};
