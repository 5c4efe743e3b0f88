/* SPDX-License-Identifier: Apache-2.0 */
/* planted_fault.c - with the objects of the `hunch` command it is that command with a fault (hunch-planted): in its third pass with drafts
 * a logit of the first row is another one. For tests/command_exact_test.c. */
#include "base/fault.h"

__attribute__((constructor)) static void plant(void) {
    hn_fault_arm(HN_FAULT_LOGIT, 2, false);
}
