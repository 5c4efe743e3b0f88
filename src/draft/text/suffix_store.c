/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_store.c - which texts are stored and which are dropped. See suffix_store.h; counting: suffix_tree.c. */
#include "draft/text/suffix_store.h"

#include <string.h>

#include "base/mem.h"

bool hn_suffix_store_init(hn_suffix_store *s, int window, size_t bytes, int max_texts) {
    memset(s, 0, sizeof *s);
    hn_suffix_init(&s->tree, window, hn_suffix_capacity(bytes));
    s->max_texts = max_texts;
    s->text = hn_zalloc((size_t)max_texts, sizeof *s->text);
    return s->text != NULL;
}

void hn_suffix_store_fini(hn_suffix_store *s) {
    hn_suffix_fini(&s->tree);
    hn_free(s->text);
}

void hn_suffix_store_clear(hn_suffix_store *s) {
    hn_suffix_fini(&s->tree);
    s->first = s->n = 0;
}

static hn_suffix_text *text_at(const hn_suffix_store *s, int i) {
    return &s->text[(s->first + i) % s->max_texts];
}

static void text_remove(hn_suffix_store *s, hn_suffix_text *x) {
    if (!x->gone) hn_suffix_remove(&s->tree, x->start, x->start + x->n, x->start + x->n);
    x->gone = true;
}

static void oldest_drop(hn_suffix_store *s) {
    hn_suffix_text *x = text_at(s, 0);
    text_remove(s, x);
    hn_suffix_release(&s->tree, x->start + x->n);
    s->first = (s->first + 1) % s->max_texts;
    s->n--;
}

/* Whether the shorter of x and the text from `start` on, n tokens of it, is a prefix of the longer. */
static bool text_overlaps(const hn_suffix_store *s, const hn_suffix_text *x, const hn_suffix_tree *text, uint32_t start,
                          uint32_t n) {
    for (uint32_t i = 0; i < n && i < x->n; i++)
        if (hn_suffix_token(&s->tree, x->start + i) != hn_suffix_token(text, start + i)) return false;
    return true;
}

static bool tokens_enter(hn_suffix_tree *t, const hn_suffix_tree *text, uint32_t start) {
    hn_suffix_break(t);
    const uint32_t old = t->end;
    for (; start != text->end; start++)
        if (!hn_suffix_put(t, &(int32_t){hn_suffix_token(text, start)}, 1)) goto undo;
    if (hn_suffix_count(t)) return true;
undo:
    hn_suffix_cut(t, old);
    return false;
}

void hn_suffix_store_add(hn_suffix_store *s, const hn_suffix_tree *text) {
    hn_suffix_tree *t = &s->tree;
    uint32_t n = text->end - text->head, start = text->head;
    if (n > t->max_tokens) {
        start += n - t->max_tokens;
        n = t->max_tokens;
    }
    if (n == 0 || s->max_texts == 0) return;
    for (int i = 0; i < s->n; i++)
        if (text_at(s, i)->n >= n && text_overlaps(s, text_at(s, i), text, start, n)) return;
    while (s->n == s->max_texts || n > t->max_tokens - (t->end - t->head)) oldest_drop(s);
    const uint32_t at = t->end;
    if (!tokens_enter(t, text, start)) return;
    /* Only now: labels must not refer to removed tokens, and they refer to the last occurrence of a string. */
    for (int i = 0; i < s->n; i++)
        if (text_overlaps(s, text_at(s, i), text, start, n)) text_remove(s, text_at(s, i));
    *text_at(s, s->n++) = (hn_suffix_text){at, n, false};
    while (text_at(s, 0)->gone) oldest_drop(s);
}
