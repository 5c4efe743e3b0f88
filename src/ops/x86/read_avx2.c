/* SPDX-License-Identifier: Apache-2.0 */
/* read_avx2.c - see read_tmpl.h. */
#define READ hn_read_avx2
#include "ops/read_tmpl.h"
