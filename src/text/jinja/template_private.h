/* SPDX-License-Identifier: Apache-2.0 */
/* template_private.h - declarations shared by the files of the template engine.
 *
 *   template.c              the public calls
 *   template_arena.c        memory that is freed as a whole, and growing strings in it
 *   template_value.c        values as Python's: truth, equality, order
 *   template_strings.c      Python's str on UTF-8; template_split.c: its split; template_format.c: "%d" % values
 *   template_print.c, template_json.c                     str() of values; JSON
 *   template_lex.c          text → tokens, white space control
 *   template_parse.h        tokens → tree: expressions and statements, three files
 *   template_run.h          running the tree: scopes, statements, loops, expressions, four files
 *   template_operators.c    + - * / %, attributes, subscripts, slices
 *   template_filters.c, template_lists.c, template_is.c   filters of texts and numbers, of lists; tests
 *   template_methods.c      methods, global functions
 *
 * An error is a value too (TV_ERROR), which callers return upwards; the message is in the run's hunch_error.
 */
#ifndef HN_TEMPLATE_PRIVATE_H
#define HN_TEMPLATE_PRIVATE_H
#include "text/jinja/template.h"

/* Limits: a template or a request must not exhaust the process. */
enum {
    HN_TPL_MAX_TEXT = 4 << 20,     /* bytes of a template */
    HN_TPL_MAX_DEPTH = 100,        /* nesting of a template, depth of values */
    HN_TPL_MAX_CALLS = 400,        /* nodes under evaluation at once: nesting, long sums, macros that call macros */
    HN_TPL_MAX_RANGE = 100000,     /* elements of range() */
    HN_TPL_MAX_STEPS = 20 << 20,   /* nodes evaluated, elements read */
    HN_TPL_STEP_BYTES = 16,        /* of a string that are read in a step */
    HN_TPL_STEP_ITEMS = 16,        /* of a list that a filter or a method reads in a step */
    HN_TPL_MAX_OUTPUT = 32 << 20,  /* bytes of any one string */
    HN_TPL_MAX_MEMORY = 256 << 20  /* bytes of all values of one rendering */
};

/* ---- memory ---- */

/* An arena of a rendering may keep a mark for each byte of its strings: whether the template wrote it. All strings are made by tbuf_put,
 * which takes the marks from where it copies: what lies in the template, or in a string that counts as its own, is marked, and so are
 * copies of marked bytes; everything else, such as what the caller's variables have, is not. */
typedef struct ta_marks {
    const struct hn_template *of;
    const struct tstr *own; /* [n_own] strings of the caller's variables that count as the template's */
    size_t n_own;
} ta_marks;

typedef struct ta_arena {
    struct ta_block *blocks;
    struct ta_block **by_address; /* [n_blocks] */
    size_t n_blocks, cap;
    const ta_marks *marks; /* NULL: none are kept */
    size_t used;
    bool exhausted; /* the last failure was the limit, not the system */
} ta_arena;

void *ta_alloc(ta_arena *a, size_t size); /* 16-byte aligned; NULL: no memory, or more than HN_TPL_MAX_MEMORY */
void ta_fini(ta_arena *a);

typedef struct tstr { /* bytes of valid UTF-8, owned by an arena, the template or the caller's variables */
    const char *s;
    size_t n;
} tstr;

typedef struct tbuf { /* a growing string; failed stays set */
    ta_arena *arena;
    char *s;
    uint8_t *mark; /* of each byte: 1, the template wrote it; NULL: marks are not kept */
    size_t n, cap;
    bool failed, too_long;
} tbuf;
void tbuf_put(tbuf *b, const char *s, size_t n);
void tbuf_puts(tbuf *b, const char *s);

/* ---- values ---- */

typedef enum tkind {
    TV_ERROR,     /* the message is in the run */
    TV_UNDEFINED, /* str: the name that was looked up */
    TV_NONE, TV_BOOL, TV_INT, TV_FLOAT,
    TV_BIG,       /* str: an int beyond 64 bits, in digits: it is compared and written, and no tv_is_number */
    TV_STRING,
    TV_LIST, TV_TUPLE,
    TV_GENERATOR, /* a list that can only be iterated: the result of map, select and similar filters */
    TV_DICT,
    TV_NAMESPACE, /* a dict that `set ns.name` changes */
    TV_LOOP, TV_MACRO, TV_FUNCTION, TV_METHOD
} tkind;

typedef struct tvalue tvalue;
typedef struct tlist tlist;
typedef struct tdict tdict;

struct tvalue {
    tkind kind;
    union {
        bool b;
        int64_t i;
        double f;
        tstr str;
        const tlist *list;
        tdict *dict;
        struct tloop *loop;
        const struct tmacro *macro;
        int function;             /* enum tfunction */
        const struct tmethod *method;
    };
};

struct tlist {
    tvalue *items;
    size_t n, cap; /* cap: room that append made; 0: none */
};

typedef struct tentry {
    tvalue key, value;
} tentry;

struct tdict {
    tentry *entries; /* in the order they came */
    size_t n, cap;
};

typedef struct tmethod {
    tvalue self;
    tstr name;
} tmethod;

typedef struct trun trun;

tvalue tv_none(void);
tvalue tv_bool(bool b);
tvalue tv_int(int64_t i);
tvalue tv_float(double f);
tvalue tv_str(const char *s, size_t n);
tvalue tv_text(const char *s); /* of a literal */
tvalue tv_undefined(const char *name, size_t n);
tvalue tv_error(void);
tvalue tv_fail_undefined(trun *r, tvalue v); /* the error of a name that nothing set */
/* A list of n items to be filled (*items), or TV_ERROR. kind: TV_LIST, TV_TUPLE or TV_GENERATOR. */
tvalue tv_list(trun *r, tkind kind, size_t n, tvalue **items);
tvalue tv_dict(trun *r, size_t n);
tvalue tv_namespace(trun *r);
bool tv_dict_put(trun *r, tdict *d, tvalue key, tvalue value); /* replaces; false: error */
const tvalue *tv_dict_get(trun *r, const tdict *d, tvalue key); /* NULL: absent */
bool tv_need_hash(trun *r, tvalue key); /* false, and an error: a list or a dict, no key of a dict */
const tvalue *tv_dict_find(trun *r, const tdict *d, tstr key);
tvalue tv_from_json(trun *r, const json_t *j, int depth);
/* What a buffer holds, or TV_ERROR if it failed. */
tvalue tv_buffer(trun *r, const tbuf *b);

static inline bool tv_is_list(tvalue v) { return v.kind == TV_LIST || v.kind == TV_TUPLE || v.kind == TV_GENERATOR; }
static inline bool tv_is_number(tvalue v) { return v.kind == TV_INT || v.kind == TV_FLOAT || v.kind == TV_BOOL; }
static inline double tv_number(tvalue v) { return v.kind == TV_FLOAT ? v.f : v.kind == TV_INT ? (double)v.i : v.b; }
static inline int64_t tv_integer(tvalue v) { return v.kind == TV_INT ? v.i : v.b; } /* of an int or a bool */

const char *tv_type_name(tvalue v); /* as Python calls it */
bool tv_truth(tvalue v);
bool tv_equal(trun *r, tvalue a, tvalue b, int depth);
tvalue tv_negative(trun *r, tvalue big); /* of a TV_BIG */
tvalue tv_whole(const char *digits, size_t n); /* an int of any size, as JSON has it */
/* -1, 0, 1 in *order; false with an error set if Python would not compare them. */
bool tv_compare(trun *r, tvalue a, tvalue b, int *order, int depth);
bool tv_contains(trun *r, tvalue container, tvalue item, bool *found);
void tv_print(trun *r, tbuf *b, tvalue v, int depth); /* str(v) */
tvalue tv_to_string(trun *r, tvalue v);               /* str(v) as a value */
typedef struct tjson_style {
    bool pretty, sort, ascii; /* pretty: a line for each element */
    tstr indent;              /* of a line, for each level */
    tstr item, pair;          /* separators */
} tjson_style;
bool tv_to_json(trun *r, tbuf *b, tvalue v, const tjson_style *style, int depth);
/* The items of Python's iteration as a list; TV_ERROR if the value is not iterable. */
tvalue tv_iterate(trun *r, tvalue v);

/* ---- strings, counted in code points ---- */

size_t ts_length(tstr s);
size_t ts_offset(tstr s, size_t index); /* byte offset of a code point */
bool ts_equal(tstr a, const char *literal);
bool ts_same(tstr a, tstr b);
const char *ts_find(tstr hay, tstr needle);
bool ts_is_space(uint32_t cp);
tstr ts_strip_space(tstr s, bool left, bool right);
tstr ts_strip(trun *r, tstr s, const tstr *chars, bool left, bool right); /* chars NULL: white space */
/* The pieces of s between separators, or, without one (NULL), between runs of white space: at most `most` cuts from the
 * left or from the right (< 0: all), as Python's split and rsplit. A list. */
tvalue ts_split(trun *r, tstr s, const tstr *separator, int64_t most, bool from_right);
/* Removes the first line from *s, into *line without its end; returns the bytes of that end. s->n > 0. */
size_t ts_take_line(tstr *s, tstr *line);
tvalue ts_change_case(trun *r, tstr s, char how); /* 'u'pper, 'l'ower, 'c'apitalize, 't'itle: method, 'T': filter */
tvalue ts_replace(trun *r, tstr s, tstr from, tstr to, int64_t count); /* count < 0: all */

/* Python's f % values. */
tvalue tformat(trun *r, tstr f, tvalue values);

/* ---- tree ---- */

typedef enum tnode_kind {
    /* statements */
    TN_BODY,     /* items; op: a macro is defined in it */
    TN_TEXT,     /* value */
    TN_PRINT,    /* a */
    TN_IF,       /* a, b: then, c: else or NULL */
    TN_FOR,      /* a: target, b: iterable, c: condition or NULL; items: body, else body or NULL */
    TN_SET,      /* a: target, b: value */
    TN_SET_BLOCK,/* a: target, b: body, c: filter chain on TN_CAPTURED, or NULL */
    TN_MACRO,    /* name; a: body; items: parameters (TN_NAME, default in a) */
    TN_BREAK, TN_CONTINUE,
    /* expressions */
    TN_CONST,    /* value */
    TN_NAME,     /* name */
    TN_CAPTURED, /* output of the block of a set */
    TN_LIST, TN_TUPLE, TN_DICT /* items; a dict's are key, value, key, value */,
    TN_ATTRIBUTE,/* a, name */
    TN_SUBSCRIPT,/* a, b */
    TN_SLICE,    /* a; items: start, stop, step, each may be NULL */
    TN_CALL,     /* a; items: arguments, those with a name are keywords (TN_KEYWORD: name, a) */
    TN_KEYWORD,
    TN_FILTER,   /* name, a, items */
    TN_TEST,     /* name, a, items, op: negated */
    TN_UNARY,    /* op '-', '+' or '!'; a */
    TN_BINARY,   /* op; a, b */
    TN_AND, TN_OR,
    TN_COMPARE,  /* a; items: TN_OPERAND (op, a), chained */
    TN_OPERAND,
    TN_CHOICE    /* a: condition, b: then, c: else or NULL */
} tnode_kind;

enum { TOP_EQ = 'e', TOP_NE = 'n', TOP_LT = '<', TOP_LE = 'l', TOP_GT = '>', TOP_GE = 'g', TOP_IN = 'i',
       TOP_NOT_IN = 'o', TOP_FLOOR = 'f', TOP_POWER = 'p' };

typedef struct tnode {
    tnode_kind kind;
    int op;
    int line;
    tstr name;
    tvalue value;
    struct tnode *a, *b, *c;
    struct tnode **items;
    size_t n;
} tnode;

struct hn_template {
    ta_arena arena;
    char *text; /* line ends as \n; constants point into it */
    size_t len;
    tnode *body;
};

/* ---- tokens ---- */

typedef enum ttoken_kind { TT_END, TT_TEXT, TT_PRINT_BEGIN, TT_PRINT_END, TT_BLOCK_BEGIN, TT_BLOCK_END,
                           TT_NAME, TT_STRING, TT_INT, TT_FLOAT, TT_OP } ttoken_kind;
typedef struct ttoken {
    ttoken_kind kind;
    int line;
    tstr str; /* text, name, string (unescaped) or operator */
    int64_t i;
    double f;
} ttoken;

typedef struct tlexer {
    hn_template *t;
    size_t at;
    int line;
    int brackets;        /* open ones in the current tag */
    char inside;         /* 0, '{' (print) or '%' (block) */
    bool line_starting;  /* the last tag consumed the newline after it */
    bool raw;            /* a raw block begins */
    hunch_error *err;
    hunch_status status;
} tlexer;
void tlex_init(tlexer *x, hn_template *t, hunch_error *err);
/* False: an error, in x->status and x->err. */
bool tlex_next(tlexer *x, ttoken *token);

hunch_status tparse(hn_template *t, hunch_error *err);

/* ---- running ---- */

struct trun {
    ta_arena arena;
    hunch_error *err;
    hunch_status status; /* of the first error */
    int line;            /* of the current node */
    int depth, loop_depth;
    size_t steps;
    tbuf *out;
    const tdict *vars;   /* the caller's variables */
    tvalue captured;     /* TN_CAPTURED */
    struct tvar *spare;  /* free list: variables of scopes that ended */
    const char *now;
};

/* Sets the error unless one is set ("line 12: …"). */
tvalue trun_fail(trun *r, const char *fmt, ...) HN_PRINTF(2, 3);
tvalue trun_fail_memory(trun *r);
bool trun_step(trun *r, size_t n); /* false: too many, an error is set */
bool trun_text(trun *r, size_t bytes); /* the steps of reading this many bytes */
bool trun_value(trun *r, tvalue v);    /* the steps of reading a string, a list or a dict once */
hunch_status trun_body(trun *r, const tnode *body, const json_t *vars);

/* Arguments of a call, a filter or a test. */
typedef struct targs {
    tvalue *values;
    size_t n;
    struct tnamed {
        tstr name;
        tvalue value;
    } *named;
    size_t n_named;
} targs;
/* The argument at a place or of a name; NULL if absent. */
const tvalue *targs_get(const targs *a, size_t place, const char *name);
bool targs_check(trun *r, const targs *a, const char *what, size_t min, size_t max); /* counts both kinds */

bool targs_text(trun *r, const targs *a, size_t place, const char *name, tstr *out); /* str() of it; absent: "" */

/* A filter. how: selects one of several similar filters, by the table in template_filters.c. */
typedef tvalue tfilter_call(trun *r, tvalue v, const targs *a, int how);
enum { HN_TPL_REJECT = 1, HN_TPL_BY_ATTRIBUTE = 2 }; /* of tf_select */
enum { HN_TPL_LEAST, HN_TPL_MOST };                  /* of tf_extreme */
tfilter_call tf_default, tf_length, tf_end_of, tf_list, tf_reverse, tf_join, tf_items, tf_sort, tf_dictsort, tf_extreme,
    tf_sum, tf_unique, tf_select, tf_map;
bool tfilter_known(tstr name);
tvalue tfilter_apply(trun *r, tstr name, tvalue v, const targs *args);
/* How many arguments a test takes; -1: unknown. */
int ttest_arity(tstr name);
tvalue ttest_apply(trun *r, tstr name, tvalue v, const targs *args); /* a bool */

bool tmethod_known(tvalue self, tstr name);
tvalue tmethod_call(trun *r, const tmethod *m, const targs *args);

enum tfunction { TF_RAISE, TF_STRFTIME, TF_RANGE, TF_NAMESPACE, TF_DICT, TF_COUNT };
int tfunction_find(tstr name); /* -1: none */
tvalue tfunction_call(trun *r, int function, const targs *args);

/* Operators: by their characters or the codes above. */
tvalue tbinary(trun *r, int op, tvalue a, tvalue b);
tvalue tv_add(trun *r, tvalue a, tvalue b); /* a + b */
tvalue tunary(trun *r, int op, tvalue v);
bool tcompare(trun *r, int op, tvalue a, tvalue b); /* false, too, where an error is set */
tvalue tslice(trun *r, tvalue v, const tvalue part[3]); /* start, stop, step: each may be none */

tvalue tattribute(trun *r, tvalue v, tstr name);
tvalue tsubscript(trun *r, tvalue v, tvalue key);
#endif
