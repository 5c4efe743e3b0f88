/* SPDX-License-Identifier: Apache-2.0 */
/* shift_long_test.c - shift_test.c for every kind in full. */
#define EVERY_CASE true
#include "shift_test.c"
