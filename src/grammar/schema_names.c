/* SPDX-License-Identifier: Apache-2.0 */
/* schema_names.c - which keys an object may have: those of patternProperties, whose values have schemas of their own, and what
 * propertyNames says of all. Keys are strings of schemas, as values are: of patterns that they match, of such that they do not, and none of
 * the object's own names. */
#include "base/mem.h"
#include "grammar/schema.h"

static json_t *pattern_of(const char *pattern) {
    return json_pack("{s:s}", "pattern", pattern);
}

static bool patterns_take(hn_schema *s, hn_schema_names *n, const hn_schema_item *x, size_t item) {
    json_t *patterns = json_object_get(x->node, "patternProperties"), *schema;
    const char *key;
    if (!patterns) return true;
    const int32_t path = hn_schema_step(s, x->path, "patternProperties");
    if (!hn_json_is_object(patterns)) return hn_schema_fail(s, path, "expected an object of schemas") >= 0;
    json_object_foreach(patterns, key, schema) {
        if (n->n_patterns == HN_SCHEMA_PATTERNS)
            return hn_schema_refuse(s, path, "more than %d patterns of one object are not supported", HN_SCHEMA_PATTERNS);
        const json_t *of = hn_schema_keep(s, pattern_of(key));
        if (!of) return false;
        n->pattern[n->n_patterns++] = (hn_schema_pattern){item, of, schema, hn_schema_step(s, path, key), NULL};
    }
    return true;
}

/* The only keys: the first list of them; what the others do not have hn_schema_names_allow knows. */
static bool values_take(hn_schema *s, hn_schema_names *n) {
    static const char *const choices[] = {"anyOf", "oneOf", "if"};
    for (size_t i = 0; i < n->list.n; i++) {
        const hn_schema_item *x = &n->list.at[i];
        const json_t *only = json_object_get(x->node, "const"), *some = json_object_get(x->node, "enum");
        for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
            if (json_object_get(x->node, choices[k]) &&
                !hn_schema_refuse(s, x->path, "%s of propertyNames is not supported", choices[k]))
                return false;
        if (json_object_get(x->node, "not") && !hn_schema_not(x) &&
            !hn_schema_refuse(s, x->path, "not of propertyNames is supported of const, enum, type and pattern alone"))
            return false;
        const int types = hn_schema_types(s, x->node, x->path), out = hn_schema_not(x) ? hn_schema_types(s, hn_schema_not(x), x->path) : 0;
        const bool no_text = json_object_get(hn_schema_not(x), "type") && (out & HN_SCHEMA_STRING);
        if (types >= 0 && (!(types & HN_SCHEMA_STRING) || no_text)) n->list.never = true;
        if (!n->values && only) n->values = hn_schema_keep(s, json_pack("[O]", only));
        if (!n->values && some) n->values = some;
    }
    return !s->b->failed;
}

/* Whether some texts are no key; not of {"type": "string"}, as zod writes it of any record. */
static bool narrows(const hn_schema_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        const json_t *x = list->at[i].node, *out = hn_schema_not(&list->at[i]);
        if (json_object_get(x, "enum") || json_object_get(x, "const") || json_object_get(out, "enum") || json_object_get(out, "const"))
            return true;
    }
    return hn_schema_constrains(list, HN_SCHEMA_STRING);
}

bool hn_schema_names_take(hn_schema *s, hn_schema_names *n, const hn_schema_list *list) {
    bool ok = true;
    for (size_t i = 0; ok && i < list->n; i++) {
        const hn_schema_item *x = &list->at[i];
        const json_t *names = json_object_get(x->node, "propertyNames");
        ok = patterns_take(s, n, x, i);
        if (ok && names) ok = hn_schema_add(s, &n->list, names, hn_schema_step(s, x->path, "propertyNames"), -1);
    }
    ok = ok && hn_schema_expand(s, &n->list) && values_take(s, n);
    n->list.one_spelling = true;
    n->narrow = n->n_patterns || n->list.never || narrows(&n->list);
    if (n->narrow) s->b->looks_further = true;
    return ok;
}

void hn_schema_names_fini(hn_schema_names *n) {
    for (int k = 0; k < n->n_patterns; k++) hn_schema_strings_close(&n->pattern[k].texts);
    hn_schema_strings_close(&n->texts);
    hn_schema_list_fini(&n->list);
}

static bool texts_have(hn_schema *s, hn_schema_strings **texts, const hn_schema_list *list, const json_t *name) {
    if (!*texts) *texts = hn_schema_strings_open(s, list);
    return *texts && hn_schema_strings_have(s, *texts, name);
}

bool hn_schema_names_allow(hn_schema *s, hn_schema_names *n, const hn_word *name) {
    if (!n->narrow || n->list.n == 0 || n->list.never) return !n->list.never;
    json_t *text = json_stringn(name->bytes, name->len);
    if (!text) return hn_builder_no_memory(s->b) >= 0;
    bool in = texts_have(s, &n->texts, &n->list, text);
    for (size_t i = 0; i < n->list.n && in; i++) in = hn_schema_listed(s, &n->list.at[i], text);
    json_decref(text);
    return in;
}

uint32_t hn_schema_names_match(hn_schema *s, hn_schema_names *n, const hn_word *name) {
    uint32_t matches = 0;
    json_t *text = n->n_patterns ? json_stringn(name->bytes, name->len) : NULL;
    if (n->n_patterns && !text) hn_builder_no_memory(s->b);
    for (int k = 0; k < n->n_patterns && !s->b->failed; k++) {
        hn_schema_list list = {0};
        const bool ok = hn_schema_add(s, &list, n->pattern[k].of, n->pattern[k].path, -1);
        if (ok && texts_have(s, &n->pattern[k].texts, &list, text)) matches |= (uint32_t)1 << k;
        hn_schema_list_fini(&list);
    }
    json_decref(text);
    return matches;
}

/* {"not": {"enum": own}} */
static json_t *none_of(const hn_word *own, size_t n_own) {
    json_t *names = json_array();
    for (size_t i = 0; i < n_own; i++)
        if (json_array_append_new(names, json_stringn(own[i].bytes, own[i].len))) return json_decref(names), NULL;
    return json_pack("{s:{s:o}}", "not", "enum", names);
}

hn_expr hn_schema_names_key(hn_schema *s, hn_schema_names *n, const hn_word *own, size_t n_own, uint32_t matches) {
    if (n->list.never || n->values) return hn_expr_nothing(s->b);
    hn_schema_list list = {0};
    bool ok = hn_schema_copy(s, &list, &n->list);
    const int32_t path = n->n_patterns ? n->pattern[0].path : -1;
    const json_t *none = n_own ? hn_schema_keep(s, none_of(own, n_own)) : NULL;
    if (n_own) ok = ok && none && hn_schema_add(s, &list, none, path, -1);
    for (int k = 0; ok && k < n->n_patterns; k++) {
        const hn_schema_pattern *p = &n->pattern[k];
        const json_t *of = matches >> k & 1 ? p->of : hn_schema_make(s, p->of, HN_MADE_NOT, p->path);
        ok = of && hn_schema_add(s, &list, of, p->path, -1);
    }
    const hn_expr key = ok ? hn_schema_string(s, &list) : -1;
    hn_schema_list_fini(&list);
    return key;
}
