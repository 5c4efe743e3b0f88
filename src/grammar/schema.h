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

enum { HN_DONE_REF = 1, HN_DONE_ALL = 2, HN_DONE_ANY = 4, HN_DONE_ONE = 8 };

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
    bool never; /* `false` is one of them */
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
} hn_schema;

/* Counts n steps, which are comparisons; a schema that is added to a list is HN_SCHEMA_STEPS. Lists grow by what they lead to, and each
 * combination of branches is one, so a small schema can be one that takes for ever. False: it does; failed. */
enum { HN_SCHEMA_STEPS = 8 };
bool hn_schema_worked(hn_schema *s, int32_t path, size_t n);

/* Fails with "POINTER: WHAT"; returns -1. */
hn_expr hn_schema_fail(hn_schema *s, int32_t path, const char *fmt, ...) HN_PRINTF(3, 4);
int32_t hn_schema_step(hn_schema *s, int32_t path, const char *name);
int32_t hn_schema_number(hn_schema *s, int32_t path, size_t number);

/* Adds a schema; false: failed. `true` and {} add nothing. */
bool hn_schema_add(hn_schema *s, hn_schema_list *to, const json_t *node, int32_t path, int32_t from);
bool hn_schema_copy(hn_schema *s, hn_schema_list *to, const hn_schema_list *list);
void hn_schema_list_fini(hn_schema_list *list);
/* The rule of a list, which it takes. */
hn_expr hn_schema_rule_of(hn_schema *s, hn_schema_list *list);
/* What a $ref names; NULL: failed. */
const json_t *hn_schema_resolve(hn_schema *s, const json_t *ref, int32_t path);
/* All keywords of a schema are known. (schema_keywords.c) */
bool hn_schema_check(hn_schema *s, const json_t *node, int32_t path);

/* ---- a list without choices ---- */
enum { HN_SCHEMA_NULL = 1, HN_SCHEMA_BOOLEAN = 2, HN_SCHEMA_INTEGER = 4, HN_SCHEMA_FRACTION = 8 /* numbers that are no integers */,
       HN_SCHEMA_STRING = 16, HN_SCHEMA_ARRAY = 32, HN_SCHEMA_OBJECT = 64, HN_SCHEMA_ANY = 127 };
/* The types that `type` allows, HN_SCHEMA_ANY without it; -1: failed. */
int hn_schema_types(hn_schema *s, const json_t *node, int32_t path);
int hn_schema_type_of(const json_t *value);
hn_expr hn_schema_flat(hn_schema *s, const hn_schema_list *list);              /* schema_types.c */
hn_expr hn_schema_values(hn_schema *s, const hn_schema_list *list, int types); /* of enum and const (schema_enum.c) */
hn_expr hn_schema_number_of(hn_schema *s, const hn_schema_list *list, bool integer);
hn_expr hn_schema_string(hn_schema *s, const hn_schema_list *list);            /* schema_string.c */
hn_expr hn_schema_any(hn_schema *s);                                           /* what no schema speaks of */
hn_expr hn_schema_array(hn_schema *s, const hn_schema_list *list);             /* schema_array.c */
hn_expr hn_schema_object(hn_schema *s, const hn_schema_list *list);            /* schema_object.c */
/* A count that a keyword gives: *v becomes it if it is more (or less). False: failed. */
bool hn_schema_count(hn_schema *s, const hn_schema_item *item, const char *keyword, bool least, int64_t *v);
/* The branches of oneOf exclude each other; false: failed. (schema_one_of.c) */
bool hn_schema_exclusive(hn_schema *s, const hn_schema_list *list, const json_t *branches, int32_t path);
bool hn_json_same(const json_t *x, const json_t *y); /* as JSON schema compares: 1 is 1.0 */
#endif
