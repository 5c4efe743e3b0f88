/* SPDX-License-Identifier: Apache-2.0 */
/* calls_for_tests.h - offered functions, templates' marks, and answers as JSON. */
#ifndef HN_CALLS_FOR_TESTS_H
#define HN_CALLS_FOR_TESTS_H
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/helper_for_tests.h"
#include "base/json_load.h"
#include "base/mem.h"
#include "calls/calls.h"

/* The functions of a file, and one more without parameters (NULL: none). */
HELPER void tools_offer(hn_tools *t, const char *path, const char *more) {
    json_t *list = json_load_file(path, 0, NULL);
    hunch_error err = {0};
    assert_non_null(list);
    if (more) json_array_append_new(list, json_pack("{s:s}", "name", more));
    assert_int_equal(hn_tools_open(t, list, "tools", &err), HUNCH_OK);
    json_decref(list);
}

HELPER char *template_text(const char *file, size_t *len) {
    char path[500], *text = NULL;
    hunch_error err = {0};
    snprintf(path, sizeof path, HUNCH_TEST_TEMPLATES "/%s", file);
    assert_int_equal(hn_file_read(path, 1 << 20, &text, len, &err), HUNCH_OK);
    return text;
}

HELPER hn_call_options options_of(const char *file) {
    size_t len = 0;
    char *text = file ? template_text(file, &len) : NULL;
    const hn_think_pair pair = hn_think_pair_of(text, len);
    hn_free(text);
    return (hn_call_options){.think_begin = pair.channels ? NULL : pair.begin, .think_end = pair.channels ? NULL : pair.end, .seed = 7};
}

HELPER bool ends_in(const char *text, const char *mark) {
    size_t len = strlen(text), n = mark ? strlen(mark) : 0;
    while (len && strchr(" \n", text[len - 1])) len--;
    return mark && len >= n && memcmp(text + len - n, mark, n) == 0;
}

/* Complete calls: [{"name", "arguments"}]. */
HELPER json_t *calls_json(const hn_call_answer *a) {
    json_t *list = json_array();
    for (size_t i = 0; i < a->n_calls; i++) {
        json_error_t e;
        if (a->call[i].state != HUNCH_CALL_DONE) continue;
        json_t *args = hn_json_load(a->call[i].arguments, a->call[i].n_arguments, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
        if (!args) fail_msg("arguments '%.*s': %s", (int)a->call[i].n_arguments, a->call[i].arguments, e.text);
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", a->call[i].name, "arguments", args));
    }
    return list;
}
#endif
