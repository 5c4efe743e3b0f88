/* SPDX-License-Identifier: Apache-2.0 */
/* save_head.c - see save_head.h. */
#include "train/save_head.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/mem.h"

/* ---- model.safetensors -------------------------------------------------------------------------------------------------- */

static json_t *entry(const char *type, json_t *shape, size_t *at, size_t bytes) {
    const size_t begin = *at;
    *at += bytes;
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)*at);
}

/* The header of all tensors in the order of writing. */
static json_t *header_of(const hn_head_to_save *h) {
    json_t *all = json_object();
    size_t at = 0;
    for (int i = 0; i < h->n_parts; i++) {
        const hn_mat m = h->part[i].m;
        json_t *shape = m.rows == 1 ? json_pack("[i]", m.cols) : json_pack("[i, i]", m.rows, m.cols);
        for (int k = 0; k < h->part[i].ones; k++) json_array_insert_new(shape, 0, json_integer(1));
        json_object_set_new(all, h->part[i].name, entry("BF16", shape, &at, 2 * (size_t)m.rows * (size_t)m.cols));
    }
    if (h->ids && h->ids_name)
        json_object_set_new(all, h->ids_name, entry("I64", json_pack("[i]", h->vocab), &at, 8 * (size_t)h->vocab));
    else if (h->ids) {
        json_object_set_new(all, "d2t", entry("I64", json_pack("[i]", h->vocab), &at, 8 * (size_t)h->vocab));
        json_object_set_new(all, "t2d", entry("BOOL", json_pack("[i]", h->target_vocab), &at, (size_t)h->target_vocab));
    }
    return all;
}

/* The row for row i of the file: alternately from the halves of each head. */
static int row_of(const hn_saved_part *p, int i) {
    const int dim = p->turned, in = dim ? i % dim : 0;
    return dim ? i - in + in % 2 * (dim / 2) + in / 2 : i;
}

static hunch_status write_parts(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int part = 0; !st && part < h->n_parts; part++) {
        const hn_mat m = h->part[part].m;
        uint16_t *row = hn_alloc((size_t)m.cols * sizeof *row);
        float *floats = hn_alloc((size_t)m.cols * sizeof *floats);
        if (!row || !floats) st = hn_fail_memory(err, "a row", (size_t)m.cols * sizeof *floats);
        for (int i = 0; !st && i < m.rows; i++) {
            for (int k = 0; k < m.cols; k++) floats[k] = (float)hn_mat_row(m, row_of(&h->part[part], i))[k];
            hn_quantise(HN_BF16, floats, (size_t)m.cols, row);
            st = hn_out_write(out, row, (size_t)m.cols * sizeof *row, err);
        }
        hn_free(row);
        hn_free(floats);
    }
    return st;
}

static hunch_status write_ids(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    const bool offsets = !h->ids_name || !strcmp(h->ids_name, "d2t");
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < h->vocab; i++) {
        const int64_t number = h->ids[i] - (offsets ? i : 0);
        st = hn_out_write(out, &number, sizeof number, err);
    }
    for (int t = 0, i = 0; !st && !h->ids_name && t < h->target_vocab; t++) {
        const unsigned char kept = i < h->vocab && h->ids[i] == t;
        i += kept;
        st = hn_out_write(out, &kept, 1, err);
    }
    return st;
}

/* The JSON text padded with spaces to a multiple of 8. */
static hunch_status write_header(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    json_t *header = header_of(h);
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    if (!text) return hn_fail_memory(err, "a header", 0);
    const uint64_t n = strlen(text), padded = (n + 7) / 8 * 8;
    hunch_status st = hn_out_write(out, &padded, sizeof padded, err);
    if (!st) st = hn_out_write(out, text, n, err);
    if (!st) st = hn_out_write(out, "        ", padded - n, err);
    free(text);
    return st;
}

static hunch_status write_tensors(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    hunch_status st = write_header(h, out, err);
    if (!st) st = write_parts(h, out, err);
    return st || !h->ids ? st : write_ids(h, out, err);
}

static hunch_status write_config(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    char *text = h->config ? json_dumps(h->config, JSON_INDENT(1)) : NULL;
    hunch_status st = text ? hn_out_write(out, text, strlen(text), err) : hn_fail_memory(err, "config.json", 0);
    free(text);
    return st;
}

static hunch_status write_commonest(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < h->vocab; i++) {
        char text[16];
        const int n =
            snprintf(text, sizeof text, "%c%d%s", i ? ',' : '[', h->commonest[i], i + 1 < h->vocab ? "" : "]\n");
        st = hn_out_write(out, text, (size_t)n, err);
    }
    return st;
}

static hunch_status write_file(const hn_head_to_save *h, const char *folder, const char *name,
                               hunch_status (*write)(const hn_head_to_save *h, hn_out *out, hunch_error *err),
                               hunch_error *err) {
    char *path = hn_path_join(folder, name);
    hn_out *out = NULL;
    hunch_status st = path ? hn_out_open(&out, path, false, err) : hn_fail_memory(err, name, 0);
    if (!st) st = write(h, out, err);
    if (!st)
        st = hn_out_finish(&out, err);
    else
        hn_out_abort(&out);
    hn_free(path);
    return st;
}

hunch_status hn_head_save(const hn_head_to_save *h, const char *folder, hunch_error *err) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", folder, strerror(errno));
    hunch_status st = write_file(h, folder, "model.safetensors", write_tensors, err);
    if (!st && h->commonest) st = write_file(h, folder, "tokens.json", write_commonest, err);
    return st ? st : write_file(h, folder, "config.json", write_config, err);
}
