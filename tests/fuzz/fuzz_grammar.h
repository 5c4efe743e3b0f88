/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_grammar.h - a grammar and a text: what is refused is refused in a line; else every mask along the text, or as far as it goes, has
 * the tokens that a step allows, and another matcher says the same. */
#ifndef HN_FUZZ_GRAMMAR_H
#define HN_FUZZ_GRAMMAR_H
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_tiny.h"
#include "grammar/matcher.h"

typedef hunch_status fuzz_source(hn_grammar **out, const char *text, size_t len, hunch_error *err);

static inline const hn_vocab_trie *fuzz_vocabulary(int *vocab) {
    static hn_vocab_trie *trie;
    static hn_tokenizer *t;
    hn_source *src = NULL;
    if (!trie) {
        FUZZ_MUST(hn_source_open(&src, fuzz_tiny_model(5), NULL) == HUNCH_OK && hn_tokenizer_open(&t, src, NULL) == HUNCH_OK && t);
        hn_source_close(&src);
        FUZZ_MUST(hn_vocab_trie_open(&trie, t, hn_tokenizer_vocab(t) + 2, NULL) == HUNCH_OK);
    }
    *vocab = hn_tokenizer_vocab(t) + 2;
    return trie;
}

static inline hn_matcher *fuzz_matcher(fuzz_source *source, fuzz_bytes text) {
    hunch_error err = {0};
    hn_grammar *g = NULL;
    hn_matcher *m = NULL;
    int vocab;
    hunch_status st = source(&g, (const char *)text.at, text.size, &err);
    fuzz_check(st, &err, NULL);
    FUZZ_MUST(st == HUNCH_OK ? g != NULL : g == NULL && st == HUNCH_USAGE);
    if (st) return NULL;
    st = hn_matcher_open(&m, &g, fuzz_vocabulary(&vocab), &err);
    fuzz_check(st, &err, NULL);
    FUZZ_MUST(!g && (st == HUNCH_OK ? m != NULL : m == NULL));
    return m;
}

static inline void fuzz_state(hn_matcher *m, int32_t state, int vocab) {
    uint64_t mask[64];
    char forced[16];
    const int n = hn_matcher_mask(m, state, mask);
    int found = 0;
    if (n == HN_MATCH_FULL) return;
    for (int32_t id = 0; id < vocab; id++) {
        const int32_t next = hn_matcher_next(m, state, id);
        if (next == HN_MATCH_FULL) return;
        FUZZ_MUST((next >= 0) == (mask[id / 64] >> id % 64 & 1));
        found += next >= 0;
    }
    FUZZ_MUST(found == n);
    const size_t len = hn_matcher_forced(m, state, forced, sizeof forced);
    const int32_t after = hn_matcher_bytes(m, state, forced, len);
    FUZZ_MUST(len <= sizeof forced && (after >= 0 || after == HN_MATCH_FULL));
    FUZZ_MUST(len == 0 || !hn_matcher_is_final(m, state));
}

static inline int fuzz_grammar(fuzz_source *source, const uint8_t *data, size_t size) {
    fuzz_bytes rest = {data, size};
    const fuzz_bytes grammar = fuzz_part(&rest), text = fuzz_part(&rest);
    hn_matcher *m = fuzz_matcher(source, grammar), *other = m ? fuzz_matcher(source, grammar) : NULL;
    if (!m) return 0;
    int vocab;
    fuzz_vocabulary(&vocab);
    int32_t state = hn_matcher_start(m), same = hn_matcher_start(other);
    for (size_t i = 0; i < text.size && i < 60 && state >= 0; i++) {
        fuzz_state(m, state, vocab);
        state = hn_matcher_bytes(m, state, (const char *)text.at + i, 1);
        same = hn_matcher_bytes(other, same, (const char *)text.at + i, 1);
        if (state == HN_MATCH_FULL || same == HN_MATCH_FULL) break;
        FUZZ_MUST((state >= 0) == (same >= 0));
        FUZZ_MUST(state < 0 || hn_matcher_is_final(m, state) == hn_matcher_is_final(other, same));
    }
    if (state >= 0) fuzz_state(m, state, vocab);
    hn_matcher_close(&m);
    hn_matcher_close(&other);
    return 0;
}
#endif
