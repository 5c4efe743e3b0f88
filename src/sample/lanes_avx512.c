/* SPDX-License-Identifier: Apache-2.0 */
/* lanes_avx512.c - the sampler's vector loops at level avx512. The body is lanes_tmpl.h. */
#include "sample/lanes.h"

#ifdef __x86_64__
#define LANES_BYTES 64
#define LANES_TABLE hn_lanes_avx512
#include "sample/lanes_tmpl.h"
#endif
