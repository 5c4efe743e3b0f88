/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan.h - where one JSON value ends in a text that arrives in pieces, and whether it is one (RFC 8259, strictly). */
#ifndef HN_JSON_SCAN_H
#define HN_JSON_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_JSON_DEPTH = 512 }; /* nested arrays and objects; more is no JSON here */
typedef struct hn_json_scan {
    uint8_t state, hex, surrogate, word_at;
    const char *word;
    int depth;
    bool done, bad;
    bool key; /* the string that is read is one */
    uint64_t object[HN_JSON_DEPTH / 64]; /* bit i: container i is an object */
} hn_json_scan;

void hn_json_scan_init(hn_json_scan *s);
/* Reads on; returns the bytes that belong to the value, all of them unless it is done or bad then. A number ends where another byte
 * follows: `ended` says that none does. White space before the value belongs to it. */
size_t hn_json_scan_run(hn_json_scan *s, const char *bytes, size_t n, bool ended);
/* Whether all of a text is one value, with white space around it. */
bool hn_json_is_value(const char *text, size_t n);
#endif
