/* SPDX-License-Identifier: Apache-2.0 */
/* head_key_rows.c - what a GGUF says of a draft head beside its layers, a row each: a key, the field of its description, and when it is
 * written, in the order in which it is. Names: head_keys.c. What tensors show has no row. */
#include <string.h>

#include "model/head/head.h"

/* ---- when a row is written -------------------------------------------------------------------------------------------------- */

static const hn_rows_stage *rows_of(const hn_arch *a, hn_rows_kind kind) {
    return a->draft_head.rows.kind == kind ? &a->draft_head.rows : NULL;
}
static bool has_features(const hn_arch *a) { return a->draft_head.input.features > 0; }
static bool adds_features(const hn_arch *a) { return has_features(a) && a->draft_head.input.stream == HN_STREAM_SUM; }
static bool normed_pair(const hn_arch *a) { return a->layer[0].input == HN_INPUT_PAIR_NORMED; }
static bool of_features(const hn_arch *a) { return a->draft_head.input.stream == HN_STREAM_FEATURE; }
static bool reads_normed(const hn_arch *a) { return a->draft_head.output.norm == HN_NORM_READ; }
static bool is_span(const hn_arch *a) { return rows_of(a, HN_ROWS_SPAN); }
static bool has_levels(const hn_arch *a) { return rows_of(a, HN_ROWS_MASKS) && a->draft_head.rows.masks.levels > 0; }
static bool has_mask(const hn_arch *a) { return rows_of(a, HN_ROWS_MASKS) && a->draft_head.rows.masks.input != HN_MASK_PAIR; }
static bool is_block(const hn_arch *a) { return rows_of(a, HN_ROWS_BLOCK); }
static bool embeds_masks(const hn_arch *a) { return is_block(a) && !a->draft_head.rows.block.mask_row; }
static bool is_selector(const hn_arch *a) { return is_block(a) && a->draft_head.output.kind == HN_OUTPUT_SELECTOR; }
static bool is_prefix(const hn_arch *a) { return is_block(a) && a->draft_head.output.kind == HN_OUTPUT_PREFIX; }
static bool is_steps(const hn_arch *a) { return rows_of(a, HN_ROWS_STEPS); }
static bool scales_input(const hn_arch *a) {
    const hn_own_state_desc *state = is_steps(a) ? hn_steps_own_state(&a->draft_head.rows.steps) : NULL;
    return state && state->scale_input;
}
static bool scales_logits(const hn_arch *a) { return is_steps(a) && a->logit_scale != 1; }
static bool is_clusters(const hn_arch *a) { return a->draft_head.output.kind == HN_OUTPUT_CLUSTERS; }

/* Some layer with a window, or without one, sees rows ahead, or does not. */
static bool some_layer(const hn_arch *a, bool window, bool ahead) {
    int i = 0;
    while (i < a->layers && ((a->layer[i].window != 0) != window || (a->layer[i].ahead != 0) != ahead)) i++;
    return is_block(a) && i < a->layers;
}
static bool windows_ahead(const hn_arch *a) { return some_layer(a, true, true); }
static bool causal(const hn_arch *a) { return some_layer(a, false, false); }

/* ---- the rows --------------------------------------------------------------------------------------------------------------- */

enum { MARK = INT32_MAX /* no field: true if it is written */ };
#define AT(field) offsetof(hn_arch, field)

static const struct row {
    hn_head_key key;
    size_t at;
    bool (*when)(const hn_arch *a);
    int how, plus;
    bool of_states; /* of heads that read states of layers */
} all[] = {
    {HN_HEAD_KEY_TARGET_WIDTH, AT(draft_head.input.feature_width), .when = has_features},
    {HN_HEAD_KEY_FEATURE_SCALE, AT(draft_head.input.sum.scale), .when = adds_features},
    {HN_HEAD_KEY_STATES, .of_states = true},
    {HN_HEAD_KEY_NORM_BEFORE_RESIDUAL, MARK, .when = normed_pair, .of_states = true},
    {HN_HEAD_KEY_NORM_BEFORE_FC, AT(draft_head.input.feature.norm_all), .when = of_features, .how = HN_IF_SET, .of_states = true},
    {HN_HEAD_KEY_FC_NORM, AT(draft_head.input.feature.norm_each), .when = of_features, .how = HN_IF_SET, .of_states = true},
    {HN_HEAD_KEY_NORM_OUTPUT, MARK, .when = reads_normed, .of_states = true},
    {HN_HEAD_KEY_SPAN, AT(draft_head.rows.span), .when = is_span},
    {HN_HEAD_KEY_MASKS, AT(draft_head.rows.masks.levels), .when = has_levels, .plus = -1},
    {HN_HEAD_KEY_MASK_TOKEN, AT(draft_head.rows.masks.token), .when = has_mask},
    {HN_HEAD_KEY_MASK_TOKEN, AT(draft_head.rows.block.mask_token), .when = embeds_masks},
    {HN_HEAD_KEY_BLOCK, AT(draft_head.rows.block.n), .when = is_block},
    {HN_HEAD_KEY_ROOT_DRAFTS, AT(draft_head.rows.block.root_drafts), .when = is_block},
    {HN_HEAD_KEY_WINDOWS_AHEAD, MARK, .when = windows_ahead},
    {HN_HEAD_KEY_CAUSAL, MARK, .when = causal},
    {HN_HEAD_KEY_WINDOWS_OF_ROOT, AT(draft_head.rows.block.windows_of_root), .when = is_block, .how = HN_IF_SET},
    {HN_HEAD_KEY_CONV_TAPS, AT(draft_head.rows.block.conv.taps), .when = is_selector},
    {HN_HEAD_KEY_CONV_GROUP, AT(draft_head.rows.block.conv.group), .when = is_selector},
    {HN_HEAD_KEY_SELECTOR_RANK, AT(draft_head.output.selector.rank), .when = is_selector},
    {HN_HEAD_KEY_CANDIDATES, AT(draft_head.output.selector.candidates), .when = is_selector},
    {HN_HEAD_KEY_EMBEDDING_SCALE, AT(embed_scale), .when = is_selector},
    {HN_HEAD_KEY_LOGIT_SCALE, AT(logit_scale), .when = is_selector},
    {HN_HEAD_KEY_LOGIT_CAP, AT(logit_cap), .when = is_selector, .how = HN_IF_SET},
    {HN_HEAD_KEY_PREFIX_PLAIN, AT(draft_head.output.prefix.plain), .when = is_prefix},
    {HN_HEAD_KEY_SCALED_EMBEDDING, AT(draft_head.input.context.scaled), .when = is_block, .how = HN_IF_SET},
    {HN_HEAD_KEY_STEPS, AT(draft_head.rows.steps.n), .when = is_steps},
    {HN_HEAD_KEY_SCALE_INPUT, MARK, .when = scales_input},
    {HN_HEAD_KEY_ROWS_IN_PAIRS, AT(files.rows_in_pairs), .when = is_steps, .how = HN_IF_SET},
    {HN_HEAD_KEY_STATE_OFFSET, AT(draft_head.input.state.offset), .when = is_steps, .how = HN_IF_SET},
    {HN_HEAD_KEY_LOGIT_SCALE, AT(logit_scale), .when = scales_logits},
    {HN_HEAD_KEY_CLUSTERS_USED, AT(draft_head.output.clusters.used), .when = is_clusters},
    {HN_HEAD_KEY_MIN_P, AT(draft_head.min_p), .how = HN_IF_SET}};

/* ---- writing ---------------------------------------------------------------------------------------------------------------- */

static hunch_status row_write(const struct row *r, const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const char *name = hn_head_gguf_key(a->family, r->key), *at = (const char *)a + r->at;
    double real;
    float f;
    int n;
    bool is = true;
    switch (hn_head_key_type(r->key)) {
    case HN_KEY_BOOL:
        if (r->at != MARK) memcpy(&is, at, sizeof is);
        return is || !(r->how & HN_IF_SET) ? hn_gguf_put_bool(w, name, is, err) : HUNCH_OK;
    case HN_KEY_FLOAT:
        memcpy(&f, at, sizeof f);
        return f != 0 || !(r->how & HN_IF_SET) ? hn_gguf_put_f32(w, name, f, err) : HUNCH_OK;
    case HN_KEY_REAL:
        memcpy(&real, at, sizeof real);
        return real > 0 || !(r->how & HN_IF_SET) ? hn_gguf_put_f32(w, name, (float)real, err) : HUNCH_OK;
    default:
        memcpy(&n, at, sizeof n);
        return n || !(r->how & HN_IF_SET) ? hn_gguf_put_u32(w, name, (uint32_t)(n + r->plus), err) : HUNCH_OK;
    }
}

hunch_status hn_head_keys_write(const hn_arch *a, const int *states, hn_gguf_writer *w, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    if (rows_of(a, HN_ROWS_STEPS)) states = NULL; /* which read the last one */
    for (size_t i = 0; !st && i < sizeof all / sizeof *all; i++) {
        if ((all[i].of_states && !states) || (all[i].when && !all[i].when(a))) continue;
        if (all[i].key == HN_HEAD_KEY_STATES)
            st = hn_gguf_put_i32s(w, hn_head_gguf_key(a->family, all[i].key), states, (size_t)a->draft_head.input.features, err);
        else
            st = row_write(&all[i], a, w, err);
    }
    return st;
}

/* ---- in words --------------------------------------------------------------------------------------------------------------- */

void hn_head_keys_list(const hn_family *family, void (*each)(void *user, const char *gguf, const char *folder, const char *values),
                       void *user) {
    for (int key = 0; key < HN_HEAD_KEYS; key++) {
        const hn_key_type type = hn_head_key_type((hn_head_key)key);
        const char *values = type == HN_KEY_BOOL ? "true or false" : type == HN_KEY_LIST ? "a list" : type == HN_KEY_WORD ? "a name"
                             : type == HN_KEY_INT ? "a whole number" : "a number";
        char gguf[400], folder[400];
        hn_head_key_names(family, (hn_head_key)key, gguf, folder, sizeof gguf);
        if (*gguf || *folder) each(user, gguf, folder, values);
    }
}
