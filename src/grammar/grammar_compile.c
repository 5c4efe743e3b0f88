/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_compile.c - expressions to a program: instructions are written from the end of an expression to its beginning, so that each knows
 * what follows it. What several expressions share becomes a procedure of its own, and so does a counted repeat that is long: a grammar's
 * program is about as long as its text. */
#include <string.h>

#include "base/mem.h"
#include "grammar/grammar_private.h"

typedef struct compiler {
    hn_builder *b;
    hn_grammar *g;
    int32_t *proc_of_expr; /* [n_exprs] of rules and shared expressions; -1: none yet */
    int32_t *proc_of_rule; /* [n_rules] */
    hn_expr *todo;         /* [n_procs] the body of each; */
    bool *todo_json;       /* whether it is JSON */
    size_t cap_todo, cap_json;
    int32_t byte_set[256]; /* the set of a single byte and one; 0: not known yet */
    bool json;
} compiler;

enum { SHARED_WEIGHT = 12 /* what is shorter is written again */ };

static int32_t fail_memory(compiler *c) {
    return hn_builder_no_memory(c->b);
}

static int32_t put(compiler *c, hn_op op, int32_t x, int32_t y) {
    hn_grammar *g = c->g;
    if (c->b->failed) return -1;
    if (g->n_code >= HN_GRAMMAR_MAX_CODE)
        return hn_builder_fail(c->b, HUNCH_USAGE, "a grammar that needs more than %d instructions", HN_GRAMMAR_MAX_CODE);
    if (!hn_grow((void **)&g->code, &g->cap_code, g->n_code + 1, sizeof *g->code)) return fail_memory(c);
    g->code[g->n_code] = (hn_instr){.op = (uint8_t)op, .json = c->json, .x = x, .y = y};
    return (int32_t)g->n_code++;
}

/* Room for the targets of a split. */
static int32_t put_split(compiler *c, size_t n) {
    hn_grammar *g = c->g;
    if (c->b->failed) return -1;
    if (g->n_targets + n > HN_GRAMMAR_MAX_CODE)
        return hn_builder_fail(c->b, HUNCH_USAGE, "a grammar that needs more than %d branches", HN_GRAMMAR_MAX_CODE);
    if (!hn_grow((void **)&g->targets, &g->cap_targets, g->n_targets + n, sizeof *g->targets)) return fail_memory(c);
    for (size_t i = 0; i < n; i++) g->targets[g->n_targets + i] = -1;
    g->n_targets += n;
    return put(c, HN_OP_SPLIT, (int32_t)(g->n_targets - n), (int32_t)n);
}

static void set_target(compiler *c, int32_t split, size_t i, int32_t pc) {
    if (!c->b->failed) c->g->targets[c->g->code[split].x + (int32_t)i] = pc;
}

static int32_t new_proc(compiler *c, hn_proc p, hn_expr body) {
    hn_grammar *g = c->g;
    if (c->b->failed) return -1;
    const size_t n = g->n_procs + 1;
    if (!hn_grow((void **)&g->procs, &g->cap_procs, n, sizeof *g->procs) || !hn_grow((void **)&c->todo, &c->cap_todo, n, sizeof *c->todo) ||
        !hn_grow((void **)&c->todo_json, &c->cap_json, n, sizeof *c->todo_json))
        return fail_memory(c);
    c->todo[g->n_procs] = body;
    c->todo_json[g->n_procs] = c->json;
    g->procs[g->n_procs] = p;
    return (int32_t)g->n_procs++;
}

/* ---- one expression ---- */

static int32_t emit(compiler *c, hn_expr e, int32_t next);

static int32_t emit_bytes(compiler *c, const hn_expr_node *e, int32_t next) {
    for (int32_t i = e->b; i-- > 0 && !c->b->failed;) {
        const unsigned char byte = (unsigned char)c->b->bytes[e->a + i];
        if (!c->byte_set[byte]) {
            hn_byte_set s = {{0}};
            hn_byte_set_add(&s, byte, byte);
            const hn_expr set = hn_expr_set(c->b, &s);
            if (set >= 0) c->byte_set[byte] = c->b->exprs[set].a + 1;
        }
        next = put(c, HN_OP_SET, c->byte_set[byte] - 1, next);
    }
    return next;
}

static int32_t emit_alt(compiler *c, const hn_expr_node e, int32_t next) {
    const int32_t split = put_split(c, (size_t)e.b);
    for (int32_t i = 0; i < e.b && !c->b->failed; i++) set_target(c, split, (size_t)i, emit(c, c->b->parts[e.a + i], next));
    return split;
}

/* Copies of the body: the least number, then as many that may be left out, or a loop. */
static int32_t emit_unrolled(compiler *c, const hn_expr_node e, int32_t next) {
    int32_t at = next;
    if (e.c < 0) {
        at = put_split(c, 2);
        set_target(c, at, 0, emit(c, e.a, at));
        set_target(c, at, 1, next);
    }
    for (int32_t i = e.c; i > e.b && !c->b->failed; i--) {
        const int32_t body = emit(c, e.a, at);
        at = put_split(c, 2);
        set_target(c, at, 0, body);
        set_target(c, at, 1, next);
    }
    for (int32_t i = 0; i < e.b && !c->b->failed; i++) at = emit(c, e.a, at);
    return at;
}

static int32_t emit_repeat(compiler *c, const hn_expr_node e, int32_t next) {
    if (hn_repeat_weight(e.b, e.c, c->b->exprs[e.a].weight) >= 0) return emit_unrolled(c, e, next);
    if (e.c < 0 && e.b == 1) { /* once or more: one copy that is entered at its body */
        const int32_t again = put_split(c, 2), body = emit(c, e.a, again);
        set_target(c, again, 0, body);
        set_target(c, again, 1, next);
        return body;
    }
    const int32_t loop = new_proc(c, (hn_proc){.start = -1, .min = e.b, .max = e.c, .loop = true, .rule = -1}, e.a);
    return put(c, HN_OP_CALL, loop, next);
}

static int32_t emit_call(compiler *c, int32_t *proc, hn_expr body, int32_t rule, int32_t next) {
    if (*proc < 0) *proc = new_proc(c, (hn_proc){.start = -1, .rule = rule}, body);
    return put(c, HN_OP_CALL, *proc, next);
}

static int32_t emit_graph(compiler *c, const hn_expr_node e, int32_t next) {
    hn_builder *b = c->b;
    int32_t *degree = hn_zalloc((size_t)e.c, sizeof *degree), *at = hn_alloc((size_t)e.c * sizeof *at);
    if (!degree || !at) fail_memory(c);
    for (int32_t i = 0; i < e.b && !b->failed; i++) degree[b->edges[e.a + i].from]++;
    for (int32_t i = 0; i < e.c && !b->failed; i++) {
        const bool last = i == e.c - 1;
        at[i] = put_split(c, (size_t)degree[i] + last);
        if (last) set_target(c, at[i], (size_t)degree[i], next);
    }
    for (int32_t i = 0; i < e.b && !b->failed; i++) {
        const hn_graph_edge edge = b->edges[e.a + i];
        set_target(c, at[edge.from], (size_t)--degree[edge.from], emit(c, edge.label, at[edge.to]));
    }
    const int32_t start = b->failed ? -1 : at[0];
    hn_free(degree);
    hn_free(at);
    return start;
}

static int32_t emit_json(compiler *c, hn_expr body, int32_t next) {
    const bool before = c->json;
    c->json = c->g->has_json = true;
    const int32_t at = emit(c, body, next);
    c->json = before;
    return at;
}

static int32_t emit_unique(compiler *c, int32_t next) {
    hn_byte_set s = {{0}};
    hn_byte_set_add(&s, '[', '[');
    const hn_expr set = hn_expr_set(c->b, &s);
    const int32_t at = set < 0 ? -1 : put(c, HN_OP_SET, c->b->exprs[set].a, next);
    if (at >= 0) c->g->code[at].unique = true;
    return at;
}

static int32_t emit(compiler *c, hn_expr i, int32_t next) {
    if (c->b->failed) return -1;
    const hn_expr_node e = c->b->exprs[i]; /* a copy: sets of single bytes are added */
    if (e.shared && e.weight > SHARED_WEIGHT && e.kind != HN_EXPR_RULE) return emit_call(c, &c->proc_of_expr[i], i, -1, next);
    switch ((hn_expr_kind)e.kind) {
    case HN_EXPR_NOTHING: return put(c, HN_OP_DEAD, 0, 0);
    case HN_EXPR_EMPTY: return next;
    case HN_EXPR_BYTES: return emit_bytes(c, &e, next);
    case HN_EXPR_SET: return put(c, HN_OP_SET, e.a, next);
    case HN_EXPR_TOKEN: return put(c, HN_OP_TOKEN, e.a, next);
    case HN_EXPR_CONTROLS: return put(c, HN_OP_CONTROLS, e.a, next);
    case HN_EXPR_IF: return put(c, HN_OP_IF, e.b ? e.a : ~e.a, next);
    case HN_EXPR_SEQ:
        for (int32_t k = e.b; k-- > 0 && !c->b->failed;) next = emit(c, c->b->parts[e.a + k], next);
        return next;
    case HN_EXPR_ALT: return emit_alt(c, e, next);
    case HN_EXPR_REPEAT: return emit_repeat(c, e, next);
    case HN_EXPR_RULE:
        if (c->b->rules[e.a].body < 0) return hn_builder_fail(c->b, HUNCH_USAGE, "rule %s is used but not defined", c->b->rules[e.a].name);
        return emit_call(c, &c->proc_of_rule[e.a], c->b->rules[e.a].body, e.a, next);
    case HN_EXPR_GRAPH: return emit_graph(c, e, next);
    case HN_EXPR_UNIQUE: return emit_unique(c, next);
    case HN_EXPR_JSON: return emit_json(c, e.a, next);
    }
    return -1;
}

/* ---- the whole ---- */

static bool compiler_init(compiler *c, hn_builder *b, hn_grammar *g) {
    *c = (compiler){.b = b, .g = g};
    c->proc_of_expr = hn_alloc(b->n_exprs * sizeof *c->proc_of_expr);
    c->proc_of_rule = hn_alloc(b->n_rules * sizeof *c->proc_of_rule);
    if (!c->proc_of_expr || !c->proc_of_rule) return false;
    memset(c->proc_of_expr, -1, b->n_exprs * sizeof *c->proc_of_expr);
    memset(c->proc_of_rule, -1, b->n_rules * sizeof *c->proc_of_rule);
    return true;
}

/* A shared expression's procedure is its own parts, not a call of itself. */
static int32_t emit_body(compiler *c, hn_expr body, int32_t end) {
    const bool own = c->b->exprs[body].kind != HN_EXPR_RULE && c->b->exprs[body].shared;
    if (!own) return emit(c, body, end);
    c->b->exprs[body].shared = false;
    const int32_t at = emit(c, body, end);
    c->b->exprs[body].shared = true;
    return at;
}

static void compile(compiler *c, hn_expr root) {
    new_proc(c, (hn_proc){.start = -1, .rule = -1}, root);
    for (size_t i = 0; i < c->g->n_procs && !c->b->failed; i++) {
        c->json = c->todo_json[i];
        const int32_t end = put(c, HN_OP_END, 0, 0), start = c->b->failed ? -1 : emit_body(c, c->todo[i], end);
        if (!c->b->failed) c->g->procs[i].start = start;
    }
}

/* What the program keeps of the builder. */
static void take_tables(hn_grammar *g, hn_builder *b) {
    g->sets = b->sets;
    g->n_sets = b->n_sets;
    g->names = b->names;
    g->n_names = b->n_names;
    if (b->n_ignored) b->ignored[b->n_ignored - 1] = '\0'; /* the last comma */
    g->ignored = b->ignored;
    g->looks_further = b->looks_further;
    b->ignored = NULL;
    b->sets = NULL;
    b->names = NULL;
    b->n_sets = b->n_names = 0;
}

static hunch_status check(const hn_grammar *g, const hn_builder *b, hunch_error *err) {
    hn_grammar_facts f = {0};
    hunch_status s = hn_grammar_facts_find(&f, g, NULL, true, err);
    if (!s) s = hn_grammar_check_left(g, &f, b->rules, err);
    if (!s && !f.live[g->procs[0].start]) {
        const int32_t rule = hn_grammar_dead_rule(g, &f);
        s = rule < 0 ? hn_fail(err, HUNCH_USAGE, "no text matches the grammar")
                     : hn_fail(err, HUNCH_USAGE, "no text matches the grammar, as none matches %s", b->rules[rule].name);
    }
    hn_grammar_facts_fini(&f);
    return s;
}

const char *hn_grammar_ignored(const hn_grammar *g) {
    return g->ignored;
}

void hn_grammar_close(hn_grammar **out) {
    hn_grammar *g = *out;
    if (!g) return;
    for (size_t i = 0; i < g->n_names; i++) hn_free(g->names[i]);
    hn_free(g->code);
    hn_free(g->targets);
    hn_free(g->procs);
    hn_free(g->sets);
    hn_free(g->names);
    hn_free(g->ignored);
    hn_free(g);
    *out = NULL;
}

hunch_status hn_grammar_finish(hn_grammar **out, hn_builder **builder, hn_expr root, hunch_error *err) {
    hn_builder *b = *builder;
    *out = NULL;
    hn_grammar *g = hn_zalloc(1, sizeof *g);
    compiler c = {0};
    if (!g) hn_builder_no_memory(b);
    if (!b->failed && (root < 0 || (size_t)root >= b->n_exprs)) hn_builder_fail(b, HUNCH_USAGE, "a grammar's root is no expression");
    if (!b->failed && !compiler_init(&c, b, g)) hn_builder_no_memory(b);
    if (!b->failed) compile(&c, root);
    hn_free(c.proc_of_expr);
    hn_free(c.proc_of_rule);
    hn_free(c.todo);
    hn_free(c.todo_json);
    hunch_status s = b->failed ? hn_fail(err, b->failed, "%s", b->why.message) : HUNCH_OK;
    if (!s) {
        take_tables(g, b);
        s = check(g, b, err);
    }
    if (s)
        hn_grammar_close(&g);
    else
        *out = g;
    hn_builder_close(builder);
    return s;
}
