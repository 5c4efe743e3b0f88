/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_ops_avx512.c - the sampler's vector loops at level avx512. The body is vocab_ops_tmpl.h. */
#include "ops/vocab_ops.h"

#ifdef __x86_64__
#define LANES_BYTES 64
#define VOCAB_OPS_TABLE hn_vocab_ops_avx512
#include "ops/vocab_ops_tmpl.h"
#endif
