/* SPDX-License-Identifier: Apache-2.0 */
/* detok.c - ids to text, token by token: holds back incomplete UTF-8 sequences, replaces invalid ones. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer/tokenizer_private.h"

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

void hn_detok_init(hn_detok *d) {
    memset(d, 0, sizeof *d);
}

/* Bytes at s that one U+FFFD replaces: the longest prefix of a valid sequence, or one byte. */
static size_t invalid_length(const char *s, size_t len) {
    size_t n = 1;
    while (n < len && n < 3 && hn_utf8_complete(s, n) == 0 && hn_utf8_complete(s, n + 1) == 0) n++;
    return n;
}

/* Appends complete bytes, valid or not. text has room for three times as many. */
static size_t append_valid(char *text, const char *s, size_t len) {
    size_t n = 0;
    uint32_t cp;
    for (size_t i = 0; i < len;) {
        size_t step = (size_t)hn_utf8_decode(s + i, len - i, &cp);
        if (step) {
            memcpy(text + n, s + i, step);
            n += step;
        } else {
            memcpy(text + n, REPLACEMENT, 3);
            n += 3;
            step = invalid_length(s + i, len - i);
        }
        i += step;
    }
    return n;
}

static bool reserve(char **text, size_t len, size_t *cap, size_t bytes) {
    size_t need;
    return hn_mul_size(bytes, 3, &need) && hn_add_size(need, len, &need) && hn_add_size(need, 1, &need) &&
           hn_grow((void **)text, cap, need, 1);
}

static void finish(char *text, size_t *len, const char *s, size_t n) {
    *len += append_valid(text + *len, s, n);
    text[*len] = '\0';
}

/* Drops the spaces that encoding added before a text. */
static void drop_spaces(const hn_tokenizer *t, const char **piece, size_t *n) {
    for (int i = 0; i < t->drops && *n && **piece == ' '; i++) {
        (*piece)++;
        (*n)--;
    }
}

hunch_status hn_detok_push(hn_detok *d, const hn_tokenizer *t, int32_t id, char **text, size_t *len, size_t *cap,
                           hunch_error *err) {
    char joined[sizeof d->pending + 1 + HN_MAX_TOKEN_BYTES];
    size_t n = 0;
    const char *piece = !d->special && hn_tokenizer_is_special(t, id) ? NULL : hn_tokenizer_piece(t, id, &n);
    if (!reserve(text, *len, cap, n + sizeof d->pending)) return hn_fail_memory(err, "the text", *len + n);
    if (n == 0) { /* special, outside the vocabulary, or empty: pending bytes stay pending */
        (*text)[*len] = '\0';
        return HUNCH_OK;
    }
    if (!d->started) drop_spaces(t, &piece, &n);
    size_t before = (size_t)d->n_pending;
    memcpy(joined, d->pending, before);
    if (d->started && t->spaces_between) joined[before++] = ' ';
    memcpy(joined + before, piece, n);
    n += before;
    d->started = true;
    size_t complete = hn_utf8_complete(joined, n);
    d->n_pending = (int)(n - complete);
    memcpy(d->pending, joined + complete, n - complete);
    finish(*text, len, joined, complete);
    return HUNCH_OK;
}

hunch_status hn_detok_end(hn_detok *d, char **text, size_t *len, size_t *cap, hunch_error *err) {
    if (!reserve(text, *len, cap, sizeof d->pending)) return hn_fail_memory(err, "the text", *len);
    finish(*text, len, d->pending, (size_t)d->n_pending);
    d->n_pending = 0;
    return HUNCH_OK;
}
