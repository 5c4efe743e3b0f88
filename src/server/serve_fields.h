/* SPDX-License-Identifier: Apache-2.0 */
/* serve_fields.h - reading the fields of a request's JSON, with errors that name the field. A field that is missing or null leaves
 * *out as it is. All return false after an error. Whole numbers and booleans may be in an object within the body: "speculation.depth" is
 * read as "depth" of the object that is given. */
#ifndef HN_SERVE_FIELDS_H
#define HN_SERVE_FIELDS_H

#include <stdint.h>

#include "server/serve_error.h"

enum { SERVE_MOST_DEPTH = 64, SERVE_MOST_VALUES = 1 << 20 }; /* of JSON: how deep it is nested, values of lists and objects */

/* An object, to be freed with json_decref; NULL after an error. Beyond these limits it is refused before it is parsed. */
json_t *serve_body_parse(const char *bytes, size_t n, serve_error *err);
/* The field; NULL: missing or null. */
json_t *serve_field(const json_t *body, const char *name);
bool serve_field_bool(const json_t *body, const char *name, bool *out, serve_error *err);
bool serve_field_int(const json_t *body, const char *name, int64_t least, int64_t most, int64_t *out, serve_error *err);
/* A text of at least one byte; *out belongs to the body. */
bool serve_field_text(const json_t *body, const char *name, const char **out, serve_error *err);
/* Token ids of a list; to be freed with hn_free. name: for errors. */
bool serve_ids_read(const json_t *list, const char *name, int vocab, int32_t **ids, size_t *n, serve_error *err);

#endif
