/* SPDX-License-Identifier: Apache-2.0 */
/* encoder.c - pieces of text to ids: words by the pre-tokenizer (or cut at spaces that no token spans), each word to
 * symbols and merges (bpe.c) or to the best path (unigram.c), and a cache of recent words.
 */
#include "text/tokenizer/encoder.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/normal/space_mark.h"

enum { CACHE_SLOTS = 4096, CACHE_WORD = 19, CACHE_IDS = 10, CACHE_FROM = 2048 };

/* A recent word and its ids, in a table by hash: words repeat. One cache line each. */
typedef struct hn_cached_word {
    uint8_t len, n; /* n: 0 is free */
    char word[CACHE_WORD];
    int32_t ids[CACHE_IDS];
} hn_cached_word;

static hunch_status fail_memory(hunch_error *err) {
    return hn_fail_memory(err, "token ids", 0);
}

hunch_status hn_encoder_init(hn_encoder *e, const hn_tokenizer *t, size_t len, hunch_error *err) {
    *e = (hn_encoder){.t = t, .most = SIZE_MAX};
    if (!hn_grow((void **)&e->ids, &e->cap, len / 4 + 4, sizeof *e->ids)) return fail_memory(err);
    if (len >= CACHE_FROM) {
        e->cache = hn_zalloc(CACHE_SLOTS, sizeof *e->cache);
        if (!e->cache) return fail_memory(err);
    }
    hunch_status s = t->normalizer ? hn_normal_work_open(&e->normal, err) : HUNCH_OK;
    if (!s && t->pretok) s = hn_pretok_work_open(&e->pretok, err);
    if (!s && t->pretok) hn_pretok_work_begin(e->pretok, len);
    return s;
}

void hn_encoder_fini(hn_encoder *e) {
    hn_bpe_work_fini(&e->work);
    hn_unigram_work_fini(&e->paths);
    hn_pretok_work_close(&e->pretok);
    hn_normal_work_close(&e->normal);
    hn_free(e->cache);
    hn_free(e->spaced);
}

/* The tokens of a word, or fewer. Bytes without a token may be one unknown token together, or none. */
static size_t least_tokens(const hn_tokenizer *t, const char *word, size_t len) {
    size_t known = 0;
    if (!t->longest || len <= t->longest) return 0;
    for (size_t i = 0; i < len; i++) known += t->byte_token[(unsigned char)word[i]] >= 0;
    return (known + t->longest - 1) / t->longest;
}

/* Whether there are more ids than are wanted, with those of the word that follows. */
static hunch_status room_check(hn_encoder *e, const char *word, size_t len, hunch_error *err) {
    if (e->most == SIZE_MAX) return HUNCH_OK;
    const size_t least = e->n + least_tokens(e->t, word, len);
    if (least <= e->most) return HUNCH_OK;
    e->over = least;
    return hn_fail(err, HUNCH_USAGE, "the text has at least %zu tokens", least);
}

static bool emit(hn_encoder *e, int32_t id) {
    if (e->n == e->cap && !hn_grow((void **)&e->ids, &e->cap, e->n + 1, sizeof *e->ids)) return false;
    e->ids[e->n++] = id;
    e->was_unknown = false;
    return true;
}

hunch_status hn_encoder_put(hn_encoder *e, int32_t id, hunch_error *err) {
    return emit(e, id) ? room_check(e, NULL, 0, err) : fail_memory(err);
}

/* ---- characters without a token ---- */

/* A character without a token: its bytes, or the unknown token, once for a run of them if the tokenizer fuses them. With a
 * byte-level vocabulary that lacks a byte and has no unknown token, the byte is dropped, as in the models' own tokenizers. */
static hunch_status emit_unknown(hn_encoder *e, const char *s, size_t len, hunch_error *err) {
    const hn_tokenizer *t = e->t;
    if (t->spelling == HN_SPELL_MARKS && len == 1 && *s == ' ') { /* SentencePiece encodes a space as U+2581 */
        s = HN_SPACE_MARK;
        len = HN_SPACE_MARK_BYTES;
    }
    bool bytes = t->byte_fallback;
    for (size_t i = 0; i < len && bytes; i++) bytes = t->byte_token[(unsigned char)s[i]] >= 0;
    if (!bytes && t->unknown < 0 && t->spelling == HN_SPELL_BYTES) return HUNCH_OK;
    if (!bytes && t->unknown < 0) {
        return hn_fail(err, HUNCH_USAGE, "the model's vocabulary has no token for \"%.*s\"", len < 40 ? (int)len : 40,
                       s);
    }
    if (!bytes && e->was_unknown && t->fuse_unknown) return HUNCH_OK;
    for (size_t i = 0; i < (bytes ? len : 1); i++) {
        if (!emit(e, bytes ? t->byte_token[(unsigned char)s[i]] : t->unknown)) return fail_memory(err);
    }
    e->was_unknown = !bytes;
    return HUNCH_OK;
}

/* ---- merges ---- */

/* The symbols that a word starts from; 0: no memory. */
static size_t symbols_of(hn_encoder *e, const char *word, size_t len) {
    const hn_tokenizer *t = e->t;
    hn_bpe_work *w = &e->work;
    if (!hn_bpe_work_reserve(w, len)) return 0;
    if (t->spelling == HN_SPELL_BYTES) {
        for (size_t i = 0; i < len; i++) {
            w->ids[i] = t->byte_token[(unsigned char)word[i]];
            w->starts[i] = (uint32_t)i;
        }
        return len;
    }
    size_t n = 0;
    uint32_t cp;
    for (size_t i = 0; i < len;) {
        int step = hn_utf8_decode(word + i, len - i, &cp);
        w->ids[n] = hn_vocab_symbol(t, word + i, step, cp);
        w->starts[n++] = (uint32_t)i;
        i += (size_t)step;
    }
    return n;
}

static hunch_status merge_word(hn_encoder *e, const char *word, size_t len, hunch_error *err) {
    size_t n = symbols_of(e, word, len);
    if (n == 0 || !hn_bpe_merge(&e->t->merges, &e->work, &n)) return fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        int32_t id = e->work.ids[i];
        size_t from = e->work.starts[i], to = i + 1 < n ? e->work.starts[i + 1] : len;
        if (id >= 0 && id < e->t->vocab) {
            if (!emit(e, id)) return fail_memory(err);
            continue;
        }
        hunch_status s = emit_unknown(e, word + from, to - from, err);
        if (s) return s;
    }
    return HUNCH_OK;
}

/* ---- Unigram ---- */

/* A run of characters without a piece: it is a token, or one unknown. */
static hunch_status emit_run(hn_encoder *e, const char *s, size_t len, hunch_error *err) {
    int32_t id = hn_token_map_get(&e->t->map, s, len);
    if (id < 0) return emit_unknown(e, s, len, err);
    return emit(e, id) ? HUNCH_OK : fail_memory(err);
}

static hunch_status cut_word(hn_encoder *e, const char *word, size_t len, hunch_error *err) {
    size_t n, from = 0, end;
    hn_unigram_work *w = &e->paths;
    if (!hn_unigram_cut(&e->t->unigram, w, word, len, &n)) return fail_memory(err);
    hunch_status s = HUNCH_OK;
    for (size_t i = 0; i < n && !s; i++, from = end) {
        end = w->ends[i];
        int32_t id = w->nodes[end].id;
        for (; id < 0 && i + 1 < n && w->nodes[w->ends[i + 1]].id < 0; i++) end = w->ends[i + 1];
        if (id < 0)
            s = emit_run(e, word + from, end - from, err);
        else if (!emit(e, id))
            s = fail_memory(err);
    }
    return s;
}

/* ---- words ---- */

static hunch_status encode_new_word(hn_encoder *e, const char *word, size_t len, hunch_error *err) {
    const hn_tokenizer *t = e->t;
    if (t->is_unigram) return cut_word(e, word, len, err);
    bool whole = t->ignore_merges || (t->whole_lines && word[0] == '\n');
    int32_t id = whole ? hn_token_map_get(&t->map, word, len) : -1;
    if (id < 0) return merge_word(e, word, len, err);
    return emit(e, id) ? HUNCH_OK : fail_memory(err);
}

static hunch_status emit_cached(hn_encoder *e, const hn_cached_word *c, hunch_error *err) {
    if (!hn_grow((void **)&e->ids, &e->cap, e->n + c->n, sizeof *e->ids)) return fail_memory(err);
    memcpy(e->ids + e->n, c->ids, c->n * sizeof *c->ids);
    e->n += c->n;
    e->was_unknown = false;
    return HUNCH_OK;
}

static hunch_status encode_word(hn_encoder *e, const char *word, size_t len, hunch_error *err) {
    const hunch_status room = room_check(e, word, len, err);
    if (room) return room;
    if (!e->cache || len > CACHE_WORD) return encode_new_word(e, word, len, err);
    hn_cached_word *c = &e->cache[hn_bytes_hash(word, len, 0) % CACHE_SLOTS];
    if (c->n && c->len == len && memcmp(c->word, word, len) == 0) return emit_cached(e, c, err);
    const size_t before = e->n;
    const hunch_status s = encode_new_word(e, word, len, err);
    size_t n = e->n - before;
    /* Not cached: an unknown token, which may be fused with that of a neighbouring word. */
    bool clean = n > 0 && n <= CACHE_IDS;
    for (size_t i = 0; i < n && clean; i++) clean = e->ids[before + i] != e->t->unknown;
    if (s || !clean) return s;
    c->len = (uint8_t)len;
    c->n = (uint8_t)n;
    memcpy(c->word, word, len);
    memcpy(c->ids, e->ids + before, n * sizeof *c->ids);
    return HUNCH_OK;
}

/* Ends before the next space that no token has after the character before it; leading spaces belong to the word. */
static size_t word_end(const hn_tokenizer *t, const char *text, size_t at, size_t len) {
    while (at < len && text[at] == ' ') at++;
    while (at < len) {
        const char *space = memchr(text + at, ' ', len - at);
        if (!space) return len;
        at = (size_t)(space - text);
        if (!t->inner_space[(unsigned char)text[at - 1]]) return at;
        while (at < len && text[at] == ' ') at++;
    }
    return len;
}

/* Encodes text with spaces for U+2581. */
static hunch_status encode_spaced(hn_encoder *e, const char *text, size_t len, hunch_error *err) {
    hunch_status s = HUNCH_OK;
    if (e->t->ignore_merges) return encode_word(e, text, len, err); /* the whole text may be a token */
    for (size_t at = 0, end; at < len && !s; at = end) {
        end = word_end(e->t, text, at, len);
        s = encode_word(e, text + at, end - at, err);
    }
    return s;
}

/* Encodes as SentencePiece does: U+2581 in the text is a space, and, if add, one is put before it. */
static hunch_status encode_marked(hn_encoder *e, const char *text, size_t len, bool add, hunch_error *err) {
    if (!hn_grow((void **)&e->spaced, &e->cap_spaced, len + 1, 1)) return fail_memory(err);
    if (add) e->spaced[0] = ' ';
    size_t n = add + hn_marks_to_spaces(text, len, e->spaced + add);
    return encode_spaced(e, e->spaced, n, err);
}

/* A hn_word_fn: a word of the pre-tokenizer. */
static hunch_status put_word(void *user, const char *word, size_t len, hunch_error *err) {
    hn_encoder *e = user;
    e->was_unknown = false;
    return e->t->spelling == HN_SPELL_MARKS ? encode_marked(e, word, len, false, err) : encode_word(e, word, len, err);
}

hunch_status hn_encoder_piece(hn_encoder *e, const char *text, size_t len, bool first, hunch_error *err) {
    const hn_tokenizer *t = e->t;
    if (len == 0) return HUNCH_OK;
    if (t->pretok) return hn_pretok_split(t->pretok, e->pretok, text, len, first, put_word, e, err);
    bool add = t->prefix == HN_SPACE_PREFIX_EACH || (t->prefix == HN_SPACE_PREFIX_FIRST && first);
    if (add && t->prefix_unless_space && (text[0] == ' ' || hn_is_space_mark(text, len))) add = false;
    return t->spelling == HN_SPELL_MARKS ? encode_marked(e, text, len, add, err) : encode_word(e, text, len, err);
}
