/* SPDX-License-Identifier: Apache-2.0 */
/* attention_amx.c - attention over a BF16 cache in AMX's tiles. */
#include "ops/x86/tiles_amx.h"

#define ATTENTION_TABLE hn_kernels_amx_attention
#include "ops/x86/attention_tiles_tmpl.h"
