/* SPDX-License-Identifier: Apache-2.0 */
/* number_index.c - see number_index.h. */
#include "base/number_index.h"

#include "base/mem.h"

bool hn_number_index_grow(int32_t **index, size_t *wide, size_t least, size_t first, size_t n, hn_hash_of_number *hash_of,
                          const void *list) {
    const size_t twice = *wide ? 2 * *wide : least;
    int32_t *table = hn_zalloc(twice, sizeof *table);
    if (!table) return false;
    for (size_t i = first; i < n; i++) {
        size_t at = hash_of(list, i) & (twice - 1);
        while (table[at]) at = (at + 1) & (twice - 1);
        table[at] = (int32_t)i + 1;
    }
    hn_free(*index);
    *index = table;
    *wide = twice;
    return true;
}
