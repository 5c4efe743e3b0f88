/* SPDX-License-Identifier: Apache-2.0 */
/* charsmap.c - the format: uint32 size of the trie in bytes, the trie's units, the replacements (all little-endian).
 *
 * A unit is a node: bit 31 marks a leaf whose other bits are the value; else bits 0-7 are the label of the edge to it,
 * bit 8 is set if it has a leaf child, and bits 10-31 are the offset to its children, times 256 if bit 9 is set.
 */
#include "text/normal/charsmap.h"

#include <string.h>

#include "base/mem.h"

static uint32_t read_u32(const char *at) {
    const unsigned char *b = (const unsigned char *)at;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

hunch_status hn_charsmap_init(hn_charsmap *m, const char *bytes, size_t n, hunch_error *err) {
    *m = (hn_charsmap){0};
    size_t trie = n >= 4 ? read_u32(bytes) : 0;
    if (trie < 4 || trie % 4 || trie > n - 4)
        return hn_fail(err, HUNCH_REFUSED,
                       "a charsmap of %zu bytes gives %zu for the size of its trie, expected a multiple of 4 that fits",
                       n, trie);
    m->n_units = trie / 4;
    m->n_texts = n - 4 - trie;
    m->units = hn_alloc(trie);
    m->texts = hn_alloc(m->n_texts + 1);
    if (!m->units || !m->texts) {
        hn_charsmap_fini(m);
        return hn_fail_memory(err, "a charsmap", n);
    }
    for (size_t i = 0; i < m->n_units; i++) m->units[i] = read_u32(bytes + 4 + 4 * i);
    memcpy(m->texts, bytes + 4 + trie, m->n_texts);
    m->texts[m->n_texts] = '\0';
    return HUNCH_OK;
}

void hn_charsmap_fini(hn_charsmap *m) {
    hn_free(m->units);
    hn_free(m->texts);
    *m = (hn_charsmap){0};
}

static size_t offset_of(uint32_t unit) {
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

const char *hn_charsmap_find(const hn_charsmap *m, const char *s, size_t len, bool longest, size_t *used) {
    const char *found = NULL;
    if (!m->n_units) return NULL;
    size_t at = offset_of(m->units[0]);
    for (size_t i = 0; i < len; i++) {
        unsigned char label = (unsigned char)s[i];
        at ^= label;
        if (label == 0 || at >= m->n_units) break;
        uint32_t unit = m->units[at];
        if ((unit & (1u << 31 | 0xFF)) != label) break;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1) || at >= m->n_units) continue;
        size_t text = m->units[at] & ~(1u << 31);
        if (text > m->n_texts) continue;
        found = m->texts + text;
        *used = i + 1;
        if (!longest) break;
    }
    return found;
}
