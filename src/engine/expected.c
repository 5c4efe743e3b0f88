/* SPDX-License-Identifier: Apache-2.0 */
/* expected.c - what files of a model's family have (program_files.h): its rows of keys and tensors in words; of a draft head too. */
#include <stdio.h>

#include "engine/program_files.h"
#include "model/arch/arch.h"
#include "draft/head/open/head_alone.h"
#include "draft/head/open/head_kind.h"
#include "model/head/head_steps.h"

typedef struct listing {
    void (*each)(void *user, const hn_expected *e);
    void *user;
} listing;

static void list_key(void *user, const char *gguf, const char *folder, const char *values) {
    const listing *l = user;
    l->each(l->user, &(hn_expected){.gguf = gguf, .folder = folder, .values = values});
}

/* Of a draft head's folder: which architecture its GGUF has follows from its kind. */
static void list_key_of_folder(void *user, const char *gguf HN_UNUSED, const char *folder, const char *values) {
    if (*folder) list_key(user, "", folder, values);
}

/* layers: how many have it, of which t.k is the first; 0: it is the model's. names: descriptions by the form of the files that they name it
 * in; NULL: its name there is not known. */
static void list_tensor(const listing *l, const hn_arch *a, const hn_arch *const names[2], hn_tensor_id t, int layers) {
    hn_expected e = {.tensor = true, .layer = layers ? t.k : 0, .layers = layers};
    char name[2][128] = {"", ""}, shape[64];
    uint64_t dims[2];
    for (int form = 0; form < 2; form++)
        if (!names[form] || !hn_arch_name(names[form], t, name[form])) *name[form] = 0;
    hn_arch_shape(a, t, dims);
    snprintf(shape, sizeof shape, hn_role_is_vector(t.role) && dims[1] == 1 ? "%llu" : "%llu x %llu", (unsigned long long)dims[0],
             (unsigned long long)dims[1]);
    e.gguf = name[HN_SOURCE_GGUF];
    e.folder = name[HN_SOURCE_HF];
    e.values = shape;
    l->each(l->user, &e);
}

static void list_tensors(const listing *l, const hn_arch *a, const hn_arch *const names[2]) {
    for (hn_tensor_id t = {0, -1, 0}; hn_arch_next(a, &t);) list_tensor(l, a, names, t, 0);
    for (hn_role role = 0; role < HN_ROLES_OF_MODELS; role++) {
        int first = -1, layers = 0;
        for (int i = 0; hn_role_of_layer(role) && i < a->layers; i++) {
            if (!hn_arch_has(a, role, i)) continue;
            if (first < 0) first = i;
            layers++;
        }
        if (layers) list_tensor(l, a, names, (hn_tensor_id){role, first, 0}, layers);
    }
}

/* One that cannot be read has no tensors that are known. */
static void list_model(const listing *l, hn_source *src) {
    hn_arch a, other;
    if (hn_arch_read(&a, src, NULL)) return;
    const hn_source_kind form = a.files.form;
    other = a;
    other.files = (hn_arch_files){.form = form == HN_SOURCE_GGUF ? HN_SOURCE_HF : HN_SOURCE_GGUF};
    const hn_arch *names[2] = {&other, &other};
    names[form] = &a;
    list_tensors(l, &a, names);
    hn_arch_fini(&a);
}

/* Nor has a head that is described by its target alone. */
static void list_head(const listing *l, hn_source *src, const char *kind) {
    hn_head_alone h;
    if (!hn_head_describe_alone(&h, src, kind, NULL, NULL)) {
        const hn_arch *a = &h.arch, other = {.family = hn_head_family(&a->draft_head, h.states && !hn_head_steps(&a->draft_head)),
                                             .files = {.form = HN_SOURCE_GGUF, .body = "", .head = "", .first_layer = "",
                                                       .head_form = hn_head_form_in_gguf(kind, a)}};
        const bool folder = a->files.form == HN_SOURCE_HF;
        const hn_arch *const names[2] = {[HN_SOURCE_GGUF] = folder ? &other : a, [HN_SOURCE_HF] = folder ? a : NULL};
        list_tensors(l, a, names);
    }
    hn_head_alone_fini(&h);
}

hunch_status hn_model_expects(const char *path, bool head, void (*each)(void *user, const hn_expected *e), void *user, hunch_error *err) {
    listing l = {each, user};
    const hn_family *family;
    const char *kind = NULL;
    hn_source *src;
    hunch_status st = hn_source_open(&src, path, err);
    if (st) return st;
    st = head ? hn_head_find_family(src, &family, err) : hn_arch_find_family(src, &family, err);
    if (!st && head) st = hn_head_kind(src, &kind, err);
    if (!st) {
        const hn_file_keys keys = hn_family_keys(family);
        if (head) hn_head_keys_list(family, list_key, &l);
        const bool any = head && hn_source_get_kind(src) == HN_SOURCE_HF;
        hn_keys_list(&keys, hn_source_get_kind(src), any ? list_key_of_folder : list_key, &l);
        if (head) list_head(&l, src, kind);
        else list_model(&l, src);
    }
    hn_source_close(&src);
    return st;
}
