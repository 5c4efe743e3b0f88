/* SPDX-License-Identifier: Apache-2.0 */
/* expected.c - what files of a model's family have (program_files.h): its rows of keys and tensors in words; of a draft head the keys. */
#include <stdio.h>

#include "engine/program_files.h"
#include "model/arch/arch.h"
#include "model/head/head.h"

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

static void list_tensor(const listing *l, const hn_arch *a, hn_role role) {
    const bool of_layers = hn_role_of_layer(role);
    const int last = of_layers ? a->layers : 1;
    hn_expected e = {.tensor = true, .layer = -1};
    char name[2][128], shape[64];
    uint64_t dims[2];
    for (int i = 0; i < last; i++) {
        if (!hn_arch_has(a, role, i)) continue;
        if (e.layer < 0) e.layer = i;
        e.layers += of_layers;
    }
    if (e.layer < 0) return;
    for (int form = 0; form < 2; form++) {
        hn_arch named = *a;
        if (a->files.form != (hn_source_kind)form) named.files = (hn_arch_files){.form = (hn_source_kind)form};
        hn_arch_tensor_name(&named, role, e.layer, name[form]);
    }
    hn_arch_tensor_shape(a, role, e.layer, dims);
    snprintf(shape, sizeof shape, hn_role_is_vector(role) && dims[1] == 1 ? "%llu" : "%llu x %llu", (unsigned long long)dims[0],
             (unsigned long long)dims[1]);
    e.gguf = name[HN_SOURCE_GGUF];
    e.folder = name[HN_SOURCE_HF];
    e.values = shape;
    l->each(l->user, &e);
}

hunch_status hn_model_expects(const char *path, bool head, void (*each)(void *user, const hn_expected *e), void *user, hunch_error *err) {
    listing l = {each, user};
    const hn_family *family;
    hn_source *src;
    hn_arch a;
    hunch_status st = hn_source_open(&src, path, err);
    if (st) return st;
    st = head ? hn_head_find_family(src, &family, err) : hn_arch_find_family(src, &family, err);
    if (!st) {
        const hn_file_keys keys = hn_family_keys(family);
        if (head) hn_head_keys_list(family, list_key, &l);
        const bool any = head && hn_source_get_kind(src) == HN_SOURCE_HF;
        hn_keys_list(&keys, hn_source_get_kind(src), any ? list_key_of_folder : list_key, &l);
        if (!head && !hn_arch_read(&a, src, NULL)) { /* else its tensors are not known */
            for (int role = 0; role < HN_ROLES_OF_MODELS; role++) list_tensor(&l, &a, (hn_role)role);
            hn_arch_fini(&a);
        }
    }
    hn_source_close(&src);
    return st;
}
