/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - tokens that are read from a text by their name, before anything else looks at it: control tokens, and those
 * that a user added. Of the names that begin at a place the longest counts. */
#ifndef HN_NAMES_H
#define HN_NAMES_H
#include "text/prefix_index.h"

enum {                       /* marks of a name */
       HN_NAME_SPECIAL = 1,  /* read only where special tokens are asked for */
       HN_NAME_EAT_LEFT = 2, /* takes the white space before it */
       HN_NAME_EAT_RIGHT = 4,
       HN_NAME_ALONE = 8 /* counts only where no word touches it */
};

typedef struct hn_name_entry {
    hn_piece name; /* a copy */
    int32_t id;
    uint8_t marks;
} hn_name_entry;

typedef struct hn_names {
    hn_name_entry *entries;
    size_t n, cap;
    hn_prefix_index index; /* of the entry */
    uint32_t *pairs;       /* bit [first byte, second byte]: a name may begin so; NULL: there are none */
} hn_names;

void hn_names_fini(hn_names *s);
/* Of equal names the first stays. Names that are empty or no UTF-8 are left out. False: no memory. */
bool hn_names_add(hn_names *s, const char *name, size_t len, int32_t id, uint8_t marks);
/* After the last name. False: no memory. */
bool hn_names_finish(hn_names *s);

/* Adds marks to a name, if there is one. */
void hn_names_mark(hn_names *s, const char *name, size_t len, uint8_t marks);

/* By the whole name; -1: none. */
int32_t hn_names_get(const hn_names *s, const char *name, size_t len);

typedef struct hn_name_match {
    size_t from, to; /* with the white space it takes */
    int32_t id;
} hn_name_match;

/* The first match in valid UTF-8 text[at, len) whose taken white space does not begin before `at`. */
bool hn_names_find(const hn_names *s, const char *text, size_t at, size_t len, bool special, hn_name_match *match);
#endif
