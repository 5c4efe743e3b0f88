/* SPDX-License-Identifier: Apache-2.0 */
/* delta_state_long_test.c - delta_state_test.c with more texts. */
#define EVERY_CASE true
#include "delta_state_test.c"
