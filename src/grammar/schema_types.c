/* SPDX-License-Identifier: Apache-2.0 */
/* schema_types.c - a list of schemas without choices: one alternative a type, each with the keywords that speak of it. */
#include "grammar/schema.h"

/* ---- numbers ---- */

static bool bound_take(hn_schema *s, const hn_schema_item *item, const char *keyword, bool low, bool exclusive, hn_json_bound *to) {
    const json_t *given = json_object_get(item->node, keyword);
    if (!given) return true;
    if (!hn_json_is_number(given)) return hn_schema_fail(s, hn_schema_step(s, item->path, keyword), "expected a number") >= 0;
    hn_decimal unused;
    if (!hn_decimal_read(given, &unused))
        return hn_schema_fail(s, hn_schema_step(s, item->path, keyword), "a bound of more than %d digits is not supported",
                              HN_DECIMAL_WHOLE) >= 0;
    const int order = to->value ? hn_json_order(given, to->value) : 0;
    const bool tighter = !to->value || (low ? order > 0 : order < 0) || (order == 0 && exclusive);
    if (tighter) *to = (hn_json_bound){given, exclusive};
    return true;
}

hn_expr hn_schema_number_of(hn_schema *s, const hn_schema_list *list, bool integer) {
    hn_json_bound low = {0}, high = {0};
    for (size_t i = 0; i < list->n; i++) {
        const hn_schema_item *x = &list->at[i];
        if (!bound_take(s, x, "minimum", true, false, &low) || !bound_take(s, x, "exclusiveMinimum", true, true, &low) ||
            !bound_take(s, x, "maximum", false, false, &high) || !bound_take(s, x, "exclusiveMaximum", false, true, &high))
            return -1;
    }
    const int order = low.value && high.value ? hn_json_order(low.value, high.value) : -1;
    if (order > 0 || (order == 0 && (low.exclusive || high.exclusive))) return hn_expr_nothing(s->b);
    return hn_json_number(s->b, integer, low, high);
}

/* ---- all types ---- */

static bool has_values(const hn_schema_list *list) {
    for (size_t i = 0; i < list->n; i++)
        if (json_object_get(list->at[i].node, "enum") || json_object_get(list->at[i].node, "const")) return true;
    return false;
}

hn_expr hn_schema_flat(hn_schema *s, const hn_schema_list *list) {
    hn_expr part[8];
    size_t n = 0;
    int types = s->plain ? HN_SCHEMA_STRING : HN_SCHEMA_ANY;
    for (size_t i = 0; i < list->n; i++) {
        const int one = hn_schema_types(s, list->at[i].node, list->at[i].path);
        if (one < 0) return -1;
        types &= one;
    }
    if (has_values(list)) return hn_schema_values(s, list, types);
    if (types & HN_SCHEMA_NULL) part[n++] = hn_expr_text(s->b, "null");
    if (types & HN_SCHEMA_BOOLEAN) {
        part[n++] = hn_expr_text(s->b, "true");
        part[n++] = hn_expr_text(s->b, "false");
    }
    if (types & HN_SCHEMA_INTEGER) part[n++] = hn_schema_number_of(s, list, !(types & HN_SCHEMA_FRACTION));
    if (types & HN_SCHEMA_STRING) part[n++] = hn_schema_string(s, list);
    if (types & HN_SCHEMA_ARRAY) part[n++] = hn_schema_array(s, list);
    if (types & HN_SCHEMA_OBJECT) part[n++] = hn_schema_object(s, list);
    return s->b->failed ? -1 : hn_expr_alt(s->b, part, n);
}
