/* SPDX-License-Identifier: Apache-2.0 */
/* attention_emulated_tiles.c - the scores and values of attention_amx.c over tiles in plain C, for check_attention_test only. The rest of
 * the kernels is AVX-512 unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check_forms.h"
#include "tiles_emulated.h"

#define ATTENTION_TABLE check_form_attention_tiles
#include "ops/x86/attention_tiles_tmpl.h"
