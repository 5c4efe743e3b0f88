/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h - where operations run, and the memory that they read and write.
 *
 * Work is described on the host, submitted, and read when it is done:
 *
 *     b->write(b, at, numbers, bytes);                 what the host knows goes to buffers
 *     hn_ticket t = b->submit(b, record, arg);         record(ex, arg) calls operations (ops.h)
 *     seconds = b->wait(b, t);
 *     const float *y = b->read(b, t, at, bytes);       results, of memory that the host can read
 *
 * Writes and submissions are one queue: work sees all writes before its submission and none after it, and what earlier work computed. The
 * host may write anew as soon as `write` has returned, and never sees what work reads or writes but by `read`. A function given to submit
 * is called before submit returns, and never again: by all workers on a CPU, where it computes; once for a device, where it records.
 * So it must not depend on a computed number, and where numbers of rows are in buffers what it recorded holds for other rows too.
 *
 * Any thread calls these: engines of several threads may share a model, and so its backend. A memory is used by one at a time. */
#ifndef HN_BACKEND_H
#define HN_BACKEND_H
#include "base/account.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "ops/ops.h"

struct hn_delta;
struct hn_ssm;

/* What a memory is for. */
typedef enum hn_mem_kind {
    HN_MEM_WEIGHTS,  /* written at load, then only read */
    HN_MEM_PAGES,    /* keys, values and states: large, touched as texts grow */
    HN_MEM_WORK,     /* buffers of passes */
    HN_MEM_READBACK  /* the same, which the host reads */
} hn_mem_kind;

/* A submission. */
typedef struct hn_ticket {
    uint64_t number; /* ascending; 0: of none */
    double seconds;  /* where the work is done when submit returns, how long it took */
} hn_ticket;

typedef struct hn_backend_limits {
    const char *name;     /* of its level or device: what its computed bits, and its speed, depend on */
    size_t memory_left;   /* bytes that nobody has or was promised */
    int prompt_rows;      /* of a dense model's prompt in a pass: more are hardly faster */
} hn_backend_limits;

typedef void hn_record_fn(const hn_exec *ex, const void *arg);

struct hn_backend {
    const hn_ops *ops; /* the operations that recorded functions get */
    bool f32;          /* products read their inputs and weights as f32 (precision f32) */
    /* A wait takes so long that a round has one: drafts, draws and accepted paths stay there until the target's pass is over
     * (pass_one_wait.c). Else the host decides after each pass. */
    bool one_wait;
    hn_link *link; /* to the other processes that run each pass with this one; NULL: there are none */
    hn_account *account; /* counts its memory, and what others promised of it; NULL: nobody counts */

    void (*close)(hn_backend *b);
    /* The same processor or device at another precision: memory of one is that of the other. Errors: HUNCH_NO_MEMORY. */
    hunch_status (*open_like)(hn_backend *b, bool f32, hn_backend **out, hunch_error *err);
    void (*limits)(const hn_backend *b, hn_backend_limits *out);

    /* -- memory -- */
    hunch_status (*mem_create)(hn_backend *b, hn_mem_kind kind, size_t bytes, hn_mem **out, hunch_error *err); /* zeroed */
    void (*mem_free)(hn_backend *b, hn_mem *m); /* NULL is fine; after all work that was submitted */
    void (*write)(hn_backend *b, hn_buf dst, const void *src, size_t bytes);
    /* What is there is not read any more before it is written anew: the memory goes back to the system until then, as far as whole pages of
     * it are inside. Nothing that was submitted uses it. NULL: memory stays. */
    void (*release)(hn_backend *b, hn_buf at, size_t bytes);

    /* -- work -- */
    /* record NULL: nothing, behind the writes so far. */
    hn_ticket (*submit)(hn_backend *b, hn_record_fn *record, const void *arg);
    double (*wait)(hn_backend *b, hn_ticket t); /* returns the seconds that the work took there */
    bool (*done)(const hn_backend *b, hn_ticket t); /* whether wait would return at once */
    /* Whether work can have ended without results, now and from then on: HUNCH_DEVICE_LOST. NULL: never. */
    hunch_status (*failed)(const hn_backend *b, hunch_error *err);
    /* After wait: bytes of HN_MEM_READBACK memory as work up to t left them, valid until later work or a write changes them. Of other
     * memory only while nothing is submitted: at load, and in tests. */
    const void *(*read)(hn_backend *b, hn_ticket t, hn_buf src, size_t bytes);

    /* -- weights -- */
    size_t (*matrix_bytes)(const hn_backend *b, hn_dtype t, int out, int in); /* of a packed matrix; 0: none of this type */
    /* The place of packed matrices, one after another, from `at` on. */
    hn_matrix_place (*place)(const hn_backend *b, hn_dtype t, int in, hn_buf at);
    /* Two matrices of one shape which products read together and whose places follow each other: they may share them. Before `pack`. */
    void (*pair)(const hn_backend *b, hn_matrix_place *first, hn_matrix_place *second);
    /* Room for reading a matrix that stays in its file, and its place: one room serves all that need no more. NULL: none can stay there. */
    size_t (*stored_room)(const hn_backend *b, hn_dtype t, int in);
    hn_matrix_place (*place_stored)(const hn_backend *b, hn_buf room, size_t bytes);
    /* Packs rows [first, first + HN_STRIP) of matrix number `matrix` of w, those that it has, which are row_bytes apart from `rows` on, at
     * any alignment. first: a multiple of HN_STRIP. factors: F8_E4M3's, one for each HN_F8_TILE inputs of these rows; else NULL. */
    void (*pack)(hn_backend *b, const hn_weight *w, int matrix, int first, const void *rows, size_t row_bytes, const float *factors);

    /* -- sizes and forms of what operations read -- */
    int (*act_forms)(const hn_backend *b, hn_dtype weight); /* forms that a matrix of this type reads at this precision */
    size_t (*act_bytes)(int in, int max_rows);
    bool (*norms)(hn_norm_kind kind); /* whether its operations have such norms; NULL: all of them */
    bool (*applies)(hn_function f); /* whether `apply` has this function; NULL: all of them */
    size_t (*top_scratch)(const hn_backend *b, int max_rows, int k);
    /* kv: its type and widths */
    size_t (*attention_scratch)(const hn_backend *b, int max_rows, int heads, const hn_kv *kv, int max_positions);
    size_t (*delta_scratch)(const hn_backend *b, const struct hn_delta *d);
    size_t (*ssm_scratch)(const hn_backend *b, const struct hn_ssm *d, int max_rows); /* NULL: it has no such layers */
    size_t (*sample_scratch)(const hn_backend *b, int vocab);
    /* NULL: without ranks. cols: the most that are joined; rows with best lists, and their k. */
    size_t (*join_room)(const hn_backend *b, int max_rows, int cols, int top_rows, int k);
    /* Whether attention over a cache of this type multiplies numbers of bf16: those of a Q8_0 cache are rounded to it. Else f32. */
    bool (*attention_in_bf16)(const hn_backend *b, hn_dtype cache);
};

/* The CPU at one level; the pool is borrowed, and does all work before submit returns. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_cpu_backend_open(hn_backend **out, hn_pool *pool, hn_isa isa, bool f32, hunch_error *err);
/* The same as a rank of some: with operations that join what ranks have computed. open_like gives one that works alone. */
hunch_status hn_ranks_backend_open(hn_backend **out, hn_link *link, hn_pool *pool, hn_isa isa, bool f32, hunch_error *err);
/* The CPU without a pool: sizes and forms alone. Not to be closed. */
hn_backend *hn_cpu_sizes(void);

static inline hunch_status hn_backend_failed(const hn_backend *b, hunch_error *err) { return b->failed ? b->failed(b, err) : HUNCH_OK; }
static inline size_t hn_backend_memory_left(const hn_backend *b) {
    hn_backend_limits l;
    b->limits(b, &l);
    return l.memory_left;
}
/* One submission, waited for. */
static inline double hn_backend_run(hn_backend *b, hn_record_fn *record, const void *arg) { return b->wait(b, b->submit(b, record, arg)); }
#endif
