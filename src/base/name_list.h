/* SPDX-License-Identifier: Apache-2.0 */
/* name_list.h - a list of strings that owns them. */
#ifndef HN_NAME_LIST_H
#define HN_NAME_LIST_H
#include <stddef.h>

#include "base/status.h"

typedef struct hn_name_list {
    char **name;
    size_t n, cap;
} hn_name_list;

hunch_status hn_name_list_add(hn_name_list *list, const char *name, hunch_error *err); /* copied */
void hn_name_list_fini(hn_name_list *list);                                           /* zeroed is fine */
#endif
