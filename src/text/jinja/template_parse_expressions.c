/* SPDX-License-Identifier: Apache-2.0 */
/* template_parse_expressions.c - the grammar of expressions, from the tightest binding to the loosest.
 *
 * Names of filters and tests are checked here, so that an unknown one is an error of parsing; inside an if it is an error only
 * when it is evaluated, as in Jinja. */
#include "text/jinja/template_parse.h"

#include <string.h>

/* ---- values ---- */

static tnode *constant(tparser *p, tvalue v) {
    tnode *n = tp_node(p, TN_CONST, NULL, NULL);
    if (n) n->value = v;
    return n;
}

static tnode *string_constant(tparser *p) {
    tnode *n = constant(p, tv_str(p->token.str.s, p->token.str.n));
    tp_advance(p);
    while (!p->status && p->token.kind == TT_STRING) { /* "a" "b" is "ab" */
        tstr a = n->value.str, b = p->token.str;
        char *both = tp_alloc(p, a.n + b.n + 1);
        if (!both) return NULL;
        if (a.n) memcpy(both, a.s, a.n);
        if (b.n) memcpy(both + a.n, b.s, b.n);
        n->value = tv_str(both, a.n + b.n);
        tp_advance(p);
    }
    return n;
}

static bool list_item(tparser *p, tnode *n) {
    return tp_append(p, n, tp_expression(p));
}

static bool dict_item(tparser *p, tnode *n) {
    return tp_append(p, n, tp_expression(p)) && tp_need_op(p, ":") && tp_append(p, n, tp_expression(p));
}

/* *values or **values */
static bool spread_argument(tparser *p, tnode *n) {
    const int op = tp_at_op(p, "**") ? TOP_POWER : '*';
    for (size_t i = 0; i < n->n; i++) {
        if (n->items[i]->kind == TN_SPREAD && (n->items[i]->op == op || op == '*'))
            return tp_fail(p, "expected an argument"), false;
    }
    tnode *spread = tp_advance(p) ? tp_node(p, TN_SPREAD, tp_expression(p), NULL) : NULL;
    if (spread) spread->op = op;
    return spread && tp_append(p, n, spread);
}

static bool argument(tparser *p, tnode *n) {
    const tnode *last = n->n ? n->items[n->n - 1] : NULL;
    if (tp_at_op(p, "*") || tp_at_op(p, "**")) return spread_argument(p, n);
    const bool names_only = last && (last->kind == TN_KEYWORD || last->kind == TN_SPREAD);
    tnode *value = tp_expression(p);
    if (!value) return false;
    if (!tp_at_op(p, "="))
        return names_only ? tp_fail(p, "expected a named argument after those before"), false : tp_append(p, n, value);
    if (value->kind != TN_NAME || (last && last->kind == TN_SPREAD && last->op == TOP_POWER))
        return tp_fail(p, "expected an argument"), false;
    tnode *keyword = tp_node(p, TN_KEYWORD, NULL, NULL);
    if (!keyword || !tp_advance(p)) return false;
    keyword->name = value->name;
    keyword->a = tp_expression(p);
    return tp_append(p, n, keyword);
}

static tnode *parenthesis(tparser *p) {
    tnode *tuple = tp_node(p, TN_TUPLE, NULL, NULL), *first;
    if (!tp_advance(p) || tp_take_op(p, ")")) return tuple;
    first = tp_expression(p);
    if (!tp_at_op(p, ",")) return first && tp_need_op(p, ")") ? first : NULL;
    tp_advance(p);
    return tuple && tp_append(p, tuple, first) ? tp_items_until(p, tuple, ")", list_item) : NULL;
}

/* What a macro has that names this: TMACRO_.... */
static int asks_for(tstr name) {
    return ts_equal(name, "caller")    ? TMACRO_CALLER
           : ts_equal(name, "kwargs")  ? TMACRO_NAMED
           : ts_equal(name, "varargs") ? TMACRO_MORE
                                       : 0;
}

void tp_name_set(tparser *p, tstr name) {
    int function;
    p->own |= asks_for(name) & ~p->asked;
    if (tfunction_find(name, &function) == TFOUND_MISSING && function < TP_UNBUILT) p->set[function] = true;
}

static tnode *name_or_word(tparser *p) {
    static const struct {
        const char *word;
        tvalue v;
    } words[] = {
        {"true", {.kind = TV_BOOL, .b = true}},   {"True", {.kind = TV_BOOL, .b = true}},   {"none", {.kind = TV_NONE}},
        {"false", {.kind = TV_BOOL, .b = false}}, {"False", {.kind = TV_BOOL, .b = false}}, {"None", {.kind = TV_NONE}},
    };
    tnode *n = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words && !n; i++) {
        if (tp_at_name(p, words[i].word)) n = constant(p, words[i].v);
    }
    if (!n && (n = tp_node(p, TN_NAME, NULL, NULL))) {
        n->name = p->token.str;
        p->asked |= asks_for(n->name) & ~p->own;
    }
    return tp_advance(p) ? n : NULL;
}

static tnode *primary(tparser *p) {
    ttoken k = p->token;
    if (p->status) return NULL;
    if (k.kind == TT_NAME) return name_or_word(p);
    if (k.kind == TT_STRING) return string_constant(p);
    if (k.kind == TT_INT || k.kind == TT_FLOAT) {
        tnode *n = constant(p, k.kind == TT_INT ? tv_int(k.i) : tv_float(k.f));
        return tp_advance(p) ? n : NULL;
    }
    if (tp_at_op(p, "(")) return parenthesis(p);
    if (tp_at_op(p, "[")) {
        tnode *n = tp_node(p, TN_LIST, NULL, NULL);
        return tp_advance(p) ? tp_items_until(p, n, "]", list_item) : NULL;
    }
    if (tp_at_op(p, "{")) {
        tnode *n = tp_node(p, TN_DICT, NULL, NULL);
        return tp_advance(p) ? tp_items_until(p, n, "}", dict_item) : NULL;
    }
    return tp_fail(p, "expected a value");
}

/* ---- what follows a value ---- */

/* [key], [start:stop:step], after the bracket. */
static tnode *subscript(tparser *p, tnode *of) {
    tnode *part[3] = {NULL, NULL, NULL};
    int colons = 0;
    while (!p->status && !tp_at_op(p, "]")) {
        if (tp_at_op(p, ":")) {
            if (++colons > 2) return tp_fail(p, "expected \"]\"");
            tp_advance(p);
        } else if (part[colons]) {
            return tp_fail(p, "expected \"]\"");
        } else {
            part[colons] = tp_expression(p);
        }
    }
    if (!tp_need_op(p, "]")) return NULL;
    if (colons == 0) return part[0] ? tp_node(p, TN_SUBSCRIPT, of, part[0]) : tp_fail(p, "expected a subscript");
    tnode *n = tp_node(p, TN_SLICE, of, NULL);
    for (int i = 0; n && i < 3; i++) tp_append(p, n, part[i]);
    return n;
}

static tnode *call(tparser *p, tnode *of) {
    tnode *n = tp_node(p, TN_CALL, of, NULL);
    int function;
    if (of->kind == TN_NAME && tfunction_find(of->name, &function) == TFOUND_MISSING && function < TP_UNBUILT &&
        !p->called[function])
        p->called[function] = p->token.line;
    return tp_advance(p) ? tp_items_until(p, n, ")", argument) : NULL;
}

static tnode *postfix(tparser *p, tnode *n) {
    while (n && !p->status) {
        if (tp_take_op(p, ".")) {
            tnode *key = NULL;
            if (p->token.kind == TT_INT) { /* list.0 */
                key = constant(p, tv_int(p->token.i));
                tp_advance(p);
                n = tp_node(p, TN_SUBSCRIPT, n, key);
                continue;
            }
            n = tp_node(p, TN_ATTRIBUTE, n, NULL);
            if (!n || !tp_need_name(p, &n->name)) return NULL;
        } else if (tp_take_op(p, "[")) {
            n = subscript(p, n);
        } else if (tp_at_op(p, "(")) {
            n = call(p, n);
        } else {
            return n;
        }
    }
    return !p->status ? n : NULL;
}

/* Refuses what only Jinja has, wherever it stands; what nobody has is refused here unless an if may keep it from being reached. */
static bool may_be_used(tparser *p, int line, const char *what, tfound found, tstr name) {
    if (found == TFOUND_MISSING || (found == TFOUND_NOT && !p->conditions))
        return tp_refuse(p, line, what, name), false;
    return true;
}

/* The filter or test that map, select and similar filters name by a string. */
static bool inner_may_be_used(tparser *p, const tnode *n) {
    const bool map = ts_equal(n->name, "map"),
               by_attribute = ts_equal(n->name, "selectattr") || ts_equal(n->name, "rejectattr");
    const tnode *named = n->n > by_attribute ? n->items[by_attribute] : NULL;
    bool takes;
    if (!map && !by_attribute && !ts_equal(n->name, "select") && !ts_equal(n->name, "reject")) return true;
    if (!named || named->kind != TN_CONST || named->value.kind != TV_STRING) return true;
    const tstr name = named->value.str;
    const tfound found = map ? tfilter_find(name) : ttest_find(name, &takes);
    return found != TFOUND_MISSING || may_be_used(p, n->line, map ? "the filter" : "the test", found, name);
}

static tnode *filter(tparser *p, tnode *of) {
    tnode *n = tp_node(p, TN_FILTER, of, NULL);
    if (!n || !tp_need_name(p, &n->name) || !may_be_used(p, n->line, "the filter", tfilter_find(n->name), n->name))
        return NULL;
    if (tp_take_op(p, "(")) n = tp_items_until(p, n, ")", argument);
    return n && inner_may_be_used(p, n) ? n : NULL;
}

tnode *tp_filter_chain(tparser *p, tnode *of, bool begun) {
    while (of && (begun || tp_take_op(p, "|"))) {
        of = filter(p, of);
        begun = false;
    }
    return of;
}

static tnode *test(tparser *p, tnode *of) {
    tnode *n = tp_node(p, TN_TEST, of, NULL);
    bool takes = false;
    if (!n) return NULL;
    n->op = tp_take_name(p, "not");
    if (!tp_need_name(p, &n->name) || !may_be_used(p, n->line, "the test", ttest_find(n->name, &takes), n->name))
        return NULL;
    if (tp_take_op(p, "(")) return tp_items_until(p, n, ")", argument);
    if (takes && !tp_append(p, n, postfix(p, primary(p)))) return NULL; /* "is divisibleby 3" */
    return n;
}

tnode *tp_filters(tparser *p, tnode *n) {
    while (n && !p->status) {
        if (tp_take_op(p, "|"))
            n = filter(p, n);
        else if (tp_take_name(p, "is"))
            n = test(p, n);
        else if (tp_at_op(p, "("))
            n = call(p, n);
        else
            break;
    }
    return n;
}

/* ---- operators, tightest binding first ---- */

static tnode *unary(tparser *p, bool with_filters) {
    tnode *n = NULL;
    if (!tp_enter(p)) return NULL;
    if (tp_at_op(p, "-") || tp_at_op(p, "+")) {
        int op = p->token.str.s[0];
        n = tp_advance(p) ? tp_node(p, TN_UNARY, unary(p, false), NULL) : NULL;
        if (n) n->op = op;
    } else {
        n = postfix(p, primary(p));
    }
    p->depth--;
    return with_filters ? tp_filters(p, n) : n;
}

typedef struct operator_level {
    const char *ops[5];
    int codes[5];
} operator_level;

/* Loosest first: + and -, then ~, then * / // %, then **. */
static const operator_level levels[] = {
    {{"+", "-"}, {'+', '-'}},
    {{"~"}, {'~'}},
    {{"*", "//", "/", "%"}, {'*', TOP_FLOOR, '/', '%'}},
    {{"**"}, {TOP_POWER}},
};

static tnode *arithmetic(tparser *p, size_t level) {
    if (level == sizeof levels / sizeof *levels) return unary(p, true);
    tnode *n = arithmetic(p, level + 1);
    while (n && !p->status) {
        int op = 0;
        for (int i = 0; levels[level].ops[i] && !op; i++) {
            if (tp_take_op(p, levels[level].ops[i])) op = levels[level].codes[i];
        }
        if (!op) break;
        tnode *right = arithmetic(p, level + 1);
        n = right ? tp_node(p, TN_BINARY, n, right) : NULL;
        if (n) n->op = op;
    }
    return n;
}

static int take_comparison(tparser *p) {
    static const struct {
        const char *op;
        int code;
    } ops[] = {{"==", TOP_EQ}, {"!=", TOP_NE}, {"<=", TOP_LE}, {">=", TOP_GE}, {"<", TOP_LT}, {">", TOP_GT}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (tp_take_op(p, ops[i].op)) return ops[i].code;
    }
    if (tp_take_name(p, "in")) return TOP_IN;
    if (!tp_at_name(p, "not")) return 0;
    /* After a value "not" can only begin "not in". */
    tp_advance(p);
    if (tp_take_name(p, "in")) return TOP_NOT_IN;
    tp_fail(p, "expected \"in\"");
    return 0;
}

static tnode *comparison(tparser *p) {
    tnode *left = arithmetic(p, 0), *n = NULL;
    for (int op; left && (op = take_comparison(p)) != 0;) {
        if (!n) n = tp_node(p, TN_COMPARE, left, NULL);
        tnode *operand = tp_node(p, TN_OPERAND, arithmetic(p, 0), NULL);
        if (!n || !operand) return NULL;
        operand->op = op;
        tp_append(p, n, operand);
    }
    return n ? n : left;
}

static tnode *negation(tparser *p) {
    if (!tp_enter(p)) return NULL;
    tnode *n = NULL;
    if (tp_take_name(p, "not")) {
        n = tp_node(p, TN_UNARY, negation(p), NULL);
        if (n) n->op = '!';
    } else {
        n = comparison(p);
    }
    p->depth--;
    return n;
}

static tnode *conjunction(tparser *p) {
    tnode *n = negation(p);
    while (n && tp_take_name(p, "and")) n = tp_node(p, TN_AND, n, negation(p));
    return n;
}

tnode *tp_disjunction(tparser *p) {
    tnode *n = conjunction(p);
    while (n && tp_take_name(p, "or")) n = tp_node(p, TN_OR, n, conjunction(p));
    return n;
}

/* a if b else c */
tnode *tp_expression(tparser *p) {
    if (!tp_enter(p)) return NULL;
    tnode *n = tp_disjunction(p);
    while (n && tp_take_name(p, "if")) {
        p->conditions++;
        tnode *condition = tp_disjunction(p), *choice = tp_node(p, TN_CHOICE, condition, n);
        if (choice && tp_take_name(p, "else")) choice->c = tp_expression(p);
        p->conditions--;
        n = choice;
    }
    p->depth--;
    return !p->status ? n : NULL;
}

/* One tp_expression, or a tuple without parentheses: several, separated by commas, with an optional trailing comma. */
tnode *tp_tuple_of(tparser *p, tnode *(*one)(tparser *)) {
    tnode *first = one(p), *tuple;
    if (!first || !tp_at_op(p, ",")) return first;
    tuple = tp_node(p, TN_TUPLE, NULL, NULL);
    if (!tuple || !tp_append(p, tuple, first)) return NULL;
    while (tp_take_op(p, ",")) {
        if (p->token.kind == TT_BLOCK_END || p->token.kind == TT_PRINT_END || tp_at_op(p, "=") || tp_at_op(p, ")") ||
            tp_at_name(p, "in"))
            break;
        if (!tp_append(p, tuple, one(p))) return NULL;
    }
    return !p->status ? tuple : NULL;
}

tnode *tp_tuple_or_expression(tparser *p) {
    return tp_tuple_of(p, tp_expression);
}
