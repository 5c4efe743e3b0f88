/* SPDX-License-Identifier: Apache-2.0 */
/* keys_seen.h - the keys of all objects of a JSON text that are open, and the items of arrays that may have none twice: what no
 * automaton of a grammar can know, and what says that one is written twice. Such items are no arrays or objects, and equal ones are equal
 * texts. A state is a small number, as an automaton's: where the text is, the keys of each open object, and the letters of the
 * key that is being written. Equal ones are one number, so that they can be compared and kept. Keys have one spelling (json_text.h).
 */
#ifndef HN_KEYS_SEEN_H
#define HN_KEYS_SEEN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_KEYS_TWICE = -1, HN_KEYS_FULL = -2 };

typedef struct hn_keys_fact {
    int32_t kind, a, b, c;
} hn_keys_fact;

/* Zeroed: empty; state 0 is that of no text. */
typedef struct hn_keys_seen {
    hn_keys_fact *facts; /* letters of keys, sets of keys, open objects and arrays, states */
    int32_t *index;      /* a hash table of them, their numbers and one */
    size_t n, cap, cap_index;
} hn_keys_seen;

void hn_keys_seen_fini(hn_keys_seen *k);
size_t hn_keys_seen_bytes(const hn_keys_seen *k);
/* The state after one more byte of JSON: HN_KEYS_TWICE if it ends a key that its object has. HN_KEYS_FULL: no memory, or too many. unique:
 * the byte is the [ of an array that may have no item twice. */
int32_t hn_keys_seen_next(hn_keys_seen *k, int32_t state, unsigned char byte, bool unique);
/* The same for an item. What may come next, if keys or items were written that the next one must not be, so that it may be that none is
 * left: */
typedef enum hn_keys_left {
    HN_KEYS_ELSEWHERE, /* nothing of that, */
    HN_KEYS_BEFORE,    /* the quote of a key, or an item, perhaps behind a space, */
    HN_KEYS_INSIDE,    /* a key or a string that goes on, */
    HN_KEYS_ITEM       /* an item that is no string. */
} hn_keys_left;
hn_keys_left hn_keys_seen_place(const hn_keys_seen *k, int32_t state);
/* The text so far and this byte are the beginning of a key or an item that was written. */
bool hn_keys_seen_begins(const hn_keys_seen *k, int32_t state, unsigned char byte);
/* What follows the text so far in the next one of those that it begins: returns how many bytes, cut at cap; -1: there are no more. *after:
 * 0 at first, then where it goes on. */
int hn_keys_seen_rest(const hn_keys_seen *k, int32_t state, int32_t *after, char *bytes, int cap);
bool hn_keys_seen_in_string(const hn_keys_seen *k, int32_t state); /* that is neither a key nor an item */
/* Forgets all facts from number n on, which no state that is kept has. */
void hn_keys_seen_forget(hn_keys_seen *k, size_t n);
/* Quotes that a text must have to end a key that an open object has: 0 if none has any. */
int hn_keys_seen_quotes(const hn_keys_seen *k, int32_t state);
/* Whether a text of the automaton's ends a key twice. Adds nothing, unless it ends several keys. HN_KEYS_FULL or 0 or 1. */
int hn_keys_seen_twice(hn_keys_seen *k, int32_t state, const char *bytes, size_t len);
#endif
