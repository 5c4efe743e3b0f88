/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.c - builds the tables of a tokenizer from tokens, kinds and merges, independent of their file.
 *
 * tokenizer.c encodes with them; tokenizer_gguf.c and tokenizer_hf.c read them from files.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/normal/byte_letters.h"
#include "text/normal/space_mark.h"
#include "text/tokenizer/tokenizer_private.h"

hunch_status hn_vocab_init(hn_tokenizer *t, size_t n, size_t total, hunch_error *err) {
    if (n == 0 || n > HN_MAX_VOCAB) {
        return hn_fail(err, HUNCH_REFUSED, "a vocabulary of %zu tokens, expected 1 to %d", n, HN_MAX_VOCAB);
    }
    size_t bytes;
    if (!hn_add_size(total, n, &bytes)) return hn_fail_memory(err, "the vocabulary", total);
    t->pieces = hn_zalloc(n, sizeof *t->pieces);
    t->kinds = hn_alloc(n);
    t->marks = hn_zalloc(n, 1);
    t->bytes = hn_alloc(bytes);
    t->cap_bytes = bytes;
    if (!t->pieces || !t->kinds || !t->marks || !t->bytes) return hn_fail_memory(err, "the vocabulary", bytes);
    memset(t->kinds, HN_TOKEN_UNUSED, n);
    for (size_t i = 0; i < n; i++) t->pieces[i].bytes = "";
    t->vocab = (int32_t)n;
    t->bos = t->eos = t->unknown = -1;
    return HUNCH_OK;
}

/* Decodes the spelling of a plain token to bytes. out has room for len. */
static size_t decode_spelling(const hn_tokenizer *t, const char *text, size_t len, char *out) {
    size_t n;
    if (t->spelling == HN_SPELL_MARKS) return hn_marks_to_spaces(text, len, out);
    if (t->spelling == HN_SPELL_BYTES && hn_letters_to_bytes(text, len, out, &n)) return n;
    memcpy(out, text, len); /* some files spell added tokens verbatim */
    return len;
}

int hn_vocab_byte_value(const char *text, size_t len) {
    char digits[3] = {0};
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    memcpy(digits, text + 3, 2);
    if (strspn(digits, "0123456789abcdefABCDEF") != 2) return -1;
    return (int)strtol(digits, NULL, 16);
}

/* As decode_spelling, but names of tokens are not decoded. */
static size_t decode_token(const hn_tokenizer *t, hn_token_kind kind, const char *text, size_t len, char *out) {
    bool plain = kind == HN_TOKEN_NORMAL || kind == HN_TOKEN_UNUSED;
    if (plain || (kind == HN_TOKEN_USER && t->spelling == HN_SPELL_MARKS)) return decode_spelling(t, text, len, out);
    memcpy(out, text, len);
    return len;
}

bool hn_vocab_is_spelled(const hn_tokenizer *t, int32_t id, const char *text, size_t len) {
    char out[HN_MAX_TOKEN_BYTES];
    if (len > sizeof out) return false;
    size_t n = decode_token(t, t->kinds[id], text, len, out);
    return n == t->pieces[id].len && memcmp(out, t->pieces[id].bytes, n) == 0;
}

hunch_status hn_vocab_put(hn_tokenizer *t, int32_t id, hn_token_kind kind, const char *text, size_t len,
                          hunch_error *err) {
    if (len > HN_MAX_TOKEN_BYTES) {
        return hn_fail(err, HUNCH_REFUSED, "token %d has %zu bytes, at most %d are read", id, len, HN_MAX_TOKEN_BYTES);
    }
    if (len >= t->cap_bytes - t->n_bytes) {
        return hn_fail(err, HUNCH_REFUSED, "token %d has %zu bytes, more than the vocabulary has left",
                       id, len);
    }
    char *out = t->bytes + t->n_bytes;
    size_t n = 1;
    int byte = kind == HN_TOKEN_BYTE ? hn_vocab_byte_value(text, len) : 0;
    if (byte < 0) {
        return hn_fail(err, HUNCH_REFUSED,
                       "token %d is marked as a byte but spelled \"%.*s\", expected <0x00> to <0xFF>", id,
                       len < 40 ? (int)len : 40, text);
    }
    if (kind == HN_TOKEN_BYTE)
        out[0] = (char)byte;
    else
        n = decode_token(t, kind, text, len, out);
    out[n] = '\0';
    t->n_bytes += n + 1;
    t->pieces[id] = (hn_piece){out, (uint32_t)n};
    t->kinds[id] = (uint8_t)kind;
    return HUNCH_OK;
}

static bool is_plain(const hn_tokenizer *t, int32_t id) {
    return t->pieces[id].len && (t->kinds[id] == HN_TOKEN_NORMAL || t->kinds[id] == HN_TOKEN_UNUSED);
}

/* ---- names ---- */

hunch_status hn_vocab_name_by_kind(hn_tokenizer *t, hunch_error *err) {
    bool ok = true;
    for (int32_t id = 0; id < t->vocab && ok; id++) {
        hn_piece p = t->pieces[id];
        hn_token_kind kind = t->kinds[id];
        if (kind == HN_TOKEN_USER)
            ok = hn_names_add(&t->names, p.bytes, p.len, id, 0);
        else if (kind == HN_TOKEN_CONTROL || kind == HN_TOKEN_UNKNOWN)
            ok = hn_names_add(&t->names, p.bytes, p.len, id, HN_NAME_SPECIAL);
    }
    return ok && hn_names_finish(&t->names) ? HUNCH_OK : hn_fail_memory(err, "the names of tokens", 0);
}

/* A plain or user token as a file spells it: "Ġa" of byte letters, "▁a" of marks. bytes: room for HN_MAX_TOKEN_BYTES. */
static int32_t spelled(const hn_tokenizer *t, const char *text, size_t len, char *bytes, size_t *n) {
    *n = 0;
    if (len > HN_MAX_TOKEN_BYTES) return -1;
    *n = decode_spelling(t, text, len, bytes);
    return hn_token_map_get(&t->map, bytes, *n);
}

int32_t hn_vocab_find_named(const hn_tokenizer *t, const char *name, size_t len) {
    char bytes[HN_MAX_TOKEN_BYTES];
    size_t n;
    int32_t id = hn_names_get(&t->names, name, len);
    if (id < 0) id = hn_names_get(&t->normal_names, name, len);
    if (id >= 0) return id;
    id = spelled(t, name, len, bytes, &n);
    return id < 0 ? hn_token_map_get(&t->map, name, len) : id;
}

/* ---- tokens by their bytes ---- */

/* Records the bytes before a space inside the token. */
static void note_inner_spaces(hn_tokenizer *t, hn_piece p) {
    for (uint32_t i = 1; i < p.len; i++) {
        if (p.bytes[i] == ' ' && p.bytes[i - 1] != ' ') t->inner_space[(unsigned char)p.bytes[i - 1]] = true;
    }
}

static void index_symbols(hn_tokenizer *t) {
    memset(t->byte_token, -1, sizeof t->byte_token);
    memset(t->ascii_token, -1, sizeof t->ascii_token);
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        int32_t id = hn_token_map_get(&t->map, &c, 1);
        if (t->spelling == HN_SPELL_BYTES)
            t->byte_token[b] = id;
        else if (b < 128)
            t->ascii_token[b] = id;
    }
    for (int32_t id = 0; id < t->vocab; id++) {
        if (t->spelling != HN_SPELL_BYTES && t->kinds[id] == HN_TOKEN_BYTE)
            t->byte_token[(unsigned char)t->pieces[id].bytes[0]] = id;
        if (is_plain(t, id)) note_inner_spaces(t, t->pieces[id]);
    }
}

hunch_status hn_vocab_finish(hn_tokenizer *t, hunch_error *err) {
    if (!hn_token_map_init(&t->map, (size_t)t->vocab)) return hn_fail_memory(err, "the vocabulary", 0);
    for (int32_t id = 0; id < t->vocab; id++) {
        if (is_plain(t, id)) hn_token_map_put(&t->map, t->pieces[id], id);
    }
    for (int32_t id = 0; id < t->vocab; id++) {
        bool listed = t->kinds[id] == HN_TOKEN_USER && !(t->marks[id] & HN_MARK_NAME);
        if (t->pieces[id].len && listed) hn_token_map_put(&t->map, t->pieces[id], id);
    }
    index_symbols(t);
    return HUNCH_OK;
}

static int compare_points(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int32_t hn_vocab_symbol(const hn_tokenizer *t, const char *s, int len, uint32_t cp) {
    if (cp < 128 && t->ascii_token[cp] >= 0) return t->ascii_token[cp];
    int32_t id = hn_token_map_get(&t->map, s, (size_t)len);
    if (id >= 0 || !t->n_loose) return id;
    const uint32_t *found = bsearch(&cp, t->loose, t->n_loose, sizeof cp, compare_points);
    return found ? t->vocab + (int32_t)(found - t->loose) : -1;
}

/* ---- merges ---- */

/* True if both parts together spell a control token. */
static bool is_control(const hn_tokenizer *t, const char *left, size_t n_left, const char *right, size_t n_right) {
    char both[2 * HN_MAX_TOKEN_BYTES];
    if (n_left + n_right > sizeof both) return false;
    memcpy(both, left, n_left);
    memcpy(both + n_left, right, n_right);
    int32_t id = hn_vocab_find_named(t, both, n_left + n_right);
    return hn_tokenizer_is_special(t, id);
}

hunch_status hn_vocab_add_merge(hn_tokenizer *t, const char *left, size_t n_left, const char *right, size_t n_right,
                                uint32_t rank, const char *where, hunch_error *err) {
    char both[2 * HN_MAX_TOKEN_BYTES];
    size_t n, m;
    int32_t a = spelled(t, left, n_left, both, &n), b = spelled(t, right, n_right, both + n, &m);
    int32_t id = a >= 0 && b >= 0 ? hn_token_map_get(&t->map, both, n + m) : -1;
    if (id < 0 && (is_control(t, left, n_left, right, n_right) || is_control(t, left, n_left, "", 0) ||
                   is_control(t, right, n_right, "", 0)))
        return HUNCH_OK;
    if (id < 0) {
        return hn_fail(err, HUNCH_REFUSED, "%s: \"%.*s\" and \"%.*s\": %s not in the vocabulary", where,
                       n_left < 40 ? (int)n_left : 40, left, n_right < 40 ? (int)n_right : 40, right,
                       a < 0   ? "the first is"
                       : b < 0 ? "the second is"
                               : "what they make is");
    }
    hn_bpe_put(&t->merges, a, b, rank, id);
    return HUNCH_OK;
}

hunch_status hn_vocab_add_merge_line(hn_tokenizer *t, const char *line, size_t len, uint32_t rank, const char *where,
                                     hunch_error *err) {
    const char *space = len > 1 ? memchr(line + 1, ' ', len - 1) : NULL;
    if (!space) return hn_fail(err, HUNCH_REFUSED, "%s: expected two tokens with a space between them", where);
    size_t n = (size_t)(space - line);
    return hn_vocab_add_merge(t, line, n, space + 1, len - n - 1, rank, where, err);
}

enum { CODE_POINTS = 0x110000 };

/* Collects characters that are not tokens themselves but part of one. */
static bool collect_loose(hn_tokenizer *t) {
    unsigned char *seen = hn_zalloc(CODE_POINTS / 8, 1); /* a bit each */
    if (!seen) return false;
    for (int32_t id = 0; id < t->vocab; id++) {
        hn_piece p = t->pieces[id];
        uint32_t cp;
        if (!is_plain(t, id)) continue;
        for (uint32_t i = 0, n; i < p.len && (n = (uint32_t)hn_utf8_decode(p.bytes + i, p.len - i, &cp)) > 0; i += n) {
            if (hn_vocab_symbol(t, p.bytes + i, (int)n, cp) < 0) seen[cp / 8] |= (unsigned char)(1 << cp % 8);
        }
    }
    bool ok = true;
    for (uint32_t cp = 0; cp < CODE_POINTS && ok; cp++) {
        if (!(seen[cp / 8] >> cp % 8 & 1)) continue;
        ok = hn_grow((void **)&t->loose, &t->cap_loose, t->n_loose + 1, sizeof *t->loose);
        if (ok) t->loose[t->n_loose++] = cp;
    }
    hn_free(seen);
    return ok;
}

/* Symbol of a part of a token: another plain token, or a single character. */
static int32_t part_symbol(const hn_tokenizer *t, const char *s, uint32_t len) {
    uint32_t cp;
    if (hn_utf8_decode(s, len, &cp) == (int)len) return hn_vocab_symbol(t, s, (int)len, cp);
    int32_t id = hn_token_map_get(&t->map, s, len);
    return id >= 0 && is_plain(t, id) ? id : -1;
}

typedef struct merge_list {
    hn_merge *at;
    size_t n, cap;
} merge_list;

/* Adds every pair of symbols that makes the token. False: no memory. */
static bool add_pairs(const hn_tokenizer *t, int32_t id, uint32_t rank, merge_list *list) {
    hn_piece p = t->pieces[id];
    uint32_t cp;
    if (!is_plain(t, id) || hn_token_map_get(&t->map, p.bytes, p.len) != id) return true;
    for (uint32_t i = 1; i < p.len; i++) {
        if (((unsigned char)p.bytes[i] & 0xC0) == 0x80) continue;
        hn_token_map_prefetch(&t->map, p.bytes, i);
        hn_token_map_prefetch(&t->map, p.bytes + i, p.len - i);
    }
    for (uint32_t i = 0; i < p.len;) {
        int step = hn_utf8_decode(p.bytes + i, p.len - i, &cp);
        if (step == 0 || (i += (uint32_t)step) == p.len) break;
        int32_t left = part_symbol(t, p.bytes, i), right = left < 0 ? -1 : part_symbol(t, p.bytes + i, p.len - i);
        if (right < 0) continue;
        if (!hn_grow((void **)&list->at, &list->cap, list->n + 1, sizeof *list->at)) return false;
        list->at[list->n++] = (hn_merge){(uint64_t)(uint32_t)left << 32 | (uint32_t)right, rank, id};
    }
    return true;
}

static int compare_scores(const void *a, const void *b, void *scores) {
    const double *s = scores;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (s[x] != s[y]) return s[x] > s[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

/* Pairs of all tokens, those of higher scores first; equal scores share a rank: then the leftmost pair merges first. */
static bool list_pairs(const hn_tokenizer *t, const double *scores, merge_list *list) {
    int32_t *order = hn_alloc((size_t)t->vocab * sizeof *order);
    bool ok = order != NULL;
    uint32_t rank = 0;
    for (int32_t id = 0; ok && id < t->vocab; id++) order[id] = id;
    if (ok) qsort_r(order, (size_t)t->vocab, sizeof *order, compare_scores, (void *)(uintptr_t)scores);
    for (int32_t i = 0; ok && i < t->vocab; i++) {
        if (i && scores[order[i]] != scores[order[i - 1]]) rank++;
        ok = add_pairs(t, order[i], rank, list);
    }
    hn_free(order);
    return ok;
}

hunch_status hn_vocab_merges_from_scores(hn_tokenizer *t, const double *scores, hunch_error *err) {
    merge_list list = {0};
    bool ok = collect_loose(t) && list_pairs(t, scores, &list) && hn_bpe_init(&t->merges, list.n);
    for (size_t i = 0; ok && i < list.n; i++) {
        const hn_merge *m = &list.at[i];
        hn_bpe_put(&t->merges, (int32_t)(m->pair >> 32), (int32_t)(uint32_t)m->pair, m->rank, m->id);
    }
    hn_free(list.at);
    return ok ? HUNCH_OK : hn_fail_memory(err, "the merges", list.n * sizeof(hn_merge));
}

hunch_status hn_vocab_unigram(hn_tokenizer *t, const double *scores, hunch_error *err) {
    t->is_unigram = true;
    bool ok = hn_unigram_init(&t->unigram, (size_t)t->vocab);
    for (int32_t id = 0; ok && id < t->vocab; id++) {
        if (isnan(scores[id])) continue;
        bool spoken = is_plain(t, id) || t->kinds[id] == HN_TOKEN_USER;
        hn_unigram_put(&t->unigram, spoken ? t->pieces[id] : (hn_piece){"", 0}, id, scores[id]);
    }
    return ok && hn_unigram_finish(&t->unigram) ? HUNCH_OK : hn_fail_memory(err, "the scores", 0);
}
