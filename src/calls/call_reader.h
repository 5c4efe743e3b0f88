/* SPDX-License-Identifier: Apache-2.0 */
/* call_reader.h - what families share: the answer's bytes, and the steps by which a family reads a call.
 *
 * Text between calls, and thinking, are the reader's (call_reader.c): it looks for the marks that open a call. From there on the family
 * reads: its `read` looks at the bytes from `at` on and returns what became of them. It keeps its place in `step` and in its own part of
 * the reader; what it has passed is not read again, except for a few bytes of a mark. */
#ifndef HN_CALL_READER_H
#define HN_CALL_READER_H
#include <string.h>
#include "calls/calls.h"
#include "calls/call_bytes.h"
#include "calls/json_scan.h"
#include "calls/literal.h"

typedef enum hn_call_events {
    HN_CALL_MORE,   /* bytes are missing; none will come if the reader has ended, and then the call is cut */
    HN_CALL_AGAIN,  /* one step done */
    HN_CALL_CLOSED, /* no call is open: text begins at `at` */
    HN_CALL_NOT,    /* what stands from `from` to `at` is text, and no call */
    HN_CALL_BREAKS  /* the format is broken at `at` */
} hn_call_events;

typedef struct hn_span {
    size_t from, n; /* of the reader's bytes */
} hn_span;

/* An object of a call that is read: {"name": .., "arguments": ..} (call_object.c). */
typedef struct hn_call_object {
    int step, what;
    hn_json_scan scan;
    hn_span key, value, name, id, args;
    bool foreign; /* the name is not offered */
} hn_call_object;

struct hn_call_reader {
    const hn_call_family *family;
    const hn_tools *tools;
    hn_call_options o;
    hn_bytes in;  /* the answer's bytes from those on that may still be needed */
    size_t at;    /* of `in`: the next one to read */
    size_t from;  /* where the call that is open began */
    size_t looked; /* bytes behind `at` in which a mark was looked for in vain */
    bool ended, failed; /* failed: no memory */
    int mode;
    size_t entered; /* n_calls when the block began that is read */
    int opened;   /* the mark of the family that opened what is read; -1: none, it stands at the start */
    bool started; /* something other than white space was read outside of thinking */
    /* results */
    hn_bytes text, thinking, broken;
    size_t text_kept, thinking_kept; /* bytes of both up to the last one that is no white space */
    bool cut;     /* the call that broke was cut by the end of the answer */
    bool cuts;    /* there was such a call */
    size_t n_cut; /* its bytes, if nothing stands behind it */
    size_t calls_known, args_known; /* n_calls, and the newest one's bytes of arguments, before the end was told */
    size_t passed, thinking_end; /* bytes of the answer before `in`, and up to the end of thinking */
    hn_bytes whole, later; /* from the first broken call on, until one is complete: everything, and the text alone */
    bool holds;
    hn_call *call;
    size_t n_calls, cap_calls, n_done;
    bool open;    /* the newest call is */
    hn_bytes args; /* its arguments */
    /* families */
    int step;
    int members;  /* of the arguments that are built */
    hn_span name, param;
    hn_json_scan scan;
    hn_call_object object;
    hn_literal literal;
    unsigned types; /* of the parameter that is read */
    size_t sent;  /* bytes behind `at` of a value that are in the arguments already */
    bool flag, skips;
};

typedef struct hn_call_grammar hn_call_grammar; /* call_grammar.h */
/* Ids of calls for which the model wrote none. */
typedef enum hn_call_ids { HN_IDS_HEX, HN_IDS_NINE, HN_IDS_COUNTED } hn_call_ids; /* call_.., nine letters, functions.NAME:NUMBER */

struct hn_call_family {
    const char *name;
    const char *const *opens;  /* marks, NULL ends them */
    const char *const *closes; /* marks after which a broken call is over; may be NULL */
    const char *const *drops;  /* marks that belong to no text; may be NULL */
    bool at_start;             /* an answer may begin with a call, without a mark */
    hn_call_ids ids;
    const char *stop;          /* a control token that the model writes after its calls, for whoever answers them; NULL: none */
    bool text_arguments;       /* its template wants earlier arguments as text */
    bool (*fits)(const char *template_text, size_t len);
    hn_call_events (*read)(hn_call_reader *r);
    int32_t (*grammar)(hn_call_grammar *g, bool opened); /* of calls, from the opening mark on, or from behind it; NULL: none */
    int32_t (*may)(hn_call_grammar *g); /* an answer that may call; NULL: text, and calls from the first of its marks on */
    /* the engine's part of a family: of XML its marks */
    const void *how;
};

/* ---- looking ahead --------------------------------------------------------------------------------------------------- */

static inline const char *hn_next_bytes(const hn_call_reader *r) {
    return r->in.at + r->at;
}
static inline size_t hn_left(const hn_call_reader *r) {
    return r->in.n - r->at;
}
typedef enum hn_maybe { HN_NO, HN_YES, HN_UNKNOWN } hn_maybe;
/* Passes n bytes. */
static inline void hn_pass(hn_call_reader *r, size_t n) {
    r->at += n;
    r->looked = 0;
}
/* Whether `what` stands there; unknown: so far it does, and more may come. */
hn_maybe hn_begins_with(const hn_call_reader *r, size_t ahead, const char *what);
static inline bool hn_is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
/* Passes white space. False: nothing else is there yet. */
bool hn_skip_space(hn_call_reader *r);
size_t hn_space_ahead(const hn_call_reader *r, size_t ahead); /* the first byte behind it, or hn_left */
/* The first of some marks (NULL ends them) behind `at`, as bytes from there; *which: its index. SIZE_MAX: none is there yet; then
 * r->looked bytes cannot begin one. What was looked at is not looked at again. */
size_t hn_find(hn_call_reader *r, const char *const *marks, int *which);
/* Passes a mark that is optional: HN_CALL_AGAIN if it is passed or does not stand there. */
hn_call_events hn_pass_optional(hn_call_reader *r, const char *mark);
static inline hn_call_events hn_more_or(const hn_call_reader *r, hn_call_events at_end) {
    return r->ended ? at_end : HN_CALL_MORE;
}
static inline bool hn_span_is(const hn_call_reader *r, hn_span s, const char *what) {
    return s.n == strlen(what) && memcmp(r->in.at + s.from, what, s.n) == 0;
}
hn_span hn_trim(const hn_call_reader *r, hn_span s);

/* ---- a call ------------------------------------------------------------------------------------------------------------ */

enum { HN_LONGEST_NAME = 256 };
/* A call of this name begins: HN_CALL_AGAIN. HN_CALL_NOT: it is not offered. HN_CALL_BREAKS: no other call may follow. n_id 0: the model
 * wrote no id. */
hn_call_events hn_call_begin(hn_call_reader *r, const char *name, size_t n, const char *id, size_t n_id);
void hn_call_args(hn_call_reader *r, const char *bytes, size_t n);
void hn_call_id(hn_call_reader *r, const char *id, size_t n); /* of the newest call */
void hn_call_done(hn_call_reader *r); /* it is complete, up to `at` */
void hn_answer_add(hn_call_reader *r, bool thinking, const char *bytes, size_t n); /* text, or thinking, inside a family's own messages */
void hn_call_text(hn_call_reader *r); /* what stands from `from` to `at` is text; what is open goes on */

/* A JSON object as the arguments of the call that is open, from `at` on; r->scan is to be initialised before. HN_CALL_CLOSED: it is
 * whole. */
hn_call_events hn_read_args(hn_call_reader *r);
/* An object with a name and arguments; r->object is to be zeroed before. HN_CALL_CLOSED: a call was read (or, foreign, none).
 * HN_CALL_NOT: it has no name, or no arguments although `needs_args`. */
hn_call_events hn_read_call_object(hn_call_reader *r, bool needs_args);

/* A member of arguments that are built: `{"key": ` or `, "key": `. */
void hn_args_member(hn_call_reader *r, const char *key, size_t n);
void hn_args_string(hn_call_reader *r, const char *bytes, size_t n); /* escaped, without quotes */
void hn_args_close(hn_call_reader *r);                               /* the object's end */
/* A value of the types that a parameter may have: JSON, a literal of Python, or a string. */
void hn_args_value(hn_call_reader *r, unsigned types, const char *bytes, size_t n);

/* Types of a parameter. */
enum { HN_TYPE_STRING = 1, HN_TYPE_NUMBER = 2, HN_TYPE_INTEGER = 4, HN_TYPE_BOOLEAN = 8, HN_TYPE_NULL = 16, HN_TYPE_ARRAY = 32,
       HN_TYPE_OBJECT = 64, HN_TYPE_OTHERS = 126 };
/* Of an undeclared one HN_TYPE_STRING, of one whose schema does not say HN_TYPE_OTHERS. */
unsigned hn_value_types(const hn_tool_function *f, const json_t *schema); /* 0: it does not say */
const json_t *hn_schema_at(const json_t *root, const char *ref); /* what "#/a/b" names; NULL: nothing */
unsigned hn_param_types(const hn_tool_function *f, const char *param, size_t n);
#endif
