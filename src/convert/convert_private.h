/* SPDX-License-Identifier: Apache-2.0 */
/* convert_private.h - what writing a model (convert.c) and a draft head (convert_head.c) as GGUF share. */
#ifndef HN_CONVERT_PRIVATE_H
#define HN_CONVERT_PRIVATE_H
#include "model/arch/arch.h"
#include "convert/convert.h"

typedef struct hn_conversion {
    hn_source *src;
    hn_arch arch;            /* of the folder; its family is the GGUF's */
    hn_arch own;             /* of the modules of multi-token prediction, if arch.files.next_layers is not 0 */
    const struct hn_head_form *to;   /* names of a head's tensors in the GGUF */
    const int32_t *ids, *order;      /* a head's lists of tokens and outputs; NULL: it has none */
    int first_layer;         /* added to the numbers of layers that are written */
    hn_gguf_writer *w;
    struct {
        const char *name;    /* NULL: none */
        float *values;       /* [dims / 2] */
    } table[2];              /* of the rotation */
    hunch_progress progress; /* NULL: not reported */
    void *user;
    uint64_t done, total;    /* bytes of weights */
    bool convert;            /* matrices of floats become `as`; else as stored */
    hn_dtype as;
    hunch_error *err;
} hn_conversion;

/* convert_keys.c. */
hunch_status hn_conversion_put_name(hn_conversion *c);  /* general.name */
hunch_status hn_conversion_put_type(hn_conversion *c, const hn_tensor *t); /* general.file_type, the type of most matrices; NULL: f32 */
hunch_status hn_conversion_put_sizes(hn_conversion *c); /* the type, and a family's keys */
hunch_status hn_conversion_put_sampling(hn_conversion *c); /* how the model's publisher draws tokens */

/* The rotation that the usual keys describe; a family writes the keys of others. */
static inline const hn_rotation *hn_conversion_rotation(const hn_conversion *c) { return &c->arch.rotation[0]; }
/* convert_rotation.c. Determines the tables of the rotation; declares the tables, or writes them. */
hunch_status hn_conversion_plan_rotation(hn_conversion *c);
hunch_status hn_conversion_visit_tables(hn_conversion *c, bool write);

/* convert_type.c. The type that a matrix is written in: c->as; BF16 if its rows are not whole blocks of that. */
hn_dtype hn_conversion_type(const hn_conversion *c, const hn_tensor *t);
/* Reads a matrix in that type, to be freed with hn_free. */
hunch_status hn_conversion_read_as(hn_conversion *c, const hn_tensor *t, hn_dtype type, void **out, size_t *bytes);

/* convert_tensors.c. First all tensors of a model or a head are declared, then written in the same order. */
hunch_status hn_conversion_visit(hn_conversion *c, bool write);

/* Finishes the file, or removes it if status is an error. */
hunch_status hn_conversion_finish(hn_conversion *c, hunch_status status);
#endif
