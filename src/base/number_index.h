/* SPDX-License-Identifier: Apache-2.0 */
/* number_index.h - finding an item of a list by its hash: a table by open addressing, whose places have 0 or 1 + the item's number. Who has
 * the list looks for an item from hash & (wide - 1) on, and keeps the table at most half full. */
#ifndef HN_NUMBER_INDEX_H
#define HN_NUMBER_INDEX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The hash of the list's item i. */
typedef uint64_t hn_hash_of_number(const void *list, size_t i);

/* Makes the table twice as wide, a new one `least` (a power of two), and enters the items first .. n - 1 again. False: no memory, and the
 * table is as it was. */
bool hn_number_index_grow(int32_t **index, size_t *wide, size_t least, size_t first, size_t n, hn_hash_of_number *hash_of,
                          const void *list);
#endif
