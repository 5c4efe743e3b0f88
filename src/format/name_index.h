/* SPDX-License-Identifier: Apache-2.0 */
/* name_index.h - finds tensors and keys by name.
 *
 * Sorted, not hashed: a hostile file cannot choose names that make it slow, and sorting also finds duplicates.
 */
#ifndef HN_NAME_INDEX_H
#define HN_NAME_INDEX_H
#include <stdbool.h>
#include <stddef.h>

typedef struct hn_name {
    const char *name; /* NUL-terminated, owned by the indexed item */
    size_t index;
} hn_name;

typedef struct hn_name_index {
    hn_name *names; /* ascending by strcmp, then by index */
    size_t count;
} hn_name_index;

enum { HN_NO_NAME = -1 };

/* Names are shown in messages and compared as C strings: no control characters, valid UTF-8. */
bool hn_name_is_printable(const char *name, size_t len);

/* name_of(items, i) returns the name of item i, which must outlive the index. False: no memory. */
bool hn_name_index_init(hn_name_index *x, const void *items, size_t count,
                        const char *(*name_of)(const void *items, size_t i));
void hn_name_index_fini(hn_name_index *x);
/* Index of the item with this name; HN_NO_NAME if there is none. */
ptrdiff_t hn_name_index_find(const hn_name_index *x, const char *name);
/* Two items of one name, the lower index first; false if all names differ. */
bool hn_name_index_duplicate(const hn_name_index *x, size_t *first, size_t *second);
#endif
