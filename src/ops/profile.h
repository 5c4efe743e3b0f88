/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h - the time of a pass by kind of operation: a table of operations that records the time of each and calls another table.
 *
 * Without it there is no overhead. The phase of a product (hn_phase) is that of its matrix. */
#ifndef HN_PROFILE_H
#define HN_PROFILE_H
#include "base/threads.h"
#include "ops/ops.h"

typedef struct hn_phase_sum {
    int calls;
    double seconds;     /* of rank 0, from entering its operations to leaving them */
    double waited;      /* part of it spent waiting for other ranks: mean over all ranks */
    double bytes, macs; /* weights, or keys and values, read; multiply-accumulates of products and attention */
} hn_phase_sum;

typedef struct hn_profile hn_profile;

/* Of operations of the CPU, run by this pool. Both are borrowed. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_profile_open(hn_profile **out, const hn_ops *o, hn_pool *pool, hunch_error *err);
void hn_profile_close(hn_profile **p); /* NULL inside is fine */
/* The table to call. Operations without a wrapper are not recorded. One pool run at a time. */
const hn_ops *hn_profile_ops(const hn_profile *p);
const char *hn_phase_name(hn_phase phase);
/* Outside a pool run: returns the sums since the last call, and resets them. */
void hn_profile_take(hn_profile *p, hn_phase_sum sums[HN_PHASES]);
#endif
