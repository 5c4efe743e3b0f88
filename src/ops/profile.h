/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h - where the time of a pass goes: a table of operations that notes how long each takes and hands on to another.
 *
 * Only who calls through it pays for it. What a product is for (hn_phase) its matrix says. */
#ifndef HN_PROFILE_H
#define HN_PROFILE_H
#include "ops/ops.h"

typedef struct hn_phase_sum {
    int calls;
    double seconds;     /* of rank 0, from entering its operations to leaving them */
    double waited;      /* of it, waiting for other ranks: mean over all of them */
    double bytes, macs; /* weights, or keys and values, read; multiply-accumulates of products and attention */
} hn_phase_sum;

typedef struct hn_profile hn_profile;

/* o is borrowed. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_profile_open(hn_profile **out, const hn_ops *o, hunch_error *err);
void hn_profile_close(hn_profile **p); /* NULL inside is fine */
/* The table to call. What it does not know it does not note. One pool run at a time. */
const hn_ops *hn_profile_ops(const hn_profile *p);
const char *hn_phase_name(hn_phase phase);
/* Outside a pool run: what was noted since the last call, and begins anew. */
void hn_profile_take(hn_profile *p, hn_phase_sum sums[HN_PHASES]);
#endif
