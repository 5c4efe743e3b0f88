/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_backend.h - the CPU's state behind a backend (backend.h), and how operations find it. For files of this folder, and tests of
 * operations. */
#ifndef HN_CPU_BACKEND_H
#define HN_CPU_BACKEND_H
#include "ops/backend.h"

typedef struct hn_cpu_backend {
    hn_backend base; /* first: a backend is found from its address */
    hn_isa isa;
    hn_pool *pool;
    const struct hn_kernels *kernels;
    _Atomic uint64_t submitted;
} hn_cpu_backend;

void hn_cpu_backend_init(hn_cpu_backend *c, hn_pool *pool, hn_isa isa, bool f32);
static inline const hn_cpu_backend *hn_cpu_of(const hn_backend *b) { return (const hn_cpu_backend *)(const void *)b; }
/* Of the call of an operation. */
static inline const hn_cpu_backend *hn_cpu(const hn_exec *ex) { return hn_cpu_of(ex->backend); }
static inline hn_claim hn_cpu_claim(const hn_exec *ex, int count) { return hn_claim_begin(hn_cpu(ex)->pool, ex->rank, count); }
static inline void hn_cpu_barrier(const hn_exec *ex) { hn_barrier(hn_cpu(ex)->pool, ex->rank); }
/* One rank's call of an operation inside a run of its pool. */
static inline hn_exec hn_cpu_exec(const hn_cpu_backend *c, int rank, int ranks) { return (hn_exec){c->base.ops, &c->base, rank, ranks}; }
#endif
