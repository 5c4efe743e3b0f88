/* SPDX-License-Identifier: Apache-2.0 */
/* template_parse.c - parses tokens to a tree, by recursive descent; the grammar is Jinja's, without what chat templates
 * never use.
 *
 * Names of filters and tests are checked here, so that an unknown one is an error of parsing; inside an if it is an error only
 * when it is evaluated, as in Jinja.
 */
#include <stdio.h>
#include <string.h>

#include "text/jinja/template_private.h"

typedef struct parser {
    hn_template *t;
    tlexer lex;
    ttoken token; /* the current one */
    int depth, conditions, loops, macros;
    hunch_error *err;
    hunch_status status;
} parser;

static tnode *expression(parser *p);
static tnode *body(parser *p, const char *const *ends);

static tnode *fail(parser *p, const char *what) {
    if (p->status) return NULL;
    ttoken k = p->token;
    static const char *const found[] = {[TT_END] = "the end",
                                        [TT_PRINT_END] = "}}",
                                        [TT_BLOCK_END] = "%}",
                                        [TT_PRINT_BEGIN] = "{{",
                                        [TT_BLOCK_BEGIN] = "{%"};
    bool named = k.kind == TT_NAME || k.kind == TT_OP;
    tstr s = named ? k.str : (tstr){"a value", 7};
    if (!named && k.kind < TT_NAME && k.kind != TT_TEXT) s = (tstr){found[k.kind], strlen(found[k.kind])};
    p->status = hn_fail(p->err, HUNCH_REFUSED, "chat template, line %d: %s, not %s%.*s%s", k.line, what,
                        named ? "\"" : "", s.n < 60 ? (int)s.n : 60, s.s, named ? "\"" : "");
    return NULL;
}

static tnode *refuse(parser *p, int line, const char *what, tstr name) {
    if (!p->status) {
        p->status = hn_fail(p->err, HUNCH_REFUSED, "chat template, line %d: %s \"%.*s\" is not supported", line, what,
                            name.n < 60 ? (int)name.n : 60, name.s);
    }
    return NULL;
}

static void *parse_alloc(parser *p, size_t size) {
    void *m = ta_alloc(&p->t->arena, size);
    if (m)
        memset(m, 0, size);
    else if (!p->status)
        p->status = hn_fail_memory(p->err, "the chat template", size);
    return m;
}

static tnode *new_node(parser *p, tnode_kind kind, tnode *a, tnode *b) {
    tnode *n = !p->status ? parse_alloc(p, sizeof *n) : NULL;
    if (n) *n = (tnode){.kind = kind, .line = p->token.line, .a = a, .b = b};
    return n;
}

static bool advance(parser *p) {
    if (p->status) return false;
    if (!tlex_next(&p->lex, &p->token)) p->status = p->lex.status;
    return !p->status;
}

static bool at_op(const parser *p, const char *op) {
    return !p->status && p->token.kind == TT_OP && ts_equal(p->token.str, op);
}

static bool at_name(const parser *p, const char *name) {
    return !p->status && p->token.kind == TT_NAME && ts_equal(p->token.str, name);
}

static bool take_op(parser *p, const char *op) {
    return at_op(p, op) && advance(p);
}

static bool take_name(parser *p, const char *name) {
    return at_name(p, name) && advance(p);
}

static bool need_op(parser *p, const char *op) {
    if (at_op(p, op)) return advance(p);
    char what[32];
    snprintf(what, sizeof what, "expected \"%s\"", op);
    fail(p, what);
    return false;
}

static bool need_name(parser *p, tstr *name) {
    if (p->status || p->token.kind != TT_NAME) return fail(p, "expected a name"), false;
    *name = p->token.str;
    return advance(p);
}

static bool need_end(parser *p, ttoken_kind end) {
    if (!p->status && p->token.kind == end) return advance(p);
    fail(p, end == TT_BLOCK_END ? "expected %}" : "expected }}");
    return false;
}

/* Appends to the items of a node; its capacity is the next power of two. */
static bool append(parser *p, tnode *to, tnode *item) {
    if (p->status) return false;
    if ((to->n & (to->n - 1)) == 0) { /* 0 or a power of two: full */
        tnode **grown = parse_alloc(p, (to->n ? 2 * to->n : 1) * sizeof *grown);
        if (!grown) return false;
        if (to->n) memcpy(grown, to->items, to->n * sizeof *grown);
        to->items = grown;
    }
    to->items[to->n++] = item;
    return true;
}

static bool enter(parser *p) {
    if (p->depth++ < HN_TPL_MAX_DEPTH) return !p->status;
    if (!p->status) {
        p->status = hn_fail(p->err, HUNCH_REFUSED, "chat template, line %d: nested deeper than %d", p->token.line,
                            HN_TPL_MAX_DEPTH);
    }
    return false;
}

/* ---- expressions, loosest binding first ---- */

static tnode *constant(parser *p, tvalue v) {
    tnode *n = new_node(p, TN_CONST, NULL, NULL);
    if (n) n->value = v;
    return n;
}

static tnode *string_constant(parser *p) {
    tnode *n = constant(p, tv_str(p->token.str.s, p->token.str.n));
    advance(p);
    while (!p->status && p->token.kind == TT_STRING) { /* "a" "b" is "ab" */
        tstr a = n->value.str, b = p->token.str;
        char *both = parse_alloc(p, a.n + b.n + 1);
        if (!both) return NULL;
        if (a.n) memcpy(both, a.s, a.n);
        if (b.n) memcpy(both + a.n, b.s, b.n);
        n->value = tv_str(both, a.n + b.n);
        advance(p);
    }
    return n;
}

/* Parses items up to a closing bracket, each by `item`; the opening one was consumed. */
static tnode *items_until(parser *p, tnode *n, const char *close, bool (*item)(parser *, tnode *)) {
    while (n && !p->status && !at_op(p, close)) {
        if (!item(p, n) || (!at_op(p, close) && !need_op(p, ","))) return NULL;
    }
    return n && need_op(p, close) ? n : NULL;
}

static bool list_item(parser *p, tnode *n) {
    return append(p, n, expression(p));
}

static bool dict_item(parser *p, tnode *n) {
    return append(p, n, expression(p)) && need_op(p, ":") && append(p, n, expression(p));
}

static bool argument(parser *p, tnode *n) {
    if (at_op(p, "*") || at_op(p, "**")) return fail(p, "expected an argument"), false;
    tnode *value = expression(p);
    if (!value || !at_op(p, "=")) return append(p, n, value);
    if (value->kind != TN_NAME) return fail(p, "expected an argument"), false;
    tnode *keyword = new_node(p, TN_KEYWORD, NULL, NULL);
    if (!keyword || !advance(p)) return false;
    keyword->name = value->name;
    keyword->a = expression(p);
    return append(p, n, keyword);
}

static tnode *parenthesis(parser *p) {
    tnode *tuple = new_node(p, TN_TUPLE, NULL, NULL), *first;
    if (!advance(p) || take_op(p, ")")) return tuple;
    first = expression(p);
    if (!at_op(p, ",")) return first && need_op(p, ")") ? first : NULL;
    advance(p);
    return tuple && append(p, tuple, first) ? items_until(p, tuple, ")", list_item) : NULL;
}

static tnode *name_or_word(parser *p) {
    static const struct {
        const char *word;
        tvalue v;
    } words[] = {
        {"true", {.kind = TV_BOOL, .b = true}},   {"True", {.kind = TV_BOOL, .b = true}},   {"none", {.kind = TV_NONE}},
        {"false", {.kind = TV_BOOL, .b = false}}, {"False", {.kind = TV_BOOL, .b = false}}, {"None", {.kind = TV_NONE}},
    };
    tnode *n = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words && !n; i++) {
        if (at_name(p, words[i].word)) n = constant(p, words[i].v);
    }
    if (!n && (n = new_node(p, TN_NAME, NULL, NULL))) n->name = p->token.str;
    return advance(p) ? n : NULL;
}

static tnode *primary(parser *p) {
    ttoken k = p->token;
    if (p->status) return NULL;
    if (k.kind == TT_NAME) return name_or_word(p);
    if (k.kind == TT_STRING) return string_constant(p);
    if (k.kind == TT_INT || k.kind == TT_FLOAT) {
        tnode *n = constant(p, k.kind == TT_INT ? tv_int(k.i) : tv_float(k.f));
        return advance(p) ? n : NULL;
    }
    if (at_op(p, "(")) return parenthesis(p);
    if (at_op(p, "[")) {
        tnode *n = new_node(p, TN_LIST, NULL, NULL);
        return advance(p) ? items_until(p, n, "]", list_item) : NULL;
    }
    if (at_op(p, "{")) {
        tnode *n = new_node(p, TN_DICT, NULL, NULL);
        return advance(p) ? items_until(p, n, "}", dict_item) : NULL;
    }
    return fail(p, "expected a value");
}

/* [key], [start:stop:step], after the bracket. */
static tnode *subscript(parser *p, tnode *of) {
    tnode *part[3] = {NULL, NULL, NULL};
    int colons = 0;
    while (!p->status && !at_op(p, "]")) {
        if (at_op(p, ":")) {
            if (++colons > 2) return fail(p, "expected \"]\"");
            advance(p);
        } else if (part[colons]) {
            return fail(p, "expected \"]\"");
        } else {
            part[colons] = expression(p);
        }
    }
    if (!need_op(p, "]")) return NULL;
    if (colons == 0) return part[0] ? new_node(p, TN_SUBSCRIPT, of, part[0]) : fail(p, "expected a subscript");
    tnode *n = new_node(p, TN_SLICE, of, NULL);
    for (int i = 0; n && i < 3; i++) append(p, n, part[i]);
    return n;
}

static tnode *call(parser *p, tnode *of) {
    tnode *n = new_node(p, TN_CALL, of, NULL);
    return advance(p) ? items_until(p, n, ")", argument) : NULL;
}

static tnode *postfix(parser *p, tnode *n) {
    while (n && !p->status) {
        if (take_op(p, ".")) {
            tnode *key = NULL;
            if (p->token.kind == TT_INT) { /* list.0 */
                key = constant(p, tv_int(p->token.i));
                advance(p);
                n = new_node(p, TN_SUBSCRIPT, n, key);
                continue;
            }
            n = new_node(p, TN_ATTRIBUTE, n, NULL);
            if (!n || !need_name(p, &n->name)) return NULL;
        } else if (take_op(p, "[")) {
            n = subscript(p, n);
        } else if (at_op(p, "(")) {
            n = call(p, n);
        } else {
            return n;
        }
    }
    return !p->status ? n : NULL;
}

static tnode *filter(parser *p, tnode *of) {
    tnode *n = new_node(p, TN_FILTER, of, NULL);
    if (!n || !need_name(p, &n->name)) return NULL;
    if (!p->conditions && !tfilter_known(n->name)) return refuse(p, n->line, "the filter", n->name);
    return take_op(p, "(") ? items_until(p, n, ")", argument) : n;
}

static tnode *test(parser *p, tnode *of) {
    tnode *n = new_node(p, TN_TEST, of, NULL);
    if (!n) return NULL;
    n->op = take_name(p, "not");
    if (!need_name(p, &n->name)) return NULL;
    int arity = ttest_arity(n->name);
    if (!p->conditions && arity < 0) return refuse(p, n->line, "the test", n->name);
    if (take_op(p, "(")) return items_until(p, n, ")", argument);
    if (arity == 1 && !append(p, n, postfix(p, primary(p)))) return NULL; /* "is divisibleby 3" */
    return n;
}

static tnode *filters(parser *p, tnode *n) {
    while (n && !p->status) {
        if (take_op(p, "|"))
            n = filter(p, n);
        else if (take_name(p, "is"))
            n = test(p, n);
        else if (at_op(p, "("))
            n = call(p, n);
        else
            break;
    }
    return n;
}

static tnode *unary(parser *p, bool with_filters) {
    tnode *n = NULL;
    if (!enter(p)) return NULL;
    if (at_op(p, "-") || at_op(p, "+")) {
        int op = p->token.str.s[0];
        n = advance(p) ? new_node(p, TN_UNARY, unary(p, false), NULL) : NULL;
        if (n) n->op = op;
    } else {
        n = postfix(p, primary(p));
    }
    p->depth--;
    return with_filters ? filters(p, n) : n;
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

static tnode *arithmetic(parser *p, size_t level) {
    if (level == sizeof levels / sizeof *levels) return unary(p, true);
    tnode *n = arithmetic(p, level + 1);
    while (n && !p->status) {
        int op = 0;
        for (int i = 0; levels[level].ops[i] && !op; i++) {
            if (take_op(p, levels[level].ops[i])) op = levels[level].codes[i];
        }
        if (!op) break;
        tnode *right = arithmetic(p, level + 1);
        n = right ? new_node(p, TN_BINARY, n, right) : NULL;
        if (n) n->op = op;
    }
    return n;
}

static int take_comparison(parser *p) {
    static const struct {
        const char *op;
        int code;
    } ops[] = {{"==", TOP_EQ}, {"!=", TOP_NE}, {"<=", TOP_LE}, {">=", TOP_GE}, {"<", TOP_LT}, {">", TOP_GT}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (take_op(p, ops[i].op)) return ops[i].code;
    }
    if (take_name(p, "in")) return TOP_IN;
    if (!at_name(p, "not")) return 0;
    /* After a value "not" can only begin "not in". */
    advance(p);
    if (take_name(p, "in")) return TOP_NOT_IN;
    fail(p, "expected \"in\"");
    return 0;
}

static tnode *comparison(parser *p) {
    tnode *left = arithmetic(p, 0), *n = NULL;
    for (int op; left && (op = take_comparison(p)) != 0;) {
        if (!n) n = new_node(p, TN_COMPARE, left, NULL);
        tnode *operand = new_node(p, TN_OPERAND, arithmetic(p, 0), NULL);
        if (!n || !operand) return NULL;
        operand->op = op;
        append(p, n, operand);
    }
    return n ? n : left;
}

static tnode *negation(parser *p) {
    if (!enter(p)) return NULL;
    tnode *n = NULL;
    if (take_name(p, "not")) {
        n = new_node(p, TN_UNARY, negation(p), NULL);
        if (n) n->op = '!';
    } else {
        n = comparison(p);
    }
    p->depth--;
    return n;
}

static tnode *conjunction(parser *p) {
    tnode *n = negation(p);
    while (n && take_name(p, "and")) n = new_node(p, TN_AND, n, negation(p));
    return n;
}

static tnode *disjunction(parser *p) {
    tnode *n = conjunction(p);
    while (n && take_name(p, "or")) n = new_node(p, TN_OR, n, conjunction(p));
    return n;
}

/* a if b else c */
static tnode *expression(parser *p) {
    if (!enter(p)) return NULL;
    tnode *n = disjunction(p);
    while (n && take_name(p, "if")) {
        p->conditions++;
        tnode *condition = disjunction(p), *choice = new_node(p, TN_CHOICE, condition, n);
        if (choice && take_name(p, "else")) choice->c = expression(p);
        p->conditions--;
        n = choice;
    }
    p->depth--;
    return !p->status ? n : NULL;
}

/* One expression, or a tuple without parentheses: several, separated by commas, with an optional trailing comma. */
static tnode *tuple_of(parser *p, tnode *(*one)(parser *)) {
    tnode *first = one(p), *tuple;
    if (!first || !at_op(p, ",")) return first;
    tuple = new_node(p, TN_TUPLE, NULL, NULL);
    if (!tuple || !append(p, tuple, first)) return NULL;
    while (take_op(p, ",")) {
        if (p->token.kind == TT_BLOCK_END || p->token.kind == TT_PRINT_END || at_op(p, "=") || at_op(p, ")") ||
            at_name(p, "in"))
            break;
        if (!append(p, tuple, one(p))) return NULL;
    }
    return !p->status ? tuple : NULL;
}

static tnode *tuple_or_expression(parser *p) {
    return tuple_of(p, expression);
}

/* ---- statements ---- */

static tnode *target(parser *p);

/* a   ns.a   (targets) */
static tnode *one_target(parser *p) {
    tnode *n = NULL;
    if (take_op(p, "(")) {
        if (enter(p)) n = target(p);
        p->depth--;
        return need_op(p, ")") ? n : NULL;
    }
    n = new_node(p, TN_NAME, NULL, NULL);
    if (!n || !need_name(p, &n->name)) return NULL;
    while (take_op(p, ".")) {
        n = new_node(p, TN_ATTRIBUTE, n, NULL);
        if (!n || !need_name(p, &n->name)) return NULL;
    }
    return n;
}

static tnode *target(parser *p) {
    return tuple_of(p, one_target);
}

static bool end_of(parser *p, const char *name) {
    return take_name(p, name) ? need_end(p, TT_BLOCK_END) : (fail(p, "expected the end of the block"), false);
}

static tnode *if_statement(parser *p) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    p->conditions++;
    tnode *n = new_node(p, TN_IF, NULL, NULL);
    if (n && (n->a = tuple_or_expression(p)) && need_end(p, TT_BLOCK_END)) n->b = body(p, ends);
    if (take_name(p, "elif")) {
        if (n && enter(p)) n->c = if_statement(p); /* consumes the endif */
        p->depth--;
    } else if (take_name(p, "else")) {
        static const char *const last[] = {"endif", NULL};
        if (n && need_end(p, TT_BLOCK_END)) n->c = body(p, last);
        end_of(p, "endif");
    } else {
        end_of(p, "endif");
    }
    p->conditions--;
    return n;
}

static tnode *for_statement(parser *p) {
    static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    tnode *n = new_node(p, TN_FOR, NULL, NULL), *otherwise = NULL;
    if (!n || !(n->a = target(p))) return NULL;
    if (!take_name(p, "in")) return fail(p, "expected \"in\"");
    /* The iterable is not an inline if: an "if" after it is the loop's condition. */
    n->b = tuple_of(p, disjunction);
    if (take_name(p, "if")) n->c = expression(p);
    if (at_name(p, "recursive")) return refuse(p, n->line, "the for loop that is", p->token.str);
    if (!need_end(p, TT_BLOCK_END)) return NULL;
    p->loops++;
    tnode *inner = body(p, ends);
    p->loops--;
    if (take_name(p, "else") && need_end(p, TT_BLOCK_END)) otherwise = body(p, last);
    return end_of(p, "endfor") && append(p, n, inner) && append(p, n, otherwise) ? n : NULL;
}

static tnode *set_statement(parser *p) {
    static const char *const ends[] = {"endset", NULL};
    tnode *n = new_node(p, TN_SET, target(p), NULL);
    if (!n) return NULL;
    if (take_op(p, "=")) {
        n->b = tuple_or_expression(p);
        return need_end(p, TT_BLOCK_END) ? n : NULL;
    }
    n->kind = TN_SET_BLOCK;
    if (at_op(p, "|")) n->c = filters(p, new_node(p, TN_CAPTURED, NULL, NULL));
    if (!need_end(p, TT_BLOCK_END)) return NULL;
    n->b = body(p, ends);
    return end_of(p, "endset") ? n : NULL;
}

static bool parameter(parser *p, tnode *macro) {
    tnode *n = new_node(p, TN_NAME, NULL, NULL);
    if (!n || !need_name(p, &n->name)) return false;
    if (take_op(p, "=")) n->a = expression(p);
    return append(p, macro, n);
}

static tnode *macro_statement(parser *p) {
    static const char *const ends[] = {"endmacro", NULL};
    tnode *n = new_node(p, TN_MACRO, NULL, NULL);
    int loops = p->loops;
    p->macros++;
    if (!n || !need_name(p, &n->name) || !need_op(p, "(") || !items_until(p, n, ")", parameter) ||
        !need_end(p, TT_BLOCK_END))
        return NULL;
    p->loops = 0;
    n->a = body(p, ends);
    p->loops = loops;
    return end_of(p, "endmacro") ? n : NULL;
}

static tnode *jump_statement(parser *p, tnode_kind kind) {
    tnode *n = new_node(p, kind, NULL, NULL);
    if (!p->loops) return fail(p, "break and continue are only allowed inside a loop");
    return n && need_end(p, TT_BLOCK_END) ? n : NULL;
}

/* {% generation %}: Hugging Face's mark of the assistant's text, which is output as usual. */
static tnode *generation_statement(parser *p) {
    static const char *const ends[] = {"endgeneration", NULL};
    if (!need_end(p, TT_BLOCK_END)) return NULL;
    tnode *n = body(p, ends);
    return end_of(p, "endgeneration") ? n : NULL;
}

static tnode *statement(parser *p) {
    if (take_name(p, "if")) return if_statement(p);
    if (take_name(p, "for")) return for_statement(p);
    if (take_name(p, "set")) return set_statement(p);
    if (take_name(p, "macro")) return macro_statement(p);
    if (take_name(p, "break")) return jump_statement(p, TN_BREAK);
    if (take_name(p, "continue")) return jump_statement(p, TN_CONTINUE);
    if (take_name(p, "generation")) return generation_statement(p);
    if (p->token.kind == TT_NAME) return refuse(p, p->token.line, "the statement", p->token.str);
    return fail(p, "expected a statement");
}

static bool at_end(const parser *p, const char *const *ends) {
    for (; ends && *ends; ends++) {
        if (at_name(p, *ends)) return true;
    }
    return false;
}

/* Text and tags up to one of the ends, whose {% is consumed; without ends up to the end of the template. */
static tnode *body(parser *p, const char *const *ends) {
    tnode *n = new_node(p, TN_BODY, NULL, NULL);
    int macros = p->macros;
    if (!enter(p)) n = NULL;
    while (n && !p->status) {
        ttoken k = p->token;
        if (k.kind == TT_END && !ends) break;
        if (k.kind == TT_END) return fail(p, "expected the end of a block");
        advance(p);
        tnode *item = NULL;
        if (k.kind == TT_TEXT) {
            if (k.str.n == 0) continue;
            item = new_node(p, TN_TEXT, NULL, NULL);
            if (item) item->value = tv_str(k.str.s, k.str.n);
        } else if (k.kind == TT_PRINT_BEGIN) {
            item = new_node(p, TN_PRINT, tuple_or_expression(p), NULL);
            need_end(p, TT_PRINT_END);
        } else {
            if (at_end(p, ends)) break;
            item = statement(p);
        }
        append(p, n, item);
    }
    p->depth--;
    if (n) n->op = p->macros > macros;
    return !p->status ? n : NULL;
}

hunch_status tparse(hn_template *t, hunch_error *err) {
    parser p = {.t = t, .err = err};
    tlex_init(&p.lex, t, err);
    if (advance(&p)) t->body = body(&p, NULL);
    return p.status;
}
