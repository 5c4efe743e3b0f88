/* SPDX-License-Identifier: Apache-2.0 */
/* schema_count.c - how many values a list allows, as far as that is easy to say: whether an array can have as many different items as it
 * must. */
#include <math.h>

#include "grammar/schema.h"

static const int64_t many = (int64_t)1 << 40;

static double bound_of(const json_t *node, const char *keyword, double usual) {
    const json_t *v = json_object_get(node, keyword);
    return hn_json_is_number(v) ? hn_json_number_value(v) : usual;
}

/* Whole numbers between the bounds, exactly, or numbers with a part, of which there are many. */
static int64_t numbers_of(const hn_schema_list *list, bool whole) {
    double low = -INFINITY, high = INFINITY;
    for (size_t i = 0; i < list->n; i++) {
        const json_t *x = list->at[i].node;
        if (json_object_get(x, "multipleOf")) return -1;
        const double above = bound_of(x, "exclusiveMinimum", -INFINITY), below = bound_of(x, "exclusiveMaximum", INFINITY);
        low = fmax(low, fmax(bound_of(x, "minimum", -INFINITY), whole ? floor(above) + 1 : above));
        high = fmin(high, fmin(bound_of(x, "maximum", INFINITY), whole ? ceil(below) - 1 : below));
    }
    if (high - low > 1e6) return many;
    if (fabs(low) > 1e15 || fabs(high) > 1e15 || !whole) return -1;
    const double n = floor(high) - ceil(low) + 1;
    return n > 0 ? (int64_t)n : 0;
}

static int64_t strings_of(hn_schema *s, const hn_schema_list *list) {
    int64_t max = -1;
    for (size_t i = 0; i < list->n; i++) {
        const json_t *x = list->at[i].node;
        if (json_object_get(x, "pattern") || json_object_get(x, "format")) return -1;
        if (!hn_schema_count(s, &list->at[i], "maxLength", false, &max)) return -1;
    }
    return max == 0 ? 1 : many; /* of one character there are a million */
}

static int64_t count(hn_schema *s, const hn_schema_list *list) {
    static const char *const choices[] = {"anyOf", "oneOf", "if", "not"};
    int types = HN_SCHEMA_ANY & ~(HN_SCHEMA_ARRAY | HN_SCHEMA_OBJECT);
    bool has_values = false;
    for (size_t i = 0; i < list->n; i++) {
        const json_t *x = list->at[i].node;
        for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
            if (json_object_get(x, choices[k])) return -1;
        types &= hn_schema_types(s, x, list->at[i].path);
        has_values |= json_object_get(x, "enum") || json_object_get(x, "const");
    }
    if (s->b->failed) return -1;
    if (has_values) return hn_schema_values_count(s, list, types);
    int64_t n = (types & HN_SCHEMA_NULL ? 1 : 0) + (types & HN_SCHEMA_BOOLEAN ? 2 : 0);
    const int64_t numbers = types & (HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION) ? numbers_of(list, !(types & HN_SCHEMA_FRACTION)) : 0;
    const int64_t strings = types & HN_SCHEMA_STRING ? strings_of(s, list) : 0;
    return numbers < 0 || strings < 0 ? -1 : n + numbers + strings;
}

int64_t hn_schema_count_of(hn_schema *s, const hn_schema_list *list) {
    hn_schema_list copy = {0};
    int64_t n = -1;
    if (hn_schema_copy(s, &copy, list) && hn_schema_expand(s, &copy)) n = copy.never ? 0 : count(s, &copy);
    hn_schema_list_fini(&copy);
    return n;
}
