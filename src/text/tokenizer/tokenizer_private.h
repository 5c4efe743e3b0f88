/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_private.h - shared by the files of the tokenizer: the tokenizer itself and how the readers fill it.
 *
 * A reader (tokenizer_gguf.c, tokenizer_hf.c) sets the spelling, calls hn_vocab_init, puts each token, calls
 * hn_vocab_finish, adds the names that are matched in a text, and then the merges or the scores. Tokens are stored as their
 * bytes in a text ("Ġa" as " a"), and merges are looked up by these too, so encoding and decoding share one table.
 */
#ifndef HN_TOKENIZER_PRIVATE_H
#define HN_TOKENIZER_PRIVATE_H
#include "text/tokenizer/bpe.h"
#include "text/normal/normalizer.h"
#include "text/split/pretokenizer.h"
#include "text/tokenizer/token_map.h"
#include "text/tokenizer/token_names.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/unigram.h"

typedef enum hn_token_kind { /* by their numbers in a GGUF file */
                             HN_TOKEN_NORMAL = 1,
                             HN_TOKEN_UNKNOWN,
                             HN_TOKEN_CONTROL,
                             HN_TOKEN_USER, /* always matched in a text, part of the text */
                             HN_TOKEN_UNUSED,
                             HN_TOKEN_BYTE /* <0x0A> */
} hn_token_kind;

/* Marks of a token: it ends a generation; it is only matched by name, the model's vocabulary does not have it. */
enum { HN_MARK_END = 1, HN_MARK_NAME = 2 };

typedef enum hn_spelling {                 /* how a file writes its tokens, and the initial symbols of a word */
                           HN_SPELL_BYTES, /* in the letters of byte_letters.h; symbols are bytes */
                           HN_SPELL_MARKS, /* U+2581 is a space; symbols are characters */
                           HN_SPELL_PLAIN  /* verbatim; symbols are characters */
} hn_spelling;

/* Limits on files. */
enum { HN_MAX_VOCAB = 1 << 21, HN_MAX_TOKEN_BYTES = 1024, HN_MAX_ADDED = 8 };

typedef struct hn_added { /* ids that are added before or after a text */
    int32_t ids[HN_MAX_ADDED];
    size_t n;
} hn_added;

struct hn_tokenizer {
    hn_spelling spelling;
    bool is_unigram; /* else byte-pair merges */
    int32_t vocab;
    hn_piece *pieces;       /* [vocab] into bytes, each NUL-terminated */
    hn_piece *shown;        /* [vocab] into shown_bytes: decoded text; NULL: the pieces themselves */
    uint8_t *kinds, *marks; /* [vocab] */
    char *bytes, *shown_bytes;
    size_t n_bytes, cap_bytes;
    hn_token_map map; /* plain and user tokens */
    hn_bpe merges;
    hn_unigram unigram;
    hn_normalizer *normalizer; /* NULL: none */
    hn_pretok *pretok;         /* NULL: a text is one word */
    bool ignore_merges; /* a word that is a token becomes that token, without merges */
    bool whole_lines;   /* the same, only for words that begin with a line end */
    int32_t byte_token[256];   /* bytes: the symbol of one; else what a byte falls back to; -1: none */
    int32_t ascii_token[128];  /* characters: the symbol of one */
    uint32_t *loose;           /* characters that are not tokens but merge into one, ascending; */
    size_t n_loose, cap_loose; /* their symbols are vocab, vocab + 1, … */
    bool inner_space[256];     /* marks: a token has a space after a character that ends in this byte */
    hn_space_prefix prefix;          /* marks, without a normalizer: where a space is added */
    bool prefix_unless_space;
    int drops;       /* leading spaces of a decoded text that are not part of it */
    bool spaces_between; /* decoding puts a space between tokens */
    bool fuse_unknown, byte_fallback;
    size_t longest; /* bytes of normalised text that have tokens (byte_token) and that one token stands for, at most; 0: any number */
    int32_t bos, eos, unknown; /* -1: none */
    hn_added front, back;      /* added to a text if special tokens are requested */
    hn_names names;            /* matched in the text before it is normalised */
    hn_names normal_names;     /* matched in the normalised text */
};

hunch_status hn_tokenizer_from_gguf(hn_tokenizer *t, const hn_source *src, bool *found, hunch_error *err);
hunch_status hn_tokenizer_from_hf(hn_tokenizer *t, const hn_source *src, bool *found, hunch_error *err);

/* n tokens whose texts have total bytes. Every token is HN_TOKEN_UNUSED and empty at first. */
hunch_status hn_vocab_init(hn_tokenizer *t, size_t n, size_t total, hunch_error *err);
/* text as spelled in the file. At most once for each id: more bytes than `total` are refused. */
hunch_status hn_vocab_put(hn_tokenizer *t, int32_t id, hn_token_kind kind, const char *text, size_t len,
                          hunch_error *err);
/* The byte of a name like <0x0A>; -1: the text is not such a name. */
int hn_vocab_byte_value(const char *text, size_t len);
/* True if a file spells the token like this. */
bool hn_vocab_is_spelled(const hn_tokenizer *t, int32_t id, const char *text, size_t len);
/* Builds the tables, after the last token and the settings of the tokenizer. */
hunch_status hn_vocab_finish(hn_tokenizer *t, hunch_error *err);
/* Makes the control, user and unknown tokens names: matched in a text as they are spelled. */
hunch_status hn_vocab_name_by_kind(hn_tokenizer *t, hunch_error *err);
/* A token that is matched by this name, else any other that the file spells like this, or that is this text; -1: none. */
int32_t hn_vocab_find_named(const hn_tokenizer *t, const char *name, size_t len);

/* To be called after hn_bpe_init(&t->merges, …) and the names. A merge that makes a control token is ignored: text does not
 * become control tokens. where: for errors, "merges[12]". */
hunch_status hn_vocab_add_merge(hn_tokenizer *t, const char *left, size_t n_left, const char *right, size_t n_right,
                                uint32_t rank, const char *where, hunch_error *err);
/* line: "a b", split at the first space after the first byte. */
hunch_status hn_vocab_add_merge_line(hn_tokenizer *t, const char *line, size_t len, uint32_t rank, const char *where,
                                     hunch_error *err);
/* Without merges: every token can be made of any two parts; the higher its score, the sooner. */
hunch_status hn_vocab_merges_from_scores(hn_tokenizer *t, const double *scores, hunch_error *err);
/* Builds the Unigram model of the plain and user tokens; unknown and control ones only count for the least score, and a token
 * whose score is NaN is ignored. */
hunch_status hn_vocab_unigram(hn_tokenizer *t, const double *scores, hunch_error *err);
/* Symbol of one character: a token, a loose one (>= vocab), or -1. */
int32_t hn_vocab_symbol(const hn_tokenizer *t, const char *s, int len, uint32_t cp);
#endif
