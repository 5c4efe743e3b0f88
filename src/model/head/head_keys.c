/* SPDX-License-Identifier: Apache-2.0 */
/* head_keys.c - the keys of a draft head beside those of a dense family's layers, a row each: its names in each form of file, the field of
 * the description that a GGUF is written from, and when. GGUF files have one of these architectures: llama.cpp's eagle3, dflash and
 * gemma4-assistant, ik_llama.cpp's gemma4_mtp, and one of our own for other kinds. Keys that llama.cpp does not have begin with hunch.head.
 * docs/formats.md has the same table in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/head/head.h"

typedef enum key_form { FOLDER, EAGLE3, OWN, BLOCKS, ASSISTANT, MTP_ASSISTANT, KEY_FORMS } key_form;
enum { MOST_NAMES = 4 };

/* ---- when a row is written: its value may be another than its field's ----------------------------------------------------- */

static const hn_rows_stage *rows_of(const hn_arch *a, hn_rows_kind kind) {
    return a->draft_head.rows.kind == kind ? &a->draft_head.rows : NULL;
}
static bool has_output(const hn_arch *a, hn_output_kind kind) { return a->draft_head.output.kind == kind; }

/* Some layer with a window, or without one, sees rows ahead, or does not. */
static bool some_layer(const hn_arch *a, bool window, bool ahead) {
    int i = 0;
    while (i < a->layers && ((a->layer[i].window != 0) != window || (a->layer[i].ahead != 0) != ahead)) i++;
    return rows_of(a, HN_ROWS_BLOCK) && i < a->layers;
}

/* The token of masks, of rows of their own or of a block. */
static bool mask_token(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    const hn_rows_stage *masks = rows_of(a, HN_ROWS_MASKS), *block = rows_of(a, HN_ROWS_BLOCK);
    *v = masks ? masks->masks.token : block ? block->block.mask_token : 0;
    return masks ? masks->masks.input != HN_MASK_PAIR : block && !block->block.mask_row;
}

#define WRITTEN(name, value, condition)                                                     \
    static bool name(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) { \
        *v = value;                                                                         \
        return condition;                                                                   \
    }
WRITTEN(has_features, *v, a->draft_head.input.features > 0)
WRITTEN(adds_features, *v, a->draft_head.input.features > 0 && a->draft_head.input.stream == HN_STREAM_SUM)
WRITTEN(normed_pair, 1, a->layers > 0 && a->layer[0].input == HN_INPUT_PAIR_NORMED)
WRITTEN(of_features, *v, a->draft_head.input.stream == HN_STREAM_FEATURE)
WRITTEN(reads_normed, 1, a->draft_head.output.norm == HN_NORM_READ)
WRITTEN(is_span, *v, rows_of(a, HN_ROWS_SPAN))
WRITTEN(has_levels, a->draft_head.rows.masks.levels - 1, rows_of(a, HN_ROWS_MASKS) && a->draft_head.rows.masks.levels > 0)
WRITTEN(is_steps, *v, rows_of(a, HN_ROWS_STEPS))
WRITTEN(scales_input, 1, is_steps(a, k, v) && hn_steps_own_state(&a->draft_head.rows.steps) &&
                             hn_steps_own_state(&a->draft_head.rows.steps)->scale_input)
WRITTEN(is_block, *v, rows_of(a, HN_ROWS_BLOCK))
WRITTEN(windows_ahead, 1, some_layer(a, true, true))
WRITTEN(causal, 1, some_layer(a, false, false))
WRITTEN(is_selector, *v, is_block(a, k, v) && has_output(a, HN_OUTPUT_SELECTOR))
WRITTEN(scales_logits, *v, is_selector(a, k, v) || (is_steps(a, k, v) && *v != 1))
WRITTEN(is_prefix, *v, is_block(a, k, v) && has_output(a, HN_OUTPUT_PREFIX))
WRITTEN(is_clusters, *v, has_output(a, HN_OUTPUT_CLUSTERS))

/* ---- how much they may say ------------------------------------------------------------------------------------------------- */

enum { MOST_CONV_TAPS = 8, MOST_SPAN = 8, MOST_RANK = 1 << 16 };
static double most_taps(const hn_arch *a) { return fmin(a->draft_head.rows.block.n, MOST_CONV_TAPS); }
static double width(const hn_arch *a) { return a->hidden; }
static double most_candidates(const hn_arch *a) { return fmin(a->vocab, HN_MAX_TOP); }

/* ---- the rows, in the order in which they are written --------------------------------------------------------------------- */

#define AT(TYPE, field) HN_MODEL(TYPE, draft_head.field)
#define NEEDED .least = 1, .usual = {NAN, NAN}
#define HF(...) [FOLDER] = {__VA_ARGS__}
#define E3(name) [EAGLE3] = {"eagle3." name}
#define EO(name) E3(name), [OWN] = {"hunch-head." name}
#define OWNED(name) [OWN] = {"hunch-head." name}
#define BLOCK(name) [BLOCKS] = {"dflash." name}
#define OURS(form, name) [form] = {"hunch.head." name}
#define OURS_OF_ALL(name) \
    OURS(EAGLE3, name), OURS(OWN, name), OURS(BLOCKS, name), OURS(ASSISTANT, name), OURS(MTP_ASSISTANT, name)
#define OF_ASSISTANTS(name, other) [ASSISTANT] = {"gemma4-assistant." name}, [MTP_ASSISTANT] = {"gemma4_mtp." other}

/* The first name that a file has is used. What tensors show has no name in a GGUF, and what code writes no field. */
static const struct {
    hn_key_row row;
    const char *names[KEY_FORMS][MOST_NAMES + 1];
} table[HN_HEAD_KEYS] = {
    [HN_HEAD_KEY_KIND] = {{HN_BESIDE(WORD)}, {HF("speculators_model_type"), OURS_OF_ALL("kind")}},
    [HN_HEAD_KEY_TARGET_WIDTH] = {{AT(INT, input.feature_width), .written = has_features},
        {HF("target_hidden_size", "backbone_hidden_size"), EO("target_hidden_size"), BLOCK("target_hidden_size"),
        OF_ASSISTANTS("embedding_length_out", "backbone_embedding_length")}},
    [HN_HEAD_KEY_FEATURE_SCALE] = {{AT(FLOAT, input.sum.scale), .written = adds_features},
        {HF("pard2_scale", "pard_scale", "feat_scale"), OWNED("feature_scale")}},
    [HN_HEAD_KEY_STATES] = {{HN_BESIDE(LIST)}, {HF("eagle_aux_hidden_state_layer_ids", "eagle_config.eagle_aux_hidden_state_layer_ids"),
        EO("target_layers"), BLOCK("target_layers")}},
    [HN_HEAD_KEY_NORM_BEFORE_RESIDUAL] = {{HN_BESIDE(BOOL), .written = normed_pair}, {HF("norm_before_residual"),
        E3("norm_before_residual")}},
    [HN_HEAD_KEY_NORM_BEFORE_FC] = {{AT(BOOL, input.feature.norm_all), .written = of_features, .how = HN_IF_SET}, {HF("norm_before_fc"),
        E3("norm_before_fc")}},
    [HN_HEAD_KEY_FC_NORM] = {{AT(BOOL, input.feature.norm_each), .written = of_features, .how = HN_IF_SET}, {HF("fc_norm"),
        OURS(EAGLE3, "fc_norm")}},
    [HN_HEAD_KEY_NORM_OUTPUT] = {{HN_BESIDE(BOOL), .written = reads_normed}, {HF("norm_output"), OURS(EAGLE3, "norm_output")}},
    [HN_HEAD_KEY_SPAN] = {{AT(INT, rows.span), NEEDED, .most = MOST_SPAN, .written = is_span,
                           .words = "the number of rows that see each other"}, {HF("k_mask"), OWNED("k_mask")}},
    [HN_HEAD_KEY_MASKS] = {{HN_BESIDE(INT), .written = has_levels}, {HF("draft_length"), OURS(EAGLE3, "draft_length")}},
    [HN_HEAD_KEY_MASK_TOKEN] = {{HN_BESIDE(INT), .written = mask_token},
        {HF("ptd_token_id", "mask_token_id", "pard_token", "dflash_config.mask_token_id"), OURS(EAGLE3, "mask_token_id"),
        OURS(OWN, "mask_token_id"), [BLOCKS] = {"tokenizer.ggml.mask_token_id", "dflash.mask_token_id"}}},
    [HN_HEAD_KEY_STEPS] = {{AT(INT, rows.steps.n), .written = is_steps}, {HF("n_predict"), OWNED("steps")}},
    [HN_HEAD_KEY_SCALE_INPUT] = {{HN_BESIDE(BOOL), .written = scales_input}, {HF("scale_input"), OWNED("scale_input")}},
    [HN_HEAD_KEY_ROWS_IN_PAIRS] = {{HN_MODEL(BOOL, files.rows_in_pairs), .written = is_steps, .how = HN_IF_SET},
        {OWNED("rows_in_pairs")}},
    [HN_HEAD_KEY_STATE_OFFSET] = {{AT(INT, input.state.offset), .written = is_steps, .how = HN_IF_SET}, {HF("hidden_state_offset"),
        OWNED("state_offset")}},
    [HN_HEAD_KEY_BLOCK] = {{AT(INT, rows.block.n), .written = is_block}, {HF("block_size", "dflash_config.block_size"),
        BLOCK("block_size")}},
    [HN_HEAD_KEY_ROOT_DRAFTS] = {{AT(BOOL, rows.block.root_drafts), .written = is_block},
        {HF("sample_from_anchor", "dflash_config.sample_from_anchor"), BLOCK("sample_from_anchor")}},
    [HN_HEAD_KEY_WINDOWS_AHEAD] = {{HN_BESIDE(BOOL), .written = windows_ahead}, {HF("sliding_window_non_causal"),
        OURS(BLOCKS, "sliding_window_non_causal")}},
    [HN_HEAD_KEY_CAUSAL] = {{HN_BESIDE(BOOL), .written = causal}, {HF("is_causal", "dflash_config.causal", "dflash_config.causal_head"),
        [BLOCKS] = {"hunch.head.causal", "dflash.attention.causal"}}},
    [HN_HEAD_KEY_WINDOWS_OF_ROOT] = {{AT(BOOL, rows.block.windows_of_root), .written = is_block, .how = HN_IF_SET},
        {OURS(BLOCKS, "sliding_window_of_root")}},
    [HN_HEAD_KEY_CONV_TAPS] = {{AT(INT, rows.block.conv.taps), NEEDED, .up_to = most_taps, .written = is_selector},
        {HF("dflash_config.conv_kernel_size", "conv_kernel_size"), BLOCK("conv_kernel_size")}},
    [HN_HEAD_KEY_CONV_GROUP] = {{AT(INT, rows.block.conv.group), NEEDED, .up_to = width, .written = is_selector},
        {HF("dflash_config.conv_group_size", "conv_group_size"), BLOCK("conv_group_size")}},
    [HN_HEAD_KEY_SELECTOR_RANK] = {{AT(INT, output.selector.rank), NEEDED, .most = MOST_RANK, .written = is_selector},
        {HF("dflash_config.selector_rank", "selector_rank"), BLOCK("selector_rank")}},
    [HN_HEAD_KEY_CANDIDATES] = {{AT(INT, output.selector.candidates), NEEDED, .up_to = most_candidates, .written = is_selector},
        {HF("dflash_config.selector_top_k", "selector_top_k"), BLOCK("selector_top_k")}},
    [HN_HEAD_KEY_EMBEDDING_SCALE] = {{HN_MODEL(FLOAT, embed_scale), .least = 1e-6, .most = 1e6, .written = is_selector},
        {HF("dflash_config.input_embedding_scale", "input_embedding_scale"), BLOCK("embedding_scale")}},
    [HN_HEAD_KEY_LOGIT_SCALE] = {{HN_MODEL(FLOAT, logit_scale), .least = 1e-6, .most = 1e6, .written = scales_logits},
        {HF("logit_scale", "dflash_config.output_multiplier", "output_multiplier"), OWNED("logit_scale"), BLOCK("logit_scale")}},
    [HN_HEAD_KEY_LOGIT_CAP] = {{HN_MODEL(FLOAT, logit_cap), .least = -1e9, .most = 1e9, .written = is_selector, .how = HN_IF_SET},
        {HF("dflash_config.final_logit_softcapping", "final_logit_softcapping"), EO("final_logit_softcapping"),
        BLOCK("final_logit_softcapping")}},
    [HN_HEAD_KEY_PREFIX_PLAIN] = {{AT(INT, output.prefix.plain), .written = is_prefix}, {HF("dflash_config.pure_draft_prefix_len"),
        OURS(BLOCKS, "pure_draft_prefix_len")}},
    [HN_HEAD_KEY_SCALED_EMBEDDING] = {{AT(BOOL, input.context.scaled), .written = is_block, .how = HN_IF_SET},
        {OURS(BLOCKS, "scaled_embedding")}},
    [HN_HEAD_KEY_CLUSTERS_USED] = {{AT(INT, output.clusters.used), .written = is_clusters}, {HF("centroid_intermediate_top_k"),
        OF_ASSISTANTS("centroid_top_k", "centroid_top_k"), OURS(EAGLE3, "centroid_top_k"), OURS(OWN, "centroid_top_k")}},
    [HN_HEAD_KEY_MIN_P] = {{AT(REAL, min_p), .most = 1, .how = HN_IF_SET}, {HF("draft_min_p"), OURS_OF_ALL("min_p")}},
    /* what no row writes */
    [HN_HEAD_KEY_TOKENS] = {{HN_BESIDE(INT)}, {HF("vocab_size"), EO("vocab_size"), BLOCK("vocab_size"),
        OF_ASSISTANTS("vocab_size", "vocab_size")}},
    [HN_HEAD_KEY_OUTPUTS] = {{HN_BESIDE(INT)}, {HF("draft_vocab_size")}}, /* in a GGUF the tensors show it */
    [HN_HEAD_KEY_MTP_LAYERS] = {{HN_BESIDE(INT)}, {HF("num_nextn_predict_layers"), OWNED("nextn_predict_layers")}},
    [HN_HEAD_KEY_WINDOW] = {{HN_BESIDE(INT)}, /* in a folder: layer_types */
        {EO("attention.sliding_window"), BLOCK("attention.sliding_window")}},
    [HN_HEAD_KEY_PREFIX_STATE] = {{HN_BESIDE(INT)}, {HF("dflash_config.gru_hidden_dim")}}, /* in a GGUF the tensors show it */
    [HN_HEAD_KEY_PREFIX_WIDTH] = {{HN_BESIDE(INT)}, {HF("dflash_config.emb_dim", "emb_dim")}},
    [HN_HEAD_KEY_SHIFTED] = {{HN_BESIDE(BOOL)}, {HF("dflash_config.shift_label"), BLOCK("sample_from_anchor")}},
    [HN_HEAD_KEY_CLUSTERS] = {{HN_BESIDE(INT)}, {HF("num_centroids"), OF_ASSISTANTS("n_centroids", "centroid_count")}},
    [HN_HEAD_KEY_HALVES] = {{HN_BESIDE(BOOL)}, {HF("rope_is_neox_style", "is_neox_style")}},
    [HN_HEAD_KEY_FREQUENCIES] = {{HN_BESIDE(LIST)}, {OURS(EAGLE3, "rope_frequencies"), OURS(OWN, "rope_frequencies"),
        OURS(BLOCKS, "rope_frequencies")}},
    [HN_HEAD_KEY_LONG_FREQUENCIES] = {{HN_BESIDE(LIST)}, {OURS(EAGLE3, "rope_frequencies_long"), OURS(OWN, "rope_frequencies_long"),
        OURS(BLOCKS, "rope_frequencies_long")}},
    [HN_HEAD_KEY_AMPLITUDE] = {{HN_BESIDE(FLOAT)}, {OURS(EAGLE3, "rope_amplitude"), OURS(OWN, "rope_amplitude"),
        OURS(BLOCKS, "rope_amplitude")}},
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

void hn_head_keys_list(const hn_family *family, void (*each)(void *user, const char *gguf, const char *folder, const char *values),
                       void *user) {
    for (int key = 0; key < HN_HEAD_KEYS; key++) {
        const hn_key_type type = table[key].row.type;
        const char *values = type == HN_KEY_BOOL ? "true or false" : type == HN_KEY_LIST ? "a list" : type == HN_KEY_WORD ? "a name"
                             : type == HN_KEY_INT ? "a whole number" : "a number";
        char gguf[400] = "", in_folder[400] = "";
        for (int form = EAGLE3; form < KEY_FORMS; form++)
            if (family == &families[FOLDER] || family == &families[form]) names_add((hn_head_key)key, form, gguf, sizeof gguf);
        names_add((hn_head_key)key, FOLDER, in_folder, sizeof in_folder);
        if (*gguf || *in_folder) each(user, gguf, in_folder, values);
    }
}

/* As any row of a model, with the name up to its first dot for that of a family. */
static hunch_status row_write(const hn_arch *a, hn_head_key key, hn_gguf_writer *w, hunch_error *err) {
    const char *name = hn_head_gguf_key(a->family, key);
    hn_key_row rows[] = {table[key].row, HN_ROWS_END};
    char prefix[40];
    if (!name || (rows[0].of == HN_OF_NOTHING && !rows[0].written)) return HUNCH_OK;
    snprintf(prefix, sizeof prefix, "%.*s", (int)strcspn(name, "."), name);
    rows[0].gguf = strchr(name, '.') + 1;
    return hn_keys_write(&(hn_file_keys){prefix, {rows}, NULL}, &(hn_record){.a = a}, w, err);
}

hunch_status hn_head_keys_write(const hn_arch *a, const int *states, hn_gguf_writer *w, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    if (rows_of(a, HN_ROWS_STEPS)) states = NULL; /* which read the last one */
    for (int key = 0; !st && key < HN_HEAD_KEYS; key++)
        st = key == HN_HEAD_KEY_STATES && states
                 ? hn_gguf_put_i32s(w, hn_head_gguf_key(a->family, HN_HEAD_KEY_STATES), states, (size_t)a->draft_head.input.features, err)
                 : row_write(a, (hn_head_key)key, w, err);
    return st;
}

hunch_status hn_head_u64(const hn_source *src, hn_head_key key, uint64_t *out, const char **name, hunch_error *err) {
    bool found = false;
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && !found && (*name = hn_head_key_name(src, key, i)); i++) st = hn_source_u64(src, *name, out, &found, err);
    return st;
}

hunch_status hn_head_need(const hn_source *src, hn_head_key key, int least, int most, const char *what, const char *unit, int *out,
                          hunch_error *err) {
    const char *name, *usual = hn_head_key_name(src, key, 0);
    uint64_t value = 0;
    const hunch_status st = hn_head_u64(src, key, &value, &name, err);
    if (st) return st;
    if (!name && what)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is not specified: expected a key %s", hn_source_path(src), what, usual);
    if (!name) return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing", hn_source_path(src), usual);
    if (value < (uint64_t)least || value > (uint64_t)most)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected %d to %d%s", hn_source_path(src), name,
                       (unsigned long long)value, least, most, unit);
    *out = (int)value;
    return HUNCH_OK;
}

hunch_status hn_head_expect(const hn_source *src, hn_head_key key, int value, const char *of, hunch_error *err) {
    uint64_t said = (uint64_t)value;
    const char *name;
    const hunch_status st = hn_head_u64(src, key, &said, &name, err);
    if (st || said == (uint64_t)value) return st;
    return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected the %d %s", hn_source_path(src), name, (unsigned long long)said,
                   value, of);
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

static double most_of(const hn_arch *a, const hn_key_row *k) {
    return k->up_to ? k->up_to(a) : k->most;
}

static hunch_status key_read(hn_arch *a, const hn_source *src, hn_head_key key, hunch_error *err) {
    const hn_key_row *k = &table[key].row;
    void *to = (char *)a + k->at;
    hunch_status st = HUNCH_OK;
    double v = 0;
    switch (k->type) {
    case HN_KEY_BOOL: return hn_head_bool(src, key, to, err);
    case HN_KEY_INT: return hn_head_need(src, key, (int)k->least, (int)most_of(a, k), k->words, "", to, err);
    case HN_KEY_REAL: return hn_head_real(src, key, k->least, most_of(a, k), to, err);
    case HN_KEY_FLOAT:
        v = (double)*(float *)to;
        st = hn_head_real(src, key, k->least, most_of(a, k), &v, err);
        *(float *)to = (float)v;
        return st;
    case HN_KEY_END:
    case HN_KEY_WORD:
    case HN_KEY_LIST:
    case HN_KEY_CLAIM: break;
    }
    return st;
}

hunch_status hn_head_keys_read(hn_arch *a, const hn_source *src, const hn_head_key *keys, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && keys[i] != HN_HEAD_KEYS; i++) st = key_read(a, src, keys[i], err);
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
