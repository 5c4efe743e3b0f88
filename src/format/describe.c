/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - a source as JSON, for `hunch inspect`.
 *
 *     {"format": "gguf" or "hf", "path": …, "files": number of files with tensors, "metadata": {key: value, …},
 *      "tensors": [{"name", "type", "shape", "bytes", "used"}, …], "tensor_bytes": n, and the keys of describe_summary.c}
 *
 * Arrays of more than 16 elements appear as {"type", "count", "first": [8 of them]}. Files may hold any bytes: invalid
 * UTF-8 appears as U+FFFD, numbers that JSON cannot hold as null.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "format/source_private.h"

enum { DESCRIBE_ARRAY_MAX = 16, DESCRIBE_ARRAY_FIRST = 8, DESCRIBE_MAX_DEPTH = 32 };

/* NULL: no memory; so for all functions here that return JSON. */
json_t *hn_json_from_bytes(const char *bytes, size_t len) {
    static const char replacement[] = "\xEF\xBF\xBD";
    char *clean = hn_alloc(len * 3 + 1); /* len is of mapped bytes: no overflow */
    if (clean == NULL)
        return NULL;
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        int step = hn_utf8_decode(bytes + i, len - i, &cp);
        memcpy(clean + n, step > 0 ? bytes + i : replacement, step > 0 ? (size_t)step : 3);
        n += step > 0 ? (size_t)step : 3;
        i += step > 0 ? (size_t)step : 1;
    }
    json_t *out = json_stringn_nocheck(clean, n);
    hn_free(clean);
    return out;
}

static json_t *uint_describe(uint64_t u) {
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, u);
    return u <= INT64_MAX ? json_integer((json_int_t)u) : hn_json_big(digits, (size_t)n);
}

static json_t *value_describe(const hn_value *v) {
    switch (v->kind) {
    case HN_VALUE_UINT: return uint_describe(v->u);
    case HN_VALUE_INT: return json_integer(v->i);
    case HN_VALUE_FLOAT: return isfinite(v->f) ? json_real(v->f) : json_null();
    case HN_VALUE_BOOL: return json_boolean(v->b);
    case HN_VALUE_STRING: return hn_json_from_bytes(v->str, v->len);
    default: return json_null();
    }
}

static json_t *array_describe(const hn_array *a) {
    bool nested = a->type == HN_GGUF_ARRAY, whole = a->count <= DESCRIBE_ARRAY_MAX && !nested;
    size_t n = nested ? 0 : whole ? a->count : DESCRIBE_ARRAY_FIRST, bytes = hn_gguf_type_bytes(a->type);
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        hn_value v = {.kind = HN_VALUE_STRING};
        if (a->type == HN_GGUF_STRING) {
            v.str = a->strings[i].bytes;
            v.len = a->strings[i].len;
        } else {
            hn_gguf_number(a->type, a->data + i * bytes, &v);
        }
        ok = json_array_append_new(list, value_describe(&v)) == 0;
    }
    if (ok && whole)
        return list;
    json_t *out = NULL;
    if (ok)
        out = json_pack("{s:s, s:I, s:O}", "type", hn_gguf_type_name(a->type), "count", (json_int_t)a->count, "first",
                        list);
    json_decref(list);
    return out;
}

static json_t *gguf_describe(const hn_source *s) {
    json_t *out = json_object();
    for (size_t i = 0; i < s->n_metas && out != NULL; i++) {
        const hn_meta *m = &s->metas[i];
        json_t *value = m->type == HN_GGUF_ARRAY ? array_describe(&m->array) : value_describe(&m->value);
        if (json_object_set_new(out, m->key, value) != 0) {
            json_decref(out);
            out = NULL;
        }
    }
    return out;
}

/* A copy of config.json with its long arrays shortened. */
static json_t *json_describe(const json_t *in, int depth) {
    if (depth > DESCRIBE_MAX_DEPTH)
        return json_null();
    bool ok = true;
    if (hn_json_is_object(in)) {
        json_t *out = json_object(), *value;
        const char *key;
        json_object_foreach ((json_t *)(uintptr_t)in, key, value)
            ok = ok && json_object_set_new(out, key, json_describe(value, depth + 1)) == 0;
        if (!ok) {
            json_decref(out);
            out = NULL;
        }
        return out;
    }
    if (!json_is_array(in))
        return json_deep_copy(in); /* of a large number (json_load.h) all */
    json_t *list = json_array();
    size_t count = json_array_size(in), n = count <= DESCRIBE_ARRAY_MAX ? count : DESCRIBE_ARRAY_FIRST;
    for (size_t i = 0; i < n && ok; i++)
        ok = json_array_append_new(list, json_describe(json_array_get(in, i), depth + 1)) == 0;
    if (ok && n == count)
        return list;
    json_t *out = ok ? json_pack("{s:s, s:I, s:O}", "type", "array", "count", (json_int_t)count, "first", list) : NULL;
    json_decref(list);
    return out;
}

static json_t *tensor_describe(const hn_tensor *t) {
    json_t *shape = json_array();
    for (int i = 0; i < t->n_dims && shape != NULL; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)t->dims[i])) != 0) {
            json_decref(shape);
            shape = NULL; /* "o" below refuses it */
        }
    }
    return json_pack("{s:s, s:s, s:o, s:I, s:b}", "name", t->name, "type", t->type_name, "shape", shape, "bytes",
                     (json_int_t)t->bytes, "used", (int)t->used);
}

static json_t *tensors_describe(const hn_source *s, uint64_t *bytes) {
    json_t *list = json_array();
    *bytes = 0;
    for (size_t i = 0; i < s->n_tensors && list != NULL; i++) {
        *bytes += s->tensors[i].bytes;
        if (json_array_append_new(list, tensor_describe(&s->tensors[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

hunch_status hn_source_describe(const hn_source *s, json_t **out, hunch_error *err) {
    uint64_t bytes;
    const json_t *config = s->documents[HN_HF_CONFIG];
    json_t *metadata = config != NULL ? json_describe(config, 0) : gguf_describe(s);
    json_t *tensors = tensors_describe(s, &bytes);
    json_t *path = hn_json_from_bytes(s->path, strlen(s->path));
    json_t *summary = hn_describe_summary(s);
    /* "o" passes ownership of each part, and frees all of them if one is NULL */
    *out = json_pack("{s:s, s:o, s:I, s:o, s:o, s:I}", "format", s->kind == HN_SOURCE_GGUF ? "gguf" : "hf", "path",
                     path, "files", (json_int_t)s->n_files, "metadata", metadata, "tensors", tensors, "tensor_bytes",
                     (json_int_t)bytes);
    if (*out != NULL && (summary == NULL || json_object_update(*out, summary) != 0)) {
        json_decref(*out);
        *out = NULL;
    }
    json_decref(summary);
    return *out != NULL ? HUNCH_OK : hn_fail_memory(err, "the description of a model", s->n_tensors * 100);
}
