/* SPDX-License-Identifier: Apache-2.0 */
/* call_grammars_other.c - grammars of the families that write arguments in tags, in Python's spelling, or in Gemma's. */
#include <stdio.h>

#include "calls/call_grammar.h"
#include "calls/call_markup.h"

static unsigned types_of(const hn_tool_function *f, const char *name) {
    return hn_param_types(f, name, strlen(name));
}

/* ---- tags -------------------------------------------------------------------------------------------------------------- */

static const hn_markup *markup(const hn_call_grammar *g) {
    return g->family->how;
}

/* A mark, which may have DeepSeek's token inside. */
static hn_expr tag(hn_call_grammar *g, const char *mark) {
    static const char dsml[] = "\xEF\xBD\x9C" "DSML" "\xEF\xBD\x9C";
    const char *at = strstr(mark, dsml);
    if (!at) return mark[0] == '<' && mark[strlen(mark) - 1] == '>' ? hn_g_mark(g, mark) : hn_g_text(g, mark);
    return HN_SEQ(g, hn_expr_bytes(g->b, mark, (size_t)(at - mark)), hn_g_mark(g, dsml), hn_g_text(g, at + sizeof dsml - 1));
}

static hn_expr gap(hn_call_grammar *g) {
    const hn_expr line = hn_g_text(g, "\n");
    return markup(g)->gap == 'n' ? line : markup(g)->gap == 'o' ? hn_expr_repeat(g->b, line, 0, 1) : hn_expr_empty(g->b);
}

/* A string whose length is bounded: no letter of it begins a mark. -1: it is not bounded. */
static hn_expr bounded(hn_call_grammar *g, const json_t *schema) {
    static const uint32_t begins[] = {'<', '<'};
    enum { MOST = 1000 };
    const json_t *least = json_object_get(schema, "minLength"), *most = json_object_get(schema, "maxLength");
    const json_int_t min = json_integer_value(least), max = most ? json_integer_value(most) : -1;
    if ((!least && !most) || min < 0 || min > MOST || max > MOST || (most && max < min)) return -1;
    return hn_expr_repeat(g->b, hn_expr_class(g->b, begins, 1, true), (int)min, (int)max);
}

/* The value of a string, with the mark behind it: one of its enumerated ones, or anything. */
static hn_expr raw(hn_call_grammar *g, const json_t *schema) {
    const hn_markup *m = markup(g);
    const json_t *values = json_object_get(schema, "enum"), *one;
    size_t i;
    const hn_expr some = json_array_size(values) == 0 ? bounded(g, schema) : -1;
    if (some >= 0 && !m->cdata) return HN_SEQ(g, some, m->lines ? hn_g_text(g, "\n") : hn_expr_empty(g->b), tag(g, m->value_close));
    if (json_array_size(values) == 0 && m->cdata) { /* only what needs it stands in CDATA */
        static const uint32_t marked[] = {'\n', '\n', '&', '&', '<', '<'};
        const hn_expr plain = hn_expr_repeat(g->b, hn_expr_class(g->b, marked, 3, true), 0, -1);
        const hn_expr data = HN_SEQ(g, hn_g_text(g, "<![CDATA["), hn_expr_until(g->b, m->cdata, false, false));
        return HN_ALT(g, data, HN_SEQ(g, plain, tag(g, m->value_close)));
    }
    if (json_array_size(values) == 0) return hn_expr_until(g->b, m->value_close, false, false);
    hn_expr all = -1;
    json_array_foreach(values, i, one) {
        const hn_expr e = hn_expr_bytes(g->b, json_string_value(one) ? json_string_value(one) : "", json_string_length(one));
        all = i ? HN_ALT(g, all, e) : e;
    }
    return HN_SEQ(g, all, m->lines ? hn_g_text(g, "\n") : hn_expr_empty(g->b), tag(g, m->value_close));
}

/* JSON, or, as most templates print them, Python's words. */
static hn_expr literal(hn_call_grammar *g, const hn_tool_function *f, const char *name, const json_t *schema) {
    const unsigned types = types_of(f, name);
    hn_expr e = hn_g_json(g, f, schema);
    if (types & HN_TYPE_BOOLEAN) e = HN_ALT(g, e, hn_g_text(g, "True"), hn_g_text(g, "False"));
    return types & HN_TYPE_NULL ? HN_ALT(g, e, hn_g_text(g, "None")) : e;
}

static hn_expr param(hn_call_grammar *g, const hn_tool_function *f, const char *name, const json_t *schema) {
    const hn_markup *m = markup(g);
    const bool string = types_of(f, name) & HN_TYPE_STRING;
    const hn_expr line = m->lines ? hn_g_text(g, "\n") : hn_expr_empty(g->b);
    const hn_expr typed = m->typed ? hn_g_text(g, string ? "\" string=\"true\">" : "\" string=\"false\">") : tag(g, m->param_close);
    const hn_expr open = m->value_open ? HN_SEQ(g, gap(g), tag(g, m->value_open)) : hn_expr_empty(g->b);
    const hn_expr value = string ? raw(g, schema) : HN_SEQ(g, literal(g, f, name, schema), line, tag(g, m->value_close));
    return HN_SEQ(g, tag(g, m->param_open), hn_g_text(g, name), typed, open, line, value, gap(g));
}

static hn_expr markup_call(hn_call_grammar *g, const hn_tool_function *f) {
    const hn_markup *m = markup(g);
    const hn_expr close = m->name_close ? tag(g, m->name_close) : hn_expr_empty(g->b);
    return HN_SEQ(g, hn_g_text(g, f->name), close, gap(g), hn_g_members(g, f, f->parameters, "", false, param), tag(g, m->call_close));
}

/* Qwen3-Coder, Seed-OSS and GLM open a block for each call; MiniMax and DSML have all in one; MiniCPM5 has none. */
hn_expr hn_grammar_markup(hn_call_grammar *g, bool opened) {
    const hn_markup *m = markup(g);
    const char *mark = g->family->opens[0];
    const hn_expr name = *m->name_open && strcmp(m->name_open, mark) != 0 ? HN_SEQ(g, gap(g), tag(g, m->name_open)) : hn_expr_empty(g->b);
    const hn_expr call = HN_SEQ(g, name, hn_g_any(g, markup_call));
    const hn_expr close = m->close ? HN_SEQ(g, gap(g), tag(g, m->close)) : hn_expr_empty(g->b);
    const hn_expr open = opened ? hn_expr_empty(g->b) : tag(g, mark);
    if (m->many) return HN_SEQ(g, open, hn_g_list(g, call, hn_expr_empty(g->b), call), close);
    const hn_expr between = m->close ? gap(g) : *m->name_open ? hn_g_text(g, "\n") : gap(g);
    return hn_g_list(g, HN_SEQ(g, open, call, close), between, HN_SEQ(g, tag(g, mark), call, close));
}

/* ---- Python ------------------------------------------------------------------------------------------------------------ */

static hn_expr python_value(hn_call_grammar *g, const hn_tool_function *f, const char *name, const json_t *schema) {
    const unsigned types = types_of(f, name);
    const hn_expr key = HN_SEQ(g, hn_g_text(g, name), hn_g_text(g, "="));
    if (types == HN_TYPE_BOOLEAN) return HN_SEQ(g, key, HN_ALT(g, hn_g_text(g, "True"), hn_g_text(g, "False")));
    return HN_SEQ(g, key, hn_g_json(g, f, schema));
}

static hn_expr python_call(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, hn_g_text(g, f->name), hn_g_text(g, "("), hn_g_members(g, f, f->parameters, ", ", false, python_value),
                  hn_g_text(g, ")"));
}

hn_expr hn_grammar_python(hn_call_grammar *g, bool opened) {
    const hn_expr one = hn_g_any(g, python_call), all = hn_g_list(g, one, hn_g_text(g, ", "), one);
    const bool marks = g->family->opens != NULL;
    return HN_SEQ(g, marks ? hn_g_open(g, opened) : hn_expr_empty(g->b), hn_g_text(g, "["), all, hn_g_text(g, "]"),
                  marks ? hn_g_mark(g, g->family->closes[0]) : hn_expr_empty(g->b));
}

/* ---- Gemma ------------------------------------------------------------------------------------------------------------- */

#define QUOTE "<|\"|>"
enum { DEEPEST = 8 };

static hn_expr gemma_value(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema);

static hn_expr gemma_string(hn_call_grammar *g, const json_t *schema) {
    const json_t *values = json_object_get(schema, "enum"), *one;
    size_t i;
    hn_expr all = json_array_size(values) == 0 ? bounded(g, schema) : -1;
    json_array_foreach(values, i, one) {
        const hn_expr e = hn_expr_bytes(g->b, json_string_value(one) ? json_string_value(one) : "", json_string_length(one));
        all = i ? HN_ALT(g, all, e) : e;
    }
    return all < 0 ? HN_SEQ(g, hn_g_mark(g, QUOTE), hn_expr_until(g->b, QUOTE, false, false))
                   : HN_SEQ(g, hn_g_mark(g, QUOTE), all, hn_g_mark(g, QUOTE));
}

static hn_expr gemma_member(hn_call_grammar *g, const hn_tool_function *f, const char *name, const json_t *schema) {
    return HN_SEQ(g, hn_g_text(g, name), hn_g_text(g, ":"), gemma_value(g, f, schema));
}

/* Values of one type, by their schema; deeper than a few levels, or without properties, an object is empty. */
static hn_expr gemma_typed(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema, unsigned type) {
    json_t *plain;
    switch (type) {
    case HN_TYPE_STRING: return gemma_string(g, schema);
    case HN_TYPE_BOOLEAN: return HN_ALT(g, hn_g_text(g, "true"), hn_g_text(g, "false"));
    case HN_TYPE_NULL: return HN_ALT(g, hn_g_text(g, "None"), hn_g_text(g, "null"));
    case HN_TYPE_OBJECT:
        schema = g->depth < DEEPEST ? schema : NULL;
        return HN_SEQ(g, hn_g_text(g, "{"), hn_g_members(g, f, schema, ",", true, gemma_member), hn_g_text(g, "}"));
    case HN_TYPE_ARRAY: {
        const json_t *items = json_object_get(schema, "items");
        const hn_expr one = g->depth < DEEPEST ? gemma_value(g, f, items) : gemma_string(g, NULL);
        const hn_expr more = HN_SEQ(g, one, hn_expr_repeat(g->b, HN_SEQ(g, hn_g_text(g, ","), one), 0, -1));
        return HN_SEQ(g, hn_g_text(g, "["), hn_expr_repeat(g->b, more, 0, 1), hn_g_text(g, "]"));
    }
    default: break; /* numbers, with their bounds */
    }
    plain = json_is_object(schema) ? json_deep_copy(schema) : json_object();
    json_object_set_new(plain, "type", json_string(type == HN_TYPE_INTEGER ? "integer" : "number"));
    const hn_expr e = hn_g_json(g, f, plain);
    json_decref(plain);
    return e;
}

static hn_expr gemma_value(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema) {
    unsigned types = hn_value_types(f, schema);
    hn_expr all = -1;
    if (!types) types = HN_TYPE_STRING | HN_TYPE_NUMBER | HN_TYPE_BOOLEAN;
    g->depth++;
    for (unsigned type = 1; type <= HN_TYPE_OBJECT; type *= 2) {
        if (!(types & type) || (type == HN_TYPE_INTEGER && types & HN_TYPE_NUMBER)) continue;
        const hn_expr e = gemma_typed(g, f, schema, type);
        all = all < 0 ? e : HN_ALT(g, all, e);
    }
    g->depth--;
    return all;
}

static hn_expr gemma_call(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, hn_g_text(g, "call:"), hn_g_text(g, f->name), hn_g_text(g, "{"),
                  hn_g_members(g, f, f->parameters, ",", true, gemma_member), hn_g_text(g, "}"), hn_g_mark(g, "<tool_call|>"));
}

hn_expr hn_grammar_gemma(hn_call_grammar *g, bool opened) {
    const hn_expr one = hn_g_any(g, gemma_call);
    return hn_g_list(g, HN_SEQ(g, hn_g_open(g, opened), one), hn_g_open(g, false), one);
}
