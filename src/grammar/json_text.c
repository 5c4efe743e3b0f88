/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.c - strings and values of JSON as expressions. */
#include "grammar/json_text.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* ---- strings ---- */

/* The escape of a character that cannot be itself in a string; 0 bytes: it can. */
static size_t escape_of(uint32_t cp, char out[8]) {
    static const char codes[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = cp && cp < 0x80 ? strchr(codes, (int)cp) : NULL;
    if (found) return out[0] = '\\', out[1] = letters[found - codes], 2;
    return cp < 0x20 ? (size_t)snprintf(out, 8, "\\u%04x", (unsigned)cp) : 0;
}

static bool range_has(const hn_ranges *set, uint32_t cp) {
    for (size_t i = 0; i < set->n && set->at[i].first <= cp; i++)
        if (set->at[i].last >= cp) return true;
    return false;
}

hn_expr hn_json_class(hn_builder *b, const hn_ranges *set) {
    hn_expr part[40];
    hn_ranges raw = {0};
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < set->n; i++) { /* without control characters, " and \ */
        static const uint32_t gaps[][2] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, HN_LAST_CODE_POINT}};
        for (int k = 0; ok && k < 3; k++) {
            const uint32_t first = set->at[i].first > gaps[k][0] ? set->at[i].first : gaps[k][0];
            ok = hn_ranges_add(&raw, first, set->at[i].last < gaps[k][1] ? set->at[i].last : gaps[k][1]);
        }
    }
    hn_ranges_sort(&raw);
    if (ok) part[n++] = hn_expr_ranges(b, &raw);
    for (uint32_t cp = 0; ok && cp <= '\\'; cp++) {
        char bytes[8];
        const size_t len = escape_of(cp, bytes);
        if (len && range_has(set, cp)) part[n++] = hn_expr_bytes(b, bytes, len);
    }
    hn_ranges_fini(&raw);
    return ok ? hn_expr_alt(b, part, n) : hn_builder_no_memory(b);
}

/* One byte of ranges of bytes. */
static hn_expr byte_of(hn_builder *b, const char *ranges) {
    hn_byte_set set = {{0}};
    for (; *ranges; ranges += 2) hn_byte_set_add(&set, (unsigned char)ranges[0], (unsigned char)ranges[1]);
    return hn_expr_set(b, &set);
}

hn_expr hn_json_char(hn_builder *b) {
    const hn_expr hex = byte_of(b, "09afAF"), u = hn_expr_text(b, "\\u"), d = byte_of(b, "ddDD");
    const hn_expr basic[] = {u, byte_of(b, "09acefACEF"), hex, hex, hex}, low_d[] = {u, d, byte_of(b, "07"), hex, hex};
    const hn_expr pair[] = {u, d, byte_of(b, "89abAB"), hex, hex, u, d, byte_of(b, "cfCF"), hex, hex};
    const hn_expr named[] = {hn_expr_text(b, "\\"), byte_of(b, "\"\"\\\\//bbffnnrrtt")};
    static const uint32_t plain[] = {0x20, 0x21, 0x23, 0x5B, 0x5D, HN_LAST_CODE_POINT};
    const hn_expr any[] = {hn_expr_class(b, plain, 3, false), hn_expr_seq(b, named, 2), hn_expr_seq(b, basic, 5), hn_expr_seq(b, low_d, 5),
                           hn_expr_seq(b, pair, 10)};
    return hn_expr_alt(b, any, 5);
}

hn_expr hn_json_quoted(hn_builder *b, hn_expr body) {
    const hn_expr quote = hn_expr_text(b, "\""), whole[] = {quote, body, quote};
    return hn_expr_seq(b, whole, 3);
}

hn_expr hn_json_string(hn_builder *b) {
    if (b->json_string < 0) b->json_string = hn_json_quoted(b, hn_expr_repeat(b, hn_json_char(b), 0, -1));
    return b->json_string;
}

char *hn_json_word_text(const char *text, size_t len, size_t *n) {
    char *out = hn_alloc(6 * len + 3), code[8];
    *n = 0;
    if (!out) return NULL;
    out[(*n)++] = '"';
    for (size_t i = 0; i < len; i++) {
        const size_t k = escape_of((unsigned char)text[i], code);
        memcpy(out + *n, k ? code : text + i, k ? k : 1);
        *n += k ? k : 1;
    }
    out[(*n)++] = '"';
    return out;
}

hn_expr hn_json_word(hn_builder *b, const char *text, size_t len) {
    size_t n;
    char *out = hn_json_word_text(text, len, &n);
    const hn_expr e = out ? hn_expr_bytes(b, out, n) : hn_builder_no_memory(b);
    hn_free(out);
    return e;
}

/* ---- values ---- */

static hn_expr spaced(hn_builder *b, const char *mark) {
    const hn_expr part[] = {hn_expr_text(b, mark), hn_expr_repeat(b, hn_expr_text(b, " "), 0, 1)};
    return hn_expr_seq(b, part, 2);
}

hn_expr hn_json_colon(hn_builder *b) {
    return spaced(b, ":");
}

hn_expr hn_json_comma(hn_builder *b) {
    return spaced(b, ",");
}

/* first (comma first)*, or nothing, between brackets. */
static hn_expr list_of(hn_builder *b, const char *open, const char *close, hn_expr e) {
    const hn_expr more[] = {hn_json_comma(b), e};
    const hn_expr all[] = {e, hn_expr_repeat(b, hn_expr_seq(b, more, 2), 0, -1)};
    const hn_expr whole[] = {hn_expr_text(b, open), hn_expr_repeat(b, hn_expr_seq(b, all, 2), 0, 1), hn_expr_text(b, close)};
    return hn_expr_seq(b, whole, 3);
}

static hn_expr object_of_any(hn_builder *b, hn_expr value) {
    const hn_expr pair[] = {hn_json_key_beside(b, NULL, 0), hn_json_colon(b), value};
    return list_of(b, "{", "}", hn_expr_seq(b, pair, 3));
}

hn_expr hn_expr_json_value(hn_builder *b) {
    if (b->failed || b->json_value >= 0) return b->failed ? -1 : b->json_value;
    const hn_expr value = b->json_value = hn_expr_rule(b, "JSON value");
    const hn_expr any[] = {object_of_any(b, value),
                           list_of(b, "[", "]", value),
                           hn_json_string(b),
                           hn_json_number(b, false, (hn_json_bound){0}, (hn_json_bound){0}, (hn_json_form){0}),
                           hn_expr_text(b, "true"),
                           hn_expr_text(b, "false"),
                           hn_expr_text(b, "null")};
    hn_expr_rule_set(b, value, hn_expr_json(b, hn_expr_alt(b, any, 7)));
    return value;
}

hunch_status hn_grammar_json_object(hn_grammar **out, hunch_error *err) {
    *out = NULL;
    hn_builder *b = hn_builder_open(err);
    if (!b) return HUNCH_NO_MEMORY;
    return hn_grammar_finish(out, &b, hn_expr_json(b, object_of_any(b, hn_expr_json_value(b))), err);
}

/* ---- constants ---- */

static hn_expr number_text(hn_builder *b, const json_t *value) {
    char text[HN_DECIMAL_TEXT];
    hn_decimal d;
    if (!hn_decimal_read(value, &d))
        return hn_builder_fail(b, HUNCH_USAGE, "a constant of the JSON schema has more than %d digits", HN_DECIMAL_WHOLE);
    hn_decimal_print(&d, text);
    return hn_expr_text(b, text);
}

static hn_expr constant_list(hn_builder *b, const json_t *value, int depth);

static hn_expr constant(hn_builder *b, const json_t *value, int depth) {
    if (b->failed) return -1;
    if (hn_json_is_number(value)) return number_text(b, value);
    switch (json_typeof(value)) {
    case JSON_STRING: return hn_json_word(b, json_string_value(value), json_string_length(value));
    case JSON_TRUE: return hn_expr_text(b, "true");
    case JSON_FALSE: return hn_expr_text(b, "false");
    case JSON_NULL: return hn_expr_text(b, "null");
    default: return constant_list(b, value, depth);
    }
}

/* An array or an object. */
static hn_expr constant_list(hn_builder *b, const json_t *value, int depth) {
    const bool object = hn_json_is_object(value);
    const size_t n = object ? json_object_size(value) : json_array_size(value);
    if (depth == 50) return hn_builder_fail(b, HUNCH_USAGE, "a constant of the JSON schema is nested deeper than 50");
    hn_expr *part = hn_alloc((2 * n + 2) * sizeof *part);
    size_t k = 0;
    if (!part) return hn_builder_no_memory(b);
    part[k++] = hn_expr_text(b, object ? "{" : "[");
    void *at = object ? json_object_iter((json_t *)(uintptr_t)value) : NULL; /* which changes nothing */
    for (size_t i = 0; i < n && !b->failed; i++) {
        if (i) part[k++] = hn_json_comma(b);
        if (object) {
            const hn_expr pair[] = {hn_json_word(b, json_object_iter_key(at), json_object_iter_key_len(at)), hn_json_colon(b),
                                    constant(b, json_object_iter_value(at), depth + 1)};
            part[k++] = hn_expr_seq(b, pair, 3);
            at = json_object_iter_next((json_t *)(uintptr_t)value, at);
        } else {
            part[k++] = constant(b, json_array_get(value, i), depth + 1);
        }
    }
    part[k++] = hn_expr_text(b, object ? "}" : "]");
    const hn_expr e = b->failed ? -1 : hn_expr_seq(b, part, k);
    hn_free(part);
    return e;
}

hn_expr hn_json_constant(hn_builder *b, const json_t *value) {
    return constant(b, value, 0);
}
