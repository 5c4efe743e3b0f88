/* SPDX-License-Identifier: Apache-2.0 */
/* call_grammars_json.c - grammars of the families that write arguments as JSON. */
#include "calls/call_grammar.h"

static const uint32_t letters[] = {'0', '9', 'A', 'Z', 'a', 'z'};

static hn_expr digits(hn_call_grammar *g) {
    return hn_expr_repeat(g->b, hn_expr_class(g->b, letters, 1, false), 1, 9);
}

static hn_expr nine(hn_call_grammar *g) {
    return hn_expr_repeat(g->b, hn_expr_class(g->b, letters, 3, false), 9, 9);
}

static hn_expr text3(hn_call_grammar *g, const char *before, const char *name, const char *behind) {
    return HN_SEQ(g, hn_g_text(g, before), hn_g_text(g, name), hn_g_text(g, behind));
}

/* ---- objects ----------------------------------------------------------------------------------------------------------- */

static hn_expr object(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, text3(g, "{\"name\": \"", f->name, "\", \"arguments\": "), hn_g_object(g, f), hn_g_text(g, "}"));
}

static hn_expr object_parameters(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, text3(g, "{\"name\": \"", f->name, "\", \"parameters\": "), hn_g_object(g, f), hn_g_text(g, "}"));
}

static hn_expr object_id(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, text3(g, "{\"name\": \"", f->name, "\", \"arguments\": "), hn_g_object(g, f), hn_g_text(g, ", \"id\": \""), nine(g),
                  hn_g_text(g, "\"}"));
}

static hn_expr object_command(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, hn_g_text(g, "{\"tool_call_id\": \""), digits(g), text3(g, "\", \"tool_name\": \"", f->name, "\", \"parameters\": "),
                  hn_g_object(g, f), hn_g_text(g, "}"));
}

static hn_expr list(hn_call_grammar *g, bool opened, const char *begin, hn_expr one, const char *between, const char *end) {
    return HN_SEQ(g, hn_g_open(g, opened), hn_g_text(g, begin), hn_g_list(g, one, hn_g_text(g, between), one), hn_g_text(g, end));
}

hn_expr hn_grammar_hermes(hn_call_grammar *g, bool opened) {
    const hn_expr body = HN_SEQ(g, hn_g_text(g, "\n"), hn_g_any(g, object), hn_g_text(g, "\n"), hn_g_mark(g, "</tool_call>"));
    return hn_g_list(g, HN_SEQ(g, hn_g_open(g, opened), body), hn_g_text(g, "\n"), HN_SEQ(g, hn_g_open(g, false), body));
}

/* opened: one alone. */
hn_expr hn_grammar_llama3(hn_call_grammar *g, bool opened) {
    const hn_expr one = hn_g_any(g, object_parameters);
    return opened ? one : hn_g_list(g, one, hn_g_text(g, "; "), one);
}

hn_expr hn_grammar_list(hn_call_grammar *g, bool opened) {
    return list(g, opened, "[", hn_g_any(g, object), ", ", "]");
}

hn_expr hn_grammar_mistral_json(hn_call_grammar *g, bool opened) {
    return list(g, opened, "[", hn_g_any(g, object_id), ", ", "]");
}

hn_expr hn_grammar_command(hn_call_grammar *g, bool opened) {
    return HN_SEQ(g, list(g, opened, "[\n    ", hn_g_any(g, object_command), ",\n    ", "\n]"), hn_g_mark(g, "<|END_ACTION|>"));
}

/* ---- names and arguments between marks --------------------------------------------------------------------------------- */

static const hn_marked *marked(const hn_call_grammar *g) {
    return g->family->how;
}

static hn_expr kimi_call(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, text3(g, "functions.", f->name, ":"), digits(g), hn_g_mark(g, marked(g)->separator), hn_g_object(g, f),
                  hn_g_mark(g, marked(g)->inner_end));
}

/* The first call's number is known. */
static hn_expr kimi_first(hn_call_grammar *g, const hn_tool_function *f) {
    char number[30];
    snprintf(number, sizeof number, ":%zu", g->earlier);
    return HN_SEQ(g, text3(g, "functions.", f->name, number), hn_g_mark(g, marked(g)->separator), hn_g_object(g, f),
                  hn_g_mark(g, marked(g)->inner_end));
}

hn_expr hn_grammar_kimi(hn_call_grammar *g, bool opened) {
    const hn_expr first = HN_SEQ(g, hn_g_mark(g, marked(g)->inner), hn_g_any(g, kimi_first));
    const hn_expr more = g->one ? first : HN_SEQ(g, hn_g_mark(g, marked(g)->inner), hn_g_any(g, kimi_call));
    return HN_SEQ(g, hn_g_open(g, opened), hn_g_list(g, first, hn_expr_empty(g->b), more), hn_g_mark(g, marked(g)->outer_end));
}

static hn_expr r1_call(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, hn_g_mark(g, marked(g)->inner), hn_g_text(g, "function"), hn_g_mark(g, marked(g)->separator),
                  text3(g, "", f->name, "\n```json\n"), hn_g_object(g, f), hn_g_text(g, "\n```"), hn_g_mark(g, marked(g)->inner_end));
}

static hn_expr v31_call(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, hn_g_mark(g, marked(g)->inner), hn_g_text(g, f->name), hn_g_mark(g, marked(g)->separator), hn_g_object(g, f),
                  hn_g_mark(g, marked(g)->inner_end));
}

hn_expr hn_grammar_deepseek_r1(hn_call_grammar *g, bool opened) {
    const hn_expr one = hn_g_any(g, r1_call);
    return HN_SEQ(g, hn_g_open(g, opened), hn_g_list(g, one, hn_g_text(g, "\n"), one), hn_g_mark(g, marked(g)->outer_end));
}

hn_expr hn_grammar_deepseek_v31(hn_call_grammar *g, bool opened) {
    const hn_expr one = hn_g_any(g, v31_call);
    return HN_SEQ(g, hn_g_open(g, opened), hn_g_list(g, one, hn_expr_empty(g->b), one), hn_g_mark(g, marked(g)->outer_end));
}

static hn_expr args_call(hn_call_grammar *g, const hn_tool_function *f) {
    const hn_expr id = HN_SEQ(g, hn_g_mark(g, "[CALL_ID]"), nine(g));
    return HN_SEQ(g, hn_g_text(g, f->name), hn_expr_repeat(g->b, id, 0, 1), hn_g_mark(g, "[ARGS]"), hn_g_object(g, f));
}

hn_expr hn_grammar_mistral_args(hn_call_grammar *g, bool opened) {
    const hn_expr one = hn_g_any(g, args_call);
    return hn_g_list(g, HN_SEQ(g, hn_g_open(g, opened), one), hn_g_open(g, false), one);
}

static hn_expr functionary_call(hn_call_grammar *g, const hn_tool_function *f) {
    return HN_SEQ(g, text3(g, "", f->name, "\n"), hn_g_object(g, f));
}

hn_expr hn_grammar_functionary(hn_call_grammar *g, bool opened) {
    (void)opened;
    const hn_expr one = hn_g_any(g, functionary_call);
    return hn_g_list(g, one, hn_g_text(g, ">>>"), one);
}

/* ---- messages ---------------------------------------------------------------------------------------------------------- */

static hn_expr harmony_type(hn_call_grammar *g, hn_expr word) {
    const hn_expr type = HN_SEQ(g, hn_g_text(g, " "), hn_expr_repeat(g->b, hn_g_mark(g, "<|constrain|>"), 0, 1), word);
    return HN_SEQ(g, hn_expr_repeat(g->b, type, 0, 1), hn_g_mark(g, "<|message|>"));
}

static hn_expr harmony_to(hn_call_grammar *g, const hn_tool_function *f, hn_expr name, hn_expr type) {
    const hn_expr channel = HN_SEQ(g, hn_g_mark(g, "<|channel|>"), name), to = text3(g, " to=functions.", f->name, "");
    return HN_SEQ(g, HN_ALT(g, HN_SEQ(g, to, channel), HN_SEQ(g, channel, to)), harmony_type(g, type), hn_g_object(g, f));
}

static hn_expr harmony_call(hn_call_grammar *g, const hn_tool_function *f) {
    return harmony_to(g, f, hn_g_text(g, "commentary"), hn_g_text(g, "json"));
}

/* The recipient makes it a call: many come as thinking. */
static hn_expr harmony_any_call(hn_call_grammar *g, const hn_tool_function *f) {
    return harmony_to(g, f, HN_ALT(g, hn_g_text(g, "commentary"), hn_g_text(g, "analysis")),
                      HN_ALT(g, hn_g_text(g, "json"), hn_g_text(g, "code")));
}

/* Thinking, then a call; <|call|> ends the turn. */
hn_expr hn_grammar_harmony(hn_call_grammar *g, bool opened) {
    (void)opened;
    const hn_expr thinking = HN_SEQ(g, hn_g_mark(g, "<|channel|>"), hn_g_text(g, "analysis"), hn_g_mark(g, "<|message|>"),
                                    hn_expr_until(g->b, "<|end|>", false, false), hn_g_mark(g, "<|start|>"), hn_g_text(g, "assistant"));
    return HN_SEQ(g, hn_expr_repeat(g->b, thinking, 0, -1), hn_g_any(g, harmony_call));
}

/* A recipient that is none of the functions, such as a tool of the template's own. */
static hn_expr harmony_other(hn_call_grammar *g) {
    static const char functions[] = "functions.";
    enum { N = sizeof functions - 1 };
    hn_expr all[2 * N];
    size_t n = 0;
    for (uint32_t i = 0; i < N; i++) { /* its first i letters, and then another or none */
        const uint32_t c = (unsigned char)functions[i], not_c[] = {0, ' ', '<', '<', c, c}, end[] = {0, ' ', '<', '<'};
        const hn_expr begin = hn_expr_bytes(g->b, functions, i), rest = hn_expr_repeat(g->b, hn_expr_class(g->b, end, 2, true), 0, 200);
        all[n++] = HN_SEQ(g, begin, hn_expr_class(g->b, not_c, 3, true), rest);
        if (i) all[n++] = begin;
    }
    return HN_SEQ(g, hn_g_text(g, " to="), hn_expr_alt(g->b, all, n));
}

/* Messages, whose headers are whole and name nobody who is not there; a call is the last one. */
hn_expr hn_grammar_may_harmony(hn_call_grammar *g) {
    static const uint32_t small[] = {'a', 'z'};
    const hn_expr channels = HN_ALT(g, hn_g_text(g, "analysis"), hn_g_text(g, "commentary"), hn_g_text(g, "final"));
    const hn_expr other = harmony_other(g), maybe = hn_expr_repeat(g->b, other, 0, 1);
    const hn_expr channel = HN_SEQ(g, hn_g_mark(g, "<|channel|>"), channels);
    const hn_expr word = hn_expr_repeat(g->b, hn_expr_class(g->b, small, 1, false), 1, 20);
    const hn_expr header = HN_SEQ(g, HN_ALT(g, HN_SEQ(g, other, channel), HN_SEQ(g, channel, maybe)), harmony_type(g, word));
    const hn_expr start = HN_SEQ(g, hn_g_mark(g, "<|start|>"), hn_g_text(g, "assistant"));
    const hn_expr whole = HN_SEQ(g, header, hn_expr_until(g->b, "<|end|>", false, false), start);
    const hn_expr last = HN_SEQ(g, header, hn_expr_until(g->b, "<|end|>", false, true));
    return HN_SEQ(g, hn_expr_repeat(g->b, whole, 0, -1), g->none ? last : HN_ALT(g, hn_g_any(g, harmony_any_call), last));
}
