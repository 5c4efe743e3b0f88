/* SPDX-License-Identifier: Apache-2.0 */
/* template_print.c - values as text, as Python's str() and, inside of lists and dicts, repr() write them. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shortest.h"
#include "base/utf8.h"
#include "text/normal/characters.h"
#include "text/jinja/template_private.h"

enum { FLOAT_STEPS = 64 }; /* several precisions are tried */

/* The doubles below a power of two are closer than those above, so that 16 digits may read back as the number even if the
 * nearest 16 digits do not: those one above them. */
static bool sixteen_digits(double f, char digits[40]) {
    snprintf(digits, 40, "%.15e", f);
    char *last = strchr(digits, 'e') - 1;
    if (*last == '9') return false;
    ++*last;
    return strtod(digits, NULL) == f;
}

/* As Python's repr: the fewest digits that read back the same, with an exponent below 1e-4 and from 1e16 on. */
static void print_float(tbuf *b, double f) {
    char digits[HN_SHORTEST_TEXT], out[64];
    if (!isfinite(f)) {
        tbuf_puts(b, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    /* Up to 15 digits survive conversion to a double and back: 15 are tried first, less only if it is subnormal. */
    const int n = hn_shortest(f, fabs(f) < DBL_MIN ? 1 : 15, digits);
    char shorter[40];
    if (n == 17 && sixteen_digits(f, shorter)) strcpy(digits, shorter);
    hn_shortest_trim(digits);
    const char *mark = strchr(digits, 'e'), *point = strchr(digits, '.');
    const int precision = point ? (int)(mark - point) - 1 : 0;
    int exponent = atoi(mark + 1);
    if (exponent < -4 || exponent >= 16) {
        tbuf_puts(b, digits);
        return;
    }
    int decimals = precision - exponent;
    snprintf(out, sizeof out, "%.*f", decimals > 1 ? decimals : 1, f);
    tbuf_puts(b, out);
}

static void print_escaped(tbuf *b, tstr s, char quote, bool ascii) {
    uint32_t cp;
    for (size_t i = 0, step; i < s.n; i += step) {
        char code[12] = "";
        step = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        if (cp == (uint32_t)quote || cp == '\\')
            snprintf(code, sizeof code, "\\%c", (int)cp);
        else if (cp == '\n')
            strcpy(code, "\\n");
        else if (cp == '\r')
            strcpy(code, "\\r");
        else if (cp == '\t')
            strcpy(code, "\\t");
        else if (!hn_char_is_printable(cp) || (ascii && cp >= 0x80))
            snprintf(code, sizeof code, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
        if (*code)
            tbuf_puts(b, code);
        else
            tbuf_put(b, s.s + i, step);
    }
}

static void print(trun *r, tbuf *b, tvalue v, bool ascii, int depth);

void tv_repr(trun *r, tbuf *b, tvalue v, bool ascii, int depth) {
    if (v.kind == TV_STRING) {
        char quote = v.str.n && memchr(v.str.s, '\'', v.str.n) && !memchr(v.str.s, '"', v.str.n) ? '"' : '\'';
        tbuf_put(b, &quote, 1);
        print_escaped(b, v.str, quote, ascii);
        tbuf_put(b, &quote, 1);
    } else if (v.kind == TV_UNDEFINED) {
        tbuf_puts(b, "Undefined");
    } else {
        print(r, b, v, ascii, depth);
    }
}

static void print_list(trun *r, tbuf *b, tvalue v, bool ascii, int depth) {
    bool tuple = v.kind == TV_TUPLE, view = v.kind == TV_VIEW;
    if (view) tbuf_puts(b, v.list->names[0]);
    tbuf_puts(b, tuple ? "(" : view ? "([" : "[");
    for (size_t i = 0; i < v.list->n; i++) {
        if (i) tbuf_puts(b, ", ");
        tv_repr(r, b, v.list->items[i], ascii, depth + 1);
    }
    tbuf_puts(b, tuple ? (v.list->n == 1 ? ",)" : ")") : view ? "])" : "]");
}

static void print_dict(trun *r, tbuf *b, const tdict *d, bool ascii, int depth) {
    tbuf_puts(b, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i) tbuf_puts(b, ", ");
        tv_repr(r, b, d->entries[i].key, ascii, depth + 1);
        tbuf_puts(b, ": ");
        tv_repr(r, b, d->entries[i].value, ascii, depth + 1);
    }
    tbuf_puts(b, "}");
}

/* ascii: of texts inside. */
static void print(trun *r, tbuf *b, tvalue v, bool ascii, int depth) {
    char number[32];
    if (b->failed || !trun_step(r, 1)) return;
    if (depth > HN_TPL_MAX_DEPTH) {
        trun_fail(r, "a value is nested deeper than %d", HN_TPL_MAX_DEPTH);
        return;
    }
    switch (v.kind) {
    case TV_ERROR:
    case TV_UNDEFINED: break;
    case TV_NONE: tbuf_puts(b, "None"); break;
    case TV_BOOL: tbuf_puts(b, v.b ? "True" : "False"); break;
    case TV_INT:
        snprintf(number, sizeof number, "%lld", (long long)v.i);
        tbuf_puts(b, number);
        break;
    case TV_FLOAT:
        if (trun_step(r, FLOAT_STEPS)) print_float(b, v.f);
        break;
    case TV_BIG:
    case TV_STRING: tbuf_put(b, v.str.s, v.str.n); break;
    case TV_LIST:
    case TV_TUPLE:
    case TV_VIEW: print_list(r, b, v, ascii, depth); break;
    case TV_DICT: print_dict(r, b, v.dict, ascii, depth); break;
    default: trun_fail(r, "a value of type %s has no text", tv_type_name(v));
    }
}

void tv_print(trun *r, tbuf *b, tvalue v, int depth) {
    print(r, b, v, false, depth);
}

tvalue tv_to_string(trun *r, tvalue v) {
    if (v.kind == TV_STRING) return v;
    tbuf b = {.arena = &r->arena};
    tv_print(r, &b, v, 0);
    return tv_buffer(r, &b);
}
