/* SPDX-License-Identifier: Apache-2.0 */
/* key_read.c - reads keys within their bounds into a description. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schema/key_rows.h"
#include "schema/key_order.h"

/* ---- one number --------------------------------------------------------------------------------------------------------- */

static const char *key_name(const hn_source *src, const hn_key *k) {
    return hn_source_get_kind(src) == HN_SOURCE_GGUF ? k->gguf : k->hf;
}

static hunch_status fail_missing(const hn_source *src, const char *key, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing", hn_source_path(src), key);
}

/* A GGUF's key may have a list, a number for each layer, where one for all is asked for: it is that number if all are equal. *found: the
 * key is such a list. */
static hunch_status equal_list(const hn_source *src, const char *key, double *out, bool *found, hunch_error *err) {
    const hn_array *list = NULL;
    *found = !hn_source_array(src, key, &list, NULL) && list && !hn_array_is_strings(list) && hn_array_count(list) > 0;
    if (!*found) return HUNCH_OK;
    *out = hn_array_number(list, 0);
    for (size_t i = 1; i < hn_array_count(list); i++)
        if (hn_array_number(list, i) != *out)
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: %s is a list, %g of layer 0 and %g of layer %zu, expected one number for all",
                           hn_source_path(src), key, *out, hn_array_number(list, i), i);
    return HUNCH_OK;
}

static hunch_status number_read(const hn_source *src, const char *key, double *out, bool *found, hunch_error *err) {
    const hunch_status st = equal_list(src, key, out, found, err);
    return st || *found ? st : hn_source_f64(src, key, out, found, err);
}

static hunch_status whole_read(const hn_source *src, const char *key, uint64_t *out, bool *found, hunch_error *err) {
    double v = 0;
    hunch_status st = equal_list(src, key, &v, found, err);
    if (st || !*found) return st ? st : hn_source_u64(src, key, out, found, err);
    if (!(v >= 0 && v <= 9007199254740992.0 && v == floor(v)))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is a list of %g; expected whole numbers, 0 or more",
                       hn_source_path(src), key, v);
    *out = (uint64_t)v;
    return HUNCH_OK;
}

/* A whole number, or any, within its bounds. */
static hunch_status bounded_read(const hn_source *src, const char *key, bool whole, double least, double most, double *v, bool *found,
                                 hunch_error *err) {
    uint64_t n = 0;
    hunch_status st = whole ? whole_read(src, key, &n, found, err) : number_read(src, key, v, found, err);
    if (st || !*found) return st;
    if (whole) *v = (double)n;
    if (*v >= least && *v <= most) return HUNCH_OK;
    return whole ? hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected %g to %g", hn_source_path(src), key, (unsigned long long)n, least,
                           most)
                 : hn_fail(err, HUNCH_REFUSED, "%s: %s is %g, expected %g to %g", hn_source_path(src), key, *v, least, most);
}

static hunch_status key_read(const hn_source *src, const hn_key *k, bool whole, double *out, hunch_error *err) {
    const char *key = key_name(src, k);
    bool found = false;
    double v = k->dflt;
    hunch_status st = key ? bounded_read(src, key, whole, k->min, k->max, &v, &found, err) : HUNCH_OK;
    if (!st && !found && isnan(k->dflt)) st = fail_missing(src, key ? key : k->gguf, err);
    if (!st) *out = v;
    return st;
}

hunch_status hn_key_real(const hn_source *src, const hn_key *k, double *out, hunch_error *err) {
    return key_read(src, k, false, out, err);
}

hunch_status hn_key_int(const hn_source *src, const hn_key *k, int *out, hunch_error *err) {
    double v = 0;
    const hunch_status st = key_read(src, k, true, &v, err);
    if (!st) *out = (int)v;
    return st;
}

/* The same of a key whose value in a GGUF may be a list with one for each layer. */
static hunch_status key_of_layer(const hn_source *src, const hn_key *k, bool whole, int layer, double *out, hunch_error *err) {
    const hn_array *list = NULL;
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    if (!gguf || hn_source_array(src, k->gguf, &list, NULL) || !list) return key_read(src, k, whole, out, err);
    if (hn_array_is_strings(list) || hn_array_count(list) <= (size_t)layer)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is a list of %zu, expected a number for each layer", hn_source_path(src), k->gguf,
                       hn_array_count(list));
    const double v = hn_array_number(list, (size_t)layer);
    if (!(v >= k->min && v <= k->max))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %g for layer %d, expected %g to %g", hn_source_path(src), k->gguf, v, layer, k->min,
                       k->max);
    *out = v;
    return HUNCH_OK;
}

/* ---- a row --------------------------------------------------------------------------------------------------------------- */

static void field_set(const hn_key_reading *r, const hn_key_row *k, double v) {
    void *to = k->of == HN_OF_MODEL ? (char *)r->a + k->at : (char *)r->l + k->at;
    const float f = (float)v;
    const int n = k->type == HN_KEY_FLOAT || k->type == HN_KEY_REAL ? 0 : (int)v;
    const bool is = v != 0;
    const void *from = k->type == HN_KEY_REAL ? (const void *)&v : k->type == HN_KEY_FLOAT ? (const void *)&f
                     : k->type == HN_KEY_BOOL ? (const void *)&is : (const void *)&n;
    if (k->of != HN_OF_NOTHING) memcpy(to, from, hn_key_bytes(k->type));
}

static hunch_status refuse(const hn_key_reading *r, const hn_key_row *k, const char *key, double v, hunch_error *err) {
    const char *path = hn_source_path(r->src), *family = r->schema->prefix;
    if (k->type == HN_KEY_BOOL && v == 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is false, expected true of %s", path, key, family);
    if (k->type == HN_KEY_BOOL) return hn_fail(err, HUNCH_REFUSED, "%s: %s is true: %s models are read without", path, key, family);
    return k->words ? hn_fail(err, HUNCH_REFUSED, "%s: %g %s: only dense %s models are read", path, v, k->words, family)
                    : hn_fail(err, HUNCH_REFUSED, "%s: %s is %g: %s models are read without", path, key, v, family);
}

/* The number of a word, of those from least to most; words between bars mean the same. */
static hunch_status word_read(const hn_key_reading *r, const hn_key_row *k, const char *key, double *v, bool *found, hunch_error *err) {
    const char *said = "";
    char word[96], expected[200] = "";
    hunch_status st = hn_source_str(r->src, key, &said, NULL, found, err);
    if (st || !*found) return st;
    for (int i = 0; hn_keys_word(k->words, i, word); i++) {
        if (i < (int)k->least || i > (int)k->most) continue;
        *v = i;
        for (char *rest = word, *one = strsep(&rest, "|"); one; one = strsep(&rest, "|")) {
            if (!strcmp(said, one)) return HUNCH_OK;
            snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s", *expected ? " or " : "", one);
        }
    }
    return hn_fail(err, HUNCH_REFUSED, "%s: %s is \"%.40s\", expected %s", hn_source_path(r->src), key, said, expected);
}

static hunch_status value_read(const hn_key_reading *r, const hn_key_row *k, const char *key, double *v, bool *found, hunch_error *err) {
    const bool refuses = hn_keys_refuses(k), gguf = hn_source_get_kind(r->src) == HN_SOURCE_GGUF;
    const double least = gguf && k->how & HN_ZERO_IS_NONE ? 0 : k->least, most = refuses ? 1e9 : k->up_to ? k->up_to(r->a) : k->most;
    bool is = false;
    if (k->type == HN_KEY_WORD) return word_read(r, k, key, v, found, err);
    if (k->type != HN_KEY_BOOL) return bounded_read(r->src, key, k->type == HN_KEY_INT, least, most, v, found, err);
    const hunch_status st = hn_source_bool(r->src, key, &is, found, err);
    if (!st && *found) *v = is;
    return st || !*found || (*v >= k->least && *v <= k->most) ? st : refuse(r, k, key, *v, err);
}

/* The whole of a row's name. */
static void key_of(const hn_key_reading *r, const char *name, char out[200]) {
    const bool gguf = hn_source_get_kind(r->src) == HN_SOURCE_GGUF, placed = !gguf && *name == '@';
    snprintf(out, 200, "%s%s%s", gguf ? r->schema->prefix : placed ? r->place : "", gguf || placed ? "." : "", placed ? name + 1 : name);
}

/* What the row's names say, the first that there is. */
static hunch_status names_read(const hn_key_reading *r, const hn_key_row *k, double *v, bool *found, hunch_error *err) {
    const hn_source_kind form = hn_source_get_kind(r->src);
    const bool gguf = form == HN_SOURCE_GGUF;
    char name[96], key[200];
    hunch_status st = HUNCH_OK;
    if (gguf && k->how & HN_GGUF_WRITTEN) return HUNCH_OK;
    for (int i = 0; !st && !*found && hn_keys_word(gguf ? k->gguf : k->folder, i, name); i++) {
        if (hn_keys_refuses(k) && hn_keys_reads(r->schema, form, name)) continue;
        if (*name == '?') {
            *v = hn_source_find(r->src, name + 1) != NULL;
            *found = *v != 0;
            continue;
        }
        key_of(r, name, key);
        if (!gguf && k->how & HN_NOT_NULL && hn_source_is_null(r->src, key))
            return hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s is null, expected a value", hn_source_path(r->src), key);
        st = value_read(r, k, key, v, found, err);
        if (!st && *found && hn_keys_refuses(k) && *v > 0) st = refuse(r, k, key, *v, err);
        if (*found && gguf && k->how & HN_ZERO_IS_NONE && *v == 0) *found = false;
    }
    return st;
}

static double usual_of(const hn_key_reading *r, const hn_key_row *k) {
    return k->follows ? k->follows(r->a, r->l) : k->usual[hn_source_get_kind(r->src)];
}

/* A number of each layer: that of number `layer`. */
static hunch_status each_read(const hn_key_reading *r, const hn_key_row *k, int layer, double *v, hunch_error *err) {
    char name[96], gguf[200];
    snprintf(gguf, sizeof gguf, "%s.%s", r->schema->prefix, hn_keys_word(k->gguf, 0, name) ? name : "");
    const hn_key key = {gguf, NULL, k->least, k->most, usual_of(r, k)};
    return key_of_layer(r->src, &key, k->type == HN_KEY_INT, layer, v, err);
}

static hunch_status row_read(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    bool found = false;
    char name[200];
    if (k->how & HN_EACH && hn_source_get_kind(r->src) == HN_SOURCE_GGUF) return each_read(r, k, 0, v, err);
    if (k->read) return k->read(r, k, v, err);
    const hunch_status st = names_read(r, k, v, &found, err);
    if (st || found) return st;
    *v = usual_of(r, k);
    if (!isnan(*v)) return HUNCH_OK;
    const bool gguf = hn_source_get_kind(r->src) == HN_SOURCE_GGUF || !k->folder;
    char word[96];
    key_of(r, hn_keys_word(gguf ? k->gguf : k->folder, 0, word) ? word : "", name);
    return fail_missing(r->src, name, err);
}

static hunch_status rows_read(const hn_key_reading *r, bool first, hunch_error *err) {
    hn_keys_place at = {0, 0};
    hunch_status st = HUNCH_OK;
    for (const hn_key_row *k; !st && (k = hn_keys_next(r->schema, &at));) {
        double v = 0;
        if (k->how & HN_LATER || k->type == HN_KEY_LIST || k->type == HN_KEY_CLAIM || !(k->how & HN_FIRST) == first) continue;
        st = row_read(r, k, &v, err);
        if (!st) field_set(r, k, v);
    }
    return st;
}

hunch_status hn_keys_read(const hn_key_reading *r, hunch_error *err) {
    const hunch_status st = rows_read(r, true, err);
    return st ? st : rows_read(r, false, err);
}

hunch_status hn_keys_read_at(const hn_key_reading *r, hn_key_of of, size_t at, double *value, hunch_error *err) {
    return row_read(r, hn_keys_row(r->schema, of, at), value, err);
}

hunch_status hn_keys_take(const hn_key_reading *r, hn_key_of of, const size_t *at, int n, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < n; i++) {
        const hn_key_row *k = hn_keys_row(r->schema, of, at[i]);
        double v = 0;
        st = row_read(r, k, &v, err);
        if (!st) field_set(r, k, v);
    }
    return st;
}

hunch_status hn_keys_read_layer(const hn_key_reading *r, int layer, hunch_error *err) {
    hn_keys_place at = {0, 0};
    hunch_status st = HUNCH_OK;
    for (const hn_key_row *k; !st && (k = hn_keys_next(r->schema, &at));) {
        double v = 0;
        if (!(k->how & HN_EACH) || hn_source_get_kind(r->src) != HN_SOURCE_GGUF) continue;
        st = each_read(r, k, layer, &v, err);
        if (!st) field_set(r, k, v);
    }
    return st;
}
