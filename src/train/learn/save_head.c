/* SPDX-License-Identifier: Apache-2.0 */
/* save_head.c - see save_head.h. */
#include "train/learn/save_head.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/json_load.h"
#include "base/mem.h"

/* ---- model.safetensors -------------------------------------------------------------------------------------------------- */

/* Adds a tensor of `bytes` bytes from *at on, which moves behind it. */
static void add_entry(json_t **all, const char *name, const char *type, json_t *shape, size_t *at, size_t bytes) {
    const size_t begin = *at;
    *at += bytes;
    hn_config_put(all, name, json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape, "data_offsets", (json_int_t)begin,
                                       (json_int_t)*at));
}

static json_t *shape_of(const hn_saved_part *p) {
    json_t *shape = json_array();
    for (int k = 0; k < p->ones; k++) hn_config_append(&shape, json_integer(1));
    if (p->m.rows > 1) hn_config_append(&shape, json_integer(p->m.rows));
    hn_config_append(&shape, json_integer(p->m.cols));
    return shape;
}

static json_t *list_shape(int n) {
    return json_pack("[i]", n);
}

/* The header of all tensors in the order of writing; NULL: no memory. */
static json_t *header_of(const hn_head_to_save *h) {
    json_t *all = json_object();
    const size_t vocab = (size_t)h->vocab;
    size_t at = 0;
    for (int i = 0; i < h->n_parts; i++) {
        const hn_mat m = h->part[i].m;
        add_entry(&all, h->part[i].name, "BF16", shape_of(&h->part[i]), &at, 2 * (size_t)m.rows * (size_t)m.cols);
    }
    if (h->ids) add_entry(&all, h->ids_name ? h->ids_name : "d2t", "I64", list_shape(h->vocab), &at, 8 * vocab);
    if (h->ids && !h->ids_name) add_entry(&all, "t2d", "BOOL", list_shape(h->target_vocab), &at, (size_t)h->target_vocab);
    if (h->order) add_entry(&all, "masked_embedding.token_ordering", "I64", list_shape(h->vocab), &at, 8 * vocab);
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

static hunch_status write_order(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < h->vocab; i++) {
        const int64_t output = h->order[i];
        st = hn_out_write(out, &output, sizeof output, err);
    }
    return st;
}

/* The JSON text padded with spaces to a multiple of 8. */
static hunch_status write_header(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    json_t *header = header_of(h);
    char *text = hn_json_dump(header, JSON_COMPACT);
    json_decref(header);
    if (!text) return hn_fail_memory(err, "a header", 0);
    const size_t n = strlen(text);
    const uint64_t padded = (n + 7) / 8 * 8;
    hunch_status st = hn_out_write(out, &padded, sizeof padded, err);
    if (!st) st = hn_out_write(out, text, n, err);
    if (!st) st = hn_out_write(out, "        ", padded - n, err);
    hn_free(text);
    return st;
}

static hunch_status write_tensors(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    hunch_status st = write_header(h, out, err);
    if (!st) st = write_parts(h, out, err);
    if (!st && h->ids) st = write_ids(h, out, err);
    return st || !h->order ? st : write_order(h, out, err);
}

static hunch_status write_config(const hn_head_to_save *h, hn_out *out, hunch_error *err) {
    char *text = hn_json_dump(h->config, JSON_INDENT(1));
    hunch_status st = text ? hn_out_write(out, text, strlen(text), err) : hn_fail_memory(err, "the text of a configuration", 0);
    hn_free(text);
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

/* ---- the folder ------------------------------------------------------------------------------------------------------- */

typedef hunch_status writer(const hn_head_to_save *h, hn_out *out, hunch_error *err);

/* A file of the folder: written under another name first, published when all are. */
typedef struct saved_file {
    const char *name;
    writer *write; /* NULL: the head has no such file */
    char *path;
    hn_out *out;
    bool published, replaced; /* it is there; it was there before */
} saved_file;

static hunch_status prepare(saved_file *f, const hn_head_to_save *h, const char *folder, hunch_error *err) {
    f->path = hn_path_join(folder, f->name);
    if (!f->path) return hn_fail_memory(err, folder, 0);
    f->replaced = hn_is_file(f->path);
    hunch_status st = hn_out_open(&f->out, f->path, false, err);
    if (st) return st;
    st = f->write(h, f->out, err);
    if (st == HUNCH_NO_MEMORY) hn_error_prefix(err, "%s", f->path);
    return st;
}

static hunch_status publish(saved_file *f, hunch_error *err) {
    const hunch_status st = hn_out_finish(&f->out, err);
    f->published = !st;
    return st;
}

/* After an error nothing new stays. */
static void finish(saved_file *f, bool failed) {
    hn_out_abort(&f->out);
    if (failed && f->published && !f->replaced) (void)unlink(f->path);
    hn_free(f->path);
}

hunch_status hn_head_save(const hn_head_to_save *h, const char *folder, hunch_error *err) {
    saved_file all[] = {{.name = "model.safetensors", .write = write_tensors},
                        {.name = "tokens.json", .write = h->commonest ? write_commonest : NULL},
                        {.name = "config.json", .write = write_config}};
    enum { FILES = sizeof all / sizeof *all };
    const bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST) return hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", folder, strerror(errno));
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < FILES; i++)
        if (all[i].write) st = prepare(&all[i], h, folder, err);
    for (int i = 0; !st && i < FILES; i++)
        if (all[i].write) st = publish(&all[i], err);
    for (int i = 0; i < FILES; i++) finish(&all[i], st != HUNCH_OK);
    if (st && made) (void)rmdir(folder);
    return st;
}
