/* SPDX-License-Identifier: Apache-2.0 */
/* schema_enum.c - values that enum and const list: those that the other keywords allow too. Whether a text or a number does is asked of the
 * automaton that these keywords make. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/automaton.h"
#include "grammar/schema.h"

static bool lists_same(const json_t *x, const json_t *y) {
    if (json_is_array(x)) {
        if (!json_is_array(y) || json_array_size(x) != json_array_size(y)) return false;
        for (size_t i = 0; i < json_array_size(x); i++)
            if (!hn_json_same(json_array_get(x, i), json_array_get(y, i))) return false;
        return true;
    }
    if (!hn_json_is_object(y) || json_object_size(x) != json_object_size(y)) return false;
    json_t *object = (json_t *)(uintptr_t)x; /* which iterating does not change */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const json_t *other = json_object_get(y, json_object_iter_key(i));
        if (!other || !hn_json_same(json_object_iter_value(i), other)) return false;
    }
    return true;
}

bool hn_json_same(const json_t *x, const json_t *y) {
    if (json_is_integer(x) && json_is_integer(y)) return json_integer_value(x) == json_integer_value(y);
    if (hn_json_is_number(x) || hn_json_is_number(y)) return hn_json_is_number(x) && hn_json_is_number(y) && hn_json_order(x, y) == 0;
    if (json_is_array(x) || hn_json_is_object(x)) return lists_same(x, y);
    return json_equal(x, y);
}

/* ---- the other keywords ---- */

bool hn_schema_constrains(const hn_schema_list *list, int types) {
    static const struct { const char *keyword; int types; } all[] = {
        {"minimum", HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION}, {"maximum", HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION},
        {"exclusiveMinimum", HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION}, {"exclusiveMaximum", HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION},
        {"multipleOf", HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION},
        {"minLength", HN_SCHEMA_STRING}, {"maxLength", HN_SCHEMA_STRING}, {"pattern", HN_SCHEMA_STRING}, {"format", HN_SCHEMA_STRING},
        {"items", HN_SCHEMA_ARRAY}, {"prefixItems", HN_SCHEMA_ARRAY}, {"minItems", HN_SCHEMA_ARRAY}, {"maxItems", HN_SCHEMA_ARRAY},
        {"additionalItems", HN_SCHEMA_ARRAY}, {"contains", HN_SCHEMA_ARRAY}, {"uniqueItems", HN_SCHEMA_ARRAY},
        {"patternProperties", HN_SCHEMA_OBJECT}, {"propertyNames", HN_SCHEMA_OBJECT},
        {"properties", HN_SCHEMA_OBJECT}, {"required", HN_SCHEMA_OBJECT}, {"additionalProperties", HN_SCHEMA_OBJECT},
        {"minProperties", HN_SCHEMA_OBJECT}, {"maxProperties", HN_SCHEMA_OBJECT}};
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            if ((all[k].types & types) && json_object_get(list->at[i].node, all[k].keyword)) return true;
    for (size_t i = 0; i < list->n; i++)
        if ((types & HN_SCHEMA_STRING) && json_object_get(hn_schema_not(&list->at[i]), "pattern")) return true;
    return false;
}

/* The texts of one type that the other keywords allow; NULL: failed. */
typedef struct accepted {
    hn_grammar *grammar;
    hn_automaton *states;
    uint8_t no_names[1];
    bool none;
} accepted;

static hn_expr alone(hn_schema *s, const hn_schema_list *list, int types);

static bool accepted_open(hn_schema *s, accepted *a, const hn_schema_list *list, int types) {
    hunch_error why = {0};
    hn_builder *b = hn_builder_open(NULL);
    if (!b) return hn_builder_no_memory(s->b) >= 0;
    hn_builder *own = s->b;
    const bool plain = s->plain;
    b->loose = own->loose;
    s->b = b;
    s->plain = false;
    const hn_expr e = alone(s, list, types);
    s->b = own;
    s->plain = plain;
    if (b->ignored) {
        b->ignored[b->n_ignored - 1] = '\0'; /* its comma */
        hn_builder_note(own, b->ignored, "");
    }
    a->none = !b->failed && b->exprs[e].kind == HN_EXPR_NOTHING;
    if (a->none) return hn_builder_close(&b), true;
    hunch_status st = hn_grammar_finish(&a->grammar, &b, e, &why);
    if (!st) st = hn_automaton_open(&a->states, a->grammar, a->no_names, false, 1, &why);
    if (st && strstr(why.message, "no text")) return a->none = true;
    if (st) hn_builder_fail(s->b, st, "%s", why.message);
    return !st;
}

static void accepted_close(accepted *a) {
    hn_automaton_close(&a->states);
    hn_grammar_close(&a->grammar);
}

/* A list's own keywords without enum and const; its types are of texts or numbers. */
static hn_expr alone(hn_schema *s, const hn_schema_list *list, int types) {
    hn_schema_list copy = {0};
    hn_expr e = -1;
    if (hn_schema_copy(s, &copy, list)) e = types == HN_SCHEMA_STRING ? hn_schema_string(s, &copy) : hn_schema_number_of(s, &copy, types);
    hn_schema_list_fini(&copy);
    return e;
}

static bool accepts(hn_schema *s, const accepted *a, const json_t *value) {
    char number[HN_DECIMAL_TEXT];
    hn_decimal d;
    size_t n = 0;
    char *text = json_is_string(value) ? hn_json_word_text(json_string_value(value), json_string_length(value), &n) : number;
    if (!text) return hn_builder_no_memory(s->b) >= 0;
    if (text == number && hn_decimal_read(value, &d)) n = hn_decimal_print(&d, number);
    int32_t state = a->none ? HN_STATE_NONE : a->states->start;
    for (size_t i = 0; i < n && state >= 0; i++) state = hn_automaton_byte(a->states, state, (unsigned char)text[i]);
    if (state == HN_STATE_FULL) hn_builder_no_memory(s->b);
    if (text != number) hn_free(text);
    return state >= 0 && a->states->states[state].final;
}

/* ---- values ---- */

static hn_expr constant_of(hn_schema *s, const json_t *value) {
    return s->plain ? hn_expr_bytes(s->b, json_string_value(value), json_string_length(value)) : hn_json_constant(s->b, value);
}

static bool has(hn_schema *s, int32_t path, const json_t *values, const json_t *value) {
    size_t i = 0, n = json_array_size(values);
    while (i < n && !hn_json_same(json_array_get(values, i), value)) i++;
    return hn_schema_worked(s, path, i) && i < n;
}

bool hn_schema_listed(hn_schema *s, const hn_schema_item *x, const json_t *value) {
    const json_t *only = json_object_get(x->node, "const"), *some = json_object_get(x->node, "enum"), *out = hn_schema_not(x);
    const json_t *without = json_object_get(out, "const");
    if ((only && !hn_json_same(only, value)) || (without && hn_json_same(without, value))) return false;
    return !has(s, x->path, json_object_get(out, "enum"), value) && (!some || has(s, x->path, some, value));
}

typedef struct value_list {
    const json_t **at;
    size_t n, cap;
} value_list;

/* The first list, without what other lists or the types do not have. */
static bool values_take(hn_schema *s, const hn_schema_list *list, int types, value_list *v) {
    const json_t *first = NULL, *only = NULL;
    size_t from = 0;
    for (size_t i = 0; i < list->n && !first && !only; i++) {
        from = i;
        only = json_object_get(list->at[i].node, "const");
        first = json_object_get(list->at[i].node, "enum");
        if (first && !json_is_array(first))
            return hn_schema_fail(s, hn_schema_step(s, list->at[i].path, "enum"), "expected a list of values") >= 0;
    }
    for (size_t k = 0; k < (only ? 1 : json_array_size(first)) && !s->b->failed; k++) {
        const json_t *value = only ? only : json_array_get(first, k);
        bool ok = hn_schema_type_of(value) & types;
        for (size_t i = 0; i < list->n && ok; i++) {
            const hn_schema_item *x = &list->at[i];
            ok = (i == from && !only && !hn_schema_not(x)) || hn_schema_listed(s, x, value);
        }
        if (!ok) continue;
        if (!hn_grow((void **)&v->at, &v->cap, v->n + 1, sizeof *v->at)) return hn_builder_no_memory(s->b) >= 0;
        v->at[v->n++] = value;
    }
    return !s->b->failed;
}

/* Leaves out the values of these types that the other keywords forbid. */
static bool values_filter(hn_schema *s, const hn_schema_list *list, int types, value_list *v) {
    accepted a = {0};
    size_t kept = 0;
    bool any = false;
    for (size_t i = 0; i < v->n; i++) any |= (hn_schema_type_of(v->at[i]) & types) != 0;
    if (!any || !hn_schema_constrains(list, types)) return true;
    if (types & (HN_SCHEMA_ARRAY | HN_SCHEMA_OBJECT))
        return hn_schema_refuse(s, list->at[0].path, "arrays or objects of enum or const beside other keywords are not supported");
    bool ok = accepted_open(s, &a, list, types);
    for (size_t i = 0; ok && i < v->n; i++)
        if (!(hn_schema_type_of(v->at[i]) & types) || accepts(s, &a, v->at[i])) v->at[kept++] = v->at[i];
    if (ok) v->n = kept;
    accepted_close(&a);
    return ok && !s->b->failed;
}

static bool all_take(hn_schema *s, const hn_schema_list *list, int types, value_list *v) {
    static const int filtered[] = {HN_SCHEMA_STRING, HN_SCHEMA_INTEGER | HN_SCHEMA_FRACTION, HN_SCHEMA_ARRAY, HN_SCHEMA_OBJECT};
    bool ok = values_take(s, list, types, v);
    for (size_t i = 0; ok && i < sizeof filtered / sizeof *filtered; i++) ok = values_filter(s, list, filtered[i], v);
    return ok;
}

int64_t hn_schema_values_count(hn_schema *s, const hn_schema_list *list, int types) {
    value_list v = {0};
    bool ok = all_take(s, list, types, &v);
    int64_t n = 0;
    for (size_t i = 0; ok && i < v.n; i++) {
        size_t k = 0;
        while (k < i && !hn_json_same(v.at[k], v.at[i])) k++;
        ok = hn_schema_worked(s, list->at[0].path, k + 1);
        n += k == i;
    }
    hn_free((void *)v.at);
    return ok ? n : -1;
}

hn_expr hn_schema_values(hn_schema *s, const hn_schema_list *list, int types) {
    value_list v = {0};
    hn_expr e = -1;
    const bool ok = all_take(s, list, types, &v);
    hn_expr *part = ok ? hn_alloc(v.n * sizeof *part) : NULL;
    if (ok && !part) hn_builder_no_memory(s->b);
    for (size_t i = 0; part && i < v.n && !s->b->failed; i++) part[i] = constant_of(s, v.at[i]);
    if (part && !s->b->failed) e = hn_expr_alt(s->b, part, v.n);
    hn_free(part);
    hn_free((void *)v.at);
    return e;
}

/* ---- texts alone ---- */

struct hn_schema_strings {
    accepted of;
};

hn_schema_strings *hn_schema_strings_open(hn_schema *s, const hn_schema_list *list) {
    hn_schema_strings *x = hn_zalloc(1, sizeof *x);
    if (!x) hn_builder_no_memory(s->b);
    if (x && !accepted_open(s, &x->of, list, HN_SCHEMA_STRING)) hn_schema_strings_close(&x);
    return x;
}

bool hn_schema_strings_have(hn_schema *s, hn_schema_strings *x, const json_t *text) {
    return accepts(s, &x->of, text);
}

void hn_schema_strings_close(hn_schema_strings **x) {
    if (*x) accepted_close(&(*x)->of);
    hn_free(*x);
    *x = NULL;
}
