/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tokenizer.h - uses an opened tokenizer: every piece, and texts there and back. */
#ifndef HN_FUZZ_TOKENIZER_H
#define HN_FUZZ_TOKENIZER_H
#include "base/mem.h"
#include "fuzz_source.h"
#include "text/tokenizer/tokenizer.h"

static inline void fuzz_pieces(const hn_tokenizer *t) {
    int vocab = hn_tokenizer_vocab(t);
    size_t len;
    for (int32_t id = 0; id < vocab; id++) {
        const char *piece = hn_tokenizer_piece(t, id, &len);
        FUZZ_MUST(piece != NULL);
        fuzz_read_bytes(piece, len);
        fuzz_touched = hn_tokenizer_is_special(t, id) ^ hn_tokenizer_is_end(t, id) ^ hn_tokenizer_is_padding(t, id);
    }
    FUZZ_MUST(hn_tokenizer_piece(t, -1, &len) == NULL && hn_tokenizer_piece(t, vocab, &len) == NULL);
    FUZZ_MUST(hn_tokenizer_bos(t) >= -1 && hn_tokenizer_bos(t) < vocab);
    FUZZ_MUST(hn_tokenizer_eos(t) >= -1 && hn_tokenizer_eos(t) < vocab);
}

/* Each id once. */
static inline void fuzz_order(const hn_tokenizer *t) {
    const size_t vocab = (size_t)hn_tokenizer_vocab(t);
    int32_t *ids = hn_alloc(vocab * sizeof *ids);
    bool *seen = hn_zalloc(vocab, sizeof *seen), tells;
    hunch_error err = {0};
    FUZZ_MUST(ids && seen);
    fuzz_check(hn_tokenizer_order(t, ids, &tells, &err), &err, NULL);
    for (size_t i = 0; i < vocab; i++) {
        FUZZ_MUST(ids[i] >= 0 && (size_t)ids[i] < vocab && !seen[ids[i]]);
        seen[ids[i]] = true;
    }
    hn_free(ids);
    hn_free(seen);
}

static inline void fuzz_detokenize(const hn_tokenizer *t, const int32_t *ids, size_t n) {
    char *text = NULL;
    size_t len = 0, cap = 0;
    hn_detok d;
    hunch_error err = {0};
    hn_detok_init(&d);
    for (size_t i = 0; i < n; i++) fuzz_check(hn_detok_push(&d, t, ids[i], &text, &len, &cap, &err), &err, NULL);
    fuzz_check(hn_detok_end(&d, &text, &len, &cap, &err), &err, NULL);
    fuzz_read_bytes(text, len);
    hn_free(text);
}

static inline void fuzz_encode(const hn_tokenizer *t, const char *text, size_t len, int flags) {
    int32_t *ids = NULL;
    size_t n = 0;
    hunch_error err = {0};
    hunch_status st = hn_tokenizer_encode(t, text, len, flags, &ids, &n, &err);
    fuzz_check(st, &err, NULL);
    if (st != HUNCH_OK) return;
    for (size_t i = 0; i < n; i++) FUZZ_MUST(ids[i] >= 0 && ids[i] < hn_tokenizer_vocab(t));
    fuzz_detokenize(t, ids, n);
    hn_free(ids);
}

/* given: a text of the input's own. */
static inline void fuzz_tokenizer(const hn_tokenizer *t, fuzz_bytes given) {
    static const char usual[] =
        " Hello  world, it's 12345 h\xC3\xA9 \xE2\x96\x81 <s>a</s><0x0A>\n\n\t \xF0\x9F\x99\x82 end ";
    fuzz_pieces(t);
    fuzz_order(t);
    for (int flags = 0; flags < 4; flags++) {
        fuzz_encode(t, usual, sizeof usual - 1, flags);
        fuzz_encode(t, (const char *)given.at, given.size, flags);
    }
    fuzz_encode(t, "", 0, HUNCH_TEXT_ADD_SPECIAL);
}
#endif
