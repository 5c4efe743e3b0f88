/* SPDX-License-Identifier: Apache-2.0 */
/* head_keys.c - the names of a draft head's keys in each form of file, beside those of a dense family's layers. GGUF
 * files have one of these architectures: llama.cpp's eagle3, dflash and gemma4-assistant, ik_llama.cpp's gemma4_mtp, and one of our own
 * for other kinds. Keys that
 * llama.cpp does not have begin with hunch.head. docs/formats.md has the same table in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/head/head.h"

typedef enum key_form { FOLDER, EAGLE3, OWN, BLOCKS, ASSISTANT, MTP_ASSISTANT, KEY_FORMS } key_form;
enum { MOST_NAMES = 4 };

/* The first name that a file has is used. */
static const struct {
    hn_key_type type;
    const char *names[KEY_FORMS][MOST_NAMES + 1];
} table[HN_HEAD_KEYS] = {
    [HN_HEAD_KEY_KIND] = {HN_KEY_WORD, {{"speculators_model_type"}, [EAGLE3] = {"hunch.head.kind"}, [OWN] = {"hunch.head.kind"},
                                        [BLOCKS] = {"hunch.head.kind"}, [ASSISTANT] = {"hunch.head.kind"},
                                        [MTP_ASSISTANT] = {"hunch.head.kind"}}},
    [HN_HEAD_KEY_STATES] = {HN_KEY_LIST, {{"eagle_aux_hidden_state_layer_ids", "eagle_config.eagle_aux_hidden_state_layer_ids"},
        [EAGLE3] = {"eagle3.target_layers"}, [OWN] = {"hunch-head.target_layers"}, [BLOCKS] = {"dflash.target_layers"}}},
    [HN_HEAD_KEY_TARGET_WIDTH] = {HN_KEY_INT, {{"target_hidden_size", "backbone_hidden_size"},
        [EAGLE3] = {"eagle3.target_hidden_size"}, [OWN] = {"hunch-head.target_hidden_size"},
        [BLOCKS] = {"dflash.target_hidden_size"}, [ASSISTANT] = {"gemma4-assistant.embedding_length_out"},
        [MTP_ASSISTANT] = {"gemma4_mtp.backbone_embedding_length"}}},
    [HN_HEAD_KEY_TOKENS] = {HN_KEY_INT, {{"vocab_size"}, [EAGLE3] = {"eagle3.vocab_size"}, [OWN] = {"hunch-head.vocab_size"},
        [BLOCKS] = {"dflash.vocab_size"}, [ASSISTANT] = {"gemma4-assistant.vocab_size"},
        [MTP_ASSISTANT] = {"gemma4_mtp.vocab_size"}}},
    [HN_HEAD_KEY_OUTPUTS] = {HN_KEY_INT, {{"draft_vocab_size"}}}, /* in a GGUF the tensors show it */
    [HN_HEAD_KEY_NORM_BEFORE_RESIDUAL] = {HN_KEY_BOOL, {{"norm_before_residual"}, {"eagle3.norm_before_residual"}}},
    [HN_HEAD_KEY_NORM_BEFORE_FC] = {HN_KEY_BOOL, {{"norm_before_fc"}, {"eagle3.norm_before_fc"}}},
    [HN_HEAD_KEY_FC_NORM] = {HN_KEY_BOOL, {{"fc_norm"}, {"hunch.head.fc_norm"}}},
    [HN_HEAD_KEY_NORM_OUTPUT] = {HN_KEY_BOOL, {{"norm_output"}, {"hunch.head.norm_output"}}},
    [HN_HEAD_KEY_MASK_TOKEN] = {HN_KEY_INT, {{"ptd_token_id", "mask_token_id", "pard_token", "dflash_config.mask_token_id"},
        [EAGLE3] = {"hunch.head.mask_token_id"}, [OWN] = {"hunch.head.mask_token_id"},
        [BLOCKS] = {"tokenizer.ggml.mask_token_id", "dflash.mask_token_id"}}},
    [HN_HEAD_KEY_SPAN] = {HN_KEY_INT, {{"k_mask"}, [OWN] = {"hunch-head.k_mask"}}},
    [HN_HEAD_KEY_MASKS] = {HN_KEY_INT, {{"draft_length"}, {"hunch.head.draft_length"}}},
    [HN_HEAD_KEY_MTP_LAYERS] = {HN_KEY_INT, {{"num_nextn_predict_layers"}, [OWN] = {"hunch-head.nextn_predict_layers"}}},
    [HN_HEAD_KEY_WINDOW] = {HN_KEY_INT, {[EAGLE3] = {"eagle3.attention.sliding_window"},
        [OWN] = {"hunch-head.attention.sliding_window"},
        [BLOCKS] = {"dflash.attention.sliding_window"}}}, /* in a folder: layer_types */
    [HN_HEAD_KEY_BLOCK] = {HN_KEY_INT, {{"block_size", "dflash_config.block_size"}, [BLOCKS] = {"dflash.block_size"}}},
    [HN_HEAD_KEY_ROOT_DRAFTS] = {HN_KEY_BOOL, {{"sample_from_anchor", "dflash_config.sample_from_anchor"},
        [BLOCKS] = {"dflash.sample_from_anchor"}}},
    [HN_HEAD_KEY_WINDOWS_AHEAD] = {HN_KEY_BOOL, {{"sliding_window_non_causal"},
        [BLOCKS] = {"hunch.head.sliding_window_non_causal"}}},
    [HN_HEAD_KEY_WINDOWS_OF_ROOT] = {HN_KEY_BOOL, {[BLOCKS] = {"hunch.head.sliding_window_of_root"}}},
    [HN_HEAD_KEY_CAUSAL] = {HN_KEY_BOOL, {{"is_causal", "dflash_config.causal", "dflash_config.causal_head"},
        [BLOCKS] = {"hunch.head.causal", "dflash.attention.causal"}}},
    [HN_HEAD_KEY_CONV_TAPS] = {HN_KEY_INT, {{"dflash_config.conv_kernel_size", "conv_kernel_size"},
        [BLOCKS] = {"dflash.conv_kernel_size"}}},
    [HN_HEAD_KEY_CONV_GROUP] = {HN_KEY_INT, {{"dflash_config.conv_group_size", "conv_group_size"},
        [BLOCKS] = {"dflash.conv_group_size"}}},
    [HN_HEAD_KEY_SELECTOR_RANK] = {HN_KEY_INT, {{"dflash_config.selector_rank", "selector_rank"},
        [BLOCKS] = {"dflash.selector_rank"}}},
    [HN_HEAD_KEY_CANDIDATES] = {HN_KEY_INT, {{"dflash_config.selector_top_k", "selector_top_k"},
        [BLOCKS] = {"dflash.selector_top_k"}}},
    [HN_HEAD_KEY_EMBEDDING_SCALE] = {HN_KEY_FLOAT, {{"dflash_config.input_embedding_scale", "input_embedding_scale"},
        [BLOCKS] = {"dflash.embedding_scale"}}},
    [HN_HEAD_KEY_LOGIT_CAP] = {HN_KEY_FLOAT, {{"dflash_config.final_logit_softcapping", "final_logit_softcapping"},
        [EAGLE3] = {"eagle3.final_logit_softcapping"}, [OWN] = {"hunch-head.final_logit_softcapping"},
        [BLOCKS] = {"dflash.final_logit_softcapping"}}},
    [HN_HEAD_KEY_PREFIX_STATE] = {HN_KEY_INT, {{"dflash_config.gru_hidden_dim"}}}, /* in a GGUF the tensors show it */
    [HN_HEAD_KEY_PREFIX_WIDTH] = {HN_KEY_INT, {{"dflash_config.emb_dim", "emb_dim"}}},
    [HN_HEAD_KEY_PREFIX_PLAIN] = {HN_KEY_INT, {{"dflash_config.pure_draft_prefix_len"},
        [BLOCKS] = {"hunch.head.pure_draft_prefix_len"}}},
    [HN_HEAD_KEY_SHIFTED] = {HN_KEY_BOOL, {{"dflash_config.shift_label"}, [BLOCKS] = {"dflash.sample_from_anchor"}}},
    [HN_HEAD_KEY_SCALED_EMBEDDING] = {HN_KEY_BOOL, {[BLOCKS] = {"hunch.head.scaled_embedding"}}},
    [HN_HEAD_KEY_CLUSTERS] = {HN_KEY_INT, {{"num_centroids"}, [ASSISTANT] = {"gemma4-assistant.n_centroids"},
        [MTP_ASSISTANT] = {"gemma4_mtp.centroid_count"}}},
    [HN_HEAD_KEY_CLUSTERS_USED] = {HN_KEY_INT, {{"centroid_intermediate_top_k"}, [EAGLE3] = {"hunch.head.centroid_top_k"},
        [OWN] = {"hunch.head.centroid_top_k"}, [ASSISTANT] = {"gemma4-assistant.centroid_top_k"},
        [MTP_ASSISTANT] = {"gemma4_mtp.centroid_top_k"}}},
    [HN_HEAD_KEY_HALVES] = {HN_KEY_BOOL, {{"rope_is_neox_style", "is_neox_style"}}},
    [HN_HEAD_KEY_FEATURE_SCALE] = {HN_KEY_FLOAT, {{"pard2_scale", "pard_scale", "feat_scale"},
        [OWN] = {"hunch-head.feature_scale"}}},
    [HN_HEAD_KEY_STEPS] = {HN_KEY_INT, {{"n_predict"}, [OWN] = {"hunch-head.steps"}}},
    [HN_HEAD_KEY_SCALE_INPUT] = {HN_KEY_BOOL, {{"scale_input"}, [OWN] = {"hunch-head.scale_input"}}},
    [HN_HEAD_KEY_STATE_OFFSET] = {HN_KEY_INT, {{"hidden_state_offset"}, [OWN] = {"hunch-head.state_offset"}}},
    [HN_HEAD_KEY_LOGIT_SCALE] = {HN_KEY_FLOAT, {{"logit_scale", "dflash_config.output_multiplier", "output_multiplier"},
        [OWN] = {"hunch-head.logit_scale"}, [BLOCKS] = {"dflash.logit_scale"}}},
    [HN_HEAD_KEY_ROWS_IN_PAIRS] = {HN_KEY_BOOL, {[OWN] = {"hunch-head.rows_in_pairs"}}},
    [HN_HEAD_KEY_FREQUENCIES] = {HN_KEY_LIST, {[EAGLE3] = {"hunch.head.rope_frequencies"},
        [OWN] = {"hunch.head.rope_frequencies"}, [BLOCKS] = {"hunch.head.rope_frequencies"}}},
    [HN_HEAD_KEY_LONG_FREQUENCIES] = {HN_KEY_LIST, {[EAGLE3] = {"hunch.head.rope_frequencies_long"},
        [OWN] = {"hunch.head.rope_frequencies_long"}, [BLOCKS] = {"hunch.head.rope_frequencies_long"}}},
    [HN_HEAD_KEY_AMPLITUDE] = {HN_KEY_FLOAT, {[EAGLE3] = {"hunch.head.rope_amplitude"}, [OWN] = {"hunch.head.rope_amplitude"},
        [BLOCKS] = {"hunch.head.rope_amplitude"}}},
    [HN_HEAD_KEY_MIN_P] = {HN_KEY_REAL, {{"draft_min_p"}, [EAGLE3] = {"hunch.head.min_p"}, [OWN] = {"hunch.head.min_p"},
        [BLOCKS] = {"hunch.head.min_p"}, [ASSISTANT] = {"hunch.head.min_p"}, [MTP_ASSISTANT] = {"hunch.head.min_p"}}},
};

/* Properties that a kind reads, and others refuse (head.c, hn_head_refuse_cap). Tensors show which biases there are. */
static const hn_key_row caps[] = {{HN_BESIDE(CLAIM), "final_logit_softcapping", "final_logit_softcapping"}, HN_ROWS_END};
/* Whole heads are rotated, as in the classes of Qwen3 and Llama, unless the rotation is scaled: the key is a copy of the target's. */
static hunch_status read_rotated(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    static const char *const keys[] = {"rope_parameters.rope_type", "rope_scaling.rope_type", "rope_scaling.type"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *type = json_string_value(hn_source_config(r->src, keys[i]));
        if (type && strcmp(type, "default") != 0) return hn_read_rotated(r, k, v, err);
    }
    *v = 1;
    return HUNCH_OK;
}
static const hn_key_row folder[] = {
    HN_EPS(NAN, 1e-6),
    {HN_MODEL(INT, context), "context_length", "max_position_embeddings", 1, 1 << 24, {NAN, 1 << 24}, HN_NOT_NULL},
    {HN_MODEL(REAL, files.rotated), .usual = {1, 1}, .read = read_rotated},
    HN_ROWS_END};

/* Families of folders and of our own files, which have a folder's rows, and of llama.cpp's files, whose Q and K rows are in pairs. */
static const hn_family families[KEY_FORMS] = {
    [FOLDER] = {.gguf_name = "head", .keys = {hn_attention_bias_keys, hn_mlp_bias_keys, hn_slides, caps, folder}},
    [EAGLE3] = {.gguf_name = "eagle3", .pairs = true},
    [OWN] = {.gguf_name = "hunch-head"},
    [BLOCKS] = {.gguf_name = "dflash", .keys = {caps}},
    [ASSISTANT] = {.gguf_name = "gemma4-assistant", .keys = {hn_assistant_keys}},
    [MTP_ASSISTANT] = {.gguf_name = "gemma4_mtp"},
};

const hn_family *hn_head_family(const hn_head_desc *d, bool states) {
    if (hn_head_is_whole(d)) return &families[OWN];
    return &families[d->rows.kind == HN_ROWS_BLOCK ? BLOCKS : d->rows.kind == HN_ROWS_BORROWED ? ASSISTANT : states ? EAGLE3 : OWN];
}

bool hn_head_family_blocks(const hn_family *family) {
    return family == &families[BLOCKS];
}

hunch_status hn_head_find_family(const hn_source *src, const hn_family **out, hunch_error *err) {
    *out = &families[FOLDER];
    if (hn_source_get_kind(src) == HN_SOURCE_HF)
        return hn_source_json(src, "config.json")
                   ? HUNCH_OK
                   : hn_fail(err, HUNCH_REFUSED, "%s: no config.json with its weights, expected one that describes its "
                                                 "layers",
                             hn_source_path(src));
    for (int form = EAGLE3; form < KEY_FORMS; form++)
        if (!strcmp(hn_source_architecture(src), families[form].gguf_name)) {
            *out = &families[form];
            return HUNCH_OK;
        }
    return hn_fail(err, HUNCH_REFUSED, "%s: general.architecture is \"%.40s\", expected a draft head's: eagle3, dflash, gemma4-assistant "
                                      "or hunch-head",
                   hn_source_path(src), hn_source_architecture(src));
}

static key_form form_of(const hn_source *src) {
    if (hn_source_get_kind(src) == HN_SOURCE_HF) return FOLDER;
    for (int form = OWN; form < KEY_FORMS; form++)
        if (!strcmp(hn_source_architecture(src), families[form].gguf_name)) return (key_form)form;
    return EAGLE3;
}

const char *hn_head_key_name(const hn_source *src, hn_head_key key, int i) {
    return i < MOST_NAMES ? table[key].names[form_of(src)][i] : NULL;
}

const char *hn_head_gguf_key(const hn_family *family, hn_head_key key) {
    return table[key].names[family - families][0];
}

hn_key_type hn_head_key_type(hn_head_key key) {
    return table[key].type;
}

/* Whether a name is in the list: as a whole, for one may be the end of another. */
static bool names_have(const char *list, const char *name) {
    const size_t len = strlen(name);
    for (size_t n; *list; list += n + strspn(list + n, ", ")) {
        n = strcspn(list, ",");
        if (n == len && strncmp(list, name, n) == 0) return true;
    }
    return false;
}

static void names_add(hn_head_key key, int form, char *out, size_t size) {
    for (int i = 0; i < MOST_NAMES && table[key].names[form][i]; i++) {
        const size_t n = strlen(out);
        if (!names_have(out, table[key].names[form][i])) snprintf(out + n, size - n, "%s%s", n ? ", " : "", table[key].names[form][i]);
    }
}

void hn_head_key_names(const hn_family *family, hn_head_key key, char *gguf, char *in_folder, size_t size) {
    *gguf = *in_folder = '\0';
    for (int form = EAGLE3; form < KEY_FORMS; form++)
        if (family == &families[FOLDER] || family == &families[form]) names_add(key, form, gguf, size);
    names_add(key, FOLDER, in_folder, size);
}

hunch_status hn_head_u64(const hn_source *src, hn_head_key key, uint64_t *out, const char **name, hunch_error *err) {
    bool found = false;
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && !found && (*name = hn_head_key_name(src, key, i)); i++) st = hn_source_u64(src, *name, out, &found, err);
    return st;
}

hunch_status hn_head_bool_given(const hn_source *src, hn_head_key key, bool *out, bool *said, hunch_error *err) {
    const char *name;
    hunch_status st = HUNCH_OK;
    *said = false;
    for (int i = 0; !st && !*said && (name = hn_head_key_name(src, key, i)); i++) st = hn_source_bool(src, name, out, said, err);
    return st;
}

hunch_status hn_head_bool(const hn_source *src, hn_head_key key, bool *out, hunch_error *err) {
    bool said;
    return hn_head_bool_given(src, key, out, &said, err);
}

hunch_status hn_head_real(const hn_source *src, hn_head_key key, double least, double most, double *out, hunch_error *err) {
    bool found = false;
    hunch_status st = HUNCH_OK;
    const char *name;
    double value = *out;
    for (int i = 0; !st && !found && (name = hn_head_key_name(src, key, i)); i++) {
        if (hn_source_is_null(src, name)) continue;
        st = hn_source_f64(src, name, &value, &found, err);
        if (!st && found && !(value >= least && value <= most))
            st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %g, expected %g to %g", hn_source_path(src), name, value, least, most);
    }
    if (!st) *out = value;
    return st;
}

hunch_status hn_head_refuse_cap(const hn_source *src, hunch_error *err) {
    double cap = 0;
    const hunch_status st = hn_head_real(src, HN_HEAD_KEY_LOGIT_CAP, -1e9, 1e9, &cap, err);
    if (st || !(cap > 0)) return st;
    return hn_fail(err, HUNCH_REFUSED, "%s: final_logit_softcapping is %g: head models are read without", hn_source_path(src), cap);
}

hunch_status hn_head_check_kind(const hn_source *src, const char *kind, hunch_error *err) {
    const char *name = hn_head_key_name(src, HN_HEAD_KEY_KIND, 0), *said = kind;
    bool found = false;
    hunch_status st = hn_source_str(src, name, &said, NULL, &found, err);
    if (!st && strcmp(said, kind) != 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is \"%.40s\", expected %s", hn_source_path(src), name, said, kind);
    return st;
}

/* ---- the rotation, if the usual keys would give other bits -------------------------------------------------------- */

static hunch_status read_frequencies(int count, const hn_source *src, hn_head_key key, double *freq, hunch_error *err) {
    const char *name = hn_head_key_name(src, key, 0);
    const hn_array *list;
    hunch_status st = hn_source_array(src, name, &list, err);
    if (st || !list) return st;
    bool good = freq && !hn_array_is_strings(list) && hn_array_count(list) == (size_t)count;
    for (int i = 0; good && i < count; i++) {
        freq[i] = hn_array_number(list, (size_t)i);
        good = freq[i] >= 0 && freq[i] <= 1e9;
    }
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_REFUSED, "%s: %s, expected a list of %d numbers from 0 on", hn_source_path(src), name,
                          freq ? count : 0);
}

hunch_status hn_head_read_rotation(hn_arch *a, const hn_source *src, hunch_error *err) {
    hn_rotation *r = &a->rotation[0];
    const hn_key amplitude = {hn_head_key_name(src, HN_HEAD_KEY_AMPLITUDE, 0), NULL, 1e-3, 1e3, (double)r->scale};
    double scale = (double)r->scale;
    if (hn_source_get_kind(src) == HN_SOURCE_HF) return HUNCH_OK;
    hunch_status st = read_frequencies(r->dims / 2, src, HN_HEAD_KEY_FREQUENCIES, r->freq, err);
    if (!st) st = read_frequencies(r->dims / 2, src, HN_HEAD_KEY_LONG_FREQUENCIES, r->freq_long, err);
    if (!st) st = hn_key_real(src, &amplitude, &scale, err);
    r->scale = (float)scale;
    return st;
}
