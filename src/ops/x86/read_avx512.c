/* SPDX-License-Identifier: Apache-2.0 */
/* read_avx512.c - see read_tmpl.h. */
#define READ hn_read_avx512
#include "ops/read_tmpl.h"
