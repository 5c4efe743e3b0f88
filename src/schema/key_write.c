/* SPDX-License-Identifier: Apache-2.0 */
/* key_write.c - writes the keys of a GGUF from a description. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "schema/key_rows.h"
#include "schema/key_order.h"

static const struct hn_layer_desc *layer_at(const hn_record *from, int layer) {
    return (const void *)((const char *)from->layer + (size_t)layer * from->layer_bytes);
}

static double field_get(const hn_record *from, const hn_key_row *k, int layer) {
    const char *at = k->of == HN_OF_MODEL ? (const char *)from->a : (const char *)layer_at(from, layer);
    double v;
    float f;
    int n;
    bool is;
    if (k->of == HN_OF_NOTHING || (k->of == HN_OF_LAYER && from->layers == 0)) return 0;
    switch (k->type) {
    case HN_KEY_REAL: memcpy(&v, at + k->at, sizeof v); return v;
    case HN_KEY_FLOAT: memcpy(&f, at + k->at, sizeof f); return (double)f;
    case HN_KEY_BOOL: memcpy(&is, at + k->at, sizeof is); return is;
    default: memcpy(&n, at + k->at, sizeof n); return n;
    }
}

static hunch_status list_write(const hn_record *from, hn_gguf_writer *w, const char *key, int (*each)(const struct hn_layer_desc *),
                               hunch_error *err) {
    const size_t n = (size_t)from->layers;
    int32_t *list = hn_alloc(n * sizeof *list);
    if (!list) return hn_fail_memory(err, "a list of layers", n * sizeof *list);
    for (size_t i = 0; i < n; i++) list[i] = each(layer_at(from, (int)i));
    hunch_status st = hn_gguf_put_i32s(w, key, list, n, err);
    hn_free(list);
    return st;
}

/* Numbers that need not be whole, always as a list. */
static hunch_status floats_write(const hn_record *from, const hn_key_row *k, hn_gguf_writer *w, const char *key, hunch_error *err) {
    const size_t n = (size_t)from->layers;
    float *list = hn_alloc(n * sizeof *list);
    if (!list) return hn_fail_memory(err, "a list of layers", n * sizeof *list);
    for (size_t i = 0; i < n; i++) list[i] = (float)field_get(from, k, (int)i);
    hunch_status st = hn_gguf_put_f32s(w, key, list, n, err);
    hn_free(list);
    return st;
}

/* A number of each layer: one if all are equal, else a list. */
static hunch_status each_write(const hn_record *from, const hn_key_row *k, hn_gguf_writer *w, const char *key, hunch_error *err) {
    const size_t n = (size_t)from->layers;
    if (k->type == HN_KEY_FLOAT) return floats_write(from, k, w, key, err);
    bool equal = true;
    int32_t *list = hn_alloc(n * sizeof *list);
    if (!list) return hn_fail_memory(err, "a list of layers", n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = (int32_t)field_get(from, k, (int)i);
        equal = equal && list[i] == list[0];
    }
    hunch_status st = equal ? hn_gguf_put_u32(w, key, (uint32_t)list[0], err) : hn_gguf_put_i32s(w, key, list, n, err);
    hn_free(list);
    return st;
}

static bool is_written(const hn_record *from, const hn_key_row *k, double *v) {
    const float usual = (float)k->usual[HN_SOURCE_GGUF];
    if (!k->gguf || *k->gguf == '?' || k->how & HN_NEVER_WRITTEN || k->type == HN_KEY_CLAIM || hn_keys_refuses(k)) return false;
    if (k->written && !k->written(from->a, k, v)) return false;
    return !(k->how & HN_IF_SET && *v == 0) && !(k->how & HN_UNUSUAL && (float)*v == usual);
}

static hunch_status row_write(const hn_file_keys *s, const hn_record *from, const hn_key_row *k, hn_gguf_writer *w, hunch_error *err) {
    char name[96], word[96], key[200];
    int32_t list[8];
    double v = field_get(from, k, k->of == HN_OF_LAYER ? from->layer_of(from->a, k->at) : 0);
    if (!is_written(from, k, &v)) return HUNCH_OK;
    snprintf(key, sizeof key, "%s.%s", s->prefix, hn_keys_word(k->gguf, 0, name));
    if (k->how & HN_EACH) return each_write(from, k, w, key, err);
    switch (k->type) {
    case HN_KEY_INT: return hn_gguf_put_u32(w, key, (uint32_t)v, err);
    case HN_KEY_FLOAT:
    case HN_KEY_REAL: return hn_gguf_put_f32(w, key, (float)v, err);
    case HN_KEY_BOOL: return hn_gguf_put_bool(w, key, v != 0, err);
    case HN_KEY_WORD: return hn_gguf_put_str(w, key, word, strlen(hn_keys_word(k->words, (int)v, word)), err);
    case HN_KEY_LIST: return k->fill ? hn_gguf_put_i32s(w, key, list, (size_t)k->fill(from->a, list), err)
                                     : list_write(from, w, key, k->each, err);
    case HN_KEY_CLAIM:
    case HN_KEY_END: break;
    }
    return HUNCH_OK;
}

hunch_status hn_keys_write(const hn_file_keys *s, const hn_record *from, hn_gguf_writer *w, hunch_error *err) {
    hn_keys_place at = {0, 0};
    hunch_status st = HUNCH_OK;
    for (const hn_key_row *k; !st && (k = hn_keys_next(s, &at));) st = row_write(s, from, k, w, err);
    return st;
}
