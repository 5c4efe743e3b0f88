/* SPDX-License-Identifier: Apache-2.0 */
/* convert_head.c - writes a draft head, as described for drafting (head.h), as a GGUF file: with llama.cpp's
 * architecture eagle3 if it reads states of layers, else with one of our own. Names: head_names.c, roles.c; keys:
 * head_keys.c. */
#include <string.h>

#include "base/mem.h"
#include "convert/convert_private.h"
#include "draft/head/open/head_alone.h"
#include "model/head/head_steps.h"

typedef struct head_conversion {
    hn_conversion c;
    const hn_head_written *h;
    hn_head_names from;
} head_conversion;

/* ---- keys ------------------------------------------------------------------------------------------------------------------ */

static const char *key_of(const head_conversion *k, hn_head_key key) {
    return hn_head_gguf_key(k->c.arch.family, key);
}

static hunch_status put_number(head_conversion *k, hn_head_key key, int value) {
    return hn_gguf_put_u32(k->c.w, key_of(k, key), (uint32_t)value, k->c.err);
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
    if (!st) st = hn_head_keys_write(&c->arch, k->h->states, c->w, c->err);
    if (!st && k->c.to == &hn_head_gguf_mtp) st = put_number(k, HN_HEAD_KEY_MTP_LAYERS, 1);
    return st || c->arch.layers == 0 || hn_head_borrows(&c->arch.draft_head) ? st : put_rotation(k);
}

/* ---- the file --------------------------------------------------------------------------------------------------------------- */

static hunch_status check_modules(const hn_source *src, const hn_arch *a, hunch_error *err) {
    if (a->files.head_form != &hn_head_mtp || hn_arch_modules(a) == 1) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED, "%s: %d modules in a row: a GGUF holds one; expected the folder to be used as it is",
                   hn_source_path(src), hn_arch_modules(a));
}

hunch_status hn_convert_head(hn_source *src, const hn_head_written *h, const char *out_path, hunch_progress progress, void *user,
                             hunch_error *err) {
    const bool steps = hn_head_steps(&h->arch->draft_head);
    head_conversion k = {.c = {.src = src,
                               .arch = *h->arch,
                               .to = hn_head_form_in_gguf(h->kind, h->arch),
                               .ids = h->ids,
                               .order = h->order,
                               .progress = progress,
                               .user = user,
                               .err = err,
                               .convert = h->type != HN_WEIGHT_TYPES,
                               .as = h->type},
                         .h = h,
                         .from = hn_head_names_of(h->arch)};
    k.c.arch.family = hn_head_family(&h->arch->draft_head, h->states && !steps);
    hunch_status st = check_modules(src, h->arch, err);
    if (!st) st = hn_conversion_plan_rotation(&k.c);
    if (!st) st = hn_gguf_writer_open(&k.c.w, out_path, err);
    k.c.arch.vocab = h->tokens;
    if (!st) st = put_keys(&k);
    k.c.arch.vocab = h->arch->vocab;
    if (!st) st = hn_conversion_visit(&k.c, false);
    if (!st) st = hn_head_check_rest(src, h->arch, err);
    if (!st) st = hn_conversion_visit(&k.c, true);
    return hn_conversion_finish(&k.c, st);
}
