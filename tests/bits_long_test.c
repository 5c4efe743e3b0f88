/* SPDX-License-Identifier: Apache-2.0 */
/* bits_long_test.c - every case of bits_test.c. */
#define EVERY_CASE true
#include "bits_test.c"
