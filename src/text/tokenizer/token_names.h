/* SPDX-License-Identifier: Apache-2.0 */
/* token_names.h - tokens that are matched in a text by their name, before any other step: control tokens and added tokens. Of
 * several names at one place the longest is matched. */
#ifndef HN_TOKEN_NAMES_H
#define HN_TOKEN_NAMES_H
#include "text/prefix_index.h"

enum {                       /* marks of a name */
       HN_NAME_SPECIAL = 1,  /* matched only if special tokens are parsed */
       HN_NAME_EAT_LEFT = 2, /* the match includes the white space before it */
       HN_NAME_EAT_RIGHT = 4,
       HN_NAME_SINGLE_WORD = 8 /* matched only if no word character is next to it */
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
    uint32_t *pairs;       /* bit [first byte, second byte]: a name may begin with these; NULL: no names */
} hn_names;

void hn_names_fini(hn_names *s);
/* Of equal names the first stays. Names that are empty or not UTF-8 are ignored. False: no memory. */
bool hn_names_add(hn_names *s, const char *name, size_t len, int32_t id, uint8_t marks);
/* To be called after the last name. False: no memory. */
bool hn_names_finish(hn_names *s);

/* Adds marks to a name, if there is one. */
void hn_names_mark(hn_names *s, const char *name, size_t len, uint8_t marks);

/* By the whole name; -1: none. */
int32_t hn_names_get(const hn_names *s, const char *name, size_t len);

typedef struct hn_name_match {
    size_t from, to; /* with the white space that it includes */
    int32_t id;
} hn_name_match;

/* The first match in valid UTF-8 text[at, len); its white space does not begin before `at`. special: special names too; mark [len]: only
 * where their first and last bytes are marked; NULL: anywhere. */
bool hn_names_find(const hn_names *s, const char *text, size_t at, size_t len, bool special, const uint8_t *mark, hn_name_match *match);
#endif
