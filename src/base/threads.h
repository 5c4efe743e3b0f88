/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - the worker pool of the process, its barrier, and claimed ranges of work.
 *
 * All workers run the same function (rank 0 is the caller). Between operations they meet at a barrier that spins
 * briefly, then sleeps on a futex, so that waiting for a worker that was preempted does not occupy the other cores.
 */
#ifndef HN_THREADS_H
#define HN_THREADS_H
#include "base/status.h"

typedef struct hn_pool hn_pool;

enum { HN_MAX_THREADS = 256 };

int hn_cores(void); /* cores this process may use (affinity and cgroup quota), 1 to HN_MAX_THREADS */
/* The cgroup part of it, from files in the format of /proc/self/cgroup and /proc/self/mountinfo; 0: no limit. */
int hn_cores_quota(const char *cgroup_table, const char *mounts);

/* threads: 1..HN_MAX_THREADS, rank 0 included. Not pinned. */
hunch_status hn_pool_create(hn_pool **out, int threads, hunch_error *err);
void hn_pool_free(hn_pool *p); /* NULL is fine; joins the workers */
int hn_pool_threads(const hn_pool *p);
/* Runs fn(arg, rank, ranks) on all workers and returns when all are done. Callers on several threads take turns. */
void hn_pool_run(hn_pool *p, void (*fn)(void *arg, int rank, int ranks), void *arg);

/* Inside fn only, called by every rank. */
void hn_barrier(hn_pool *p, int rank);

/* Sets whether the time that ranks wait in barriers is counted: off by default. Outside fn. */
void hn_pool_count_waits(hn_pool *p, bool on);
/* Nanoseconds counted so far. Inside fn, by the rank itself. */
int64_t hn_pool_waited(const hn_pool *p, int rank);

/* Splits items [0, count) into one contiguous range a rank; a rank that is done claims single items from the tail of
 * another's range. Every rank calls hn_claim_begin once per operation with the same count, then hn_claim_next until
 * it returns -1; a barrier must separate two operations.
 *     hn_claim c = hn_claim_begin(pool, rank, count);
 *     for (int i; (i = hn_claim_next(&c)) >= 0;) work(i);
 *     hn_barrier(pool, rank);
 * count may be 0, at most 2^20 - 1. */
typedef struct hn_claim {
    hn_pool *pool;
    int rank, count, victim;
} hn_claim;
hn_claim hn_claim_begin(hn_pool *p, int rank, int count);
int hn_claim_next(hn_claim *c);
#endif
