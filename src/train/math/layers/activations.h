/* SPDX-License-Identifier: Apache-2.0 */
/* activations.h - functions of one number at a time, forwards and backwards; the rules are those of layers_back.h. */
#ifndef HN_ACTIVATIONS_H
#define HN_ACTIVATIONS_H
#include "train/math/workers.h"

/* y = x + silu(z), silu(z) = z / (1 + e^-z). y may be x. */
void hn_silu_add(hn_workers *t, hn_mat z, hn_mat x, hn_mat y);
/* dz = dy silu'(z). dz may be z or dy. */
void hn_silu_back(hn_workers *t, hn_mat dy, hn_mat z, hn_mat dz);

/* y = gelu(z + bias), gelu(z) = z (1 + erf(z / sqrt 2)) / 2. */
void hn_gelu(hn_workers *t, hn_mat z, const hn_real *bias, hn_mat y);
/* dz = dy gelu'(z + bias), whose rows add up to the gradient of the bias. dz may be z or dy. */
void hn_gelu_back(hn_workers *t, hn_mat dy, hn_mat z, const hn_real *bias, hn_mat dz);
/* y = or (add) += sigmoid(gate) x. y may be x. */
void hn_gated(hn_workers *t, hn_mat gate, hn_mat x, hn_mat y, bool add);
/* dgate = dy x sigmoid'(gate), dx = or (add) += dy sigmoid(gate); without add dx may be dy. */
void hn_gated_back(hn_workers *t, hn_mat dy, hn_mat gate, hn_mat x, hn_mat dgate, hn_mat dx, bool add);
#endif
