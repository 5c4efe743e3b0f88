/* SPDX-License-Identifier: Apache-2.0 */
/* name_list.c - see name_list.h. */
#include "base/name_list.h"

#include <string.h>

#include "base/mem.h"

hunch_status hn_name_list_add(hn_name_list *list, const char *name, hunch_error *err) {
    char *copy = hn_strdup(name);
    if (!copy || !hn_grow((void **)&list->name, &list->cap, list->n + 1, sizeof *list->name)) {
        hn_free(copy);
        return hn_fail_memory(err, "a list of names", strlen(name) + 1);
    }
    list->name[list->n++] = copy;
    return HUNCH_OK;
}

void hn_name_list_fini(hn_name_list *list) {
    for (size_t i = 0; i < list->n; i++) hn_free(list->name[i]);
    hn_free(list->name);
    *list = (hn_name_list){0};
}
