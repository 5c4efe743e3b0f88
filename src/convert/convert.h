/* SPDX-License-Identifier: Apache-2.0 */
/* convert.h - writes a Hugging Face folder, of a model or a draft head, as GGUF. */
#ifndef HN_CONVERT_H
#define HN_CONVERT_H
#include "format/gguf_writer.h"
#include "format/source.h"

/* Writes a dense family's folder as GGUF v3: weights as stored, norms and biases as F32, the folder's tokenizer if it has
 * one. One tensor is in memory at a time; out_path is written completely or not at all. Errors: HUNCH_USAGE (not a
 * folder), HUNCH_REFUSED (names the key, tensor or part of the tokenizer that GGUF cannot express exactly), HUNCH_FAILED
 * (cannot read or write), HUNCH_NO_MEMORY. */
hunch_status hn_convert(const char *folder, const char *out_path, hunch_error *err);
/* The same, with matrices of floats, the embedding's too, as `type`, one that hn_quantise writes, or BF16 if their rows are not whole
 * blocks of that; HN_WEIGHT_TYPES: as stored. Reports how many bytes of weights were read; progress may be NULL. HUNCH_REFUSED, too:
 * a type for a model with experts or with mixers whose weights are written as they are stored. */
hunch_status hn_convert_with(const char *folder, hn_dtype type, const char *out_path, hunch_progress progress, void *user,
                             hunch_error *err);

struct hn_arch;
/* A draft head of a folder or file of weights. */
typedef struct hn_head_written {
    const char *kind;           /* of its drafter */
    const struct hn_arch *arch; /* complete, as for hn_head_open */
    const int32_t *states;      /* layers whose entering states it reads [draft_head.features], NULL: none */
    const int32_t *ids;         /* [vocab], NULL: the target's */
    const int32_t *order;       /* [vocab] of a head with clusters (hn_head_read_order), else NULL */
    int tokens;                 /* of the target; of a whole model its own */
    hn_dtype type;              /* type of its matrices, one that hn_quantise writes; HN_WEIGHT_TYPES: as stored */
} hn_head_written;
/* The type of this name, if a head's matrices can be converted to it; NULL: HN_WEIGHT_TYPES. HUNCH_USAGE. */
hunch_status hn_convert_type(const char *name, hn_dtype *type, hunch_error *err);
/* Writes a head as hn_convert_with writes a model. */
hunch_status hn_convert_head(hn_source *src, const hn_head_written *h, const char *out_path, hunch_progress progress, void *user,
                             hunch_error *err);
#endif
