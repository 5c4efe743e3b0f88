/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - one view of a model on disk, whatever its format: metadata by key, tensors by name (contract C6).
 *
 * GGUF files (gguf.c, gguf_split.c) and Hugging Face folders (config.json and safetensors or PyTorch's checkpoints; hf.c)
 * open as an hn_source.
 * Nothing here depends on an architecture: src/model maps the names. A tensor that is taken is marked as used, so that the
 * unused ones can be reported.
 */
#ifndef HN_SOURCE_H
#define HN_SOURCE_H
#include <jansson.h>
#include "base/dtype.h"
#include "base/status.h"

typedef enum hn_source_kind { HN_SOURCE_GGUF, HN_SOURCE_HF } hn_source_kind;

enum { HN_MAX_DIMS = 4 };

typedef struct hn_tensor {
    const char *name;           /* as in the file */
    uint32_t ggml_type;         /* GGUF: the number in the file */
    char type_name[32];         /* for messages, as the format calls it, a checkpoint's as safetensors: "Q4_K", "BOOL", "type 99" */
    bool known;                 /* dtype is valid (a type that hunch reads) */
    hn_dtype dtype;
    int n_dims;
    uint64_t dims[HN_MAX_DIMS]; /* ggml order for both formats: dims[0] contiguous (= inputs of a matrix), dims[1] = outputs */
    size_t file;                /* which of the source's files holds it */
    const void *data;           /* mapped, NOT necessarily aligned to the element; checked to lie inside the file. To read it
                                   once: hn_source_read */
    struct hn_tensor_view *view; /* owned; NULL: its bytes are at data, else data is NULL, and hn_source_read puts them together */
    size_t bytes;               /* of a GGUF type that hunch does not read: up to the next tensor, padding included */
    bool used;
} hn_tensor;

typedef struct hn_source hn_source;

/* Opens a .gguf file (the first of its parts, if it is split) or a folder, by its path or by name (find.h). Errors as
 * hunch_model_open. */
hunch_status hn_source_open(hn_source **out, const char *path, hunch_error *err);
/* A draft head: as above, but a folder may lack config.json (params.json is read instead, or every metadata key is absent); or
 * one file of weights (weights_file.h) by its path, with the config.json in its folder, if there is one. */
hunch_status hn_source_open_head(hn_source **out, const char *path, hunch_error *err);
/* One .safetensors file alone, without config.json: every metadata key is absent. */
hunch_status hn_source_open_safetensors(hn_source **out, const char *path, hunch_error *err);
/* A config.json, or the folder that has one, without weights. */
hunch_status hn_source_open_config(hn_source **out, const char *path, hunch_error *err);
void hn_source_close(hn_source **s);

/* Calls each for every file of the model: the mapped ones, and the other files of its folder that are read (JSON, index, chat
 * template). HUNCH_FAILED: it cannot be determined whether one exists. */
hunch_status hn_source_files(const hn_source *s, void (*each)(void *user, const char *file), void *user,
                             hunch_error *err);

hn_source_kind hn_source_get_kind(const hn_source *s);
const char *hn_source_path(const hn_source *s);
/* A GGUF's general.architecture as the file says it; "": it has none. */
const char *hn_source_architecture(const hn_source *s);
size_t hn_source_tensor_count(const hn_source *s);
hn_tensor *hn_source_tensor(hn_source *s, size_t i);
/* By its name, or what Ollama's converter calls it (other_names.h), without marking it as used. NULL if absent. */
const hn_tensor *hn_source_find(const hn_source *s, const char *name);
/* The same; marks it used. NULL if absent. */
hn_tensor *hn_source_take(hn_source *s, const char *name);
/* As hn_source_take, but HUNCH_REFUSED, naming the tensor and what was expected, if it is absent, of another shape or of a type
 * that no kernel multiplies by (from HN_WEIGHT_TYPES on). dims in ggml order, 1 to HN_MAX_DIMS of them; trailing dims of 1 do
 * not count. */
hunch_status hn_source_need_shape(hn_source *s, const char *name, int n_dims, const uint64_t *dims, hn_tensor **out,
                                  hunch_error *err);
/* The same for n_dims 1, a vector, or 2, a matrix. */
hunch_status hn_source_need(hn_source *s, const char *name, int n_dims, uint64_t dim0, uint64_t dim1, hn_tensor **out,
                            hunch_error *err);
/* Copies bytes [off, off + bytes) of a tensor's data from the file. Any thread. HUNCH_FAILED: it cannot be read, or was
 * truncated. */
hunch_status hn_source_read(const hn_source *s, const hn_tensor *t, size_t off, size_t bytes, void *to,
                            hunch_error *err);
/* Both for tensors of a folder's experts (tensor_view.c); the second call does nothing. Errors: HUNCH_NO_MEMORY.
 * Of a tensor of matrices of floats, each stored by columns: from now on its shape and its bytes are by rows. */
hunch_status hn_source_turn(hn_source *s, hn_tensor *t, hunch_error *err);
/* Of a tensor of matrices (3 dimensions) or vectors (2) that alternate between two things: rows, or values, 0, 2, 4, ... of
 * each are read first, then 1, 3, 5, ... Their number is even. */
hunch_status hn_source_alternate(hn_tensor *t, hunch_error *err);
/* Of a matrix of packed integers whose groups are in no order (GPTQ's act order), and which a block type holds once the inputs of a group
 * stand together: from now on it is of that type, and the k-th number of its rows is that of input order[k] ([inputs], owned by the
 * source). NULL: it is no such matrix, and stays as it is. The second call changes nothing. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_source_sort(hn_tensor *t, const int32_t **order, hunch_error *err);
/* *same: both have the same type, shape and bytes. The bytes are read as far as they are equal; tensors of a config.json without
 * weights are the same if their shapes are. Errors as hn_source_read. */
hunch_status hn_source_same(const hn_source *s, const hn_tensor *a, const hn_tensor *b, bool *same, hunch_error *err);
/* Rows of a matrix in its mapped file, at equal distances. */
typedef struct hn_file_rows {
    const unsigned char *rows;
    size_t row_bytes;
    const unsigned char *scales; /* MXFP4 of a folder, whose codes are in `rows` (hn_mxfp4_join): one a block; else NULL */
    size_t scale_bytes;          /* from a row's scales to the next row's */
} hn_file_rows;
/* Of a tensor's row number `row`, all matrices' rows counted, and those after it: of the same matrix, and if its rows alternate, of
 * the same half. False: they do not lie there as they are read, but by columns or as packed integers. */
bool hn_tensor_rows(const hn_tensor *t, size_t row, hn_file_rows *out);
const char *hn_tensor_form(const hn_tensor *t); /* how it is stored, for messages: "by columns" */
bool hn_tensor_has_integers(const hn_tensor *t); /* or booleans */
/* Reads a vector of n integers or booleans (0 and 1). HUNCH_REFUSED, naming the tensor: of another type or shape, or an element
 * below least or above most. */
hunch_status hn_source_read_integers(const hn_source *s, const hn_tensor *t, size_t n, int64_t least, int64_t most,
                                     int64_t *to, hunch_error *err);
/* HUNCH_FAILED, naming the file, if one of them was written to or truncated since the source was opened. Replacing a file by
 * another of its name does not matter: the opened one stays in use. */
hunch_status hn_source_check(const hn_source *s, hunch_error *err);
/* Frees metadata and JSON; the tensors stay, and their files stay mapped. */
void hn_source_trim(hn_source *s);

/* Metadata. GGUF: the file's key ("llama.block_count"). HF: a dotted path into config.json ("rope_scaling.factor"); if a
 * multimodal model describes its language model in text_config, or a draft head its layers in transformer_layer_config or
 * model, the keys of that object come first.
 * found: false if absent (then *out is untouched). A value of another type or out of range: HUNCH_REFUSED. */
hunch_status hn_source_u64(const hn_source *s, const char *key, uint64_t *out, bool *found, hunch_error *err);
hunch_status hn_source_f64(const hn_source *s, const char *key, double *out, bool *found, hunch_error *err);
hunch_status hn_source_bool(const hn_source *s, const char *key, bool *out, bool *found, hunch_error *err);
/* *out is owned by the source; may contain any bytes, NUL-terminated, length in *len (len may be NULL). */
hunch_status hn_source_str(const hn_source *s, const char *key, const char **out, size_t *len, bool *found,
                           hunch_error *err);
/* All keys of a GGUF in the order of the file, as they stand in its head: what a copy of it writes (hn_gguf_put_raw). 0 of a folder, and
 * after hn_source_trim. */
typedef struct hn_source_meta {
    const char *key;  /* owned by the source */
    uint32_t type;    /* the number of its type in the format: 8 a string, 9 an array, ... */
    const void *value; /* bytes of the file, not aligned */
    size_t bytes;
} hn_source_meta;
size_t hn_source_meta_count(const hn_source *s);
hn_source_meta hn_source_get_meta(const hn_source *s, size_t i);
/* Arrays (GGUF metadata only). Strings are returned one by one; numbers of any integer or float type as f64/i64. */
typedef struct hn_array hn_array;
hunch_status hn_source_array(const hn_source *s, const char *key, const hn_array **out, hunch_error *err); /* NULL: absent */
size_t hn_array_count(const hn_array *a);
bool hn_array_is_strings(const hn_array *a);
const char *hn_array_string(const hn_array *a, size_t i, size_t *len); /* owned by the source; NOT NUL-terminated */
double hn_array_number(const hn_array *a, size_t i);

/* HF folders: the parsed file, or NULL if it is absent. Owned by the source. */
const json_t *hn_source_json(const hn_source *s, const char *file_name); /* "config.json", "tokenizer.json",
                                            "tokenizer_config.json", "special_tokens_map.json", "generation_config.json", … */

/* HF: the value at a dotted path of config.json, found like metadata (for lists); NULL: absent, null, or another format. */
const json_t *hn_source_config(const hn_source *s, const char *path);
/* True if this key of config.json is null (such a key counts as absent). */
bool hn_source_is_null(const hn_source *s, const char *key);

/* The model's chat template for a use: *text is to be freed with hn_free; NULL: none. */
typedef enum hn_chat_use { HN_CHAT_DEFAULT, HN_CHAT_TOOLS } hn_chat_use;
#define HN_CHAT_KEY "tokenizer.chat_template"
#define HN_CHAT_TOOLS_KEY "tokenizer.chat_template.tool_use"
#define HN_CHAT_FILE "chat_template.jinja" /* of a folder */
hunch_status hn_source_chat_template(const hn_source *s, hn_chat_use use, char **text, size_t *len, hunch_error *err);

/* A JSON description for `hunch inspect`: format, metadata (long arrays shortened), tensors with type, shape, bytes, used. */
hunch_status hn_source_describe(const hn_source *s, json_t **out, hunch_error *err);
/* Any bytes as a JSON string: invalid UTF-8 appears as U+FFFD. NULL: no memory. */
json_t *hn_json_from_bytes(const char *bytes, size_t len);
#endif
