/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - what this machine allows: the limits that speeds are compared with. */
#ifndef HN_MACHINE_H
#define HN_MACHINE_H
#include "ops/ops.h"

/* With all workers of o's pool, at o's level: read_gb_s, best of 8 sums over 1 GiB in huge pages; int8_gmac_s, the inner
 * loop of Q8_0 products with its block scales, operands in the L1 cache; barrier_us, one barrier of all workers.
 * Takes under a second. Not inside a pool run. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_machine_measure(const hn_ops *o, double *read_gb_s, double *int8_gmac_s, double *barrier_us,
                                hunch_error *err);
#endif
