/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_check.c - checks sampling parameters and writes the errors. Their meaning: hunch.h. */
#include <limits.h>
#include <math.h>

#include "base/mem.h"
#include "base/request_parameters.h"
#include "sample/sampler.h"

/* Inclusive ranges; comparisons are false for NaN. */
static hunch_status check_ranges(const hunch_sampling *p, hunch_error *err) {
    const struct {
        const char *name;
        double value, low, high, usual;
        bool own; /* it has a check of its own below */
        const char *off;
    } range[] = {
#define OWN_REAL false
#define OWN_ABOVE true
#define OWN_INT true
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, NONE, USUAL, OFF, ...) \
    {#ID, p->ID, LEAST, MOST, USUAL, OWN_##KIND, OFF},
        HN_SAMPLING_NUMBERS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++) {
        if (range[i].own || (range[i].usual > 0 && range[i].value == 0)) continue;
        if (!(range[i].value >= range[i].low && range[i].value <= range[i].high))
            return hn_fail(err, HUNCH_USAGE, "%s=%g, expected a number from %g to %g (%s)", range[i].name,
                           range[i].value, range[i].low, range[i].high, range[i].off);
    }
    if (p->top_k < 0) return hn_fail(err, HUNCH_USAGE, "top_k=%d, expected 0 (off) or more", p->top_k);
    if (!(p->top_p > 0 && p->top_p <= 1))
        return hn_fail(err, HUNCH_USAGE, "top_p=%g, expected a number above 0, up to 1 (off)", p->top_p);
    if (p->xtc_probability > 0 && p->xtc_threshold == 0)
        return hn_fail(err, HUNCH_USAGE, "xtc_probability=%g without xtc_threshold, expected one above 0, up to 0.5",
                       p->xtc_probability);
    return HUNCH_OK;
}

static hunch_status check_breakers(const hunch_sampling *p, hunch_error *err) {
    if (p->n_dry_breakers < 0 || (p->n_dry_breakers > 0 && !p->dry_breakers))
        return hn_fail(err, HUNCH_USAGE, "%d dry_breakers, but the array is NULL: expected strings", p->n_dry_breakers);
    for (int i = 0; i < p->n_dry_breakers; i++)
        if (!p->dry_breakers[i] || !p->dry_breakers[i][0])
            return hn_fail(err, HUNCH_USAGE, "dry_breakers[%d] is empty, expected text that ends a repetition", i);
    return HUNCH_OK;
}

static hunch_status check_dry(const hunch_sampling *p, hunch_error *err) {
    enum { MOST_ALLOWED = 1000 };
    if (p->dry_allowed_length < 0 || p->dry_allowed_length > MOST_ALLOWED)
        return hn_fail(err, HUNCH_USAGE, "dry_allowed_length=%d, expected 1 to %d (0: 2)", p->dry_allowed_length,
                       MOST_ALLOWED);
    if (p->dry_range < 0)
        return hn_fail(err, HUNCH_USAGE, "dry_range=%d, expected 0 (the whole text) or more", p->dry_range);
    hunch_status st = check_breakers(p, err);
    if (st || p->dry_multiplier > 0) return st;
    const char *idle = p->dry_base != 0             ? "dry_base"
                       : p->dry_allowed_length != 0 ? "dry_allowed_length"
                       : p->dry_range != 0          ? "dry_range"
                       : p->n_dry_breakers != 0     ? "dry_breakers"
                                                    : NULL;
    return idle ? hn_fail(err, HUNCH_USAGE, "%s without dry_multiplier does nothing, expected dry_multiplier above 0",
                          idle)
                : HUNCH_OK;
}

static hunch_status check_bias_value(const hunch_bias *b, hunch_error *err) {
    const double most = 1e6;
    if (b->bias == -INFINITY || fabs(b->bias) <= most) return HUNCH_OK;
    return hn_fail(err, HUNCH_USAGE, "bias %g on token %d, expected a number from -%g to %g, or -infinity to forbid it",
                   b->bias, b->token, most, most);
}

static hunch_status check_bias(const hunch_sampling *p, int vocab, hunch_error *err) {
    if (p->n_bias < 0 || (p->n_bias > 0 && !p->bias))
        return hn_fail(err, HUNCH_USAGE, "%d biases, but the array is NULL: expected tokens and numbers", p->n_bias);
    for (int i = 0; i < p->n_bias; i++) {
        const hunch_bias *b = &p->bias[i];
        if (vocab > 0 && (b->token < 0 || b->token >= vocab))
            return hn_fail(err, HUNCH_USAGE, "bias on token %d, expected an id of the vocabulary, 0 to %d", b->token,
                           vocab - 1);
        hunch_status st = check_bias_value(b, err);
        if (st) return st;
    }
    return HUNCH_OK;
}

/* Ids are inside the vocabulary. */
static hunch_status check_bias_twice(const hunch_sampling *p, int vocab, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    bool *seen = hn_zalloc((size_t)vocab, sizeof *seen);
    if (!seen) return hn_fail_memory(err, "a check of logit bias", (size_t)vocab);
    for (int i = 0; i < p->n_bias && !st; i++) {
        const hunch_token token = p->bias[i].token;
        if (seen[token])
            st = hn_fail(err, HUNCH_USAGE, "two biases on token %d, expected each token once", token);
        seen[token] = true;
    }
    hn_free(seen);
    return st;
}

hunch_status hn_sampling_check(const hunch_sampling *p, int vocab, hunch_error *err) {
    hunch_status st = check_ranges(p, err);
    if (!st) st = check_dry(p, err);
    if (!st) st = check_bias(p, vocab, err);
    if (!st && p->n_bias > 1 && vocab > 0) st = check_bias_twice(p, vocab, err);
    return st;
}
