/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trie.c - a trie of n-grams of a corpus: the bytes as a file, and again after a header that is right for them,
 * with sizes from their first bytes. Look-ups of tokens in and outside of the vocabulary give probabilities, and a tree
 * is built from them. */
#include <string.h>

#include "base/mem.h"
#include "draft/tree.h"
#include "draft/shape/tree_pruned.h"
#include "fuzz.h"
#include "fuzz_tiny.h"

enum { LEVELS = 3, TOKENS = 7 };

static hn_tokenizer *tiny_tokenizer(void) {
    hn_tokenizer *t = NULL;
    hn_source *src = NULL;
    FUZZ_MUST(hn_source_open(&src, fuzz_tiny_model(5), NULL) == HUNCH_OK && hn_tokenizer_open(&t, src, NULL) == HUNCH_OK && t);
    hn_source_close(&src);
    return t;
}

static void ask(const hn_trie *t) {
    static const int32_t token[TOKENS] = {0, 1, 2, 7, 14, -1, INT32_MAX}, context[] = {1, 2, 7, 14, -3, 15, 0};
    float p[TOKENS], head[TOKENS];
    for (int i = 0; i + 2 <= TOKENS; i++)
        for (int n = 0; n <= 2; n++) {
            hn_trie_query(t, context + i, n, token, TOKENS, p);
            for (int k = 0; k < TOKENS; k++) FUZZ_MUST(p[k] >= 0 && p[k] <= 1);
        }
    hn_pruned tree;
    for (int k = 0; k < TOKENS; k++) head[k] = 1.0f / (float)(k + 2);
    FUZZ_MUST(hn_pruned_open(&tree, LEVELS, NULL) == HUNCH_OK);
    hn_pruned_start(&tree, context, 3);
    for (int l = 0; l < LEVELS; l++) hn_pruned_level(&tree, token, head, 5, t, 2);
    int list[HN_TREE_ROWS];
    FUZZ_MUST(hn_pruned_best(&tree, 20, list) == 20);
    hn_pruned_close(&tree);
}

static void open_file(const char *path, const hn_tokenizer *of) {
    hn_trie t;
    hunch_error err = {0};
    const hunch_status st = hn_trie_open(&t, path, of, &err);
    fuzz_check(st, &err, path);
    if (!st) ask(&t);
    hn_trie_close(&t);
}

/* Three bytes: tokens, pairs, triples; then as much as there is of the parts, and zeros. */
static void open_behind_header(fuzz_bytes b, const hn_tokenizer *of) {
    const uint64_t vocab = b.at[0] % ((uint64_t)hn_tokenizer_vocab(of) + 1), pairs = b.at[1], triples = b.at[2];
    const size_t size = sizeof(hn_trie_header) + (size_t)(vocab + 1) * sizeof(hn_trie_single) + (size_t)(pairs + 1) * sizeof(hn_trie_pair) +
                        (size_t)triples * sizeof(hn_trie_triple), body = size - sizeof(hn_trie_header);
    hn_trie_header head = {.magic = HN_TRIE_MAGIC, .version = HN_TRIE_VERSION, .order = HN_TRIE_ORDER, .tokenizer = hn_trie_tokenizer(of),
                           .vocab = vocab, .pairs = pairs, .triples = triples, .tokens = 3};
    unsigned char *all = hn_zalloc(1, size);
    FUZZ_MUST(all);
    head.check = hn_trie_check(&head);
    memcpy(all, &head, sizeof head);
    memcpy(all + sizeof head, b.at + 3, b.size - 3 < body ? b.size - 3 : body);
    open_file(fuzz_file(1, (fuzz_bytes){all, size}), of);
    hn_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static hn_tokenizer *of;
    if (!of) of = tiny_tokenizer();
    open_file(fuzz_file(0, (fuzz_bytes){data, size}), of);
    if (size >= 3) open_behind_header((fuzz_bytes){data, size}, of);
    return 0;
}
