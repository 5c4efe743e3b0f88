/* SPDX-License-Identifier: Apache-2.0 */
/* block_head.c - see block_head.h.
 *
 * Publishers differ. z-lab, SpecForge and DeepSpec list the outputs of layers (target_layer_ids, inside dflash_config or at the top level;
 * without a list: spread over the model), and a layer's window moves with each row. speculators (its files have speculators_model_type)
 * lists the states that enter layers (aux_hidden_state_layer_ids), windows are those of the root for all rows of its block, and its
 * embedding is the model's as it is stored, without the scale of Gemma's models. A GGUF of llama.cpp has the numbering of the second.
 * Where files leave windows and causality open: as vLLM reads them. */
#include "draft/head/kinds/block_head.h"

#include <math.h>
#include <string.h>

#include "draft/head/open/head_reading.h"
#include "draft/head/open/head_taps.h"

static bool of_speculators(const hn_source *src) {
    return hn_source_config(src, "speculators_model_type") != NULL;
}

/* ---- states ------------------------------------------------------------------------------------------------------------ */

/* Lists of layers in a folder; the first that exists counts. */
typedef struct layer_list {
    const char *key;
    bool outputs;
} layer_list;
static const layer_list lists[] = {{"dflash_config.target_layer_ids", true},
                                   {"target_layer_ids", true},
                                   {"aux_hidden_state_layer_ids", false},
                                   {"eagle_aux_hidden_state_layer_ids", false}};
enum { LISTS = sizeof lists / sizeof *lists };

static const json_t *find_list(const hn_source *src, const layer_list **found) {
    const bool states_alone = of_speculators(src);
    for (int i = 0; i < LISTS; i++) {
        const json_t *list = states_alone && lists[i].outputs ? NULL : hn_source_config(src, lists[i].key);
        *found = &lists[i];
        if (list && !json_is_null(list)) return list;
    }
    *found = &lists[states_alone ? 2 : 0]; /* the one that was expected */
    return NULL;
}

size_t hn_block_states(const hn_source *src) {
    const layer_list *which;
    const json_t *list = find_list(src, &which), *layers = hn_source_config(src, "num_hidden_layers");
    if (!list && !of_speculators(src) && hn_source_config(src, "num_target_layers") && json_is_integer(layers))
        return json_integer_value(layers) >= 0 && json_integer_value(layers) <= HN_MOST_HEAD_FEATURES ? (size_t)json_integer_value(layers)
                                                                                                      : 0;
    return json_array_size(list);
}

/* As published: outputs round(1 + i (layers - 4) / (n - 1)), where a half of the whole sum goes to the even number. */
void hn_block_spread(int layers, int n, int *boundary) {
    for (int i = 0; i < n; i++)
        boundary[i] = 1 + (n == 1 ? layers / 2 : (int)nearbyint(1 + (double)(i * (layers - 4)) / (n - 1)));
}

static hunch_status spread(const hn_arch *a, const hn_source *src, int layers, hn_head_taps *taps, hunch_error *err) {
    if (a->layers > HN_MOST_HEAD_FEATURES || layers < 5)
        return hn_fail(err, HUNCH_REFUSED, "%s: the layers that it reads, of %d, are not specified: expected %s",
                       hn_source_path(src), layers, lists[0].key);
    taps->n = a->layers;
    hn_block_spread(layers, taps->n, taps->boundary);
    return HUNCH_OK;
}

static hunch_status read_folder_taps(const hn_arch *a, const hn_source *src, int layers, hn_head_taps *taps, hunch_error *err) {
    const layer_list *which;
    const json_t *list = find_list(src, &which);
    if (list) return hn_taps_of_list(list, src, which->key, which->outputs, taps, err);
    if (of_speculators(src))
        return hn_fail(err, HUNCH_REFUSED, "%s: the layers that it reads are not specified: expected %s", hn_source_path(src), which->key);
    return spread(a, src, layers, taps, err);
}

static hunch_status read_taps(const hn_arch *a, const hn_source *src, hn_spec *spec, int layers, hn_head_taps *taps, hunch_error *err) {
    bool given = false, there = false;
    uint64_t of = (uint64_t)layers;
    hunch_status st = hn_taps_of_spec(spec, taps, &given, err);
    if (st || given) return st;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return hn_taps_of_gguf(src, taps, err);
    st = hn_source_u64(src, "num_target_layers", &of, &there, err);
    if (st) return st;
    if (there && spec->text[0] && of != (uint64_t)layers) /* a conversion may not know the model */
        return hn_fail(err, HUNCH_REFUSED, "%s: num_target_layers is %llu, expected the %d of this target", hn_source_path(src),
                       (unsigned long long)of, layers);
    return read_folder_taps(a, src, of <= 256 ? (int)of : layers, taps, err);
}

/* ---- blocks and what their rows attend to -------------------------------------------------------------------------------- */

/* The default of sample_from_anchor: by DSpark's class, with a Markov head or without; by vLLM's key for the opposite; or because one
 * token less than the block has rows is to be proposed. */
static hunch_status guess_root(bool *root_drafts, const hn_source *src, uint64_t block, hunch_error *err) {
    const char *class = json_string_value(json_array_get(hn_source_config(src, "architectures"), 0));
    const json_t *methods = hn_source_config(src, "speculators_config.proposal_methods");
    const json_t *proposed = json_object_get(json_array_get(methods, 0), "speculative_tokens");
    bool apart = false, found = false;
    hunch_status st = hn_source_bool(src, "dspark_bonus_anchor", &apart, &found, err);
    if (class && strstr(class, "DSpark")) *root_drafts = true;
    if (found) *root_drafts = !apart;
    if (!found && *root_drafts && json_is_integer(proposed) && (uint64_t)json_integer_value(proposed) + 1 == block)
        *root_drafts = false;
    return st;
}

static hunch_status read_block(hn_rows_stage *d, const hn_source *src, hunch_error *err) {
    uint64_t block = of_speculators(src) ? 8 : 0;
    const char *name;
    bool given = false;
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_BLOCK, &block, &name, err);
    if (!st) st = hn_head_bool_given(src, HN_HEAD_KEY_ROOT_DRAFTS, &d->block.root_drafts, &given, err);
    if (!st && !given && hn_source_get_kind(src) == HN_SOURCE_HF) st = guess_root(&d->block.root_drafts, src, block, err);
    if (st) return st;
    if (!name) name = hn_head_key_name(src, HN_HEAD_KEY_BLOCK, 0);
    if (block < (d->block.root_drafts ? 1 : 2) || block > HN_MAX_ROWS)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected blocks of %d to %d rows", hn_source_path(src), name,
                       (unsigned long long)block, d->block.root_drafts ? 1 : 2, HN_MAX_ROWS);
    d->block.n = (int)block;
    d->block.levels = d->block.n - !d->block.root_drafts;
    return HUNCH_OK;
}

/* Reads the window and the list of the layers that have it. */
static hunch_status read_gguf_windows(hn_arch *a, const hn_source *src, hunch_error *err) {
    const char *name, *key = "dflash.attention.sliding_window_pattern";
    const hn_array *list = NULL;
    uint64_t window = 0;
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_WINDOW, &window, &name, err);
    if (!st) st = hn_source_array(src, key, &list, err);
    if (st || !window) return st;
    if (window > 1 << 24 || !list)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected 1 to %d, and %s with a flag for each layer", hn_source_path(src), name,
                       (unsigned long long)window, 1 << 24, key);
    return hn_family_listed_windows(a, src, list, (int)window, err);
}

/* Rows of a folder's window, 0: no layer has one. It applies if the kind of the layers has windows (Qwen3's only if use_sliding_window is
 * on), or if use_swa requests it. */
static hunch_status read_window_rows(const hn_source *src, bool use_swa, int *rows, hunch_error *err) {
    const hn_key key = {NULL, "sliding_window", 1, 1 << 24, 0}, own = {NULL, "dflash_config.swa_window_size", 0, 1 << 24, 0};
    const json_t *use = hn_source_config(src, "use_sliding_window"), *window = hn_source_config(src, key.hf),
                 *size = hn_source_config(src, own.hf);
    const char *type = json_string_value(hn_source_config(src, "model_type"));
    const bool off = use ? !json_is_true(use) : !type || !strncmp(type, "qwen", 4);
    hunch_status st = size && !json_is_null(size) ? hn_key_int(src, &own, rows, err) : HUNCH_OK;
    if (!st && *rows == 0 && (!off || use_swa) && window && !json_is_null(window)) st = hn_key_int(src, &key, rows, err);
    if (!st && use_swa && *rows == 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: dflash_config.use_swa is on without the rows of a window: expected %s",
                     hn_source_path(src), own.hf);
    return st;
}

/* *all: every layer gets a window by use_swa, because layer_types gives one to none. */
static hunch_status read_windows(hn_arch *a, const hn_source *src, bool *all, hunch_error *err) {
    bool use_swa = false, listed = false, found;
    int rows = 0;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return read_gguf_windows(a, src, err);
    hunch_status st = hn_source_bool(src, "dflash_config.use_swa", &use_swa, &found, err);
    if (!st) st = read_window_rows(src, use_swa, &rows, err);
    if (!st && rows > 0) st = hn_family_layer_types(a, src, rows, &listed, err);
    *all = use_swa;
    for (int i = 0; i < a->layers; i++) *all &= a->layer[i].window == 0;
    for (int i = 0; *all && i < a->layers; i++) a->layer[i].window = rows;
    return st;
}

/* Reads what rows attend to: windows before the root, rows of the block after a row's own. A layer with a window attends within the block
 * only to earlier rows, if its window comes from layer_types; a setting of the file for all layers applies to all. */
static hunch_status read_sight(hn_arch *a, const hn_source *src, bool ahead, hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    const bool folder = hn_source_get_kind(src) == HN_SOURCE_HF;
    bool causal = false, given = false, all = false, halves = true;
    static const hn_head_key keys[] = {HN_HEAD_KEY_WINDOWS_OF_ROOT, HN_HEAD_KEY_SCALED_EMBEDDING, HN_HEAD_KEYS};
    bool *windows_of_root = &d->rows.block.windows_of_root;
    *windows_of_root = of_speculators(src);
    d->input.context.scaled = folder && !of_speculators(src) && !d->input.own_embedding;
    hunch_status st = read_windows(a, src, &all, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_KEY_WINDOWS_AHEAD, &ahead, err);
    if (!st) st = hn_head_keys_read(a, src, keys, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_KEY_HALVES, &halves, err);
    if (!st) st = hn_head_bool_given(src, HN_HEAD_KEY_CAUSAL, &causal, &given, err);
    if (!halves) a->files.rows_in_pairs = true;
    if (given && folder) ahead = !causal;
    for (int i = 0; i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        l->ahead = !l->window || (all && !given) ? !causal : ahead;
        l->window += l->window && *windows_of_root && folder; /* this many before the root */
    }
    return st;
}

/* Refuses parts of newer heads that would change the drafts, and parts that the configuration enables but no tensor exists for. */
static hunch_status refuse_more(const hn_arch *a, const hn_source *src, const char *kind, hunch_error *err) {
    const char *projector = json_string_value(hn_source_config(src, "dflash_config.projector_type"));
    static const char *const sinks[] = {"dflash_config.attention_sink_bias", "add_swa_attention_sink_bias"};
    for (size_t i = 0; !a->layer[0].sinks && i < sizeof sinks / sizeof *sinks; i++)
        if (json_is_true(hn_source_config(src, sinks[i])))
            return hn_fail(err, HUNCH_REFUSED, "%s: %s is on, and no tensor self_attn.attention_sink_bias is there", hn_source_path(src),
                           sinks[i]);
    if (json_is_false(hn_source_config(src, "use_aux_hidden_state")) ||
        json_is_false(hn_source_config(src, "dflash_config.use_aux_hidden_state")))
        return hn_fail(err, HUNCH_REFUSED, "%s: use_aux_hidden_state is off: expected a head that reads states of the target's layers",
                       hn_source_path(src));
    return !projector || !strcmp(projector, "none") || !strcmp(projector, "dflash") || !strcmp(projector, kind)
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED, "%s: dflash_config.projector_type is \"%.40s\", expected %s", hn_source_path(src), projector,
                         kind);
}

/* ---- the description ------------------------------------------------------------------------------------------------------- */

hunch_status hn_block_describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                               const hn_block_form *kind, hn_head_taps *taps, hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    if (!hn_head_form_blocks(names->form))
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor hidden_norm.weight: not a head that drafts blocks", hn_source_path(src));
    d->rows.kind = HN_ROWS_BLOCK;
    d->rows.block.root_drafts = kind->root_drafts;
    hunch_status st = hn_head_check_kind(src, kind->name, err);
    if (!st) st = refuse_more(a, src, kind->name, err);
    if (!st && !kind->own_cap) st = hn_head_refuse_cap(src, err);
    if (!st) st = read_taps(a, src, spec, target->layers, taps, err);
    if (!st) st = hn_head_check_fc(src, names, taps, target, err);
    if (!st) st = read_block(&d->rows, src, err);
    if (!st) st = read_sight(a, src, kind->windows_ahead, err);
    if (st) return st;
    d->input.stream = HN_STREAM_CONTEXT;
    d->input.features = taps->n;
    d->input.feature_width = target->hidden;
    d->input.context.fc_bias = hn_head_find_tensor(src, names, HN_HEAD_FC_BIAS);
    d->rows.block.mask_row = hn_head_find_tensor(src, names, HN_HEAD_MASK_ROW);
    return d->rows.block.mask_row ? HUNCH_OK : hn_head_read_mask_token(src, d->input.embeddings, &d->rows.block.mask_token, err);
}
