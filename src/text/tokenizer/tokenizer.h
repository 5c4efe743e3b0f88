/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.h - text to token ids and back: byte-pair merges and Unigram. Read-only after open, any thread. */
#ifndef HN_TOKENIZER_H
#define HN_TOKENIZER_H
#include "format/source.h"

typedef struct hn_tokenizer hn_tokenizer;

/* From a GGUF's metadata or a folder's tokenizer.json. *out is NULL (and the status HUNCH_OK) if the model has none. */
hunch_status hn_tokenizer_open(hn_tokenizer **out, const hn_source *src, hunch_error *err);
void hn_tokenizer_close(hn_tokenizer **t);

int hn_tokenizer_vocab(const hn_tokenizer *t);
int32_t hn_tokenizer_bos(const hn_tokenizer *t); /* -1: none */
int32_t hn_tokenizer_eos(const hn_tokenizer *t); /* -1: none */
bool hn_tokenizer_adds_bos(const hn_tokenizer *t);
/* Ends a generation: EOS, and the end-of-turn tokens that the files name (eot, eom). */
bool hn_tokenizer_is_end(const hn_tokenizer *t, int32_t id);
bool hn_tokenizer_is_special(const hn_tokenizer *t, int32_t id); /* control tokens: not part of the text */
/* True for an id without a meaning: outside the vocabulary, without a piece, or marked unused by the file. */
bool hn_tokenizer_is_padding(const hn_tokenizer *t, int32_t id);
/* All ids, [hn_tokenizer_vocab], most frequent first if the vocabulary was built by frequency. *by_frequency: it was; else
 * the order is hardly meaningful. HUNCH_NO_MEMORY. (token_order.c) */
hunch_status hn_tokenizer_order(const hn_tokenizer *t, int32_t *ids, bool *by_frequency, hunch_error *err);

/* flags: HUNCH_TEXT_*. text must be valid UTF-8 (else HUNCH_USAGE). ids: hn_alloc'ed, freed with hn_free. */
hunch_status hn_tokenizer_encode(const hn_tokenizer *t, const char *text, size_t len, int flags, int32_t **ids,
                                 size_t *n, hunch_error *err);
/* The same of a text in pieces, which must add up to it: special names are tokens only where they begin and end in pieces that are
 * `special`. */
hunch_status hn_tokenizer_encode_pieces(const hn_tokenizer *t, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                        int flags, int32_t **ids, size_t *n, hunch_error *err);
/* As these (pieces NULL: the first), but a text of more than `most` tokens is not encoded to its end: then *ids is NULL, and *n a number
 * above `most` that the text has at least. */
hunch_status hn_tokenizer_encode_at_most(const hn_tokenizer *t, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                         int flags, size_t most, int32_t **ids, size_t *n, hunch_error *err);
/* Bytes of the token inside a text (of "Ġa": " a", of "<0x0A>": "\n", of a special token: its name).
 * Owned by the tokenizer. NULL if id is outside the vocabulary. */
const char *hn_tokenizer_piece(const hn_tokenizer *t, int32_t id, size_t *len);

/* Incremental detokenising: never splits a UTF-8 sequence, bytes that can never become valid show as U+FFFD, special
 * tokens are left out unless they are asked for, SentencePiece's leading space is dropped at the start of the text. */
typedef struct hn_detok {
    char pending[8];
    int n_pending;
    bool special; /* set it after hn_detok_init for the names of special tokens, too */
    bool started; /* set it after hn_detok_init if the ids continue a text: then no leading space is dropped */
} hn_detok;
void hn_detok_init(hn_detok *d);
/* Appends the complete characters to *text (hn_realloc'ed, NUL-terminated, *len bytes, *cap capacity). */
hunch_status hn_detok_push(hn_detok *d, const hn_tokenizer *t, int32_t id, char **text, size_t *len, size_t *cap,
                           hunch_error *err);
/* The end of the text: pending bytes become U+FFFD. */
hunch_status hn_detok_end(hn_detok *d, char **text, size_t *len, size_t *cap, hunch_error *err);
#endif
