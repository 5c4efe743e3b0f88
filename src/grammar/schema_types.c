/* SPDX-License-Identifier: Apache-2.0 */
/* schema_types.c - a list of schemas without choices: one alternative a type, each with the keywords that speak of it. */
#include <string.h>

#include "base/mem.h"
#include "grammar/schema.h"

/* ---- numbers ---- */

bool hn_schema_bound(hn_schema *s, const hn_schema_item *item, const char *keyword) {
    const json_t *given = json_object_get(item->node, keyword);
    if (!given) return true;
    if (!hn_json_is_number(given)) return hn_schema_fail(s, hn_schema_step(s, item->path, keyword), "expected a number") >= 0;
    hn_decimal unused;
    if (!hn_decimal_read(given, &unused))
        return hn_schema_fail(s, hn_schema_step(s, item->path, keyword), "a bound of more than %d digits is not supported",
                              HN_DECIMAL_WHOLE) >= 0;
    return true;
}

static bool bound_take(hn_schema *s, const hn_schema_item *item, const char *keyword, bool low, bool exclusive, hn_json_bound *to) {
    const json_t *given = json_object_get(item->node, keyword);
    if (!given || !hn_schema_bound(s, item, keyword)) return !s->b->failed;
    const int order = to->value ? hn_json_order(given, to->value) : 0;
    const bool tighter = !to->value || (low ? order > 0 : order < 0) || (order == 0 && exclusive);
    if (tighter) *to = (hn_json_bound){given, exclusive};
    return true;
}

/* The least multiple of both. False: it is too large, or none. */
static bool multiple_add(hn_json_form *to, const json_t *given) {
    hn_decimal d;
    int64_t n = 0, m = to->multiple, x, y;
    if (!hn_json_is_number(given) || !hn_decimal_read(given, &d) || d.minus) return false;
    for (int i = 0; i < d.n_whole + d.n_part && n <= HN_JSON_MULTIPLE; i++) n = 10 * n + hn_decimal_digit(&d, i);
    if (n == 0 || n > HN_JSON_MULTIPLE) return false;
    int places = d.n_part;
    if (m) {
        for (; places < to->places && n <= HN_JSON_MULTIPLE; places++) n *= 10;
        for (; to->places < places && m <= HN_JSON_MULTIPLE; to->places++) m *= 10;
        for (x = n, y = m; y;) {
            const int64_t rest = x % y;
            x = y;
            y = rest;
        }
        n = n / x * m;
    }
    to->multiple = (int32_t)(n > HN_JSON_MULTIPLE ? 0 : n);
    to->places = places;
    return n <= HN_JSON_MULTIPLE;
}

static bool multiple_take(hn_schema *s, const hn_schema_item *item, hn_json_form *to) {
    const json_t *given = json_object_get(item->node, "multipleOf");
    const hn_json_form before = *to;
    if (!given) return true;
    const int32_t path = hn_schema_step(s, item->path, "multipleOf");
    if (!hn_json_is_number(given) || hn_json_number_value(given) <= 0) return hn_schema_fail(s, path, "expected a number above 0") >= 0;
    if (multiple_add(to, given)) return true;
    *to = before;
    return hn_schema_refuse(s, path, "a multiple, or several together, of more than %d is not supported, without its decimal point",
                            HN_JSON_MULTIPLE);
}

/* ---- numbers that are left out ---- */

typedef struct numbers {
    const json_t **at;
    size_t n, cap;
} numbers;

static bool numbers_put(hn_schema *s, numbers *out, const json_t *value) {
    size_t i = 0;
    if (!hn_json_is_number(value)) return true;
    while (i < out->n && hn_json_order(out->at[i], value) < 0) i++;
    if (!hn_schema_worked(s, -1, out->n + 1)) return false;
    if (i < out->n && hn_json_order(out->at[i], value) == 0) return true;
    if (!hn_grow((void **)&out->at, &out->cap, out->n + 1, sizeof *out->at)) return hn_builder_no_memory(s->b) >= 0;
    memmove(out->at + i + 1, out->at + i, (out->n - i) * sizeof *out->at);
    out->at[i] = value;
    out->n++;
    return true;
}

/* Those of `not`, ascending. */
static bool numbers_take(hn_schema *s, const hn_schema_list *list, numbers *out) {
    bool ok = true;
    for (size_t i = 0; ok && i < list->n; i++) {
        const json_t *of = hn_schema_not(&list->at[i]), *some = json_object_get(of, "enum"), *one = json_object_get(of, "const");
        if (one) ok = numbers_put(s, out, one);
        for (size_t k = 0; ok && k < json_array_size(some); k++) ok = numbers_put(s, out, json_array_get(some, k));
    }
    return ok;
}

static hn_expr between(hn_schema *s, bool integer, hn_json_bound low, hn_json_bound high, hn_json_form form) {
    const int order = low.value && high.value ? hn_json_order(low.value, high.value) : -1;
    if (order > 0 || (order == 0 && (low.exclusive || high.exclusive))) return hn_expr_nothing(s->b);
    return hn_json_number(s->b, integer, low, high, form);
}

/* From low to high, but for some. */
static hn_expr without(hn_schema *s, const numbers *out, bool integer, hn_json_bound low, hn_json_bound high, hn_json_form form) {
    hn_expr *part = hn_alloc((out->n + 1) * sizeof *part);
    size_t n = 0;
    if (!part) return hn_builder_no_memory(s->b);
    for (size_t i = 0; i < out->n && !s->b->failed; i++) {
        const json_t *x = out->at[i];
        const int above = low.value ? hn_json_order(x, low.value) : 1;
        if (above < 0) continue;
        if (high.value && hn_json_order(x, high.value) > 0) break;
        if (above > 0) part[n++] = between(s, integer, low, (hn_json_bound){x, true}, form);
        low = (hn_json_bound){x, true};
    }
    if (!s->b->failed) part[n++] = between(s, integer, low, high, form);
    const hn_expr e = s->b->failed ? -1 : hn_expr_alt(s->b, part, n);
    hn_free(part);
    return e;
}

static int32_t multiple_path(hn_schema *s, const hn_schema_list *list) {
    size_t i = 0;
    while (i + 1 < list->n && !json_object_get(list->at[i].node, "multipleOf")) i++;
    return hn_schema_step(s, list->at[i].path, "multipleOf");
}

hn_expr hn_schema_number_of(hn_schema *s, const hn_schema_list *list, int types) {
    hn_json_bound low = {0}, high = {0};
    hn_json_form form = {.fraction = types == HN_SCHEMA_FRACTION, .one_spelling = list->one_spelling};
    numbers out = {0};
    bool ok = numbers_take(s, list, &out);
    for (size_t i = 0; ok && i < list->n; i++) {
        const hn_schema_item *x = &list->at[i];
        ok = bound_take(s, x, "minimum", true, false, &low) && bound_take(s, x, "exclusiveMinimum", true, true, &low) &&
             bound_take(s, x, "maximum", false, false, &high) && bound_take(s, x, "exclusiveMaximum", false, true, &high) &&
             multiple_take(s, x, &form);
    }
    hn_expr e = ok ? without(s, &out, types == HN_SCHEMA_INTEGER, low, high, form) : -1;
    if (ok && e < 0 && form.multiple && hn_schema_refused(s, multiple_path(s, list))) { /* too many digits for it */
        form.multiple = 0;
        e = without(s, &out, types == HN_SCHEMA_INTEGER, low, high, form);
    }
    hn_free((void *)out.at);
    return e;
}

/* ---- all types ---- */

static bool has_values(const hn_schema_list *list) {
    for (size_t i = 0; i < list->n; i++)
        if (json_object_get(list->at[i].node, "enum") || json_object_get(list->at[i].node, "const")) return true;
    return false;
}

/* Without the types that `not` names, and, if it is of a pattern, all that are no texts. -1: failed. */
static int types_without(hn_schema *s, const hn_schema_item *x, int types) {
    const json_t *of = hn_schema_not(x);
    if (!of) return types;
    if (json_object_get(of, "pattern")) return types & HN_SCHEMA_STRING;
    if (!json_object_get(of, "type")) return types;
    const int out = hn_schema_types(s, of, x->path);
    return out < 0 ? -1 : types & ~out;
}

/* null, true, false, and the values that are left out of the types that have more. */
static size_t words_of(hn_schema *s, const hn_schema_list *list, int types, hn_expr *part) {
    static const struct { const char *text; int type; } words[] = {
        {"null", HN_SCHEMA_NULL}, {"true", HN_SCHEMA_BOOLEAN}, {"false", HN_SCHEMA_BOOLEAN}};
    json_t *const values[] = {json_null(), json_true(), json_false()};
    size_t n = 0;
    for (int k = 0; k < 3; k++) {
        bool in = types & words[k].type;
        for (size_t i = 0; i < list->n && in; i++) in = hn_schema_listed(s, &list->at[i], values[k]);
        if (in) part[n++] = hn_expr_text(s->b, words[k].text);
    }
    return n;
}

/* `not` of an array or an object, which is not supported. */
static bool leaves_out_parts(hn_schema *s, const hn_schema_list *list, int types) {
    for (size_t i = 0; i < list->n; i++) {
        const json_t *of = hn_schema_not(&list->at[i]), *some = json_object_get(of, "enum"), *one = json_object_get(of, "const");
        const size_t n = one ? 1 : json_array_size(some);
        for (size_t k = 0; k < n; k++) {
            const json_t *value = one ? one : json_array_get(some, k);
            if (!(hn_schema_type_of(value) & types & (HN_SCHEMA_ARRAY | HN_SCHEMA_OBJECT))) continue;
            const int32_t path = hn_schema_step(s, list->at[i].path, "not");
            if (!hn_schema_refuse(s, path, "not of an array or an object is not supported")) return true;
        }
    }
    return false;
}

hn_expr hn_schema_flat(hn_schema *s, const hn_schema_list *list) {
    hn_expr part[8];
    int types = s->plain ? HN_SCHEMA_STRING : HN_SCHEMA_ANY;
    for (size_t i = 0; i < list->n && types >= 0; i++) {
        const int one = hn_schema_types(s, list->at[i].node, list->at[i].path);
        types = one < 0 ? -1 : types_without(s, &list->at[i], types & one);
    }
    if (types < 0) return -1;
    if (list->one_spelling) types &= ~(HN_SCHEMA_ARRAY | HN_SCHEMA_OBJECT); /* which are not written in many ways (schema_array.c) */
    if (has_values(list)) return hn_schema_values(s, list, types);
    if (leaves_out_parts(s, list, types)) return -1;
    size_t n = words_of(s, list, types, part);
    if (types & (HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION))
        part[n++] = hn_schema_number_of(s, list, types & (HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION));
    if (types & HN_SCHEMA_STRING) part[n++] = hn_schema_string(s, list);
    if (types & HN_SCHEMA_ARRAY) part[n++] = hn_schema_array(s, list);
    if (types & HN_SCHEMA_OBJECT) part[n++] = hn_schema_object(s, list);
    return s->b->failed ? -1 : hn_expr_alt(s->b, part, n);
}
