/* SPDX-License-Identifier: Apache-2.0 */
/* name_index.c - a sorted array of names and a binary search (name_index.h). */
#include "format/name_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

bool hn_name_is_printable(const char *name, size_t len) {
    if (hn_utf8_check(name, len) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    return true;
}

static int name_compare(const void *a, const void *b) {
    const hn_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order != 0)
        return order;
    return (x->index > y->index) - (x->index < y->index);
}

bool hn_name_index_init(hn_name_index *x, const void *items, size_t count,
                        const char *(*name_of)(const void *items, size_t i)) {
    x->count = 0;
    x->names = hn_zalloc(count, sizeof *x->names);
    if (x->names == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        x->names[i] = (hn_name){name_of(items, i), i};
    x->count = count;
    if (count > 1)
        qsort(x->names, count, sizeof *x->names, name_compare);
    return true;
}

void hn_name_index_fini(hn_name_index *x) {
    hn_free(x->names);
    x->names = NULL;
    x->count = 0;
}

ptrdiff_t hn_name_index_find(const hn_name_index *x, const char *name) {
    size_t low = 0, high = x->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(x->names[mid].name, name);
        if (order == 0)
            return (ptrdiff_t)x->names[mid].index;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return HN_NO_NAME;
}

bool hn_name_index_duplicate(const hn_name_index *x, size_t *first, size_t *second) {
    for (size_t i = 1; i < x->count; i++) {
        if (strcmp(x->names[i - 1].name, x->names[i].name) == 0) {
            *first = x->names[i - 1].index;
            *second = x->names[i].index;
            return true;
        }
    }
    return false;
}
