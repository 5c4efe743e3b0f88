/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - a JSON schema on its way to an expression.
 *
 * What a value must be is a list of schemas that all must hold: `$ref` and `allOf` add to it, `anyOf` and `oneOf` make a choice of longer
 * lists, and a property's value has the list of what all of them say about it. Each list becomes one rule, equal ones the same, so that
 * recursion is that of rules; rules wait in a queue for their bodies, so that no schema is too deep (schema.c).
 */
#ifndef HN_SCHEMA_H
#define HN_SCHEMA_H
#include "grammar/json_text.h"

enum { HN_DONE_REF = 1, HN_DONE_ALL = 2, HN_DONE_ANY = 4, HN_DONE_ONE = 8, HN_DONE_NOT = 16, HN_DONE_IF = 32 };

/* One schema that must hold. */
typedef struct hn_schema_item {
    const json_t *node; /* an object */
    int32_t path;       /* where it stands, for messages */
    uint32_t done;      /* which of its keywords are in the list already */
} hn_schema_item;

typedef struct hn_schema_list {
    hn_schema_item *at;
    int32_t *from; /* [n] the item whose $ref or allOf added it; -1: none */
    size_t n, cap, cap_from;
    bool never;        /* `false` is one of them */
    bool one_spelling; /* equal values must be equal texts: items of uniqueItems, which are no arrays or objects */
} hn_schema_list;

typedef struct hn_schema_path { /* a step of a JSON pointer */
    int32_t before;
    const char *name; /* NULL: a number */
    int32_t number;
} hn_schema_path;

typedef struct hn_schema_rule {
    hn_schema_list list;
    hn_expr rule;
    uint64_t hash;
} hn_schema_rule;

/* A schema that is no part of the text but follows from one that is, made once for it (schema_not.c). */
typedef enum hn_schema_what {
    HN_MADE_NOT = 1,  /* {"not": it} */
    HN_MADE_CASES,    /* a list: one of these holds if what it has in `not` does not */
    HN_MADE_BRANCHES, /* a list: one of these holds if its if, then and else do */
    HN_MADE_MORE,     /* a list: all of these hold if its dependentRequired, format, .. do */
    HN_MADE_ONLY,     /* a list: one of these holds if one branch of oneOf does */
    HN_MADE_KEPT      /* it itself (hn_schema_keep) */
} hn_schema_what;

typedef struct hn_schema_made {
    const json_t *of;
    json_t *made;
    hn_schema_what what;
} hn_schema_made;

typedef struct hn_schema {
    hn_builder *b;
    const json_t *root;
    const char *pointer; /* of the root, for messages */
    bool plain;          /* strings alone, without quotes and escapes */
    hn_schema_path *paths;
    size_t n_paths, cap_paths;
    hn_schema_rule *rules; /* in the order in which they are compiled */
    size_t n_rules, cap_rules;
    int32_t *index; /* a hash table of rules, their numbers and one */
    size_t cap_index;
    size_t work; /* what was looked at, in all of it */
    hn_schema_made *made; /* a hash table */
    size_t n_made, cap_made;
} hn_schema;

/* Counts n steps, which are comparisons; a schema that is added to a list is HN_SCHEMA_STEPS. Lists grow by what they lead to, and each
 * combination of branches is one, so a small schema can be one that takes for ever. False: it does; failed. */
enum { HN_SCHEMA_STEPS = 8 };
bool hn_schema_worked(hn_schema *s, int32_t path, size_t n);

/* Fails with "POINTER: WHAT"; returns -1. */
hn_expr hn_schema_fail(hn_schema *s, int32_t path, const char *fmt, ...) HN_PRINTF(3, 4);
/* What cannot be honoured: fails, or, of a builder that is not strict, notes where it stands, and returns true. */
bool hn_schema_refuse(hn_schema *s, int32_t path, const char *fmt, ...) HN_PRINTF(3, 4);
/* The same for what made the builder fail since. */
bool hn_schema_refused(hn_schema *s, int32_t path);
int32_t hn_schema_step(hn_schema *s, int32_t path, const char *name);
int32_t hn_schema_number(hn_schema *s, int32_t path, size_t number);

/* Adds a schema; false: failed. `true` and {} add nothing. */
bool hn_schema_add(hn_schema *s, hn_schema_list *to, const json_t *node, int32_t path, int32_t from);
bool hn_schema_copy(hn_schema *s, hn_schema_list *to, const hn_schema_list *list);
void hn_schema_list_fini(hn_schema_list *list);
/* Adds what $ref, allOf and the like of its items say. */
bool hn_schema_expand(hn_schema *s, hn_schema_list *list);
/* The rule of a list, which it takes. */
hn_expr hn_schema_rule_of(hn_schema *s, hn_schema_list *list);
/* What a $ref names; NULL: failed. */
const json_t *hn_schema_resolve(hn_schema *s, const json_t *ref, int32_t path);
/* All keywords of a schema are known. (schema_keywords.c) */
bool hn_schema_check(hn_schema *s, const json_t *node, int32_t path);
bool hn_schema_says_nothing(const char *keyword); /* about a value */

/* ---- schemas that are made of others (schema_not.c); NULL: failed ---- */
const json_t *hn_schema_make(hn_schema *s, const json_t *of, hn_schema_what what, int32_t path);
/* Keeps one that is made for one use. */
const json_t *hn_schema_keep(hn_schema *s, json_t *made);
void hn_schema_made_fini(hn_schema *s);
/* What `not` has, if it is of types, values or a pattern alone, which schema_types.c and those that it asks look at; else NULL. */
const json_t *hn_schema_not(const hn_schema_item *x);

/* ---- a list without choices ---- */
enum { HN_SCHEMA_NULL = 1, HN_SCHEMA_BOOLEAN = 2, HN_SCHEMA_INTEGER = 4, HN_SCHEMA_FRACTION = 8 /* numbers that are no integers */,
       HN_SCHEMA_STRING = 16, HN_SCHEMA_ARRAY = 32, HN_SCHEMA_OBJECT = 64, HN_SCHEMA_ANY = 127 };
/* The types that `type` allows, HN_SCHEMA_ANY without it; -1: failed. */
int hn_schema_types(hn_schema *s, const json_t *node, int32_t path);
int hn_schema_type_of(const json_t *value);
/* The types of all values that a list allows, or more. (schema_one_of.c) */
int hn_schema_types_of(hn_schema *s, const hn_schema_list *list);
/* How many values without parts, or fewer than that: -1 if that may be few, or cannot be told. (schema_count.c) */
int64_t hn_schema_count_of(hn_schema *s, const hn_schema_list *list);
hn_expr hn_schema_flat(hn_schema *s, const hn_schema_list *list);              /* schema_types.c */
hn_expr hn_schema_values(hn_schema *s, const hn_schema_list *list, int types); /* of enum and const (schema_enum.c) */
int64_t hn_schema_values_count(hn_schema *s, const hn_schema_list *list, int types); /* different ones of these; -1: failed */
/* Whether keywords say something about values of these types, but for enum, const and type. (schema_enum.c) */
bool hn_schema_constrains(const hn_schema_list *list, int types);
hn_expr hn_schema_number_of(hn_schema *s, const hn_schema_list *list, int types);
hn_expr hn_schema_string(hn_schema *s, const hn_schema_list *list);            /* schema_string.c */
hn_expr hn_schema_any(hn_schema *s);                                           /* what no schema speaks of */
hn_expr hn_schema_array(hn_schema *s, const hn_schema_list *list);             /* schema_array.c */
hn_expr hn_schema_object(hn_schema *s, const hn_schema_list *list);            /* schema_object.c */
/* Whether a text may be a string of a list, but for its enum and const. (schema_enum.c) */
typedef struct hn_schema_strings hn_schema_strings;
hn_schema_strings *hn_schema_strings_open(hn_schema *s, const hn_schema_list *list); /* NULL: failed */
bool hn_schema_strings_have(hn_schema *s, hn_schema_strings *x, const json_t *text);
void hn_schema_strings_close(hn_schema_strings **x);
bool hn_schema_listed(hn_schema *s, const hn_schema_item *x, const json_t *value); /* in its enum and const, if any, and not in not's */
/* ---- the keys of objects (schema_names.c) ---- */
enum { HN_SCHEMA_PATTERNS = 4 };
typedef struct hn_schema_pattern {
    size_t item; /* of the list */
    const json_t *of, *schema; /* of: {"pattern": ..} */
    int32_t path;
    hn_schema_strings *texts; /* NULL until they are asked */
} hn_schema_pattern;

/* What patternProperties and propertyNames of a list say. */
typedef struct hn_schema_names {
    hn_schema_pattern pattern[HN_SCHEMA_PATTERNS];
    int n_patterns;
    hn_schema_list list;   /* of propertyNames */
    const json_t *values;  /* the only keys, if enum or const lists them; NULL: others may be allowed */
    hn_schema_strings *texts;
    bool narrow; /* they say something */
} hn_schema_names;

bool hn_schema_names_take(hn_schema *s, hn_schema_names *n, const hn_schema_list *list); /* false: failed */
void hn_schema_names_fini(hn_schema_names *n);
bool hn_schema_names_allow(hn_schema *s, hn_schema_names *n, const hn_word *name);
uint32_t hn_schema_names_match(hn_schema *s, hn_schema_names *n, const hn_word *name); /* bits of the patterns */
/* A key that matches these patterns and no other, and is none of some. */
hn_expr hn_schema_names_key(hn_schema *s, hn_schema_names *n, const hn_word *own, size_t n_own, uint32_t matches);
/* A count that a keyword gives: *v becomes it if it is more (or less). False: failed. */
bool hn_schema_count(hn_schema *s, const hn_schema_item *item, const char *keyword, bool least, int64_t *v);
/* The same for one that is a bound of numbers: checked alone. */
bool hn_schema_bound(hn_schema *s, const hn_schema_item *item, const char *keyword);
bool hn_schema_is_names(const json_t *of); /* a list of nothing but texts */
/* The branches of oneOf can be shown to exclude each other. (schema_one_of.c) */
bool hn_schema_exclusive(hn_schema *s, const hn_schema_list *list, const json_t *branches, int32_t path);
bool hn_json_same(const json_t *x, const json_t *y); /* as JSON schema compares: 1 is 1.0 */
#endif
