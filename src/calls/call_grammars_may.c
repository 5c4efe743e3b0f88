/* SPDX-License-Identifier: Apache-2.0 */
/* call_grammars_may.c - answers that may call, of families whose calls have no mark of their own, or more than one: text is free until it
 * cannot be anything but a call of a function that is offered. */
#include <stdio.h>

#include "calls/call_grammar.h"

/* Marks of all functions: a few of each, and one before them. */
typedef struct marks {
    hn_mark *at;
    char (*text)[HN_LONGEST_NAME + 20];
    size_t n, cap;
} marks;

static bool marks_open(marks *m, const hn_call_grammar *g, size_t each) {
    *m = (marks){.cap = each * g->tools->n + 1};
    m->at = hn_alloc(m->cap * sizeof *m->at);
    m->text = hn_alloc(m->cap * sizeof *m->text);
    return m->at && m->text;
}

static void marks_add(hn_call_grammar *g, marks *m, const char *before, const char *name, const char *behind, hn_expr rest, bool at_start) {
    snprintf(m->text[m->n], sizeof *m->text, "%s%.*s%s", before, HN_LONGEST_NAME, name, behind);
    m->at[m->n] = (hn_mark){m->text[m->n], g->none ? hn_expr_alt(g->b, NULL, 0) : rest, at_start};
    m->n++;
}

/* made: there was memory for them. */
static hn_expr marks_expr(marks *m, hn_call_grammar *g, bool made) {
    const hn_expr e = made ? hn_expr_marked(g->b, m->at, m->n) : hn_builder_no_memory(g->b);
    hn_free(m->at);
    hn_free(m->text);
    return e;
}

static const hn_tool_function *function_at(const hn_call_grammar *g, size_t i) {
    const hn_tool_function *f = &g->tools->function[i];
    return !g->only || g->only == f ? f : NULL;
}

/* ---- Llama ------------------------------------------------------------------------------------------------------------- */

/* {"name": "F" is a call: other objects that have a name are the answer itself. */
static void llama3_marks(hn_call_grammar *g, marks *m, hn_expr more, bool at_start) {
    const hn_expr space = hn_expr_repeat(g->b, hn_g_text(g, " "), 0, 1);
    for (size_t i = 0; i < g->tools->n; i++) {
        const hn_tool_function *f = function_at(g, i);
        if (!f) continue;
        const hn_expr rest = HN_SEQ(g, hn_g_text(g, ","), space, hn_g_text(g, "\"parameters\":"), space, hn_g_object(g, f),
                                    hn_g_text(g, "}"), more);
        marks_add(g, m, "{\"name\": \"", f->name, "\"", rest, at_start);
        marks_add(g, m, "{\"name\":\"", f->name, "\"", rest, at_start);
    }
}

/* Behind the tag other tools' own forms may stand, too. */
hn_expr hn_grammar_may_llama3(hn_call_grammar *g) {
    marks behind, all;
    const hn_expr one = hn_grammar_llama3(g, true), next = HN_SEQ(g, hn_g_text(g, ";"), hn_expr_repeat(g->b, hn_g_text(g, " "), 0, 1), one);
    const hn_expr more = g->one ? hn_expr_empty(g->b) : hn_expr_repeat(g->b, next, 0, -1);
    bool made = marks_open(&behind, g, 2);
    if (made) llama3_marks(g, &behind, more, true);
    const hn_expr tagged = marks_expr(&behind, g, made);
    made = marks_open(&all, g, 2);
    if (made) {
        marks_add(g, &all, g->family->opens[0], "", "", tagged, false);
        llama3_marks(g, &all, more, true);
    }
    return marks_expr(&all, g, made);
}

hn_expr hn_grammar_may_pythonic(hn_call_grammar *g) {
    marks m;
    const bool made = marks_open(&m, g, 1);
    const hn_expr next = HN_SEQ(g, hn_g_text(g, ", "), hn_g_any(g, hn_g_python_call));
    const hn_expr more = HN_SEQ(g, g->one ? hn_expr_empty(g->b) : hn_expr_repeat(g->b, next, 0, -1), hn_g_text(g, "]"));
    for (size_t i = 0; i < g->tools->n && made; i++) {
        const hn_tool_function *f = function_at(g, i);
        if (f) marks_add(g, &m, "[", f->name, "(", HN_SEQ(g, hn_g_python_members(g, f), more), true);
    }
    return marks_expr(&m, g, made);
}

/* ---- functionary ------------------------------------------------------------------------------------------------------- */

static void functionary_marks(hn_call_grammar *g, marks *m, const char *before, hn_expr behind, bool at_start) {
    for (size_t i = 0; i < g->tools->n; i++) {
        const hn_tool_function *f = function_at(g, i);
        if (f) marks_add(g, m, before, f->name, "\n", HN_SEQ(g, hn_g_object(g, f), behind), at_start);
    }
}

/* A part's recipient says what follows; that of the first stands at the answer's start, that of others behind the mark. */
hn_expr hn_grammar_may_functionary(hn_call_grammar *g) {
    marks m, later;
    const char *mark = g->family->opens[0];
    const hn_expr again = hn_expr_rule(g->b, "parts"), behind = g->one ? hn_expr_without(g->b, mark) : again;
    bool made = marks_open(&later, g, 1);
    if (made) functionary_marks(g, &later, mark, behind, false);
    hn_expr_rule_set(g->b, again, marks_expr(&later, g, made));
    made = marks_open(&m, g, 2);
    if (made) {
        functionary_marks(g, &m, mark, behind, false);
        functionary_marks(g, &m, "", behind, true);
    }
    return marks_expr(&m, g, made);
}

/* ---- tags -------------------------------------------------------------------------------------------------------------- */

/* The block's mark is often missing: a function's own is enough, and the block's end may stand behind it. */
hn_expr hn_grammar_may_bare(hn_call_grammar *g) {
    const hn_expr all = hn_expr_rule(g->b, "text and calls"), behind = g->one ? hn_expr_without(g->b, g->family->opens[0]) : all;
    marks m;
    const bool made = marks_open(&m, g, 2);
    if (made) marks_add(g, &m, g->family->opens[0], "", "", HN_SEQ(g, hn_grammar_markup(g, true), behind), false);
    if (made) marks_add(g, &m, g->family->opens[1], "", "", HN_SEQ(g, hn_g_bare_call(g), behind), false);
    hn_expr_rule_set(g->b, all, marks_expr(&m, g, made));
    return all;
}
