/* SPDX-License-Identifier: Apache-2.0 */
/* json_decimal.h - numbers of JSON as decimal digits, exactly: whole numbers of any size, and of doubles the shortest digits that are read
 * as them. Bounds, constants and equality of numbers in schemas are decided here, never by doubles: beyond 2^53 these are not whole numbers
 * one by one. */
#ifndef HN_JSON_DECIMAL_H
#define HN_JSON_DECIMAL_H
#include <jansson.h>
#include <stdbool.h>

enum { HN_DECIMAL_WHOLE = 1024, HN_DECIMAL_PART = 400, HN_DECIMAL_TEXT = HN_DECIMAL_WHOLE + HN_DECIMAL_PART + 4 };

/* Digits before and behind the point, without needless zeros ("0" before it at least). */
typedef struct hn_decimal {
    bool minus; /* not of 0 */
    char whole[HN_DECIMAL_WHOLE], part[HN_DECIMAL_PART];
    int n_whole, n_part;
} hn_decimal;

/* value: a number (json_load.h); NULL: 0. False: it has more digits than a decimal. */
bool hn_decimal_read(const json_t *value, hn_decimal *d);
/* The digits, without an exponent; returns their length. */
size_t hn_decimal_print(const hn_decimal *d, char out[HN_DECIMAL_TEXT]);
int hn_decimal_digit(const hn_decimal *d, int i); /* digit i; behind the last one all are 0 */
/* Below, equal to or above 0: x is below y, equal to it, above it. Of numbers with too many digits as doubles. */
int hn_json_order(const json_t *x, const json_t *y);
#endif
