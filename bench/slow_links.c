/* SPDX-License-Identifier: Apache-2.0 */
/* slow_links.c - links of a latency and a bandwidth where there are none, for bench/ranks.py: preloaded before a program of MPI, its
 * collectives take what they would take over such links beside what they take here. SLOW_LINKS_LATENCY: seconds of each step;
 * SLOW_LINKS_BYTES_S: bytes a second that a machine gets. A collective has as many steps as doublings reach all ranks. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#define AWAKE 100e-6 /* seconds */

static double setting(const char *name) {
    const char *s = getenv(name);
    return s ? atof(s) : 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The end of the wait is awake: a sleep ends tens of microseconds late. */
static void take(MPI_Comm comm, double bytes) {
    const double bytes_s = setting("SLOW_LINKS_BYTES_S"), begun = now();
    int ranks, steps = 0;
    MPI_Comm_size(comm, &ranks);
    while (1 << steps < ranks) steps++;
    const double end = begun + steps * setting("SLOW_LINKS_LATENCY") + (bytes_s > 0 ? bytes / bytes_s : 0);
    const long asleep = (long)(1e9 * (end - now() - AWAKE));
    const struct timespec t = {asleep / 1000000000, asleep % 1000000000};
    if (asleep > 0) nanosleep(&t, NULL);
    while (now() < end) continue;
}

/* Of what all ranks have, in bytes, all but what this one has. */
static double of_others(MPI_Comm comm, const int *counts) {
    int rank, ranks;
    double sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int r = 0; r < ranks; r++) sum += r == rank ? 0 : counts[r];
    return sum;
}

int MPI_Allgatherv(const void *from, int n, MPI_Datatype of, void *to, const int counts[], const int at[], MPI_Datatype type,
                   MPI_Comm comm) {
    const int failed = PMPI_Allgatherv(from, n, of, to, counts, at, type, comm);
    take(comm, of_others(comm, counts));
    return failed;
}

int MPI_Gatherv(const void *from, int n, MPI_Datatype of, void *to, const int counts[], const int at[], MPI_Datatype type, int root,
                MPI_Comm comm) {
    int rank;
    const int failed = PMPI_Gatherv(from, n, of, to, counts, at, type, root, comm);
    MPI_Comm_rank(comm, &rank);
    if (rank == root) take(comm, of_others(comm, counts));
    return failed;
}

int MPI_Ibcast(void *at, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *r) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == root) take(comm, n);
    return PMPI_Ibcast(at, n, type, root, comm, r);
}
