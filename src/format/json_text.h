/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.h - JSON of untrusted files: three bytes of it may ask for 300 of memory, so what it will take is reckoned
 * before it is parsed. */
#ifndef HN_JSON_TEXT_H
#define HN_JSON_TEXT_H
#include <jansson.h>

/* As json_loadb. Where memory was short json_error_code says so, which jansson alone often takes for a syntax error. It goes by
 * errno: jansson (2.14) drops a byte of a token that its buffer cannot grow for, and where a number follows nobody can tell.
 * A program that must not run out of memory unseen gives jansson an allocator that does not return then, as `hunch` does. */
json_t *hn_json_load(const char *text, size_t size, size_t flags, json_error_t *where);
/* As json_dumps, whole or NULL (no memory, and with json NULL); to be freed with hn_free. */
char *hn_json_dump(const json_t *json, size_t flags);
/* NULL: no JSON, a key twice in one object, or more memory than the documents of one model may take together; *where says
 * which. held: what earlier ones take; this one's is added. Numbers beyond 64 bits make all of them reals. */
json_t *hn_json_parse(const char *text, size_t size, size_t *held, json_error_t *where);
#endif
