/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_link.c - a link (base/link.h) by MPI: the whole of libhunch_mpi.so, the only file that includes MPI's header. It uses no function of
 * hunch's, so that a program without MPI needs nothing of it. An error of MPI ends all processes, as MPI does by itself. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/link.h"

enum { PACKET = 4096 };

/* The beginning of a message: most have no more. */
typedef struct packet {
    uint64_t bytes;
    unsigned char first[PACKET - sizeof(uint64_t)];
} packet;

typedef struct mpi_link {
    hn_link base; /* first */
    packet packet;
    unsigned char *message; /* owned: the last one received */
    size_t room;
} mpi_link;

static mpi_link *of(hn_link *l) { return (mpi_link *)(void *)l; }

static long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* MPI's own waits ask again without a pause, and take a core whatever is idle. Here the pauses grow with what has been waited: a round that
 * follows another is met at once, one after a second of nothing some milliseconds late. */
static void wait_asleep(MPI_Request *r) {
    enum { AT_ONCE_US = 300, SHORT_US = 20000, LONG_US = 1000000 };
    const long begun = now_us();
    for (int done = 0;;) {
        MPI_Test(r, &done, MPI_STATUS_IGNORE);
        if (done) return;
        const long waited = now_us() - begun;
        const long pause_us = waited < AT_ONCE_US ? 0 : waited < SHORT_US ? 50 : waited < LONG_US ? 1000 : 5000;
        const struct timespec pause = {0, pause_us * 1000};
        nanosleep(&pause, NULL);
    }
}

static void broadcast_asleep(void *at, size_t bytes) {
    MPI_Request r;
    MPI_Ibcast(at, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &r);
    wait_asleep(&r);
}

static void send_message(hn_link *l, const void *message, size_t bytes) {
    mpi_link *m = of(l);
    const size_t first = bytes < sizeof m->packet.first ? bytes : sizeof m->packet.first;
    m->packet.bytes = bytes;
    memcpy(m->packet.first, message, first);
    broadcast_asleep(&m->packet, sizeof m->packet);
    /* MPI does not write what the root of a broadcast sends */
    if (bytes > first) broadcast_asleep((unsigned char *)(uintptr_t)message + first, bytes - first);
}

static size_t receive_message(hn_link *l, const void **message) {
    mpi_link *m = of(l);
    broadcast_asleep(&m->packet, sizeof m->packet);
    const size_t bytes = (size_t)m->packet.bytes, first = bytes < sizeof m->packet.first ? bytes : sizeof m->packet.first;
    if (bytes > m->room) {
        free(m->message);
        m->room = 2 * bytes;
        m->message = malloc(m->room);
        if (!m->message) MPI_Abort(MPI_COMM_WORLD, HUNCH_NO_MEMORY);
    }
    memcpy(m->message, m->packet.first, first);
    if (bytes > first) broadcast_asleep(m->message + first, bytes - first);
    *message = m->message;
    return bytes;
}

static void exchange(hn_link *l, void *all, const int *at, const int *bytes) {
    (void)l;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, bytes, at, MPI_BYTE, MPI_COMM_WORLD);
}

static void bring(hn_link *l, const void *own, void *all, const int *at, const int *bytes) {
    if (l->rank == 0)
        MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, bytes, at, MPI_BYTE, 0, MPI_COMM_WORLD);
    else
        MPI_Gatherv(own, bytes[l->rank], MPI_BYTE, NULL, NULL, NULL, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void collect(hn_link *l, const void *own, void *all, int bytes) {
    MPI_Request r;
    (void)l;
    MPI_Igather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &r);
    wait_asleep(&r);
}

static void close_link(hn_link *l) {
    mpi_link *m = of(l);
    MPI_Finalize();
    free(m->message);
    free(m);
}

static void abort_all(hn_link *l, int code) {
    (void)l;
    MPI_Abort(MPI_COMM_WORLD, code);
}

hn_link *hunch_mpi_link_open(const char **why);
__attribute__((visibility("default"))) hn_link *hunch_mpi_link_open(const char **why) {
    int given = 0;
    mpi_link *m = calloc(1, sizeof *m);
    *why = "no memory";
    if (!m) return NULL;
    /* Passes are run by one thread at a time, not always by this one. */
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS || given < MPI_THREAD_SERIALIZED) {
        *why = "MPI_THREAD_SERIALIZED is missing";
        free(m);
        return NULL;
    }
    m->base = (hn_link){.send = send_message, .receive = receive_message, .exchange = exchange, .bring = bring, .collect = collect,
                        .close = close_link, .abort = abort_all};
    MPI_Comm_rank(MPI_COMM_WORLD, &m->base.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m->base.ranks);
    return &m->base;
}
