/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_trie.c - see ngram_trie.h. */
#include "draft/shape/ngram_trie.h"

#include <stddef.h>
#include <string.h>

#include "base/hash.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file is read as it lies there"
#endif

uint64_t hn_trie_tokenizer(const hn_tokenizer *t) {
    uint64_t h = 0;
    for (int32_t id = 0; id < hn_tokenizer_vocab(t); id++) {
        size_t len = 0;
        const char *piece = hn_tokenizer_is_padding(t, id) ? NULL : hn_tokenizer_piece(t, id, &len);
        if (piece) h = hn_bytes_hash(piece, len, h ^ (uint64_t)id * 0x9E3779B97F4A7C15u);
    }
    return h;
}

uint64_t hn_trie_check(const hn_trie_header *h) {
    return hn_bytes_hash(h, offsetof(hn_trie_header, check), 0);
}

/* ---- open ------------------------------------------------------------------------------------------------------------------ */

static hunch_status fail_trie(const char *path, const char *what, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: %s, expected a trie of n-grams that hunch train trie has written", path, what);
}

/* Bytes of the whole file; SIZE_MAX: impossible sizes. */
static size_t file_size(const hn_trie_header *h) {
    if (h->vocab >= INT32_MAX || h->pairs >= UINT32_MAX || h->triples >= UINT32_MAX) return SIZE_MAX;
    return sizeof *h + (size_t)(h->vocab + 1) * sizeof(hn_trie_single) + (size_t)(h->pairs + 1) * sizeof(hn_trie_pair) +
           (size_t)h->triples * sizeof(hn_trie_triple);
}

static hunch_status read_head(hn_trie *t, const char *path, const hn_tokenizer *tokenizer, hunch_error *err) {
    if (t->map.size < sizeof t->head) return fail_trie(path, "has no room for a header", err);
    hunch_status st = hn_map_read(&t->map, path, 0, sizeof t->head, &t->head, err);
    if (st) return st;
    if (memcmp(t->head.magic, HN_TRIE_MAGIC, sizeof t->head.magic) != 0) return fail_trie(path, "begins with other bytes", err);
    if (t->head.version != HN_TRIE_VERSION || t->head.order != HN_TRIE_ORDER)
        return hn_fail(err, HUNCH_REFUSED, "%s: a trie of version %u and order %u, expected %d and %d", path, t->head.version,
                       t->head.order, HN_TRIE_VERSION, HN_TRIE_ORDER);
    if (t->head.check != hn_trie_check(&t->head)) return fail_trie(path, "has a damaged header", err);
    if (file_size(&t->head) != t->map.size)
        return hn_fail(err, HUNCH_REFUSED, "%s: has %zu bytes, expected the %zu of its header: it was cut off or damaged", path,
                       t->map.size, file_size(&t->head));
    if (t->head.tokenizer != hn_trie_tokenizer(tokenizer) || t->head.vocab > (uint64_t)hn_tokenizer_vocab(tokenizer))
        return hn_fail(err, HUNCH_REFUSED, "%s: a trie of another tokenizer's tokens, expected one built with this model", path);
    return HUNCH_OK;
}

hunch_status hn_trie_open(hn_trie *t, const char *path, const hn_tokenizer *tokenizer, hunch_error *err) {
    *t = (hn_trie){0};
    hunch_status st = hn_map_open(&t->map, path, err);
    if (!st) st = read_head(t, path, tokenizer, err);
    if (st) {
        hn_trie_close(t);
        return st;
    }
    const unsigned char *at = t->map.data + sizeof t->head;
    t->single = (const hn_trie_single *)(const void *)at;
    at += (t->head.vocab + 1) * sizeof(hn_trie_single);
    t->pair = (const hn_trie_pair *)(const void *)at;
    at += (t->head.pairs + 1) * sizeof(hn_trie_pair);
    t->triple = (const hn_trie_triple *)(const void *)at;
    return HUNCH_OK;
}

void hn_trie_close(hn_trie *t) {
    hn_map_close(&t->map);
    *t = (hn_trie){0};
}

/* ---- queries --------------------------------------------------------------------------------------------------------------- */

/* Entries [first, end) of a part, each of which begins with its token. */
typedef struct range {
    const unsigned char *entry;
    size_t size, first, end;
} range;

/* From the index in one entry to that in the next one, of `most` in all. */
static range range_of(const void *entry, size_t size, uint32_t first, uint32_t end, uint64_t most) {
    const range none = {entry, size, 0, 0};
    return first <= end && end <= most ? (range){entry, size, first, end} : none;
}

static uint32_t token_at(const range *r, size_t i) {
    uint32_t token;
    memcpy(&token, r->entry + i * r->size, sizeof token);
    return token;
}

/* The token's entry; SIZE_MAX: there is none. */
static size_t find(const range *r, int32_t token) {
    size_t low = r->first, high = r->end;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (token_at(r, middle) < (uint32_t)token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->end && token_at(r, low) == (uint32_t)token ? low : SIZE_MAX;
}

static range pairs_of(const hn_trie *t, int32_t token) {
    const bool known = token >= 0 && (uint64_t)token < t->head.vocab;
    return known ? range_of(t->pair, sizeof *t->pair, t->single[token].first, t->single[token + 1].first, t->head.pairs)
                 : range_of(t->pair, sizeof *t->pair, 0, 0, 0);
}

static float share(uint32_t part, uint32_t whole) {
    return whole == 0 ? 0 : part >= whole ? 1 : (float)part / (float)whole;
}

void hn_trie_query(const hn_trie *t, const int32_t *context, int n_context, const int32_t *token, int n, float *p) {
    const int32_t last = n_context > 0 ? context[n_context - 1] : -1, before = n_context > 1 ? context[n_context - 2] : -1;
    const range behind_one = pairs_of(t, last), begins = pairs_of(t, before);
    const size_t pair = find(&begins, last);
    const range behind_two = pair == SIZE_MAX
                                 ? range_of(t->triple, sizeof *t->triple, 0, 0, 0)
                                 : range_of(t->triple, sizeof *t->triple, t->pair[pair].first, t->pair[pair + 1].first, t->head.triples);
    for (int i = 0; i < n; i++) {
        size_t at = find(&behind_two, token[i]);
        p[i] = 0;
        if (at != SIZE_MAX) {
            p[i] = share(t->triple[at].count, t->pair[pair].count);
            continue;
        }
        at = find(&behind_one, token[i]);
        if (at != SIZE_MAX) p[i] = share(t->pair[at].count, t->single[last].count);
    }
}
