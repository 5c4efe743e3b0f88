/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_pard.c - PARD (2504.18583) and PARD-2 (2605.08632): a small whole model that drafts all its tokens in one pass.
 *
 *   pard:PATH, options: head_drafter.h
 *
 * A language model with the target's tokenizer, its own embedding and output, fine-tuned to go on over rows of a mask token after the text.
 * The newest token's row and each mask draft one token, whatever the drafts before it are; masks are dropped after the round.
 *
 *   x[i] = E[token i]                                      at position i, through Llama's or Qwen's layers, causal
 *   x[i] = E[token i] + scale target_proj(a[i - 1])        PARD-2: a are states of the target's layers, 0 before the first token; a mask
 *                                                          has the newest token's
 *
 * The states are numbered as transformers' hidden_states: -1 is behind the final norm, the others enter their layer; negative ones are
 * counted from the last, so the number of the target's layers must be known. Without the projection a model of PARD-2 is one of PARD.
 *
 * Files: AMD's folders, a model's with pard_token in config.json, and of PARD-2 with target_proj.* in warp_model.bin; our GGUF.
 */
#include <math.h>
#include <string.h>

#include "draft/head/open/head_help.h"
#include "draft/head/open/head_kind.h"
#include "draft/head/open/head_reading.h"
#include "draft/vocabulary_fit.h"

enum { MOST_LAYERS = 64, PADDING = 1024 };

/* ---- layers and vocabulary ------------------------------------------------------------------------------------------------ */

/* Families whose layers are read: others would be read as Llama's. */
static hunch_status check_type(const hn_source *src, hunch_error *err) {
    static const char *const known[] = {"llama", "mistral", "qwen2", "qwen3"};
    const char *type = json_string_value(hn_source_config(src, "model_type"));
    bool good = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    for (size_t i = 0; type && i < sizeof known / sizeof *known; i++) good |= !strcmp(type, known[i]);
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_REFUSED, "%s: model_type is \"%.40s\", expected a draft model of PARD: llama, mistral, qwen2 or qwen3",
                          hn_source_path(src), type ? type : "");
}

static hunch_status read_vocabulary(hn_arch *a, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    const hn_tensor *embedding = hn_head_find_tensor(src, names, HN_HEAD_EMBEDDING),
                    *output = hn_head_find_tensor(src, names, HN_HEAD_OUTPUT);
    hn_head_desc *d = &a->draft_head;
    char name[128];
    if (!embedding || embedding->n_dims != 2 || embedding->dims[1] < 1 || embedding->dims[1] > 1 << 23)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s %s, expected the embedding of a draft model", hn_source_path(src),
                       hn_head_name(names, HN_HEAD_EMBEDDING, 0, name), embedding ? "has another shape" : "is missing");
    a->tied = !output || json_is_true(hn_source_config(src, "tie_word_embeddings"));
    a->vocab = d->input.embeddings = (int)embedding->dims[1];
    d->input.own_embedding = d->output.own = true;
    return HUNCH_OK;
}

static hunch_status read_model(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    hunch_status st = check_type(src, err);
    if (!st) st = hn_head_read_layers(a, src, names, MOST_LAYERS, err);
    if (!st) st = read_vocabulary(a, src, names, err);
    if (st) return st;
    for (int i = 0; i < a->layers; i++) a->layer[i].first = 0; /* the first token's row is one like the others */
    d->input.stream = HN_STREAM_SUM;
    d->input.feature_width = target->hidden;
    d->rows.kind = HN_ROWS_MASKS;
    d->rows.masks.input = HN_MASK_ROOT;
    return HUNCH_OK;
}

static const hn_head_form folder_form = {
    .base = &hn_head_folder,
    .part = {[HN_HEAD_FC] = "!target_proj.weight", [HN_HEAD_FC_BIAS] = "!target_proj.bias"},
    .read = read_model,
};
static const hn_head_form gguf_form = {.base = &hn_head_gguf, .part = {[HN_HEAD_FC] = "fc.weight"}, .read = read_model};

/* ---- the target ----------------------------------------------------------------------------------------------------------- */

/* Whether token ids mean the same. Without tokenizers sizes may differ by padding alone. */
static hunch_status check_tokens(const hn_arch *a, hn_source *src, const hn_target_info *target, hunch_error *err) {
    hn_tokenizer *tokenizer = NULL;
    hunch_status st = target->tokenizer ? hn_tokenizer_open(&tokenizer, src, err) : HUNCH_OK;
    if (!st && tokenizer) {
        const hn_vocabulary t = {target->name, target->vocab, target->tokenizer}, d = {a->name, a->vocab, tokenizer};
        st = hn_vocabulary_fit(&t, &d, err);
    } else if (!st && abs(a->vocab - target->vocab) >= PADDING) {
        st = hn_fail(err, HUNCH_REFUSED, "%s: an embedding of %d tokens, expected the %d of the target", hn_source_path(src), a->vocab,
                     target->vocab);
    }
    hn_tokenizer_close(&tokenizer);
    return st;
}

static hunch_status fail_states(const hn_source *src, const char *key, int layers, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected a list of 1 to %d states, of -%d to %d of this target", hn_source_path(src), key,
                   HN_MOST_HEAD_FEATURES, layers + 1, layers);
}

/* State i of layers + 1. */
static bool add_state(hn_head_taps *taps, double i, int layers) {
    if (i < 0) i += layers + 1;
    if (!(i >= 0 && i <= layers) || i != floor(i)) return false;
    taps->boundary[taps->n++] = (int)i == layers ? HN_FEATURE_POST_NORM : (int)i;
    return true;
}

static hunch_status read_folder_states(const hn_source *src, int layers, hn_head_taps *taps, hunch_error *err) {
    static const char key[] = "pard2_target_layers";
    const json_t *list = hn_source_config(src, key);
    const size_t n = json_array_size(list);
    bool good = n >= 1 && n <= HN_MOST_HEAD_FEATURES;
    if (layers == HN_ANY_LAYERS)
        return hn_fail(err, HUNCH_USAGE, "%s: it counts layers from its model's last: expected --target with the model that it drafts for",
                       hn_source_path(src));
    for (size_t i = 0; good && i < n; i++) {
        const json_t *id = json_array_get(list, i);
        good = json_is_integer(id) && add_state(taps, (double)json_integer_value(id), layers);
    }
    return good ? HUNCH_OK : fail_states(src, key, layers, err);
}

/* Those that hunch convert wrote: layers whose entering states are read, -1 for the state behind the final norm. */
static hunch_status read_gguf_states(const hn_source *src, int layers, hn_head_taps *taps, hunch_error *err) {
    const char *key = hn_head_key_name(src, HN_HEAD_KEY_STATES, 0);
    const hn_array *list = NULL;
    hunch_status st = hn_source_array(src, key, &list, err);
    if (st) return st;
    const size_t n = list ? hn_array_count(list) : 0;
    bool good = n >= 1 && n <= HN_MOST_HEAD_FEATURES && !hn_array_is_strings(list);
    for (size_t i = 0; good && i < n; i++) {
        const double id = hn_array_number(list, i);
        good = id >= -1 && add_state(taps, id < 0 ? layers : id, layers);
    }
    return good ? HUNCH_OK : fail_states(src, key, layers, err);
}

static hunch_status read_scale(float *scale, const hn_source *src, hunch_error *err) {
    const char *name = NULL;
    bool found = false;
    double value = 0;
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && !found && (name = hn_head_key_name(src, HN_HEAD_KEY_FEATURE_SCALE, i)); i++)
        st = hn_source_f64(src, name, &value, &found, err);
    if (!st && !(value >= 1e-6 && value <= 1e6))
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %g, expected a factor of 1e-6 to 1e6 of the model's states", hn_source_path(src),
                     found ? name : hn_head_key_name(src, HN_HEAD_KEY_FEATURE_SCALE, 0), value);
    *scale = (float)value;
    return st;
}

/* PARD-2's states, if there is a projection for them. */
static hunch_status read_features(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_target_info *target,
                                  hn_head_taps *taps, hunch_error *err) {
    const hn_tensor *fc = hn_head_find_tensor(src, names, HN_HEAD_FC);
    hn_input_stage *in = &a->draft_head.input;
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    taps->n = 0;
    if (!fc) return HUNCH_OK;
    hunch_status st = gguf ? read_gguf_states(src, target->layers, taps, err) : read_folder_states(src, target->layers, taps, err);
    if (!st) st = read_scale(&in->sum.scale, src, err);
    if (st) return st;
    if (fc->n_dims != 2 || fc->dims[0] != (uint64_t)taps->n * (uint64_t)target->hidden)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has other inputs, expected %d states of the target, of %d numbers each",
                       hn_source_path(src), fc->name, taps->n, target->hidden);
    in->features = taps->n;
    in->sum.fc_bias = hn_head_find_tensor(src, names, HN_HEAD_FC_BIAS);
    return HUNCH_OK;
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec HN_UNUSED, const hn_target_info *target,
                             hn_head_taps *taps, hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    hunch_status st = hn_head_read_mask_token(src, d->input.embeddings, &d->rows.masks.token, err);
    if (!st) st = check_tokens(a, src, target, err);
    return st ? st : read_features(a, src, names, target, taps, err);
}

/* A model with the mask's token, and not a head that has one. */
static bool is_pard(hn_source *folder) {
    return hn_source_config(folder, "pard_token") && hn_head_has_layer(folder) && !hn_head_has_begin(folder, "fc.weight") &&
           !hn_head_has_begin(folder, "mask_hidden");
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&folder_form},
    .gguf_form = {&gguf_form},
    .is = is_pard,
};
static const hn_drafter_help help = {
    ":MODEL", "a draft model of PARD: drafts all its tokens in one pass",
    {HN_HELP_AT_ONCE}};
const hn_drafter_kind hn_drafter_pard = {.name = "pard", .help = &help, .head = &facts, HN_HEAD_KIND};
