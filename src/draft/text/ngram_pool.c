/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_pool.c - see ngram_pool.h. */
#include "draft/text/ngram_pool.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

static size_t of_key(const hn_ngram_pool *p) {
    return (size_t)p->each * (size_t)p->len;
}

static int32_t *tokens_at(const hn_ngram_pool *p, int key, int i) {
    return p->tokens + of_key(p) * (size_t)key + (size_t)i * (size_t)p->len;
}

bool hn_ngram_pool_open(hn_ngram_pool *p, int vocab, int len, int each, int keys) {
    assert(vocab >= 1 && len >= 1 && each >= 0 && keys >= 1);
    *p = (hn_ngram_pool){.len = len, .each = each, .keys = keys, .vocab = vocab};
    p->key_of = hn_alloc((size_t)vocab * sizeof *p->key_of);
    p->key = hn_zalloc((size_t)keys, sizeof *p->key);
    p->tokens = hn_zalloc((size_t)keys, (of_key(p) + 1) * sizeof *p->tokens);
    if (p->key_of && p->key && p->tokens) {
        hn_ngram_pool_clear(p);
        return true;
    }
    hn_ngram_pool_close(p);
    return false;
}

void hn_ngram_pool_close(hn_ngram_pool *p) {
    hn_free(p->key_of);
    hn_free(p->key);
    hn_free(p->tokens);
    *p = (hn_ngram_pool){0};
}

void hn_ngram_pool_clear(hn_ngram_pool *p) {
    memset(p->key_of, 0xff, (size_t)p->vocab * sizeof *p->key_of);
    p->n_keys = 0;
}

/* A free place, or that of the token whose newest n-gram is the oldest. */
static int key_make(hn_ngram_pool *p, int32_t token) {
    int at = p->n_keys;
    if (at < p->keys) {
        p->n_keys++;
    } else {
        at = 0;
        for (int i = 1; i < p->keys; i++)
            if (p->key[i].added < p->key[at].added) at = i;
        p->key_of[p->key[at].token] = -1;
    }
    p->key[at] = (hn_pool_key){token, 0, 0};
    p->key_of[token] = at;
    return at;
}

void hn_ngram_pool_add(hn_ngram_pool *p, int32_t first, const int32_t *rest) {
    const size_t bytes = (size_t)p->len * sizeof *rest;
    assert(first >= 0 && first < p->vocab);
    if (p->each == 0) return;
    const int at = p->key_of[first] >= 0 ? p->key_of[first] : key_make(p, first);
    hn_pool_key *k = &p->key[at];
    int gone = 0; /* the same one, or the oldest */
    while (gone < k->n && memcmp(tokens_at(p, at, gone), rest, bytes)) gone++;
    if (gone == k->n && k->n < p->each) {
        k->n++;
    } else {
        if (gone == k->n) gone = 0;
        memmove(tokens_at(p, at, gone), tokens_at(p, at, gone + 1), (size_t)(k->n - 1 - gone) * bytes);
    }
    memcpy(tokens_at(p, at, k->n - 1), rest, bytes);
    k->added = ++p->clock;
}

void hn_ngram_pool_text(hn_ngram_pool *p, const int32_t *text, int from, int n) {
    for (int i = from > 0 ? from : 0; i + p->len < n; i++) hn_ngram_pool_add(p, text[i], text + i + 1);
}

int hn_ngram_pool_of(const hn_ngram_pool *p, int32_t first) {
    assert(first >= 0 && first < p->vocab);
    return p->key_of[first] < 0 ? 0 : p->key[p->key_of[first]].n;
}

const int32_t *hn_ngram_pool_at(const hn_ngram_pool *p, int32_t first, int i) {
    assert(i >= 0 && i < hn_ngram_pool_of(p, first));
    return tokens_at(p, p->key_of[first], i);
}

size_t hn_ngram_pool_bytes(const hn_ngram_pool *p) {
    return (size_t)p->vocab * sizeof *p->key_of + (size_t)p->keys * (sizeof *p->key + (of_key(p) + 1) * sizeof *p->tokens);
}
