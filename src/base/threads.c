/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - the worker pool: dispatch, barrier and claimed ranges, all on one way of waiting.
 *
 * Owns the threads and the three kinds of shared words. Knows nothing of the work.
 *
 * Waiting. A waiter spins on a word that will change (job number, barrier phase) with the pause instruction for SPIN_NS,
 * then sleeps on it with a futex; at once if another rank was last seen on this very core, because then the waiter may be
 * what keeps it from arriving. The writer enters the kernel only if a rank sleeps, so a barrier between workers that
 * arrive together costs a few cache-line transfers. There is no sched_yield between the two: on a busy machine it gives
 * the core to another process for a whole time slice, milliseconds for a barrier that lasts microseconds, while a sleeper
 * that is woken is scheduled ahead of that process.
 *
 * Claims. One word a rank: (epoch, next, end). Every rank counts its own epoch, and all do so in lockstep since each
 * operation ends in a barrier. A word of an older epoch stands for the rank's full range; the first to access it,
 * owner or thief, brings it up to date in the same compare-and-swap that claims an item. So nothing has to be reset
 * between operations.
 */
#include "base/threads.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"

enum { SPIN_NS = 50000, LOOKS_PER_CLOCK = 32, LINE = 64, STACK = 2 << 20 };

/* A word to wait on, and the number of ranks that sleep on it. Alone on its cache line. */
typedef struct signal_word {
    _Alignas(LINE) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} signal_word;

typedef struct worker {
    _Alignas(LINE) _Atomic uint64_t claim; /* shared with thieves: epoch 24 bits | next 20 | end 20 */
    _Alignas(LINE) uint64_t epoch;         /* private to the rank */
    int64_t waited_ns;                     /* the same: in barriers, while waits are counted */
    _Alignas(LINE) _Atomic int cpu;        /* core it was last seen on, -1 before; others read it */
    hn_pool *pool;
    int rank;
    pthread_t thread; /* of ranks 1.. */
} worker;

struct hn_pool {
    signal_word job;   /* number of the job; workers wait for the next */
    signal_word phase; /* barriers passed */
    _Alignas(LINE) _Atomic uint32_t arrived;
    _Alignas(LINE) int ranks;
    bool counts_waits;
    void (*fn)(void *arg, int rank, int ranks); /* NULL: leave */
    void *arg;
    pthread_mutex_t callers;
    worker workers[]; /* [ranks] */
};

/* ---- waiting ------------------------------------------------------------------------------------------------ */

static inline void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* True if another rank was last seen on the core that this one runs on. */
static bool core_shared(const hn_pool *p, int rank) {
    int cpu = atomic_load_explicit(&p->workers[rank].cpu, memory_order_relaxed);
    for (int i = 0; i < p->ranks; i++) {
        if (i != rank && atomic_load_explicit(&p->workers[i].cpu, memory_order_relaxed) == cpu) return true;
    }
    return false;
}

static void cpu_note(hn_pool *p, int rank) {
    int cpu = sched_getcpu();
    _Atomic int *noted = &p->workers[rank].cpu;
    if (atomic_load_explicit(noted, memory_order_relaxed) != cpu) {
        atomic_store_explicit(noted, cpu, memory_order_relaxed);
    }
}

static void signal_sleep(signal_word *w, uint32_t old) {
    /* Both sides write their word, then read the other's (seq_cst): either the writer sees a sleeper or the
     * sleeper sees the new value, and futex_wait compares again under the kernel's lock. */
    atomic_fetch_add(&w->sleepers, 1);
    while (atomic_load(&w->value) == old) {
        syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    }
    atomic_fetch_sub(&w->sleepers, 1);
}

static void signal_wait(hn_pool *p, int rank, signal_word *w, uint32_t old) {
    int64_t start = 0;
    cpu_note(p, rank);
    for (int look = 1;; look++) {
        if (atomic_load_explicit(&w->value, memory_order_acquire) != old) return;
        cpu_relax();
        if (look % LOOKS_PER_CLOCK != 0) continue;
        int64_t now = hn_now_ns();
        if (start == 0) start = now;
        if (now - start >= SPIN_NS) break;
        cpu_note(p, rank);
        if (core_shared(p, rank)) break;
    }
    signal_sleep(w, old);
    cpu_note(p, rank);
}

static void signal_raise(signal_word *w, uint32_t value) {
    atomic_store(&w->value, value);
    if (atomic_load(&w->sleepers) > 0) {
        syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

void hn_barrier(hn_pool *p, int rank) {
    if (p->ranks == 1) return;
    /* The phase cannot change before this rank arrives, so this rank waits until it differs from the value read here. */
    uint32_t phase = atomic_load_explicit(&p->phase.value, memory_order_relaxed);
    const bool counts = p->counts_waits; /* read before arriving: after the barrier rank 0 may change it */
    if (atomic_fetch_add(&p->arrived, 1) + 1 == (uint32_t)p->ranks) {
        atomic_store_explicit(&p->arrived, 0, memory_order_relaxed); /* published by the phase */
        signal_raise(&p->phase, phase + 1);
    } else {
        const int64_t start = counts ? hn_now_ns() : 0;
        signal_wait(p, rank, &p->phase, phase);
        if (counts) p->workers[rank].waited_ns += hn_now_ns() - start;
    }
}

void hn_pool_count_waits(hn_pool *p, bool on) {
    pthread_mutex_lock(&p->callers);
    p->counts_waits = on;
    pthread_mutex_unlock(&p->callers);
}

int64_t hn_pool_waited(const hn_pool *p, int rank) {
    return p->workers[rank].waited_ns;
}

/* ---- the pool ------------------------------------------------------------------------------------------------ */

static void *worker_main(void *user) {
    worker *w = user;
    hn_pool *p = w->pool;
    for (uint32_t job = 0;; job++) {
        signal_wait(p, w->rank, &p->job, job);
        if (!p->fn) return NULL;
        p->fn(p->arg, w->rank, p->ranks);
        hn_barrier(p, w->rank);
    }
}

/* One stack size everywhere: the default is that of ulimit with glibc, and 128 KiB with musl. */
static hunch_status worker_start(worker *w, hunch_error *err) {
    pthread_attr_t attr;
    int code = hn_fault_hit(HN_FAULT_ALLOC) ? EAGAIN : pthread_attr_init(&attr);
    if (code == 0) {
        pthread_attr_setstacksize(&attr, STACK);
        code = pthread_create(&w->thread, &attr, worker_main, w);
        pthread_attr_destroy(&attr);
    }
    if (code == 0) return HUNCH_OK;
    return hn_fail(err, HUNCH_NO_MEMORY, "thread %d of %d cannot be started: %s", w->rank + 1, w->pool->ranks,
                   strerror(code));
}

/* Makes workers 1..started-1 exit, and joins them. */
static void workers_stop(hn_pool *p, int started) {
    p->fn = NULL;
    signal_raise(&p->job, atomic_load(&p->job.value) + 1);
    for (int i = 1; i < started; i++) pthread_join(p->workers[i].thread, NULL);
}

static void pool_destroy(hn_pool *p) {
    pthread_mutex_destroy(&p->callers);
    hn_free(p);
}

hunch_status hn_pool_create(hn_pool **out, int threads, hunch_error *err) {
    *out = NULL;
    if (threads < 1 || threads > HN_MAX_THREADS) {
        return hn_fail(err, HUNCH_USAGE, "threads is %d, expected 1..%d", threads, HN_MAX_THREADS);
    }
    size_t size = sizeof(hn_pool) + (size_t)threads * sizeof(worker);
    hn_pool *p = hn_zalloc(1, size);
    if (!p) return hn_fail_memory(err, "the worker pool", size);
    p->ranks = threads;
    pthread_mutex_init(&p->callers, NULL);
    for (int i = 0; i < threads; i++) {
        p->workers[i].pool = p;
        p->workers[i].rank = i;
        p->workers[i].cpu = -1;
    }
    /* The program's own threads handle signals: workers block all but those that their own instructions raise. (Such a
     * signal, if blocked, ends the process without its handler being called.) */
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t all, old;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    hunch_status status = HUNCH_OK;
    int started = 1;
    while (started < threads && (status = worker_start(&p->workers[started], err)) == HUNCH_OK) started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (status) {
        workers_stop(p, started);
        pool_destroy(p);
        return status;
    }
    *out = p;
    return HUNCH_OK;
}

void hn_pool_free(hn_pool *p) {
    if (!p) return;
    workers_stop(p, p->ranks);
    pool_destroy(p);
}

int hn_pool_threads(const hn_pool *p) {
    return p->ranks;
}

void hn_pool_run(hn_pool *p, void (*fn)(void *arg, int rank, int ranks), void *arg) {
    pthread_mutex_lock(&p->callers);
    cpu_note(p, 0);
    p->fn = fn;
    p->arg = arg;
    if (p->ranks > 1) signal_raise(&p->job, atomic_load_explicit(&p->job.value, memory_order_relaxed) + 1);
    fn(arg, 0, p->ranks);
    hn_barrier(p, 0);
    pthread_mutex_unlock(&p->callers);
}

/* ---- claims ------------------------------------------------------------------------------------------------- */

enum { ITEM_BITS = 20, EPOCH_BITS = 24 };
#define ITEM_MASK ((1u << ITEM_BITS) - 1)
#define EPOCH_MASK ((1u << EPOCH_BITS) - 1)

static inline uint64_t claim_pack(uint64_t epoch, uint32_t next, uint32_t end) {
    return (epoch & EPOCH_MASK) << (2 * ITEM_BITS) | (uint64_t)next << ITEM_BITS | end;
}

/* The full range of a rank at this epoch. */
static inline uint64_t claim_full(const hn_pool *p, uint64_t epoch, int count, int rank) {
    uint32_t items = (uint32_t)count, ranks = (uint32_t)p->ranks, r = (uint32_t)rank;
    return claim_pack(epoch, items * r / ranks, items * (r + 1) / ranks);
}

/* Takes one item of the owner's range, from the front for the owner and from the tail for a thief; -1 if none is left.
 * Relaxed order is enough: the words only assign items; the barrier publishes the results. */
static int claim_take(const hn_claim *c, int owner) {
    _Atomic uint64_t *word = &c->pool->workers[owner].claim;
    uint64_t epoch = c->pool->workers[c->rank].epoch;
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    for (;;) {
        bool current = seen >> (2 * ITEM_BITS) == (epoch & EPOCH_MASK);
        uint64_t range = current ? seen : claim_full(c->pool, epoch, c->count, owner);
        uint32_t next = range >> ITEM_BITS & ITEM_MASK, end = range & ITEM_MASK;
        if (next >= end) return -1;
        bool own = owner == c->rank;
        uint64_t rest = own ? claim_pack(epoch, next + 1, end) : claim_pack(epoch, next, end - 1);
        if (atomic_compare_exchange_weak_explicit(word, &seen, rest, memory_order_relaxed, memory_order_relaxed)) {
            return (int)(own ? next : end - 1);
        }
    }
}

hn_claim hn_claim_begin(hn_pool *p, int rank, int count) {
    worker *w = &p->workers[rank];
    uint64_t before = claim_pack(w->epoch, 0, 0) >> (2 * ITEM_BITS);
    w->epoch++;
    /* An owner always brings its word up to date (unless a thief did), even if its range is empty: then every word is
     * at most one epoch old and its 24 bits are never ambiguous after they wrap. */
    uint64_t seen = atomic_load_explicit(&w->claim, memory_order_relaxed);
    if (seen >> (2 * ITEM_BITS) == before) {
        atomic_compare_exchange_strong_explicit(&w->claim, &seen, claim_full(p, w->epoch, count, rank),
                                                memory_order_relaxed, memory_order_relaxed);
    }
    return (hn_claim){.pool = p, .rank = rank, .count = count, .victim = rank};
}

int hn_claim_next(hn_claim *c) {
    int ranks = c->pool->ranks;
    while (c->victim < c->rank + ranks) {
        int item = claim_take(c, c->victim % ranks);
        if (item >= 0) return item;
        c->victim++; /* a range that was empty once stays empty */
    }
    return -1;
}
