/* SPDX-License-Identifier: Apache-2.0 */
/* serve_sampling.c - see serve_sampling.h. The names are those of OpenAI, else of vLLM and llama.cpp; the ranges are those of the flags. */
#include "server/serve_sampling.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/request_parameters.h"
#include "server/serve_bytes.h"

#define AT(field) offsetof(hunch_request, field)
static const struct {
    const char *name;
    double least, most;
    bool whole, above; /* above: `least` itself is too small */
    size_t at;
} numbers[] = {
#define WHOLE_REAL false, false
#define WHOLE_ABOVE false, true
#define WHOLE_INT true, false
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, NONE, ...) \
    {SERVED, NONE ? NONE : LEAST, MOST, WHOLE_##KIND, AT(MEMBER)},
    HN_SAMPLING_NUMBERS(ROW)
#undef ROW
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, MOST_BIASES = 1024 };

static bool number_read(hunch_request *r, int i, const json_t *body, serve_error *err) {
    const char *name = numbers[i].name;
    const json_t *value = serve_field(body, name);
    const double x = json_number_value(value);
    if (!value) return true;
    if (!(numbers[i].whole ? json_is_integer(value) : json_is_number(value)) || x < numbers[i].least || x > numbers[i].most ||
        (numbers[i].above && x == numbers[i].least))
        return serve_fail_value(err, name, value, "%s is not a %snumber %s %.10g%s %.10g", name, numbers[i].whole ? "whole " : "",
                                numbers[i].above ? "above" : "from", numbers[i].least, numbers[i].above ? " and at most" : " to",
                                numbers[i].most);
    if (numbers[i].whole) *(int *)((char *)r + numbers[i].at) = x < 0 ? 0 : (int)x; /* -1: off, or no limit */
    else *(double *)((char *)r + numbers[i].at) = x;
    return true;
}

/* A text, or a list of texts, none of them empty. */
static bool texts_read(const json_t *body, const char *name, int most, const char *const **out, int *n_out, serve_error *err) {
    const json_t *value = serve_field(body, name);
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (!value || n == 0) return true;
    if (n > (size_t)most) return serve_fail(err, 400, name, "%s has %zu texts: at most %d", name, n, most);
    const char **list = serve_alloc(n, sizeof *list);
    *out = list;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        const size_t len = json_string_length(one);
        if (len == 0 || len > HUNCH_MOST_STOP_BYTES)
            return serve_fail(err, 400, name, "%s is not a text, or a list of texts, of 1 to %d bytes each", name, HUNCH_MOST_STOP_BYTES);
        char *copy = serve_alloc(len + 1, 1);
        memcpy(copy, json_string_value(one), len);
        list[(*n_out)++] = copy;
    }
    return true;
}

static bool bias_read(const char *key, const json_t *value, int vocab, hunch_bias *to, serve_error *err) {
    char *end;
    const long id = strtol(key, &end, 10);
    const double bias = json_number_value(value);
    if (end == key || *end || id < 0 || id >= vocab || !json_is_number(value) || !(bias >= -100 && bias <= 100))
        return serve_fail_value(err, "logit_bias", value,
                                "logit_bias is not an object of token ids, 0 to %d, and numbers from -100 to 100: that of %.40s is wrong",
                                vocab - 1, key);
    *to = (hunch_bias){(hunch_token)id, bias <= -100 ? -INFINITY : bias}; /* OpenAI's -100 is a ban */
    return true;
}

static bool biases_read(hunch_request *r, const hunch_model *m, const json_t *body, serve_error *err) {
    hunch_model_info info;
    json_t *object = serve_field(body, "logit_bias");
    const char *key;
    json_t *value;
    const size_t n = json_object_size(object);
    if (!object) return true;
    if (!hn_json_is_object(object) || n > MOST_BIASES)
        return serve_fail(err, 400, "logit_bias", "logit_bias is not an object of at most %d token ids", MOST_BIASES);
    hunch_bias *list = serve_alloc(n, sizeof *list);
    r->sampling.bias = list;
    hunch_model_get_info(m, &info);
    json_object_foreach(object, key, value)
        if (!bias_read(key, value, info.vocab, &list[r->sampling.n_bias++], err)) return false;
    return true;
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

bool serve_sampling_read(hunch_request *r, const hunch_model *m, const json_t *body, serve_error *err) {
    for (int i = 0; i < NUMBERS; i++)
        if (!number_read(r, i, body, err)) return false;
    if (r->sampling.xtc_probability > 0 && r->sampling.xtc_threshold == 0) r->sampling.xtc_threshold = 0.1;
    if (!texts_read(body, "dry_sequence_breakers", HUNCH_MOST_BREAKERS, &r->sampling.dry_breakers, &r->sampling.n_dry_breakers, err))
        return false;
    switched_off(&r->sampling);
    return biases_read(r, m, body, err) && texts_read(body, "stop", HUNCH_MOST_STOPS, &r->stop, &r->n_stop, err);
}
