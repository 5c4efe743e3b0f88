/* SPDX-License-Identifier: Apache-2.0 */
/* lossy.h - all rules that change the text (contract C1): only by the option of that name, and every answer made with one is
 * marked. None is ever a default. */
#ifndef HN_LOSSY_H
#define HN_LOSSY_H
#include "verify/verify_private.h"

bool hn_rule_is_lossy(hn_rule rule);
/* The rule for these parameters and this temperature. HUNCH_USAGE if they are out of range. */
hunch_status hn_lossy_choose(const hunch_lossy *lossy, double temperature, hn_rule *out, hunch_error *err);
hunch_status hn_verify_lossy(const hn_walk *k);
#endif
