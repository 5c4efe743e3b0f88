/* SPDX-License-Identifier: Apache-2.0 */
/* token_map.c - open addressing; the seed comes from the table's address, so that no file can choose its collisions. */
#include "text/tokenizer/token_map.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

struct hn_token_slot {
    hn_piece key;
    int32_t id;   /* -1: free */
    uint32_t tag; /* part of the hash: compared before the string */
};

bool hn_token_map_init(hn_token_map *m, size_t count) {
    size_t slots = 16, bytes;
    while (slots < count + count / 2) slots *= 2;
    if (!hn_mul_size(slots, sizeof *m->slots, &bytes)) return false;
    m->slots = hn_alloc(bytes);
    if (!m->slots) return false;
    for (size_t i = 0; i < slots; i++) m->slots[i].id = -1;
    m->mask = slots - 1;
    m->seed = (uint64_t)(uintptr_t)m->slots >> 6;
    return true;
}

void hn_token_map_fini(hn_token_map *m) {
    hn_free(m->slots);
    m->slots = NULL;
}

static struct hn_token_slot *slot_of(const hn_token_map *m, const char *bytes, size_t len, uint32_t *tag) {
    uint64_t h = hn_bytes_hash(bytes, len, m->seed);
    *tag = (uint32_t)(h >> 32);
    for (size_t i = (size_t)h & m->mask;; i = (i + 1) & m->mask) {
        struct hn_token_slot *s = &m->slots[i];
        if (s->id < 0) return s;
        if (s->tag == *tag && s->key.len == len && memcmp(s->key.bytes, bytes, len) == 0) return s;
    }
}

void hn_token_map_put(hn_token_map *m, hn_piece key, int32_t id) {
    uint32_t tag;
    struct hn_token_slot *s = slot_of(m, key.bytes, key.len, &tag);
    if (s->id < 0) *s = (struct hn_token_slot){key, id, tag};
}

int32_t hn_token_map_get(const hn_token_map *m, const char *bytes, size_t len) {
    uint32_t tag;
    return slot_of(m, bytes, len, &tag)->id;
}

void hn_token_map_prefetch(const hn_token_map *m, const char *bytes, size_t len) {
    __builtin_prefetch(&m->slots[(size_t)hn_bytes_hash(bytes, len, m->seed) & m->mask]);
}
