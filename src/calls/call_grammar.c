/* SPDX-License-Identifier: Apache-2.0 */
/* call_grammar.c - the grammar of an answer with calls: thinking free up to its mark, text free up to a mark that opens a call, calls as
 * their family writes them, with arguments that their functions' schemas allow. */
#include "calls/call_grammar.h"

#include <stdio.h>

#include "base/json_load.h"
#include "base/mem.h"
enum { MOST_MEMBERS = 256 };

/* ---- parts ------------------------------------------------------------------------------------------------------------- */

/* Takes the schema. never: of plain strings the characters that they do not have; NULL: a JSON value. */
static hn_expr schema_expr(hn_call_grammar *g, json_t *schema, const hn_tool_function *f, const char *never) {
    char pointer[HN_LONGEST_NAME + 40];
    if (g->none) return json_decref(schema), hn_expr_empty(g->b); /* nothing follows what begins a call */
    char *text = hn_json_dump(schema, JSON_ENCODE_ANY);
    snprintf(pointer, sizeof pointer, "the parameters of %.256s", f->name);
    hn_builder_loosen(g->b, f->loose);
    const hn_expr e = !text ? hn_builder_no_memory(g->b)
                      : never ? hn_expr_plain_string(g->b, text, strlen(text), pointer, never)
                              : hn_expr_json_schema(g->b, text, strlen(text), pointer);
    hn_free(text);
    json_decref(schema);
    return e;
}

/* A copy of the schema that allows what it names alone, unless it says otherwise: a function takes no other arguments. */
hn_expr hn_g_object(hn_call_grammar *g, const hn_tool_function *f) {
    json_t *schema = f->parameters ? json_deep_copy(f->parameters) : json_object();
    if (!json_object_get(schema, "type")) json_object_set_new(schema, "type", json_string("object"));
    if (!json_object_get(schema, "additionalProperties") && (json_object_get(schema, "properties") || json_object_size(schema) == 1))
        json_object_set_new(schema, "additionalProperties", json_false());
    return schema_expr(g, schema, f, NULL);
}

/* A copy of a part, with the definitions that it may refer to. */
static json_t *with_definitions(const hn_tool_function *f, const json_t *part) {
    static const char *const roots[] = {"$defs", "definitions"};
    json_t *schema = hn_json_is_object(part) ? json_deep_copy(part) : json_object();
    for (size_t i = 0; i < 2; i++) {
        json_t *defs = json_object_get(f->parameters, roots[i]);
        if (defs && !json_object_get(schema, roots[i])) json_object_set(schema, roots[i], defs);
    }
    return schema;
}

hn_expr hn_g_json(hn_call_grammar *g, const hn_tool_function *f, const json_t *part) {
    return schema_expr(g, with_definitions(f, part), f, NULL);
}

static bool bounds_strings(const json_t *root, const json_t *schema, int depth) {
    static const char *const own[] = {"enum", "const", "pattern", "format", "minLength", "maxLength", "not", "if"};
    static const char *const lists[] = {"anyOf", "oneOf", "allOf"};
    enum { DEEPEST = 8 };
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    const json_t *one;
    size_t k;
    bool found = false;
    for (size_t i = 0; i < sizeof own / sizeof *own && !found; i++) found = json_object_get(schema, own[i]) != NULL;
    if (found || depth == DEEPEST) return found;
    if (ref) found = bounds_strings(root, hn_schema_at(root, ref), depth + 1);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const json_t *list = json_object_get(schema, lists[i]);
        json_array_foreach(list, k, one) found = found || bounds_strings(root, one, depth + 1);
    }
    return found;
}

hn_expr hn_g_string(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, const char *never) {
    return bounds_strings(f->parameters, schema, 0) ? schema_expr(g, with_definitions(f, schema), f, never) : -1;
}

hn_expr hn_g_any(hn_call_grammar *g, hn_expr (*call)(hn_call_grammar *g, const hn_tool_function *f)) {
    hn_expr *all = hn_alloc((g->tools->n + 1) * sizeof *all);
    size_t n = 0;
    if (!all) return hn_builder_no_memory(g->b);
    for (size_t i = 0; i < g->tools->n; i++)
        if (!g->only || g->only == &g->tools->function[i]) all[n++] = call(g, &g->tools->function[i]);
    const hn_expr e = hn_expr_alt(g->b, all, n);
    hn_free(all);
    return e;
}

hn_expr hn_g_list(hn_call_grammar *g, hn_expr first, hn_expr between, hn_expr more) {
    return g->one ? first : HN_SEQ(g, first, hn_expr_repeat(g->b, HN_SEQ(g, between, more), 0, -1));
}

static bool is_required(const json_t *schema, const char *name) {
    size_t i;
    const json_t *one, *required = json_object_get(schema, "required");
    json_array_foreach(required, i, one)
        if (json_is_string(one) && strcmp(json_string_value(one), name) == 0) return true;
    return false;
}

/* From the last member to the first: what may follow if a member came before, and if none did. */
hn_expr hn_g_members(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, const char *between, hn_expr others,
                     hn_g_member *member) {
    json_t *properties = json_object_get(schema, "properties");
    const char *names[MOST_MEMBERS], *name;
    json_t *value;
    size_t n = 0;
    if (g->none) return hn_expr_empty(g->b);
    json_object_foreach(properties, name, value) if (n < MOST_MEMBERS) names[n++] = name;
    hn_expr after = hn_expr_empty(g->b), first = after;
    if (others >= 0) {
        after = hn_expr_repeat(g->b, HN_SEQ(g, hn_g_text(g, between), others), 0, -1);
        first = hn_expr_repeat(g->b, HN_SEQ(g, others, after), 0, 1);
    }
    while (n-- > 0) {
        const hn_expr one = member(g, f, names[n], json_object_get(properties, names[n]));
        const hn_expr with = HN_SEQ(g, hn_g_text(g, between), one, after), begins = HN_SEQ(g, one, after);
        const bool required = is_required(schema, names[n]);
        first = required ? begins : HN_ALT(g, begins, first);
        after = required ? with : HN_ALT(g, with, after);
    }
    return first;
}

/* ---- answers ----------------------------------------------------------------------------------------------------------- */

/* Text without calls, and calls: free up to the mark, then the family's. */
static hn_expr automatic(hn_call_grammar *g) {
    if (g->family->may) return g->family->may(g);
    const char *mark = g->family->opens[0];
    if (g->none) return hn_expr_without(g->b, mark);
    const hn_expr all = hn_expr_rule(g->b, "text and calls");
    const hn_expr rest = g->family->grammar(g, true), text = hn_expr_without(g->b, mark);
    const hn_expr again = g->one ? text : all; /* behind the only call text may follow */
    hn_expr_rule_set(g->b, all, HN_ALT(g, HN_SEQ(g, hn_expr_until(g->b, mark, true, false), rest, again), text));
    return all;
}

static hn_expr spaces(hn_call_grammar *g) {
    static const uint32_t blanks[] = {' ', ' ', '\n', '\n'};
    return hn_expr_repeat(g->b, hn_expr_class(g->b, blanks, 2, false), 0, 3);
}

bool hn_call_grammar_fits(const hn_call_family *f, bool none) {
    return f->grammar && (!none || f->may || (f->opens && !f->at_start));
}

hunch_status hn_call_grammar_make(hn_grammar **out, const hn_call_family *f, const hn_tools *t, const hn_tool_function *only,
                                  hunch_tool_choice choice, const hn_call_options *o, hunch_error *err) {
    const bool required = choice >= HUNCH_TOOLS_REQUIRED, none = choice == HUNCH_TOOLS_NONE;
    hn_call_grammar g = {.tools = t, .only = only, .family = f, .one = o->one, .none = none, .earlier = o->earlier};
    *out = NULL;
    g.b = hn_builder_open(err);
    if (!g.b) return HUNCH_NO_MEMORY;
    hn_expr e = required ? f->grammar(&g, false) : automatic(&g);
    if (o->think_end && required) e = HN_SEQ(&g, spaces(&g), e);
    if (o->think_end && o->thinks) e = HN_SEQ(&g, hn_expr_until(g.b, o->think_end, true, false), e);
    else if (o->think_end)
        e = HN_ALT(&g, HN_SEQ(&g, spaces(&g), hn_g_mark(&g, o->think_begin), hn_expr_until(g.b, o->think_end, true, false), e), e);
    return hn_grammar_finish(out, &g.b, e, err);
}
