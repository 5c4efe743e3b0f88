/* SPDX-License-Identifier: Apache-2.0 */
/* tool_grammar.c - see tool_grammar.h. */
#include "cli/tool_grammar.h"

#include <string.h>

#include "base/mem.h"

/* By kind: the flag, and the key of a row. */
static const struct {
    const char *flag, *key;
} names[] = {
    [HUNCH_GRAMMAR_JSON_SCHEMA] = {"--json-schema", "json_schema"},
    [HUNCH_GRAMMAR_JSON_OBJECT] = {"--json-object", "json_object"},
    [HUNCH_GRAMMAR_REGEX] = {"--regex", "regex"},
    [HUNCH_GRAMMAR_GBNF] = {"--grammar", "grammar"},
};
enum { KINDS = sizeof names / sizeof *names };

/* ---- of flags -------------------------------------------------------------------------------------------------- */

int tool_grammar_read(tool_grammar *g, const tool_options *o) {
    const bool given[KINDS] = {[HUNCH_GRAMMAR_JSON_SCHEMA] = o->json_schema_file, [HUNCH_GRAMMAR_JSON_OBJECT] = o->json_object,
                               [HUNCH_GRAMMAR_REGEX] = o->regex, [HUNCH_GRAMMAR_GBNF] = o->grammar_file};
    const char *const file = o->json_schema_file ? o->json_schema_file : o->grammar_file;
    *g = (tool_grammar){0};
    for (int k = 0; k < KINDS; k++) {
        if (!given[k])
            continue;
        if (g->given)
            return tool_usage("%s and %s contradict each other: give one of them", g->where, names[k].flag);
        *g = (tool_grammar){.given = true, .kind = (hunch_grammar_kind)k, .where = names[k].flag};
    }
    if (g->given && file)
        return tool_file_read(file, &g->text, &g->len);
    if (o->regex) {
        g->len = strlen(o->regex);
        g->text = tool_strndup(o->regex, g->len);
    }
    return 0;
}

void tool_grammar_fini(tool_grammar *g) {
    hn_free(g->text);
    *g = (tool_grammar){0};
}

/* ---- of rows --------------------------------------------------------------------------------------------------- */

static bool value_fits(hunch_grammar_kind kind, const json_t *value) {
    switch (kind) {
    case HUNCH_GRAMMAR_JSON_SCHEMA: return hn_json_is_object(value) || json_is_boolean(value);
    case HUNCH_GRAMMAR_JSON_OBJECT: return json_is_boolean(value);
    default: return json_string_length(value) > 0;
    }
}

int tool_grammar_key(const char *key, const json_t *value, const char *where) {
    static const char *const expected[] = {[HUNCH_GRAMMAR_JSON_SCHEMA] = "a schema: an object, true or false",
                                           [HUNCH_GRAMMAR_JSON_OBJECT] = "true or false",
                                           [HUNCH_GRAMMAR_REGEX] = "a text that is not empty",
                                           [HUNCH_GRAMMAR_GBNF] = "a text that is not empty"};
    for (int k = 0; k < KINDS; k++) {
        if (strcmp(names[k].key, key) != 0)
            continue;
        if (value_fits((hunch_grammar_kind)k, value))
            return 1;
        tool_usage("%s: \"%s\" is not %s", where, key, expected[k]);
        return -1;
    }
    return 0;
}

static hunch_status source_of_row(tool_grammar *g, const json_t *settings, hunch_error *err) {
    for (int k = 0; k < KINDS; k++) {
        const json_t *value = json_object_get(settings, names[k].key);
        if (!value || (k == HUNCH_GRAMMAR_JSON_OBJECT && !json_is_true(value)))
            continue;
        if (g->given)
            return hn_fail(err, HUNCH_USAGE, "\"%s\" and \"%s\" contradict each other: give one of them", g->where, names[k].key);
        *g = (tool_grammar){.given = true, .kind = (hunch_grammar_kind)k, .where = names[k].key};
        char *dump = k == HUNCH_GRAMMAR_JSON_SCHEMA ? tool_json_dump(value, JSON_ENCODE_ANY) : NULL;
        g->len = dump ? strlen(dump) : json_string_length(value);
        g->text = tool_strndup(dump ? dump : json_string_value(value) ? json_string_value(value) : "", g->len);
        hn_free(dump);
    }
    return HUNCH_OK;
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

hunch_status tool_grammar_open(hunch_grammar **out, const tool_grammar *flags, const json_t *settings, const hunch_model *m, bool chat,
                               bool thinks, hunch_error *err) {
    const hunch_grammar_start start = thinks ? HUNCH_GRAMMAR_IN_THINKING : chat ? HUNCH_GRAMMAR_AFTER_THINKING : HUNCH_GRAMMAR_AT_ONCE;
    tool_grammar row = {0};
    *out = NULL;
    hunch_status st = source_of_row(&row, settings, err);
    const tool_grammar *g = row.given ? &row : flags;
    if (!st && g->given) {
        st = hunch_grammar_open(out, m, g->kind, g->text, g->len, start, err);
        if (st)
            hn_error_prefix(err, row.given ? "\"%s\"" : "%s", g->where);
    }
    tool_grammar_fini(&row);
    return st;
}
