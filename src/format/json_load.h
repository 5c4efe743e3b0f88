/* SPDX-License-Identifier: Apache-2.0 */
/* json_load.h - JSON of untrusted files: three bytes of it may need 300 bytes of memory, so the memory is estimated before it
 * is parsed. */
#ifndef HN_JSON_LOAD_H
#define HN_JSON_LOAD_H
#include <jansson.h>

/* As json_loadb, but if memory ran out, json_error_code reports it; jansson alone often reports a syntax error. Detected by
 * errno: jansson (2.14) drops a byte of a token if its buffer cannot grow, which in a number is not detectable. A program that
 * must detect all cases gives jansson an allocator that does not return on failure, as `hunch` does. */
json_t *hn_json_load(const char *text, size_t size, size_t flags, json_error_t *where);
/* As json_dumps, complete or NULL (no memory, or json is NULL); to be freed with hn_free. */
char *hn_json_dump(const json_t *json, size_t flags);
/* NULL: invalid JSON, a key twice in one object, or more memory than the documents of one model may use together; *where has
 * the reason. held: the memory of earlier ones, to which this one's is added. A number beyond 64 bits makes all reals. */
json_t *hn_json_parse(const char *text, size_t size, size_t *held, json_error_t *where);
#endif
