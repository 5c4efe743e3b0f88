/* SPDX-License-Identifier: Apache-2.0 */
/* buf_room.c - see buf_room.h. */
#include "model/buf_room.h"

enum { LINE = 64, LINE_FLOATS = 16 };

hn_buf hn_buf_room_take(hn_buf_room *r, size_t bytes) {
    const hn_buf b = {bytes ? r->mem : NULL, bytes ? r->used : 0};
    r->used += (bytes + LINE - 1) / LINE * LINE;
    return b;
}

hn_matrix hn_buf_room_matrix(hn_buf_room *r, int rows, int cols) {
    const int ld = (cols + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    return (hn_matrix){hn_buf_room_take(r, sizeof(float) * (size_t)rows * (size_t)ld), cols, ld};
}

hn_act hn_buf_room_act(hn_buf_room *r, int rows, int in) {
    return (hn_act){hn_buf_room_take(r, r->ops->act_bytes(in, rows)), in, rows, 0};
}

hunch_status hn_buf_room_open(hn_buf_room *r, const hn_ops *ops, void (*list)(void *arg, hn_buf_room *r), void *arg, hunch_error *err) {
    *r = (hn_buf_room){.ops = ops};
    list(arg, r);
    const hunch_status st = ops->mem_create(ops, r->used, &r->mem, err);
    if (st) return st;
    r->used = 0;
    list(arg, r);
    return HUNCH_OK;
}

void hn_buf_room_close(hn_buf_room *r) {
    if (r->mem) r->ops->mem_free(r->ops, r->mem);
    *r = (hn_buf_room){0};
}
