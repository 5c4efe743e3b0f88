/* SPDX-License-Identifier: Apache-2.0 */
/* cost_file.c - the file of a cost curve (cost.h): JSON,
 *   {"format":2, "key":TEXT, "speed":s, "shape":[[rows, ratio, variance]...], "parts":[[price, variance] a kind of hn_cost_kind]}
 *
 * of a model with experts also "experts":[each, variance, fresh, alike]: a file without it has shapes of another kind.
 * Numbers are untrusted: an impossible one makes the file count as damaged, and a damaged file as none.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/file_out.h"
#include "base/mem.h"
#include "base/json_load.h"
#include "plan/cost.h"

enum { FORMAT = 2, MAX_BYTES = 1 << 20 };
static const double LOADED_VARIANCE = 0.04; /* of the speed: it was measured earlier */
static const double LOADED_SHAPE_VARIANCE = 2e-4;
static const double MOST_RATIO = 1000;
static const double LOADED_PASSES = 4; /* passes that the distinct experts of earlier texts count for */
static const double LEAST_FRESH = 1e-3;

/* A number in (0, most]. */
static bool number_read(const json_t *v, double most, double *out) {
    *out = json_number_value(v);
    return json_is_number(v) && *out > 0 && *out <= most;
}

/* A number in [0, most]. */
static bool number_or_zero_read(const json_t *v, double most, double *out) {
    return number_read(v, most, out) || (json_is_number(v) && *out == 0);
}

static bool integer_read(const json_t *v, int least, int most, int *out) {
    const json_int_t i = json_integer_value(v);
    if (!json_is_integer(v) || i < least || i > most) return false;
    *out = (int)i;
    return true;
}

static bool shape_read(hn_cost *c, const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        int rows;
        double ratio, variance;
        if (!json_is_array(row) || json_array_size(row) != 3) return false;
        if (!integer_read(json_array_get(row, 0), 2, HN_COST_ROWS, &rows)) return false;
        if (!number_read(json_array_get(row, 1), MOST_RATIO, &ratio)) return false;
        if (!number_read(json_array_get(row, 2), 1, &variance)) return false;
        c->shape[rows].ratio = ratio;
        c->shape[rows].variance = fmax(variance, LOADED_SHAPE_VARIANCE);
    }
    return json_is_array(list);
}

static bool parts_read(hn_cost *c, const json_t *list) {
    if (!json_is_array(list) || json_array_size(list) != HN_COST_KINDS) return false;
    for (size_t k = 0; k < HN_COST_KINDS; k++) {
        const json_t *part = json_array_get(list, k);
        if (!json_is_array(part) || json_array_size(part) != 2) return false;
        if (!number_read(json_array_get(part, 0), MOST_RATIO, &c->part[k].each)) return false;
        if (!hn_cost_price_can_be((hn_cost_kind)k, c->part[k].each)) return false;
        if (!number_read(json_array_get(part, 1), 1, &c->part[k].variance)) return false;
    }
    return true;
}

static bool experts_read(hn_cost_experts *x, const json_t *list) {
    if (x->count == 0) return !list;
    if (!json_is_array(list) || json_array_size(list) != 4) return false;
    if (!number_read(json_array_get(list, 0), MOST_RATIO, &x->each)) return false;
    if (!number_read(json_array_get(list, 1), 1, &x->variance)) return false;
    double alike;
    if (!number_read(json_array_get(list, 2), HN_COST_FRESH, &x->fresh)) return false;
    if (!number_or_zero_read(json_array_get(list, 3), HN_COST_ALIKE, &alike)) return false;
    hn_cost_set_alike(x, alike, LOADED_PASSES);
    return true;
}

static bool cost_read(hn_cost *c, const json_t *o, const char *key) {
    int format;
    const json_t *name = json_object_get(o, "key");
    if (!integer_read(json_object_get(o, "format"), FORMAT, FORMAT, &format)) return false;
    if (!json_is_string(name) || strcmp(json_string_value(name), key) != 0) return false;
    if (!number_read(json_object_get(o, "speed"), HN_COST_MOST_SECONDS, &c->speed)) return false;
    c->variance = LOADED_VARIANCE;
    if (!experts_read(&c->experts, json_object_get(o, "experts"))) return false;
    return parts_read(c, json_object_get(o, "parts")) && shape_read(c, json_object_get(o, "shape"));
}

hunch_status hn_cost_load(hn_cost *c, const char *path, const char *key, bool *found, hunch_error *err) {
    char *text = NULL;
    size_t size = 0;
    hn_cost read;
    *found = false;
    if (!hn_is_file(path)) return HUNCH_OK;
    const hunch_status st = hn_file_read(path, MAX_BYTES, &text, &size, NULL);
    if (st == HUNCH_NO_MEMORY) return hn_fail_memory(err, path, size);
    if (st) return HUNCH_OK;
    json_t *o = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    hn_free(text);
    hn_cost_init(&read);
    read.experts = c->experts;
    read.output = c->output;
    *found = o && cost_read(&read, o, key);
    if (*found) *c = read;
    json_decref(o);
    return HUNCH_OK;
}

/* Takes key. NULL: no memory. */
static json_t *cost_write(const hn_cost *c, json_t *key) {
    json_t *parts = json_array(), *shape = json_array();
    bool whole = parts && shape;
    for (int k = 0; whole && k < HN_COST_KINDS; k++)
        whole = json_array_append_new(parts, json_pack("[f,f]", c->part[k].each, c->part[k].variance)) == 0;
    for (int r = 2; whole && r <= HN_COST_ROWS; r++) {
        const double ratio = c->shape[r].ratio, variance = c->shape[r].variance;
        if (variance > 0 && ratio > 0 && ratio <= MOST_RATIO)
            whole = json_array_append_new(shape, json_pack("[i,f,f]", r, ratio, variance)) == 0;
    }
    json_t *o = json_pack("{s:i, s:o, s:f, s:o, s:o}", "format", FORMAT, "key", key, "speed", c->speed, "parts", parts, "shape", shape);
    const hn_cost_experts *x = &c->experts;
    if (o && x->count > 0) {
        const double fresh = fmax(hn_cost_fresh(x, 2), LEAST_FRESH);
        whole = whole && json_object_set_new(o, "experts", json_pack("[f,f,f,f]", x->each, x->variance, fresh, x->alike)) == 0;
    }
    if (whole) return o;
    json_decref(o);
    return NULL;
}

hunch_status hn_cost_save(const hn_cost *c, const char *path, const char *key, hunch_error *err) {
    if (c->speed <= 0) return HUNCH_OK;
    json_t *name = json_string(key);
    if (!name) return hn_fail(err, HUNCH_FAILED, "%s: its key is no UTF-8", path);
    json_t *o = cost_write(c, name);
    char *text = o ? hn_json_dump(o, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(o);
    if (!text) return hn_fail_memory(err, path, 0);
    hn_out *out;
    hunch_status st = hn_out_open(&out, path, true, err); /* readable by every process that runs this model */
    if (!st) {
        st = hn_out_write(out, text, strlen(text), err);
        if (st)
            hn_out_abort(&out);
        else
            st = hn_out_finish(&out, err);
    }
    hn_free(text);
    return st;
}
