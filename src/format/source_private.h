/* SPDX-License-Identifier: Apache-2.0 */
/* source_private.h - shared by the readers of src/format: the source itself. Not for other folders (see source.h). */
#ifndef HN_SOURCE_PRIVATE_H
#define HN_SOURCE_PRIVATE_H
#include "base/file.h"
#include "format/name_index.h"
#include "format/source.h"

/* Value types by their numbers in a GGUF file. */
enum hn_gguf_type {
    HN_GGUF_U8, HN_GGUF_I8, HN_GGUF_U16, HN_GGUF_I16, HN_GGUF_U32, HN_GGUF_I32, HN_GGUF_F32, HN_GGUF_BOOL,
    HN_GGUF_STRING, HN_GGUF_ARRAY, HN_GGUF_U64, HN_GGUF_I64, HN_GGUF_F64, HN_GGUF_TYPES
};

enum { HN_GGUF_ALIGNMENT = 32, HN_MAX_NAME = 256 }; /* default alignment; longest tensor name, in bytes */

typedef enum hn_value_kind {
    HN_VALUE_UINT, /* u */
    HN_VALUE_INT,  /* negative: i */
    HN_VALUE_FLOAT,
    HN_VALUE_BOOL,
    HN_VALUE_STRING,
    HN_VALUE_ARRAY,
    HN_VALUE_OBJECT
} hn_value_kind;

/* One metadata value, of a GGUF key or of a path into config.json. */
typedef struct hn_value {
    hn_value_kind kind;
    union {
        uint64_t u;
        int64_t i;
        double f;
        bool b;
        const char *str; /* NUL-terminated */
        const hn_array *array; /* of a GGUF key, set when it is looked up */
    };
    size_t len; /* of str */
} hn_value;

typedef struct hn_gguf_string {
    const char *bytes;
    size_t len;
} hn_gguf_string;

struct hn_array {
    uint32_t type; /* enum hn_gguf_type of the elements; HN_GGUF_ARRAY: nested, kept opaque */
    size_t count;
    const unsigned char *data; /* numbers: in the file's head, unaligned */
    hn_gguf_string *strings;          /* strings: [count] into the file's head */
};

typedef struct hn_meta {
    char *key;     /* owned */
    uint32_t type; /* enum hn_gguf_type */
    hn_value value;
    char *text;    /* owned copy that value.str points to */
    hn_array array;
    const unsigned char *raw; /* the value as it stands in the file's head */
    size_t raw_bytes;
} hn_meta;

/* Stored bytes, and the file that has them. */
typedef struct hn_stored_part {
    const unsigned char *data;
    size_t file;
} hn_stored_part;

/* Matrices that are stored by columns: [columns][rows] elements of some bytes, one after another. kind: those that are read in turns with
 * others differ in it. */
enum { HN_COLUMN_KINDS = 3 };
typedef struct hn_by_columns {
    hn_stored_part part;
    size_t columns, rows, element;
    int kind;
} hn_by_columns;

/* How the bytes of a virtual tensor are put together (tensor_view.c). */
enum { HN_VIEW_PARTS = 4 };
typedef struct hn_view_kind hn_view_kind;
typedef struct hn_tensor_view {
    const hn_view_kind *kind;
    hn_stored_part part[HN_VIEW_PARTS]; /* what it is put together from, as many as its kind has */
    size_t rows, row_bytes;             /* of each matrix, as they are read */
    bool alternating;                   /* hn_source_alternate */
    struct hn_packed *packed;           /* owned: of packed integers (packed.c), else NULL */
} hn_tensor_view;

typedef struct hn_source_file {
    char *path;
    hn_map map; /* the part of the header that was read is a private copy: see file.h */
} hn_source_file;

enum {
    HN_HF_CONFIG, HN_HF_TOKENIZER, HN_HF_TOKENIZER_CONFIG, HN_HF_SPECIAL_TOKENS, HN_HF_GENERATION_CONFIG,
    /* how the weights are quantised, where config.json does not say it: ModelOpt's, GPTQ's and AWQ's of old */
    HN_HF_MODELOPT, HN_HF_GPTQ, HN_HF_AWQ,
    HN_HF_DOCUMENTS
};

struct hn_source {
    hn_source_kind kind;
    char *path;
    hn_source_file *files; /* mapped: the GGUF file or its parts, or the shards */
    size_t n_files, cap_files;
    hn_tensor *tensors;
    size_t n_tensors, cap_tensors;
    hn_name_index by_name;
    uint32_t gguf_version;
    hn_meta *metas;        /* GGUF */
    size_t n_metas, cap_metas;
    hn_name_index by_key;
    const char *architecture; /* of a GGUF, for the other names of its keys and tensors; NULL: it has none */
    json_t *documents[HN_HF_DOCUMENTS]; /* HF; NULL where the file is absent */
    size_t json_bytes;                  /* their estimated memory (json_load.h) */
    struct hn_transposed_bands *transposed;     /* of tensors that are stored by columns (transposed_bands.c); NULL: there are none */
};

/* The readers fill an empty source; after an error hn_source_close frees what they added. */
hunch_status hn_gguf_read(hn_source *s, const char *path, hunch_error *err); /* with the other parts, if it is split */
hunch_status hn_gguf_read_file(hn_source *s, const char *path, hunch_error *err); /* this file alone */
hunch_status hn_hf_read(hn_source *s, const char *folder, hunch_error *err);      /* a model */
hunch_status hn_hf_read_config(hn_source *s, const char *path, hunch_error *err); /* config.json alone: its path, or its folder's */
hunch_status hn_hf_read_head(hn_source *s, const char *folder, hunch_error *err); /* config.json may be absent */
hunch_status hn_hf_read_file(hn_source *s, const char *path, hunch_error *err);   /* one file of a head's weights */
/* Calls each for the files of a folder that are read besides its weights. path: the folder, or a file of weights in it. */
hunch_status hn_hf_files(const char *path, void (*each)(void *user, const char *file), void *user, hunch_error *err);
hunch_status hn_safetensors_read(hn_source *s, const char *path, hunch_error *err); /* appends the file's tensors */
hunch_status hn_torch_read(hn_source *s, const char *path, hunch_error *err);       /* the same */
/* Appends the one tensor of a file beside a head's weights, by this name. *token: which it is the row of, -1: the file does not say. */
#define HN_MASK_TENSOR "mask_embedding"
hunch_status hn_torch_read_mask(hn_source *s, const char *path, int64_t *token, hunch_error *err);

/* Joins the tensors that a quantised matrix is stored as to one, of the matrix's name: X_blocks and X_scales to X, of type MXFP4
 * (tensor_view.c), and packed integers (hn_packed_join). HUNCH_REFUSED: their types or shapes do not belong together. */
hunch_status hn_source_join(hn_source *s, hunch_error *err);
/* Rows first, first + step, ... as they are stored, n of them, of matrices that are stored by columns (transposed_bands.c); any thread.
 * trim gives the memory back that they are kept in. */
typedef struct hn_transposed_bands hn_transposed_bands;
hunch_status hn_transposed_open(hn_source *s, hunch_error *err);
hunch_status hn_transposed_read(const hn_source *s, const hn_by_columns *c, size_t first, size_t n, size_t step, unsigned char *to,
                            hunch_error *err);
void hn_transposed_trim(hn_source *s);
void hn_transposed_close(hn_source *s);
/* Joins the packed integers of AWQ, GPTQ and compressed-tensors: M.qweight, M.scales, .. to M.weight, of a type that has the same numbers
 * (packed.c). HUNCH_REFUSED, naming the tensor: parts are missing, their types or shapes do not belong together, or a width is not read. */
typedef struct hn_packed hn_packed;
hunch_status hn_packed_join(hn_source *s, hunch_error *err);
/* Rows first, first + step, ..., n of them, in blocks of the tensor's type. Any thread. HUNCH_REFUSED: a scale is not finite. */
hunch_status hn_packed_read(const hn_source *s, const hn_tensor *t, size_t first, size_t n, size_t step, unsigned char *to,
                            hunch_error *err);
void hn_packed_free(hn_packed *p);
/* How a matrix was stored. */
typedef struct hn_packed_info {
    const char *method; /* as quantization_config names it */
    int bits;
    size_t group;       /* inputs that share a scale */
    bool act_order;     /* groups are in no order */
} hn_packed_info;
hn_packed_info hn_packed_get_info(const hn_packed *p);
extern const hn_view_kind hn_view_packed; /* tensor_view.c */
/* hn_source_read of a tensor with a view. */
hunch_status hn_view_read(const hn_source *s, const hn_tensor *t, size_t off, size_t bytes, void *to, hunch_error *err);

/* Used by the readers. */
/* *file: valid until the next file is added. */
hunch_status hn_source_add_file(hn_source *s, const char *path, hn_source_file **file, hunch_error *err);
/* Appends a tensor of the file added last, zeroed except for its file and a checked copy of the name. file: for messages. */
hunch_status hn_source_add_tensor(hn_source *s, const char *file, const char *name, size_t len, hn_tensor **out,
                                  hunch_error *err);
/* Checks tensors first..n-1 of one file: no two may share bytes. */
hunch_status hn_source_check_overlap(const hn_source *s, size_t first, const char *file, hunch_error *err);
/* Builds by_name; a name that appears twice is refused. */
hunch_status hn_source_index_tensors(hn_source *s, hunch_error *err);
void hn_shape_text(char *out, size_t size, const uint64_t *dims, int n_dims); /* "[64, 512]" */
void hn_source_drop_unnamed(hn_source *s); /* removes the tensors without a name, which became part of another */
/* found: false if the path is absent or null. */
hunch_status hn_hf_value(const hn_source *s, const char *key, hn_value *out, bool *found, hunch_error *err);

size_t hn_gguf_type_bytes(uint32_t type); /* of numbers and bool; 0 for the others */
bool hn_gguf_number(uint32_t type, const unsigned char *p, hn_value *out); /* false: a bool that is neither 0 nor 1 */
const char *hn_gguf_type_name(uint32_t type);
/* The part of the description that describe_summary.c makes; NULL: no memory. */
json_t *hn_describe_summary(const hn_source *s);
#endif
