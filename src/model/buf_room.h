/* SPDX-License-Identifier: Apache-2.0 */
/* buf_room.h - two allocations of a backend for many buffers: of those that the host reads, and of the others. A function lists them, each
 * with its size; it is called once to add the sizes up, and again to hand the memory out. Every buffer has whole lines of 64 bytes. */
#ifndef HN_BUF_ROOM_H
#define HN_BUF_ROOM_H
#include "ops/backend.h"

typedef struct hn_buf_room {
    hn_backend *backend; /* borrowed */
    hn_mem *work, *results;   /* owned; NULL: sizes are only added up */
    size_t used, used_results; /* bytes */
} hn_buf_room;

/* The next buffer of the list. Those of size 0 are none: mem NULL. */
hn_buf hn_buf_room_take(hn_buf_room *r, size_t bytes);
hn_buf hn_buf_room_result(hn_buf_room *r, size_t bytes); /* the same, for the host to read (hn_backend.read) */
hn_matrix hn_buf_room_results(hn_buf_room *r, int rows, int cols); /* the same */
hn_matrix hn_buf_room_matrix(hn_buf_room *r, int rows, int cols); /* its rows begin at lines */
hn_act hn_buf_room_act(hn_buf_room *r, int rows, int in);

/* list(arg, r) takes every buffer. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_buf_room_open(hn_buf_room *r, hn_backend *b, void (*list)(void *arg, hn_buf_room *r), void *arg, hunch_error *err);
void hn_buf_room_close(hn_buf_room *r); /* zeroed is fine */
#endif
