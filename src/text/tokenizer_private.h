/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_private.h - what the files of the tokenizer share: the tokenizer itself and how the readers fill it.
 *
 * A reader (tokenizer_gguf.c, tokenizer_hf.c) calls hn_vocab_init, puts each token, calls hn_vocab_finish and then adds
 * the merges. Tokens are kept as the bytes they stand for in a text ("Ġa" as " a"), and merges are looked up that way
 * too, so encoding and decoding need one table.
 */
#ifndef HN_TOKENIZER_PRIVATE_H
#define HN_TOKENIZER_PRIVATE_H
#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/token_map.h"
#include "text/tokenizer.h"

typedef enum hn_token_kind { /* by their numbers in a GGUF file */
    HN_TOKEN_NORMAL = 1,
    HN_TOKEN_UNKNOWN,
    HN_TOKEN_CONTROL,
    HN_TOKEN_USER,   /* always read from a text, part of the text */
    HN_TOKEN_UNUSED,
    HN_TOKEN_BYTE    /* <0x0A> */
} hn_token_kind;

enum { /* marks of a token */
    HN_MARK_END = 1,        /* ends a generation */
    HN_MARK_EAT_LEFT = 2,   /* read from a text, it takes the spaces before it */
    HN_MARK_EAT_RIGHT = 4
};

typedef enum hn_prefix { HN_PREFIX_NONE, HN_PREFIX_FIRST, HN_PREFIX_EACH } hn_prefix; /* SentencePiece: where a space is added */

/* Limits on what a file may claim. */
enum { HN_MAX_VOCAB = 1 << 24, HN_MAX_TOKEN_BYTES = 1024 };

struct hn_tokenizer {
    bool sentencepiece; /* spaces as U+2581, whole texts merge; else byte-level: words by the pre-tokenizer */
    int32_t vocab;
    hn_piece *pieces;           /* [vocab] into bytes, each NUL-terminated */
    uint8_t *kinds, *marks;     /* [vocab] */
    char *bytes;
    size_t n_bytes, cap_bytes;
    hn_token_map map;           /* plain and user tokens */
    hn_bpe merges;
    hn_pretok *pretok;          /* byte-level only */
    bool ignore_merges;
    int32_t byte_token[256];    /* byte-level: the symbol of a byte; SentencePiece: what a byte falls back to; -1: none */
    int32_t ascii_token[128];   /* SentencePiece: the symbol of a character */
    uint32_t *loose;            /* SentencePiece: characters that are no token but merge into one, rising; */
    size_t n_loose, cap_loose;  /* their symbols are vocab, vocab + 1, … */
    bool cut_at_spaces;         /* SentencePiece: no token has a space behind another character */
    hn_prefix prefix;
    bool prefix_unless_space;
    bool drops_space;           /* a leading space of a decoded text is the added one */
    bool fuse_unknown, byte_fallback;
    int32_t bos, eos, unknown;  /* -1: none */
    bool adds_bos, adds_eos;
    hn_token_map named;         /* control, user and unknown tokens by name */
    uint16_t *lengths;          /* of their names by first byte, falling */
    uint32_t lengths_from[257]; /* [b]: where the lengths of names that begin with byte b start */
};

hunch_status hn_tokenizer_from_gguf(hn_tokenizer *t, const hn_source *src, bool *found, hunch_error *err);
hunch_status hn_tokenizer_from_hf(hn_tokenizer *t, const hn_source *src, bool *found, hunch_error *err);

/* n tokens whose texts have total bytes. Every token is HN_TOKEN_UNUSED and empty at first. */
hunch_status hn_vocab_init(hn_tokenizer *t, size_t n, size_t total, hunch_error *err);
/* text as the file spells it. Not twice for one id. */
hunch_status hn_vocab_put(hn_tokenizer *t, int32_t id, hn_token_kind kind, const char *text, size_t len, hunch_error *err);
/* After the last token and the settings of the tokenizer: the tables over them. */
hunch_status hn_vocab_finish(hn_tokenizer *t, hunch_error *err);
/* Of a control, user or unknown token by its name; -1: none. */
int32_t hn_vocab_find_named(const hn_tokenizer *t, const char *name, size_t len);
/* Marks the tokens that end a turn by the names they have in most models. */
void hn_vocab_mark_known_ends(hn_tokenizer *t);

/* hn_bpe_init(&t->merges, …) comes first. where: for the message, "merges[12]". */
hunch_status hn_vocab_add_merge(hn_tokenizer *t, const char *left, size_t n_left, const char *right, size_t n_right,
                                uint32_t rank, const char *where, hunch_error *err);
/* "a b": the space is the first behind the first byte. */
hunch_status hn_vocab_add_merge_line(hn_tokenizer *t, const char *line, size_t len, uint32_t rank, const char *where,
                                     hunch_error *err);
/* SentencePiece without merges: every token can be made of any two parts; the higher its score, the sooner. */
hunch_status hn_vocab_merges_from_scores(hn_tokenizer *t, const double *scores, hunch_error *err);
/* Symbol of one character: a token, a loose one (>= vocab), or -1. */
int32_t hn_vocab_symbol(const hn_tokenizer *t, const char *s, int len, uint32_t cp);
#endif
