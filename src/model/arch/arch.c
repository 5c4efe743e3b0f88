/* SPDX-License-Identifier: Apache-2.0 */
/* arch.c - choosing the architecture, reading hyper-parameters within bounds. */
#include "model/arch/arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/other_names.h"
#include "model/arch/sampling_keys.h"

#define LISTED(NAME) &hn_family_##NAME,
static const hn_family *const families[] = {HN_FAMILIES(LISTED)};
#undef LISTED
enum { N_FAMILIES = sizeof families / sizeof *families };

static const char *key_name(const hn_source *src, const hn_key *k) {
    return hn_source_get_kind(src) == HN_SOURCE_GGUF ? k->gguf : k->hf;
}

static hunch_status fail_missing(const hn_source *src, const hn_key *k, hunch_error *err) {
    const char *key = key_name(src, k);
    return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing", hn_source_path(src), key ? key : k->gguf);
}

/* A GGUF's key may have a list, a number for each layer, where one for all is asked for: it is that number if all are equal. *found: the
 * key is such a list. */
static hunch_status equal_list(const hn_source *src, const char *key, double *out, bool *found, hunch_error *err) {
    const hn_array *list = NULL;
    *found = !hn_source_array(src, key, &list, NULL) && list && !hn_array_is_strings(list) && hn_array_count(list) > 0;
    if (!*found) return HUNCH_OK;
    *out = hn_array_number(list, 0);
    for (size_t i = 1; i < hn_array_count(list); i++)
        if (hn_array_number(list, i) != *out)
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: %s is a list, %g of layer 0 and %g of layer %zu, expected one number for all",
                           hn_source_path(src), key, *out, hn_array_number(list, i), i);
    return HUNCH_OK;
}

static hunch_status number_read(const hn_source *src, const char *key, double *out, bool *found, hunch_error *err) {
    const hunch_status st = equal_list(src, key, out, found, err);
    return st || *found ? st : hn_source_f64(src, key, out, found, err);
}

static hunch_status whole_read(const hn_source *src, const char *key, uint64_t *out, bool *found, hunch_error *err) {
    double v = 0;
    hunch_status st = equal_list(src, key, &v, found, err);
    if (st || !*found) return st ? st : hn_source_u64(src, key, out, found, err);
    if (!(v >= 0 && v <= 9007199254740992.0 && v == floor(v)))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is a list of %g; expected whole numbers, 0 or more",
                       hn_source_path(src), key, v);
    *out = (uint64_t)v;
    return HUNCH_OK;
}

hunch_status hn_key_real(const hn_source *src, const hn_key *k, double *out, hunch_error *err) {
    const char *key = key_name(src, k);
    bool found = false;
    double v = k->dflt;
    hunch_status st = key ? number_read(src, key, &v, &found, err) : HUNCH_OK;
    if (st) return st;
    if (!found && isnan(k->dflt)) return fail_missing(src, k, err);
    if (found && !(v >= k->min && v <= k->max))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %g, expected %g to %g", hn_source_path(src), key, v, k->min,
                       k->max);
    *out = v;
    return HUNCH_OK;
}

hunch_status hn_key_int(const hn_source *src, const hn_key *k, int *out, hunch_error *err) {
    const char *key = key_name(src, k);
    bool found = false;
    uint64_t v = 0;
    hunch_status st = key ? whole_read(src, key, &v, &found, err) : HUNCH_OK;
    if (st) return st;
    if (!found && isnan(k->dflt)) return fail_missing(src, k, err);
    if (found && !((double)v >= k->min && (double)v <= k->max))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected %g to %g", hn_source_path(src), key,
                       (unsigned long long)v, k->min, k->max);
    *out = found ? (int)v : (int)k->dflt;
    return HUNCH_OK;
}

hunch_status hn_key_of_layer(const hn_source *src, const hn_key *k, int layer, int *out, hunch_error *err) {
    const hn_array *list = NULL;
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    if (!gguf || hn_source_array(src, k->gguf, &list, NULL) || !list) return hn_key_int(src, k, out, err);
    if (hn_array_is_strings(list) || hn_array_count(list) <= (size_t)layer)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is a list of %zu, expected a number for each layer", hn_source_path(src), k->gguf,
                       hn_array_count(list));
    const double v = hn_array_number(list, (size_t)layer);
    if (!(v >= k->min && v <= k->max))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %g for layer %d, expected %g to %g", hn_source_path(src), k->gguf, v, layer, k->min,
                       k->max);
    *out = (int)v;
    return HUNCH_OK;
}

hunch_status hn_arch_read(hn_arch *a, hn_source *src, hunch_error *err) {
    memset(a, 0, sizeof *a);
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    const char *key = gguf ? "general.architecture" : "model_type", *name = NULL;
    char known[800] = "";
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
            snprintf(a->architecture, sizeof a->architecture, "%s", f->gguf_name);
            st = f->read(a, src, err);
            if (!st) st = hn_sampling_read(&a->sampling, src, err);
            if (st) hn_arch_fini(a);
            return st;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", n);
    }
    return hn_fail(err, HUNCH_REFUSED, "%s: unknown architecture \"%.60s\", expected one of: %s", hn_source_path(src),
                   name, known);
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

/* The family's own name; NULL: it has none. */
static const char *other_name(const hn_role_other *list, hn_role role, bool folder) {
    for (; list && list->role != HN_ROLES; list++) {
        const char *other = folder ? list->folder : list->gguf;
        if (list->role == role && other) return other;
    }
    return NULL;
}

/* The usual name, unless the family has another one or its experts are stored in other tensors. */
static const char *template_of(const hn_arch *a, hn_role role, int layer) {
    const bool folder = a->files.form == HN_SOURCE_HF;
    const hn_expert_desc *e = a->layer ? &a->layer[layer].experts : NULL;
    const char *name = NULL;
    if (folder && e && e->stacked) name = a->dense ? other_name(a->dense->stacked_names, role, true) : NULL;
    if (!name && folder && e && e->stacked) name = hn_role_stacked_name(role);
    if (!name && !folder && e && e->single) name = hn_role_single_name(role);
    if (!name && a->dense) name = other_name(a->dense->names, role, folder);
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
