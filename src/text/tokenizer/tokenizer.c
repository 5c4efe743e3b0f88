/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.c - text to ids: extracts the tokens that are matched by name and normalises the text between them.
 *
 * The steps: hn_tokenizer_encode → fragments between names → normalizer → fragments between names that are matched in
 * normalised text → words and ids (encoder.c). vocabulary.c builds the tables; ids to text: detok.c.
 */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer/encoder.h"

/* Of vocabularies of characters only if what is unknown falls back to bytes: else one token may stand for any number. */
static size_t longest_of(const hn_tokenizer *t) {
    size_t longest = 0;
    if (t->spelling != HN_SPELL_BYTES && !t->byte_fallback) return 0;
    for (int32_t i = 0; i < t->vocab; i++)
        if (t->pieces[i].len > longest) longest = t->pieces[i].len;
    return longest;
}

hunch_status hn_tokenizer_open(hn_tokenizer **out, const hn_source *src, hunch_error *err) {
    bool found = false;
    *out = NULL;
    hn_tokenizer *t = hn_zalloc(1, sizeof *t);
    if (!t) return hn_fail_memory(err, "the tokenizer", sizeof *t);
    hunch_status s = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_tokenizer_from_gguf(t, src, &found, err)
                                                               : hn_tokenizer_from_hf(t, src, &found, err);
    /* Errors of the source itself already name the file. */
    if (s == HUNCH_REFUSED && err && !strstr(err->message, hn_source_path(src)))
        hn_error_prefix(err, "%s", hn_source_path(src));
    if (!s && found) {
        t->longest = longest_of(t);
        *out = t;
    } else {
        hn_tokenizer_close(&t);
    }
    return s;
}

void hn_tokenizer_close(hn_tokenizer **out) {
    hn_tokenizer *t = *out;
    if (!t) return;
    hn_free(t->pieces);
    hn_free(t->shown);
    hn_free(t->kinds);
    hn_free(t->marks);
    hn_free(t->bytes);
    hn_free(t->shown_bytes);
    hn_free(t->loose);
    hn_token_map_fini(&t->map);
    hn_names_fini(&t->names);
    hn_names_fini(&t->normal_names);
    hn_bpe_fini(&t->merges);
    hn_unigram_fini(&t->unigram);
    hn_normalizer_close(&t->normalizer);
    hn_pretok_close(&t->pretok);
    hn_free(t);
    *out = NULL;
}

int hn_tokenizer_vocab(const hn_tokenizer *t) {
    return t->vocab;
}

int32_t hn_tokenizer_bos(const hn_tokenizer *t) {
    return t->bos;
}

int32_t hn_tokenizer_eos(const hn_tokenizer *t) {
    return t->eos;
}

bool hn_tokenizer_adds_bos(const hn_tokenizer *t) {
    return t->front.n > 0 && t->front.ids[0] == t->bos;
}

static bool is_token(const hn_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->vocab;
}

bool hn_tokenizer_is_end(const hn_tokenizer *t, int32_t id) {
    return is_token(t, id) && (t->marks[id] & HN_MARK_END);
}

bool hn_tokenizer_is_special(const hn_tokenizer *t, int32_t id) {
    return is_token(t, id) && (t->kinds[id] == HN_TOKEN_CONTROL || t->kinds[id] == HN_TOKEN_UNKNOWN);
}

bool hn_tokenizer_is_padding(const hn_tokenizer *t, int32_t id) {
    return !is_token(t, id) || !t->pieces[id].len || t->kinds[id] == HN_TOKEN_UNUSED;
}

const char *hn_tokenizer_piece(const hn_tokenizer *t, int32_t id, size_t *len) {
    if (!is_token(t, id)) return NULL;
    const hn_piece *p = t->shown ? &t->shown[id] : &t->pieces[id];
    if (len) *len = p->len;
    return p->bytes;
}

/* ---- encoding ---- */

typedef hunch_status fragment_fn(hn_encoder *e, const char *text, const uint8_t *mark, size_t len, bool first, bool special,
                                 hunch_error *err);

/* Puts the ids of names, and calls `fragment` for the text between them. mark: hn_names_find. */
static hunch_status encode_between(hn_encoder *e, const hn_names *names, const char *text, const uint8_t *mark, size_t len, bool first,
                                   bool special, fragment_fn *fragment, hunch_error *err) {
    hn_name_match m;
    hunch_status s = HUNCH_OK;
    size_t at = 0;
    for (; !s && hn_names_find(names, text, at, len, special, mark, &m); at = m.to) {
        s = fragment(e, text + at, mark ? mark + at : NULL, m.from - at, first && at == 0, special, err);
        if (!s) s = hn_encoder_put(e, m.id, err);
    }
    return s ? s : fragment(e, text + at, mark ? mark + at : NULL, len - at, first && at == 0, special, err);
}

/* A fragment_fn. */
static hunch_status encode_normal(hn_encoder *e, const char *text, const uint8_t *mark, size_t len, bool first, bool special,
                                  hunch_error *err) {
    (void)mark;
    (void)special;
    return hn_encoder_piece(e, text, len, first, err);
}

/* A fragment_fn. Normalised text has no marks any more: special names are in it only if all of it is marked. */
static hunch_status encode_raw(hn_encoder *e, const char *text, const uint8_t *mark, size_t len, bool first, bool special,
                               hunch_error *err) {
    const hn_tokenizer *t = e->t;
    hn_normal_text normal = {.bytes = text, .len = len};
    hunch_status s = len && t->normalizer ? hn_normalize(t->normalizer, e->normal, text, len, &normal, err) : HUNCH_OK;
    if (s) return s;
    first = first && !normal.lost_start;
    special = special && !(mark && memchr(mark, 0, len));
    return encode_between(e, &t->normal_names, normal.bytes, NULL, normal.len, first, special, encode_normal, err);
}

static hunch_status put_added(hn_encoder *e, const hn_added *added, bool wanted, hunch_error *err) {
    hunch_status s = HUNCH_OK;
    for (size_t i = 0; i < added->n && wanted && !s; i++) s = hn_encoder_put(e, added->ids[i], err);
    return s;
}

/* A text of a template may have the token that is added before texts already. */
static void drop_second(const hn_encoder *e, int32_t *ids, size_t *n) {
    const hn_tokenizer *t = e->t;
    if (t->front.n != 1 || t->back.n != 0 || *n < 2 || ids[1] != ids[0]) return;
    memmove(ids, ids + 1, --*n * sizeof *ids);
}

static hunch_status encode(const hn_tokenizer *t, const char *text, const uint8_t *mark, size_t len, int flags, size_t most,
                           int32_t **ids, size_t *n, hunch_error *err) {
    *ids = NULL;
    *n = 0;
    if (len > INT32_MAX)
        return hn_fail(err, HUNCH_USAGE, "a text of %zu bytes, at most %d can be tokenized", len, INT32_MAX);
    size_t valid = hn_utf8_check(text, len);
    if (valid < len) return hn_fail(err, HUNCH_USAGE, "the text is not valid UTF-8 at byte %zu", valid);
    hn_encoder e;
    bool add = flags & HUNCH_TEXT_ADD_SPECIAL, special = flags & HUNCH_TEXT_PARSE_SPECIAL;
    hunch_status s = hn_encoder_init(&e, t, len, err);
    e.most = most == SIZE_MAX ? most : most + 1; /* one may be dropped below */
    if (!s) s = put_added(&e, &t->front, add, err);
    if (!s) s = encode_between(&e, &t->names, text, mark, len, true, special, encode_raw, err);
    if (!s) s = put_added(&e, &t->back, add, err);
    hn_encoder_fini(&e);
    if (e.over) {
        hn_free(e.ids);
        *n = e.over - 1;
        return HUNCH_OK;
    }
    if (!s) {
        *ids = e.ids;
        *n = e.n;
        if ((flags & HUNCH_TEXT_RENDERED) == HUNCH_TEXT_RENDERED) drop_second(&e, *ids, n);
        if (*n > most) hn_free(*ids), *ids = NULL;
    } else {
        hn_free(e.ids);
    }
    return s;
}

/* A mark for each byte of the text; NULL: no memory. */
static uint8_t *marks_of(const hunch_piece *pieces, size_t n, size_t len) {
    uint8_t *mark = hn_zalloc(len + 1, 1);
    for (size_t i = 0, at = 0; mark && i < n; at += pieces[i++].len)
        if (pieces[i].special) memset(mark + at, 1, pieces[i].len);
    return mark;
}

static bool covers(const hunch_piece *pieces, size_t n, size_t len) {
    size_t at = 0;
    for (size_t i = 0; i < n && pieces[i].len <= len - at; i++) at += pieces[i].len;
    return at == len;
}

static hunch_status encode_pieces(const hn_tokenizer *t, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                  int flags, size_t most, int32_t **ids, size_t *n, hunch_error *err) {
    *ids = NULL;
    *n = 0;
    if (!covers(pieces, n_pieces, len)) return hn_fail(err, HUNCH_USAGE, "pieces of a text of %zu bytes: expected as many in all", len);
    uint8_t *mark = marks_of(pieces, n_pieces, len);
    if (!mark) return hn_fail_memory(err, "a text's pieces", len);
    const hunch_status s = encode(t, text, mark, len, flags, most, ids, n, err);
    hn_free(mark);
    return s;
}

hunch_status hn_tokenizer_encode_at_most(const hn_tokenizer *t, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                         int flags, size_t most, int32_t **ids, size_t *n, hunch_error *err) {
    return pieces ? encode_pieces(t, text, len, pieces, n_pieces, flags, most, ids, n, err)
                  : encode(t, text, NULL, len, flags, most, ids, n, err);
}

hunch_status hn_tokenizer_encode_pieces(const hn_tokenizer *t, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                        int flags, int32_t **ids, size_t *n, hunch_error *err) {
    return encode_pieces(t, text, len, pieces, n_pieces, flags, SIZE_MAX, ids, n, err);
}

hunch_status hn_tokenizer_encode(const hn_tokenizer *t, const char *text, size_t len, int flags, int32_t **ids, size_t *n,
                                 hunch_error *err) {
    return encode(t, text, NULL, len, flags, SIZE_MAX, ids, n, err);
}
