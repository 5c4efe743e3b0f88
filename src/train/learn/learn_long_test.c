/* SPDX-License-Identifier: Apache-2.0 */
/* learn_long_test.c - learn_test.c for every kind in full. */
#define EVERY_CASE true
#include "learn_test.c"
