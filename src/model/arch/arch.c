/* SPDX-License-Identifier: Apache-2.0 */
/* arch.c - choosing the architecture; names of tensors. */
#include "model/arch/arch.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/other_names.h"
#include "model/arch/sampling_keys.h"

#define LISTED(NAME) &hn_family_##NAME,
static const hn_family *const families[] = {HN_FAMILIES(LISTED)};
#undef LISTED
enum { N_FAMILIES = sizeof families / sizeof *families };

/* What no family here has, of architectures by what their names begin with. */
static hunch_status refuse_later(const hn_source *src, const char *name, hunch_error *err) {
    static const struct {
        const char *name, *needs;
    } later[] = {{"qwen4_exp", "several streams of states, hashed n-grams and an indexer of blocks"},
                 {"hy_v4", "layers that no family here has"},
                 {"glm5_next", "deltas with a decay for each channel, several streams of states and an indexer"},
                 {"deepseek_v4", "compressed attention and several streams of states"},
                 {"deepseek4", "compressed attention and several streams of states"},
                 {"mistral_large4", "latent attention with an indexer and a scale of the softmax for each head"}};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (!strncmp(name, later[i].name, strlen(later[i].name)))
            return hn_fail(err, HUNCH_REFUSED, "%s: architecture \"%.60s\" is not read yet: it needs %s", hn_source_path(src), name,
                           later[i].needs);
    return HUNCH_OK;
}

hunch_status hn_arch_find_family(const hn_source *src, const hn_family **family, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    const char *key = gguf ? "general.architecture" : "model_type", *name = NULL;
    char known[1600] = "";
    bool found = false;
    hunch_status st = hn_source_str(src, key, &name, NULL, &found, err);
    if (st) return st;
    if (!found)
        return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing: not a language model", hn_source_path(src), key);
    const char *usual = gguf ? hn_usual_architecture(name) : name;
    for (int i = 0; i < N_FAMILIES; i++) {
        const hn_family *f = families[i];
        const char *n = gguf ? f->gguf_name : f->hf_type;
        if (gguf && i > 0 && !strcmp(n, families[i - 1]->gguf_name))
            continue; /* both families share one GGUF architecture */
        if (!strcmp(n, usual)) {
            *family = f;
            return f->which ? f->which(family, src, err) : HUNCH_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", n);
    }
    st = refuse_later(src, usual, err);
    return st ? st : hn_fail(err, HUNCH_REFUSED, "%s: unknown architecture \"%.60s\", expected one of: %s", hn_source_path(src),
                   name, known);
}

hunch_status hn_arch_read(hn_arch *a, hn_source *src, hunch_error *err) {
    const hn_family *f;
    memset(a, 0, sizeof *a);
    hunch_status st = hn_arch_find_family(src, &f, err);
    if (st) return st;
    snprintf(a->architecture, sizeof a->architecture, "%s", f->gguf_name);
    st = hn_family_read(a, src, f, err);
    if (!st) st = hn_sampling_read(&a->sampling, src, err);
    if (st) hn_arch_fini(a);
    return st;
}

void hn_arch_fini(hn_arch *a) {
    hn_free(a->layer);
    a->layer = NULL;
    for (int i = 0; i < a->rotations; i++) {
        hn_free(a->rotation[i].freq);
        hn_free(a->rotation[i].freq_long);
        a->rotation[i] = (hn_rotation){0};
    }
    a->rotations = 0;
}

typedef enum name_kind { IN_GGUF, IN_FOLDER, STACKED } name_kind;

/* The family's own name; NULL: it has none. */
static const char *other_name(const hn_family *f, hn_role role, name_kind kind) {
    for (const hn_role_other *o = f ? f->names : NULL; o && o->role != HN_ROLES; o++) {
        const char *other = kind == STACKED ? o->stacked : kind == IN_FOLDER ? o->folder : o->gguf;
        if (o->role == role && other) return other;
    }
    return NULL;
}

/* The usual name, unless the family has another one or its experts are stored in other tensors. */
static const char *template_of(const hn_arch *a, hn_role role, int layer) {
    const bool folder = a->files.form == HN_SOURCE_HF;
    const hn_expert_desc *e = a->layer ? &a->layer[layer].experts : NULL;
    const char *name = NULL;
    if (folder && e && e->stacked) name = other_name(a->family, role, STACKED);
    if (!name && folder && e && e->stacked) name = hn_role_stacked_name(role);
    if (!name && !folder && e && e->single) name = hn_role_single_name(role);
    if (!name) name = other_name(a->family, role, folder ? IN_FOLDER : IN_GGUF);
    return name ? name : hn_role_name(role, a->files.form);
}

/* Appends `name` up to its first %d, and the number; returns the rest of `name` after it, or its end. */
static const char *put_number(const char *name, int number, char out[128]) {
    const size_t len = strlen(out);
    const char *d = strstr(name, "%d");
    if (d)
        snprintf(out + len, 128 - len, "%.*s%d", (int)(d - name), name, number);
    else
        snprintf(out + len, 128 - len, "%s", name);
    return d ? d + 2 : name + strlen(name);
}

void hn_arch_expert_name(const hn_arch *a, hn_role role, int layer, int expert, char out[128]) {
    static const char model[] = "model.", layers[] = "layers.%d.";
    if (a->files.layer_names && a->files.layer_names[role]) {
        snprintf(out, 128, a->files.layer_names[role], layer);
        return;
    }
    const char *p = template_of(a, role, layer), *front = "";
    if (a->files.body) {
        const bool inside = !strncmp(p, model, sizeof model - 1);
        front = inside ? a->files.body : a->files.head;
        if (inside) p += sizeof model - 1;
    }
    if (a->files.first_layer && layer == 0 && !strncmp(p, layers, sizeof layers - 1)) {
        snprintf(out, 128, "%s%s%s", front, a->files.first_layer, p + sizeof layers - 1);
        return;
    }
    snprintf(out, 128, "%s", front);
    p = put_number(put_number(p, layer + a->files.first_block, out), expert, out);
    snprintf(out + strlen(out), 128 - strlen(out), "%s", p);
}

void hn_arch_tensor_name(const hn_arch *a, hn_role role, int layer, char out[128]) {
    hn_arch_expert_name(a, role, layer, 0, out);
}
