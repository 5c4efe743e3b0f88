/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - the processes that run one model together (docs/machines.md): a leader, which is rank 0, and others, which do what it tells
 * them. Between them is MPI, in a shared object of its own (src/mpi/mpi_link.c) that is opened only in a process that mpirun has started.
 * All of them make the same calls in the same order; what is lost between them ends all processes, by mpirun. */
#ifndef HN_LINK_H
#define HN_LINK_H
#include "base/status.h"

enum { HN_MOST_RANKS = 64 };

typedef struct hn_link hn_link;
struct hn_link {
    int rank, ranks;  /* ranks: 2..HN_MOST_RANKS */
    uint32_t next_id; /* the leader's number of what it tells the others to open */
    /* The leader's next message to all others. */
    void (*send)(hn_link *l, const void *message, size_t bytes);
    /* The others wait for it, asleep; *message is valid until the next call. Returns its bytes. */
    size_t (*receive)(hn_link *l, const void **message);
    /* all: the parts of all ranks, each at[rank] .. at[rank] + bytes[rank], of which every rank has its own. Then every rank has all. */
    void (*exchange)(hn_link *l, void *all, const int *at, const int *bytes);
    /* Only the leader gets them: the parts of others from `own`, into `all`. Its own is there. */
    void (*bring)(hn_link *l, const void *own, void *all, const int *at, const int *bytes);
    /* As `bring`, of parts of the same size, and of the leader from `own` too; it waits asleep. */
    void (*collect)(hn_link *l, const void *own, void *all, int bytes);
    /* The end of a process that all others have the end of, too; and of one that has failed, which ends all. */
    void (*close)(hn_link *l);
    void (*abort)(hn_link *l, int code);
};
#define HN_LINK_OPENER "hunch_mpi_link_open"
typedef hn_link *hn_link_opener(const char **why); /* NULL: it cannot be opened, and *why it is not */

/* Whether mpirun, srun or their like have started this process. Then its standard output goes through theirs, which may be a terminal of
 * its own whatever that writes to. */
bool hn_link_started(void);
/* *out NULL: mpirun did not start this process, or no other one beside it. Errors: HUNCH_REFUSED: it did, but this build has no MPI, or MPI
 * cannot be opened. */
hunch_status hn_link_open(hn_link **out, hunch_error *err);
static inline bool hn_link_leads(const hn_link *l) { return l && l->rank == 0; }

/* A message begins with its kind, and the number of what it is about. */
typedef enum hn_told_kind {
    HN_TOLD_ARGUMENTS,  /* engine/machines.c */
    HN_TOLD_MODEL,
    HN_TOLD_MODEL_END,
    HN_TOLD_CACHE,      /* cache/cache_told.c */
    HN_TOLD_MOVES,
    HN_TOLD_CACHE_END,
    HN_TOLD_RUNNER,     /* model/pass_told.c */
    HN_TOLD_PASS,
    HN_TOLD_RUNNER_END,
    HN_TOLD_VERDICT,    /* base/link.c */
    HN_TOLD_END
} hn_told_kind;
typedef struct hn_told {
    uint32_t kind, id;
} hn_told;

/* Called by all: HUNCH_OK if all of them have that, else the error of the first one that has another, by its rank and host. */
hunch_status hn_link_agree(hn_link *l, hunch_status own, hunch_error *err);
#endif
