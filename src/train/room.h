/* SPDX-License-Identifier: Apache-2.0 */
/* room.h - the memory of a network in training: one allocation, of which every matrix takes its part in whole lines of 64 bytes. */
#ifndef HN_ROOM_H
#define HN_ROOM_H
#include "base/status.h"
#include "train/real.h"

/* Where p is NULL it is only counted what is taken, else it is handed out. */
typedef struct hn_room {
    char *p;
    size_t used; /* bytes */
} hn_room;

void *hn_room_take(hn_room *r, size_t count, size_t size);
hn_mat hn_room_mat(hn_room *r, int rows, int cols);

/* Calls lay_out(net, r) to count what net takes, allocates that, and calls it again to hand it out. what: the net's name in
 * HUNCH_NO_MEMORY's message; *r is closed then. */
hunch_status hn_room_open(hn_room *r, void (*lay_out)(void *net, hn_room *r), void *net, const char *what, hunch_error *err);
void hn_room_close(hn_room *r); /* of a zeroed one too */
#endif
