/* SPDX-License-Identifier: Apache-2.0 */
/* buf_room.h - one allocation of a backend for many buffers. A function lists them, each with its size; it is called once to add the
 * sizes up, and again to hand the memory out. Every buffer has whole lines of 64 bytes. */
#ifndef HN_BUF_ROOM_H
#define HN_BUF_ROOM_H
#include "ops/ops.h"

typedef struct hn_buf_room {
    const hn_ops *ops; /* borrowed */
    hn_mem *mem;       /* owned; NULL: sizes are only added up */
    size_t used;       /* bytes */
} hn_buf_room;

/* The next buffer of the list. Those of size 0 are none: mem NULL. */
hn_buf hn_buf_room_take(hn_buf_room *r, size_t bytes);
hn_matrix hn_buf_room_matrix(hn_buf_room *r, int rows, int cols); /* its rows begin at lines */
hn_act hn_buf_room_act(hn_buf_room *r, int rows, int in);

/* list(arg, r) takes every buffer. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_buf_room_open(hn_buf_room *r, const hn_ops *ops, void (*list)(void *arg, hn_buf_room *r), void *arg, hunch_error *err);
void hn_buf_room_close(hn_buf_room *r); /* zeroed is fine */
#endif
