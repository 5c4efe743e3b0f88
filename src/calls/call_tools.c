/* SPDX-License-Identifier: Apache-2.0 */
/* call_tools.c - the functions that a request offers. */
#include "base/json_load.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "calls/calls.h"

#include <string.h>

static hunch_status function_read(hn_tools *t, const json_t *one, const char *field, hunch_error *err) {
    const json_t *inner = json_object_get(one, "function"), *f = inner ? inner : one, *name = json_object_get(f, "name");
    const json_t *parameters = json_object_get(f, "parameters");
    if (!json_string_length(name)) return hn_fail(err, HUNCH_USAGE, "%s[%zu] is not a function with a name", field, t->n);
    if (parameters && !hn_json_is_object(parameters) && !json_is_null(parameters))
        return hn_fail(err, HUNCH_USAGE, "%s[%zu].parameters is not a JSON schema", field, t->n);
    if (hn_tools_find(t, json_string_value(name), json_string_length(name)))
        return hn_fail(err, HUNCH_USAGE, "%s has the function %.100s twice", field, json_string_value(name));
    t->function[t->n++] = (hn_tool_function){json_string_value(name), hn_json_is_object(parameters) ? parameters : NULL,
                                             json_is_false(json_object_get(f, "strict"))};
    return HUNCH_OK;
}

hunch_status hn_tools_open(hn_tools *out, const json_t *list, const char *field, hunch_error *err) {
    const size_t n = json_array_size(list);
    size_t i;
    const json_t *one;
    hunch_status st = HUNCH_OK;
    *out = (hn_tools){0};
    if (!json_is_array(list)) return hn_fail(err, HUNCH_USAGE, "%s is not a list of functions", field);
    if (n > HN_MOST_TOOLS) return hn_fail(err, HUNCH_USAGE, "%s has %zu functions: at most %d", field, n, HN_MOST_TOOLS);
    *out = (hn_tools){.function = hn_zalloc(n + 1, sizeof *out->function), .json = json_deep_copy(list)};
    if (!out->function || !out->json) st = hn_fail_memory(err, "functions", n * sizeof *out->function);
    json_array_foreach(out->json, i, one)
        if (!st) st = function_read(out, one, field, err);
    if (st) hn_tools_close(out);
    return st;
}

void hn_tools_close(hn_tools *t) {
    hn_free(t->function);
    json_decref(t->json);
    *t = (hn_tools){0};
}

const hn_tool_function *hn_tools_find(const hn_tools *t, const char *name, size_t len) {
    for (size_t i = 0; i < t->n; i++)
        if (strlen(t->function[i].name) == len && memcmp(t->function[i].name, name, len) == 0) return &t->function[i];
    return NULL;
}
