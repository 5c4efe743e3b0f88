/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_hf.h - shared by the readers of tokenizer.json: its pipeline, its vocabulary, the order between them. */
#ifndef HN_TOKENIZER_HF_H
#define HN_TOKENIZER_HF_H
#include "text/tokenizer/tokenizer_private.h"

#define HN_HF_FILE "tokenizer.json: "

typedef struct hn_hf_pipeline {
    hn_normal_step normal[HN_NORMAL_MAX_STEPS];
    hn_pretok_step pre[HN_PRETOK_MAX_STEPS];
    size_t n_normal, n_pre, n_owned;
    char *owned[2 * (HN_NORMAL_MAX_STEPS + HN_PRETOK_MAX_STEPS)]; /* patterns in PCRE2's spelling, charsmaps */
    bool byte_level, letters; /* a ByteLevel step was read; later steps see letters */
    bool marks;               /* spaces become U+2581 */
} hn_hf_pipeline;

/* Reads normalizer and pre_tokenizer; sets t->spelling. HUNCH_REFUSED for unsupported ones, with their names. After a failure
 * hn_hf_pipeline_fini must be called as well. */
hunch_status hn_hf_pipeline_read(hn_hf_pipeline *p, hn_tokenizer *t, const json_t *doc, hunch_error *err);
void hn_hf_pipeline_fini(hn_hf_pipeline *p);
/* Opens t's normalizer and pre-tokenizer, or the equivalent fast path. names_normal: some name is matched in normalised text,
 * so there must be a normalizer. */
hunch_status hn_hf_pipeline_open(hn_hf_pipeline *p, hn_tokenizer *t, bool names_normal, hunch_error *err);

/* After the vocabulary: reads what decoding does besides joining the pieces. */
hunch_status hn_hf_read_decoder(hn_tokenizer *t, const json_t *doc, hunch_error *err);

/* Reads tokens, added tokens, merges or scores, and opens the pipeline. */
hunch_status hn_hf_read_model(hn_tokenizer *t, hn_hf_pipeline *p, const hn_source *src, hunch_error *err);

/* ---- tokenizer_hf_ends.c ---- */

/* Name number i of "bos_token", "eos_token", … in the folder's files, the one that counts first; NULL: there are no more. */
const char *hn_hf_token_name(const hn_source *src, const char *key, size_t i);
/* The first of these names that a vocabulary, an object of ids by texts, has, and its id there; NULL: it has none. */
const char *hn_hf_token_of(const hn_source *src, const char *key, const json_t *vocab, const json_t **id);
typedef enum hn_hf_end { HN_HF_BEGIN, HN_HF_END } hn_hf_end;
/* The ids below vocab that the folder's files say begin, or end, a text: each once, in order. *ids: to be freed with hn_free. */
hunch_status hn_hf_token_ids(const hn_source *src, hn_hf_end which, int32_t vocab, int32_t **ids, size_t *n, hunch_error *err);

/* "" if absent or not a string. */
const char *hn_hf_string(const json_t *object, const char *key);
bool hn_hf_bool(const json_t *object, const char *key);
/* Where a Metaspace adds its mark: "always", "first", "never" or any other string of the file; older files have a bool. */
const char *hn_hf_prepend_scheme(const json_t *metaspace);
hunch_status hn_hf_refuse(const char *what, const char *type, hunch_error *err);
/* Part i of an object: a member of its Sequence, or the object itself; NULL after the last. */
const json_t *hn_hf_part(const json_t *thing, const char *members, size_t i);
#endif
