/* SPDX-License-Identifier: Apache-2.0 */
/* key_order.h - the order of a family's rows, for reading and writing: key_rows.c. */
#ifndef HN_KEY_ORDER_H
#define HN_KEY_ORDER_H
#include "schema/key_rows.h"

/* Iterates over rows in the order in which they are read and written; begin with zeros. NULL: there are no more. */
typedef struct hn_keys_place {
    int list, row;
} hn_keys_place;
const hn_key_row *hn_keys_next(const hn_file_keys *s, hn_keys_place *at);

/* The i-th name of a list of names; NULL: there are no more. */
const char *hn_keys_word(const char *names, int i, char out[96]);
/* A property that is refused. */
static inline bool hn_keys_refuses(const hn_key_row *k) {
    return k->of == HN_OF_NOTHING && k->most == 0 && !k->written && !(k->how & HN_LATER) &&
           (k->type == HN_KEY_INT || k->type == HN_KEY_REAL || k->type == HN_KEY_BOOL);
}
static inline size_t hn_key_bytes(hn_key_type t) {
    return t == HN_KEY_REAL ? sizeof(double) : t == HN_KEY_FLOAT ? sizeof(float) : t == HN_KEY_BOOL ? sizeof(bool) : sizeof(int);
}
#endif
