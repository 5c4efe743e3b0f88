/* SPDX-License-Identifier: Apache-2.0 */
/* call_grammars_other.c - grammars of the families that write arguments in tags, or in Python's spelling. */
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

/* The value of a string, with the mark behind it; of MiniCPM5 perhaps in CDATA. What its schema says of it leaves no place for marks. */
static hn_expr raw(hn_call_grammar *g, const hn_tool_function *f, const json_t *schema) {
    static const uint32_t marked[] = {'\n', '\n', '&', '&', '<', '<'};
    const hn_markup *m = markup(g);
    const hn_expr line = m->lines ? hn_g_text(g, "\n") : hn_expr_empty(g->b), close = tag(g, m->value_close);
    hn_expr plain = hn_g_string(g, f, schema, m->cdata ? "\n&<" : "<");
    if (!m->cdata) return plain < 0 ? hn_expr_until(g->b, m->value_close, false, false) : HN_SEQ(g, plain, line, close);
    const hn_expr inner = hn_g_string(g, f, schema, "<");
    const hn_expr data = inner < 0 ? hn_expr_until(g->b, m->cdata, false, false) : HN_SEQ(g, inner, hn_g_text(g, m->cdata));
    if (plain < 0) plain = hn_expr_repeat(g->b, hn_expr_class(g->b, marked, 3, true), 0, -1);
    return HN_ALT(g, HN_SEQ(g, hn_g_text(g, "<![CDATA["), data), HN_SEQ(g, plain, close));
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
    const hn_expr value = string ? raw(g, f, schema) : HN_SEQ(g, literal(g, f, name, schema), line, tag(g, m->value_close));
    return HN_SEQ(g, tag(g, m->param_open), hn_g_text(g, name), typed, open, line, value, gap(g));
}

static hn_expr markup_call(hn_call_grammar *g, const hn_tool_function *f) {
    const hn_markup *m = markup(g);
    const hn_expr close = m->name_close ? tag(g, m->name_close) : hn_expr_empty(g->b);
    return HN_SEQ(g, hn_g_text(g, f->name), close, gap(g), hn_g_members(g, f, f->parameters, "", -1, param), tag(g, m->call_close));
}

hn_expr hn_g_bare_call(hn_call_grammar *g) {
    const hn_expr close = HN_SEQ(g, gap(g), tag(g, markup(g)->close));
    return HN_SEQ(g, hn_g_any(g, markup_call), hn_expr_repeat(g->b, close, 0, 1));
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

hn_expr hn_g_python_members(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, hn_g_members(g, f, f->parameters, ", ", -1, python_value), hn_g_text(g, ")"));
}

hn_expr hn_g_python_call(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, hn_g_text(g, f->name), hn_g_text(g, "("), hn_g_python_members(g, f));
}

hn_expr hn_grammar_python(hn_call_grammar *g, bool opened) {
    const hn_expr one = hn_g_any(g, hn_g_python_call), all = hn_g_list(g, one, hn_g_text(g, ", "), one);
    const bool marks = g->family->opens != NULL;
    return HN_SEQ(g, marks ? hn_g_open(g, opened) : hn_expr_empty(g->b), hn_g_text(g, "["), all, hn_g_text(g, "]"),
                  marks ? hn_g_mark(g, g->family->closes[0]) : hn_expr_empty(g->b));
}
