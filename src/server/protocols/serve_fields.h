/* SPDX-License-Identifier: Apache-2.0 */
/* serve_fields.h - reading the fields of a request's JSON. Every protocol has the same reader of what a request has; a view gives it the
 * fields by our names, whatever the protocol calls them and in whichever object they are, and errors the names that the client knows.
 *
 * A field that is missing or null leaves *out as it is. All that return bool return false after an error. */
#ifndef HN_SERVE_FIELDS_H
#define HN_SERVE_FIELDS_H

#include <stdint.h>

#include "server/protocols/serve_error.h"

enum {
    SERVE_MOST_DEPTH = 64, /* of JSON: how deep it is nested */
    SERVE_MOST_VALUES = 1 << 20, /* of lists and objects */
    SERVE_NAME = 80 /* of a field with where it stands */
};

/* An object, to be freed with json_decref; NULL after an error. Beyond these limits it is refused before it is parsed. */
json_t *serve_body_parse(const char *bytes, size_t n, serve_error *err);
/* What an object has; NULL: missing or null. */
json_t *serve_value(const json_t *object, const char *key);

/* ---- views -------------------------------------------------------------------------------------------------- */

/* A field of a protocol and ours, which may have several names. */
typedef struct serve_name {
    const char *theirs; /* also within an object: "text.format". NULL: the list ends */
    const char *ours;
    bool none;          /* whole numbers from `from` to `to` stand for none: as if it were missing */
    int from, to;
} serve_name;

typedef struct serve_view {
    const json_t *body;      /* an object; another value, or NULL: it has no fields */
    const serve_name *names; /* of the fields that it has; NULL: it has all, by our names */
    const char *within;      /* where it stands, for errors: "speculation", "messages[2]"; NULL: it is the whole body */
    const char *tag;         /* what "model" may end with; NULL: nothing */
} serve_view;

json_t *serve_field(const serve_view *v, const char *name);
/* Its name in errors, "options.top_k"; that of a field which the protocol has not is ours. */
const char *serve_field_name(const serve_view *v, const char *name, char to[SERVE_NAME]);

/* ---- errors: 400, of this field ------------------------------------------------------------------------------ */

/* The message begins with the field's name: `return serve_wrong(err, v, "stop", " is not a text")`. */
bool serve_wrong(serve_error *err, const serve_view *v, const char *name, const char *fmt, ...) HN_PRINTF(4, 5);
/* And ends with the value as it was sent, cut if it is long. */
bool serve_wrong_value(serve_error *err, const serve_view *v, const char *name, const json_t *value, const char *fmt, ...) HN_PRINTF(5, 6);

/* ---- kinds of fields ----------------------------------------------------------------------------------------- */

bool serve_field_bool(const serve_view *v, const char *name, bool *out, serve_error *err);
bool serve_field_int(const serve_view *v, const char *name, int64_t least, int64_t most, int64_t *out, serve_error *err);
/* A text of at least one byte; *out belongs to the body. */
bool serve_field_text(const serve_view *v, const char *name, const char **out, serve_error *err);
/* One of these words, which end with NULL. */
bool serve_field_word(const serve_view *v, const char *name, const char *const *words, const char **out, serve_error *err);
/* Token ids of a list, to be freed with hn_free. name: for errors. */
bool serve_ids_read(const serve_view *v, const char *name, const json_t *list, int vocab, int32_t **ids, size_t *n, serve_error *err);

/* Fields that are looked at, and change nothing. */
typedef enum serve_kind { SERVE_IS_TEXT, SERVE_IS_BOOL, SERVE_IS_WHOLE, SERVE_IS_NUMBER, SERVE_IS_OBJECT, SERVE_IS_LIST } serve_kind;
typedef struct serve_expected {
    const char *name; /* NULL: the list ends */
    serve_kind kind;
} serve_expected;
bool serve_kinds_check(const serve_view *v, const serve_expected *list, serve_error *err);
/* Fields that are supported with one value alone: the others are refused. */
typedef struct serve_only {
    const char *name; /* NULL: the list ends */
    double value;
} serve_only;
bool serve_only_check(const serve_view *v, const serve_only *list, serve_error *err);
/* The same of a switch. */
bool serve_switch_check(const serve_view *v, const char *name, bool must, serve_error *err);
/* Fields that would change the answer, and are not here: refused unless they ask for nothing (false, 0, an empty text, list or object).
 * The names end with NULL; why: behind them in the message. */
bool serve_refused_check(const serve_view *v, const char *const *names, const char *why, serve_error *err);

#endif
