/* SPDX-License-Identifier: Apache-2.0 */
/* equality_long_test.c - every case of equality_test.c. */
#define EVERY_CASE true
#include "equality_test.c"
