/* SPDX-License-Identifier: Apache-2.0 */
/* ssm_rows.h - what families with state space layers share (arch_mamba.c): rows of keys, and what follows from them. */
#ifndef HN_SSM_ROWS_H
#define HN_SSM_ROWS_H
#include "model/arch/ssm_desc.h"
#include "ops/walk.h"

enum { HN_SSM_MOST_DIM = 512, HN_SSM_MOST_STATE = 1024 };
extern const hn_key_row hn_ssm_limits[]; /* of steps; a GGUF's keys are hunch's own: other programs know none */
double hn_ssm_most_inner(const hn_arch *a); /* `up_to`, and `written`, of the size of a head: a GGUF has that of all */
bool hn_ssm_write_inner(const hn_arch *a, const hn_key_row *k, double *v);
/* After it is known which layers have one: sizes of heads, and biases, by a folder's keys or a GGUF's tensors. */
hunch_status hn_ssm_finish(hn_arch *a, const hn_source *src, const char *conv_key, bool conv_usual, const char *bias_key, hunch_error *err);
#endif
