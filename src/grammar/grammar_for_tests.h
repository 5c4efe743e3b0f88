/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_for_tests.h - whether a grammar accepts a text, byte by byte, without a vocabulary. Include after cmocka. */
#ifndef HN_GRAMMAR_FOR_TESTS_H
#define HN_GRAMMAR_FOR_TESTS_H
#include <stdlib.h>
#include <string.h>

#include "base/helper_for_tests.h"
#include "grammar/automaton.h"

typedef hunch_status grammar_source(hn_grammar **out, const char *text, size_t len, hunch_error *err);

typedef struct accepter {
    hn_grammar *g;
    hn_automaton *a;
    uint8_t *is_control;
} accepter;

HELPER accepter accepter_of(hn_grammar *g, const char *what) {
    hunch_error err = {0};
    accepter x = {.g = g, .is_control = calloc(g->n_names + 1, 1)};
    if (hn_automaton_open(&x.a, g, x.is_control, false, 16, &err) != HUNCH_OK) fail_msg("%s: %s", what, err.message);
    return x;
}

HELPER accepter accepter_open(grammar_source *source, const char *text) {
    hunch_error err = {0};
    hn_grammar *g = NULL;
    if (source(&g, text, strlen(text), &err) != HUNCH_OK) fail_msg("%s: %s", text, err.message);
    return accepter_of(g, text);
}

HELPER void accepter_close(accepter *x) {
    hn_automaton_close(&x->a);
    hn_grammar_close(&x->g);
    free(x->is_control);
}

/* How many bytes of it may begin a text; *whole: it may end there. */
HELPER size_t accepter_prefix(accepter *x, const char *text, size_t len, bool *whole) {
    int32_t state = x->a->start;
    size_t i = 0;
    *whole = false;
    for (; i < len; i++) {
        const int32_t next = hn_automaton_byte(x->a, state, (unsigned char)text[i]);
        assert_int_not_equal(next, HN_STATE_FULL);
        if (next < 0) return i;
        state = next;
    }
    *whole = x->a->states[state].final;
    return i;
}

HELPER bool accepts(accepter *x, const char *text) {
    bool whole;
    accepter_prefix(x, text, strlen(text), &whole);
    return whole;
}

/* A grammar with texts that it must accept and refuse, each list ends with NULL. */
typedef struct grammar_case {
    const char *grammar;
    const char *yes[16], *no[16];
} grammar_case;

HELPER void grammar_case_check(grammar_source *source, const grammar_case *c) {
    accepter x = accepter_open(source, c->grammar);
    for (int i = 0; i < 16 && c->yes[i]; i++)
        if (!accepts(&x, c->yes[i])) fail_msg("%s: refuses %s", c->grammar, c->yes[i]);
    for (int i = 0; i < 16 && c->no[i]; i++)
        if (accepts(&x, c->no[i])) fail_msg("%s: accepts %s", c->grammar, c->no[i]);
    accepter_close(&x);
}

/* A grammar that is refused, and a part of the message. */
typedef struct grammar_refusal {
    const char *grammar, *why;
} grammar_refusal;

HELPER void grammar_refusal_check(grammar_source *source, const grammar_refusal *c) {
    hunch_error err = {0};
    hn_grammar *g = NULL;
    const hunch_status s = source(&g, c->grammar, strlen(c->grammar), &err);
    if (s != HUNCH_USAGE) fail_msg("%s: status %d (%s)", c->grammar, s, err.message);
    assert_null(g);
    if (!strstr(err.message, c->why) || strchr(err.message, '\n'))
        fail_msg("%s: says \"%s\", expected \"%s\"", c->grammar, err.message, c->why);
}
#endif
