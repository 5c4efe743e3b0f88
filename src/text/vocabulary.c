/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.c - builds the tables of a tokenizer from tokens, kinds and merges, whatever file they came from.
 *
 * How a text is cut with them is tokenizer.c's matter; where they come from, tokenizer_gguf.c's and tokenizer_hf.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer_private.h"

static const char SPACE_MARK[] = "\xE2\x96\x81"; /* U+2581, SentencePiece's space */

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
    if (!t->pieces || !t->kinds || !t->marks || !t->bytes) return hn_fail_memory(err, "the vocabulary", bytes);
    memset(t->kinds, HN_TOKEN_UNUSED, n);
    for (size_t i = 0; i < n; i++) t->pieces[i].bytes = "";
    t->vocab = (int32_t)n;
    t->cap_bytes = bytes;
    t->bos = t->eos = t->unknown = -1;
    return HUNCH_OK;
}

/* GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes in order for U+0100, U+0101, … -1: not of it. */
static int byte_of_letter(uint32_t cp) {
    static const struct { uint32_t first, last; } plain[] = {{0x21, 0x7E}, {0xA1, 0xAC}, {0xAE, 0xFF}};
    for (int i = 0; i < 3; i++) {
        if (cp >= plain[i].first && cp <= plain[i].last) return (int)cp;
    }
    if (cp < 0x100 || cp > 0x143) return -1;
    uint32_t k = cp - 0x100; /* the k-th byte that is not plain: 0-20, 7F-A0, AD */
    if (k <= 0x20) return (int)k;
    return k < 0x43 ? (int)(k - 0x21 + 0x7F) : 0xAD;
}

/* Bytes of a spelling in GPT-2's alphabet; false if a character is not of it. out has room for len bytes. */
static bool decode_letters(const char *text, size_t len, char *out, size_t *n) {
    uint32_t cp;
    *n = 0;
    for (size_t i = 0; i < len;) {
        int step = hn_utf8_decode(text + i, len - i, &cp), byte = step ? byte_of_letter(cp) : -1;
        if (byte < 0) return false;
        out[(*n)++] = (char)byte;
        i += (size_t)step;
    }
    return true;
}

static size_t decode_marks(const char *text, size_t len, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        if (len - i >= 3 && memcmp(text + i, SPACE_MARK, 3) == 0) {
            out[n++] = ' ';
            i += 3;
        } else {
            out[n++] = text[i++];
        }
    }
    return n;
}

/* The bytes that a plain token's spelling stands for. out has room for len. */
static size_t decode_spelling(const hn_tokenizer *t, const char *text, size_t len, char *out) {
    size_t n;
    if (t->sentencepiece) return decode_marks(text, len, out);
    if (decode_letters(text, len, out, &n)) return n;
    memcpy(out, text, len); /* some files spell added tokens as they are */
    return len;
}

static int byte_token_value(const char *text, size_t len) {
    char digits[3] = {0};
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    memcpy(digits, text + 3, 2);
    if (strspn(digits, "0123456789abcdefABCDEF") != 2) return -1;
    return (int)strtol(digits, NULL, 16);
}

hunch_status hn_vocab_put(hn_tokenizer *t, int32_t id, hn_token_kind kind, const char *text, size_t len,
                          hunch_error *err) {
    if (len > HN_MAX_TOKEN_BYTES) {
        return hn_fail(err, HUNCH_REFUSED, "token %d has %zu bytes, at most %d are read", id, len, HN_MAX_TOKEN_BYTES);
    }
    char *out = t->bytes + t->n_bytes;
    size_t n = len;
    int byte = kind == HN_TOKEN_BYTE ? byte_token_value(text, len) : 0;
    if (byte < 0) {
        return hn_fail(err, HUNCH_REFUSED,
                       "token %d is marked as a byte but spelled \"%.*s\", expected <0x00> to <0xFF>", id,
                       len < 40 ? (int)len : 40, text);
    }
    if (kind == HN_TOKEN_BYTE) {
        out[0] = (char)byte;
        n = 1;
    } else if (kind == HN_TOKEN_NORMAL || kind == HN_TOKEN_UNUSED || (kind == HN_TOKEN_USER && t->sentencepiece)) {
        n = decode_spelling(t, text, len, out);
    } else {
        memcpy(out, text, len);
    }
    out[n] = '\0';
    t->n_bytes += n + 1;
    t->pieces[id] = (hn_piece){out, (uint32_t)n};
    t->kinds[id] = (uint8_t)kind;
    return HUNCH_OK;
}

static bool is_plain(const hn_tokenizer *t, int32_t id) {
    return t->pieces[id].len && (t->kinds[id] == HN_TOKEN_NORMAL || t->kinds[id] == HN_TOKEN_UNUSED);
}

static bool is_named(const hn_tokenizer *t, int32_t id) {
    uint8_t k = t->kinds[id];
    return t->pieces[id].len && (k == HN_TOKEN_CONTROL || k == HN_TOKEN_USER || k == HN_TOKEN_UNKNOWN);
}

/* ---- names that are looked for in a text ---- */

typedef struct name_length {
    unsigned char first;
    uint16_t len;
} name_length;

static int compare_lengths(const void *a, const void *b) {
    const name_length *x = a, *y = b;
    return x->first != y->first ? x->first - y->first : y->len - x->len;
}

static bool index_names(hn_tokenizer *t) {
    size_t n = 0, kept = 0;
    for (int32_t id = 0; id < t->vocab; id++) n += is_named(t, id);
    name_length *all = hn_alloc(n * sizeof *all);
    t->lengths = hn_alloc(n * sizeof *t->lengths);
    if (!all || !t->lengths || !hn_token_map_init(&t->named, n)) {
        hn_free(all);
        return false;
    }
    n = 0;
    for (int32_t id = 0; id < t->vocab; id++) {
        if (!is_named(t, id)) continue;
        hn_token_map_put(&t->named, t->pieces[id], id);
        all[n++] = (name_length){(unsigned char)t->pieces[id].bytes[0], (uint16_t)t->pieces[id].len};
    }
    qsort(all, n, sizeof *all, compare_lengths);
    unsigned first = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && compare_lengths(&all[i], &all[i - 1]) == 0) continue;
        while (first <= all[i].first) t->lengths_from[first++] = (uint32_t)kept;
        t->lengths[kept++] = all[i].len;
    }
    while (first <= 256) t->lengths_from[first++] = (uint32_t)kept;
    hn_free(all);
    return true;
}

int32_t hn_vocab_find_named(const hn_tokenizer *t, const char *name, size_t len) {
    return hn_token_map_get(&t->named, name, len);
}

void hn_vocab_mark_known_ends(hn_tokenizer *t) {
    static const char *const ends[] = {
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<end_of_turn>",
        "<turn|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<EOT>",
        "<end_of_utterance>",
        "<｜end▁of▁sentence｜>",
    };
    /* gpt-oss ends each message with <|end|> and the turn with <|return|> or <|call|>. */
    bool harmony = hn_vocab_find_named(t, "<|return|>", 10) >= 0 && hn_vocab_find_named(t, "<|call|>", 8) >= 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int32_t id = hn_vocab_find_named(t, ends[i], strlen(ends[i]));
        if (id < 0 || t->kinds[id] != HN_TOKEN_CONTROL || (harmony && strcmp(ends[i], "<|end|>") == 0)) continue;
        t->marks[id] |= HN_MARK_END;
    }
}

/* ---- tokens by their bytes ---- */

static bool has_inner_space(hn_piece p) {
    for (uint32_t i = 1; i < p.len; i++) {
        if (p.bytes[i] == ' ' && p.bytes[i - 1] != ' ') return true;
    }
    return false;
}

static void index_symbols(hn_tokenizer *t) {
    memset(t->byte_token, -1, sizeof t->byte_token);
    memset(t->ascii_token, -1, sizeof t->ascii_token);
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        int32_t id = hn_token_map_get(&t->map, &c, 1);
        if (!t->sentencepiece)
            t->byte_token[b] = id;
        else if (b < 128)
            t->ascii_token[b] = id;
    }
    t->cut_at_spaces = t->sentencepiece;
    for (int32_t id = 0; id < t->vocab; id++) {
        if (t->sentencepiece && t->kinds[id] == HN_TOKEN_BYTE)
            t->byte_token[(unsigned char)t->pieces[id].bytes[0]] = id;
        if (has_inner_space(t->pieces[id]) && is_plain(t, id)) t->cut_at_spaces = false;
    }
}

hunch_status hn_vocab_finish(hn_tokenizer *t, hunch_error *err) {
    if (!hn_token_map_init(&t->map, (size_t)t->vocab) || !index_names(t))
        return hn_fail_memory(err, "the vocabulary", 0);
    for (int32_t id = 0; id < t->vocab; id++) {
        if (is_plain(t, id)) hn_token_map_put(&t->map, t->pieces[id], id);
    }
    for (int32_t id = 0; id < t->vocab; id++) {
        if (t->pieces[id].len && t->kinds[id] == HN_TOKEN_USER) hn_token_map_put(&t->map, t->pieces[id], id);
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

static int32_t spelled(const hn_tokenizer *t, const char *text, size_t len, char *bytes, size_t *n) {
    *n = 0;
    if (len > HN_MAX_TOKEN_BYTES) return -1;
    *n = decode_spelling(t, text, len, bytes);
    return hn_token_map_get(&t->map, bytes, *n);
}

hunch_status hn_vocab_add_merge(hn_tokenizer *t, const char *left, size_t n_left, const char *right, size_t n_right,
                                uint32_t rank, const char *where, hunch_error *err) {
    char both[2 * HN_MAX_TOKEN_BYTES];
    size_t n, m;
    int32_t a = spelled(t, left, n_left, both, &n), b = spelled(t, right, n_right, both + n, &m);
    int32_t id = a >= 0 && b >= 0 ? hn_token_map_get(&t->map, both, n + m) : -1;
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

/* Characters that are no token themselves but part of one. */
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

/* Every way to make a token of two symbols; counts them, and puts them if `put`. */
static size_t pairs_of(hn_tokenizer *t, int32_t id, uint32_t rank, bool put) {
    hn_piece p = t->pieces[id];
    size_t n = 0;
    uint32_t cp;
    if (!is_plain(t, id) || hn_token_map_get(&t->map, p.bytes, p.len) != id) return 0;
    for (uint32_t i = 0; i < p.len;) {
        int step = hn_utf8_decode(p.bytes + i, p.len - i, &cp);
        if (step == 0 || (i += (uint32_t)step) == p.len) break;
        int32_t left = part_symbol(t, p.bytes, i), right = left < 0 ? -1 : part_symbol(t, p.bytes + i, p.len - i);
        if (right < 0) continue;
        if (put) hn_bpe_put(&t->merges, left, right, rank, id);
        n++;
    }
    return n;
}

static int compare_scores(const void *a, const void *b, void *scores) {
    const double *s = scores;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (s[x] != s[y]) return s[x] > s[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

hunch_status hn_vocab_merges_from_scores(hn_tokenizer *t, const double *scores, hunch_error *err) {
    int32_t *order = hn_alloc((size_t)t->vocab * sizeof *order);
    size_t pairs = 0;
    bool ok = order && collect_loose(t);
    for (int32_t id = 0; ok && id < t->vocab; id++) {
        order[id] = id;
        pairs += pairs_of(t, id, 0, false);
    }
    ok = ok && hn_bpe_init(&t->merges, pairs);
    if (ok) qsort_r(order, (size_t)t->vocab, sizeof *order, compare_scores, (void *)scores);
    uint32_t rank = 0;
    for (int32_t i = 0; ok && i < t->vocab; i++) { /* equal scores share a rank: then the leftmost pair merges first */
        if (i && scores[order[i]] != scores[order[i - 1]]) rank++;
        pairs_of(t, order[i], rank, true);
    }
    hn_free(order);
    return ok ? HUNCH_OK : hn_fail_memory(err, "the merges", pairs * sizeof(hn_merge));
}
