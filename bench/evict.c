/* SPDX-License-Identifier: Apache-2.0 */
/* evict.c - what an eviction costs when the prefix index is full: microseconds of a page that a running text takes from ended ones.
 *
 *   build-test/evict [BLOCKS]      default: 16,000 blocks of ended texts, beside 16 texts that run
 *
 * With one full group, with a window group beside it, and with states of a recurrent layer, whose limit is reached. Rows are committed but
 * never written: only the bookkeeping is timed, the publishing of the new rows included.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cache/cache.h"

enum { PAGE = 16, ROWS = 4096, RUNNING = 16, STEP = 64, STATES = 512 };

static void check(hunch_status st, const hunch_error *err) {
    if (!st) return;
    fprintf(stderr, "evict: %s\n", err->message);
    exit(1);
}

/* Appends rows to a sequence, a pass of STEP at a time; returns the seconds. */
static double append(hn_cache *c, int seq, int32_t *text, int number, int rows, bool states) {
    const double start = hn_now();
    for (int end = hn_cache_committed(c, seq, 0) + rows, at; (at = hn_cache_committed(c, seq, 0)) < end;) {
        hunch_error err;
        for (int i = at; i < at + STEP; i++) text[i] = i * 31 + number;
        check(hn_cache_reserve(c, seq, 0, STEP, &err), &err);
        if (states && at > 0) hn_cache_absorb(c, seq, 0, at);
        hn_cache_commit(c, seq, 0, NULL, STEP);
        hn_cache_publish(c, seq, text, &(int){at + STEP});
    }
    return hn_now() - start;
}

static void measure(const char *name, hn_backend *backend, const hn_cache_group *groups, int n_groups, int blocks, bool states) {
    static int32_t text[ROWS + STEP];
    hunch_error err;
    hn_cache *c;
    const int length = ROWS / 4, texts = blocks * PAGE / length;
    check(hn_cache_open(&c, backend, groups, n_groups, RUNNING + 1, ROWS, blocks * PAGE, &err), &err);
    for (int s = 0; s < RUNNING; s++) hn_cache_seq_begin(c, s);
    for (int s = 0; s < RUNNING; s++) (void)append(c, s, text, -1 - s, STEP, states);
    int number = 0;
    for (; number < 2 * texts; number++) { /* twice as many as fit */
        hn_cache_seq_begin(c, RUNNING);
        (void)append(c, RUNNING, text, number * 7919, length, states);
        hn_cache_seq_end(c, RUNNING);
    }
    double seconds = 0;
    const int more = 20;
    for (int i = 0; i < more; i++, number++) {
        hn_cache_seq_begin(c, RUNNING);
        seconds += append(c, RUNNING, text, number * 7919, length, states);
        hn_cache_seq_end(c, RUNNING);
    }
    printf("%-22s %6d blocks, %6d pages idle: %8.2f us a page of %d rows%s\n", name, blocks, hn_cache_free_pages(c),
           1e6 * seconds / (more * length / PAGE), PAGE, states ? ", a state each 64 rows" : "");
    hn_cache_close(&c);
}

int main(int argc, char **argv) {
    const int blocks = argc > 1 ? atoi(argv[1]) : 16000;
    const hn_cache_group full = {.name = "full", .layers = 1, .kv_heads = 1, .head_dim = 32, .type = HN_BF16, .page_rows = PAGE},
                         window = {.name = "window", .layers = 1, .kv_heads = 1, .head_dim = 32, .type = HN_BF16, .window = 128},
                         rows = {.name = "rows", .kind = HN_CACHE_ROWS, .units = 1, .unit_bytes = 256, .window = 4, .type = HN_F32},
                         state = {.name = "state", .kind = HN_CACHE_STATE, .units = 4, .unit_bytes = 2048, .kept = STATES, .type = HN_F32};
    hunch_error err;
    hn_pool *pool = NULL;
    hn_backend *backend;
    check(hn_pool_create(&pool, 1, &err), &err);
    check(hn_cpu_backend_open(&backend, pool, HN_ISA_REF, false, &err), &err);
    measure("full rows", backend, &full, 1, blocks, false);
    measure("full rows and a window", backend, (const hn_cache_group[]){full, window}, 2, blocks, false);
    measure("full rows and states", backend, (const hn_cache_group[]){full, state, rows}, 3, blocks, true);
    backend->close(backend);
    hn_pool_free(pool);
    return 0;
}
