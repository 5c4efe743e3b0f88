/* SPDX-License-Identifier: Apache-2.0 */
/* buf_room.c - see buf_room.h. */
#include "model/buf_room.h"

enum { LINE = 64, LINE_FLOATS = 16 };

static hn_buf take(hn_mem *mem, size_t *used, size_t bytes) {
    const hn_buf b = {bytes ? mem : NULL, bytes ? *used : 0};
    *used += (bytes + LINE - 1) / LINE * LINE;
    return b;
}

static hn_matrix matrix(hn_buf (*take_one)(hn_buf_room *r, size_t bytes), hn_buf_room *r, int rows, int cols) {
    const int ld = (cols + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    return (hn_matrix){take_one(r, sizeof(float) * (size_t)rows * (size_t)ld), cols, ld};
}

hn_buf hn_buf_room_take(hn_buf_room *r, size_t bytes) {
    return take(r->work, &r->used, bytes);
}

hn_buf hn_buf_room_result(hn_buf_room *r, size_t bytes) {
    return take(r->results, &r->used_results, bytes);
}

hn_matrix hn_buf_room_matrix(hn_buf_room *r, int rows, int cols) {
    return matrix(hn_buf_room_take, r, rows, cols);
}

hn_matrix hn_buf_room_results(hn_buf_room *r, int rows, int cols) {
    return matrix(hn_buf_room_result, r, rows, cols);
}

hn_act hn_buf_room_act(hn_buf_room *r, int rows, int in) {
    return (hn_act){hn_buf_room_take(r, r->backend->act_bytes(in, rows)), in, rows, 0};
}

hunch_status hn_buf_room_open(hn_buf_room *r, hn_backend *b, void (*list)(void *arg, hn_buf_room *r), void *arg, hunch_error *err) {
    *r = (hn_buf_room){.backend = b};
    list(arg, r);
    hunch_status st = b->mem_create(b, HN_MEM_WORK, r->used, &r->work, err);
    if (!st && r->used_results > 0) st = b->mem_create(b, HN_MEM_READBACK, r->used_results, &r->results, err);
    if (st) {
        hn_buf_room_close(r);
        return st;
    }
    r->used = r->used_results = 0;
    list(arg, r);
    return HUNCH_OK;
}

void hn_buf_room_close(hn_buf_room *r) {
    if (r->backend) r->backend->mem_free(r->backend, r->work);
    if (r->backend) r->backend->mem_free(r->backend, r->results);
    *r = (hn_buf_room){0};
}
