/* SPDX-License-Identifier: Apache-2.0 */
/* linear_evex_vnni.c - the products of linear_avxvnni.c with the same instruction in its AVX-512 form, for
 * check_linear_test only: we have fewer processors with the other form. */
#include "check_forms.h"

#define LINEAR_DOT _mm256_dpbusd_epi32
#define LINEAR_TABLE check_form_evex
#include "ops/x86/linear_vnni256_tmpl.h"
