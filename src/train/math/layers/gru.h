/* SPDX-License-Identifier: Apache-2.0 */
/* gru.h - a step of a GRU without biases, of every row, forwards and backwards; the rules are those of layers_back.h. */
#ifndef HN_GRU_H
#define HN_GRU_H
#include "train/math/workers.h"

/* gates [rows][3 n], own [rows][3 n]: the products of the row's input and of its state s [rows][n], in torch's order r, u, m.
 *
 *     r = sigmoid(gate + own), u = sigmoid(gate + own), m = tanh(gate + r own), next [rows][n] = (1 - u) m + u s
 *
 * gates becomes r, u, m, for the backward call. next must not be s. */
void hn_gru_step(hn_workers *t, hn_mat gates, hn_mat own, hn_mat s, hn_mat next);
/* From dnext to the gradients of both products, in their place, and adds to ds. */
void hn_gru_step_back(hn_workers *t, hn_mat dnext, hn_mat gates, hn_mat own, hn_mat s, hn_mat ds);
#endif
