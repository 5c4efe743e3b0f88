/* SPDX-License-Identifier: Apache-2.0 */
/* call_grammar_gemma.c - the grammar of Gemma 4's calls: call:NAME{key:value,..}, bare keys sorted by name, strings between marks. What a
 * schema refers to, and objects that hold themselves, are rules. */
#include <stdlib.h>
#include <string.h>

#include "calls/call_grammar.h"
#include "base/json_load.h"

#define QUOTE "<|\"|>"
enum { DEEPEST = 60 /* schemas inside each other */, LONGEST_KEY = 64 };

static hn_expr value_of(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema);

/* ---- strings and keys -------------------------------------------------------------------------------------------------- */

static hn_expr string_of(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema) {
    const hn_expr e = hn_g_string(g, f, schema, "<"), quote = hn_g_mark(g, QUOTE);
    return e < 0 ? HN_SEQ(g, quote, hn_expr_until(g->b, QUOTE, false, false)) : HN_SEQ(g, quote, e, quote);
}

static const uint32_t letters[] = {'0', '9', 'A', 'Z', '_', '_', 'a', 'z'};

/* A word that is none of these names, of which n, sorted, begin with the same `at` bytes. */
static hn_expr word_beside(hn_call_grammar *g, const char *const *names, size_t n, size_t at) {
    uint32_t others[2 * 64];
    size_t n_others = 0, n_parts = 0;
    hn_expr part[66];
    const hn_expr word = hn_expr_class(g->b, letters, 4, false);
    if (at == LONGEST_KEY) return hn_expr_alt(g->b, NULL, 0); /* no word that begins like a long name */
    if (n == 0) return hn_expr_repeat(g->b, word, 1, -1);
    if (at && names[0][at]) part[n_parts++] = hn_expr_empty(g->b); /* it ends where no name does */
    size_t i = names[0][at] == 0;
    for (uint32_t c = '0'; c <= 'z'; c++) {
        const bool is_letter = (c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 'a';
        size_t k = i;
        while (k < n && (unsigned char)names[k][at] < c) i = ++k; /* no word has that byte */
        while (k < n && (unsigned char)names[k][at] == c) k++;
        if (is_letter && k == i) others[n_others++] = c, others[n_others++] = c;
        if (is_letter && k > i) {
            const char letter[] = {(char)c, 0};
            part[n_parts++] = HN_SEQ(g, hn_g_text(g, letter), word_beside(g, names + i, k - i, at + 1));
        }
        i = k;
    }
    part[n_parts++] = HN_SEQ(g, hn_expr_class(g->b, others, n_others / 2, false), hn_expr_repeat(g->b, word, 0, -1));
    return hn_expr_alt(g->b, part, n_parts);
}

/* ---- objects ----------------------------------------------------------------------------------------------------------- */

static hn_expr member(hn_call_grammar *g, const hn_tool_function *f, const char *name, const json_t *schema) {
    return HN_SEQ(g, hn_g_text(g, name), hn_g_text(g, ":"), value_of(g, f, schema));
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of an object, sorted; to be freed. */
static const char **names_of(json_t *object, size_t *n) {
    const char **names = hn_alloc((json_object_size(object) + 1) * sizeof *names), *name;
    json_t *value;
    *n = 0;
    if (!names) return NULL;
    json_object_foreach(object, name, value) names[(*n)++] = name;
    qsort(names, *n, sizeof *names, by_name);
    return names;
}

/* Adds to an object what a schema of its allOf says. */
static void merge(json_t *to, const json_t *from) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)from, key, value) {
        json_t *have = json_object_get(to, key);
        if (have && strcmp(key, "properties") == 0) json_object_update_missing(have, value);
        else if (have && strcmp(key, "required") == 0) json_array_extend(have, value);
        else if (!have) json_object_set_new(to, key, json_deep_copy(value));
    }
}

/* An object's schema, with those of allOf, its properties sorted; a new reference. */
static json_t *object_schema(const hn_tool_function *f, const json_t *schema) {
    json_t *all = hn_json_is_object(schema) ? json_deep_copy(schema) : json_object(), *sorted = json_object();
    const json_t *one, *list = json_object_get(schema, "allOf");
    size_t i, n;
    json_array_foreach(list, i, one) {
        const char *ref = json_string_value(json_object_get(one, "$ref"));
        merge(all, ref ? hn_schema_at(f->parameters, ref) : one);
    }
    json_t *properties = json_object_get(all, "properties");
    const char **names = names_of(properties, &n);
    for (i = 0; names && i < n; i++) json_object_set(sorted, names[i], json_object_get(properties, names[i]));
    hn_free(names);
    if (properties) json_object_set(all, "properties", sorted);
    json_decref(sorted);
    return all;
}

/* Members that the schema does not name: where it says so, or names none. */
static hn_expr others_of(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, bool arguments) {
    json_t *properties = json_object_get(schema, "properties"), *others = json_object_get(schema, "additionalProperties");
    size_t n;
    if (json_is_false(others) || (!others && (arguments || json_object_size(properties)))) return -1;
    const char **names = names_of(properties, &n);
    const hn_expr key = names ? word_beside(g, names, n, 0) : hn_builder_no_memory(g->b);
    hn_free(names);
    return HN_SEQ(g, key, hn_g_text(g, ":"), value_of(g, f, others));
}

static hn_expr object_of(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, bool arguments) {
    json_t *all = object_schema(f, schema);
    const hn_expr others = others_of(g, f, all, arguments);
    const hn_expr e = HN_SEQ(g, hn_g_text(g, "{"), hn_g_members(g, f, all, ",", others, member), hn_g_text(g, "}"));
    json_decref(all);
    return e;
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

static hn_expr array_of(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema) {
    const json_t *least = json_object_get(schema, "minItems"), *most = json_object_get(schema, "maxItems");
    const int min = json_is_integer(least) ? (int)json_integer_value(least) : 0;
    const int max = json_is_integer(most) ? (int)json_integer_value(most) : -1;
    const hn_expr one = value_of(g, f, json_object_get(schema, "items"));
    const hn_expr more = hn_expr_repeat(g->b, HN_SEQ(g, hn_g_text(g, ","), one), min > 1 ? min - 1 : 0, max < 0 ? -1 : max ? max - 1 : 0);
    const hn_expr items = max == 0 ? hn_expr_empty(g->b) : hn_expr_repeat(g->b, HN_SEQ(g, one, more), min > 0, 1);
    return HN_SEQ(g, hn_g_text(g, "["), items, hn_g_text(g, "]"));
}

/* A number or a boolean, with all that its schema says. */
static hn_expr json_of(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, const char *type) {
    json_t *plain = hn_json_is_object(schema) ? json_deep_copy(schema) : json_object();
    json_object_set_new(plain, "type", json_string(type));
    const hn_expr e = hn_g_json(g, f, plain);
    json_decref(plain);
    return e;
}

static hn_expr typed(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, unsigned type) {
    switch (type) {
    case HN_TYPE_STRING: return string_of(g, f, schema);
    case HN_TYPE_BOOLEAN: return json_of(g, f, schema, "boolean");
    case HN_TYPE_NULL: return HN_ALT(g, hn_g_text(g, "None"), hn_g_text(g, "null"));
    case HN_TYPE_OBJECT: return object_of(g, f, schema, false);
    case HN_TYPE_ARRAY: return array_of(g, f, schema);
    default: return json_of(g, f, schema, type == HN_TYPE_INTEGER ? "integer" : "number");
    }
}

static hn_expr all_types(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema) {
    unsigned types = hn_value_types(f, schema);
    hn_expr part[8];
    size_t n = 0;
    if (!types) types = HN_TYPE_STRING | HN_TYPE_NUMBER | HN_TYPE_BOOLEAN;
    for (unsigned type = 1; type <= HN_TYPE_OBJECT; type *= 2)
        if ((types & type) && !(type == HN_TYPE_INTEGER && types & HN_TYPE_NUMBER)) part[n++] = typed(g, f, schema, type);
    return hn_expr_alt(g->b, part, n);
}

/* What "$ref" names is one rule, also where it refers to itself. */
static hn_expr referred(hn_call_grammar *g, const hn_tool_function *f, const char *ref) {
    const json_t *to = hn_schema_at(f->parameters, ref);
    for (size_t i = 0; i < g->n_rules; i++)
        if (g->rules[i].schema == to) return g->rules[i].rule;
    if (!to) return hn_builder_fail(g->b, HUNCH_USAGE, "the parameters of %.256s: $ref \"%.100s\" names nothing", f->name, ref);
    if (g->n_rules == HN_MOST_RULES)
        return hn_builder_fail(g->b, HUNCH_USAGE, "the parameters of the tools refer to more than %d schemas", HN_MOST_RULES);
    const hn_expr rule = hn_expr_rule(g->b, ref);
    g->rules[g->n_rules].schema = to;
    g->rules[g->n_rules++].rule = rule;
    hn_expr_rule_set(g->b, rule, value_of(g, f, to));
    return rule;
}

static hn_expr value_of(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema) {
    const json_t *one, *list = json_object_get(schema, "anyOf");
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    size_t i;
    hn_expr e = -1;
    if (!list) list = json_object_get(schema, "oneOf");
    if (g->depth == DEEPEST)
        return hn_builder_fail(g->b, HUNCH_USAGE, "the parameters of %.256s have more than %d schemas inside each other", f->name, DEEPEST);
    if (ref) return referred(g, f, ref);
    g->depth++;
    json_array_foreach(list, i, one) {
        const hn_expr branch = value_of(g, f, one);
        e = i ? HN_ALT(g, e, branch) : branch;
    }
    if (!list) e = all_types(g, f, schema);
    g->depth--;
    return e;
}

static hn_expr call(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, hn_g_text(g, "call:"), hn_g_text(g, f->name), object_of(g, f, f->parameters, true), hn_g_mark(g, "<tool_call|>"));
}

hn_expr hn_grammar_gemma(hn_call_grammar *g, bool opened) {
    const hn_expr one = hn_g_any(g, call);
    return hn_g_list(g, HN_SEQ(g, hn_g_open(g, opened), one), hn_g_open(g, false), one);
}
