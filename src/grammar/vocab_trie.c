/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_trie.c - sorts the tokens by their bytes, which is the depth-first order of their trie, and writes its nodes. */
#include "grammar/vocab_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

int hn_kind_of(unsigned char c) {
    static const char marks[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    if (c >= 'a' && c <= 'z') return HN_KIND_LOWER;
    if (c >= 'A' && c <= 'Z') return HN_KIND_UPPER;
    if (c >= '0' && c <= '9') return HN_KIND_DIGIT;
    if (c == ' ') return HN_KIND_SPACE;
    if (c == '\t') return HN_KIND_TAB;
    if (c == '\n') return HN_KIND_LINE;
    if (c == '\r') return HN_KIND_RETURN;
    if (c == 0x7F) return HN_KIND_DELETE;
    return c < ' ' ? HN_KIND_CONTROL : HN_KIND_MARKS + (int)(strchr(marks, c) - marks);
}

static uint64_t kinds_of(const char *bytes, size_t len, uint16_t *chars) {
    uint64_t kinds = 0;
    uint32_t cp;
    *chars = 0;
    for (size_t i = 0, n; i < len; i += n, ++*chars) {
        n = (size_t)hn_utf8_decode(bytes + i, len - i, &cp);
        if (!n) return HN_KIND(HN_KIND_BROKEN);
        kinds |= HN_KIND(cp < 0x80 ? hn_kind_of((unsigned char)cp) : HN_KIND_WIDE);
    }
    return kinds;
}

/* ---- order ---- */

typedef struct entry {
    const char *bytes;
    uint32_t len;
    int32_t id;
} entry;

static int compare_entries(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const int order = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);
    if (order) return order;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Tokens of a text into e, the others into the lists. */
static size_t tokens_split(hn_vocab_trie *v, entry *e) {
    const hn_tokenizer *t = v->tokenizer;
    size_t n = 0;
    for (int32_t id = 0; id < v->vocab; id++) {
        size_t len = 0;
        const char *bytes = hn_tokenizer_is_padding(t, id) ? NULL : hn_tokenizer_piece(t, id, &len);
        if (!bytes) continue;
        if (hn_tokenizer_is_end(t, id))
            v->ends[v->n_ends++] = id;
        else if (hn_tokenizer_is_special(t, id))
            v->controls[v->n_controls++] = id;
        else if (len > 0 && len < UINT16_MAX)
            e[n++] = (entry){bytes, (uint32_t)len, id};
    }
    return n;
}

/* ---- nodes ---- */

typedef struct growth {
    size_t path[UINT16_MAX]; /* the nodes of the last token's bytes */
    size_t depth;
} growth;

static bool put_node(hn_vocab_trie *v, growth *at, uint8_t byte) {
    if (!hn_grow((void **)&v->nodes, &v->cap_nodes, v->n_nodes + 1, sizeof *v->nodes)) return false;
    v->nodes[v->n_nodes] = (hn_trie_node){.token = (uint32_t)v->n_tokens, .depth = (uint16_t)at->depth, .byte = byte};
    at->path[at->depth++] = v->n_nodes++;
    return true;
}

static void close_nodes(hn_vocab_trie *v, growth *at, size_t depth) {
    while (at->depth > depth) v->nodes[at->path[--at->depth]].skip = (uint32_t)v->n_nodes;
}

static bool put_token(hn_vocab_trie *v, growth *at, const entry *e, const entry *last) {
    size_t common = 0;
    while (last && common < last->len && common < e->len && last->bytes[common] == e->bytes[common]) common++;
    close_nodes(v, at, common);
    while (at->depth < e->len)
        if (!put_node(v, at, (uint8_t)e->bytes[at->depth])) return false;
    v->nodes[at->path[at->depth - 1]].n_tokens++;
    v->kinds[v->n_tokens] = kinds_of(e->bytes, e->len, &v->chars[v->n_tokens]);
    v->tokens[v->n_tokens++] = e->id;
    if ((int)e->len > v->max_bytes) v->max_bytes = (int)e->len;
    return true;
}

/* Of each node what is below it: its tokens are a range. */
static bool sums_find(hn_vocab_trie *v) {
    v->below = hn_zalloc(v->n_nodes, sizeof *v->below);
    v->widest = hn_zalloc(v->n_nodes, sizeof *v->widest);
    if (!v->below || !v->widest) return false;
    for (size_t i = v->n_nodes; i-- > 0;) {
        const hn_trie_node *n = &v->nodes[i];
        for (uint32_t k = n->token; k < n->token + n->n_tokens; k++) {
            v->below[i] |= v->kinds[k];
            if (v->chars[k] > v->widest[i]) v->widest[i] = v->chars[k];
        }
        for (size_t j = i + 1; j < n->skip; j = v->nodes[j].skip) {
            v->below[i] |= v->below[j];
            if (v->widest[j] > v->widest[i]) v->widest[i] = v->widest[j];
        }
    }
    return true;
}

static int quotes_in(const entry *e) {
    int n = 0;
    for (uint32_t i = 0; i < e->len; i++) n += e->bytes[i] == '"';
    return n;
}

static bool quoted_find(hn_vocab_trie *v, const entry *e, size_t n) {
    v->quoted = hn_alloc(n * sizeof *v->quoted);
    if (!v->quoted) return false;
    for (int twice = 1; twice >= 0; twice--) {
        for (size_t i = 0; i < n; i++) {
            const int quotes = quotes_in(&e[i]);
            if (twice ? quotes > 1 : quotes == 1) v->quoted[v->n_quoted++] = e[i].id;
        }
        if (twice) v->n_quoted_twice = v->n_quoted;
    }
    v->n_marked = v->n_quoted;
    for (size_t i = 0; i < n; i++)
        if (!quotes_in(&e[i]) && (memchr(e[i].bytes, ',', e[i].len) || memchr(e[i].bytes, ']', e[i].len)))
            v->quoted[v->n_marked++] = e[i].id;
    return true;
}

static bool build(hn_vocab_trie *v, entry *e, growth *at) {
    const size_t n = tokens_split(v, e);
    if (!quoted_find(v, e, n)) return false;
    qsort(e, n, sizeof *e, compare_entries);
    for (size_t i = 0; i < n; i++)
        if (!put_token(v, at, &e[i], i ? &e[i - 1] : NULL)) return false;
    close_nodes(v, at, 0);
    return sums_find(v);
}

/* ---- inside of JSON strings ---- */

/* Copies the nodes that have other tokens at or below them. skip: of each node that is copied its place in the copy. */
static size_t beside_copy(const hn_vocab_trie *v, hn_trie_node *to, uint32_t *path) {
    size_t n = 0, depth = 0;
    for (size_t i = 0; i < v->n_nodes;) {
        const hn_trie_node *x = &v->nodes[i];
        while (depth > x->depth) to[path[--depth]].skip = (uint32_t)n;
        if (hn_vocab_covered(v, i, HN_KINDS_IN_STRING, UINT16_MAX)) {
            i = x->skip;
            continue;
        }
        path[depth++] = (uint32_t)n;
        to[n++] = *x;
        i++;
    }
    while (depth > 0) to[path[--depth]].skip = (uint32_t)n;
    return n;
}

static bool strings_find(hn_vocab_trie *v) {
    uint32_t *path = hn_alloc((size_t)(v->max_bytes + 1) * sizeof *path);
    hn_trie_node *all = hn_alloc(v->n_nodes * sizeof *all);
    v->in_string = hn_zalloc(((size_t)v->vocab + 63) / 64, sizeof *v->in_string);
    if (path && all && v->in_string) {
        v->n_beside = beside_copy(v, all, path);
        v->beside = hn_alloc(v->n_beside * sizeof *v->beside);
        if (v->beside && v->n_beside) memcpy(v->beside, all, v->n_beside * sizeof *v->beside);
        for (size_t i = 0; i < v->n_tokens; i++)
            if ((v->kinds[i] & ~HN_KINDS_IN_STRING) == 0) v->in_string[v->tokens[i] / 64] |= (uint64_t)1 << v->tokens[i] % 64;
    }
    hn_free(path);
    hn_free(all);
    return v->in_string && v->beside;
}

hunch_status hn_vocab_trie_open(hn_vocab_trie **out, const hn_tokenizer *t, int vocab, hunch_error *err) {
    *out = NULL;
    if (vocab < 1) return hn_fail(err, HUNCH_USAGE, "a vocabulary of %d tokens, expected 1 or more", vocab);
    hn_vocab_trie *v = hn_zalloc(1, sizeof *v);
    if (!v) return hn_fail_memory(err, "the vocabulary's trie", sizeof *v);
    const size_t n = (size_t)vocab;
    *v = (hn_vocab_trie){.tokenizer = t, .vocab = vocab, .max_bytes = 1};
    v->tokens = hn_alloc(n * sizeof *v->tokens);
    v->ends = hn_alloc(n * sizeof *v->ends);
    v->controls = hn_alloc(n * sizeof *v->controls);
    v->kinds = hn_alloc(n * sizeof *v->kinds);
    v->chars = hn_alloc(n * sizeof *v->chars);
    entry *e = hn_alloc(n * sizeof *e);
    growth *at = hn_zalloc(1, sizeof *at);
    const bool ok = v->tokens && v->ends && v->controls && v->kinds && v->chars && e && at && build(v, e, at) && strings_find(v);
    hn_free(e);
    hn_free(at);
    if (!ok) {
        hn_vocab_trie_close(&v);
        return hn_fail_memory(err, "the vocabulary's trie", n * sizeof(hn_trie_node));
    }
    *out = v;
    return HUNCH_OK;
}

void hn_vocab_trie_close(hn_vocab_trie **out) {
    hn_vocab_trie *v = *out;
    if (!v) return;
    hn_free(v->nodes);
    hn_free(v->below);
    hn_free(v->widest);
    hn_free(v->tokens);
    hn_free(v->kinds);
    hn_free(v->chars);
    hn_free(v->ends);
    hn_free(v->controls);
    hn_free(v->quoted);
    hn_free(v->in_string);
    hn_free(v->beside);
    hn_free(v);
    *out = NULL;
}

int32_t hn_vocab_control(const hn_vocab_trie *v, const char *name) {
    const size_t n = strlen(name);
    for (size_t i = 0; i < v->n_controls; i++) {
        size_t len = 0;
        const char *piece = hn_tokenizer_piece(v->tokenizer, v->controls[i], &len);
        if (len == n && memcmp(piece, name, n) == 0) return v->controls[i];
    }
    return -1;
}

