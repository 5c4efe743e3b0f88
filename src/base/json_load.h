/* SPDX-License-Identifier: Apache-2.0 */
/* json_load.h - JSON of untrusted files and requests: three bytes of it may need 300 bytes of memory, so the memory is estimated before it
 * is parsed; and numbers that neither 64 bits nor a double hold keep their digits.
 *
 * Such a number is an object with one key that is no UTF-8, so no JSON from outside has one: whoever expects a text, a whole number or a
 * number of jansson's refuses it, and json_dumps fails, where hn_json_dump writes its digits. */
#ifndef HN_JSON_LOAD_H
#define HN_JSON_LOAD_H
#include <jansson.h>
#include <stdbool.h>

/* As json_loadb, but a large number keeps its digits; and if memory ran out, json_error_code reports it; jansson alone often reports a
 * syntax error. Detected by errno: jansson (2.14) drops a byte of a token if its buffer cannot grow, which in a number is not detectable.
 * A program that must detect all cases gives jansson an allocator that does not return on failure, as `hunch` does. where may be NULL. */
json_t *hn_json_load(const char *text, size_t size, size_t flags, json_error_t *where);
/* As json_dumps, complete or NULL (no memory, or json is NULL); to be freed with hn_free. */
char *hn_json_dump(const json_t *json, size_t flags);
/* NULL: invalid JSON, a key twice in one object, or more memory than the documents of one model may use together; *where has
 * the reason. held: the memory of earlier ones, to which this one's is added. */
json_t *hn_json_parse(const char *text, size_t size, size_t *held, json_error_t *where);

/* The number as it was written if neither 64 bits nor a double hold it ("18446744073709551615", "-1e400"); NULL: it is another value. */
const char *hn_json_digits(const json_t *value);
/* Whether such a number is a whole one: without a point and an exponent. */
bool hn_json_is_whole(const char *digits);
json_t *hn_json_big(const char *digits, size_t n); /* new: such a number, which must be one of JSON; NULL: no memory */

/* As jansson's, for such numbers too: the nearest double, which may be infinite. */
bool hn_json_is_number(const json_t *value);
double hn_json_number_value(const json_t *value);
/* As json_is_object, but such a number is none. */
bool hn_json_is_object(const json_t *value);

/* The value as a message shows it: JSON, cut if it is longer than the room. */
const char *hn_json_show(const json_t *value, char *out, size_t size);
#endif
