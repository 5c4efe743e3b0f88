/* SPDX-License-Identifier: Apache-2.0 */
/* literal.h - literals of Python, and values in Gemma's spelling, as JSON; the text may arrive in pieces. */
#ifndef HN_LITERAL_H
#define HN_LITERAL_H
#include "calls/call_bytes.h"
#include <stdint.h>

typedef enum hn_literal_style {
    HN_PYTHON,         /* as Python reads it */
    HN_PYTHON_WRITTEN, /* as models write it: line breaks and unescaped quotes in strings, zeros before numbers */
    HN_GEMMA           /* bare keys, strings between <|"|>, or without it at their beginning */
} hn_literal_style;

typedef enum hn_literal_events { HN_LITERAL_MORE, HN_LITERAL_DONE, HN_LITERAL_BAD } hn_literal_events;

enum { HN_LITERAL_DEPTH = 512 };
typedef struct hn_literal {
    hn_literal_style style;
    uint8_t state;
    bool key;       /* the string is a key */
    char quote;     /* that ends the string; 0: Gemma's mark */
    bool argument;  /* it is the value of a keyword, which another one or `)` follows */
    bool equals;    /* Gemma: keys of the outermost object may end with = */
    int depth;
    char close[HN_LITERAL_DEPTH]; /* of each open container: ] } or ) */
    size_t looked;
    bool no_memory;
} hn_literal;

void hn_literal_init(hn_literal *l, hn_literal_style style);
/* Reads on, adds JSON to out, and says in *used how many bytes it needs no more. ended: nothing follows them. */
hn_literal_events hn_literal_run(hn_literal *l, const char *bytes, size_t n, bool ended, size_t *used, hn_bytes *out);
/* Bytes of a string as JSON has them between its quotes. False: no memory. */
bool hn_json_escape(hn_bytes *out, const char *bytes, size_t n);
#endif
