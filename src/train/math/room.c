/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - see room.h. */
#include "train/math/room.h"

#include <string.h>

#include "base/mem.h"

void *hn_room_take(hn_room *r, size_t count, size_t size) {
    void *p = r->p ? r->p + r->used : NULL;
    r->used += (count * size + 63) / 64 * 64;
    return p;
}

hn_mat hn_room_mat(hn_room *r, int rows, int cols) {
    return hn_mat_of(hn_room_take(r, (size_t)rows * (size_t)cols, sizeof(hn_real)), rows, cols);
}

void *hn_net_new(const void *net, size_t size, void (*lay_out)(void *net, hn_room *r), const char *what, hunch_error *err) {
    hn_room *const r = hn_alloc(size);
    hn_room counted = {0};
    if (!r) {
        hn_fail_memory(err, what, size);
        return NULL;
    }
    memcpy(r, net, size);
    lay_out(r, &counted);
    r->p = hn_pages_alloc(counted.used);
    if (!r->p) {
        hn_fail_memory(err, what, counted.used);
        hn_free(r);
        return NULL;
    }
    lay_out(r, r);
    return r;
}

void hn_net_free(void *net) {
    hn_room *const r = net;
    if (!r) return;
    hn_pages_free(r->p, r->used);
    hn_free(r);
}
