/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_calls.c - answers with calls of tools: a letter for the family and one for options, then the text. Read whole and in pieces it must
 * be the same, what is known must only grow, and arguments of complete calls must be JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "calls/calls.h"
#include "fuzz.h"

static const char offered[] = "[{\"name\": \"ping\"}, {\"name\": \"note\", \"parameters\": {\"type\": \"object\", "
                              "\"properties\": {\"text\": {\"type\": \"string\"}, "
                              "\"tags\": {\"type\": \"array\"}, \"opt\": {\"type\": [\"object\", \"null\"]}, \"n\": "
                              "{\"anyOf\": [{\"type\": \"integer\"}, {\"type\": "
                              "\"string\"}]}, \"on\": {\"type\": \"boolean\"}}}}]";

static hn_call_reader *read_in(const hn_tools *t, const hn_call_family *f, const hn_call_options *o, const char *text,
                               size_t n, size_t step) {
    hn_call_reader *r = hn_call_reader_open(f, t, o);
    size_t said = 0, calls = 0, args = 0;
    FUZZ_MUST(r);
    for (size_t at = 0; at < n; at += step) {
        hn_call_answer a;
        FUZZ_MUST(hn_call_reader_feed(r, text + at, step < n - at ? step : n - at, false));
        hn_call_reader_get(r, &a);
        FUZZ_MUST(a.n_text >= said && a.n_calls >= calls);
        FUZZ_MUST(!calls || a.call[calls - 1].n_arguments >= args);
        said = a.n_text;
        calls = a.n_calls;
        args = calls ? a.call[calls - 1].n_arguments : 0;
    }
    FUZZ_MUST(hn_call_reader_feed(r, NULL, 0, true));
    return r;
}

static void check_same(const hn_call_answer *a, const hn_call_answer *b) {
    FUZZ_MUST(a->n_text == b->n_text && memcmp(a->text, b->text, a->n_text) == 0);
    FUZZ_MUST(a->n_thinking == b->n_thinking && memcmp(a->thinking, b->thinking, a->n_thinking) == 0);
    FUZZ_MUST(a->n_broken == b->n_broken && a->n_calls == b->n_calls && a->n_done == b->n_done);
    FUZZ_MUST(a->n_cut == b->n_cut && a->cut == b->cut);
    for (size_t i = 0; i < a->n_calls; i++) {
        const hn_call *x = &a->call[i], *y = &b->call[i];
        FUZZ_MUST(x->state == y->state && strcmp(x->name, y->name) == 0 && strcmp(x->id, y->id) == 0);
        FUZZ_MUST(x->state != HUNCH_CALL_DONE ||
                  (x->n_arguments == y->n_arguments && memcmp(x->arguments, y->arguments, x->n_arguments) == 0));
    }
}

static void check_calls(const hn_call_answer *a) {
    FUZZ_MUST(a->n_cut <= a->n_text);
    for (size_t i = 0; i < a->n_calls; i++) {
        const hn_call *c = &a->call[i];
        FUZZ_MUST(c->state != HUNCH_CALL_OPEN && (c->state != HUNCH_CALL_CUT || a->cut));
        if (c->state != HUNCH_CALL_DONE || hn_utf8_check(c->arguments, c->n_arguments) < c->n_arguments) continue;
        json_error_t e;
        json_t *args = json_loadb(c->arguments, c->n_arguments, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
        FUZZ_MUST(json_is_object(args) || (!args && (json_error_code(&e) == json_error_numeric_overflow ||
                                                     json_error_code(&e) == json_error_null_byte_in_key)));
        json_decref(args);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static hn_tools tools;
    hunch_error err;
    if (!tools.json) {
        json_t *list = json_loads(offered, 0, NULL);
        FUZZ_MUST(hn_tools_open(&tools, list, "tools", &err) == HUNCH_OK);
        json_decref(list);
    }
    if (size < 2 || size > 100000) return 0;
    size_t families = 0;
    while (hn_call_family_list(families)) families++;
    const hn_call_family *f = hn_call_family_named(hn_call_family_list(data[0] % families));
    const hn_call_options o = {.think_begin = data[1] & 1 ? "<think>" : NULL,
                               .think_end = data[1] & 1 ? "</think>" : NULL,
                               .thinks = data[1] & 2,
                               .one = data[1] & 4,
                               .required = data[1] & 128,
                               .seed = 1};
    const char *text = (const char *)data + 2;
    hn_call_reader *whole = read_in(&tools, f, &o, text, size - 2, size),
                   *cut = read_in(&tools, f, &o, text, size - 2, 1 + data[1] / 8 % 5);
    hn_call_answer a, b;
    hn_call_reader_get(whole, &a);
    hn_call_reader_get(cut, &b);
    check_same(&a, &b);
    check_calls(&a);
    hn_call_reader_close(&whole);
    hn_call_reader_close(&cut);
    return 0;
}
