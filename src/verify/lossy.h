/* SPDX-License-Identifier: Apache-2.0 */
/* lossy.h - the rules that change what is said, all of them (contract C1): behind an option of that name only, and every
 * answer made with one says so. None is ever a default. */
#ifndef HN_LOSSY_H
#define HN_LOSSY_H
#include "verify/verify_private.h"

bool hn_rule_is_lossy(hn_rule rule);
/* The rule for parameters in range at this temperature. HUNCH_USAGE otherwise. */
hunch_status hn_lossy_choose(const hunch_lossy *lossy, double temperature, hn_rule *out, hunch_error *err);
hunch_status hn_verify_lossy(const hn_walk *k);
#endif
