/* SPDX-License-Identifier: Apache-2.0 */
/* head_form.c - see head_form.h. The forms of single kinds come first, in the order of the list of kinds. */
#include "draft/head/open/head_form.h"

#include <stdio.h>
#include <string.h>

#include "draft/drafter.h"
#include "model/head/head_steps.h"

/* Whether there is a tensor whose name begins with it. */
static bool has_tensor(hn_source *src, const char *begin) {
    for (size_t i = 0; i < hn_source_tensor_count(src); i++)
        if (!strncmp(hn_source_tensor(src, i)->name, begin, strlen(begin))) return true;
    return false;
}

/* Names of layers, of which the first may have a name of its own. */
static const char *first_layer(hn_source *src, const char *front) {
    char middle[40];
    snprintf(middle, sizeof middle, "%smidlayer.", front);
    return has_tensor(src, middle) ? "midlayer." : "layers.0.";
}

static bool has_form(hn_source *src, const hn_head_form *form, hn_head_names *names) {
    for (size_t i = 0; i < sizeof form->mark / sizeof *form->mark && form->mark[i].begin; i++) {
        const bool plain = *form->mark[i].begin == '!';
        char begin[64];
        snprintf(begin, sizeof begin, "%s%s", plain ? "" : form->mark[i].front, form->mark[i].begin + plain);
        if (!has_tensor(src, begin)) continue;
        *names = (hn_head_names){.form = form, .front = form->mark[i].front};
        if (form->steps)
            names->steps = hn_steps_find_layout(src, names);
        else
            names->first = first_layer(src, names->front);
        return true;
    }
    return false;
}

/* A form without marks is that of the folders that the kind recognises. */
static bool is_of_kind(hn_source *src, const hn_head_facts *kind, const hn_head_form *form, hn_head_names *names) {
    if (form->mark[0].begin || !kind->is || !kind->is(src)) return false;
    const char *front = has_tensor(src, "model.layers.") ? "model." : "";
    *names = (hn_head_names){.form = form, .front = front, .first = first_layer(src, front)};
    return true;
}

static bool find_form_of_kind(hn_source *src, hn_head_names *names) {
    const hn_drafter_kind *k;
    for (int i = 0; (k = hn_drafter_kind_at(i)); i++)
        for (size_t f = 0; k->head && f < sizeof k->head->form / sizeof *k->head->form; f++) {
            const hn_head_form *form = k->head->form[f];
            if (form && (has_form(src, form, names) || is_of_kind(src, k->head, form, names))) return true;
        }
    return false;
}

/* Heads that draft blocks, with one of these prefixes. */
static bool find_blocks(hn_source *src, const char *front, hn_head_names *names) {
    static const hn_head_form *const forms[] = {&hn_head_blocks, &hn_head_encoder};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        *names = (hn_head_names){.form = forms[i], .front = front, .first = first_layer(src, front)};
        if (hn_head_find_tensor(src, names, HN_HEAD_CONTEXT_NORM)) return true;
    }
    return false;
}

/* The number of consecutive modules of multi-token prediction; 0: one. */
static int count_modules(hn_source *src, const char *front) {
    char begin[64];
    int n = -1;
    do
        snprintf(begin, sizeof begin, "%slayers.%d.", front, ++n);
    while (n <= HN_MOST_HEAD_MODULES && has_tensor(src, begin));
    return n > 1 ? n : 0;
}

static bool find_modules(hn_source *src, const char *front, hn_head_names *names) {
    char begin[40];
    snprintf(begin, sizeof begin, "%slayers.", front);
    *names = (hn_head_names){.form = &hn_head_mtp, .front = front, .modules = count_modules(src, front)};
    return has_tensor(src, begin);
}

/* The form that only a kind's files of this architecture have, or of any if they name the kind; NULL: they share one. */
static const hn_head_form *gguf_form_of_kind(const hn_source *src, const hn_family *family) {
    const hn_drafter_kind *k;
    const char *said = "";
    bool found;
    if (hn_source_str(src, hn_head_key_name(src, HN_HEAD_KEY_KIND, 0), &said, NULL, &found, NULL)) said = "";
    for (int i = 0; (k = hn_drafter_kind_at(i)); i++)
        for (size_t f = 0; k->head && f < sizeof k->head->gguf_form / sizeof *k->head->gguf_form; f++) {
            const char *of = k->head->architecture[f];
            if (k->head->gguf_form[f] && (of ? !strcmp(of, family->gguf_name) : !strcmp(k->name, said))) return k->head->gguf_form[f];
        }
    return NULL;
}

static hn_head_names gguf_names(hn_source *src) {
    hn_head_names names = {.form = &hn_head_gguf, .front = "", .first = ""};
    const hn_family *family;
    const char *name;
    uint64_t n;
    const bool known = !hn_head_find_family(src, &family, NULL);
    const hn_head_form *of_kind = known ? gguf_form_of_kind(src, family) : NULL;
    if (!hn_head_u64(src, HN_HEAD_KEY_STEPS, &n, &name, NULL) && name) {
        names = (hn_head_names){.form = &hn_head_gguf_steps, .front = ""};
        names.steps = hn_steps_find_layout(src, &names);
    } else if (of_kind) {
        names.form = of_kind;
    } else if (known && hn_head_family_blocks(family)) {
        names.form = &hn_head_gguf_blocks;
    } else if (has_tensor(src, "blk.0.nextn.")) {
        names.form = &hn_head_gguf_mtp;
    }
    return names;
}

hn_head_names hn_head_find_names(hn_source *src) {
    hn_head_names names;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return gguf_names(src);
    if (find_form_of_kind(src, &names) || find_modules(src, "mtp_", &names) || find_modules(src, "model.mtp_", &names) ||
        find_blocks(src, "", &names) || find_blocks(src, "model.", &names))
        return names;
    const char *front = hn_source_find(src, "model.fc.weight") ? "model." : "";
    return (hn_head_names){.form = &hn_head_folder, .front = front, .first = first_layer(src, front)};
}
