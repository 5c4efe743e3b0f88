/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_meta_mtp.c - Meta's models that predict several tokens (2404.19737): the further heads of the model itself.
 *
 *   meta-mtp:PATH, options: head_drafter.h
 *
 * z[i] is the output of the model's trunk for the text up to i, the state that enters its last layer. That layer is the model's first head,
 * and together with the trunk an ordinary model: the target. Head j > 1 is a layer of its own:
 *
 *   logits[j] = the model's output matrix norm(block_j(z)[i])      predicts x[i+j]
 *
 * All heads read z alone, so all drafts come from one pass; each has keys and values of its own for every token of the text. The final
 * norm is the file's, the output matrix the target's. Files: Meta's own, consolidated.pth with extra_heads.{j}.*, norm.weight, and
 * params.json.
 */
#include <math.h>
#include <stdio.h>

#include "draft/head/open/head_help.h"
#include "draft/head/open/head_reading.h"
#include "model/head/head_steps.h"

/* ---- files: layers of a checkpoint in Llama's own format -------------------------------------------------------------------- */

enum { MOST_WIDTH = 1 << 20 };

static const char *const layer_names[HN_ROLES] = {
    [HN_ROLE_ATTN_NORM] = "extra_heads.%d.attention_norm.weight",
    [HN_ROLE_Q] = "extra_heads.%d.attention.wq.weight",
    [HN_ROLE_K] = "extra_heads.%d.attention.wk.weight",
    [HN_ROLE_V] = "extra_heads.%d.attention.wv.weight",
    [HN_ROLE_O] = "extra_heads.%d.attention.wo.weight",
    [HN_ROLE_FFN_NORM] = "extra_heads.%d.ffn_norm.weight",
    [HN_ROLE_GATE] = "extra_heads.%d.feed_forward.w1.weight",
    [HN_ROLE_UP] = "extra_heads.%d.feed_forward.w3.weight",
    [HN_ROLE_DOWN] = "extra_heads.%d.feed_forward.w2.weight",
};

static int heads_of(const hn_source *src) {
    char name[128];
    int n = 0;
    do
        snprintf(name, sizeof name, layer_names[HN_ROLE_ATTN_NORM], n);
    while (hn_source_find(src, name) && n++ < HN_MOST_HEAD_STEPS);
    return n;
}

static hunch_status read_layers(hn_arch *a, hn_source *src, const hn_arch *target HN_UNUSED, hunch_error *err) {
    const hn_key heads_key = {NULL, "n_heads", 1, 1 << 12, NAN}, eps_key = {NULL, "norm_eps", 1e-12, 1, 1e-5},
                 theta_key = {NULL, "rope_theta", 1, 1e12, 10000};
    const hn_tensor *up = hn_source_find(src, "extra_heads.0.feed_forward.w1.weight");
    int heads = 0, kv_heads = 0;
    double eps = 0, theta = 0;
    hunch_status st = hn_key_int(src, &heads_key, &heads, err);
    const hn_key kv_key = {NULL, "n_kv_heads", 1, 1 << 12, heads};
    if (!st) st = hn_key_int(src, &kv_key, &kv_heads, err);
    if (!st) st = hn_key_real(src, &eps_key, &eps, err);
    if (!st) st = hn_key_real(src, &theta_key, &theta, err);
    if (st) return st;
    const int n = heads_of(src), dim = a->hidden / heads;
    if (n < 1 || n > HN_MOST_HEAD_STEPS || !up || up->n_dims != 2 || up->dims[1] < 1 || up->dims[1] > MOST_WIDTH)
        return hn_fail(err, HUNCH_REFUSED, "%s: extra_heads.*: expected 1 to %d blocks of attention and feed_forward",
                       hn_source_path(src), HN_MOST_HEAD_STEPS);
    if (dim * heads != a->hidden || dim % 2 || dim > HN_MAX_HEAD_DIM || heads % kv_heads)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: %d heads, %d of keys, of a model %d wide: expected heads of an even width",
                       hn_source_path(src), heads, kv_heads, a->hidden);
    const hn_layer_desc like = {.mixer = {{.kind = &hn_mixer_attention}},
                                .heads = heads,
                                .kv_heads = kv_heads,
                                .head_dim = dim,
                                .attention_scale = 1.0f / sqrtf((float)dim),
                                .ffn = HN_FFN_SWIGLU,
                                .ffn_width = (int)up->dims[1]};
    st = hn_rope_add(a, dim, &(hn_scaling){.theta = theta, .factor = 1}, err);
    if (st) return st;
    a->norm_eps = (float)eps;
    a->files.rows_in_pairs = true; /* of Q and K, as in Llama's own files */
    a->files.layer_names = layer_names;
    return hn_steps_create_layers(a, n, &like, err);
}

static const hn_step_form release_steps = {
    .key = {{"n_future_tokens", HN_FACT_WITH_FIRST}},
    .model_norm = "norm.weight", .model_output = "output.weight",
    .in_model = true,
    .read_layers = read_layers,
};
static const hn_head_form release_form = {
    .part = {[HN_HEAD_OUTPUT_NORM] = "!norm.weight"},
    .steps = &release_steps,
    .mark = {{"extra_heads.", "0."}},
};

/* ---- the description -------------------------------------------------------------------------------------------------------- */

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec HN_UNUSED,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_steps_desc *d = &a->draft_head.rows.steps;
    hunch_status st = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_head_check_kind(src, "meta-mtp", err) : HUNCH_OK;
    if (st) return st;
    if ((names->form != &release_form && names->form != &hn_head_gguf_steps) || a->layers == 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor extra_heads.0.*: not heads of Meta's", hn_source_path(src));
    d->kind = HN_STEP_LAYERS;
    d->n = a->layers;
    *taps = (hn_head_taps){1, {target->layers - 1}};
    return hn_steps_finish(a, src, names, target->vocab, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&release_form},
    .only = {"extra_heads."},
    .steps_tensor = "extra_heads.0.attention_norm.weight",
};
static const hn_drafter_help help = {
    ":HEAD",
    "the further heads of Meta's models that predict several tokens: a layer each, all in one pass", {HN_HELP_AT_ONCE}};
const hn_drafter_kind hn_drafter_meta_mtp = {.name = "meta-mtp", .help = &help, .head = &facts, HN_HEAD_KIND};
