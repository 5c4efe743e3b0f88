/* SPDX-License-Identifier: Apache-2.0 */
/* head_rows_long_test.c - every case of head_rows_test.c. */
#define EVERY_CASE true
#include "head_rows_test.c"
