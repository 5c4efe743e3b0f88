/* SPDX-License-Identifier: Apache-2.0 */
/* fault_load_long_test.c - fault_load_test.c with more of the calls failing. */
#define EVERY_CASE true
#include "fault_load_test.c"
