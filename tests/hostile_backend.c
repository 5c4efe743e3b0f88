/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_backend.c - the CPU's operations as they would be on a device: memory that is not there but while submitted work runs, writes
 * that are done when the next work is submitted, results that are copies and can be read after the wait alone. A program that is linked
 * with it (tests.cmake) has it in place of the CPU's backend: what reads or writes a buffer otherwise ends there. Without HUNCH_TEST_LIGHT,
 * where time does not matter, memory is protected as well, against pointers that were kept. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "ops/cpu_mem.h"

/* A memory of any hostile backend: drafters' have others, over the same memory. */
typedef struct held {
    struct held *next;
    hn_mem *mem;
    hn_mem_kind kind;
    unsigned char *base; /* where it is, while nobody can see it */
    unsigned char *copy; /* what was read of it; NULL: nothing yet */
    bool open;
} held;

typedef struct queued {
    struct queued *next;
    hn_buf dst;
    size_t bytes;
    unsigned char data[];
} queued;

typedef struct hostile {
    hn_backend base; /* first */
    hn_backend *inner;
} hostile;

enum { KEPT = 256 }; /* tickets whose seconds are known */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* `pack` is called by any thread */
static held *memories;
static queued *first_write, **last_write = &first_write;
static uint64_t submitted, waited;
uint64_t hn_hostile_waits; /* for work that nobody had waited for: for one_wait_test.c */
static double seconds[KEPT];

static const hostile *of(const hn_backend *b) { return (const hostile *)(const void *)b; }

__attribute__((noreturn)) static void wrong(const char *what) {
    fprintf(stderr, "hostile backend: %s\n", what);
    abort();
}

/* Closed memory is at the first page, which is nobody's. */
static void protect_one(held *h, bool open) {
    static int light = -1;
    if (light < 0) light = getenv("HUNCH_TEST_LIGHT") != NULL;
    if (h->open == open) return;
    if (!light && h->mem->size > 0 && mprotect(h->base, h->mem->size, open ? PROT_READ | PROT_WRITE : PROT_NONE)) wrong("mprotect failed");
    h->mem->base = open ? h->base : (unsigned char *)64;
    h->open = open;
}

static void protect_all(bool open) {
    for (held *h = memories; h; h = h->next) protect_one(h, open);
}

static held *find(const hn_mem *m) {
    held *h = memories;
    while (h && h->mem != m) h = h->next;
    if (!h) wrong("a buffer of no memory");
    return h;
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

static hunch_status mem_create(hn_backend *b, hn_mem_kind kind, size_t bytes, hn_mem **out, hunch_error *err) {
    const hunch_status st = of(b)->inner->mem_create(of(b)->inner, kind, bytes, out, err);
    if (st) return st;
    held *h = calloc(1, sizeof *h);
    if (!h) wrong("no memory");
    *h = (held){.mem = *out, .kind = kind, .base = (*out)->base, .open = true};
    pthread_mutex_lock(&lock);
    h->next = memories;
    memories = h;
    protect_one(h, false);
    pthread_mutex_unlock(&lock);
    return HUNCH_OK;
}

static void mem_free(hn_backend *b, hn_mem *m) {
    if (!m) return;
    for (queued **q = &first_write; *q;) {
        queued *one = *q;
        if (one->dst.mem != m) {
            q = &one->next;
            continue;
        }
        *q = one->next;
        free(one);
    }
    last_write = &first_write;
    while (*last_write) last_write = &(*last_write)->next;
    for (held **h = &memories; *h; h = &(*h)->next) {
        held *one = *h;
        if (one->mem != m) continue;
        *h = one->next;
        protect_one(one, true);
        if (one->copy) munmap(one->copy, one->mem->size);
        free(one);
        break;
    }
    of(b)->inner->mem_free(of(b)->inner, m);
}

static void write_later(hn_backend *b HN_UNUSED, hn_buf dst, const void *src, size_t bytes) {
    if (bytes == 0) return;
    if (dst.off + bytes > find(dst.mem)->mem->size) wrong("a write beyond its memory");
    queued *q = malloc(sizeof *q + bytes);
    if (!q) wrong("no memory");
    *q = (queued){.dst = dst, .bytes = bytes};
    memcpy(q->data, src, bytes);
    *last_write = q;
    last_write = &q->next;
}

/* All memory is open. */
static void write_now(void) {
    for (queued *q = first_write, *next; q; q = next) {
        next = q->next;
        memcpy(hn_host(q->dst), q->data, q->bytes);
        free(q);
    }
    first_write = NULL;
    last_write = &first_write;
}

/* ---- work --------------------------------------------------------------------------------------------------- */

static hn_ticket submit(hn_backend *b, hn_record_fn *record, const void *arg) {
    hn_backend *inner = of(b)->inner;
    inner->ops = b->ops; /* a test may have given it others */
    protect_all(true);
    write_now();
    const hn_ticket t = inner->submit(inner, record, arg);
    protect_all(false);
    seconds[++submitted % KEPT] = inner->wait(inner, t);
    return (hn_ticket){.number = submitted};
}

static double wait_for(hn_backend *b HN_UNUSED, hn_ticket t) {
    if (t.number > submitted) wrong("a ticket of nothing");
    hn_hostile_waits += t.number > waited;
    if (t.number > waited) waited = t.number;
    return t.number && t.number + KEPT > submitted ? seconds[t.number % KEPT] : 0;
}

static bool is_done(const hn_backend *b HN_UNUSED, hn_ticket t) { return t.number <= waited; }

static const void *read_copy(hn_backend *b HN_UNUSED, hn_ticket t, hn_buf src, size_t bytes) {
    held *h = find(src.mem);
    if (t.number > waited) wrong("a result was read before the wait for it");
    if (t.number && h->kind != HN_MEM_READBACK) wrong("results were read of memory that the host cannot read");
    if (src.off + bytes > h->mem->size) wrong("a read beyond its memory");
    if (!h->copy) {
        h->copy = mmap(NULL, h->mem->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (h->copy == MAP_FAILED) wrong("no memory");
    }
    if (!t.number) {
        protect_all(true);
        write_now();
    }
    protect_one(h, true);
    memcpy(h->copy + src.off, hn_host(src), bytes);
    protect_all(false);
    return h->copy + src.off;
}

/* ---- weights, sizes, forms: the CPU's --------------------------------------------------------------------------- */

static void pack(hn_backend *b, const hn_weight *w, int matrix, int first, const void *rows, size_t row_bytes, const float *factors) {
    pthread_mutex_lock(&lock);
    protect_one(find(w->place.at.mem), true); /* until the next work */
    pthread_mutex_unlock(&lock);
    of(b)->inner->pack(of(b)->inner, w, matrix, first, rows, row_bytes, factors);
}

static void limits(const hn_backend *b, hn_backend_limits *out) { of(b)->inner->limits(of(b)->inner, out); }
static size_t matrix_bytes(const hn_backend *b, hn_dtype t, int out, int in) {
    return of(b)->inner->matrix_bytes(of(b)->inner, t, out, in);
}
static hn_matrix_place place(const hn_backend *b, hn_dtype t, int in, hn_buf at) { return of(b)->inner->place(of(b)->inner, t, in, at); }
static void pair(const hn_backend *b, hn_matrix_place *x, hn_matrix_place *y) { of(b)->inner->pair(of(b)->inner, x, y); }
static size_t stored_room(const hn_backend *b, hn_dtype t, int in) { return of(b)->inner->stored_room(of(b)->inner, t, in); }
static hn_matrix_place place_stored(const hn_backend *b, hn_buf room, size_t bytes) {
    return of(b)->inner->place_stored(of(b)->inner, room, bytes);
}
static int act_forms(const hn_backend *b, hn_dtype weight) { return of(b)->inner->act_forms(of(b)->inner, weight); }
static size_t top_scratch(const hn_backend *b, int max_rows, int k) { return of(b)->inner->top_scratch(of(b)->inner, max_rows, k); }
static size_t attention_scratch(const hn_backend *b, int max_rows, int heads, const hn_kv *kv, int max_positions) {
    return of(b)->inner->attention_scratch(of(b)->inner, max_rows, heads, kv, max_positions);
}
static size_t sample_scratch(const hn_backend *b, int vocab) { return of(b)->inner->sample_scratch(of(b)->inner, vocab); }
static size_t delta_scratch(const hn_backend *b, const struct hn_delta *d) { return of(b)->inner->delta_scratch(of(b)->inner, d); }
static size_t ssm_scratch(const hn_backend *b, const struct hn_ssm *d, int max_rows) {
    return of(b)->inner->ssm_scratch(of(b)->inner, d, max_rows);
}
static bool attention_in_bf16(const hn_backend *b, hn_dtype cache) { return of(b)->inner->attention_in_bf16(of(b)->inner, cache); }

/* ---- the backend -------------------------------------------------------------------------------------------- */

static void close_both(hn_backend *b) {
    hn_backend *inner = of(b)->inner;
    inner->close(inner);
    hn_free(b);
}

static hunch_status open_like(hn_backend *b, bool f32, hn_backend **out, hunch_error *err);

static hunch_status wrap(hn_backend *inner, hn_backend **out, hunch_error *err) {
    hostile *h = hn_zalloc(1, sizeof *h);
    *out = NULL;
    if (!h) {
        inner->close(inner);
        return hn_fail_memory(err, "a backend", sizeof *h);
    }
    *h = (hostile){.base = {.ops = inner->ops, .f32 = inner->f32, .one_wait = true, .close = close_both, .open_like = open_like,
                            .limits = limits, .mem_create = mem_create, .mem_free = mem_free, .write = write_later, .submit = submit,
                            .wait = wait_for, .done = is_done, .sample_scratch = sample_scratch,
                            .read = read_copy, .matrix_bytes = matrix_bytes, .place = place, .pair = pair, .stored_room = stored_room,
                            .place_stored = place_stored, .pack = pack, .act_forms = act_forms, .act_bytes = inner->act_bytes,
                            .top_scratch = top_scratch, .attention_scratch = attention_scratch, .delta_scratch = delta_scratch,
                            .ssm_scratch = ssm_scratch,
                            .attention_in_bf16 = attention_in_bf16},
                   .inner = inner};
    *out = &h->base;
    return HUNCH_OK;
}

static hunch_status open_like(hn_backend *b, bool f32, hn_backend **out, hunch_error *err) {
    hn_backend *inner;
    const hunch_status st = of(b)->inner->open_like(of(b)->inner, f32, &inner, err);
    return st ? st : wrap(inner, out, err);
}

hunch_status __real_hn_cpu_backend_open(hn_backend **out, hn_pool *pool, hn_isa isa, bool f32, hunch_error *err);
hunch_status __wrap_hn_cpu_backend_open(hn_backend **out, hn_pool *pool, hn_isa isa, bool f32, hunch_error *err);
hunch_status __wrap_hn_cpu_backend_open(hn_backend **out, hn_pool *pool, hn_isa isa, bool f32, hunch_error *err) {
    hn_backend *inner;
    const hunch_status st = __real_hn_cpu_backend_open(&inner, pool, isa, f32, err);
    if (st) *out = NULL;
    return st ? st : wrap(inner, out, err);
}
