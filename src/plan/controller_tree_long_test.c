/* SPDX-License-Identifier: Apache-2.0 */
/* controller_tree_long_test.c - every case of controller_tree_test.c. */
#define EVERY_CASE true
#include "controller_tree_test.c"
