/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_ops_avx2.c - the sampler's vector loops at level avx2. The body is vocab_ops_tmpl.h. */
#include "ops/vocab_ops.h"

#ifdef __x86_64__
#define LANES_BYTES 32
#define VOCAB_OPS_TABLE hn_vocab_ops_avx2
#include "ops/vocab_ops_tmpl.h"
#endif
