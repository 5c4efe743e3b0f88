/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - see room.h. */
#include "train/room.h"

#include "base/mem.h"

void *hn_room_take(hn_room *r, size_t count, size_t size) {
    void *p = r->p ? r->p + r->used : NULL;
    r->used += (count * size + 63) / 64 * 64;
    return p;
}

hn_mat hn_room_mat(hn_room *r, int rows, int cols) {
    return hn_mat_of(hn_room_take(r, (size_t)rows * (size_t)cols, sizeof(hn_real)), rows, cols);
}

hunch_status hn_room_open(hn_room *r, void (*lay_out)(void *net, hn_room *r), void *net, const char *what, hunch_error *err) {
    hn_room counted = {0};
    *r = (hn_room){0};
    lay_out(net, &counted);
    r->p = hn_pages_alloc(counted.used);
    if (!r->p) return hn_fail_memory(err, what, counted.used);
    lay_out(net, r);
    return HUNCH_OK;
}

void hn_room_close(hn_room *r) {
    hn_pages_free(r->p, r->used);
    *r = (hn_room){0};
}
