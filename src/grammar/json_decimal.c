/* SPDX-License-Identifier: Apache-2.0 */
/* json_decimal.c - see json_decimal.h. */
#include "grammar/json_decimal.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/json_load.h"
#include "base/shortest.h"

static void shortest(double v, char out[HN_SHORTEST_TEXT]) {
    enum { DIGITS = 15 /* that every double keeps */ };
    const locale_t before = hn_c_locale_begin();
    hn_shortest(v, DIGITS, out);
    hn_c_locale_end(before);
}

/* Of a text of JSON: the digits that count, from the first one that is no zero to the last one. */
typedef struct significant {
    const char *from, *to; /* a point may be between */
    long place;            /* of the first one: its power of ten */
} significant;

static significant significant_of(const char *text) {
    const char *exponent = text + strcspn(text, "eE"), *point = memchr(text, '.', (size_t)(exponent - text));
    significant s = {text + strspn(text, "0."), exponent, *exponent ? strtol(exponent + 1, NULL, 10) : 0};
    if (s.from > exponent) s.from = exponent;
    while (s.to > s.from && (s.to[-1] == '0' || s.to[-1] == '.')) s.to--;
    if (!point) point = exponent;
    if (s.place < -1000000) s.place = -1000000; /* far beyond any room, and no overflow below */
    if (s.place > 1000000) s.place = 1000000;
    s.place += s.from < point ? point - s.from - 1 : point - s.from;
    return s;
}

/* text: a number of JSON without its sign. */
static bool read_text(const char *text, hn_decimal *d) {
    const significant s = significant_of(text);
    const bool pointed = memchr(s.from, '.', (size_t)(s.to - s.from)) != NULL;
    const long n = s.to - s.from - pointed, last = s.place - n + 1;
    d->n_whole = d->n_part = 0;
    if (n > 0 && (s.place >= HN_DECIMAL_WHOLE || last < -HN_DECIMAL_PART)) return false;
    d->n_whole = n > 0 && s.place > 0 ? (int)s.place + 1 : 1;
    d->n_part = n > 0 && last < 0 ? (int)-last : 0;
    memset(d->whole, '0', (size_t)d->n_whole);
    memset(d->part, '0', (size_t)d->n_part);
    long place = s.place;
    for (const char *c = s.from; c < s.to; c++) {
        if (*c == '.') continue;
        if (place >= 0)
            d->whole[d->n_whole - 1 - place] = *c;
        else
            d->part[-place - 1] = *c;
        place--;
    }
    return true;
}

static bool is_zero(const hn_decimal *d) {
    return d->n_part == 0 && d->n_whole == 1 && d->whole[0] == '0';
}

bool hn_decimal_read(const json_t *value, hn_decimal *d) {
    char number[HN_SHORTEST_TEXT];
    const char *text = hn_json_digits(value);
    if (!text) {
        if (json_is_real(value))
            shortest(json_real_value(value), number);
        else
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        text = number;
    }
    const bool minus = *text == '-', ok = read_text(text + minus, d);
    d->minus = minus && !is_zero(d);
    return ok;
}

size_t hn_decimal_print(const hn_decimal *d, char out[HN_DECIMAL_TEXT]) {
    char *to = out;
    if (d->minus) *to++ = '-';
    memcpy(to, d->whole, (size_t)d->n_whole);
    to += d->n_whole;
    if (d->n_part) {
        *to++ = '.';
        memcpy(to, d->part, (size_t)d->n_part);
        to += d->n_part;
    }
    *to = '\0';
    return (size_t)(to - out);
}

int hn_decimal_digit(const hn_decimal *d, int i) {
    if (i < d->n_whole) return d->whole[i] - '0';
    i -= d->n_whole;
    return i < d->n_part ? d->part[i] - '0' : 0;
}

/* Without signs. */
static int size_order(const hn_decimal *x, const hn_decimal *y) {
    if (x->n_whole != y->n_whole) return x->n_whole - y->n_whole;
    const int n = x->n_whole + (x->n_part > y->n_part ? x->n_part : y->n_part);
    for (int i = 0; i < n; i++)
        if (hn_decimal_digit(x, i) != hn_decimal_digit(y, i)) return hn_decimal_digit(x, i) - hn_decimal_digit(y, i);
    return 0;
}

int hn_json_order(const json_t *x, const json_t *y) {
    hn_decimal a, b;
    if (!hn_decimal_read(x, &a) || !hn_decimal_read(y, &b)) {
        const double v = hn_json_number_value(x), w = hn_json_number_value(y);
        return (v > w) - (v < w);
    }
    if (a.minus != b.minus) return a.minus ? -1 : 1;
    return a.minus ? size_order(&b, &a) : size_order(&a, &b);
}
