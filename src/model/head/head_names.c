/* SPDX-License-Identifier: Apache-2.0 */
/* head_names.c - the names of a draft head's tensors outside its layers, by the form of its files (hn_head_form). */
#include <stdio.h>
#include <string.h>

#include "model/head/head.h"

/* Of a step. */
static const char *step_name(const hn_head_names *names, const char *p, hn_tensor_id t, char out[128]) {
    const hn_step_layout *at = &names->steps;
    const int stride = at->resblock_stride ? at->resblock_stride : 1;
    size_t n = (size_t)snprintf(out, 128, "%s", names->front);
    for (; *p && n < 120; p++) {
        if (*p == '#')
            n += (size_t)snprintf(out + n, 128 - n, "%d", t.k);
        else if (*p == '@')
            n += (size_t)snprintf(out + n, 128 - n, "%d", at->first_resblock + stride * t.block);
        else if (*p == '^')
            n += (size_t)snprintf(out + n, 128 - n, "%d", at->resblocks);
        else if (*p == '~')
            n += p++ && at->inside ? (size_t)snprintf(out + n, 128 - n, ".%c", *p) : 0;
        else
            out[n++] = *p;
    }
    out[n] = 0;
    return out;
}

const char *hn_tensor_name(const hn_head_names *names, hn_tensor_id t, char out[128]) {
    const hn_head_form *form = names->form;
    while (!form->part[t.role] && form->base) form = form->base;
    const char *template = form->part[t.role];
    if (!template) return NULL;
    if (hn_role_of_steps(t.role)) return step_name(names, template, t, out);
    const char *front = *template == '!' ? "" : names->front, *first = *template == '@' ? names->first : "";
    const char *own = template + (*template == '!' || *template == '@'), *number = strstr(own, "%d");
    const int k = names->form->numbered ? names->module + t.k : t.k;
    if (number)
        snprintf(out, 128, "%s%s%.*s%d%s", front, first, (int)(number - own), own, k, number + 2);
    else
        snprintf(out, 128, "%s%s%s", front, first, own);
    return out;
}

hn_head_names hn_head_names_of(const hn_arch *a) {
    const hn_arch_files *f = &a->files;
    return (hn_head_names){f->head_form, f->body, f->first_layer, f->first_block, a->layers, f->steps};
}

const char *hn_arch_name(const hn_arch *a, hn_tensor_id t, char out[128]) {
    const hn_head_names names = hn_head_names_of(a);
    if (t.role >= HN_ROLES_OF_MODELS) return hn_tensor_name(&names, t, out);
    hn_arch_tensor_name(a, t.role, t.k, out);
    return out;
}

const hn_tensor *hn_tensor_find(const hn_source *src, const hn_head_names *names, hn_tensor_id t) {
    char name[128];
    return hn_tensor_name(names, t, name) ? hn_source_find(src, name) : NULL;
}
