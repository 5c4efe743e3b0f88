/* SPDX-License-Identifier: Apache-2.0 */
/* serve_parameters.c - see serve_parameters.h. The ranges are those of the flags. */
#include "server/protocols/serve_parameters.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "server/http/serve_bytes.h"
#include "server/serve_prompt.h"

/* Kinds that are read from the table alone; of the others there is more to say. */
enum kind { REAL, ABOVE, INT, SWITCH, OTHER, LIMIT = OTHER, INT64 = OTHER, TEXT = OTHER, CHOICE = OTHER, TEXTS = OTHER, INTS = OTHER,
            BIASES = OTHER };
static const struct parameter {
    const char *name; /* NULL: no request has it */
    enum kind kind;
    double least, most;
    int none; /* what clients send for "off", which is 0; 0: there is no such number */
    size_t at;
} parameters[] = {
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, NONE, ...) \
    {SERVED, KIND, LEAST, MOST, NONE, offsetof(hunch_request, MEMBER)},
    HN_REQUEST_PARAMETERS(ROW)
#undef ROW
};
enum { PARAMETERS = sizeof parameters / sizeof *parameters, MOST_BIASES = 1024 };

static bool parameter_read(hunch_request *r, const struct parameter *p, const serve_view *v, serve_error *err) {
    const json_t *value = p->name && p->kind != OTHER ? serve_field(v, p->name) : NULL;
    const double x = json_number_value(value), least = p->none ? p->none : p->least;
    void *at = (char *)r + p->at;
    if (!value) return true;
    if (p->kind == SWITCH) return serve_field_bool(v, p->name, at, err);
    if (!(p->kind == INT ? json_is_integer(value) : json_is_number(value)) || x < least || x > p->most || (p->kind == ABOVE && x == least))
        return serve_wrong_value(err, v, p->name, value, " is not a %snumber %s %.10g%s %.10g", p->kind == INT ? "whole " : "",
                                 p->kind == ABOVE ? "above" : "from", least, p->kind == ABOVE ? " and at most" : " to", p->most);
    if (p->kind == INT) *(int *)at = p->none && x == p->none ? 0 : (int)x;
    else *(double *)at = x;
    return true;
}

/* A text, or a list of texts, none of them empty. */
static bool texts_read(const serve_view *v, const char *name, int most, const char *const **out, int *n_out, serve_error *err) {
    const json_t *value = serve_field(v, name);
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (!value || n == 0) return true;
    if (n > (size_t)most) return serve_wrong(err, v, name, " has %zu texts: at most %d", n, most);
    const char **list = serve_alloc(n, sizeof *list);
    *out = list;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        const size_t len = json_string_length(one);
        if (len == 0 || len > HUNCH_MOST_STOP_BYTES)
            return serve_wrong(err, v, name, " is not a text, or a list of texts, of 1 to %d bytes each", HUNCH_MOST_STOP_BYTES);
        char *copy = serve_alloc(len + 1, 1);
        memcpy(copy, json_string_value(one), len);
        list[(*n_out)++] = copy;
    }
    return true;
}

/* Biases as they are read. */
typedef struct biases {
    hunch_bias *at;
    int *place; /* of each token of the vocabulary, counted from 1; 0: it has none yet */
    int n, vocab;
} biases;

/* Of several biases of a token the last one counts. False: there are too many. */
static bool bias_set(biases *b, hunch_token id, double bias) {
    int *place = &b->place[id];
    if (!*place && b->n == MOST_BIASES) return false;
    if (!*place) *place = ++b->n;
    b->at[*place - 1] = (hunch_bias){id, bias <= -100 ? -INFINITY : bias}; /* OpenAI's -100 is a ban */
    return true;
}

/* A text that is no token id names tokens. */
static bool bias_read(biases *b, hunch_model *m, const serve_view *v, const char *name, const json_t *what, const json_t *value,
                      serve_error *err) {
    hunch_token id = (hunch_token)json_integer_value(what), *ids = NULL;
    size_t n = 1, i = 0;
    const bool ban = json_is_false(value);
    const double bias = ban ? -100 : json_number_value(value);
    if (!(json_is_string(what) || (json_integer_value(what) >= 0 && json_integer_value(what) < b->vocab)) ||
        !(ban || json_is_number(value)) || !(bias >= -100 && bias <= 100))
        return serve_wrong_value(err, v, "logit_bias", value,
                                 " is not an object of token ids, 0 to %d, and numbers from -100 to 100: that of %.40s is wrong",
                                 b->vocab - 1, name);
    if (json_is_string(what) &&
        !serve_prompt_tokenize(m, v, json_string_value(what), json_string_length(what), 0, "logit_bias", MOST_BIASES, &ids, &n, err))
        return false;
    while (n <= MOST_BIASES && i < n && bias_set(b, ids ? ids[i] : id, bias)) i++; /* ids: NULL of a text that has more */
    hunch_free(ids);
    return i == n ? true : serve_wrong(err, v, "logit_bias", " names more than %d tokens", MOST_BIASES);
}

/* An object of ids and numbers, or, as llama.cpp has it, a list of pairs of a token or a text, and a number or false. */
static bool biases_take(biases *b, hunch_model *m, const serve_view *v, json_t *all, serve_error *err) {
    const char *key;
    char shown[48];
    json_t *value;
    size_t i;
    json_object_foreach(all, key, value) {
        char *end;
        const long id = strtol(key, &end, 10);
        json_t *what = json_integer(end == key || *end ? -1 : id);
        const bool ok = bias_read(b, m, v, key, what, value, err);
        json_decref(what);
        if (!ok) return false;
    }
    json_array_foreach(all, i, value) {
        const json_t *what = json_array_get(value, 0);
        if (json_array_size(value) != 2 || !(json_is_integer(what) || json_string_length(what)))
            return serve_wrong(err, v, "logit_bias", " is not a list of [token or text, number or false], or an object");
        if (!bias_read(b, m, v, hn_json_show(what, shown, sizeof shown), what, json_array_get(value, 1), err)) return false;
    }
    return true;
}

static bool biases_read(hunch_request *r, hunch_model *m, const serve_view *v, serve_error *err) {
    json_t *all = serve_field(v, "logit_bias");
    hunch_model_info info;
    if (!all) return true;
    if (!(hn_json_is_object(all) || json_is_array(all)) || json_object_size(all) + json_array_size(all) > MOST_BIASES)
        return serve_wrong(err, v, "logit_bias", " is not an object of at most %d token ids", MOST_BIASES);
    hunch_model_get_info(m, &info);
    biases b = {.vocab = info.vocab};
    b.at = serve_alloc(MOST_BIASES, sizeof *b.at);
    b.place = serve_alloc((size_t)info.vocab, sizeof *b.place);
    r->sampling.bias = b.at;
    const bool ok = biases_take(&b, m, v, all, err);
    r->sampling.n_bias = b.n;
    hn_free(b.place);
    return ok;
}

/* Penalties look at the whole text: a window, "repeat_last_n", that would cut it is refused where they are on. 0 switches them off. */
static bool window_read(hunch_request *r, const serve_view *v, serve_error *err) {
    hunch_sampling *s = &r->sampling;
    const json_t *given = serve_field(v, "repeat_last_n");
    if (!given) return true;
    if (!json_is_integer(given) || json_integer_value(given) < -1)
        return serve_wrong_value(err, v, "repeat_last_n", given, " is not a whole number from -1 to %lld", (long long)INT64_MAX);
    if (json_integer_value(given) == 0) s->repetition_penalty = s->presence_penalty = s->frequency_penalty = 0;
    const bool on = (serve_field(v, "repetition_penalty") && s->repetition_penalty != 0 && s->repetition_penalty != 1) ||
                    (serve_field(v, "presence_penalty") && s->presence_penalty != 0) ||
                    (serve_field(v, "frequency_penalty") && s->frequency_penalty != 0);
    return !on || json_integer_value(given) < 0 ||
           serve_wrong(err, v, "repeat_last_n", ": penalties look at the whole text here; expected -1, or 0 for none");
}

/* Programs with sliders send all of them, also those of what is switched off. */
static void switched_off(hunch_sampling *s) {
    if (s->xtc_probability == 0) s->xtc_threshold = 0;
    if (s->dry_multiplier > 0) return;
    for (int i = 0; i < s->n_dry_breakers; i++) hn_free((void *)(uintptr_t)s->dry_breakers[i]);
    hn_free((void *)(uintptr_t)s->dry_breakers);
    s->dry_breakers = NULL;
    s->n_dry_breakers = s->dry_allowed_length = s->dry_range = 0;
    s->dry_base = 0;
}

bool serve_parameters_read(hunch_request *r, hunch_model *m, const serve_view *v, serve_error *err) {
    for (int i = 0; i < PARAMETERS; i++)
        if (!parameter_read(r, &parameters[i], v, err)) return false;
    hunch_sampling *s = &r->sampling;
    if (s->xtc_probability > 0 && s->xtc_threshold == 0) s->xtc_threshold = 0.1;
    if (!texts_read(v, "dry_sequence_breakers", HUNCH_MOST_BREAKERS, &s->dry_breakers, &s->n_dry_breakers, err)) return false;
    switched_off(s);
    return window_read(r, v, err) && biases_read(r, m, v, err) && texts_read(v, "stop", HUNCH_MOST_STOPS, &r->stop, &r->n_stop, err);
}
