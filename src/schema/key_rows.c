/* SPDX-License-Identifier: Apache-2.0 */
/* key_rows.c - the rows of a family in their order, and their names. Reading: key_read.c; writing: key_write.c. */
#include "schema/key_rows.h"

#include <stdio.h>
#include <string.h>

#include "schema/key_order.h"

static bool same_field(const hn_key_row *a, const hn_key_row *b) {
    return a->of != HN_OF_NOTHING && a->of == b->of && a->at == b->at && (a->type == HN_KEY_LIST) == (b->type == HN_KEY_LIST);
}

static const hn_key_row *find_in(const hn_key_row *list, const hn_key_row *k) {
    for (; list->type != HN_KEY_END; list++)
        if (same_field(list, k)) return list;
    return NULL;
}

/* The row that is read and written at the place of this one; NULL: none, its field's row is elsewhere. */
static const hn_key_row *row_here(const hn_file_keys *s, int list, const hn_key_row *k) {
    const hn_key_row *here = k;
    for (int i = 0; i < list && !(k->how & HN_BEHIND); i++)
        if (find_in(s->list[i], k)) return NULL;
    for (int i = list + 1; i < HN_KEY_LISTS && s->list[i]; i++) {
        const hn_key_row *later = find_in(s->list[i], k);
        if (later && later->how & HN_BEHIND) return NULL;
        if (later) here = later;
    }
    return here;
}

const hn_key_row *hn_keys_next(const hn_file_keys *s, hn_keys_place *at) {
    while (at->list < HN_KEY_LISTS && s->list[at->list]) {
        const hn_key_row *k = &s->list[at->list][at->row++];
        const hn_key_row *here = k->type == HN_KEY_END ? NULL : row_here(s, at->list, k);
        if (here) return here;
        if (k->type == HN_KEY_END) *at = (hn_keys_place){at->list + 1, 0};
    }
    return NULL;
}

const hn_key_row *hn_keys_row(const hn_file_keys *s, hn_key_of of, size_t at) {
    const hn_key_row *found = NULL, wanted = {.of = of, .at = at, .type = HN_KEY_INT};
    for (int i = 0; i < HN_KEY_LISTS && s->list[i]; i++) {
        const hn_key_row *k = find_in(s->list[i], &wanted);
        if (k) found = k;
    }
    return found;
}

const char *hn_keys_word(const char *names, int i, char out[96]) {
    const char *p = names ? names : "";
    for (; i > 0 && *p; i--) p += strcspn(p, " ") + strspn(p + strcspn(p, " "), " ");
    if (!*p) return NULL;
    snprintf(out, 96, "%.*s", (int)strcspn(p, " "), p);
    return out;
}

bool hn_keys_reads(const hn_file_keys *s, hn_source_kind form, const char *name) {
    hn_keys_place at = {0, 0};
    char word[96];
    for (const hn_key_row *k; (k = hn_keys_next(s, &at));)
        for (int i = 0; !hn_keys_refuses(k) && hn_keys_word(form == HN_SOURCE_GGUF ? k->gguf : k->folder, i, word); i++)
            if (!strcmp(word, name)) return true;
    return false;
}
