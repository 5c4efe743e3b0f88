/* SPDX-License-Identifier: Apache-2.0 */
/* lanes_avx2.c - the sampler's vector loops at level avx2. The body is lanes_tmpl.h. */
#include "sample/lanes.h"

#ifdef __x86_64__
#define LANES_BYTES 32
#define LANES_TABLE hn_lanes_avx2
#include "sample/lanes_tmpl.h"
#endif
