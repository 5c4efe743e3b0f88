/* SPDX-License-Identifier: Apache-2.0 */
/* convert_tokenizer.h - tokenizer.json as a GGUF file's tokenizer.* keys: the call for convert.c, and what its files share. */
#ifndef HN_CONVERT_TOKENIZER_H
#define HN_CONVERT_TOKENIZER_H
#include <string.h>

#include "format/gguf_writer.h"
#include "format/source.h"
#include "text/tokenizer/tokenizer_hf.h"

/* Writes tokenizer.json and tokenizer_config.json as tokenizer.* keys; none if tokenizer.json is absent. vocab: rows of the
 * embedding. Errors: as of hn_convert. */
hunch_status hn_convert_tokenizer(hn_gguf_writer *w, const hn_source *src, int vocab, hunch_error *err);

enum { HN_CONVERT_MAX_TOKEN = 512 }; /* bytes of a token: bounds the work on hostile vocabularies */

typedef struct hn_tokenizer_conversion {
    hn_gguf_writer *w;
    const hn_source *src;
    const json_t *root, *model, *vocab, *merges; /* tokenizer.json, and parts of it */
    const json_t *config;                        /* tokenizer_config.json */
    int size;
    const char **text; /* [size], owned by the JSON or by pads; NULL: no token has this id */
    size_t *len;       /* [size] */
    int32_t *type;     /* [size] hn_token_kind */
    char *pads;        /* names of ids without a token */
    hunch_error *err;
} hn_tokenizer_conversion;

/* "FILE: tokenizer.json: WHAT" */
hunch_status hn_tokenizer_refuse(const hn_tokenizer_conversion *c, const char *what);

static inline bool hn_json_is_text(const json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* Of a step of a normalizer, pre-tokenizer or post-processor (hn_hf_part). */
static inline bool hn_step_is(const json_t *step, const char *type) {
    return hn_json_is_text(json_object_get(step, "type"), type);
}

/* ---- convert_tokens.c ---- */

/* Fills text, len and type: the vocabulary and the added tokens, then names for the ids that no token has. */
hunch_status hn_tokens_read(hn_tokenizer_conversion *c);
/* Writes which tokens begin and end texts, which is unknown, which pads; properties of added tokens. */
hunch_status hn_special_ids_write(const hn_tokenizer_conversion *c);
hunch_status hn_token_marks_write(const hn_tokenizer_conversion *c);

/* ---- convert_pretokenizer.c ---- */

/* The pre-tokenizer's name in GGUF files; NULL: none of byte-level BPE. nfc: texts are normalised to NFC before it. unlike: the name
 * means the opposite of the model's ignore_merges (words that are tokens without being merged: yes or no). */
const char *hn_pre_tokenizer_name(const hn_tokenizer_conversion *c, bool *nfc, bool *unlike);
/* Whether it is BPE over text with ▁ for spaces, in the older spelling (a normalizer) or the newer one (Metaspace). prefix: ▁
 * starts the text. */
bool hn_space_marks_are_known(const hn_tokenizer_conversion *c, bool *prefix);

/* ---- convert_merges.c ---- */

/* All merges as "left right", in order. Freed with hn_merges_free, after a failure, too. */
typedef struct hn_merge_list {
    char **text;
    size_t *len, *left; /* of the whole, of its left part */
    size_t count;
} hn_merge_list;
hunch_status hn_merges_read(const hn_tokenizer_conversion *c, hn_merge_list *m);
void hn_merges_free(hn_merge_list *m);
/* Writes the scores that encode like the merges; HUNCH_REFUSED: none do. */
hunch_status hn_scores_write(const hn_tokenizer_conversion *c, const hn_merge_list *m);

/* ---- convert_lines.c ---- */

/* HUNCH_REFUSED: words that a GGUF of Gemma 4 makes of ends of lines are encoded otherwise than these merges encode the text. */
hunch_status hn_lines_check(const hn_tokenizer_conversion *c, const hn_merge_list *m);
#endif
