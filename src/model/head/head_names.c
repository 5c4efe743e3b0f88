/* SPDX-License-Identifier: Apache-2.0 */
/* head_names.c - the names of a draft head's tensors outside its layers, by the form of its files (hn_head_form). */
#include <stdio.h>
#include <string.h>

#include "model/head/head.h"

const char *hn_head_name(const hn_head_names *names, hn_head_part part, int k, char out[128]) {
    const hn_head_form *form = names->form;
    while (!form->part[part] && form->base) form = form->base;
    const char *template = form->part[part];
    if (!template) return NULL;
    const char *front = *template == '!' ? "" : names->front, *first = *template == '@' ? names->first : "";
    const char *own = template + (*template == '!' || *template == '@'), *number = strstr(own, "%d");
    if (names->form->numbered) k = names->module;
    if (number)
        snprintf(out, 128, "%s%s%.*s%d%s", front, first, (int)(number - own), own, k, number + 2);
    else
        snprintf(out, 128, "%s%s%s", front, first, own);
    return out;
}

const hn_tensor *hn_head_find_tensor(const hn_source *src, const hn_head_names *names, hn_head_part part) {
    char name[128];
    return hn_head_name(names, part, 0, name) ? hn_source_find(src, name) : NULL;
}
