/* SPDX-License-Identifier: Apache-2.0 */
/* shift_long_test.c - what shift_test.c asks, of every kind in full. */
#define EVERY_KIND true
#include "shift_test.c"
