/* SPDX-License-Identifier: Apache-2.0 */
/* linear_emulated_tiles.c - the products of linear_amx.c over tiles in plain C, for check_linear_test only. The rest of
 * the kernel is AVX-512 unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check_forms.h"
#include "tiles_emulated.h"

#define LINEAR_TABLE check_form_tiles
#include "ops/x86/linear_tiles_tmpl.h"
