/* SPDX-License-Identifier: Apache-2.0 */
/* linear_avxvnni.c - matrix products of quantised rows with VNNI in its VEX form (processors without AVX-512). The rest of
 * the level is AVX2's. */
#define LINEAR_DOT _mm256_dpbusd_avx_epi32
#define LINEAR_TABLE hn_kernels_avxvnni_linear
#include "ops/x86/linear_vnni256_tmpl.h"
