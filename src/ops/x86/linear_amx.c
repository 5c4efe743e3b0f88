/* SPDX-License-Identifier: Apache-2.0 */
/* linear_amx.c - matrix products of quantised rows with AMX. The rest of the level is that of AVX-512 with BF16. */
#define LINEAR_TABLE hn_kernels_amx_linear
#include "ops/x86/tiles_amx.h"

#include "ops/x86/linear_tiles_tmpl.h"
