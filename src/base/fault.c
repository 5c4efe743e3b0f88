/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - counts allocations, reads and writes, and makes the one selected by a test fail.
 *
 * Owns the counters, which are the only process-wide mutable state of base/. Unarmed, a call costs one relaxed load.
 */
#include "base/fault.h"

#include <stdatomic.h>

static struct {
    _Atomic bool armed, sticky;
    _Atomic uint64_t after, count;
} faults[HN_FAULT_KINDS];

void hn_fault_arm(enum hn_fault_kind kind, int64_t after, bool sticky) {
    atomic_store(&faults[kind].armed, false);
    if (after < 0) return; /* the count stays readable */
    atomic_store(&faults[kind].after, (uint64_t)after);
    atomic_store(&faults[kind].sticky, sticky);
    atomic_store(&faults[kind].count, 0);
    atomic_store(&faults[kind].armed, true);
}

uint64_t hn_fault_count(enum hn_fault_kind kind) {
    return atomic_load(&faults[kind].count);
}

bool hn_fault_hit(enum hn_fault_kind kind) {
    if (!atomic_load_explicit(&faults[kind].armed, memory_order_relaxed)) return false;
    uint64_t call = atomic_fetch_add(&faults[kind].count, 1);
    uint64_t after = atomic_load(&faults[kind].after);
    return call == after || (call > after && atomic_load(&faults[kind].sticky));
}
