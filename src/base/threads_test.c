/* SPDX-License-Identifier: Apache-2.0 */
/* threads_test.c - every rank passes every barrier, and every item is claimed exactly once, whichever rank is fast or slow. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/random.h"
#include "base/threads.h"

static const int thread_counts[] = {1, 2, 3, 8};
enum { COUNTS = sizeof thread_counts / sizeof *thread_counts, MAX_RANKS = 8, MAX_ITEMS = 64 };

static hn_pool *pool_make(int threads) {
    hn_pool *p;
    hunch_error err;
    assert_int_equal(hn_pool_create(&p, threads, &err), HUNCH_OK);
    assert_int_equal(hn_pool_threads(p), threads);
    return p;
}

typedef struct meeting {
    hn_pool *pool;
    int rounds;
    int at[MAX_RANKS]; /* plain variables: TSan proves that the barrier orders them */
    _Atomic int wrong;
} meeting;

static void meeting_run(void *arg, int rank, int ranks) {
    meeting *m = arg;
    for (int round = 1; round <= m->rounds; round++) {
        m->at[rank] = round;
        hn_barrier(m->pool, rank);
        for (int r = 0; r < ranks; r++) m->wrong += m->at[r] != round;
        hn_barrier(m->pool, rank);
    }
}

static void test_barrier(void **state) {
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        hn_pool *p = pool_make(thread_counts[i]);
        meeting m = {.pool = p, .rounds = thread_counts[i] > 2 ? 300 : 5000};
        hn_pool_run(p, meeting_run, &m);
        assert_int_equal(m.wrong, 0);
        for (int r = 0; r < thread_counts[i]; r++) assert_int_equal(m.at[r], m.rounds);
        hn_pool_free(p);
    }
}

typedef struct hunt {
    hn_pool *pool;
    uint64_t seed;
    int rounds, slow_rank; /* slow_rank: pauses now and then, so that others steal its items; -1: none */
    _Atomic int claimed[MAX_ITEMS];
    _Atomic int wrong, total;
    int expected;
} hunt;

static void hunt_check(hunt *h, int count) {
    for (int i = 0; i < MAX_ITEMS; i++) {
        h->wrong += h->claimed[i] != (i < count);
        h->claimed[i] = 0;
    }
    h->expected += count;
}

static void hunt_run(void *arg, int rank, int ranks) {
    hunt *h = arg;
    (void)ranks;
    uint64_t s = h->seed; /* the same in every rank */
    for (int round = 0; round < h->rounds; round++) {
        int count = (int)(hn_splitmix(&s) % (MAX_ITEMS + 1));
        if (round % 7 == 0) count = round % 2; /* ranks with empty ranges */
        hn_claim c = hn_claim_begin(h->pool, rank, count);
        for (int i; (i = hn_claim_next(&c)) >= 0;) {
            h->claimed[i]++;
            h->total++;
            if (rank == h->slow_rank && i % 5 == 0) sched_yield();
        }
        h->wrong += hn_claim_next(&c) != -1;
        hn_barrier(h->pool, rank);
        if (rank == 0) hunt_check(h, count);
        hn_barrier(h->pool, rank);
    }
}

static void test_claims_once(void **state) {
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        for (int slow = -1; slow < 2; slow++) {
            hn_pool *p = pool_make(thread_counts[i]);
            hunt h = {
                .pool = p, .seed = (uint64_t)i + 1, .rounds = thread_counts[i] > 2 ? 400 : 4000, .slow_rank = slow};
            for (int job = 0; job < 3; job++) hn_pool_run(p, hunt_run, &h);
            assert_int_equal(h.wrong, 0);
            assert_int_equal(h.total, h.expected);
            assert_true(h.expected > 1000);
            hn_pool_free(p);
        }
    }
}

typedef struct theft {
    hn_pool *pool;
    _Atomic int by_rank[2], started;
} theft;

/* Rank 1 claims nothing until rank 0 has finished: rank 0 must have taken all items of both ranges. */
static void theft_run(void *arg, int rank, int ranks) {
    theft *t = arg;
    (void)ranks;
    if (rank == 1) {
        while (!t->started) sched_yield();
    }
    hn_claim c = hn_claim_begin(t->pool, rank, 100);
    while (hn_claim_next(&c) >= 0) t->by_rank[rank]++;
    t->started = 1;
    hn_barrier(t->pool, rank);
}

static void test_steals_all_from_an_absent_rank(void **state) {
    (void)state;
    hn_pool *p = pool_make(2);
    for (int job = 0; job < 50; job++) {
        theft t = {.pool = p};
        hn_pool_run(p, theft_run, &t);
        assert_int_equal(t.by_rank[0], 100);
        assert_int_equal(t.by_rank[1], 0);
    }
    hn_pool_free(p);
}

typedef struct largest {
    hn_pool *pool;
    _Atomic long long sum;
    _Atomic int n;
} largest;

static void largest_run(void *arg, int rank, int ranks) {
    largest *l = arg;
    (void)ranks;
    hn_claim c = hn_claim_begin(l->pool, rank, (1 << 20) - 1);
    long long sum = 0;
    int n = 0;
    for (int i; (i = hn_claim_next(&c)) >= 0; n++) sum += i;
    l->sum += sum;
    l->n += n;
    hn_barrier(l->pool, rank);
}

static void test_largest_count(void **state) {
    (void)state;
    hn_pool *p = pool_make(3);
    largest l = {.pool = p};
    hn_pool_run(p, largest_run, &l);
    long long n = (1 << 20) - 1;
    assert_int_equal(l.n, n);
    assert_true(l.sum == n * (n - 1) / 2);
    hn_pool_free(p);
}

static void add_rank(void *arg, int rank, int ranks) {
    _Atomic int *sum = arg;
    *sum += rank + 1000 * (ranks > rank);
}

static void test_workers_that_slept_wake(void **state) {
    (void)state;
    hn_pool *p = pool_make(2);
    for (int i = 0; i < 20; i++) {
        _Atomic int sum = 0;
        struct timespec pause = {0, i % 2 ? 2000000 : 20000}; /* beyond, and within, the time that a worker spins */
        nanosleep(&pause, NULL);
        hn_pool_run(p, add_rank, &sum);
        assert_int_equal(sum, 2001);
    }
    hn_pool_free(p);
}

typedef struct caller {
    hn_pool *pool;
    int ok;
} caller;

static void *caller_main(void *arg) {
    caller *c = arg;
    for (int i = 0; i < 200; i++) {
        hunt h = {.pool = c->pool, .seed = (uint64_t)i, .rounds = 2, .slow_rank = -1};
        hn_pool_run(c->pool, hunt_run, &h);
        c->ok += h.wrong == 0 && h.total == h.expected;
    }
    return NULL;
}

static void test_callers_take_turns(void **state) {
    (void)state;
    hn_pool *p = pool_make(2);
    caller callers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        callers[i] = (caller){p, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &callers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].ok, 200);
    }
    hn_pool_free(p);
}

typedef struct late {
    hn_pool *pool;
    int64_t before[3], after[3]; /* waited, by rank */
} late;

static void late_rank(void *arg, int rank, int ranks) {
    late *l = arg;
    (void)ranks;
    l->before[rank] = hn_pool_waited(l->pool, rank);
    if (rank == 0) usleep(3000);
    hn_barrier(l->pool, rank);
    l->after[rank] = hn_pool_waited(l->pool, rank);
}

static void test_waits(void **state) {
    (void)state;
    late l = {.pool = pool_make(3)};
    hn_pool_run(l.pool, late_rank, &l);
    for (int i = 0; i < 3; i++) assert_int_equal(l.after[i], 0);
    hn_pool_count_waits(l.pool, true);
    for (int i = 1; i < 3; i++) { /* on a busy machine even they may be late now and then */
        int runs = 0;
        do hn_pool_run(l.pool, late_rank, &l);
        while (l.after[i] == l.before[i] && ++runs < 1000);
        assert_true(l.after[i] > l.before[i]);
    }
    hn_pool_count_waits(l.pool, false);
    hn_pool_run(l.pool, late_rank, &l); /* the last barrier of the run before may still count */
    hn_pool_run(l.pool, late_rank, &l);
    for (int i = 0; i < 3; i++) assert_int_equal(l.after[i], l.before[i]);
    hn_pool_free(l.pool);
}

static void test_bad_thread_counts(void **state) {
    (void)state;
    static const int bad[] = {0, -1, 257};
    for (int i = 0; i < 3; i++) {
        hn_pool *p = (hn_pool *)state;
        hunch_error err;
        assert_int_equal(hn_pool_create(&p, bad[i], &err), HUNCH_USAGE);
        assert_null(p);
        assert_non_null(strstr(err.message, "expected 1..256"));
    }
    hn_pool_free(NULL);
}

static void test_no_memory(void **state) {
    (void)state;
    hn_pool *p;
    hunch_error err;
    hn_fault_arm(HN_FAULT_ALLOC, 0, true);
    hunch_status status = hn_pool_create(&p, 2, &err);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    assert_int_equal(status, HUNCH_NO_MEMORY);
    assert_null(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_claims_once),
        cmocka_unit_test(test_steals_all_from_an_absent_rank),
        cmocka_unit_test(test_largest_count),
        cmocka_unit_test(test_workers_that_slept_wake),
        cmocka_unit_test(test_callers_take_turns),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_bad_thread_counts),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
