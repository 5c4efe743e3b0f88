/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.c - text to ids: cuts out the tokens that are read by name, then words or texts, which bpe.c merges.
 *
 * The way of a text: encode() → fragments between named tokens → words (byte-level: pretokenizer.c; SentencePiece: at
 * spaces where no token crosses one) → symbols → merges → ids. Tables are built by vocabulary.c; ids to text: detok.c.
 */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer_private.h"

hunch_status hn_tokenizer_open(hn_tokenizer **out, const hn_source *src, hunch_error *err) {
    bool found = false;
    *out = NULL;
    hn_tokenizer *t = hn_zalloc(1, sizeof *t);
    if (!t) return hn_fail_memory(err, "the tokenizer", sizeof *t);
    hunch_status s = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_tokenizer_from_gguf(t, src, &found, err)
                                                               : hn_tokenizer_from_hf(t, src, &found, err);
    if (s == HUNCH_OK && found)
        *out = t;
    else
        hn_tokenizer_close(&t);
    return s;
}

void hn_tokenizer_close(hn_tokenizer **t) {
    if (!*t) return;
    hn_free((*t)->pieces);
    hn_free((*t)->kinds);
    hn_free((*t)->marks);
    hn_free((*t)->bytes);
    hn_free((*t)->loose);
    hn_free((*t)->lengths);
    hn_token_map_fini(&(*t)->map);
    hn_token_map_fini(&(*t)->named);
    hn_bpe_fini(&(*t)->merges);
    hn_pretok_close(&(*t)->pretok);
    hn_free(*t);
    *t = NULL;
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
    return t->adds_bos;
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
    if (len) *len = t->pieces[id].len;
    return t->pieces[id].bytes;
}

/* ---- encoding ---- */

enum { CACHE_SLOTS = 4096, CACHE_WORD = 19, CACHE_IDS = 10, CACHE_FROM = 2048 };

/* Words repeat: what the last ones became, by hash. A line of memory each. */
typedef struct cached_word {
    uint8_t len, n; /* n: 0 is free */
    char word[CACHE_WORD];
    int32_t ids[CACHE_IDS];
} cached_word;

typedef struct encoder {
    const hn_tokenizer *t;
    int32_t *ids;
    size_t n, cap;
    hn_bpe_work work;
    hn_pretok_work *pretok;
    cached_word *cache; /* NULL for a short text */
    const char *text;   /* whole, for messages */
    char *spaced;       /* SentencePiece: the fragment with its added space */
    size_t cap_spaced;
    bool was_unknown; /* the last id is an unknown one that the next joins */
} encoder;

static bool emit(encoder *e, int32_t id) {
    if (e->n == e->cap && !hn_grow((void **)&e->ids, &e->cap, e->n + 1, sizeof *e->ids)) return false;
    e->ids[e->n++] = id;
    e->was_unknown = false;
    return true;
}

static hunch_status fail_memory(hunch_error *err) {
    return hn_fail_memory(err, "token ids", 0);
}

/* A character without a token: its bytes, or the unknown token, once for a run of them if the model was made so. A
 * byte-level vocabulary that lacks a byte and names no unknown token leaves it out, as its makers' tokenizers do. */
static hunch_status emit_unknown(encoder *e, const char *s, size_t len, hunch_error *err) {
    const hn_tokenizer *t = e->t;
    bool bytes = t->byte_fallback;
    for (size_t i = 0; i < len && bytes; i++) bytes = t->byte_token[(unsigned char)s[i]] >= 0;
    if (!bytes && t->unknown < 0 && !t->sentencepiece) return HUNCH_OK;
    if (!bytes && t->unknown < 0) {
        return hn_fail(err, HUNCH_USAGE, "the model's vocabulary has no token for \"%.*s\"", (int)len, s);
    }
    if (!bytes && e->was_unknown && t->fuse_unknown) return HUNCH_OK;
    for (size_t i = 0; i < (bytes ? len : 1); i++) {
        if (!emit(e, bytes ? t->byte_token[(unsigned char)s[i]] : t->unknown)) return fail_memory(err);
    }
    e->was_unknown = !bytes;
    return HUNCH_OK;
}

/* The symbols that a word starts from; 0: no memory. */
static size_t symbols_of(encoder *e, const char *word, size_t len) {
    const hn_tokenizer *t = e->t;
    hn_bpe_work *w = &e->work;
    if (!hn_bpe_work_reserve(w, len)) return 0;
    if (!t->sentencepiece) {
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

static hunch_status merge_word(encoder *e, const char *word, size_t len, hunch_error *err) {
    size_t n = symbols_of(e, word, len);
    if (n == 0 || !hn_bpe_merge(&e->t->merges, &e->work, &n)) return fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        int32_t id = e->work.ids[i];
        size_t from = e->work.starts[i], to = i + 1 < n ? e->work.starts[i + 1] : len;
        if (is_token(e->t, id)) {
            if (!emit(e, id)) return fail_memory(err);
            continue;
        }
        hunch_status s = emit_unknown(e, word + from, to - from, err);
        if (s != HUNCH_OK) return s;
    }
    return HUNCH_OK;
}

static hunch_status encode_whole(encoder *e, const char *word, size_t len, bool *done, hunch_error *err) {
    const hn_tokenizer *t = e->t;
    int32_t id = t->ignore_merges ? hn_token_map_get(&t->map, word, len) : -1;
    *done = id >= 0;
    return id < 0 || emit(e, id) ? HUNCH_OK : fail_memory(err);
}

static hunch_status encode_new_word(encoder *e, const char *word, size_t len, hunch_error *err) {
    bool done;
    hunch_status s = encode_whole(e, word, len, &done, err);
    return s != HUNCH_OK || done ? s : merge_word(e, word, len, err);
}

/* A hn_word_fn. */
static hunch_status encode_word(void *user, const char *word, size_t len, hunch_error *err) {
    encoder *e = user;
    if (!e->cache || len > CACHE_WORD) return encode_new_word(e, word, len, err);
    cached_word *c = &e->cache[hn_bytes_hash(word, len, 0) % CACHE_SLOTS];
    if (c->n && c->len == len && memcmp(c->word, word, len) == 0) {
        if (!hn_grow((void **)&e->ids, &e->cap, e->n + c->n, sizeof *e->ids)) return fail_memory(err);
        memcpy(e->ids + e->n, c->ids, c->n * sizeof *c->ids);
        e->n += c->n;
        e->was_unknown = false;
        return HUNCH_OK;
    }
    size_t before = e->n;
    hunch_status s = encode_new_word(e, word, len, err);
    size_t n = e->n - before;
    /* An unknown token may have joined the one before the word, or be joined by the next: not a matter of the word. */
    bool clean = n > 0 && n <= CACHE_IDS;
    for (size_t i = 0; i < n && clean; i++) clean = e->ids[before + i] != e->t->unknown;
    if (s != HUNCH_OK || !clean) return s;
    c->len = (uint8_t)len;
    c->n = (uint8_t)n;
    memcpy(c->word, word, len);
    memcpy(c->ids, e->ids + before, n * sizeof *c->ids);
    return HUNCH_OK;
}

static hunch_status encode_words(encoder *e, const char *text, size_t len, hunch_error *err) {
    if (!e->t->sentencepiece) return hn_pretok_split(e->t->pretok, e->pretok, text, len, encode_word, e, err);
    hunch_status s = HUNCH_OK;
    for (size_t at = 0, end; at < len && s == HUNCH_OK; at = end) {
        for (end = at; end < len && text[end] == ' '; end++) {
        }
        const char *space = e->t->cut_at_spaces ? memchr(text + end, ' ', len - end) : NULL;
        end = space ? (size_t)(space - text) : len;
        s = encode_word(e, text + at, end - at, err);
    }
    return s;
}

/* SentencePiece's own view of a fragment: a space before it where the model wants one; U+2581 in a text is a space. */
static hunch_status encode_spaced(encoder *e, const char *text, size_t len, hunch_error *err) {
    const hn_tokenizer *t = e->t;
    bool add = t->prefix == HN_PREFIX_EACH || (t->prefix == HN_PREFIX_FIRST && text == e->text);
    if (add && t->prefix_unless_space && text[0] == ' ') add = false;
    if (!hn_grow((void **)&e->spaced, &e->cap_spaced, len + 1, 1)) return fail_memory(err);
    size_t n = 0;
    if (add) e->spaced[n++] = ' ';
    for (size_t i = 0; i < len;) {
        if (text[i] == '\xE2' && len - i >= 3 && memcmp(text + i, "\xE2\x96\x81", 3) == 0) {
            e->spaced[n++] = ' ';
            i += 3;
        } else {
            e->spaced[n++] = text[i++];
        }
    }
    return encode_words(e, e->spaced, n, err);
}

static bool is_space(char c) {
    return c == ' ' || (c >= 9 && c <= 13);
}

/* A named token that begins at s, the longest; -1: none. */
static int32_t named_at(const hn_tokenizer *t, const char *s, size_t len, bool special) {
    unsigned char first = (unsigned char)s[0];
    for (uint32_t i = t->lengths_from[first]; i < t->lengths_from[first + 1]; i++) {
        if (t->lengths[i] > len) continue;
        int32_t id = hn_token_map_get(&t->named, s, t->lengths[i]);
        if (id >= 0 && (special || t->kinds[id] == HN_TOKEN_USER)) return id;
    }
    return -1;
}

static hunch_status encode_fragment(encoder *e, const char *text, size_t len, hunch_error *err) {
    if (len == 0) return HUNCH_OK;
    return e->t->sentencepiece ? encode_spaced(e, text, len, err) : encode_words(e, text, len, err);
}

static hunch_status encode_text(encoder *e, size_t len, bool special, hunch_error *err) {
    const hn_tokenizer *t = e->t;
    size_t from = 0; /* of the fragment that is being passed */
    for (size_t at = 0; at < len;) {
        int32_t id = named_at(t, e->text + at, len - at, special);
        if (id < 0) {
            at++;
            continue;
        }
        size_t to = at;
        while ((t->marks[id] & HN_MARK_EAT_LEFT) && to > from && is_space(e->text[to - 1])) to--;
        hunch_status s = encode_fragment(e, e->text + from, to - from, err);
        if (s != HUNCH_OK) return s;
        if (!emit(e, id)) return fail_memory(err);
        at += t->pieces[id].len;
        while ((t->marks[id] & HN_MARK_EAT_RIGHT) && at < len && is_space(e->text[at])) at++;
        from = at;
    }
    return encode_fragment(e, e->text + from, len - from, err);
}

static hunch_status encoder_init(encoder *e, size_t len, hunch_error *err) {
    if (!hn_grow((void **)&e->ids, &e->cap, len / 4 + 4, sizeof *e->ids)) return fail_memory(err);
    if (len >= CACHE_FROM) {
        e->cache = hn_zalloc(CACHE_SLOTS, sizeof *e->cache);
        if (!e->cache) return fail_memory(err);
    }
    return e->t->sentencepiece ? HUNCH_OK : hn_pretok_work_open(&e->pretok, err);
}

hunch_status hn_tokenizer_encode(const hn_tokenizer *t, const char *text, size_t len, int flags, int32_t **ids,
                                 size_t *n, hunch_error *err) {
    *ids = NULL;
    *n = 0;
    if (len > INT32_MAX)
        return hn_fail(err, HUNCH_USAGE, "a text of %zu bytes, at most %d can be tokenized", len, INT32_MAX);
    size_t valid = hn_utf8_check(text, len);
    if (valid < len) return hn_fail(err, HUNCH_USAGE, "the text is not valid UTF-8 at byte %zu", valid);
    encoder e = {.t = t, .text = text};
    bool add = flags & HUNCH_TEXT_ADD_SPECIAL;
    hunch_status s = encoder_init(&e, len, err);
    if (s == HUNCH_OK && add && t->adds_bos && !emit(&e, t->bos)) s = fail_memory(err);
    if (s == HUNCH_OK) s = encode_text(&e, len, flags & HUNCH_TEXT_PARSE_SPECIAL, err);
    if (s == HUNCH_OK && add && t->adds_eos && !emit(&e, t->eos)) s = fail_memory(err);
    hn_bpe_work_fini(&e.work);
    hn_pretok_work_close(&e.pretok);
    hn_free(e.cache);
    hn_free(e.spaced);
    if (s == HUNCH_OK) {
        *ids = e.ids;
        *n = e.n;
    } else {
        hn_free(e.ids);
    }
    return s;
}
