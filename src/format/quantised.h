/* SPDX-License-Identifier: Apache-2.0 */
/* quantised.h - how the files of a Hugging Face folder say that its weights are quantised: the refusal of formats that are not read, and
 * the factors of 8-bit floats, which are. Formats are told by the tensors that are there; the files explain them. */
#ifndef HN_QUANTISED_H
#define HN_QUANTISED_H
#include "format/source.h"

/* A tensor of a folder is missing, or is not one that is read. HUNCH_REFUSED: because its module is quantised, with the method's name
 * and what to do; HUNCH_OK: the folder names no method, or has no other form of a missing one. wrong: "is missing", "has type U8". */
hunch_status hn_quantised_refuse(const hn_source *s, const char *tensor, const char *wrong, hunch_error *err);

/* The factors of 8-bit floats (X.weight_scale_inv). */
typedef struct hn_fp8_factors {
    hn_tensor *values; /* NULL: the tensor is of another type */
    bool inverse;      /* weights are divided by them, not multiplied (GPTQModel) */
} hn_fp8_factors;
/* Finds those of a tensor of matrices [inputs, outputs] (third dimension: `matrices` of them): a factor for each block of 128 x 128, or
 * one for all of a matrix where no block size is named. HUNCH_REFUSED: of another shape, missing, or by a key of the folder. */
hunch_status hn_quantised_fp8(hn_source *s, const hn_tensor *t, int matrices, hn_fp8_factors *out, hunch_error *err);
/* How a folder's packed integers are to be read (packed.c), as far as tensors do not say it. */
typedef enum hn_packing { HN_NOT_PACKED, HN_PACKED_AWQ, HN_PACKED_GPTQ, HN_PACKED_COMPRESSED } hn_packing;
typedef struct hn_packed_scheme {
    hn_packing packing; /* HN_NOT_PACKED: the folder names no such method, or a version of it that is not read */
    int zero_added;     /* to the stored zeros: 1 in version 1 of GPTQ's format */
    unsigned widths;    /* bits of a code that the keys allow: 1 << 4 | 1 << 8, ... */
} hn_packed_scheme;
hn_packed_scheme hn_quantised_scheme(const hn_source *s);
/* Marks as used what a quantised folder has for GPUs that round inputs and caches (M.input_scale, M.k_scale, ..): here they stay as they
 * are. */
void hn_quantised_take_scales(hn_source *s);
#endif
