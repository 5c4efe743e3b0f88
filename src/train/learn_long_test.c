/* SPDX-License-Identifier: Apache-2.0 */
/* learn_long_test.c - what learn_test.c asks, of every kind in full. */
#define EVERY_KIND true
#include "learn_test.c"
