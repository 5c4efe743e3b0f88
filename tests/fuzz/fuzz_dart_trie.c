/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dart_trie.c - a trie of DART's release: the bytes as a file, and again as the nodes of a file whose header and
 * sizes are right. What is counted from it is written and can be opened, and no token is counted behind others more
 * often than these are themselves. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "draft/shape/ngram_trie.h"
#include "fuzz.h"
#include "fuzz_tiny.h"
#include "train/data/dart_trie.h"

enum { ROOM = 16, NODE_BYTES = 4, MOST_NODES = 4000 }; /* so little room that counts are put aside and merged */

static hn_tokenizer *of;
static int vocab;

static void open_tokenizer(void) {
    hn_source *src = NULL;
    FUZZ_MUST(hn_source_open(&src, fuzz_tiny_model(5), NULL) == HUNCH_OK);
    FUZZ_MUST(hn_tokenizer_open(&of, src, NULL) == HUNCH_OK && of);
    hn_source_close(&src);
    vocab = hn_tokenizer_vocab(of);
}

/* Tokens rise, and what follows is counted no more often than what it follows. */
static void check_pair(const hn_trie *t, const hn_trie_pair *pair) {
    uint64_t sum = 0;
    FUZZ_MUST(pair->first <= pair[1].first && pair[1].first <= t->head.triples);
    for (uint32_t i = pair->first; i < pair[1].first; i++) {
        FUZZ_MUST(i == pair->first || t->triple[i - 1].token < t->triple[i].token);
        sum += t->triple[i].count;
    }
    FUZZ_MUST(sum <= pair->count || pair->count == UINT32_MAX);
}

static void check_single(const hn_trie *t, const hn_trie_single *single) {
    uint64_t sum = 0;
    FUZZ_MUST(single->first <= single[1].first && single[1].first <= t->head.pairs);
    for (uint32_t i = single->first; i < single[1].first; i++) {
        FUZZ_MUST(i == single->first || t->pair[i - 1].token < t->pair[i].token);
        check_pair(t, &t->pair[i]);
        sum += t->pair[i].count;
    }
    FUZZ_MUST(sum <= single->count || single->count == UINT32_MAX);
}

static void check_file(const char *path) {
    hn_trie t;
    hunch_error err = {0};
    FUZZ_MUST(hn_trie_open(&t, path, of, &err) == HUNCH_OK && t.head.tokens > 0 && t.head.vocab == (uint64_t)vocab);
    for (uint64_t i = 0; i < t.head.vocab; i++) check_single(&t, &t.single[i]);
    hn_trie_close(&t);
}

static void count(const char *path) {
    static const volatile int go_on = 0;
    char to[200];
    hn_trie_build *b = NULL;
    hunch_error err = {0};
    snprintf(to, sizeof to, "%s/counted.trie", fuzz_folder());
    FUZZ_MUST(hn_trie_build_open(&b, to, vocab, hn_trie_tokenizer(of), ROOM, &err) == HUNCH_OK);
    const hunch_status st = hn_dart_trie_add(b, path, vocab, &go_on, &err);
    fuzz_check(st, &err, path);
    if (!st) {
        const hunch_status written = hn_trie_build_finish(b, &err);
        fuzz_check(written, &err, to);
        if (!written) check_file(to);
        remove(to);
    }
    hn_trie_build_close(&b);
}

/* Of each node four bytes: its token, how far before it its parent is, its count, and how many children are listed. */
static void count_nodes(fuzz_bytes b) {
    const size_t n = b.size / NODE_BYTES < MOST_NODES ? b.size / NODE_BYTES : MOST_NODES;
    static const unsigned char child[12];
    bytes file = {0};
    bytes_number(&file, HN_TRIE_ORDER, 8);
    bytes_number(&file, n + 1, 8);
    for (size_t i = 0; i <= n; i++) {
        const uint8_t *p = i ? b.at + (i - 1) * NODE_BYTES : (const uint8_t[NODE_BYTES]){0};
        bytes_number(&file, p[0], 4);
        bytes_number(&file, i > p[1] ? i - 1 - p[1] : 0, 8);
        bytes_number(&file, p[2] < 0xF0 ? p[2] : (uint64_t)p[2] << 23, 4); /* from 0xF0 on nearly 2^31 */
        bytes_number(&file, p[3] & 3, 8);
        for (int k = 0; k < (p[3] & 3); k++) bytes_put(&file, child, sizeof child);
    }
    count(fuzz_file(1, (fuzz_bytes){file.at, file.size}));
    bytes_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!of) open_tokenizer();
    const char *path = fuzz_file(0, (fuzz_bytes){data, size});
    if (hn_dart_trie_is(path)) count(path);
    count_nodes((fuzz_bytes){data, size});
    return 0;
}
