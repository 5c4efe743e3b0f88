/* SPDX-License-Identifier: Apache-2.0 */
/* convert_head.c - writes a draft head, as described for drafting (head.h), as a GGUF file: with llama.cpp's
 * architecture eagle3 if it reads states of layers, else with one of our own. Names: head_names.c, roles.c; keys:
 * head_keys.c. */
#include <string.h>

#include "base/mem.h"
#include "convert/convert_private.h"
#include "draft/drafter.h"
#include "model/head/head_steps.h"

typedef struct head_conversion {
    hn_conversion c;
    const hn_head_written *h;
    hn_head_names from, to;
} head_conversion;

/* ---- keys ------------------------------------------------------------------------------------------------------------------ */

static const char *key_of(const head_conversion *k, hn_head_key key) {
    return hn_head_gguf_key(k->c.arch.family, key);
}

static hunch_status put_number(head_conversion *k, hn_head_key key, int value) {
    return hn_gguf_put_u32(k->c.w, key_of(k, key), (uint32_t)value, k->c.err);
}

static hunch_status put_true(head_conversion *k, hn_head_key key, bool value) {
    return value ? hn_gguf_put_bool(k->c.w, key_of(k, key), true, k->c.err) : HUNCH_OK;
}

static hunch_status put_frequencies(head_conversion *k, hn_head_key key, const double *freq) {
    const int n = k->c.arch.rotation[0].dims / 2;
    if (!freq) return HUNCH_OK;
    float *f = hn_alloc((size_t)n * sizeof *f);
    if (!f) return hn_fail_memory(k->c.err, "rope frequencies", (size_t)n * sizeof *f);
    for (int i = 0; i < n; i++) f[i] = (float)freq[i]; /* as a model uses them */
    hunch_status st = hn_gguf_put_f32s(k->c.w, key_of(k, key), f, (size_t)n, k->c.err);
    hn_free(f);
    return st;
}

/* The usual keys round their values to f32; frequencies computed from them may have other bits. */
static hunch_status put_rotation(head_conversion *k) {
    const hn_rotation *r = &k->c.arch.rotation[0];
    if (r->scaling.kind == HN_SCALING_NONE && (double)(float)r->scaling.theta == r->scaling.theta) return HUNCH_OK;
    hunch_status st = put_frequencies(k, HN_HEAD_KEY_FREQUENCIES, r->freq);
    if (!st) st = put_frequencies(k, HN_HEAD_KEY_LONG_FREQUENCIES, r->freq_long);
    return st ? st : hn_gguf_put_f32(k->c.w, key_of(k, HN_HEAD_KEY_AMPLITUDE), r->scale, k->c.err);
}

static hunch_status put_states(head_conversion *k) {
    const hn_input_stage *in = &k->c.arch.draft_head.input;
    const bool feature = in->stream == HN_STREAM_FEATURE;
    hunch_status st = hn_gguf_put_i32s(k->c.w, key_of(k, HN_HEAD_KEY_STATES), k->h->states, (size_t)in->features, k->c.err);
    if (!st) st = put_true(k, HN_HEAD_KEY_NORM_BEFORE_RESIDUAL, k->c.arch.layer[0].input == HN_INPUT_PAIR_NORMED);
    if (!st) st = put_true(k, HN_HEAD_KEY_NORM_BEFORE_FC, feature && in->feature.norm_all);
    if (!st) st = put_true(k, HN_HEAD_KEY_FC_NORM, feature && in->feature.norm_each);
    return st ? st : put_true(k, HN_HEAD_KEY_NORM_OUTPUT, k->c.arch.draft_head.output.norm == HN_NORM_READ);
}

static hunch_status put_clusters(head_conversion *k) {
    const hn_output_stage *out = &k->c.arch.draft_head.output;
    return out->kind == HN_OUTPUT_CLUSTERS ? put_number(k, HN_HEAD_KEY_CLUSTERS_USED, out->clusters.used) : HUNCH_OK;
}

static hunch_status put_min_p(head_conversion *k) {
    const double min_p = k->c.arch.draft_head.min_p;
    return min_p > 0 ? hn_gguf_put_f32(k->c.w, key_of(k, HN_HEAD_KEY_MIN_P), (float)min_p, k->c.err) : HUNCH_OK;
}

static hunch_status put_masks(head_conversion *k) {
    const hn_masks_desc *d = &k->c.arch.draft_head.rows.masks;
    const hunch_status st = d->levels > 0 ? put_number(k, HN_HEAD_KEY_MASKS, d->levels - 1) : HUNCH_OK;
    return st || d->input == HN_MASK_PAIR ? st : put_number(k, HN_HEAD_KEY_MASK_TOKEN, d->token);
}

/* Numbers of a selector, and of the convolutions of its layers. */
static hunch_status put_selector(head_conversion *k) {
    const hn_arch *a = &k->c.arch;
    const hn_selector_desc *d = &a->draft_head.output.selector;
    const hn_conv_desc *conv = &a->draft_head.rows.block.conv;
    hunch_status st = put_number(k, HN_HEAD_KEY_CONV_TAPS, conv->taps);
    if (!st) st = put_number(k, HN_HEAD_KEY_CONV_GROUP, conv->group);
    if (!st) st = put_number(k, HN_HEAD_KEY_SELECTOR_RANK, d->rank);
    if (!st) st = put_number(k, HN_HEAD_KEY_CANDIDATES, d->candidates);
    if (!st) st = hn_gguf_put_f32(k->c.w, key_of(k, HN_HEAD_KEY_EMBEDDING_SCALE), a->embed_scale, k->c.err);
    if (!st) st = hn_gguf_put_f32(k->c.w, key_of(k, HN_HEAD_KEY_LOGIT_SCALE), a->logit_scale, k->c.err);
    return st || a->logit_cap == 0 ? st : hn_gguf_put_f32(k->c.w, key_of(k, HN_HEAD_KEY_LOGIT_CAP), a->logit_cap, k->c.err);
}

/* Keys of a head of blocks. The windows of its layers are keys of a dense family (convert_keys.c). */
static hunch_status put_block(head_conversion *k) {
    const hn_arch *a = &k->c.arch;
    const hn_block_desc *d = &a->draft_head.rows.block;
    bool ahead = false, causal = false;
    for (int i = 0; i < a->layers; i++) {
        ahead |= a->layer[i].window && a->layer[i].ahead;
        causal |= !a->layer[i].window && !a->layer[i].ahead;
    }
    hunch_status st = d->mask_row ? HUNCH_OK : put_number(k, HN_HEAD_KEY_MASK_TOKEN, d->mask_token);
    if (!st) st = put_number(k, HN_HEAD_KEY_BLOCK, d->n);
    if (!st) st = hn_gguf_put_bool(k->c.w, key_of(k, HN_HEAD_KEY_ROOT_DRAFTS), d->root_drafts, k->c.err);
    if (!st) st = put_true(k, HN_HEAD_KEY_WINDOWS_AHEAD, ahead);
    if (!st) st = put_true(k, HN_HEAD_KEY_CAUSAL, causal);
    if (!st) st = put_true(k, HN_HEAD_KEY_WINDOWS_OF_ROOT, d->windows_of_root);
    if (!st && a->draft_head.output.kind == HN_OUTPUT_SELECTOR) st = put_selector(k);
    if (!st && a->draft_head.output.kind == HN_OUTPUT_PREFIX)
        st = put_number(k, HN_HEAD_KEY_PREFIX_PLAIN, a->draft_head.output.prefix.plain);
    return st ? st : put_true(k, HN_HEAD_KEY_SCALED_EMBEDDING, a->draft_head.input.context.scaled);
}

/* Keys of a head with weights for each position; what its tensors show is not written. */
static hunch_status put_steps(head_conversion *k) {
    const hn_steps_desc *d = &k->c.arch.draft_head.rows.steps;
    const hn_own_state_desc *state = hn_steps_own_state(d);
    const int offset = k->c.arch.draft_head.input.state.offset;
    const float scale = k->c.arch.logit_scale;
    hunch_status st = put_number(k, HN_HEAD_KEY_STEPS, d->n);
    if (!st) st = put_true(k, HN_HEAD_KEY_SCALE_INPUT, state && state->scale_input);
    if (!st) st = put_true(k, HN_HEAD_KEY_ROWS_IN_PAIRS, k->c.arch.files.rows_in_pairs);
    if (!st && offset) st = put_number(k, HN_HEAD_KEY_STATE_OFFSET, offset);
    return st || scale == 1 ? st : hn_gguf_put_f32(k->c.w, key_of(k, HN_HEAD_KEY_LOGIT_SCALE), scale, k->c.err);
}

static hunch_status put_rows(head_conversion *k) {
    switch (k->c.arch.draft_head.rows.kind) {
    case HN_ROWS_SPAN: return put_number(k, HN_HEAD_KEY_SPAN, k->c.arch.draft_head.rows.span);
    case HN_ROWS_MASKS: return put_masks(k);
    case HN_ROWS_BLOCK: return put_block(k);
    case HN_ROWS_STEPS: return put_steps(k);
    case HN_ROWS_CHAIN:
    case HN_ROWS_TURNS:
    case HN_ROWS_BORROWED: break;
    }
    return HUNCH_OK;
}

/* Sizes of its layers; of a head without layers those that remain. */
static hunch_status put_sizes(head_conversion *k) {
    hn_conversion *c = &k->c;
    if (c->arch.layers > 0) return hn_conversion_put_sizes(c);
    const hn_tensor_id most = {k->from.steps.resblocks > 0 ? HN_STEP_RESBLOCK : HN_STEP_OUTPUT, 0, 0};
    hunch_status st = hn_conversion_put_type(c, hn_tensor_find(c->src, &k->from, most));
    return st ? st : put_number(k, HN_HEAD_KEY_TOKENS, c->arch.vocab);
}

static hunch_status put_keys(head_conversion *k) {
    hn_conversion *c = &k->c;
    const char *architecture = c->arch.family->gguf_name, *kind = k->h->kind;
    hunch_status st = hn_gguf_put_str(c->w, "general.architecture", architecture, strlen(architecture), c->err);
    if (!st) st = hn_conversion_put_name(c);
    if (!st) st = put_sizes(k);
    if (!st) st = hn_gguf_put_str(c->w, key_of(k, HN_HEAD_KEY_KIND), kind, strlen(kind), c->err);
    const hn_input_stage *in = &c->arch.draft_head.input;
    if (!st && in->features > 0) st = put_number(k, HN_HEAD_KEY_TARGET_WIDTH, in->feature_width);
    if (!st && in->stream == HN_STREAM_SUM && in->features > 0)
        st = hn_gguf_put_f32(c->w, key_of(k, HN_HEAD_KEY_FEATURE_SCALE), in->sum.scale, c->err);
    if (!st && k->h->states && c->arch.draft_head.rows.kind != HN_ROWS_STEPS) st = put_states(k);
    if (!st) st = put_rows(k);
    if (!st) st = put_clusters(k);
    if (!st) st = put_min_p(k);
    if (!st && k->to.form == &hn_head_gguf_mtp) st = put_number(k, HN_HEAD_KEY_MTP_LAYERS, 1);
    return st || c->arch.layers == 0 || hn_head_borrows(&c->arch.draft_head) ? st : put_rotation(k);
}

/* ---- tensors ---------------------------------------------------------------------------------------------------------------- */

/* The tokens, as a GGUF has them: ids, not offsets; or the outputs of the places of clusters. */
static hunch_status write_ids(head_conversion *k, const int32_t *list) {
    const int n = k->h->arch->vocab;
    int64_t *ids = hn_alloc((size_t)n * sizeof *ids);
    if (!ids) return hn_fail_memory(k->c.err, "draft tokens", (size_t)n * sizeof *ids);
    for (int i = 0; i < n; i++) ids[i] = list[i];
    hunch_status st = hn_gguf_data(k->c.w, ids, (size_t)n * sizeof *ids, k->c.err);
    hn_free(ids);
    return st;
}

static hunch_status visit_tensor(head_conversion *k, hn_tensor_id id, bool write) {
    const hn_arch *a = k->h->arch;
    const bool list = id.role == HN_HEAD_IDS || id.role == HN_HEAD_ORDER, vector = hn_role_is_vector(id.role);
    const bool sides = hn_role_kind_of(id.role) == HN_IS_SIDES;
    const int n_dims = sides ? 3 : vector ? 1 : 2;
    char from[128], to[128];
    uint64_t dims[3];
    hn_tensor *t;
    hn_arch_shape(a, id, dims);
    if (!hn_tensor_name(&k->to, id, to) || !hn_tensor_name(&k->from, id, from))
        return hn_fail(k->c.err, HUNCH_REFUSED, "%s: a head of this form has no such norms as its folder asks for",
                       hn_source_path(k->c.src));
    if (list && write) return write_ids(k, id.role == HN_HEAD_IDS ? k->h->ids : k->h->order);
    if (list) return hn_gguf_declare(k->c.w, to, HN_I64, 1, dims, k->c.err);
    if (sides) memcpy(dims, (uint64_t[]){(uint64_t)a->hidden, dims[0] / 2 / (uint64_t)a->hidden, 2}, sizeof dims);
    hunch_status st = hn_source_need_shape(k->c.src, from, n_dims, dims, &t, k->c.err);
    return st ? st : hn_conversion_visit_tensor(&k->c, t, to, vector, n_dims, dims, 0, write);
}

static hunch_status visit(head_conversion *k, bool write) {
    hn_tensor_id t = {HN_HEAD_FC, -1, 0};
    hunch_status st = HUNCH_OK;
    while (!st && hn_head_next(k->h->arch, &t))
        if (t.role != HN_HEAD_IDS || k->h->ids) st = visit_tensor(k, t, write);
    if (!st) st = hn_conversion_visit_layers(&k->c, write);
    return st ? st : hn_conversion_visit_tables(&k->c, write);
}

hunch_status hn_convert_head(hn_source *src, const hn_head_written *h, const char *out_path, hunch_progress progress, void *user,
                             hunch_error *err) {
    const hn_head_form *form = h->arch->files.head_form;
    const hn_head_form *of_kind = hn_drafter_named(h->kind)->head->gguf_form[0];
    const bool steps = hn_head_steps(&h->arch->draft_head);
    head_conversion k = {.c = {.src = src,
                               .arch = *h->arch,
                               .progress = progress,
                               .user = user,
                               .err = err,
                               .convert = h->type != HN_WEIGHT_TYPES,
                               .as = h->type},
                         .h = h,
                         .from = hn_head_names_of(h->arch),
                         .to = {.form = of_kind                            ? of_kind
                                        : steps                            ? &hn_head_gguf_steps
                                        : form == &hn_head_mtp             ? &hn_head_gguf_mtp
                                        : hn_head_form_folder_blocks(form) ? &hn_head_gguf_blocks
                                                                           : &hn_head_gguf,
                                .front = "",
                                .first = ""}};
    k.c.arch.family = hn_head_family(&h->arch->draft_head, h->states && !steps);
    k.c.arch.vocab = h->tokens;
    if (form == &hn_head_mtp && hn_arch_modules(h->arch) > 1)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: %d modules in a row: a GGUF holds one; expected the folder to be used as it is",
                       hn_source_path(src), hn_arch_modules(h->arch));
    hunch_status st = hn_conversion_plan_rotation(&k.c);
    if (!st) st = hn_gguf_writer_open(&k.c.w, out_path, err);
    if (!st) st = put_keys(&k);
    if (!st) st = visit(&k, false);
    if (!st) st = hn_head_check_rest(src, h->arch, err);
    if (!st) st = visit(&k, true);
    return hn_conversion_finish(&k.c, st);
}
