/* SPDX-License-Identifier: Apache-2.0 */
/* controller_levels_long_test.c - every case of controller_levels_test.c. */
#define EVERY_CASE true
#include "controller_levels_test.c"
