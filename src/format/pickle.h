/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.h - reads Python's pickles without executing anything.
 *
 * A pickle is a program for a stack machine, and may call any function of Python. This machine supports the opcodes of plain
 * data and the functions that its caller lists; a call of one of those is recorded as the function and its arguments, for the
 * caller to interpret (torch.c). Everything else is refused by its name. The memory of a pickle is limited by HN_PICKLE_VALUES;
 * nothing recurses, though a value may contain itself.
 */
#ifndef HN_PICKLE_H
#define HN_PICKLE_H
#include "base/status.h"

enum { HN_PICKLE_VALUES = 4 << 20 }; /* limit of pushes of one pickle */

typedef enum hn_pickle_use {
    HN_PICKLE_NAME, /* a value, which is not called */
    HN_PICKLE_CALL, /* is called with arguments */
    HN_PICKLE_MAKES_DICT /* called without arguments it returns a dictionary */
} hn_pickle_use;

typedef struct hn_pickle_global {
    const char *name; /* with its module: "collections.OrderedDict" */
    hn_pickle_use use;
    int what;         /* the caller's */
} hn_pickle_global;

typedef enum hn_pickle_kind {
    HN_PY_NONE, HN_PY_BOOL, HN_PY_INT, HN_PY_FLOAT, HN_PY_TEXT, HN_PY_TUPLE, HN_PY_LIST, HN_PY_DICT,
    HN_PY_GLOBAL,  /* `global` alone */
    HN_PY_CALL,    /* of `global`; its items are the arguments */
    HN_PY_OUTSIDE  /* stored outside the pickle (persistent id); its items specify where */
} hn_pickle_kind;

typedef struct hn_py {
    hn_pickle_kind kind;
    uint32_t n;           /* items of a tuple, list, call or outside; pairs of a dictionary; bytes of a text */
    uint32_t first, last; /* of its items; of a text: `first` is where its bytes begin */
    union {
        int64_t i; /* INT and BOOL */
        double f;
        const hn_pickle_global *global;
    };
} hn_py;

typedef struct hn_py_item {
    uint32_t key, value, next; /* values; key: of dictionaries */
} hn_py_item;

typedef struct hn_pickle {
    const unsigned char *bytes; /* owned by the caller; texts point into it */
    hn_py *values;
    size_t n_values, cap_values;
    hn_py_item *items;
    size_t n_items, cap_items;
    uint32_t root; /* the resulting value */
} hn_pickle;

/* Reads the pickle at the beginning of the bytes; *used (may be NULL): its length. path: for messages. On error there is
 * nothing to free. HUNCH_REFUSED, HUNCH_NO_MEMORY. */
hunch_status hn_pickle_read(hn_pickle *p, const unsigned char *bytes, size_t size, const hn_pickle_global *globals,
                            size_t n_globals, const char *path, size_t *used, hunch_error *err);
void hn_pickle_free(hn_pickle *p); /* zeroed is fine */

static inline const hn_py *hn_pickle_root(const hn_pickle *p) {
    return &p->values[p->root];
}
/* Item i of a tuple, list, call or outside; NULL: none. Linear in i. */
const hn_py *hn_pickle_at(const hn_pickle *p, const hn_py *v, size_t i);
bool hn_pickle_is_text(const hn_pickle *p, const hn_py *v, const char *text); /* false for NULL */
static inline const char *hn_pickle_text(const hn_pickle *p, const hn_py *v) {
    return (const char *)p->bytes + v->first; /* v->n bytes, no NUL */
}
/* The value of a text key in a dictionary, the last if there are several; NULL: none. */
const hn_py *hn_pickle_get(const hn_pickle *p, const hn_py *dict, const char *key);
#endif
