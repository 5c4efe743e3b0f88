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
