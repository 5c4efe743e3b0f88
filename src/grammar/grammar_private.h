/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_private.h - what the files of a grammar share: the builder's expressions (grammar_build.c), and the program that they become
 * (grammar_compile.c), which automaton.h runs.
 *
 * A program is a list of instructions for many threads at once, as of a regular expression's machine. A rule's body ends in HN_OP_END,
 * which returns to where the rule was called; a loop is a body that is called again and again, with a counter that lives on the stack and
 * not in copies of the body.
 */
#ifndef HN_GRAMMAR_PRIVATE_H
#define HN_GRAMMAR_PRIVATE_H
#include "grammar/grammar_build.h"

/* Bounds, so that a hostile grammar ends in an error. */
enum {
    HN_GRAMMAR_MAX_SOURCE = 64 << 20, /* bytes of a source */
    HN_GRAMMAR_MAX_EXPRS = 8 << 20,
    HN_GRAMMAR_MAX_CODE = 8 << 20, /* instructions */
    HN_GRAMMAR_MAX_DEPTH = 200,    /* of expressions in one rule */
    HN_GRAMMAR_MAX_REPEAT = 1 << 30,
    HN_GRAMMAR_UNROLLED = 64 /* instructions that a counted repeat may have without a counter */
};

typedef struct hn_byte_set {
    uint64_t bits[4];
} hn_byte_set;

static inline bool hn_byte_set_has(const hn_byte_set *s, unsigned byte) {
    return s->bits[byte >> 6] >> (byte & 63) & 1;
}

static inline void hn_byte_set_add(hn_byte_set *s, unsigned from, unsigned to) {
    for (unsigned b = from; b <= to; b++) s->bits[b >> 6] |= (uint64_t)1 << (b & 63);
}

/* ---- expressions ---- */

typedef enum hn_expr_kind {
    HN_EXPR_NOTHING,  /* matches no text */
    HN_EXPR_EMPTY,    /* matches the empty text */
    HN_EXPR_BYTES,    /* a: offset, b: length */
    HN_EXPR_SET,      /* a: byte set */
    HN_EXPR_TOKEN,    /* a: name of a control token */
    HN_EXPR_CONTROLS, /* any control token that ends nothing, but not the one of name a */
    HN_EXPR_IF,       /* empty, if name a is a control token (b) or is not (!b); else nothing */
    HN_EXPR_SEQ,      /* a: first part, b: parts */
    HN_EXPR_ALT,
    HN_EXPR_REPEAT, /* a: body, b: least, c: most or -1 */
    HN_EXPR_RULE,   /* a: rule */
    HN_EXPR_GRAPH,  /* a: first of its edges, b: their number, c: nodes */
    HN_EXPR_UNIQUE, /* "[" of an array that has no item twice */
    HN_EXPR_JSON    /* a: body, which is JSON: no object in it has a key twice */
} hn_expr_kind;

typedef struct hn_expr_node {
    uint8_t kind;
    uint8_t depth;
    bool used, shared; /* a part of an expression, and of more than one */
    int32_t a, b, c;
    int32_t weight; /* instructions, about; saturates */
} hn_expr_node;

typedef struct hn_rule_def {
    char *name;
    hn_expr body; /* -1: not set yet */
} hn_rule_def;

/* A graph's edge: from node 0, the first, along labels to the last. */
typedef struct hn_graph_edge {
    int32_t from, to;
    hn_expr label;
} hn_graph_edge;

enum { HN_PROPERTIES = 6 };

struct hn_builder {
    hn_expr_node *exprs;
    size_t n_exprs, cap_exprs;
    hn_expr *parts;
    size_t n_parts, cap_parts;
    char *bytes;
    size_t n_bytes, cap_bytes;
    hn_byte_set *sets;
    size_t n_sets, cap_sets;
    int32_t *set_index; /* a hash table of sets, their numbers and one */
    size_t cap_index;
    hn_rule_def *rules;
    size_t n_rules, cap_rules;
    char **names; /* of control tokens */
    size_t n_names, cap_names;
    hn_graph_edge *edges;
    size_t n_edges, cap_edges;
    hn_expr json_value, json_string; /* -1: not made yet */
    const char *never;               /* characters that plain strings do not have */
    bool looks_further; /* a program's */
    struct hn_ranges *property[HN_PROPERTIES]; /* of characters, found once (regex_sets.c); NULL: not yet */
    bool loose;    /* what of a schema cannot be honoured is noted, not refused */
    char *ignored; /* what was noted, for people; NULL: nothing */
    size_t n_ignored, cap_ignored;
    bool ignored_full; /* it ends with "...", of what is more */
    hunch_status failed;
    hunch_error why;
};

/* Notes that what stands there is ignored; false: no memory. */
bool hn_builder_note(hn_builder *b, const char *where, const char *pointer);
/* A leaf. */
hn_expr hn_expr_put(hn_builder *b, hn_expr_kind kind, int32_t x, int32_t y, int32_t weight);
hn_expr hn_expr_nothing(hn_builder *b);
hn_expr hn_expr_set(hn_builder *b, const hn_byte_set *set);
int32_t hn_builder_name(hn_builder *b, const char *name); /* of a control token; -1: failed */
/* Texts along the edges from node 0 to node n_nodes - 1. */
hn_expr hn_expr_graph(hn_builder *b, int n_nodes, const hn_graph_edge *edges, size_t n);
hn_expr hn_expr_json(hn_builder *b, hn_expr body);
/* "[" of an array whose items are no arrays or objects, equal ones equal texts: none is there twice. */
hn_expr hn_expr_unique(hn_builder *b);
hn_expr hn_expr_if(hn_builder *b, int32_t name, bool control, hn_expr e); /* if the name is a control token, or if it is none */

/* Instructions of a repeat that is written as copies of its body; -1: it becomes a loop. */
static inline int32_t hn_repeat_weight(int32_t min, int32_t max, int32_t body) {
    const int64_t copies = max < 0 ? (int64_t)min + 1 : max, weight = copies * (body + 1);
    return copies == 1 || weight <= HN_GRAMMAR_UNROLLED ? (int32_t)weight : -1;
}

/* ---- programs ---- */

typedef enum hn_op {
    HN_OP_DEAD,
    HN_OP_SET,      /* x: byte set, y: next */
    HN_OP_TOKEN,    /* x: name, y: next */
    HN_OP_CONTROLS, /* x: name that is none of them, y: next */
    HN_OP_IF,       /* x: name, negative: ~name must not be a control token; y: next */
    HN_OP_SPLIT,    /* x: first of its targets, y: their number */
    HN_OP_JUMP,     /* y: next */
    HN_OP_CALL,     /* x: procedure, y: where it returns to */
    HN_OP_END
} hn_op;

typedef struct hn_instr {
    uint8_t op;
    bool json;   /* the text that it begins is JSON */
    bool unique; /* it is the "[" of a HN_EXPR_UNIQUE */
    int32_t x, y;
} hn_instr;

/* A rule, or the body of a loop. */
typedef struct hn_proc {
    int32_t start;
    int32_t min, max; /* of a loop, max -1: no limit */
    bool loop;
    int32_t rule; /* for messages; -1: none */
} hn_proc;

struct hn_grammar {
    hn_instr *code;
    size_t n_code, cap_code;
    int32_t *targets;
    size_t n_targets, cap_targets;
    hn_proc *procs; /* the first is the root */
    size_t n_procs, cap_procs;
    hn_byte_set *sets;
    size_t n_sets;
    char **names;
    size_t n_names;
    bool has_json;
    bool looks_further; /* some array has no item twice, or some object's keys may be few: matcher_joint.c */
    char *ignored;   /* parts of schemas; NULL: none */
};

/* What follows from a program, with every name's being a control token known: [n_code] and [n_procs]. */
typedef struct hn_grammar_facts {
    uint8_t *live;     /* [n_code] an end can be reached from here */
    uint8_t *nullable; /* [n_code] by the empty text */
} hn_grammar_facts;

/* is_control: [n_names], NULL: each may be one or not. */
hunch_status hn_grammar_facts_find(hn_grammar_facts *f, const hn_grammar *g, const uint8_t *is_control, bool any_control, hunch_error *err);
void hn_grammar_facts_fini(hn_grammar_facts *f);
/* Whether a call may leave no text; the body of a loop that need not run is skipped. */
static inline bool hn_proc_is_nullable(const hn_grammar *g, const hn_grammar_facts *f, int32_t proc) {
    const hn_proc *p = &g->procs[proc];
    return f->nullable[p->start] || (p->loop && p->min == 0);
}

/* The rule because of which no text matches, of a program that has none; -1: it has no rules. */
int32_t hn_grammar_dead_rule(const hn_grammar *g, const hn_grammar_facts *f);
/* HUNCH_USAGE if a rule calls itself before any text. (grammar_facts.c) */
hunch_status hn_grammar_check_left(const hn_grammar *g, const hn_grammar_facts *f, const hn_rule_def *rules, hunch_error *err);
#endif
