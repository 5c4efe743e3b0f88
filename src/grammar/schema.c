/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - lists of schemas and their rules: what $ref and allOf add, and the choices of anyOf and oneOf. */
#include "grammar/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/number_index.h"
#include "base/json_load.h"

enum { MAX_LIST = 256, MAX_RULES = 200000, MAX_SOURCE = 16 << 20, POINTER = 120, MAX_WORK = 16000000 };

/* ---- where a schema stands ---- */

/* The end of a pointer, as much as fits. */
static void pointer_write(const hn_schema *s, int32_t path, char out[POINTER + 1]) {
    size_t at = POINTER;
    out[at] = '\0';
    for (; path >= 0; path = s->paths[path].before) {
        const hn_schema_path *p = &s->paths[path];
        char number[16];
        snprintf(number, sizeof number, "%d", p->number);
        const char *name = p->name ? p->name : number;
        const size_t n = strlen(name);
        if (n + 1 > at) break;
        at -= n;
        memcpy(out + at, name, n);
        out[--at] = '/';
    }
    if (path >= 0 && at >= 3) {
        at -= 3;
        memcpy(out + at, "...", 3);
    }
    memmove(out, out + at, POINTER - at + 1);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
}

hn_expr hn_schema_fail(hn_schema *s, int32_t path, const char *fmt, ...) {
    char line[400], at[POINTER + 1];
    va_list list;
    va_start(list, fmt);
    vsnprintf(line, sizeof line, fmt, list);
    va_end(list);
    pointer_write(s, path, at);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
    return hn_builder_fail(s->b, HUNCH_USAGE, "the JSON schema, %s%s: %s", s->pointer[0] || at[0] ? s->pointer : "its root", at, line);
}

static bool noted(hn_schema *s, int32_t path) {
    char at[POINTER + 1];
    pointer_write(s, path, at);
    return hn_builder_note(s->b, s->pointer[0] || at[0] ? s->pointer : "its root", at);
}

bool hn_schema_refuse(hn_schema *s, int32_t path, const char *fmt, ...) {
    char line[400];
    va_list list;
    if (s->b->loose) return noted(s, path);
    va_start(list, fmt);
    vsnprintf(line, sizeof line, fmt, list);
    va_end(list);
    return hn_schema_fail(s, path, "%s", line) >= 0;
}

bool hn_schema_refused(hn_schema *s, int32_t path) {
    if (s->b->failed != HUNCH_USAGE) return false;
    const hunch_error why = s->b->why; /* where it stands goes before what is wrong */
    s->b->failed = HUNCH_OK;
    return hn_schema_refuse(s, path, "%s", why.message);
}

bool hn_schema_worked(hn_schema *s, int32_t path, size_t n) {
    s->work += n;
    return s->work <= MAX_WORK || hn_schema_fail(s, path, "its parts are combined in more than %d steps", MAX_WORK) >= 0;
}

static int32_t put_step(hn_schema *s, hn_schema_path p) {
    if (!hn_grow((void **)&s->paths, &s->cap_paths, s->n_paths + 1, sizeof *s->paths)) return hn_builder_no_memory(s->b);
    s->paths[s->n_paths] = p;
    return (int32_t)s->n_paths++;
}

int32_t hn_schema_step(hn_schema *s, int32_t path, const char *name) {
    return put_step(s, (hn_schema_path){path, name, 0});
}

int32_t hn_schema_number(hn_schema *s, int32_t path, size_t number) {
    return put_step(s, (hn_schema_path){path, NULL, (int32_t)number});
}

/* ---- lists ---- */

void hn_schema_list_fini(hn_schema_list *list) {
    hn_free(list->at);
    hn_free(list->from);
    *list = (hn_schema_list){0};
}

static bool put_item(hn_schema *s, hn_schema_list *to, hn_schema_item item, int32_t from, int32_t path) {
    if (to->n == MAX_LIST) return hn_schema_fail(s, path, "more than %d schemas must hold together", MAX_LIST) >= 0;
    if (!hn_grow((void **)&to->at, &to->cap, to->n + 1, sizeof *to->at) ||
        !hn_grow((void **)&to->from, &to->cap_from, to->n + 1, sizeof *to->from))
        return hn_builder_no_memory(s->b) >= 0;
    to->at[to->n] = item;
    to->from[to->n++] = from;
    return true;
}

bool hn_schema_add(hn_schema *s, hn_schema_list *to, const json_t *node, int32_t path, int32_t from) {
    if (s->b->failed || !hn_schema_worked(s, path, to->n + HN_SCHEMA_STEPS)) return false;
    if (json_is_true(node)) return true;
    if (json_is_false(node)) return to->never = true;
    if (!hn_json_is_object(node)) return hn_schema_fail(s, path, "expected a schema: an object, true or false") >= 0;
    for (int32_t i = from; i >= 0; i = to->from[i])
        if (to->at[i].node == node) return hn_schema_fail(s, path, "the schema leads to itself with no part of the value between") >= 0;
    for (size_t i = 0; i < to->n; i++)
        if (to->at[i].node == node) return true;
    if (json_object_size(node) == 0) return true;
    return hn_schema_check(s, node, path) && put_item(s, to, (hn_schema_item){node, path, 0}, from, path);
}

bool hn_schema_copy(hn_schema *s, hn_schema_list *to, const hn_schema_list *list) {
    to->never = list->never;
    to->one_spelling = list->one_spelling;
    if (list->n && !hn_schema_worked(s, list->at[0].path, HN_SCHEMA_STEPS * list->n)) return false;
    for (size_t i = 0; i < list->n; i++)
        if (!put_item(s, to, list->at[i], list->from[i], list->at[i].path)) return false;
    return true;
}

/* ---- $ref ---- */

/* One step of a pointer, [*at, end of it), decoded: ~1 is /, ~0 is ~, %xx a byte. False: too long, or no such escape. */
static bool token_read(const char **at, char *out, size_t size) {
    size_t n = 0;
    for (; **at && **at != '/'; ++*at) {
        char c = **at;
        if (n + 1 == size) return false;
        if (c == '~') {
            c = (*at)[1] == '0' ? '~' : '/';
            if ((*at)[1] != '0' && (*at)[1] != '1') return false;
            ++*at;
        } else if (c == '%') {
            char hex[3] = {(*at)[1], (*at)[1] ? (*at)[2] : '\0', '\0'}, *end;
            c = (char)strtol(hex, &end, 16);
            if (end != hex + 2) return false;
            *at += 2;
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

static const json_t *resolve_text(hn_schema *s, const char *ref) {
    const json_t *node = s->root;
    char name[1024];
    if (*ref++ != '#') return NULL;
    while (node && *ref) {
        if (*ref++ != '/' || !token_read(&ref, name, sizeof name)) return NULL;
        if (json_is_array(node)) {
            char *end;
            const unsigned long i = strtoul(name, &end, 10);
            node = *name >= '0' && *name <= '9' && !*end ? json_array_get(node, i) : NULL;
        } else {
            node = json_object_get(node, name);
        }
    }
    return node;
}

const json_t *hn_schema_resolve(hn_schema *s, const json_t *ref, int32_t path) {
    const char *text = json_string_value(ref);
    if (!text) return hn_schema_fail(s, path, "$ref: expected a text"), NULL;
    if (text[0] != '#' || (text[1] && text[1] != '/'))
        return hn_schema_fail(s, path, "$ref \"%.80s\": only \"#\" and \"#/...\", places in this schema, are supported", text), NULL;
    const json_t *node = resolve_text(s, text);
    if (!node) hn_schema_fail(s, path, "$ref \"%.80s\" leads nowhere", text);
    return node;
}

bool hn_schema_expand(hn_schema *s, hn_schema_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        const hn_schema_item x = list->at[i];
        const json_t *ref = json_object_get(x.node, "$ref"), *all = json_object_get(x.node, "allOf");
        if (ref && !(x.done & HN_DONE_REF)) {
            const int32_t at = hn_schema_step(s, x.path, "$ref");
            const json_t *to = hn_schema_resolve(s, ref, at);
            if (!to || !hn_schema_add(s, list, to, at, (int32_t)i)) return false;
        }
        if (all && !(x.done & HN_DONE_ALL)) {
            const int32_t at = hn_schema_step(s, x.path, "allOf");
            if (!json_is_array(all) || !json_array_size(all)) return hn_schema_fail(s, at, "expected a list of schemas") >= 0;
            for (size_t k = 0; k < json_array_size(all); k++)
                if (!hn_schema_add(s, list, json_array_get(all, k), hn_schema_number(s, at, k), (int32_t)i)) return false;
        }
        const json_t *more = x.done & HN_DONE_ALL ? NULL : hn_schema_make(s, x.node, HN_MADE_MORE, x.path);
        for (size_t k = 0; k < json_array_size(more); k++)
            if (!hn_schema_add(s, list, json_array_get(more, k), x.path, (int32_t)i)) return false;
        if (s->b->failed) return false;
        list->at[i].done |= HN_DONE_REF | HN_DONE_ALL;
    }
    return true;
}

/* ---- rules ---- */

static uint64_t hash_list(const hn_schema_list *list) {
    uint64_t h = (uint64_t)list->never + 2 * list->one_spelling;
    for (size_t i = 0; i < list->n; i++) h = hn_hash_word(hn_hash_word(h, (uintptr_t)list->at[i].node), list->at[i].done);
    return h;
}

static bool same_list(const hn_schema_list *x, const hn_schema_list *y) {
    if (x->n != y->n || x->never != y->never || x->one_spelling != y->one_spelling) return false;
    for (size_t i = 0; i < x->n; i++)
        if (x->at[i].node != y->at[i].node || x->at[i].done != y->at[i].done) return false;
    return true;
}

static uint64_t hash_of_rule(const void *schema, size_t i) {
    const hn_schema *s = schema;
    return s->rules[i].hash;
}

static hn_expr rule_find(hn_schema *s, hn_schema_list *list) {
    const uint64_t hash = hash_list(list);
    if (2 * (s->n_rules + 1) > s->cap_index && !hn_number_index_grow(&s->index, &s->cap_index, 256, 0, s->n_rules, hash_of_rule, s))
        return hn_builder_no_memory(s->b);
    size_t at = hash & (s->cap_index - 1);
    for (; s->index[at]; at = (at + 1) & (s->cap_index - 1)) {
        const hn_schema_rule *r = &s->rules[s->index[at] - 1];
        if (r->hash == hash && same_list(&r->list, list)) return r->rule;
    }
    if (s->n_rules == MAX_RULES) return hn_schema_fail(s, -1, "it has more than %d different combinations of schemas", MAX_RULES);
    if (!hn_grow((void **)&s->rules, &s->cap_rules, s->n_rules + 1, sizeof *s->rules)) return hn_builder_no_memory(s->b);
    char name[2 * POINTER], at_path[POINTER + 1] = "";
    if (list->n) pointer_write(s, list->at[0].path, at_path);
    snprintf(name, sizeof name, "the JSON schema, %.100s%s", s->pointer[0] || at_path[0] ? s->pointer : "its root", at_path);
    const hn_expr rule = hn_expr_rule(s->b, name);
    s->rules[s->n_rules] = (hn_schema_rule){*list, rule, hash};
    *list = (hn_schema_list){0};
    s->index[at] = (int32_t)++s->n_rules;
    return rule;
}

hn_expr hn_schema_rule_of(hn_schema *s, hn_schema_list *list) {
    hn_expr e = -1;
    const bool any = list->n == 0 && !list->one_spelling;
    if (!s->b->failed) e = list->never ? hn_expr_nothing(s->b) : any ? hn_schema_any(s) : rule_find(s, list);
    hn_schema_list_fini(list);
    return e;
}

/* ---- choices ---- */

/* The list with one branch of a choice of its item i. */
static hn_expr branch_of(hn_schema *s, const hn_schema_list *list, size_t i, uint32_t done, const json_t *branch, int32_t path) {
    hn_schema_list longer = {0};
    bool ok = hn_schema_copy(s, &longer, list);
    if (ok) longer.at[i].done |= done;
    ok = ok && hn_schema_add(s, &longer, branch, path, (int32_t)i);
    if (ok) return hn_schema_rule_of(s, &longer);
    hn_schema_list_fini(&longer);
    return -1;
}

/* A branch each; path: where they stand. */
static hn_expr choice(hn_schema *s, const hn_schema_list *list, size_t i, const json_t *branches, int32_t path, uint32_t done) {
    const size_t n = json_array_size(branches);
    if (s->b->failed) return -1;
    hn_expr *part = hn_alloc(n * sizeof *part);
    if (!part) return hn_builder_no_memory(s->b);
    for (size_t k = 0; k < n && !s->b->failed; k++)
        part[k] = branch_of(s, list, i, done, json_array_get(branches, k), hn_schema_number(s, path, k));
    const hn_expr e = hn_expr_alt(s->b, part, n);
    hn_free(part);
    return e;
}

static hn_expr any_of(hn_schema *s, const hn_schema_list *list, size_t i, const char *keyword, uint32_t done) {
    const json_t *branches = json_object_get(list->at[i].node, keyword);
    const int32_t at = hn_schema_step(s, list->at[i].path, keyword);
    if (json_array_size(branches) == 0) return hn_schema_fail(s, at, "expected a list of schemas");
    if (done == HN_DONE_ONE && !hn_schema_exclusive(s, list, branches, at))
        branches = hn_schema_make(s, list->at[i].node, HN_MADE_ONLY, at);
    return choice(s, list, i, branches, at, done);
}

static hn_expr made_choice(hn_schema *s, const hn_schema_list *list, size_t i, hn_schema_what what, const char *keyword,
                           uint32_t done) {
    const int32_t at = hn_schema_step(s, list->at[i].path, keyword);
    return choice(s, list, i, hn_schema_make(s, list->at[i].node, what, at), at, done);
}

static hn_expr body_of(hn_schema *s, hn_schema_list *list) {
    if (!hn_schema_expand(s, list)) return -1;
    if (list->never) return hn_expr_nothing(s->b);
    for (size_t i = 0; i < list->n; i++) {
        const hn_schema_item *x = &list->at[i];
        if (!(x->done & HN_DONE_ANY) && json_object_get(x->node, "anyOf")) return any_of(s, list, i, "anyOf", HN_DONE_ANY);
        if (!(x->done & HN_DONE_ONE) && json_object_get(x->node, "oneOf")) return any_of(s, list, i, "oneOf", HN_DONE_ONE);
        if (!(x->done & HN_DONE_IF) && json_object_get(x->node, "if"))
            return made_choice(s, list, i, HN_MADE_BRANCHES, "if", HN_DONE_IF);
        if (!(x->done & HN_DONE_NOT) && json_object_get(x->node, "not") && !hn_schema_not(x))
            return made_choice(s, list, i, HN_MADE_CASES, "not", HN_DONE_NOT);
    }
    return hn_schema_flat(s, list);
}

static hn_expr compile(hn_schema *s) {
    hn_schema_list root = {0};
    const hn_expr whole = hn_schema_add(s, &root, s->root, -1, -1) ? hn_schema_rule_of(s, &root) : -1;
    hn_schema_list_fini(&root);
    for (size_t i = 0; i < s->n_rules && !s->b->failed; i++) {
        hn_schema_list list = {0}; /* a copy: rules are added */
        const hn_expr body = hn_schema_copy(s, &list, &s->rules[i].list) ? body_of(s, &list) : -1;
        hn_schema_list_fini(&list);
        hn_expr_rule_set(s->b, s->rules[i].rule, body);
    }
    return whole;
}

static void schema_fini(hn_schema *s) {
    for (size_t i = 0; i < s->n_rules; i++) hn_schema_list_fini(&s->rules[i].list);
    hn_free(s->paths);
    hn_free(s->rules);
    hn_free(s->index);
    hn_schema_made_fini(s);
}

/* A schema that is true or false is no document for the parser. */
static bool is_word(const char *text, size_t len, const char *word) {
    while (len && strchr(" \t\r\n", text[len - 1])) len--;
    while (len && strchr(" \t\r\n", *text)) text++, len--;
    return len == strlen(word) && memcmp(text, word, len) == 0;
}

static hn_expr parse_and_compile(hn_builder *b, const char *text, size_t len, const char *pointer, bool plain) {
    json_error_t where;
    size_t held = 0;
    json_t *root = hn_json_parse(text, len, &held, &where);
    hn_schema s = {.b = b, .root = root, .pointer = pointer, .plain = plain};
    hn_expr e = -1;
    if (root)
        e = compile(&s);
    else if (json_error_code(&where) == json_error_out_of_memory)
        hn_builder_no_memory(b);
    else
        hn_schema_fail(&s, -1, "line %d: %s", where.line, where.text);
    schema_fini(&s);
    json_decref(root);
    return e;
}

static hn_expr too_long(hn_builder *b, size_t len) {
    return hn_builder_fail(b, HUNCH_USAGE, "the JSON schema has %zu bytes, expected at most %d", len, MAX_SOURCE);
}

hn_expr hn_expr_plain_string(hn_builder *b, const char *schema, size_t len, const char *pointer, const char *never) {
    if (b->failed) return -1;
    if (len > MAX_SOURCE) return too_long(b, len);
    b->never = never;
    return parse_and_compile(b, schema, len, pointer, true);
}

hn_expr hn_expr_json_schema(hn_builder *b, const char *schema, size_t len, const char *pointer) {
    if (b->failed) return -1;
    if (len > MAX_SOURCE) return too_long(b, len);
    hn_expr e = is_word(schema, len, "true")    ? hn_expr_json_value(b)
                : is_word(schema, len, "false") ? hn_expr_nothing(b)
                                                : parse_and_compile(b, schema, len, pointer ? pointer : "", false);
    return e < 0 ? -1 : hn_expr_json(b, e);
}

hunch_status hn_grammar_json_schema(hn_grammar **out, const char *schema, size_t len, hunch_error *err) {
    *out = NULL;
    hn_builder *b = hn_builder_open(err);
    if (!b) return HUNCH_NO_MEMORY;
    return hn_grammar_finish(out, &b, hn_expr_json_schema(b, schema, len, ""), err);
}
