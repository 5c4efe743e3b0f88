/* SPDX-License-Identifier: Apache-2.0 */
/* room.h - the memory of a network in training: one allocation, in which every matrix has its part in whole lines of 64 bytes. */
#ifndef HN_ROOM_H
#define HN_ROOM_H
#include "base/status.h"
#include "train/math/real.h"

/* If p is NULL, sizes are only added up, else memory is handed out. */
typedef struct hn_room {
    char *p;
    size_t used; /* bytes */
} hn_room;

void *hn_room_take(hn_room *r, size_t count, size_t size);
hn_mat hn_room_mat(hn_room *r, int rows, int cols);

/* A copy of *net, of size bytes, whose first member is a zeroed hn_room. Calls lay_out(copy, room) to add up the sizes,
 * allocates the sum, and calls it again to hand it out. NULL: no memory; *err has HUNCH_NO_MEMORY, with the net's name
 * `what` in its message. */
void *hn_net_new(const void *net, size_t size, void (*lay_out)(void *net, hn_room *r), const char *what, hunch_error *err);
void hn_net_free(void *net); /* takes NULL */
#endif
