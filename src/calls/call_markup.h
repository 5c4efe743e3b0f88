/* SPDX-License-Identifier: Apache-2.0 */
/* call_markup.h - families that write a call in tags, each parameter in tags of its own: one reader, and the marks of each family. */
#ifndef HN_CALL_MARKUP_H
#define HN_CALL_MARKUP_H
#include "calls/call_reader.h"

/* The `how` of such a family. The name of the function stands between name_open and name_close, a parameter's between param_open and
 * param_close, its value behind value_open, if there is one, up to value_close. */
typedef struct hn_markup {
    const char *name_open;  /* "": the name follows the opening mark */
    const char *name_close; /* NULL: a line break, param_open or call_close, which are not part of it */
    const char *param_open, *param_close, *value_open, *value_close, *call_close;
    const char *close;      /* of the block of calls; NULL: there is none */
    const char *close_too;  /* another version's; NULL: there is none */
    bool lines;             /* a value stands on lines of its own: one line break at each of its ends is none of its */
    char gap;               /* between tags: 'n' a line break, 'o' one that may be there, 0 nothing */
    bool many;              /* all calls stand in one block */
    bool typed;             /* a parameter's tag says string="true" or "false" */
    const char *cdata;      /* what ends a value that begins with <![CDATA[ ; NULL: none does */
} hn_markup;
hn_call_events hn_read_markup(hn_call_reader *r);
#endif
