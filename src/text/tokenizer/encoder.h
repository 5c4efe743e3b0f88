/* SPDX-License-Identifier: Apache-2.0 */
/* encoder.h - the state of encoding one text, shared by tokenizer.c (the text and its fragments) and encoder.c (words). */
#ifndef HN_ENCODER_H
#define HN_ENCODER_H
#include "text/tokenizer/tokenizer_private.h"

typedef struct hn_encoder {
    const hn_tokenizer *t;
    int32_t *ids;
    size_t n, cap;
    hn_bpe_work work;
    hn_unigram_work paths;
    hn_pretok_work *pretok;
    hn_normal_work *normal;
    struct hn_cached_word *cache; /* NULL for a short text */
    char *spaced;                 /* a piece of text with spaces for U+2581 */
    size_t cap_spaced;
    size_t most, over; /* encoding ends, and fails, once there are more ids than `most`: over is then how many there are at least, else 0 */
    bool was_unknown; /* the last id is an unknown token that the next one is fused with */
} hn_encoder;

/* For a text of len bytes. hn_encoder_fini frees everything but the ids, also after a failure. */
hunch_status hn_encoder_init(hn_encoder *e, const hn_tokenizer *t, size_t len, hunch_error *err);
void hn_encoder_fini(hn_encoder *e);

hunch_status hn_encoder_put(hn_encoder *e, int32_t id, hunch_error *err);
/* Encodes a piece of text without names of tokens, already normalised. first: it begins the text. */
hunch_status hn_encoder_piece(hn_encoder *e, const char *text, size_t len, bool first, hunch_error *err);
#endif
