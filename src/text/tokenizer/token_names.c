/* SPDX-License-Identifier: Apache-2.0 */
/* token_names.c - a bit for each pair of first bytes rules out nearly all places of a text; the others are looked up in the index. */
#include "text/tokenizer/token_names.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/normal/characters.h"

enum { PAIRS = 65536 / 32 };

void hn_names_fini(hn_names *s) {
    for (size_t i = 0; i < s->n; i++) hn_free((char *)(uintptr_t)s->entries[i].name.bytes);
    hn_free(s->entries);
    hn_free(s->pairs);
    hn_prefix_index_fini(&s->index);
    memset(s, 0, sizeof *s);
}

bool hn_names_add(hn_names *s, const char *name, size_t len, int32_t id, uint8_t marks) {
    if (len == 0 || hn_utf8_check(name, len) < len) return true; /* half a character would split a character of the text */
    if (!hn_grow((void **)&s->entries, &s->cap, s->n + 1, sizeof *s->entries)) return false;
    char *copy = hn_strndup(name, len);
    if (!copy) return false;
    s->entries[s->n++] = (hn_name_entry){{copy, (uint32_t)len}, id, marks};
    return true;
}

static void set_pair(hn_names *s, unsigned pair) {
    s->pairs[pair / 32] |= 1u << pair % 32;
}

bool hn_names_finish(hn_names *s) {
    if (!s->n) return true;
    s->pairs = hn_zalloc(PAIRS, sizeof *s->pairs);
    if (!s->pairs || !hn_prefix_index_init(&s->index, s->n)) return false;
    for (size_t i = 0; i < s->n; i++) {
        hn_piece name = s->entries[i].name;
        unsigned first = (unsigned)(unsigned char)name.bytes[0] << 8;
        hn_prefix_index_put(&s->index, name, (uint32_t)i);
        if (name.len > 1) set_pair(s, first | (unsigned char)name.bytes[1]);
        for (unsigned second = 0; name.len == 1 && second < 256; second++) set_pair(s, first | second);
    }
    return hn_prefix_index_finish(&s->index);
}

/* The entry of exactly this name; NULL: none. */
static hn_name_entry *entry_of(const hn_names *s, const char *name, size_t len) {
    hn_prefix_walk w;
    if (!s->pairs || !len) return NULL;
    hn_prefix_walk_begin(&s->index, &w, name, len);
    while (hn_prefix_walk_next(&s->index, &w)) {
        if (w.found_len == len) return &s->entries[w.value];
    }
    return NULL;
}

void hn_names_mark(hn_names *s, const char *name, size_t len, uint8_t marks) {
    hn_name_entry *e = entry_of(s, name, len);
    if (e) e->marks |= marks;
}

int32_t hn_names_get(const hn_names *s, const char *name, size_t len) {
    const hn_name_entry *e = entry_of(s, name, len);
    return e ? e->id : -1;
}

/* A name may have a part that is not marked in its middle: templates make some of a message's role. */
static bool is_marked(const uint8_t *mark, size_t n) {
    return !mark || (mark[0] && mark[n - 1]);
}

/* The longest name at the start of text that may be matched. */
static const hn_name_entry *longest_at(const hn_names *s, const char *text, size_t len, bool special, const uint8_t *mark) {
    const hn_name_entry *longest = NULL;
    hn_prefix_walk w;
    hn_prefix_walk_begin(&s->index, &w, text, len);
    while (hn_prefix_walk_next(&s->index, &w)) {
        const hn_name_entry *e = &s->entries[w.value];
        if (!(e->marks & HN_NAME_SPECIAL) || (special && is_marked(mark, e->name.len))) longest = e;
    }
    return longest;
}

static bool is_alone(const char *text, size_t from, size_t to, size_t len) {
    return !hn_word_at_end(text, from) && !hn_word_at_start(text + to, len - to);
}

bool hn_names_find(const hn_names *s, const char *text, size_t at, size_t len, bool special, const uint8_t *mark, hn_name_match *match) {
    size_t start = at;
    if (!s->pairs) return false;
    while (at < len) {
        unsigned second = at + 1 < len ? (unsigned char)text[at + 1] : 0;
        unsigned pair = (unsigned)(unsigned char)text[at] << 8 | second;
        bool maybe = s->pairs[pair / 32] >> pair % 32 & 1;
        const hn_name_entry *e = maybe ? longest_at(s, text + at, len - at, special, mark ? mark + at : NULL) : NULL;
        if (!e) {
            at++;
            continue;
        }
        size_t to = at + e->name.len;
        if ((e->marks & HN_NAME_SINGLE_WORD) && !is_alone(text, at, to, len)) {
            at = to;
            continue;
        }
        *match = (hn_name_match){at, to, e->id};
        if (e->marks & HN_NAME_EAT_LEFT) match->from -= hn_spaces_at_end(text + start, at - start);
        if (e->marks & HN_NAME_EAT_RIGHT) match->to += hn_spaces_at_start(text + to, len - to);
        return true;
    }
    return false;
}
