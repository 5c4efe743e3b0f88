/* SPDX-License-Identifier: Apache-2.0 */
/* equality_heads_long_test.c - every case of equality_heads_test.c. */
#define EVERY_CASE true
#include "equality_heads_test.c"
