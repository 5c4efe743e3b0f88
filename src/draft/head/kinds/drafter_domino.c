/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_domino.c - Domino (2605.29707): DFlash's block, and after it a bias on the logits of each place from a recurrent state of the
 * tokens drafted before it.
 *
 *   domino:PATH[,taps=LAYER:LAYER:...][,pool=N], options: head_drafter.h
 *
 *   depth   at most block_size - 1                                                                       all of them
 *   pool    outputs of a block that get the bias, and are drafted: the likeliest without it              2048
 *
 * The block is one pass (drafter_dflash.c); its places are then drafted left to right (pass_prefix.c). With shift_label the row of a place
 * drafts the token after its own position, so that the root's row drafts too and the last one does not. The first pure_draft_prefix_len
 * places have no bias. Files: SpecForge's, DFlash's with prefix_gru.* and embed_proj.*; the early ones have these below logit_head. */
#include <string.h>

#include "draft/head/kinds/block_head.h"
#include "draft/head/open/head_help.h"

enum { POOL = 2048 };

/* A row of a GRU's matrix is a number of one of its gates. */
static const hn_head_form form = {
    .base = &hn_head_blocks,
    .part = {[HN_HEAD_GRU_INPUT] = "prefix_gru.weight_ih_l0", [HN_HEAD_GRU_STATE] = "prefix_gru.weight_hh_l0",
             [HN_HEAD_BIAS_IN] = "embed_proj.0.weight", [HN_HEAD_BIAS_OUT] = "embed_proj.2.weight"},
    .mark = {{"", "prefix_gru."}, {"", "embed_proj."}, {"model.", "prefix_gru."}, {"model.", "embed_proj."}},
};
static const hn_head_form early_form = {
    .base = &hn_head_blocks,
    .part = {[HN_HEAD_GRU_INPUT] = "logit_head.prefix_gru.weight_ih_l0", [HN_HEAD_GRU_STATE] = "logit_head.prefix_gru.weight_hh_l0",
             [HN_HEAD_BIAS_IN] = "logit_head.embed_proj.0.weight", [HN_HEAD_BIAS_OUT] = "logit_head.embed_proj.2.weight"},
    .mark = {{"", "logit_head.prefix_gru."}, {"", "logit_head.embed_proj."}, {"model.", "logit_head.prefix_gru."}},
};

/* The inputs of the two matrices that show the sizes. */
static hunch_status read_sizes(hn_prefix_desc *d, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    static const hn_role parts[] = {HN_HEAD_GRU_STATE, HN_HEAD_BIAS_OUT};
    int *const to[] = {&d->state, &d->width};
    for (int i = 0; i < 2; i++) {
        char room[128];
        const char *name = hn_head_name(names, parts[i], 0, room);
        const hn_tensor *t = hn_head_find_tensor(src, names, parts[i]);
        if (!t || t->n_dims != 2 || t->dims[0] < 1 || t->dims[0] > 1 << 16)
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s %s, expected a matrix of a head of Domino", hn_source_path(src),
                           name ? name : "prefix_gru.weight_hh_l0", t ? "has another shape" : "is missing");
        *to[i] = (int)t->dims[0];
    }
    return HUNCH_OK;
}

/* What the file says of a size, by each of its names, must be what its tensor shows; one of them must say it. */
static hunch_status check_size(const hn_source *src, hn_head_key key, int size, hunch_error *err) {
    const char *name;
    bool said = false;
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && (name = hn_head_key_name(src, key, i)); i++) {
        uint64_t value = 0;
        bool found = false;
        st = hn_source_u64(src, name, &value, &found, err);
        if (!st && found && value != (uint64_t)size)
            st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected %d by its tensors", hn_source_path(src), name,
                         (unsigned long long)value, size);
        said |= found;
    }
    if (st || said || !hn_head_key_name(src, key, 0)) return st;
    return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing, expected %d by its tensors", hn_source_path(src),
                   hn_head_key_name(src, key, 0), size);
}

static hunch_status read_prefix(hn_arch *a, const hn_source *src, const hn_head_names *names, hn_spec *spec, hunch_error *err) {
    hn_prefix_desc *d = &a->draft_head.output.prefix;
    uint64_t plain = 0;
    long pool = POOL;
    const char *name;
    a->draft_head.output.kind = HN_OUTPUT_PREFIX;
    hunch_status st = read_sizes(d, src, names, err);
    if (!st) st = check_size(src, HN_HEAD_KEY_PREFIX_STATE, d->state, err);
    if (!st) st = check_size(src, HN_HEAD_KEY_PREFIX_WIDTH, d->width, err);
    if (!st) st = hn_head_u64(src, HN_HEAD_KEY_PREFIX_PLAIN, &plain, &name, err);
    if (!st && plain >= (uint64_t)a->draft_head.rows.block.n)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected less than the %d rows of a block", hn_source_path(src), name,
                     (unsigned long long)plain, a->draft_head.rows.block.n);
    if (!st) st = hn_spec_int(spec, "pool", 1, INT32_MAX, POOL, &pool, err);
    d->plain = (int)plain;
    d->pool = (int)(pool < a->vocab ? pool : a->vocab);
    return st;
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                             hn_head_taps *taps, hunch_error *err) {
    hn_block_form kind = {.name = "domino"};
    hunch_status st = hn_head_bool(src, HN_HEAD_KEY_SHIFTED, &kind.root_drafts, err);
    if (!st) st = hn_block_describe(a, src, names, spec, target, &kind, taps, err);
    if (st) return st;
    a->draft_head.rows.block.levels = a->draft_head.rows.block.n - 1; /* shifted or not */
    return a->draft_head.rows.block.n >= 2 ? read_prefix(a, src, names, spec, err)
                                           : hn_fail(err, HUNCH_REFUSED, "%s: blocks of 1 row, expected 2 or more", hn_source_path(src));
}

static bool is_domino(hn_source *folder) {
    const char *projector = json_string_value(hn_source_config(folder, "dflash_config.projector_type"));
    return projector && !strcmp(projector, "domino");
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&form, &early_form},
    .only = {"prefix_gru.", "logit_head.prefix_gru."},
    .is = is_domino,
    .architecture = {"dflash"}, .tensor = "prefix_gru_hh.weight",
    .states = hn_block_states,
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of Domino: DFlash's, where each token also depends on all drafted before it",
    {{"taps", "LAYER:LAYER", "layers whose entering states are read, such as 2:16:29; default the head's own"},
     {"pool", "1..", "tokens of a block that are drafted, the likeliest at any of its places; default 2048"}, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_domino = {.name = "domino", .help = &help, .head = &facts, HN_HEAD_KIND};
