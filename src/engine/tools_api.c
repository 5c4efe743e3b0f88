/* SPDX-License-Identifier: Apache-2.0 */
/* tools_api.c - calls of tools: what a request offers, in the format of the model's template, and the reader of its answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "calls/call_families.h"
#include "engine/engine.h"
#include "engine/tools.h"
#include "base/json_load.h"

void hunch_tools_options_defaults(hunch_tools_options *o) {
    if (o) memset(o, 0, sizeof *o);
}

const char *hunch_tools_format_name(int index) {
    return index < 0 ? NULL : hn_call_family_list((size_t)index);
}

static hunch_status format_unknown(const char *format, hunch_error *err) {
    char names[600] = "";
    for (size_t i = 0; hn_call_family_list(i); i++) {
        strncat(names, i ? ", " : "", sizeof names - strlen(names) - 1);
        strncat(names, hn_call_family_list(i), sizeof names - strlen(names) - 1);
    }
    return hn_fail(err, HUNCH_USAGE, "there is no format of calls '%.60s': expected one of %s", format, names);
}

/* The format: by name, by the marks of a given template, or by those of the model's own. */
static hunch_status format_choose(hunch_tools *t, const hunch_model *m, const hunch_tools_options *o, hunch_error *err) {
    const hn_call_family *own = m->calls_tools ? m->calls_tools : m->calls;
    hn_think_pair pair = {m->think_begin, m->think_end, m->think_channels, m->may_think};
    if (o->template_text) pair = hn_think_pair_of(o->template_text, strlen(o->template_text));
    t->may_think = pair.found;
    t->family = o->template_text ? hn_call_family_of(o->template_text, strlen(o->template_text)) : own;
    if (o->format && !(t->family = hn_call_family_named(o->format))) return format_unknown(o->format, err);
    if (!t->family) t->family = &hn_calls_none;
    if (!pair.channels) t->reading.think_begin = pair.begin, t->reading.think_end = pair.end;
    return HUNCH_OK;
}

static hunch_status functions_read(hunch_tools *t, const char *text, hunch_error *err) {
    json_error_t e;
    json_t *list = hn_json_load(text, strlen(text), JSON_REJECT_DUPLICATES, &e);
    if (!list) return hn_fail(err, HUNCH_USAGE, "tools: line %d: %s", e.line, e.text);
    const hunch_status st = hn_tools_open(&t->tools, list, "tools", err);
    json_decref(list);
    return st;
}

static hunch_status choice_read(hunch_tools *t, const hunch_tools_options *o, hunch_error *err) {
    t->choice = o->choice;
    t->reading.one = o->one || o->choice == HUNCH_TOOLS_NAMED;
    t->reading.earlier = o->earlier;
    if (o->choice < HUNCH_TOOLS_AUTO || o->choice > HUNCH_TOOLS_NAMED)
        return hn_fail(err, HUNCH_USAGE, "there is no such choice of tools");
    if (o->choice == HUNCH_TOOLS_REQUIRED && t->tools.n == 0)
        return hn_fail(err, HUNCH_USAGE, "a call is required, but no tool is offered");
    if (o->choice != HUNCH_TOOLS_NAMED) return HUNCH_OK;
    t->named = o->name ? hn_tools_find(&t->tools, o->name, strlen(o->name)) : NULL;
    return t->named ? HUNCH_OK : hn_fail(err, HUNCH_USAGE, "the tool '%.100s' is to be called, but is not offered", o->name ? o->name : "");
}

hunch_status hunch_tools_open(hunch_tools **out, const hunch_model *m, const hunch_tools_options *o, hunch_error *err) {
    if (out) *out = NULL;
    const hn_argument needed[] = {{"out", out}, {"m", m}, {"o", o}, {"tools", o && o->tools}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hunch_tools *t = hn_zalloc(1, sizeof *t);
    if (!t) return hn_fail_memory(err, "tools", sizeof *t);
    t->model = m;
    st = functions_read(t, o->tools, err);
    if (!st) st = format_choose(t, m, o, err);
    if (!st) st = choice_read(t, o, err);
    if (st) hunch_tools_close(&t);
    *out = t;
    return st;
}

void hunch_tools_close(hunch_tools **t) {
    if (!t || !*t) return;
    hn_tools_close(&(*t)->tools);
    hn_free(*t);
    *t = NULL;
}

const char *hunch_tools_format(const hunch_tools *t) {
    return !t || t->family == &hn_calls_none ? NULL : hn_call_family_name(t->family);
}

hunch_token hunch_tools_stop(const hunch_tools *t) {
    const char *mark = t ? hn_call_family_stop(t->family) : NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    if (!mark || !t->model->tokenizer) return -1;
    const hunch_status st = hn_tokenizer_encode(t->model->tokenizer, mark, strlen(mark), HUNCH_TEXT_PARSE_SPECIAL, &ids, &n, NULL);
    const hunch_token id = !st && n == 1 && hn_tokenizer_is_special(t->model->tokenizer, ids[0]) ? ids[0] : -1;
    hn_free(ids);
    return id;
}

/* What a grammar of calls is made of. */
typedef struct held {
    const hunch_tools *t;
    hn_call_options reading;
    bool required;
} held;

static hunch_status compile(hn_grammar **out, const hunch_model *m HN_UNUSED, const void *from, hunch_error *err) {
    const held *h = from;
    const hunch_tools *t = h->t;
    return hn_call_grammar_make(out, t->family, &t->tools, t->named, t->choice, &h->reading, err);
}

/* All that it depends on. Returns its length, which may be more than the room. */
static int key_print(char *key, size_t room, const held *h, const char *functions) {
    const hunch_tools *t = h->t;
    const hn_call_options *o = &h->reading;
    return snprintf(key, room, "calls\n%s\n%d %d %d %zu\n%s\n%s\n%s\n%s", hn_call_family_name(t->family), (int)t->choice, o->one, o->thinks,
                    t->family->ids == HN_IDS_COUNTED ? o->earlier : 0, t->named ? t->named->name : "",
                    o->think_begin ? o->think_begin : "", o->think_end ? o->think_end : "", functions);
}

/* NULL: no memory. */
static char *key_of(const held *h) {
    char *functions = hn_json_dump(h->t->tools.json, JSON_COMPACT);
    const size_t room = functions ? (size_t)key_print(NULL, 0, h, functions) + 1 : 0;
    char *key = functions ? hn_alloc(room) : NULL;
    if (key) (void)key_print(key, room, h, functions);
    hn_free(functions);
    return key;
}

/* An agent offers the same functions with every request: the model keeps their grammar, and its masks. A call that may be is not worth a
 * refusal: what a schema asks for that no grammar can, the model is trusted with. */
hunch_status hunch_tools_grammar(hunch_grammar **out, const hunch_tools *t, bool thinks, hunch_error *err) {
    if (out) *out = NULL;
    const hn_argument needed[] = {{"out", out}, {"t", t}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    held h = {t, t->reading, t->choice >= HUNCH_TOOLS_REQUIRED};
    h.reading.thinks = thinks;
    if (!thinks && !t->may_think) h.reading.think_begin = h.reading.think_end = NULL;
    const bool fits = hn_call_grammar_fits(t->family, t->choice == HUNCH_TOOLS_NONE);
    if (!fits && !h.required) return HUNCH_OK;
    if (!fits)
        return hn_fail(err, HUNCH_USAGE, "the chat template has calls of tools in no format that is known, so none can be required");
    char *key = key_of(&h);
    if (!key) return hn_fail_memory(err, "a grammar of calls", 0);
    st = hn_grammar_shared(out, t->model, key, strlen(key), compile, &h, err);
    hn_free(key);
    return st == HUNCH_USAGE && !h.required ? HUNCH_OK : st;
}

/* ---- answers ----------------------------------------------------------------------------------------------------------- */

struct hunch_calls {
    hn_call_reader *reader;
};

/* Ids of calls that nobody else has. */
static uint64_t some_seed(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) seed = (uint64_t)(hn_now() * 1e9);
    return seed;
}

hunch_status hunch_calls_open(hunch_calls **out, const hunch_tools *t, bool thinks, hunch_error *err) {
    if (out) *out = NULL;
    const hn_argument needed[] = {{"out", out}, {"t", t}, {0}};
    const hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hn_call_options o = t->reading;
    o.thinks = thinks;
    o.required = t->choice >= HUNCH_TOOLS_REQUIRED;
    o.seed = some_seed();
    hunch_calls *c = hn_zalloc(1, sizeof *c);
    if (c) c->reader = hn_call_reader_open(t->family, &t->tools, &o);
    if (!c || !c->reader) {
        hunch_calls_close(&c);
        return hn_fail_memory(err, "an answer with calls", sizeof *c);
    }
    *out = c;
    return HUNCH_OK;
}

void hunch_calls_close(hunch_calls **c) {
    if (!c || !*c) return;
    hn_call_reader_close(&(*c)->reader);
    hn_free(*c);
    *c = NULL;
}

hunch_status hunch_calls_feed(hunch_calls *c, const char *text, size_t len, bool ended, hunch_error *err) {
    const hn_argument needed[] = {{"c", c}, {"text", text || len == 0}, {0}};
    const hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    return hn_call_reader_feed(c->reader, text, len, ended) ? HUNCH_OK : hn_fail_memory(err, "an answer with calls", len);
}

void hunch_calls_get(const hunch_calls *c, hunch_answer *out) {
    if (!out) return;
    *out = (hunch_answer){.text = "", .thinking = "", .broken = ""};
    if (c) hn_call_reader_get(c->reader, out);
}
