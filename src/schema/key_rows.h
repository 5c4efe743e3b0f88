/* SPDX-License-Identifier: Apache-2.0 */
/* key_rows.h - the keys of a file, a row each: the field of a description that a key gives, its name in a GGUF and its places in a
 * folder, its range, and the field's value where there is no key. One engine reads rows into a description (key_read.c) and writes them
 * from one (key_write.c), so that a family (model/arch/arch_*.c) is its rows and what it computes from them.
 *
 * The rows of a family are several lists: those that all share, then its own. A row of a later list stands in the place of the row of an
 * earlier one that has its field. A row without names is a constant. */
#ifndef HN_KEY_ROWS_H
#define HN_KEY_ROWS_H
#include <stddef.h>

#include "format/gguf_writer.h"
#include "format/source.h"

struct hn_arch;
struct hn_layer_desc;

typedef enum hn_key_type {
    HN_KEY_END, /* of a list */
    HN_KEY_INT,
    HN_KEY_FLOAT,
    HN_KEY_REAL, /* double; f32 in a GGUF */
    HN_KEY_BOOL,
    HN_KEY_WORD, /* one of `words`: an int, its number among them */
    HN_KEY_LIST, /* numbers, written alone: of each layer, or `fill` */
    HN_KEY_CLAIM /* code reads it */
} hn_key_type;

/* Where a field is: in hn_arch, or in the hn_layer_desc that all layers begin as. */
typedef enum hn_key_of { HN_OF_NOTHING, HN_OF_MODEL, HN_OF_LAYER } hn_key_of;

enum {
    HN_FIRST = 512,       /* read before all others */
    HN_LATER = 1,         /* read when code asks for it (hn_keys_read_at) */
    HN_GGUF_WRITTEN = 2,  /* a GGUF's name is for writing alone: of a value that follows from its tensors, or that other programs ask for */
    HN_NEVER_WRITTEN = 4,
    HN_UNUSUAL = 8,       /* written if it is not a GGUF's usual value */
    HN_IF_SET = 16,       /* written if it is not 0 */
    HN_EACH = 32,         /* a GGUF may have a list, a number of each layer; so it is written if they differ */
    HN_ZERO_IS_NONE = 64, /* a GGUF's 0 is as if the key was absent */
    HN_NOT_NULL = 128,    /* a folder's null is an error; else it is as if the key was absent */
    HN_BEHIND = 256       /* in place of an earlier row, but read and written at its own place */
};

struct hn_key_row;
typedef struct hn_key_reading {
    const struct hn_file_keys *schema;
    struct hn_arch *a;
    struct hn_layer_desc *l;
    const hn_source *src;
    const char *place; /* in a folder: what '@' in names stands for */
} hn_key_reading;

typedef struct hn_key_row {
    hn_key_of of;
    size_t at; /* offset of its field */
    hn_key_type type;
    /* Names in a GGUF, behind "FAMILY.", and paths in a folder, separated by spaces: the first that there is counts, and the first name is
     * written. '?' before a GGUF's: true if it has a tensor of this name; '@' before a folder's: in the object of the reading's `place`.
     * NULL: none. */
    const char *gguf, *folder;
    double least, most; /* 0 and 0: a property that models of the family do not have; then `words` may say of what */
    double usual[2];    /* the value of an absent key, by hn_source_kind; NAN: it must be there */
    int how;            /* HN_LATER, .. */
    const char *words; /* between blanks; a bar is between those that mean the same */
    /* Instead of usual, least and most, and what the names say. NULL: as above. */
    double (*follows)(const struct hn_arch *a, const struct hn_layer_desc *l);
    double (*up_to)(const struct hn_arch *a);
    hunch_status (*read)(const hn_key_reading *r, const struct hn_key_row *k, double *value, hunch_error *err);
    /* Whether it is written; it may change the value. NULL: always, but for `how`. */
    bool (*written)(const struct hn_arch *a, const struct hn_key_row *k, double *value);
    int (*each)(const struct hn_layer_desc *l);             /* of HN_KEY_LIST, */
    int (*fill)(const struct hn_arch *a, int32_t list[8]);  /* or its numbers; returns how many there are */
} hn_key_row;

enum { HN_KEY_LISTS = 10 };
typedef struct hn_file_keys {
    const char *prefix; /* of keys in a GGUF: "llama" */
    const hn_key_row *list[HN_KEY_LISTS]; /* each ends with HN_KEY_END; NULL: there are no more */
    const char *place; /* where a folder mostly has the keys of '@', for lists of them */
} hn_file_keys;

/* Reads all rows in their order, but those that are read later. HUNCH_REFUSED, naming the key. */
hunch_status hn_keys_read(const hn_key_reading *r, hunch_error *err);
/* Reads one value, of a field that has a row. */
hunch_status hn_keys_read_at(const hn_key_reading *r, hn_key_of of, size_t at, double *value, hunch_error *err);
/* The same, of n fields, into them. */
hunch_status hn_keys_take(const hn_key_reading *r, hn_key_of of, const size_t *at, int n, hunch_error *err);
/* Reads the rows that a GGUF may have of each layer, into that of number `layer`. */
hunch_status hn_keys_read_layer(const hn_key_reading *r, int layer, hunch_error *err);
/* The row of a field; NULL: there is none. */
const hn_key_row *hn_keys_row(const hn_file_keys *s, hn_key_of of, size_t at);
/* Whether a row reads this name or path. */
bool hn_keys_reads(const hn_file_keys *s, hn_source_kind form, const char *name);

/* The keys of a family's files in words: names in a GGUF, paths in a folder, values; "": there is none. form: of the absent key's value. */
void hn_keys_list(const hn_file_keys *s, hn_source_kind form,
                  void (*each)(void *user, const char *gguf, const char *folder, const char *values), void *user);

/* What is written: a model, and its layers. layer_of: the number of the one whose field stands for all. */
typedef struct hn_record {
    const struct hn_arch *a;
    const void *layer;
    size_t layer_bytes;
    int layers;
    int (*layer_of)(const struct hn_arch *a, size_t at);
} hn_record;
hunch_status hn_keys_write(const hn_file_keys *s, const hn_record *from, hn_gguf_writer *w, hunch_error *err);

/* ---- one key, for code ---- */

typedef struct hn_key {
    const char *gguf, *hf; /* NULL: this format has none */
    double min, max;
    double dflt; /* NAN: required */
} hn_key;
hunch_status hn_key_int(const hn_source *src, const hn_key *k, int *out, hunch_error *err);
hunch_status hn_key_real(const hn_source *src, const hn_key *k, double *out, hunch_error *err);
#endif
